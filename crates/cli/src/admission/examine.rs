//! What is wrong with one configuration.

use admission::{ConfigurationKind, Warning};
use api_object::Tree;
use document::Diagnostic;
use field_errors::{FieldErrorKind, FieldErrors, dns1123_subdomain_faults};
use manifests::WholeObject;
use serde_json::Value;

/// The most values of a wrong type that are told of one configuration.
const TYPE_FAULTS_MAX: usize = 100;

/// Which rules a configuration is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Those for a new object, unless it says that a server has stored it.
    Creation,
    /// Those for an object that a server has.
    Stored,
}

/// A configuration in which nothing is wrong.
#[derive(Debug)]
pub(crate) struct Examined {
    /// As it was written.
    pub(crate) kept: WholeObject,
    pub(crate) kind: ConfigurationKind,
    /// As a server has it: with defaults.
    pub(crate) tree: Tree,
    /// What its author should know.
    pub(crate) warnings: Vec<Warning>,
}

/// Reads a configuration as a server does that is strict about fields.
///
/// 1. Fields that do not exist and values of a wrong type are told first: without them nobody knows
///    what was meant.
/// 2. Then the rules of the kind are asked.
///
/// # Errors
/// Everything that is wrong, in the order of the file.
pub(crate) fn examine(kept: WholeObject, rules: Rules) -> Result<Examined, Vec<Diagnostic>> {
    let Some(kind) = ConfigurationKind::from_type_meta(kept.api_version(), kept.kind_name()) else {
        let message = "this is no configuration of admission".to_owned();
        return Err(vec![kept.wrong_type_diagnostic("kind", message)]);
    };
    let mut faults = kept.metadata_diagnostics();
    for path in admission::unknown_fields(kind, &kept.value) {
        let (parent, _) = path.rsplit_once('.').unwrap_or_default();
        faults.push(kept.unknown_field_diagnostic(&path, &admission::known_fields(kind, parent)));
    }
    let tree = match prepared(kind, &kept) {
        Ok(tree) => tree,
        Err(more) => {
            faults.extend(more);
            Tree::new()
        }
    };
    if faults.is_empty() {
        // Who stores it knows it already, and may keep it as it is.
        let is_stored = rules == Rules::Stored || !api_object::uid(&tree).is_empty();
        let old = is_stored.then_some(&tree);
        let errors = errors(kind, &tree, old);
        if errors.is_empty() {
            let mut warnings = admission::configuration_warnings(kind, &tree, old);
            // The server that will store it may refuse loopback addresses, too.
            let policy = https_client::AddressPolicy::default();
            let refusal = |address| policy.check(address).err().map(|refused| refused.to_string());
            warnings.extend(admission::refused_address_warnings(kind, &tree, &refusal));
            return Ok(Examined { kept, kind, tree, warnings });
        }
        faults = errors.iter().map(|error| located(&kept, error.clone())).collect();
    }
    faults.sort_by_key(|fault| fault.place);
    Err(faults)
}

/// The configuration with its defaults, or each value that is of a wrong type.
fn prepared(kind: ConfigurationKind, kept: &WholeObject) -> Result<Tree, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut written = Value::Object(kept.value.clone());
    while faults.len() < TYPE_FAULTS_MAX {
        let mut tree = match &written {
            Value::Object(tree) => tree.clone(),
            _ => Tree::new(),
        };
        let shaped = api_object::normalize_metadata(&mut tree);
        let Err(wrong) = shaped.and_then(|()| admission::prepare(kind, &mut tree)) else {
            // Nobody minds where a configuration of the whole cluster says that it is.
            api_object::metadata_mut(&mut tree).shift_remove("namespace");
            return if faults.is_empty() { Ok(tree) } else { Err(faults) };
        };
        faults.push(kept.wrong_type_diagnostic(&wrong.path, wrong.to_string()));
        // What was told is taken away, so that the next one is found.
        match written.pointer_mut(&pointer(&wrong.path)) {
            Some(value) => *value = Value::Null,
            None => break,
        }
    }
    Err(faults)
}

/// A path such as `webhooks[0].name` as JSON Pointer writes it.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace(['.', '['], "/").replace(']', ""))
}

fn errors(kind: ConfigurationKind, tree: &Tree, old: Option<&Tree>) -> FieldErrors {
    let mut errors =
        api_object::validate_metadata(tree, false, |name, is_prefix| match is_prefix {
            true => Vec::new(),
            false => dns1123_subdomain_faults(name),
        });
    errors.extend(match old {
        None => admission::validate_create(kind, tree),
        Some(old) => admission::validate_update(kind, tree, old),
    });
    errors
}

fn located(kept: &WholeObject, error: field_errors::FieldError) -> Diagnostic {
    let is_name = error.path == "metadata.name" && error.kind == FieldErrorKind::Required;
    let is_generated = api_object::metadata(&kept.value).contains_key("generateName");
    let is_registration =
        error.kind == FieldErrorKind::Forbidden && error.path.ends_with(".failurePolicy");
    let mut fault = kept.field_diagnostic(error);
    if is_name && is_generated {
        fault.hint = Some("nothing completes `generateName` in a file: set `name`".to_owned());
    }
    if is_registration {
        let hint = "the API refuses to create it like this: create it with `Ignore`; an update of \
                    an entry that is there may say `Fail`";
        fault.hint = Some(hint.to_owned());
    }
    fault
}
