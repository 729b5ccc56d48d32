//! The field `metadata.initializers`.

use std::collections::HashSet;

use api_object::{ShapeError, Tree};
use field_errors::{BadValue, FieldErrors, FieldPath};
use serde_json::Value;

use crate::configuration::{Shape, TEXT_LIST, check_qualified, fit_value};
use crate::members::{object, objects, owned_texts, text};
use crate::order::{Pending, PendingList};

/// The member of metadata.
const INITIALIZERS: &str = "initializers";

const SHAPE: Shape = Shape::Object(&[
    ("pending", Shape::List(&Shape::Object(&[("name", Shape::Text), ("after", TEXT_LIST)]))),
    (
        "result",
        Shape::Object(&[
            ("kind", Shape::Text),
            ("apiVersion", Shape::Text),
            ("status", Shape::Text),
            ("message", Shape::Text),
            ("reason", Shape::Text),
            (
                "details",
                Shape::Object(&[
                    ("name", Shape::Text),
                    ("group", Shape::Text),
                    ("kind", Shape::Text),
                    ("uid", Shape::Text),
                    (
                        "causes",
                        Shape::List(&Shape::Object(&[
                            ("reason", Shape::Text),
                            ("message", Shape::Text),
                            ("field", Shape::Text),
                        ])),
                    ),
                    ("retryAfterSeconds", Shape::Int32),
                ]),
            ),
            ("code", Shape::Int32),
        ]),
    ),
]);

/// Who has yet to act on an object, and how that failed.
///
/// INVARIANT: `after` names entries of the same list only, each of them once. What others do with the
/// public fields is put right by [`write`](Self::write).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Initializers {
    /// Those who have yet to act.
    pub pending: Vec<Pending>,
    /// The Status with which one of them gave up.
    pub result: Option<Tree>,
}

impl Initializers {
    /// What an object says; empty if it is initialized. What does not have its
    /// [shape](shape_initializers) counts as absent.
    #[must_use]
    pub fn of(tree: &Tree) -> Self {
        let Some(field) = object(api_object::metadata(tree), INITIALIZERS) else {
            return Self::default();
        };
        let read = |entry: &Tree| Pending {
            name: text(entry, "name").unwrap_or_default().to_owned(),
            after: entry
                .get("after")
                .is_some_and(Value::is_array)
                .then(|| owned_texts(entry, "after")),
        };
        let mut pending: Vec<Pending> = objects(field, "pending").into_iter().map(read).collect();
        trim(&mut pending);
        Self { pending, result: object(field, "result").cloned() }
    }

