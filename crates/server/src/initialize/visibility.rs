//! Who sees objects that are not initialized yet (admission §6.4).

use std::sync::LazyLock;

use api_object::Status;
use api_resources::Resource;
use bytes::Bytes;
use memchr::memmem::Finder;
use store::{At, Key, Revision, Store};

use crate::cluster_snapshot::ClusterSnapshot;
use crate::rest::{Call, Filter, Query};
use crate::server_state::ServerState;

/// Below the prefix there is a mark here for each resource that ever had an uninitialized object. Where
/// there is none, nothing is hidden, and nobody has to look.
pub(crate) const UNINITIALIZED_PATH: &str = "uninitialized";

static FIELD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"initializers\""));

/// Whether an object is not there for everybody, as it is stored. Most objects do not say anything about
/// initializers, which is found out without reading them.
pub(crate) fn is_hidden(stored: &[u8]) -> bool {
    // An object that can not be read may wait for somebody.
    FIELD.find(stored).is_some()
        && codec::from_stored(stored)
            .map_or(true, |tree| admission::has_pending_initializers(&tree))
}

/// Whether an object that may be stored is there for everybody.
pub(crate) fn is_shown(stored: &&Bytes) -> bool {
    !is_hidden(stored)
}

/// Whether a resource has, or once had, objects that are not initialized.
pub(super) fn has_uninitialized(cluster: &ClusterSnapshot, resource: &Resource) -> bool {
    resource
        .storage_path
        .as_ref()
        .is_some_and(|path| cluster.paths_with_uninitialized.contains(path))
}

impl Query {
    /// Whether the client asks for uninitialized objects, too.
    ///
    /// # Errors
    /// 400 if it does not say yes or no.
    pub(crate) fn includes_uninitialized(&self) -> Result<bool, Status> {
        match self.text("includeUninitialized") {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            other => Err(Status::bad_request(format!(
                "invalid includeUninitialized: {} is neither true nor false",
                go_compat::quote(other)
            ))),
        }
    }
}

impl<S: Store> Call<'_, S> {
    /// What of a list or a watch the client gets to see.
    pub(crate) fn filter(&self) -> Result<Filter, Status> {
        let filter = Filter::parse(self.resource, self.query, self.name)?;
        let includes = self.query.includes_uninitialized()?;
        Ok(match includes || !self.server.initialization.is_enabled {
            true => filter,
            false => filter.hiding_uninitialized(),
        })
    }

    /// Whether the picture is sure that nothing of the resource was hidden in a state of the store.
    pub(crate) fn hides_nothing(&self, at: Revision) -> bool {
        let cluster = self.server.snapshot_cache.snapshot();
        cluster.revision >= at && !has_uninitialized(&cluster, self.resource)
    }

    /// The same, for who can not do without an answer. The store is asked if the picture is behind.
    pub(crate) async fn surely_hides_nothing(&self, at: Revision) -> bool {
        if self.server.snapshot_cache.snapshot().revision >= at {
            return self.hides_nothing(at);
        }
        let Some(key) = self.server.uninitialized_key(self.resource) else { return false };
        let got = self.server.store.get(&key, At::Exactly(at)).await;
        got.is_ok_and(|got| got.entry.is_none())
    }
}

impl<S> ServerState<S> {
    /// The mark of a resource that has uninitialized objects.
    pub(crate) fn uninitialized_key(&self, resource: &Resource) -> Option<Key> {
        let path = resource.storage_path.as_ref()?;
        Key::new(&format!("{}/{UNINITIALIZED_PATH}/{path}", self.prefix)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uninitialized_objects_are_hidden() {
        for (stored, want) in [
            (r#"{"metadata":{"name":"a"}}"#, false),
            (r#"{"metadata":{"initializers":{"pending":[{"name":"a.b.c"}]}}}"#, true),
            (r#"{"metadata":{"initializers":{"result":{"status":"Failure"}}}}"#, true),
            (r#"{"metadata":{"initializers":{}}}"#, false),
            (r#"{"metadata":{"name":"a"},"initializers":[{"name":"a.b.c"}]}"#, false),
            (r#"{"data":{"a":"{\"initializers\": 1}"}}"#, false),
            // Nobody can say that it does not wait.
            (r#""initializers" is no JSON"#, true),
        ] {
            assert_eq!(is_hidden(stored.as_bytes()), want, "{stored}");
        }
    }

    #[test]
    fn the_parameter_is_a_truth_value() {
        for (query, want) in [
            ("", Ok(false)),
            ("includeUninitialized=", Ok(false)),
            ("includeUninitialized=true", Ok(true)),
            ("includeUninitialized=1", Ok(true)),
            ("includeUninitialized=false", Ok(false)),
            ("includeUninitialized=0", Ok(false)),
            ("includeUninitialized=yes", Err(400)),
            ("includeUninitialized=2", Err(400)),
        ] {
            let found = Query::parse(&format!("/x?{query}")).includes_uninitialized();
            assert_eq!(found.map_err(|status| status.code), want, "{query}");
        }
    }
}
