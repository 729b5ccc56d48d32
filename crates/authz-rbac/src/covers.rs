//! Do some rules grant everything that others grant?
//!
//! A rule grants every combination of its lists. The wanted rules become grids with one bit for each
//! combination, and the owned rules come by one after the other: each marks the part of each grid that
//! it grants. So memory depends on the wanted rules alone, and one owned rule costs the lists that it
//! shares with a wanted rule and the rows of bits that it marks, never a comparison for each
//! combination.

use crate::combinations::{ROLE_COMBINATIONS_MAX, n_combinations};
use crate::grid::{Grid, Permission};
use crate::owned::Owned;
use crate::policy::PolicyRule;
use crate::rules::RulePart;

/// With at most as many grids, each owned rule is held against all of them.
const UNINDEXED_GRIDS_MAX: usize = 16;

/// Which permissions of some rules are granted by others.
#[derive(Debug)]
pub(crate) struct Coverage<'w> {
    grids: Vec<Grid<'w>>,
    /// `None` for few grids.
    index: Option<GridIndex<'w>>,
    /// For each grid, the last owned rule that was held against it.
    seen_by: Vec<u64>,
    n_owned: u64,
    n_missing: u64,
    steps_left: u64,
}

/// Why coverage was not computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unbounded {
    /// The wanted rules have more than [`ROLE_COMBINATIONS_MAX`] combinations.
    Combinations(u64),
    /// It would take more steps than the caller allows.
    Steps,
}

impl<'w> Coverage<'w> {
    /// Nothing of what is wanted is granted yet. A step is a look at one entry of a list or at one
    /// word of bits.
    pub(crate) fn new(wanted: &'w [PolicyRule], steps_max: u64) -> Result<Self, Unbounded> {
        let n_wanted = n_combinations(wanted);
        if n_wanted > ROLE_COMBINATIONS_MAX {
            return Err(Unbounded::Combinations(n_wanted));
        }
        let n_entries: u64 = wanted.iter().map(PolicyRule::n_entries).sum();
        let steps_left = steps_max.checked_sub(n_entries).ok_or(Unbounded::Steps)?;
        let grids: Vec<Grid<'w>> = wanted.iter().flat_map(Grid::of_rule).collect();
        let index = (grids.len() > UNINDEXED_GRIDS_MAX).then(|| GridIndex::new(&grids));
        let seen_by = vec![0; grids.len()];
        let n_missing = grids.iter().map(Grid::n_missing).sum();
        Ok(Self { grids, index, seen_by, n_owned: 0, n_missing, steps_left })
    }

    /// Marks what a rule grants.
    pub(crate) fn add(&mut self, rule: &PolicyRule) -> Result<(), Unbounded> {
        if self.n_missing == 0 {
            return Ok(());
        }
        spend(&mut self.steps_left, rule.n_entries())?;
        self.n_owned += 1;
        let owned = Owned::new(rule);
        let index = self.index.take();
        let outcome = match index.as_ref().and_then(|index| index.candidates(&owned)) {
            Some(candidates) => {
                candidates.into_iter().flatten().try_for_each(|(_, at)| self.mark(*at, &owned))
            }
            None => (0..self.grids.len()).try_for_each(|at| self.mark(at, &owned)),
        };
        self.index = index;
        outcome
    }

    fn mark(&mut self, at: usize, owned: &Owned<'_>) -> Result<(), Unbounded> {
        spend(&mut self.steps_left, 1)?;
        let (Some(grid), Some(seen_by)) = (self.grids.get_mut(at), self.seen_by.get_mut(at)) else {
            return Ok(());
        };
        if grid.n_missing() == 0 || std::mem::replace(seen_by, self.n_owned) == self.n_owned {
            return Ok(());
        }
        let part = grid.part_of(owned);
        spend(&mut self.steps_left, part.n_steps)?;
        self.n_missing -= grid.mark(&part);
        Ok(())
    }

    /// How many permissions are not granted.
    pub(crate) fn n_missing(&self) -> u64 {
        self.n_missing
    }

