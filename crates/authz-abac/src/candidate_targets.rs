//! The targets that a policy may have in order to cover a request.
//!
//! A policy covers a resource request if it has the request's namespace, resource and API group, or `*`
//! in place of any of them: 8 targets. It covers a path if it has that path or a prefix of it. Each target
//! is known by its hash, so a request is hashed once, however many groups the user is in.

use std::collections::HashSet;
use std::hash::BuildHasher;

use authz::{Resource, Target};
use foldhash::fast::RandomState;

use crate::policy::{PolicySpec, WILDCARD, prefix_of_wildcard_path};

/// The hash of a target.
pub(crate) type TargetHash = u64;

/// A target of a policy. The hash of this is a [`TargetHash`].
#[derive(Hash)]
enum PolicyTarget<'a> {
    Resource { namespace: &'a str, resource: &'a str, api_group: &'a str },
    Path(&'a [u8]),
    PathPrefix(&'a [u8]),
}

/// The kinds of targets that policies have. Targets that no policy has are not looked up.
#[derive(Debug, Clone, Default)]
pub(crate) struct CandidateTargetFinder {
    hash_builder: RandomState,
    /// A set of wildcard combinations: bit N is set if some policy has `*` in exactly the fields of
    /// combination N. N is a sum of `ANY_API_GROUP`, `ANY_RESOURCE` and `ANY_NAMESPACE`.
    wildcard_combination_bits: u8,
    /// INVARIANT: the lengths of all path prefixes, in ascending order.
    path_prefix_lengths: Vec<usize>,
    path_prefix_hashes: HashSet<TargetHash, RandomState>,
}

/// The bits of a combination of wildcards.
const ANY_API_GROUP: u8 = 1;
const ANY_RESOURCE: u8 = 2;
const ANY_NAMESPACE: u8 = 4;

impl CandidateTargetFinder {
    /// Adds the targets of a policy and returns their hashes. Every policy has a resource and a path,
    /// because an empty part covers an empty part of a request.
    pub(crate) fn add_policy_targets(&mut self, spec: &PolicySpec) -> [TargetHash; 2] {
        let PolicySpec { namespace, resource, api_group, non_resource_path, .. } = spec;
        let bit = |part: &str, bit: u8| if part == WILDCARD { bit } else { 0 };
        let combination = bit(namespace, ANY_NAMESPACE)
            | bit(resource, ANY_RESOURCE)
            | bit(api_group, ANY_API_GROUP);
        self.wildcard_combination_bits |= 1 << combination;
        let path_hash = match prefix_of_wildcard_path(non_resource_path) {
            Some(prefix) => self.add_path_prefix(prefix.as_bytes()),
            None => self.hash(&PolicyTarget::Path(non_resource_path.as_bytes())),
        };
        [self.hash(&PolicyTarget::Resource { namespace, resource, api_group }), path_hash]
    }

    fn add_path_prefix(&mut self, prefix: &[u8]) -> TargetHash {
        let hash = self.hash(&PolicyTarget::PathPrefix(prefix));
        self.path_prefix_hashes.insert(hash);
        if let Err(idx) = self.path_prefix_lengths.binary_search(&prefix.len()) {
            self.path_prefix_lengths.insert(idx, prefix.len());
        }
        hash
    }

    /// Calls `visit` with the hash of each target that covers the request.
    #[inline]
    pub(crate) fn for_each_candidate_target(
        &self,
        target: &Target<'_>,
        visit: impl FnMut(TargetHash),
    ) {
        match target {
            Target::Resource(resource) => self.resource_target_hashes(resource).for_each(visit),
            Target::Path(path) => self.path_target_hashes(path.as_bytes()).for_each(visit),
        }
    }

    fn resource_target_hashes(&self, request: &Resource<'_>) -> impl Iterator<Item = TargetHash> {
        let exists = |combination: &u8| self.wildcard_combination_bits & (1 << combination) != 0;
        (0..8).filter(exists).map(|combination| {
            let part = |bit: u8, value| if combination & bit == 0 { value } else { WILDCARD };
            self.hash(&PolicyTarget::Resource {
                namespace: part(ANY_NAMESPACE, request.namespace.as_str()),
                resource: part(ANY_RESOURCE, request.resource),
                api_group: part(ANY_API_GROUP, request.api_group),
            })
        })
    }

    fn path_target_hashes(&self, path: &[u8]) -> impl Iterator<Item = TargetHash> {
        let prefixes = self.path_prefix_lengths.iter().map_while(|len| path.get(..*len));
        let prefixes = prefixes.map(|prefix| self.hash(&PolicyTarget::PathPrefix(prefix)));
        let existing_prefixes = prefixes.filter(|hash| self.path_prefix_hashes.contains(hash));
        std::iter::once(self.hash(&PolicyTarget::Path(path))).chain(existing_prefixes)
    }

    fn hash(&self, target: &PolicyTarget<'_>) -> TargetHash {
        self.hash_builder.hash_one(target)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::covers_path;

    fn candidates(targets: &CandidateTargetFinder, target: &Target<'_>) -> Vec<TargetHash> {
        let mut hashes = Vec::new();
        targets.for_each_candidate_target(target, |hash| hashes.push(hash));
        hashes
    }

    #[test]
    fn all_nested_prefixes_of_a_path_are_candidates() {
        let mut targets = CandidateTargetFinder::default();
        let paths = (0..40).map(|depth| "/a".repeat(depth) + "*");
        let hashes: Vec<TargetHash> = paths
            .map(|non_resource_path| {
                targets
                    .add_policy_targets(&PolicySpec { non_resource_path, ..PolicySpec::default() })
                    [1]
            })
            .collect();
        for depth in [0, 6, 7, 8, 15, 16, 39] {
            let path = "/a".repeat(depth);
            let found = candidates(&targets, &Target::Path(&path));
            assert_eq!(found[1..], hashes[..=depth]);
        }
    }

    proptest! {
        #[test]
        fn the_candidates_of_a_path_are_the_patterns_that_cover_it(
            patterns in prop::collection::btree_set("[ab/ä]{0,5}\\*?", 0..12),
            path in "[ab/ä]{0,7}",
        ) {
            let mut targets = CandidateTargetFinder::default();
            let hashes: Vec<(String, TargetHash)> = patterns
                .into_iter()
                .map(|pattern| {
                    let spec = PolicySpec { non_resource_path: pattern.clone(), ..PolicySpec::default() };
                    (pattern, targets.add_policy_targets(&spec)[1])
                })
                .collect();
            let found = candidates(&targets, &Target::Path(&path));
            for (pattern, hash) in hashes {
                prop_assert_eq!(found.contains(&hash), covers_path(&pattern, &path), "{}", pattern);
            }
        }
    }
}