    /// Whether the object is initialized.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.result.is_none()
    }

    /// Lets an object say this. An initialized object says nothing.
    pub fn write(mut self, tree: &mut Tree) {
        trim(&mut self.pending);
        let metadata = api_object::metadata_mut(tree);
        if self.is_empty() {
            metadata.shift_remove(INITIALIZERS);
            return;
        }
        let mut field = Tree::new();
        if !self.pending.is_empty() {
            let entries = self.pending.into_iter().map(written);
            field.insert("pending".to_owned(), Value::Array(entries.collect()));
        }
        if let Some(result) = self.result {
            field.insert("result".to_owned(), Value::Object(result));
        }
        metadata.insert(INITIALIZERS.to_owned(), Value::Object(field));
    }

    /// What is wrong with this in a new object.
    #[must_use]
    pub fn create_errors(&self, pending_max: usize) -> FieldErrors {
        let mut errors = FieldErrors::new();
        self.check_pending(pending_max, &mut errors);
        if self.result.is_some() {
            let at = FieldPath::root("metadata");
            let at = at.child(INITIALIZERS);
            errors.push(at.child("result").forbidden("may not be set on create"));
        }
        errors
    }

    /// What is wrong with this in the next state of an object that said `old`.
    #[must_use]
    pub fn update_errors(&self, old: &Self, pending_max: usize) -> FieldErrors {
        let mut errors = self.transition_errors(old);
        if !old.is_empty() {
            self.check_pending(pending_max, &mut errors);
        }
        errors
    }

    /// Why an object that said `old` can not say this next, whoever asks for it.
    pub(super) fn transition_errors(&self, old: &Self) -> FieldErrors {
        let metadata = FieldPath::root("metadata");
        let at = metadata.child(INITIALIZERS);
        let mut errors = FieldErrors::new();
        let null = || BadValue::Json("null".to_owned());
        match (&old.result, &self.result) {
            _ if old.is_empty() && self.is_empty() => {}
            _ if old.is_empty() => {
                let detail = "field is immutable once initialization has completed";
                errors.push(at.invalid(null(), detail));
            }
            (Some(former), result) if result.as_ref() != Some(former) => {
                let shown = result.as_ref().map_or_else(null, shown);
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

    fn check_pending(&self, pending_max: usize, errors: &mut FieldErrors) {
        let metadata = FieldPath::root("metadata");
        let at = metadata.child(INITIALIZERS);
        let at = at.child("pending");
        if self.pending.len() > pending_max {
            // The faults of so many names would say nothing more.
            errors.push(at.too_many(self.pending.len(), pending_max));
            return;
        }
        for (idx, entry) in self.pending.iter().enumerate() {
            check_qualified(&entry.name, &at.index(idx).child("name"), errors);
        }
    }
}

/// What a result must say that it is.
const FAILURE: &str = "Failure";

impl From<PendingList> for Initializers {
    fn from(list: PendingList) -> Self {
        Self { pending: list.entries, result: None }
    }
}

/// Brings the field of an object into its shape: members that are unknown or null are dropped. A field
/// that says nothing stays, for a new object has a reason to say nothing.
///
/// # Errors
/// A value is of a type that it can not have.
pub fn shape_initializers(tree: &mut Tree) -> Result<(), ShapeError> {
    let Some(metadata) = tree.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    match metadata.get_mut(INITIALIZERS) {
        None => Ok(()),
        Some(Value::Null) => {
            metadata.shift_remove(INITIALIZERS);
            Ok(())
        }
        Some(field) => fit_value(&SHAPE, field, "metadata.initializers"),
    }
}

/// Whether an object says anything about initializers, if only that there are none.
pub(super) fn is_supplied(tree: &Tree) -> bool {
    api_object::metadata(tree).get(INITIALIZERS).is_some_and(|field| !field.is_null())
}

/// Whether an object is not yet there for everybody.
#[must_use]
pub fn is_uninitialized(tree: &Tree) -> bool {
    let Some(field) = object(api_object::metadata(tree), INITIALIZERS) else { return false };
    let pending = field.get("pending").and_then(Value::as_array);
    pending.is_some_and(|pending| !pending.is_empty()) || object(field, "result").is_some()
}

/// Lets the next state of an object say what the stored one does.
pub fn carry_initializers(new: &mut Tree, old: &Tree) {
    Initializers::of(old).write(new);
}

/// The object without the first entry of this name; `None` if nobody of that name is pending.
#[must_use]
pub fn without(tree: &Tree, name: &str) -> Option<Tree> {
    let mut initializers = Initializers::of(tree);
    let idx = initializers.pending.iter().position(|entry| entry.name == name)?;
    initializers.pending.remove(idx);
    let mut next = tree.clone();
    initializers.write(&mut next);
    Some(next)
}

/// Drops what `after` says about entries that are not there, and what it says twice.
fn trim(pending: &mut [Pending]) {
    let names: HashSet<String> = pending.iter().map(|entry| entry.name.clone()).collect();
    for after in pending.iter_mut().filter_map(|entry| entry.after.as_mut()) {
        let mut seen = HashSet::new();
        after.retain(|name| names.get(name).is_some_and(|name| seen.insert(name)));
    }
}

fn written(entry: Pending) -> Value {
    let mut tree = Tree::new();
    tree.insert("name".to_owned(), entry.name.into());
    if let Some(after) = entry.after {
        tree.insert("after".to_owned(), after.into());
    }
    Value::Object(tree)
}

fn shown(tree: &Tree) -> BadValue {
    BadValue::Json(Value::Object(tree.clone()).to_string())
}
