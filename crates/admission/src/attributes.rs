//! What is to be admitted.

use std::fmt;

use api_object::Tree;
use authz::User;

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object, or a subresource that is created such as `pods/eviction`.
    Create,
    /// A new state of an object.
    Update,
    /// An object goes.
    Delete,
    /// A connection to an object, such as `pods/exec`.
    Connect,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// The name in rules and reviews.
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
    /// Empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

/// A group, a version and a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GroupVersionResource<'a> {
    /// Empty for the core group.
    pub group: &'a str,
    /// The version of the request's URL, which need not be the one that is stored.
    pub version: &'a str,
    /// The plural in lower case.
    pub resource: &'a str,
}

/// As Kubernetes prints it in messages.
impl fmt::Display for GroupVersionResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, resource } = self;
        write!(f, "{group}/{version}, Resource={resource}")
    }
}

/// Another name of what a request is for: the same stored objects under another version or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equivalent<'a> {
    /// The other resource.
    pub resource: GroupVersionResource<'a>,
    /// The kind of that resource, or of the request's subresource of it. `None` if the server knows
    /// of none; then a hook that asked for this resource can not be served.
    pub kind: Option<GroupVersionKind<'a>>,
}

/// One write, or one connection, as admission sees it (admission §0.3).
///
/// Objects are snapshots that nobody changes: a hook that patches makes a new value.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// What is done.
    pub operation: Operation,
    /// The kind of the request's object, which for a subresource may be another than the
    /// resource's own.
    pub kind: GroupVersionKind<'a>,
    /// What the URL names.
    pub resource: GroupVersionResource<'a>,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// Empty while the name is not yet made, and for each object of a deleted collection.
    pub name: &'a str,
    /// Empty for resources of the whole cluster, but the own name for a Namespace.
    pub namespace: &'a str,
    /// The object to be, or what a connection was asked for with.
    pub object: Option<&'a Tree>,
    /// The object that is.
    pub old_object: Option<&'a Tree>,
    /// The options of the operation, such as `CreateOptions`.
    pub options: Option<&'a Tree>,
    /// Whether nothing will be stored.
    pub is_dry_run: bool,
    /// Who asks.
    pub user: Option<&'a User>,
    /// The other names of the resource, in the order of their registration. The resource itself may
    /// be among them.
    pub equivalents: &'a [Equivalent<'a>],
}
