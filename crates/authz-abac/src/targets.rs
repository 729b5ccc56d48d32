//! Everything that some policy is for, each once, and what of it covers a request.

use std::collections::HashMap;

use authz::{Resource, Target as Wanted};
use foldhash::fast::RandomState;

use crate::policy::{ANY, Spec, prefix_of};
use crate::prefixes::Prefixes;
use crate::sieve::Sieve;

/// A number for each target.
pub(crate) type TargetIdx = u32;

/// A number for each value of a part of a resource.
type Symbol = u32;

/// The symbol of `*`.
const ANY_SYMBOL: Symbol = 0;

/// A resource is covered by its parts or by `*` in place of each of the three.
const COVERING_MAX: usize = 8;

/// Hash maps are asked on every decision, so the hash is a fast one. It is seeded at random.
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;

/// What policies are for: a resource, a path or the beginning of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) idx: TargetIdx,
    /// Who may hold a policy for it.
    pub(crate) sieve: Sieve,
}

/// All targets of policies.
///
/// A request finds the few targets that cover it once, and whoever asks is then compared with
/// these. So the values of a request are hashed once, however many groups the user is in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Targets {
    symbols: Map<Box<str>, Symbol>,
    /// Where the rows of a namespace and a resource are. Most have few rows, which lie together in
    /// memory, so this takes fewer looks than to find all three parts at once.
    pairs: Map<[Symbol; 2], Rows>,
    /// INVARIANT: the rows of a pair are sorted by API group, so `*` is the first.
    rows: Box<[Row]>,
    /// Paths that do not end in `*`.
    paths: Map<Box<str>, Target>,
    prefixes: Prefixes,
}

#[derive(Debug, Clone, Copy)]
struct Rows {
    start: u32,
    end: u32,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    api_group: Symbol,
    target: Target,
}

/// The targets that cover a request.
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
    pub(crate) fn covering(&self, wanted: &Wanted<'_>) -> Covering<'_> {
        let none = Target { idx: 0, sieve: Sieve::Small(0) };
        let mut covering = Covering {
            targets: [none; COVERING_MAX],
            n_targets: 0,
            prefixes: &self.prefixes,
            longest: None,
        };
        match wanted {
            Wanted::Resource(resource) => self.cover_resource(resource, &mut covering),
            Wanted::Path(path) => {
                if let Some(exact) = self.paths.get(*path) {
                    covering.push(*exact);
                }
                covering.longest = self.prefixes.longest(path);
            }
        }
        covering
    }

    fn cover_resource(&self, wanted: &Resource<'_>, covering: &mut Covering<'_>) {
        let symbol = |text: &str| self.symbols.get(text).copied();
        let (namespace, resource) = (symbol(wanted.namespace), symbol(wanted.resource));
        let api_group = symbol(wanted.api_group);
        let any = Some(ANY_SYMBOL);
        for pair in [(namespace, resource), (namespace, any), (any, resource), (any, any)] {
            if let (Some(namespace), Some(resource)) = pair {
                self.cover_pair([namespace, resource], api_group, covering);
            }
        }
    }

    /// Adds the targets of a namespace and a resource, with all API groups and with the one given.
    fn cover_pair(
        &self,
        pair: [Symbol; 2],
        api_group: Option<Symbol>,
        covering: &mut Covering<'_>,
    ) {
        let Some(Rows { start, end }) = self.pairs.get(&pair) else { return };
        let rows = self.rows.get(*start as usize..*end as usize).unwrap_or_default();
        if let Some(first) = rows.first()
            && first.api_group == ANY_SYMBOL
        {
            covering.push(first.target);
        }
        if let Some(api_group) = api_group
            && api_group != ANY_SYMBOL
            && let Ok(at) = rows.binary_search_by_key(&api_group, |row| row.api_group)
            && let Some(row) = rows.get(at)
        {
            covering.push(row.target);
        }
    }
}

impl Covering<'_> {
    /// INVARIANT: a request pushes at most two targets for each of four pairs, or one path.
    fn push(&mut self, target: Target) {
        if let Some(place) = self.targets.get_mut(self.n_targets) {
            *place = target;
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

/// Targets to which those of policies are added.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    symbols: Map<Box<str>, Symbol>,
    resources: Map<[Symbol; 3], TargetIdx>,
    paths: Map<Box<str>, TargetIdx>,
    prefixes: Map<Box<str>, TargetIdx>,
    n_targets: TargetIdx,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let mut builder = Self::default();
        builder.symbol(ANY);
        builder
    }

    /// How many different targets there are.
    pub(crate) fn n_targets(&self) -> usize {
        self.n_targets as usize
    }

    /// The two targets of a policy. Each policy has both, if only because what is empty covers what
    /// is empty.
    pub(crate) fn add(&mut self, spec: &Spec) -> [TargetIdx; 2] {
        let parts =
            [&spec.namespace, &spec.resource, &spec.api_group].map(|part| self.symbol(part));
        let next = &mut self.n_targets;
        let resource = *self.resources.entry(parts).or_insert_with(|| count(next));
        let (known, text) = match prefix_of(&spec.non_resource_path) {
            Some(prefix) => (&mut self.prefixes, prefix),
            None => (&mut self.paths, spec.non_resource_path.as_str()),
        };
        let path = match known.get(text) {
            Some(path) => *path,
            None => *known.entry(text.into()).or_insert_with(|| count(next)),
        };
        [resource, path]
    }

    fn symbol(&mut self, text: &str) -> Symbol {
        if let Some(known) = self.symbols.get(text) {
            return *known;
        }
        // INVARIANT on Policies: at three texts a policy, there are fewer than a u32 can count.
        let symbol = u32::try_from(self.symbols.len()).unwrap_or(u32::MAX);
        self.symbols.insert(text.into(), symbol);
        symbol
    }

    /// The targets, with a sieve for each.
    pub(crate) fn finish(self, sieves: &[Sieve]) -> Targets {
        let target = |idx: TargetIdx| {
            let sieve = sieves.get(idx as usize).copied().unwrap_or(Sieve::Small(0));
            Target { idx, sieve }
        };
        let with_sieves = |texts: Map<Box<str>, TargetIdx>| {
            texts.into_iter().map(move |(text, idx)| (text, target(idx)))
        };
        let mut resources: Vec<([Symbol; 3], TargetIdx)> = self.resources.into_iter().collect();
        resources.sort_unstable();
        let mut pairs: Map<[Symbol; 2], Rows> = Map::default();
        // INVARIANT on Policies: there are fewer resources than a u32 can count.
        for ([namespace, resource, _], at) in resources.iter().map(|(parts, _)| parts).zip(0_u32..)
        {
            let rows = pairs.entry([*namespace, *resource]).or_insert(Rows { start: at, end: at });
            rows.end = at + 1;
        }
        pairs.shrink_to_fit();
        let row = |([_, _, api_group], idx): ([Symbol; 3], TargetIdx)| Row {
            api_group,
            target: target(idx),
        };
        Targets {
            symbols: self.symbols,
            pairs,
            rows: resources.into_iter().map(row).collect(),
            paths: with_sieves(self.paths).collect(),
            prefixes: Prefixes::new(with_sieves(self.prefixes).collect()),
        }
    }
}

/// INVARIANT on Policies: at two targets a policy, there are fewer than a u32 can count.
fn count(counter: &mut u32) -> u32 {
    let next = *counter;
    *counter += 1;
    next
}
