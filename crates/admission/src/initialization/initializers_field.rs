//! Reads and writes the field `metadata.initializers`.

use std::collections::HashSet;

use api_object::{MetadataTypeError, Tree};
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::Value;

use crate::configuration::{FieldType, STRING_LIST, check_qualified_name, check_value_type};
use crate::initializer_order::{PendingInitializer, PendingInitializers};
use crate::json_members::{read_object, read_objects, read_owned_strings, read_string};

/// The name of the member of metadata.
const INITIALIZERS: &str = "initializers";

const FIELD_TYPE: FieldType = FieldType::Object(&[
    (
        "pending",
        FieldType::List(&FieldType::Object(&[("name", FieldType::String), ("after", STRING_LIST)])),
    ),
    (
        "result",
        FieldType::Object(&[
            ("kind", FieldType::String),
            ("apiVersion", FieldType::String),
            ("status", FieldType::String),
            ("message", FieldType::String),
            ("reason", FieldType::String),
            (
                "details",
                FieldType::Object(&[
                    ("name", FieldType::String),
                    ("group", FieldType::String),
                    ("kind", FieldType::String),
                    ("uid", FieldType::String),
                    (
                        "causes",
                        FieldType::List(&FieldType::Object(&[
                            ("reason", FieldType::String),
                            ("message", FieldType::String),
                            ("field", FieldType::String),
                        ])),
                    ),
                    ("retryAfterSeconds", FieldType::Int32),
                ]),
            ),
            ("code", FieldType::Int32),
        ]),
    ),
]);

/// The value of `metadata.initializers`.
///
/// INVARIANT: `after_initializers` names entries of the same list only, each of them once. [`write_to_object`](Self::write_to_object) restores this if
/// a caller changes the public fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Initializers {
    /// The initializers that have yet to act.
    pub pending_initializers: Vec<PendingInitializer>,
    /// The failure Status that an initializer wrote.
    pub failure_written_by_initializer: Option<Tree>,
}

impl Initializers {
    /// Reads the field of an object; it is empty if the object has no pending initializers. Values of a wrong type count as
    /// absent, see [`normalize_initializers`].
    #[must_use]
    pub fn from_object(tree: &Tree) -> Self {
        let Some(field) = read_object(api_object::metadata(tree), INITIALIZERS) else {
            return Self::default();
        };
        let read = |entry: &Tree| PendingInitializer {
            name: read_string(entry, "name").unwrap_or_default().to_owned(),
            after_initializers: entry
                .get("after")
                .is_some_and(Value::is_array)
                .then(|| read_owned_strings(entry, "after")),
        };
        let mut pending: Vec<PendingInitializer> =
            read_objects(field, "pending").into_iter().map(read).collect();
        remove_invalid_after_names(&mut pending);
        Self {
            pending_initializers: pending,
            failure_written_by_initializer: read_object(field, "result").cloned(),
        }
    }

    /// Reports whether there are neither pending initializers nor a failure.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending_initializers.is_empty() && self.failure_written_by_initializer.is_none()
    }

    /// Writes the field of an object; an empty value removes it.
    pub fn write_to_object(mut self, tree: &mut Tree) {
        remove_invalid_after_names(&mut self.pending_initializers);
        let metadata = api_object::metadata_mut(tree);
        if self.is_empty() {
            metadata.shift_remove(INITIALIZERS);
            return;
        }
        let mut field = Tree::new();
        if !self.pending_initializers.is_empty() {
            let entries = self.pending_initializers.into_iter().map(pending_initializer_to_json);
            field.insert("pending".to_owned(), Value::Array(entries.collect()));
        }
        if let Some(result) = self.failure_written_by_initializer {
            field.insert("result".to_owned(), Value::Object(result));
        }
        metadata.insert(INITIALIZERS.to_owned(), Value::Object(field));
    }

    /// Validates the field of a new object.
    #[must_use]
    pub fn validate_on_create(&self, pending_max: usize) -> FieldErrors {
        let mut errors = FieldErrors::new();
        self.check_pending_list(pending_max, &mut errors);
        if self.failure_written_by_initializer.is_some() {
            let at = FieldPath::root("metadata");
            let at = at.child(INITIALIZERS);
            errors.push(at.child("result").forbidden("may not be set on create"));
        }
        errors
    }

    /// Validates the field of an update; `old` is the stored value.
    #[must_use]
    pub fn validate_on_update(&self, old: &Self, pending_max: usize) -> FieldErrors {
        let mut errors = self.validate_initializers_change(old);
        if !old.is_empty() {
            self.check_pending_list(pending_max, &mut errors);
        }
        errors
    }

    /// Validates the transition from `old`. These rules apply to every client, even to one with the permission
    /// `initialize`.
    pub(super) fn validate_initializers_change(&self, old: &Self) -> FieldErrors {
        let metadata = FieldPath::root("metadata");
        let at = metadata.child(INITIALIZERS);
        let mut errors = FieldErrors::new();
        let null = || BadValue::Json("null".to_owned());
        match (&old.failure_written_by_initializer, &self.failure_written_by_initializer) {
            _ if old.is_empty() && self.is_empty() => {}
            _ if old.is_empty() => {
                let detail = "field is immutable once initialization has completed";
                errors.push(at.invalid(null(), detail));
            }
            (Some(former), result) if result.as_ref() != Some(former) => {
                let shown = result.as_ref().map_or_else(null, to_bad_value);
                errors.push(at.child("result").invalid(shown, "field is immutable"));
            }
            (None, Some(result)) if api_object::string_member(result, "status") != FAILURE => {
                let status = api_object::string_member(result, "status");
                let at = at.child("result");
                errors.push(at.child("status").invalid(status, "must be 'Failure'"));
            }
            (Some(_), _) | (None, Some(_) | None) => {}
        }
        errors
    }

    fn check_pending_list(&self, pending_max: usize, errors: &mut FieldErrors) {
        let metadata = FieldPath::root("metadata");
        let at = metadata.child(INITIALIZERS);
        let at = at.child("pending");
        if self.pending_initializers.len() > pending_max {
            // The list is refused for its length alone, because errors about each of so many names would not help.
            errors.push(at.too_many(self.pending_initializers.len(), pending_max));
            return;
        }
        for (idx, entry) in self.pending_initializers.iter().enumerate() {
            check_qualified_name(&entry.name, &at.index(idx).child("name"), errors);
        }
    }
}

