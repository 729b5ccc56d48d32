//! The order of all initializers that are given together.

use admission::{ConfigurationKind, Warning};
use api_object::Tree;
use document::Diagnostic;
use field_errors::FieldError;
use serde_json::Value;

use super::examine::Examined;

/// The most circles that are told. Whoever has more mends the first ones first.
const CIRCLES_MAX: usize = 100;

const LIST: &str = ConfigurationKind::Initializer.list();

/// What is found about the order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Circles in which initializers wait for each other.
    pub(crate) errors: Vec<Diagnostic>,
    /// Names that nobody has, each with the position of the configuration that names them.
    pub(crate) warnings: Vec<(usize, Warning)>,
}

/// Checks the order of all initializers as that of one object: a list of all of them, in the order
/// in which a server brings them, means the same.
pub(crate) fn order(configurations: &[Examined]) -> Order {
    let mut entries = entries(configurations);
    let mut order = Order::default();
    for warning in admission::ordering_warnings(&together(&entries), &[]) {
        if let Some((own, path)) = configuration_and_path(&entries, &warning.path) {
            order.warnings.push((own, Warning { path, ..warning }));
        }
    }
    while order.errors.len() < CIRCLES_MAX {
        let errors = admission::ordering_errors(&together(&entries), &[]);
        let Some(error) = errors.iter().next() else { break };
        let Some((own, path)) = configuration_and_path(&entries, &error.path) else { break };
        if let Some(examined) = configurations.get(own) {
            order.errors.push(examined.kept.field_diagnostic(FieldError { path, ..error.clone() }));
        }
        // Without it the next circle is found.
        match index_of(&error.path) {
            Some(idx) if idx < entries.len() => entries.remove(idx),
            _ => break,
        };
    }
    order
}

/// An initializer and where it is from.
struct Entry<'e> {
    value: &'e Value,
    /// The position of its configuration, and its own position there.
    origin: (usize, usize),
}

/// All initializers in their global order: by the name of their configuration, then as listed there.
fn entries(configurations: &[Examined]) -> Vec<Entry<'_>> {
    let mut own: Vec<(usize, &Examined)> = configurations.iter().enumerate().collect();
    own.retain(|(_, examined)| examined.kind == ConfigurationKind::Initializer);
    own.sort_by(|(_, a), (_, b)| api_object::name(&a.tree).cmp(api_object::name(&b.tree)));
    let entries = own.into_iter().flat_map(|(position, examined)| {
        let list = examined.tree.get(LIST).and_then(Value::as_array).into_iter().flatten();
        list.enumerate().map(move |(idx, value)| Entry { value, origin: (position, idx) })
    });
    entries.collect()
}

/// One configuration with all of them.
fn together(entries: &[Entry<'_>]) -> Tree {
    let list = entries.iter().map(|entry| entry.value.clone()).collect();
    Tree::from_iter([(LIST.to_owned(), Value::Array(list))])
}

/// The position of the configuration that a path leads to, and the path there.
fn configuration_and_path(entries: &[Entry<'_>], path: &str) -> Option<(usize, String)> {
    let (position, idx) = entries.get(index_of(path)?)?.origin;
    let (_, rest) = path.split_once(']')?;
    Some((position, format!("{LIST}[{idx}]{rest}")))
}

/// The index in `initializers[7].after`.
fn index_of(path: &str) -> Option<usize> {
    let (_, rest) = path.split_once('[')?;
    rest.split_once(']')?.0.parse().ok()
}
