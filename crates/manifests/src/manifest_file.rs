//! Manifest files: objects as users store them and `kubectl get` prints them.
//!
//! A file is YAML, with one object per document, or JSON, with one object after the other; a list
//! represents its items. The reader returns the objects that an authorizer uses: roles and
//! bindings, and objects that relate other objects to nodes. It counts all others. It reads roles
//! and bindings strictly, since a misspelled field would change a grant, and all other objects
//! leniently. A caller can ask for objects of further kinds; the reader keeps them as JSON with the span of
//! every value.

mod duplicate_keys;
mod duplicate_objects;
mod lint;
mod list_schema;
mod locate_field;
mod manifest_reader;
mod object_class;
mod object_to_json;
mod rbac_hint;
#[cfg(test)]
mod tests;
mod unstructured_object;

use std::sync::Arc;

use authz_node as node;
use document::{Diagnostic, SourcePosition, Warning};

use crate::rbac;

pub use duplicate_objects::{
    DuplicateObjects, find_duplicate_objects, find_duplicate_unstructured_objects,
};
pub use lint::lint_role_references;
pub use manifest_reader::{ManifestReadOptions, read, read_manifests_with_options};
pub use unstructured_object::{KindHandler, KindHandling, UnstructuredObject};

/// The largest file that is read, in bytes: room for a dump of several hundred thousand objects.
pub const MANIFEST_BYTES_MAX: usize = 256 << 20;

/// The maximum number of values in one YAML document after its aliases are expanded: room for a list of about fifty
/// thousand objects. JSON has no such limit for a file, only that of [`NODES_MAX`](document::NODES_MAX) for each
/// object, since its lists are read item by item.
pub const YAML_NODES_MAX: usize = 2_000_000;

/// The maximum number of errors of a file that are reported.
pub const ERRORS_MAX: usize = 10_000;

/// The maximum number of warnings of a file, or of all files together; later ones are counted.
pub const WARNINGS_MAX: usize = 10_000;

/// The content of a manifest file.
///
/// A caller must use the objects only if there are no errors, so that no file takes effect in part.
#[derive(Debug, Default)]
pub struct Manifests {
    /// The objects that an authorizer uses, in the order of the file.
    pub authorizer_objects: Vec<ManifestObject>,
    /// The objects that the reader kept as JSON for the caller, in the order of the file.
    pub unstructured_objects: Vec<UnstructuredObject>,
    /// The number of objects that no authorizer uses.
    pub n_unused_objects: usize,
    /// Whether the file is well-formed and no document of it is an object: it is empty, or something else than a
    /// manifest, such as the values of a Helm chart.
    pub has_no_objects: bool,
    /// Every fault, in the order of the file: at most [`ERRORS_MAX`], and one that reports that
    /// there are more.
    pub errors: Vec<Diagnostic>,
    /// Warnings about likely mistakes in single objects. At most [`WARNINGS_MAX`].
    pub warnings: Vec<Warning>,
    /// The number of warnings beyond the limit.
    pub n_warnings_dropped: usize,
}

/// An object with its file and position.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestObject {
    /// The object after decoding and validation.
    pub authorizer_object: AuthorizerObject,
    /// The name of the file, as in [`Source::name`](document::Source::name).
    pub file_name: Arc<str>,
    /// The position of the object in the file.
    pub position: SourcePosition,
    /// Path and position of the role's name in a binding.
    role_name_location: Option<RoleNameLocation>,
}

/// A field that names another object.
#[derive(Debug, Clone, PartialEq)]
struct RoleNameLocation {
    field: String,
    position: SourcePosition,
}

/// An object that an authorizer uses.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthorizerObject {
    /// A role or a binding.
    Rbac(rbac::RbacObject),
    /// An object that relates other objects to a node.
    Node(node::GraphObject),
}

impl AuthorizerObject {
    /// Kubernetes' name of the kind.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Rbac(object) => object.kind().name(),
            Self::Node(node::GraphObject::Pod(_)) => "Pod",
            Self::Node(node::GraphObject::PersistentVolume(_)) => "PersistentVolume",
            Self::Node(node::GraphObject::VolumeAttachment(_)) => "VolumeAttachment",
            Self::Node(node::GraphObject::ResourceSlice(_)) => "ResourceSlice",
            Self::Node(node::GraphObject::PodCertificateRequest(_)) => "PodCertificateRequest",
        }
    }

    /// The namespace; empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Rbac(object) => &object.metadata().namespace,
            Self::Node(node::GraphObject::Pod(pod)) => &pod.namespace,
            Self::Node(node::GraphObject::PersistentVolume(_)) => "",
            Self::Node(
                node::GraphObject::VolumeAttachment(object)
                | node::GraphObject::ResourceSlice(object)
                | node::GraphObject::PodCertificateRequest(object),
            ) => &object.namespace,
        }
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        match self {
            Self::Rbac(object) => &object.metadata().name,
            Self::Node(node::GraphObject::Pod(pod)) => &pod.name,
            Self::Node(node::GraphObject::PersistentVolume(volume)) => &volume.name,
            Self::Node(
                node::GraphObject::VolumeAttachment(object)
                | node::GraphObject::ResourceSlice(object)
                | node::GraphObject::PodCertificateRequest(object),
            ) => &object.name,
        }
    }
}
