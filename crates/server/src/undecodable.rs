//! Stored objects that can not be decoded.
//!
//! This server stores sound objects only. Other objects come from another program, another version or a
//! damaged disk. Such an object is listed and watched as a placeholder, which has the object's name, the
//! metadata that can still be read, and the annotation [`UNDECODABLE`]; it can be deleted; every other
//! request for it answers 500.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use api_object::{Cause, Status, Tree};
use api_resources::Resource;
use serde_json::{Value, json};
use store::{Entry, Key};

use crate::cluster_snapshot::{ClusterSnapshot, TRACKED_PATHS};

/// The annotation of a placeholder; it says why the object can not be decoded.
pub(crate) const UNDECODABLE: &str = "portcullis.io/undecodable";

/// The reason in the cause of a failure to decode a stored object.
const CAUSE: &str = "UndecodableObject";

/// How many versions of objects are remembered as sound: 8 bytes each.
const VERSIONS_MAX: usize = 1 << 18;

/// How many objects a warning names.
const NAMED_MAX: usize = 10;

/// Remembers which versions of objects are sound, so that a version is checked once and not for every list
/// and watch. A version that was forgotten is checked again.
pub(crate) struct DecodableVersions {
    /// Of the keys in the store, without a slash at the end.
    prefix: String,
    hasher: RandomState,
    /// The hash of a key and a revision, at a place that the hash says.
    hashes: Box<[AtomicU64]>,
}

/// An object as lists and watches show it.
pub(crate) struct ListedEntry {
    /// As it is stored, or the placeholder for that.
    pub(crate) entry: Entry,
    pub(crate) is_placeholder: bool,
}

impl DecodableVersions {
    /// Nothing was checked yet.
    pub(crate) fn new(prefix: &str) -> Self {
        let hashes = (0..VERSIONS_MAX).map(|_| AtomicU64::new(0)).collect();
        Self { prefix: prefix.to_owned(), hasher: RandomState::new(), hashes }
    }

    /// A stored object as lists and watches show it.
    pub(crate) fn sight(&self, resource: &Resource, key: &Key, entry: Entry) -> ListedEntry {
        if self.is_sound(key, &entry) {
            return ListedEntry { entry, is_placeholder: false };
        }
        let why = match codec::from_stored(&entry.value) {
            Err(error) => error.to_string(),
            Ok(_) => codec::MalformedObject.to_string(),
        };
        let names = api_resources::names(&self.prefix, resource, key.as_str());
        let (namespace, name) = names.unwrap_or_default();
        let tree = placeholder(resource, namespace, name, &entry.value, &why);
        let entry = Entry { value: codec::to_stored(&tree).into(), ..entry };
        ListedEntry { entry, is_placeholder: true }
    }

    fn is_sound(&self, key: &Key, entry: &Entry) -> bool {
        // No version has the hash 0, which is that of an empty place.
        let hash = self.hasher.hash_one((key.as_str(), entry.mod_rev.number())) | 1;
        let place = usize::try_from(hash >> 1).unwrap_or_default() % VERSIONS_MAX;
        let Some(known) = self.hashes.get(place) else { return false };
        if known.load(Ordering::Relaxed) == hash {
            return true;
        }
        let is_sound = codec::check_stored(&entry.value).is_ok();
        if is_sound {
            known.store(hash, Ordering::Relaxed);
        }
        is_sound
    }
}

impl fmt::Debug for DecodableVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodableVersions").finish_non_exhaustive()
    }
}

/// An object that stands for one that can not be decoded: its name, and what can be read of its metadata.
pub(crate) fn placeholder(
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
    api_object::object_mut(metadata, "annotations").insert(UNDECODABLE.to_owned(), why.into());
    tree
}

/// The placeholder that is deleted in the place of an object that can not be decoded. Nobody can finalize such an object, so
/// the finalizers of its metadata do not count; but a namespace is emptied before it goes.
pub(crate) fn to_delete(
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
    stored: &[u8],
    why: &str,
) -> Tree {
    let mut tree = placeholder(resource, namespace, name, stored, why);
    api_object::metadata_mut(&mut tree).shift_remove("finalizers");
    if resource.group.is_empty() && resource.kind == "Namespace" && !resource.is_custom() {
        // A placeholder has members of the right types only.
        let _ = api_resources::prepare_create(resource, &mut tree);
    }
    tree
}

/// The answer to a request for an object that can not be decoded.
pub(crate) fn failure(why: &str) -> Status {
    let why = format!("a stored object can not be decoded ({why}); it can only be deleted");
    let mut status = Status::internal(&why);
    if let Some(cause) = status.details.as_mut().and_then(|details| details.causes.first_mut()) {
        CAUSE.clone_into(&mut cause.reason);
    }
    status
}

/// Whether a request failed because its object can not be decoded.
pub(crate) fn is_failure(status: &Status) -> bool {
    let is_own = |cause: &Cause| cause.reason == CAUSE;
    status.details.as_ref().is_some_and(|details| details.causes.iter().any(is_own))
}

/// The warning to the reader of a list with placeholders in it.
pub(crate) fn warning(resource: &Resource, placeholders: &[String]) -> Option<String> {
    let n_more = placeholders.len().saturating_sub(NAMED_MAX);
    let named = placeholders.get(..placeholders.len() - n_more)?;
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    (!named.is_empty()).then(|| {
        format!(
            "these {} are stored in a form that can not be decoded, and can only be deleted: {}{more}",
            resource.group_resource(),
            named.join(", ")
        )
    })
}

/// The status of authorization, with the objects that decisions would depend on but can not be decoded.
pub(crate) fn with_undecodable(mut status: Value, cluster: &ClusterSnapshot) -> Value {
    let all = cluster.undecodable.iter();
    let objects: Vec<Value> = all.map(|(path, why)| json!({"path": path, "error": why})).collect();
    if status.is_null() {
        status = json!({});
    }
    if let Value::Object(members) = &mut status {
        members.insert("undecodableObjects".to_owned(), objects.into());
    }
    status
}

/// How many objects of each followed path can not be decoded.
pub(crate) fn counts(cluster: &ClusterSnapshot) -> impl Iterator<Item = (&'static str, usize)> {
    TRACKED_PATHS.into_iter().map(|tracked| {
        let is_own =
            |path: &&String| path.strip_prefix(tracked).is_some_and(|rest| rest.starts_with('/'));
        (tracked, cluster.undecodable.keys().filter(is_own).count())
    })
}