    /// Makes sure that there are enough steps left to look at what is missing.
    pub(crate) fn spend_on_missing(&mut self) -> Result<(), Unbounded> {
        let incomplete = self.grids.iter().filter(|grid| grid.n_missing() > 0);
        spend(&mut self.steps_left, incomplete.map(Grid::n_combinations).sum())
    }

    /// The permissions that are not granted, in the order of the wanted rules and, for each, of API
    /// groups, resources, verbs and names; then of paths and verbs.
    pub(crate) fn missing(&self) -> impl Iterator<Item = Permission<'w>> {
        self.grids.iter().flat_map(Grid::missing)
    }
}

fn spend(steps_left: &mut u64, n_steps: u64) -> Result<(), Unbounded> {
    *steps_left = steps_left.checked_sub(n_steps).ok_or(Unbounded::Steps)?;
    Ok(())
}

/// The parts of `wanted` that `owned` does not grant, each with one verb, group, resource and name,
/// or with one verb and path, in order; nothing if all is granted.
///
/// One rule of the owner has to grant a part by itself. `*` is granted only by `*`, and what has no
/// name is not granted by a rule with names. Where that takes more than a check of a role may take,
/// whole rules are compared instead, so that too much is missing rather than too little.
pub fn uncovered(owned: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let covered = || -> Result<Vec<PolicyRule>, Unbounded> {
        let mut coverage = Coverage::new(wanted, crate::escalation::CHECK_STEPS_MAX)?;
        owned.iter().try_for_each(|rule| coverage.add(rule))?;
        Ok(coverage.missing().map(|permission| permission.rule()).collect())
    };
    covered().unwrap_or_else(|_| {
        let is_owned = |rule: &&PolicyRule| owned.contains(rule);
        wanted.iter().filter(|rule| !is_owned(rule)).cloned().collect()
    })
}

/// The entry of a list, and the number of a grid that has it.
type Posting<'w> = (&'w str, usize);

/// Grids by the entries of their lists.
#[derive(Debug)]
struct GridIndex<'w> {
    n_grids: usize,
    verbs: Vec<Posting<'w>>,
    api_groups: Vec<Posting<'w>>,
    resources: Vec<Posting<'w>>,
    /// What follows the first slash of a resource, for rules with `*/scale`.
    subresources: Vec<Posting<'w>>,
    resource_names: Vec<Posting<'w>>,
}

impl<'w> GridIndex<'w> {
    fn new(grids: &[Grid<'w>]) -> Self {
        let postings = |part: RulePart| -> Vec<Posting<'w>> {
            let of_grid = |(at, grid): (usize, &Grid<'w>)| {
                grid.values(part).iter().map(move |value| (value.as_str(), at))
            };
            let mut postings: Vec<_> = grids.iter().enumerate().flat_map(of_grid).collect();
            postings.sort_unstable();
            postings
        };
        let resources = postings(RulePart::Resource);
        let subresource = |(resource, at): &Posting<'w>| Some((resource.split_once('/')?.1, *at));
        let mut subresources: Vec<_> = resources.iter().filter_map(subresource).collect();
        subresources.sort_unstable();
        Self {
            n_grids: grids.len(),
            verbs: postings(RulePart::Verb),
            api_groups: postings(RulePart::ApiGroup),
            resources,
            subresources,
            resource_names: postings(RulePart::ResourceName),
        }
    }

