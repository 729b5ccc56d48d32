//! The attributes of a request that admission decides about.

use std::fmt;

use api_object::Tree;
use authz::User;

/// The operation of a request, as rules and reviews name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The request creates an object, or a subresource such as `pods/eviction`.
    Create,
    /// The request changes an object.
    Update,
    /// The request deletes an object.
    Delete,
    /// The request opens a connection to an object, such as `pods/exec`.
    Connect,
}

impl Operation {
    /// All operations that a rule can name.
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// The name that rules and reviews use, such as `CREATE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A group, a version and a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GroupVersionKind<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version, such as `v1`.
    pub version: &'a str,
    /// The kind, such as `Pod`.
    pub kind: &'a str,
}

/// A group, a version and a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GroupVersionResource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version of the request's URL, which need not be the one that is stored.
    pub version: &'a str,
    /// The plural name of the resource in lower case.
    pub resource: &'a str,
}

/// Displays as Kubernetes prints it in messages.
impl fmt::Display for GroupVersionResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, resource } = self;
        write!(f, "{group}/{version}, Resource={resource}")
    }
}

/// Another name of the requested resource: the same stored objects under another version or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EquivalentResource<'a> {
    /// The resource that is equivalent to the requested one.
    pub resource: GroupVersionResource<'a>,
    /// The kind of that resource, or of the requested subresource of it. `None` if the server has no such kind; a request
    /// that a hook matches by this resource is then refused.
    pub kind: Option<GroupVersionKind<'a>>,
}

/// The attributes of one write or one connection, as admission sees them.
///
/// Objects are never changed in place: the patch of a hook makes a new value.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// The operation of the request.
    pub operation: Operation,
    /// The kind of the request's object. For a subresource it may differ from the kind of the resource.
    pub kind: GroupVersionKind<'a>,
    /// The resource that the URL names.
    pub resource: GroupVersionResource<'a>,
    /// The subresource; empty for the resource itself.
    pub subresource: &'a str,
    /// The name of the object. Empty before a name is generated, and for each object of a `deletecollection`.
    pub name: &'a str,
    /// The namespace. Empty for cluster-scoped resources; for a Namespace object, its own name.
    pub namespace: &'a str,
    /// The new state of the object, or the options object of a connection.
    pub object: Option<&'a Tree>,
    /// The stored state of the object.
    pub old_object: Option<&'a Tree>,
    /// The options of the operation, such as `CreateOptions`.
    pub options: Option<&'a Tree>,
    /// Whether the request is a dry run.
    pub is_dry_run: bool,
    /// The user that makes the request.
    pub user: Option<&'a User>,
    /// The equivalent resources, in the order of their registration. The requested resource may be among them.
    pub equivalent_resources: &'a [EquivalentResource<'a>],
}
