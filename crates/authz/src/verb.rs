//! The verb of a request.

use std::fmt;

/// The verb of a request: the API verb of a request for a resource, or the lower-case HTTP method of a request for a path.
///
/// Policies may use verbs that no request has, such as `bind`, so any text is a verb. An HTTP method without an API verb
/// gives an empty one. Case matters.
///
/// ```
/// use authz::Verb;
///
/// assert_eq!(Verb::new("list"), Verb::LIST);
/// assert!(Verb::LIST.is_read_only() && !Verb::new("List").is_read_only());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Verb<'a>(&'a str);

impl<'a> Verb<'a> {
    /// Creates a new object.
    pub const CREATE: Self = Self("create");
    /// Deletes one object by its name.
    pub const DELETE: Self = Self("delete");
    /// Deletes all objects that a list with the same selectors returns.
    pub const DELETE_COLLECTION: Self = Self("deletecollection");
    /// Reads one object by its name. Also the method GET on a path.
    pub const GET: Self = Self("get");
    /// Lists the objects of a collection.
    pub const LIST: Self = Self("list");
    /// Changes parts of one object. Also the method PATCH on a path.
    pub const PATCH: Self = Self("patch");
    /// Replaces one object as a whole.
    pub const UPDATE: Self = Self("update");
    /// Streams the changes of the objects of a collection.
    pub const WATCH: Self = Self("watch");

    /// The verb of this text.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The text of the verb.
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Reports whether the verb only reads: `get`, `list` or `watch`. `head` on a path is not among these verbs.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::GET | Self::LIST | Self::WATCH)
    }
}

impl fmt::Display for Verb<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}
