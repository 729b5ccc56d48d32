//! The visibility of uninitialized objects: only clients that ask for them see them.

use std::sync::LazyLock;

use api_object::Status;
use api_resources::Resource;
use bytes::Bytes;
use memchr::memmem::Finder;
use store::{At, Key, Revision};

use crate::cluster_snapshot::ClusterSnapshot;
use crate::rest::{ObjectFilter, Query, RequestContext};
use crate::server_state::ServerState;

/// The path of the keys that mark resources which ever had an uninitialized object, below the prefix. Lists
/// of resources without such a key need not look for hidden objects.
pub(crate) const UNINITIALIZED_PATH: &str = "uninitialized";

static INITIALIZERS_FIELD: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("\"initializers\""));

/// Whether a stored object is hidden from clients that do not ask for uninitialized objects. Most objects
/// do not mention initializers, which a text search finds without decoding them.
pub(crate) fn is_stored_uninitialized(stored: &[u8]) -> bool {
    // An object that cannot be decoded may have initializers.
    INITIALIZERS_FIELD.find(stored).is_some()
        && codec::decode_stored_object(stored)
            .map_or(true, |tree| admission::has_pending_initializers(&tree))
}

/// Whether a stored object is visible to all clients.
pub(crate) fn is_stored_initialized(stored: &&Bytes) -> bool {
    !is_stored_uninitialized(stored)
}

/// Whether a resource has, or once had, uninitialized objects.
pub(super) fn ever_had_uninitialized_objects(
    cluster: &ClusterSnapshot,
    resource: &Resource,
) -> bool {
    resource
        .storage_path
        .as_ref()
        .is_some_and(|path| cluster.paths_with_uninitialized_objects.contains(path))
}

impl Query {
    /// Whether the client asks for uninitialized objects, too.
    ///
    /// # Errors
    /// 400 if the parameter is no boolean.
    pub(crate) fn includes_uninitialized(&self) -> Result<bool, Status> {
        match self.parameter_or_empty("includeUninitialized") {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            other => Err(Status::bad_request(format!(
                "invalid includeUninitialized: {} is neither true nor false",
                go_compat::quote(other)
            ))),
        }
    }
}

/// The filter of a list or a watch, which hides uninitialized objects unless the client asks for them.
pub(crate) fn uninitialized_visibility_filter(
    ctx: &RequestContext<'_>,
) -> Result<ObjectFilter, Status> {
    let filter = ObjectFilter::parse(ctx.resource, ctx.query, ctx.name)?;
    let includes = ctx.query.includes_uninitialized()?;
    Ok(match includes || !ctx.server.initializer_options.are_initializers_enabled {
        true => filter,
        false => filter.with_uninitialized_hidden(),
    })
}

/// Whether the snapshot proves that the resource had no hidden objects at a revision.
pub(crate) fn snapshot_shows_no_uninitialized_objects(
    ctx: &RequestContext<'_>,
    at: Revision,
) -> bool {
    let cluster = ctx.server.snapshot_cache.snapshot();
    cluster.revision >= at && !ever_had_uninitialized_objects(&cluster, ctx.resource)
}

/// Whether the resource had no hidden objects at a revision. It asks the store if the snapshot is behind.
pub(crate) async fn had_no_uninitialized_objects(ctx: &RequestContext<'_>, at: Revision) -> bool {
    if ctx.server.snapshot_cache.snapshot().revision >= at {
        return snapshot_shows_no_uninitialized_objects(ctx, at);
    }
    let Some(key) = ctx.server.uninitialized_resource_key(ctx.resource) else { return false };
    let got = ctx.server.store.get(&key, At::Exactly(at)).await;
    got.is_ok_and(|got| got.entry.is_none())
}

impl ServerState {
    /// The key that marks a resource which has uninitialized objects.
    pub(crate) fn uninitialized_resource_key(&self, resource: &Resource) -> Option<Key> {
        let path = resource.storage_path.as_ref()?;
        Key::new(&format!("{}/{UNINITIALIZED_PATH}/{path}", self.store_key_prefix)).ok()
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
            // An object that cannot be decoded may have initializers.
            (r#""initializers" is no JSON"#, true),
        ] {
            assert_eq!(is_stored_uninitialized(stored.as_bytes()), want, "{stored}");
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