    /// The grids of which a rule may grant something: those that share an entry with it in the list
    /// where these are fewest. `None` if that is no less than all.
    fn candidates<'i>(&'i self, owned: &Owned<'_>) -> Option<Vec<&'i [Posting<'w>]>> {
        let find = |postings: &'i [Posting<'w>], values: &[&str]| -> Vec<&'i [Posting<'w>]> {
            values.iter().map(|value| range_of(postings, value)).collect()
        };
        let verbs = (!owned.verbs.is_any).then(|| find(&self.verbs, &owned.verbs.values));
        if owned.has_urls() {
            return verbs;
        }
        let api_groups =
            (!owned.api_groups.is_any).then(|| find(&self.api_groups, &owned.api_groups.values));
        let resources = (!owned.resources.is_any).then(|| {
            let mut found = find(&self.resources, &owned.resources.values);
            found.extend(find(&self.subresources, &owned.any_with_subresource));
            found
        });
        let names = (!owned.resource_names.is_empty())
            .then(|| find(&self.resource_names, &owned.resource_names));
        let size = |found: &Vec<&[Posting<'w>]>| found.iter().map(|own| own.len()).sum::<usize>();
        let all = [verbs, api_groups, resources, names].into_iter().flatten();
        all.min_by_key(size).filter(|found| size(found) < self.n_grids)
    }
}

/// The postings of an entry.
fn range_of<'i, 'w>(postings: &'i [Posting<'w>], value: &str) -> &'i [Posting<'w>] {
    let start = postings.partition_point(|(own, _)| *own < value);
    let rest = postings.get(start..).unwrap_or_default();
    let end = rest.partition_point(|(own, _)| *own == value);
    rest.get(..end).unwrap_or_default()
}
#[cfg(test)]
mod tests {
    use super::*;

    /// `verbs @ groups : resources [names]` or `verbs ~ urls`, lists joined by commas.
    fn rule(text: &str) -> PolicyRule {
        let list = |text: &str| -> Vec<String> {
            text.trim().split(',').map(|entry| entry.replace("core", "")).collect()
        };
        if let Some((verbs, urls)) = text.split_once('~') {
            let (verbs, non_resource_urls) = (list(verbs), list(urls));
            return PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() };
        }
        let (verbs, rest) = text.split_once('@').unwrap();
        let (groups, rest) = rest.split_once(':').unwrap();
        let (resources, names) = rest.split_once('[').unwrap_or((rest, ""));
        PolicyRule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: match names.trim_end_matches(']') {
                "" => Vec::new(),
                names => list(names),
            },
            ..PolicyRule::default()
        }
    }

    #[track_caller]
    fn check(owned: &[&str], wanted: &[&str], want: &[&str]) {
        let rules = |texts: &[&str]| texts.iter().map(|text| rule(text)).collect::<Vec<_>>();
        assert_eq!(uncovered(&rules(owned), &rules(wanted)), rules(want));
    }

    #[test]
    fn what_is_covered() {
        check(&["get@core:pods"], &["get@core:pods"], &[]);
        check(&["get@core:*/scale"], &["get@core:foo/scale"], &[]);
        check(
            &["delete@core:deployments", "delete@core:builds", "update@core:builds,deployments"],
            &["delete,update@core:builds,deployments"],
            &[],
        );
        check(&["get@a,b:pods"], &["get@a:pods", "get@b:pods"], &[]);
        check(&["get@*:pods"], &["get@a,b:pods"], &[]);
        check(&["get@a:pods"], &["get@a:pods[foo,bar]"], &[]);
        check(&["get~*"], &["get~/apis,/apis/v1,/"], &[]);
        check(&["get~/*"], &["get~/,/foo"], &[]);
    }

    #[test]
    fn what_is_not_covered() {
        check(
            &["delete,update@core:builds,deployments", "delete@core:pods"],
            &["delete,update@core:builds,deployments,pods"],
            &["update@core:pods"],
        );
        check(&["get@a:pods"], &["get@*:pods"], &["get@*:pods"]);
        check(&["get,list,watch@a:pods"], &["*@a:pods"], &["*@a:pods"]);
        check(&["get@a:pods,services"], &["get@a:*"], &["get@a:*"]);
        check(&["get@a:pods[foo,bar]"], &["get@a:pods"], &["get@a:pods"]);
        check(&["get~/apis/*"], &["get~/apis,/apis/v1"], &["get~/apis"]);
        check(&["get@a:builds"], &["get@a:builds", "get~/apis"], &["get~/apis"]);
        check(&["get~/*"], &["get~"], &["get~"]);
        check(&["get~/api/*/*"], &["get~/api/v1"], &["get~/api/v1"]);
    }
}
