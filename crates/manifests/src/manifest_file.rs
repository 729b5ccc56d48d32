//! Manifests: files of objects, as people keep them and `kubectl get` writes them.
//!
//! A file is YAML, with one object a document, or JSON, with one object after the other; lists
//! stand for their items. Of all objects only those count that an authorizer learns from: roles and
//! bindings, and what relates other objects to nodes. Others are passed over. Roles and bindings
//! are read strictly, since a misspelled field is a grant that nobody meant; the rest is taken as a
//! server gave it. Whoever knows more kinds can have their objects whole, with the place of
//! everything in them.

mod duplicate_keys;
mod duplicates;
mod hint;
mod identity;
mod kept;
mod lint;
mod locate;
mod read;
mod shapes;
#[cfg(test)]
mod tests;
mod to_json;

use std::sync::Arc;

use authz_node as node;
use document::{Diagnostic, Place, Warning};

use crate::rbac;

pub use duplicates::{duplicates, duplicates_kept};
pub use kept::{Keep, Keeps, Kept};
pub use lint::lint;
pub use read::{read, read_keeping};

/// The largest file that is read, in bytes: room for a dump of some hundred thousand objects.
pub const MANIFEST_BYTES_MAX: usize = 256 << 20;

/// The most values in one YAML document after its aliases are expanded: room for a list of some
/// fifty thousand objects. JSON has no such limit for a file, only that of
/// [`NODES_MAX`](document::NODES_MAX) for each object, since its lists are read item by item.
pub const YAML_NODES_MAX: usize = 2_000_000;

/// The most errors of a file. Whoever has more mends the first ones first.
pub const ERRORS_MAX: usize = 10_000;

/// The most warnings of a file, or of all files together; later ones are counted.
pub const WARNINGS_MAX: usize = 10_000;

/// What a file holds.
///
/// The objects are to be used only if there are no errors, so that nothing takes effect in part.
#[derive(Debug, Default)]
pub struct Manifests {
    /// The objects that an authorizer learns from, in the order of the file.
    pub objects: Vec<Found>,
    /// The objects that the caller wanted whole, in the order of the file.
    pub kept: Vec<Kept>,
    /// How many objects were passed over.
    pub n_others: usize,
    /// Every fault, in the order of the file. There are at most [`ERRORS_MAX`] and one that says
    /// that there are more.
    pub errors: Vec<Diagnostic>,
    /// What is accepted but hardly meant, for each object by itself. At most [`WARNINGS_MAX`].
    pub warnings: Vec<Warning>,
    /// How many more warnings there would be.
    pub n_warnings_dropped: usize,
}

/// An object and where it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The object.
    pub object: Object,
    /// The file, by the name that its source has.
    pub file: Arc<str>,
    /// Where the object begins.
    pub place: Place,
    /// Where a binding names its role, and as what field.
    role_name: Option<Reference>,
}

/// A field that names another object.
#[derive(Debug, Clone, PartialEq)]
struct Reference {
    field: String,
    place: Place,
}

/// An object that an authorizer learns from.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    /// A role or a binding.
    Rbac(rbac::Object),
    /// What relates other objects to a node.
    Node(node::Object),
}

impl Object {
    /// Kubernetes' name of the kind.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Rbac(object) => object.kind().name(),
            Self::Node(node::Object::Pod(_)) => "Pod",
            Self::Node(node::Object::PersistentVolume(_)) => "PersistentVolume",
            Self::Node(node::Object::VolumeAttachment(_)) => "VolumeAttachment",
            Self::Node(node::Object::ResourceSlice(_)) => "ResourceSlice",
            Self::Node(node::Object::PodCertificateRequest(_)) => "PodCertificateRequest",
        }
    }

    /// The namespace; empty for an object of the cluster.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Rbac(object) => &object.metadata().namespace,
            Self::Node(node::Object::Pod(pod)) => &pod.namespace,
            Self::Node(node::Object::PersistentVolume(_)) => "",
            Self::Node(
                node::Object::VolumeAttachment(object)
                | node::Object::ResourceSlice(object)
                | node::Object::PodCertificateRequest(object),
            ) => &object.namespace,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self {
            Self::Rbac(object) => &object.metadata().name,
            Self::Node(node::Object::Pod(pod)) => &pod.name,
            Self::Node(node::Object::PersistentVolume(volume)) => &volume.name,
            Self::Node(
                node::Object::VolumeAttachment(object)
                | node::Object::ResourceSlice(object)
                | node::Object::PodCertificateRequest(object),
            ) => &object.name,
        }
    }
}
