//! What policies are for, and what of it covers a request.

use std::collections::HashSet;

use authz::{Resource, Target as Wanted};

use crate::hashes::{Hashes, Parts};
use crate::policy::{ANY, Spec, prefix_of};
use crate::prefixes::Prefixes;

/// The most targets that are made out together. A resource is covered by its parts or by `*` in
/// place of each of the three.
const COVERING_MAX: usize = 8;

/// The targets of all policies: resources, paths and beginnings of paths.
///
/// A request makes out the few targets that may cover it once, and whoever asks is then compared
/// with these. So the values of a request are hashed once, however many groups the user is in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Targets {
    /// Bit N is set if some resource has `*` exactly in the parts that are bits of N.
    combinations: u8,
    /// The hashes of `*`.
    any: Parts,
    prefixes: Prefixes,
}

/// The hashes of targets that cover a request if some policy is for them: at most eight at a time.
#[derive(Debug, Clone)]
pub(crate) struct Covering<'t> {
    hashes: [u64; COVERING_MAX],
    n_hashes: usize,
    prefixes: &'t Prefixes,
    /// The place of the longest prefix that is yet to come, if the request is for a path.
    next: Option<u32>,
}

impl Targets {
    /// The targets that cover what is asked for.
    pub(crate) fn covering(&self, hashes: &Hashes, wanted: &Wanted<'_>) -> Covering<'_> {
        let prefixes = &self.prefixes;
        let mut covering =
            Covering { hashes: [0; COVERING_MAX], n_hashes: 0, prefixes, next: None };
        match wanted {
            Wanted::Resource(resource) => self.cover_resource(hashes, resource, &mut covering),
            Wanted::Path(path) => {
                covering.push(hashes.path(path));
                covering.next = prefixes.longest(path);
                covering.fill();
            }
        }
        covering
    }

    /// The values of the request and `*` in their place, but only in combinations that some policy
    /// has. Those with `*` as namespace come last, since they are more often held by many.
    fn cover_resource(&self, hashes: &Hashes, wanted: &Resource<'_>, covering: &mut Covering<'_>) {
        let own = hashes.parts(wanted.namespace, wanted.resource, wanted.api_group);
        for combination in 0..8_u8 {
            if self.combinations & (1 << combination) != 0 {
                let part = |bit: u8, own, any| if combination & bit == 0 { own } else { any };
                let parts = Parts {
                    namespace: part(NAMESPACE, own.namespace, self.any.namespace),
                    resource: part(RESOURCE, own.resource, self.any.resource),
                    api_group: part(API_GROUP, own.api_group, self.any.api_group),
                };
                covering.push(parts.whole());
            }
        }
    }
}

/// The bits of combinations.
const API_GROUP: u8 = 1;
const RESOURCE: u8 = 2;
const NAMESPACE: u8 = 4;

impl Covering<'_> {
    /// The hashes of these targets.
    pub(crate) fn hashes(&self) -> &[u64] {
        self.hashes.get(..self.n_hashes).unwrap_or_default()
    }

    /// Goes on to the targets after these; `false` if there are none. Only paths that are covered by
    /// many nested prefixes have any.
    pub(crate) fn advance(&mut self) -> bool {
        self.n_hashes = 0;
        self.fill();
        self.n_hashes > 0
    }

    /// Adds prefixes, longest first, until there is no room.
    fn fill(&mut self) {
        while self.n_hashes < COVERING_MAX
            && let Some((hash, parent)) = self.prefixes.target(self.next)
        {
            self.push(hash);
            self.next = parent;
        }
    }

    /// INVARIANT: there is room, for a resource has one hash for each of eight combinations.
    fn push(&mut self, hash: u64) {
        if let Some(place) = self.hashes.get_mut(self.n_hashes) {
            *place = hash;
            self.n_hashes += 1;
        }
    }
}

/// Targets to which those of policies are added.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    combinations: u8,
    prefixes: HashSet<Box<str>>,
}

impl Builder {
    /// The hashes of the two targets of a policy. Each policy has both, if only because what is empty covers what
    /// is empty.
    pub(crate) fn add(&mut self, hashes: &Hashes, spec: &Spec) -> [u64; 2] {
        [self.add_resource(hashes, spec), self.add_path(hashes, &spec.non_resource_path)]
    }

    fn add_resource(&mut self, hashes: &Hashes, spec: &Spec) -> u64 {
        let bit = |part: &str, bit: u8| if part == ANY { bit } else { 0 };
        let combination = bit(&spec.namespace, NAMESPACE)
            | bit(&spec.resource, RESOURCE)
            | bit(&spec.api_group, API_GROUP);
        self.combinations |= 1 << combination;
        hashes.parts(&spec.namespace, &spec.resource, &spec.api_group).whole()
    }

    fn add_path(&mut self, hashes: &Hashes, path: &str) -> u64 {
        match prefix_of(path) {
            Some(prefix) => {
                if !self.prefixes.contains(prefix) {
                    self.prefixes.insert(prefix.into());
                }
                hashes.prefix(prefix)
            }
            None => hashes.path(path),
        }
    }

    pub(crate) fn finish(self, hashes: &Hashes) -> Targets {
        let prefix = |text: Box<str>| {
            let hash = hashes.prefix(&text);
            (text, hash)
        };
        Targets {
            combinations: self.combinations,
            any: hashes.parts(ANY, ANY, ANY),
            prefixes: Prefixes::new(self.prefixes.into_iter().map(prefix).collect()),
        }
    }
}
