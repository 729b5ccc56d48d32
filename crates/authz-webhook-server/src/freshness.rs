//! How fresh the cached objects of the cluster are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster_resource::ClusterResource;

/// The times of the last proofs of all caches. Without a cluster there are none, and the policy is always fresh.
///
/// INVARIANT: a proof is recorded only after the snapshot that it is about was published. A reader that checks freshness first
/// and loads the snapshot second therefore never decides from objects that are older than the proof.
#[derive(Debug)]
pub(crate) struct Freshness {
    begun_at: Instant,
    proof_age_max: Duration,
    caches: Vec<CacheProof>,
}

/// The last proof of one cache.
#[derive(Debug)]
struct CacheProof {
    resource: ClusterResource,
    /// Milliseconds from the start to the last proof, plus one; 0 before the first list.
    proven_ms: AtomicU64,
}

/// The reason why the webhook does not decide now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotFresh {
    /// A cache has not been filled since the start.
    #[error("the cache of {} has not synced yet", .0.plural())]
    NotSynced(ClusterResource),
    /// Nothing proves that a cache is current.
    #[error(
        "the cache of {} may be old: the last proof that it is current is {} s old, and {} s are allowed",
        .resource.plural(), .proof_age.as_secs(), .proof_age_max.as_secs()
    )]
    Stale {
        /// The resource whose cache may be old.
        resource: ClusterResource,
        /// The age of the last proof.
        proof_age: Duration,
        /// The age at which the webhook stops to decide.
        proof_age_max: Duration,
    },
}

impl Freshness {
    /// The freshness of these caches, none of which is filled yet.
    pub(crate) fn new(resources: &[ClusterResource], proof_age_max: Duration) -> Self {
        let caches = resources
            .iter()
            .map(|resource| CacheProof { resource: *resource, proven_ms: AtomicU64::new(0) });
        Self { begun_at: Instant::now(), proof_age_max, caches: caches.collect() }
    }

    /// Records that a cache contains every change before this time.
    pub(crate) fn record_proof(&self, resource: ClusterResource, proven_at: Instant) {
        let millis = proven_at.saturating_duration_since(self.begun_at).as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX).saturating_add(1);
        if let Some(cache) = self.caches.iter().find(|cache| cache.resource == resource) {
            cache.proven_ms.fetch_max(millis, Ordering::Release);
        }
    }

    /// Checks that every cache is filled, and that the last proof of each is young enough.
    ///
    /// # Errors
    /// The first cache that is not.
    pub(crate) fn check(&self, now: Instant) -> Result<(), NotFresh> {
        let proof_age_max = self.proof_age_max;
        for (resource, proof_age) in self.proof_ages(now) {
            match proof_age {
                None => return Err(NotFresh::NotSynced(resource)),
                Some(proof_age) if proof_age > proof_age_max => {
                    return Err(NotFresh::Stale { resource, proof_age, proof_age_max });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The age of the last proof of each cache; `None` before the first list.
    pub(crate) fn proof_ages(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (ClusterResource, Option<Duration>)> {
        self.caches.iter().map(move |cache| {
            let proven_ms = cache.proven_ms.load(Ordering::Acquire).checked_sub(1);
            let age = proven_ms.map(|millis| {
                now.saturating_duration_since(self.begun_at + Duration::from_millis(millis))
            });
            (cache.resource, age)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cache_needs_a_young_proof() {
        let limit = Duration::from_secs(30);
        let resources = [ClusterResource::Roles, ClusterResource::Namespaces];
        let freshness = Freshness::new(&resources, limit);
        let begun = freshness.begun_at;
        let not_synced = Err(NotFresh::NotSynced(ClusterResource::Roles));
        assert_eq!(freshness.check(begun), not_synced);
        freshness.record_proof(ClusterResource::Namespaces, begun + limit);
        assert_eq!(freshness.check(begun), not_synced);
        freshness.record_proof(ClusterResource::Roles, begun);
        assert_eq!(freshness.check(begun + limit), Ok(()));
        let late = begun + limit + Duration::from_millis(1);
        let stale = freshness.check(late).unwrap_err();
        assert!(matches!(stale, NotFresh::Stale { resource: ClusterResource::Roles, .. }));
        // A proof of an earlier time takes nothing back.
        freshness.record_proof(ClusterResource::Roles, begun + Duration::from_secs(1));
        freshness.record_proof(ClusterResource::Roles, begun);
        assert_eq!(freshness.check(late), Ok(()));
    }

    #[test]
    fn without_a_cluster_the_policy_is_fresh() {
        let freshness = Freshness::new(&[], Duration::from_secs(30));
        assert_eq!(freshness.check(Instant::now() + Duration::from_secs(3600)), Ok(()));
    }
}
