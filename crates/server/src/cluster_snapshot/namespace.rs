//! The Namespaces of the snapshot.

use std::sync::Arc;

use api_object::Tree;
use serde_json::{Value, json};
use store::Revision;

use super::StoredObjectDecodeError;

/// Whether objects may be created in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespacePhase {
    /// Objects may be created in it.
    Active,
    /// The namespace is being deleted, and no object may be created in it.
    Terminating,
    /// The namespace waits for its initializers and counts as absent.
    Uninitialized,
}

/// The parts of a Namespace that admission decisions use.
#[derive(Debug, Clone)]
pub struct Namespace {
    /// The uid. An earlier namespace of the same name had another one.
    pub uid: String,
    /// The revision that wrote it.
    pub mod_rev: Revision,
    /// Whether objects may be created in it.
    pub namespace_phase: NamespacePhase,
    /// An object with the name and the labels of the namespace only.
    pub name_and_labels: Arc<Tree>,
}

impl Namespace {
    /// Decodes a stored namespace.
    pub(crate) fn from_stored_namespace(
        value: &[u8],
        mod_rev: Revision,
    ) -> Result<Self, StoredObjectDecodeError> {
        let stored = codec::decode_stored_object(value)?;
        let metadata = api_object::metadata(&stored);
        let stored_phase = stored.get("status").and_then(|status| status.get("phase"));
        let is_terminating = stored_phase.is_some_and(|phase| phase == "Terminating")
            || metadata.get("deletionTimestamp").is_some_and(Value::is_string);
        let phase = match admission::has_pending_initializers(&stored) {
            _ if is_terminating => NamespacePhase::Terminating,
            true => NamespacePhase::Uninitialized,
            false => NamespacePhase::Active,
        };
        let name_and_labels =
            json!({"metadata": {"name": metadata.get("name"), "labels": metadata.get("labels")}});
        let name_and_labels = Arc::new(name_and_labels.as_object().cloned().unwrap_or_default());
        let uid = api_object::uid(&stored).to_owned();
        Ok(Self { uid, mod_rev, namespace_phase: phase, name_and_labels })
    }
}
