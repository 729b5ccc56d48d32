//! The facts about a namespace that decisions need.

use std::sync::Arc;

use api_object::Tree;
use serde_json::json;
use store::Revision;

use super::parse;

/// Whether something may be created in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespacePhase {
    /// Yes.
    Active,
    /// Not any more.
    Terminating,
    /// Not yet: the namespace waits for its initializers and counts as absent.
    Uninitialized,
}

/// The facts about a namespace.
#[derive(Debug, Clone)]
pub struct Namespace {
    /// Its uid: another namespace of that name has other objects.
    pub uid: String,
    /// The revision that wrote it.
    pub mod_rev: Revision,
    /// Whether something may be created in it.
    pub phase: NamespacePhase,
    /// Its name and labels, as in the object.
    pub labelled: Arc<Tree>,
}

impl Namespace {
    /// Reads a stored namespace.
    ///
    /// # Errors
    /// It can not be read.
    pub(crate) fn read(value: &[u8], mod_rev: Revision) -> Result<Self, String> {
        let stored = parse(value)?;
        let metadata = &stored["metadata"];
        let is_terminating =
            stored["status"]["phase"] == "Terminating" || metadata["deletionTimestamp"].is_string();
        let phase = match stored.as_object().is_some_and(admission::has_pending_initializers) {
            _ if is_terminating => NamespacePhase::Terminating,
            true => NamespacePhase::Uninitialized,
            false => NamespacePhase::Active,
        };
        let labelled =
            json!({"metadata": {"name": metadata["name"], "labels": metadata["labels"]}});
        let labelled = Arc::new(labelled.as_object().cloned().unwrap_or_default());
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        Ok(Self { uid, mod_rev, phase, labelled })
    }
}
