//! Stored objects that cannot be decoded.
//!
//! This server stores only objects that it can decode. Other objects come from another program, another
//! version or a damaged disk. Lists and watches show such an object as a placeholder, which has the object's
//! name, the metadata that can still be read, and the annotation [`UNDECODABLE`]. The object can be deleted;
//! every other request for it returns 500. Objects whose only faults are malformed numbers or escapes are
//! listed as they are stored.

use api_object::{Status, StatusCause, Tree};
use api_resources::Resource;
use serde_json::{Value, json};

use crate::cluster_snapshot::{ClusterSnapshot, TRACKED_PATHS};

/// The annotation of a placeholder with the reason why the object cannot be decoded.
pub(crate) const UNDECODABLE: &str = "portcullis.io/undecodable";

/// The reason in the status cause of a stored object that cannot be decoded.
const CAUSE_REASON: &str = "UndecodableObject";

/// How many objects a warning names.
const NAMED_OBJECTS_MAX: usize = 10;

/// The placeholder for an object that cannot be decoded: its name, and the readable part of its metadata.
pub(crate) fn undecodable_placeholder(
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
    stored: &[u8],
    why: &str,
) -> Tree {
    let mut tree = Tree::new();
    tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
    tree.insert("kind".to_owned(), resource.kind.clone().into());
    tree.insert("metadata".to_owned(), codec::salvage_metadata(stored).unwrap_or_default().into());
    if api_object::normalize_metadata(&mut tree).is_err() {
        tree.insert("metadata".to_owned(), json!({}));
    }
    let metadata = api_object::metadata_mut(&mut tree);
    metadata.insert("name".to_owned(), name.into());
    match namespace {
        Some(namespace) => drop(metadata.insert("namespace".to_owned(), namespace.into())),
        None => drop(metadata.shift_remove("namespace")),
    }
    api_object::object_member_mut(metadata, "annotations")
        .insert(UNDECODABLE.to_owned(), why.into());
    tree
}

/// Returns the placeholder that admission sees when an undecodable object is deleted. It has no
/// finalizers in its metadata, because no controller could remove them. A namespace gets the
/// `kubernetes` finalizer, so that the server empties it first.
pub(crate) fn placeholder_for_deletion(
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
    stored: &[u8],
    why: &str,
) -> Tree {
    let mut tree = undecodable_placeholder(resource, namespace, name, stored, why);
    api_object::metadata_mut(&mut tree).shift_remove("finalizers");
    if resource.group.is_empty() && resource.kind == "Namespace" && !resource.is_custom_resource() {
        // The members of a placeholder have the right types, so this does not fail.
        let _ = api_resources::prepare_create(resource, &mut tree);
    }
    tree
}

/// The status of a request for an object that cannot be decoded.
pub(crate) fn undecodable_status(why: &str) -> Status {
    let why = format!("a stored object cannot be decoded ({why}); it can only be deleted");
    let mut status = Status::internal_error(&why);
    if let Some(cause) = status.details.as_mut().and_then(|details| details.causes.first_mut()) {
        CAUSE_REASON.clone_into(&mut cause.reason);
    }
    status
}

/// Whether a status is that of an object that cannot be decoded.
pub(crate) fn is_undecodable_status(status: &Status) -> bool {
    let is_undecodable = |cause: &StatusCause| cause.reason == CAUSE_REASON;
    status.details.as_ref().is_some_and(|details| details.causes.iter().any(is_undecodable))
}

/// The warning for a list that contains placeholders.
pub(crate) fn undecodable_objects_warning(
    resource: &Resource,
    placeholders: &[String],
) -> Option<String> {
    let n_more = placeholders.len().saturating_sub(NAMED_OBJECTS_MAX);
    let named = placeholders.get(..placeholders.len() - n_more)?;
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    (!named.is_empty()).then(|| {
        format!(
            "these {} are stored in a form that cannot be decoded, and can only be deleted: {}{more}",
            resource.group_resource(),
            named.join(", ")
        )
    })
}

/// Adds the tracked objects that cannot be decoded to the status of authorization.
pub(crate) fn add_undecodable_objects_to_status(
    mut status: Value,
    cluster: &ClusterSnapshot,
) -> Value {
    let objects = cluster.undecodable_objects.iter();
    let objects: Vec<Value> =
        objects.map(|(path, why)| json!({"path": path, "error": why})).collect();
    if status.is_null() {
        status = json!({});
    }
    if let Value::Object(members) = &mut status {
        members.insert("undecodableObjects".to_owned(), objects.into());
    }
    status
}

/// Counts the undecodable objects by storage path.
pub(crate) fn count_undecodable_by_path(
    cluster: &ClusterSnapshot,
) -> impl Iterator<Item = (&'static str, usize)> {
    TRACKED_PATHS.into_iter().map(|tracked| {
        let is_below =
            |path: &&String| path.strip_prefix(tracked).is_some_and(|rest| rest.starts_with('/'));
        (tracked, cluster.undecodable_objects.keys().filter(is_below).count())
    })
}
