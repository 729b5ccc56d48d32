//! The ordering of initializers, as far as configurations can be wrong about it (admission §6.9).

use std::collections::HashSet;

use api_object::Tree;
use field_errors::{FieldError, FieldErrors, FieldPath};

use super::kind::ConfigurationKind;
use super::names::{Seen, check_qualified};
use super::warning::{Warning, WarningCause};
use super::webhooks::check_supported;
use crate::initializer::{Initializer, in_global_order};
use crate::members::{objects, text, texts};
use crate::order::Graph;

const MODES: [&str; 2] = ["Graph", "Sequential"];
const CONSTRAINTS: [&str; 2] = ["after", "before"];

/// Checks the constraints of one entry by themselves.
pub(super) fn check(entry: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    check_supported(entry, "orderingMode", &MODES, at, errors);
    let is_graph = text(entry, "orderingMode") == Some("Graph");
    let own = text(entry, "name").unwrap_or_default();
    for member in CONSTRAINTS {
        let (names, at) = (texts(entry, member), at.child(member));
        if !names.is_empty() && !is_graph {
            errors.push(at.forbidden("may only be set when orderingMode is Graph"));
        }
        let mut seen = Seen::default();
        for (idx, name) in names.iter().enumerate() {
            let at = at.index(idx);
            check_qualified(name, &at, errors);
            if !own.is_empty() && *name == own {
                errors.push(at.invalid(*name, "must not reference itself"));
            }
            seen.check(name, &at, errors);
        }
    }
}

/// What a valid InitializerConfiguration breaks together with all others: an order that can not be
/// kept. The other objects may include the stored state of this one, which it replaces.
///
/// The caller makes sure that the others are still the same when the object is stored.
#[must_use]
pub fn ordering_errors(new: &Tree, others: &[&Tree]) -> FieldErrors {
    let own = api_object::name(new);
    let initializers = all_initializers(new, others);
    let graph = Graph::new(&initializers);
    let circling = graph.circling();
    // An entry of a name that another object has registered before has no say.
    let is_own = |idx: &usize| initializers.get(*idx).is_some_and(|it| it.configuration == own);
    let Some(first) = circling.into_iter().find(is_own) else { return FieldErrors::new() };
    let Some(cycle) = graph.cycle_through(first) else { return FieldErrors::new() };
    let names: Vec<&str> =
        cycle.iter().filter_map(|idx| Some(initializers.get(*idx)?.name.as_str())).collect();
    cycle_error(new, &names).into()
}

/// The error at the first entry of a cycle.
fn cycle_error(new: &Tree, cycle: &[&str]) -> FieldError {
    let list = FieldPath::root(ConfigurationKind::Initializer.list());
    let name = cycle.first().copied().unwrap_or_default();
    let entries = objects(new, ConfigurationKind::Initializer.list());
    let idx = entries.iter().position(|entry| text(entry, "name") == Some(name));
    let at = list.index(idx.unwrap_or_default());
    let detail = format!("ordering cycle: {} -> {name}", cycle.join(" -> "));
    // The last of the cycle comes right before the entry, and the second right after it.
    for (member, neighbour) in [("after", cycle.last()), ("before", cycle.get(1))] {
        let entry = idx.and_then(|idx| entries.get(idx));
        let is_named = |by: &&&str| entry.is_some_and(|entry| texts(entry, member).contains(*by));
        if let Some(by) = neighbour.filter(is_named) {
            return at.child(member).invalid(*by, &detail);
        }
    }
    at.child("name").invalid(name, &detail)
}

/// Names in constraints that nobody registers.
#[must_use]
pub fn ordering_warnings(new: &Tree, others: &[&Tree]) -> Vec<Warning> {
    let known: HashSet<String> =
        all_initializers(new, others).into_iter().map(|initializer| initializer.name).collect();
    let mut warnings = Vec::new();
    for (idx, entry) in objects(new, ConfigurationKind::Initializer.list()).into_iter().enumerate()
    {
        for member in CONSTRAINTS {
            let names = texts(entry, member).into_iter().enumerate();
            for (at, name) in names.filter(|(_, name)| !known.contains(*name)) {
                warnings.push(Warning {
                    cause: WarningCause::UnknownInitializer,
                    path: format!("initializers[{idx}].{member}[{at}]"),
                    message: format!(
                        "no initializer named {} is registered; the constraint has no effect until \
                         one is",
                        go_compat::quote(name)
                    ),
                });
            }
        }
    }
    warnings
}

fn all_initializers(new: &Tree, others: &[&Tree]) -> Vec<Initializer> {
    let own = api_object::name(new);
    let others = others.iter().copied().filter(|other| api_object::name(other) != own);
    in_global_order(others.chain([new]).flat_map(Initializer::read_all).collect())
}
