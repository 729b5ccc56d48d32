//! Caches the decoded objects that the tokens of service accounts refer to.
//!
//! Each request of a service account reads its account, and the pod, node or secret of its token, from the store. Decoding
//! them takes longer than the rest of the authentication, so the decoded form of a version is kept.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use api_object::Tree;
use authn::{ObjectLookupError, ReferencedKind};
use store::{At, Entry, Key, Revision};

use crate::initializers::is_stored_uninitialized;
use crate::server_state::ServerState;

/// The number of cached objects.
const OBJECTS_MAX: usize = 256;

/// Larger objects are decoded each time. A decoded object takes several times as much memory as a stored one.
const OBJECT_BYTES_MAX: usize = 4 << 10;

/// A cache of decoded objects. The key of an object selects its slot; an object that was evicted is decoded again.
pub(crate) struct TokenObjectCache {
    hasher: RandomState,
    cache_slots: Box<[Mutex<Option<CachedTokenObject>>]>,
}

struct CachedTokenObject {
    key: Key,
    revision: Revision,
    object_tree: Arc<Tree>,
}

impl Default for TokenObjectCache {
    fn default() -> Self {
        let slots = (0..OBJECTS_MAX).map(|_| Mutex::default()).collect();
        Self { hasher: RandomState::new(), cache_slots: slots }
    }
}

impl TokenObjectCache {
    /// The decoded form of a stored object; `None` if it is uninitialized, because no client may rely on it yet.
    fn get_or_decode_token_object(
        &self,
        key: &Key,
        entry: &Entry,
    ) -> Result<Option<Arc<Tree>>, ObjectLookupError> {
        let hash = usize::try_from(self.hasher.hash_one(key.as_str())).unwrap_or_default();
        let slot = self.cache_slots.get(hash % OBJECTS_MAX);
        let slot = slot.filter(|_| entry.value.len() <= OBJECT_BYTES_MAX);
        if let Some(slot) = slot
            && let Some(known) = slot.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            && known.revision == entry.mod_rev
            && known.key == *key
        {
            return Ok(Some(Arc::clone(&known.object_tree)));
        }
        if is_stored_uninitialized(&entry.value) {
            return Ok(None);
        }
        let tree = codec::decode_stored_object(&entry.value);
        let tree = Arc::new(tree.map_err(|error| ObjectLookupError(error.to_string()))?);
        if let Some(slot) = slot {
            let (key, revision, tree) = (key.clone(), entry.mod_rev, Arc::clone(&tree));
            let decoded = CachedTokenObject { key, revision, object_tree: tree };
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(decoded);
        }
        Ok(Some(tree))
    }
}

impl fmt::Debug for TokenObjectCache {
    /// The output omits the objects, because they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenObjectCache").finish_non_exhaustive()
    }
}

/// Finds the objects that tokens refer to, as the store has them now.
impl authn::ObjectLookup for ServerState {
    async fn lookup_object(
        &self,
        kind: ReferencedKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Tree>>, ObjectLookupError> {
        let cluster = self.snapshot_cache.snapshot();
        let Some(resource) = cluster.resource_registry.resource("", "v1", kind.resource()) else {
            return Ok(None);
        };
        let namespace = resource.is_namespaced().then_some(namespace);
        let key = api_resources::object_key(&self.store_key_prefix, resource, namespace, name);
        let Some(key) = key.and_then(|key| Key::new(&key).ok()) else { return Ok(None) };
        let got = self.store.get(&key, At::Newest).await;
        let got = got.map_err(|error| ObjectLookupError(error.to_string()))?;
        got.entry.map_or(Ok(None), |entry| {
            self.token_object_cache.get_or_decode_token_object(&key, &entry)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(uid: &str, revision: u64, padding: usize) -> Entry {
        let tree = json!({"metadata": {"uid": uid}, "x": "x".repeat(padding)});
        let value = codec::encode_stored_object(tree.as_object().unwrap());
        let revision = Revision::new(revision);
        Entry { value: value.into(), create_rev: revision, mod_rev: revision }
    }

    /// The objects of one user neither replace nor change what is found for another one, however many there are.
    #[test]
    fn each_key_and_version_has_its_own_object() {
        let objects = TokenObjectCache::default();
        let uid = |key: &str, entry: &Entry| {
            let found = objects
                .get_or_decode_token_object(&Key::new(key).unwrap(), entry)
                .unwrap()
                .unwrap();
            api_object::uid(&found).to_owned()
        };
        for round in 0..2 {
            for number in 0..3 * OBJECTS_MAX {
                let (key, own) =
                    (format!("/registry/serviceaccounts/a/{number}"), number.to_string());
                assert_eq!(uid(&key, &entry(&own, 7, 0)), own, "round {round}");
            }
        }
        let key = "/registry/serviceaccounts/b/x";
        assert_eq!(uid(key, &entry("old", 1, 0)), "old");
        assert_eq!(uid(key, &entry("new", 2, 0)), "new");
        assert_eq!(uid(key, &entry("old", 1, 0)), "old");
    }

    #[test]
    fn large_and_uninitialized_objects_are_not_kept() {
        let objects = TokenObjectCache::default();
        let key = Key::new("/registry/serviceaccounts/a/b").unwrap();
        let large = entry("large", 1, OBJECT_BYTES_MAX);
        assert!(objects.get_or_decode_token_object(&key, &large).unwrap().is_some());
        let pending = json!({"metadata": {"initializers": {"pending": [{"name": "a.b.c"}]}}});
        let value = codec::encode_stored_object(pending.as_object().unwrap());
        let pending = Entry { value: value.into(), ..entry("", 1, 0) };
        assert_eq!(objects.get_or_decode_token_object(&key, &pending), Ok(None));
        let is_empty = |slot: &Mutex<Option<CachedTokenObject>>| slot.lock().unwrap().is_none();
        assert!(objects.cache_slots.iter().all(is_empty));
    }
}
