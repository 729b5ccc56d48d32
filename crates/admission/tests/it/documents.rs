//! Builders of configurations, and their validation errors and warnings.

use admission::{
    Configuration, ConfigurationKind, Snapshot, configuration_warnings, prepare_configuration,
    validate_configuration_create, validate_configuration_update,
};
use api_object::Tree;
use field_errors::FieldError;
use serde_json::{Value, json};
use std::sync::Arc;

/// The tree of a value that is an object.
pub(crate) fn tree(value: Value) -> Tree {
    match value {
        Value::Object(tree) => tree,
        other => panic!("{other} is not an object"),
    }
}

/// Returns a value with changed members. A null change removes the member.
pub(crate) fn with(mut base: Value, changes: Value) -> Value {
    for (member, value) in tree(changes) {
        match value {
            Value::Null => drop(base.as_object_mut().unwrap().shift_remove(&member)),
            value => base[member] = value,
        }
    }
    base
}

/// Makes a prepared configuration with these entries.
pub(crate) fn object(kind: ConfigurationKind, name: &str, entries: Value) -> Tree {
    let mut tree = tree(json!({"metadata": {"name": name}, (kind.entries_member_name()): entries}));
    prepare_configuration(kind, &mut tree).unwrap();
    tree
}

/// The validation errors of a new object with these entries.
pub(crate) fn created(kind: ConfigurationKind, entries: Value) -> Vec<String> {
    validate_configuration_create(kind, &object(kind, "a", entries))
        .iter()
        .map(FieldError::to_string)
        .collect()
}

/// The validation errors of an update from one list of entries to another.
pub(crate) fn updated(kind: ConfigurationKind, from: Value, to: Value) -> Vec<String> {
    let (old, new) = (object(kind, "a", from), object(kind, "a", to));
    validate_configuration_update(kind, &new, &old).iter().map(FieldError::to_string).collect()
}

/// The warnings that the client receives for a write.
pub(crate) fn warnings_of(kind: ConfigurationKind, old: Option<Value>, new: Value) -> Vec<String> {
    let old = old.map(|old| object(kind, "a", old));
    let warnings = configuration_warnings(kind, &object(kind, "a", new), old.as_ref());
    warnings.iter().map(ToString::to_string).collect()
}

/// A snapshot of stored objects.
pub(crate) fn snapshot(objects: &[(ConfigurationKind, &str, Value)]) -> Snapshot {
    let compile = |(kind, name, entries): &(ConfigurationKind, &str, Value)| {
        Arc::new(Configuration::compile_configuration(*kind, &object(*kind, name, entries.clone())))
    };
    Snapshot::new(&objects.iter().map(compile).collect::<Vec<_>>())
}
