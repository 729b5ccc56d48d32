//! The namespace of a request or of an object.

/// The namespace of a request or of an object, or the cluster scope for one that has no namespace.
///
/// The API writes the cluster scope as an empty text. Only [`Namespace::new`] reads that text and only
/// [`Namespace::as_str`] writes it. All other code asks for the [name](Namespace::name), so it cannot take the cluster
/// scope for a namespace.
///
/// ```
/// use authz::Namespace;
///
/// assert_eq!(Namespace::new("web").name(), Some("web"));
/// assert_eq!(Namespace::new(""), Namespace::CLUSTER_SCOPE);
/// assert_eq!(Namespace::CLUSTER_SCOPE.name(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Namespace<'a>(&'a str);

impl<'a> Namespace<'a> {
    /// The scope of objects without a namespace, and of requests across all namespaces.
    pub const CLUSTER_SCOPE: Self = Self("");

    /// Reads the text of the API: a name, or an empty text for the cluster scope.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The text of the API: the name, or an empty text for the cluster scope.
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// The name; `None` for the cluster scope.
    pub const fn name(self) -> Option<&'a str> {
        if self.is_cluster_scope() { None } else { Some(self.0) }
    }

    /// Reports whether this is the cluster scope.
    pub const fn is_cluster_scope(self) -> bool {
        self.0.is_empty()
    }
}

/// `None` becomes the cluster scope.
impl<'a> From<Option<&'a str>> for Namespace<'a> {
    fn from(name: Option<&'a str>) -> Self {
        name.map_or(Self::CLUSTER_SCOPE, Self::new)
    }
}
