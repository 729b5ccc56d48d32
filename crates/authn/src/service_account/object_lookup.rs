//! Lookup of the objects that tokens refer to.

use std::sync::Arc;

use api_object::Tree;
use jiff::Timestamp;

/// Finds objects by name. The server implements it over its store.
pub trait ObjectLookup: Sync {
    /// Finds the object of this kind and name; the namespace is empty for nodes.
    ///
    /// # Errors
    /// It is unknown whether the object exists. Then the credential is refused.
    fn lookup_object(
        &self,
        kind: ReferencedKind,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<Arc<Tree>>, ObjectLookupError>> + Send;
}

/// The kinds that tokens refer to, all of the core group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferencedKind {
    /// The account of the token.
    ServiceAccount,
    /// A pod that the token is bound to.
    Pod,
    /// A node that the token is bound to.
    Node,
    /// A secret that the token is bound to.
    Secret,
}

/// The lookup failed, so it is unknown whether the object exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("looking up an object failed: {0}")]
pub struct ObjectLookupError(pub String);

impl ReferencedKind {
    /// The plural resource name in paths.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::ServiceAccount => "serviceaccounts",
            Self::Pod => "pods",
            Self::Node => "nodes",
            Self::Secret => "secrets",
        }
    }

    /// The name of the kind in messages about a uid.
    pub(crate) const fn kind_display_name(self) -> &'static str {
        match self {
            Self::ServiceAccount => "service account",
            Self::Pod => "pod",
            Self::Node => "node",
            Self::Secret => "secret",
        }
    }
}

/// The time at which deletion of the object began, if it did. A malformed timestamp counts as long
/// ago.
pub(crate) fn deletion_time(tree: &Tree) -> Option<Timestamp> {
    let metadata = api_object::metadata(tree);
    let value = metadata.get("deletionTimestamp").filter(|value| !value.is_null())?;
    let time = value.as_str().and_then(|text| text.parse().ok());
    Some(time.unwrap_or(Timestamp::MIN))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use serde_json::{Value, json};

    use super::*;

    /// A lookup of objects that a test puts into memory.
    #[derive(Debug, Default)]
    pub(crate) struct Objects {
        known: HashMap<(ReferencedKind, String, String), Arc<Tree>>,
        pub(crate) is_broken: bool,
    }

    impl Objects {
        pub(crate) fn put(&mut self, kind: ReferencedKind, object: Value) {
            let tree = object.as_object().cloned().unwrap();
            let key =
                (kind, api_object::namespace(&tree).to_owned(), api_object::name(&tree).to_owned());
            self.known.insert(key, Arc::new(tree));
        }
    }

    impl ObjectLookup for Objects {
        async fn lookup_object(
            &self,
            kind: ReferencedKind,
            namespace: &str,
            name: &str,
        ) -> Result<Option<Arc<Tree>>, ObjectLookupError> {
            if self.is_broken {
                return Err(ObjectLookupError("the store is gone".to_owned()));
            }
            Ok(self.known.get(&(kind, namespace.to_owned(), name.to_owned())).cloned())
        }
    }

    #[test]
    fn deletion_that_can_not_be_dated_is_long_ago() {
        let at = |time: Value| {
            let object = json!({"metadata": {"deletionTimestamp": time}});
            deletion_time(object.as_object().unwrap())
        };
        assert_eq!(at(Value::Null), None);
        assert_eq!(at("1970-01-01T00:00:05Z".into()), Timestamp::from_second(5).ok());
        assert_eq!(at("yesterday".into()), Some(Timestamp::MIN));
        assert_eq!(at(1.into()), Some(Timestamp::MIN));
    }
}
