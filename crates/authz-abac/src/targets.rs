//! Everything that some policy is for, each once, and what of it covers a request.

use std::collections::HashMap;

use authz::{Resource, Target as Wanted};
use foldhash::fast::RandomState;

use crate::hashes::{Hashes, Parts};
use crate::policy::{ANY, Spec, prefix_of};
use crate::prefixes::Prefixes;
use crate::sieve::Sieve;
use crate::table::Table;

/// A resource is covered by its parts or by `*` in place of each of the three.
const COVERING_MAX: usize = 8;

/// Maps are for making the index only.
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;

/// What policies are for: a resource, a path or the beginning of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) hash: u64,
    /// Who may hold a policy for it.
    pub(crate) sieve: Sieve,
}

/// All targets of policies.
///
/// A request finds the few targets that cover it once, and whoever asks is then compared with
/// these. So the values of a request are hashed once, however many groups the user is in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Targets {
    resources: Table<Sieve>,
    /// Bit N is set if some resource has `*` exactly in the parts that are bits of N.
    combinations: u8,
    /// The hashes of `*`.
    any: Parts,
    /// Paths that do not end in `*`.
    paths: Table<Sieve>,
    prefixes: Prefixes,
}

/// The targets that may cover a request: all that do, and others if hashes are equal by accident.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Covering<'t> {
    targets: [Target; COVERING_MAX],
    n_targets: usize,
    prefixes: &'t Prefixes,
    /// The place of the longest prefix, which stands for all prefixes that cover a path.
    longest: Option<u32>,
}

impl Targets {
    /// The targets that cover what is asked for.
    pub(crate) fn covering(&self, hashes: &Hashes, wanted: &Wanted<'_>) -> Covering<'_> {
        let none = Target { hash: 0, sieve: Sieve::Small(0) };
        let mut covering = Covering {
            targets: [none; COVERING_MAX],
            n_targets: 0,
            prefixes: &self.prefixes,
            longest: None,
        };
        match wanted {
            Wanted::Resource(resource) => self.cover_resource(hashes, resource, &mut covering),
            Wanted::Path(path) => {
                let hash = hashes.path(path);
                covering.push(hash, self.paths.get(hash));
                covering.longest = self.prefixes.longest(path);
            }
        }
        covering
    }

    /// Looks for the values of the request and for `*` in their place, but only in combinations
    /// that some policy has. None of these waits for another.
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
                covering.push(parts.whole(), self.resources.get(parts.whole()));
            }
        }
    }
}

/// The bits of combinations.
const NAMESPACE: u8 = 1;
const RESOURCE: u8 = 2;
const API_GROUP: u8 = 4;

impl Covering<'_> {
    /// INVARIANT: a request pushes at most one target for each of eight combinations, or one path.
    fn push(&mut self, hash: u64, sieve: Option<&Sieve>) {
        if let Some(sieve) = sieve
            && let Some(place) = self.targets.get_mut(self.n_targets)
        {
            *place = Target { hash, sieve: *sieve };
            self.n_targets += 1;
        }
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(Target)) {
        for target in self.targets.iter().take(self.n_targets) {
            visit(*target);
        }
        for target in self.prefixes.and_above(self.longest) {
            visit(target);
        }
    }
}

/// Targets to which those of policies are added. They are numbered, so that sieves can be made for
/// them when all are known.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    resources: Map<u64, u32>,
    combinations: u8,
    paths: Map<u64, u32>,
    prefixes: Map<Box<str>, u32>,
    n_targets: u32,
}

/// The number of a target, and its hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    pub(crate) hash: u64,
}

impl Builder {
    /// How many different targets there are.
    pub(crate) fn n_targets(&self) -> usize {
        self.n_targets as usize
    }

    /// The two targets of a policy. Each policy has both, if only because what is empty covers what
    /// is empty.
    pub(crate) fn add(&mut self, hashes: &Hashes, spec: &Spec) -> [Numbered; 2] {
        [self.add_resource(hashes, spec), self.add_path(hashes, &spec.non_resource_path)]
    }

    fn add_resource(&mut self, hashes: &Hashes, spec: &Spec) -> Numbered {
        let bit = |part: &str, bit: u8| if part == ANY { bit } else { 0 };
        let combination = bit(&spec.namespace, NAMESPACE)
            | bit(&spec.resource, RESOURCE)
            | bit(&spec.api_group, API_GROUP);
        self.combinations |= 1 << combination;
        let hash = hashes.parts(&spec.namespace, &spec.resource, &spec.api_group).whole();
        let number = *self.resources.entry(hash).or_insert_with(|| count(&mut self.n_targets));
        Numbered { number, hash }
    }

    fn add_path(&mut self, hashes: &Hashes, path: &str) -> Numbered {
        let next = &mut self.n_targets;
        match prefix_of(path) {
            Some(prefix) => {
                let number = match self.prefixes.get(prefix) {
                    Some(known) => *known,
                    None => *self.prefixes.entry(prefix.into()).or_insert_with(|| count(next)),
                };
                Numbered { number, hash: hashes.prefix(prefix) }
            }
            None => {
                let hash = hashes.path(path);
                Numbered { number: *self.paths.entry(hash).or_insert_with(|| count(next)), hash }
            }
        }
    }

    /// The targets with their sieves, in the order of their numbers.
    pub(crate) fn finish(self, hashes: &Hashes, sieves: &[Sieve]) -> Targets {
        let sieve = |number: u32| sieves.get(number as usize).copied().unwrap_or(Sieve::Small(0));
        let table = |numbers: Map<u64, u32>| {
            Table::new(numbers.into_iter().map(|(hash, number)| (hash, sieve(number))))
        };
        let prefix = |(text, number): (Box<str>, u32)| {
            let target = Target { hash: hashes.prefix(&text), sieve: sieve(number) };
            (text, target)
        };
        Targets {
            resources: table(self.resources),
            combinations: self.combinations,
            any: hashes.parts(ANY, ANY, ANY),
            paths: table(self.paths),
            prefixes: Prefixes::new(self.prefixes.into_iter().map(prefix).collect()),
        }
    }
}

/// INVARIANT on Policies: at two targets a policy, there are fewer than a u32 can count.
fn count(counter: &mut u32) -> u32 {
    let next = *counter;
    *counter += 1;
    next
}