/// The required `status` of a result.
const FAILURE: &str = "Failure";

impl From<PendingInitializers> for Initializers {
    fn from(list: PendingInitializers) -> Self {
        Self { pending_initializers: list.ordered_entries, failure_written_by_initializer: None }
    }
}

/// Removes unknown and null members of the field of an object. An empty field stays, because a client sets it to request
/// no initializers.
///
/// # Errors
/// A value is of a wrong type.
pub fn normalize_initializers(tree: &mut Tree) -> Result<(), MetadataTypeError> {
    let Some(metadata) = tree.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    match metadata.get_mut(INITIALIZERS) {
        None => Ok(()),
        Some(Value::Null) => {
            metadata.shift_remove(INITIALIZERS);
            Ok(())
        }
        Some(field) => check_value_type(&FIELD_TYPE, field, "metadata.initializers"),
    }
}

/// Reports whether an object has the field, even an empty one.
pub(super) fn has_initializers_field(tree: &Tree) -> bool {
    api_object::metadata(tree).get(INITIALIZERS).is_some_and(|field| !field.is_null())
}

/// Reports whether an object has pending initializers or a failed one, so that clients do not see it yet.
#[must_use]
pub fn has_pending_initializers(tree: &Tree) -> bool {
    let Some(field) = read_object(api_object::metadata(tree), INITIALIZERS) else { return false };
    let pending = field.get("pending").and_then(Value::as_array);
    pending.is_some_and(|pending| !pending.is_empty()) || read_object(field, "result").is_some()
}

/// Copies the field of the stored object to its next state.
pub fn copy_initializers(new: &mut Tree, old: &Tree) {
    Initializers::from_object(old).write_to_object(new);
}

/// Returns the object without the first pending entry of this name; `None` if there is none.
#[must_use]
pub fn without_initializer(tree: &Tree, name: &str) -> Option<Tree> {
    let mut initializers = Initializers::from_object(tree);
    let idx = initializers.pending_initializers.iter().position(|entry| entry.name == name)?;
    initializers.pending_initializers.remove(idx);
    let mut next = tree.clone();
    initializers.write_to_object(&mut next);
    Some(next)
}

/// Removes names from `after_initializers` that are duplicates or not in the list.
fn remove_invalid_after_names(pending: &mut [PendingInitializer]) {
    let names: HashSet<String> = pending.iter().map(|entry| entry.name.clone()).collect();
    for after in pending.iter_mut().filter_map(|entry| entry.after_initializers.as_mut()) {
        let mut seen = HashSet::new();
        after.retain(|name| names.get(name).is_some_and(|name| seen.insert(name)));
    }
}

fn pending_initializer_to_json(entry: PendingInitializer) -> Value {
    let mut tree = Tree::new();
    tree.insert("name".to_owned(), entry.name.into());
    if let Some(after) = entry.after_initializers {
        tree.insert("after".to_owned(), after.into());
    }
    Value::Object(tree)
}

fn to_bad_value(tree: &Tree) -> BadValue {
    BadValue::Json(Value::Object(tree.clone()).to_string())
}
