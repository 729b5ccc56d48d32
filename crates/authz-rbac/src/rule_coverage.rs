//! Comparing rules: do held rules grant all permissions of requested rules?
//!
//! A rule grants every combination of its lists. Each requested rule becomes a grid with one bit for each
//! combination, and each held rule marks the part of each grid that it grants. So memory depends on the
//! requested rules alone, and a held rule costs the lists that it shares with a requested rule and the
//! rows of bits that it marks, never a comparison for each combination.

use crate::held_rule::HeldRule;
use crate::permission_count_limits::{ROLE_COMBINATIONS_MAX, n_permissions_of_rules};
use crate::permission_grid::{Permission, PermissionGrid};
use crate::policy::PolicyRule;
use crate::rules::RulePart;

/// With at most this many requested grids, each held rule is compared with all of them.
const UNINDEXED_GRIDS_MAX: usize = 16;

/// The permissions of the requested rules, and which of them held rules grant.
#[derive(Debug)]
pub(crate) struct RuleCoverage<'w> {
    requested_permission_grids: Vec<PermissionGrid<'w>>,
    /// The index of the requested grids; `None` if there are few of them.
    index: Option<PermissionGridIndex<'w>>,
    /// For each grid, the number of the last held rule that was compared with it.
    last_held_rule_by_grid: Vec<u64>,
    n_held_rules: u64,
    n_missing_permissions: u64,
    comparison_steps_left: u64,
}

/// The limit that a comparison exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoverageLimitExceeded {
    /// The requested rules have more than [`ROLE_COMBINATIONS_MAX`] combinations.
    Combinations(u64),
    /// The comparison takes more steps than the caller allows.
    Steps,
}

impl<'w> RuleCoverage<'w> {
    /// Starts with no permission granted. A step reads one element of a list or one word of bits.
    pub(crate) fn new(
        requested: &'w [PolicyRule],
        steps_max: u64,
    ) -> Result<Self, CoverageLimitExceeded> {
        let n_requested = n_permissions_of_rules(requested);
        if n_requested > ROLE_COMBINATIONS_MAX {
            return Err(CoverageLimitExceeded::Combinations(n_requested));
        }
        let n_entries: u64 = requested.iter().map(PolicyRule::n_rule_list_elements).sum();
        let steps_left = steps_max.checked_sub(n_entries).ok_or(CoverageLimitExceeded::Steps)?;
        let requested_grids: Vec<PermissionGrid<'w>> =
            requested.iter().flat_map(PermissionGrid::grids_of_rule).collect();
        let index = (requested_grids.len() > UNINDEXED_GRIDS_MAX)
            .then(|| PermissionGridIndex::new(&requested_grids));
        let last_held_rule_by_grid = vec![0; requested_grids.len()];
        let n_missing = requested_grids.iter().map(PermissionGrid::n_missing_permissions).sum();
        Ok(Self {
            requested_permission_grids: requested_grids,
            index,
            last_held_rule_by_grid,
            n_held_rules: 0,
            n_missing_permissions: n_missing,
            comparison_steps_left: steps_left,
        })
    }

    /// Marks the permissions that a held rule grants.
    pub(crate) fn add_held_rule(&mut self, rule: &PolicyRule) -> Result<(), CoverageLimitExceeded> {
        if self.n_missing_permissions == 0 {
            return Ok(());
        }
        spend_comparison_steps(&mut self.comparison_steps_left, rule.n_rule_list_elements())?;
        self.n_held_rules += 1;
        let held_rule = HeldRule::new(rule);
        let index = self.index.take();
        let outcome = match index.as_ref().and_then(|index| index.find_candidate_grids(&held_rule))
        {
            Some(candidates) => candidates
                .into_iter()
                .flatten()
                .try_for_each(|(_, at)| self.mark_permissions_granted(*at, &held_rule)),
            None => (0..self.requested_permission_grids.len())
                .try_for_each(|at| self.mark_permissions_granted(at, &held_rule)),
        };
        self.index = index;
        outcome
    }

    fn mark_permissions_granted(
        &mut self,
        at: usize,
        held_rule: &HeldRule<'_>,
    ) -> Result<(), CoverageLimitExceeded> {
        spend_comparison_steps(&mut self.comparison_steps_left, 1)?;
        let (Some(grid), Some(last_held_rule_by_grid)) =
            (self.requested_permission_grids.get_mut(at), self.last_held_rule_by_grid.get_mut(at))
        else {
            return Ok(());
        };
        if grid.n_missing_permissions() == 0
            || std::mem::replace(last_held_rule_by_grid, self.n_held_rules) == self.n_held_rules
        {
            return Ok(());
        }
        let part = grid.grid_part_granted_by(held_rule);
        spend_comparison_steps(&mut self.comparison_steps_left, part.n_comparison_steps)?;
        self.n_missing_permissions -= grid.mark_permissions_granted(&part);
        Ok(())
    }

    /// The number of permissions that no held rule grants.
    pub(crate) fn n_missing_permissions(&self) -> u64 {
        self.n_missing_permissions
    }

    /// Spends the steps that listing the missing permissions takes.
    pub(crate) fn spend_steps_to_list_missing(&mut self) -> Result<(), CoverageLimitExceeded> {
        let incomplete =
            self.requested_permission_grids.iter().filter(|grid| grid.n_missing_permissions() > 0);
        spend_comparison_steps(
            &mut self.comparison_steps_left,
            incomplete.map(PermissionGrid::n_permissions).sum(),
        )
    }

    /// The permissions that no held rule grants, in the order of the requested rules and, for each, of
    /// API groups, resources, verbs and names; then of paths and verbs.
    pub(crate) fn missing_permissions(&self) -> impl Iterator<Item = Permission<'w>> {
        self.requested_permission_grids.iter().flat_map(PermissionGrid::missing_permissions)
    }
}

fn spend_comparison_steps(steps_left: &mut u64, n_steps: u64) -> Result<(), CoverageLimitExceeded> {
    *steps_left = steps_left.checked_sub(n_steps).ok_or(CoverageLimitExceeded::Steps)?;
    Ok(())
}

/// Returns the permissions of `requested` that `held_rules` do not grant, each with one verb, API group,
/// resource and name, or with one verb and path, in order.
///
/// 1. One held rule must grant a permission by itself.
/// 2. `*` is granted only by `*`.
/// 3. A permission without a resource name is not granted by a rule with names.
/// 4. If the comparison exceeds the limits of an escalation check, whole rules are compared instead, so
///    that too many permissions are missing rather than too few.
pub fn uncovered_rules(held_rules: &[PolicyRule], requested: &[PolicyRule]) -> Vec<PolicyRule> {
    let covered = || -> Result<Vec<PolicyRule>, CoverageLimitExceeded> {
        let mut coverage = RuleCoverage::new(requested, crate::escalation::CHECK_STEPS_MAX)?;
        held_rules.iter().try_for_each(|rule| coverage.add_held_rule(rule))?;
        Ok(coverage.missing_permissions().map(|permission_at| permission_at.rule()).collect())
    };
    covered().unwrap_or_else(|_| {
        let is_held = |rule: &&PolicyRule| held_rules.contains(rule);
        requested.iter().filter(|rule| !is_held(rule)).cloned().collect()
    })
}

/// An element of a list, and the position of a grid that has it.
type PermissionGridPosting<'w> = (&'w str, usize);

/// Grids by the elements of their lists.
#[derive(Debug)]
struct PermissionGridIndex<'w> {
    n_permission_grids: usize,
    verbs: Vec<PermissionGridPosting<'w>>,
    api_groups: Vec<PermissionGridPosting<'w>>,
    resources: Vec<PermissionGridPosting<'w>>,
    /// The text after the first slash of a resource, for rules with `*/scale`.
    subresources: Vec<PermissionGridPosting<'w>>,
    resource_names: Vec<PermissionGridPosting<'w>>,
}

impl<'w> PermissionGridIndex<'w> {
    fn new(requested_grids: &[PermissionGrid<'w>]) -> Self {
        let postings = |part: RulePart| -> Vec<PermissionGridPosting<'w>> {
            let of_grid = |(at, grid): (usize, &PermissionGrid<'w>)| {
                grid.values(part).iter().map(move |value| (value.as_str(), at))
            };
            let mut postings: Vec<_> =
                requested_grids.iter().enumerate().flat_map(of_grid).collect();
            postings.sort_unstable();
            postings
        };
        let resources = postings(RulePart::Resource);
        let subresource =
            |(resource, at): &PermissionGridPosting<'w>| Some((resource.split_once('/')?.1, *at));
        let mut subresources: Vec<_> = resources.iter().filter_map(subresource).collect();
        subresources.sort_unstable();
        Self {
            n_permission_grids: requested_grids.len(),
            verbs: postings(RulePart::Verb),
            api_groups: postings(RulePart::ApiGroup),
            resources,
            subresources,
            resource_names: postings(RulePart::ResourceName),
        }
    }

    /// Finds the requested grids of which a held rule may grant a part. For each list of the rule it finds the
    /// grids that share an element with that list, and returns the shortest result. Returns `None` if every result
    /// contains all grids.
    fn find_candidate_grids<'i>(
        &'i self,
        held_rule: &HeldRule<'_>,
    ) -> Option<Vec<&'i [PermissionGridPosting<'w>]>> {
        let find = |postings: &'i [PermissionGridPosting<'w>],
                    values: &[&str]|
         -> Vec<&'i [PermissionGridPosting<'w>]> {
            values.iter().map(|value| find_grid_postings(postings, value)).collect()
        };
        let verbs =
            (!held_rule.verbs.has_wildcard).then(|| find(&self.verbs, &held_rule.verbs.values));
        if held_rule.has_non_resource_urls() {
            return verbs;
        }
        let api_groups = (!held_rule.api_groups.has_wildcard)
            .then(|| find(&self.api_groups, &held_rule.api_groups.values));
        let resources = (!held_rule.resources.has_wildcard).then(|| {
            let mut found = find(&self.resources, &held_rule.resources.values);
            found.extend(find(&self.subresources, &held_rule.wildcard_subresources));
            found
        });
        let names = (!held_rule.resource_names.is_empty())
            .then(|| find(&self.resource_names, &held_rule.resource_names));
        let size = |found: &Vec<&[PermissionGridPosting<'w>]>| {
            found.iter().map(|own| own.len()).sum::<usize>()
        };
        let all = [verbs, api_groups, resources, names].into_iter().flatten();
        all.min_by_key(size).filter(|found| size(found) < self.n_permission_grids)
    }
}

/// Finds the postings of an element.
fn find_grid_postings<'i, 'w>(
    postings: &'i [PermissionGridPosting<'w>],
    value: &str,
) -> &'i [PermissionGridPosting<'w>] {
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
    fn check(held_rules: &[&str], requested: &[&str], want: &[&str]) {
        let rules = |texts: &[&str]| texts.iter().map(|text| rule(text)).collect::<Vec<_>>();
        assert_eq!(uncovered_rules(&rules(held_rules), &rules(requested)), rules(want));
    }

    #[test]
    fn permissions_that_are_covered() {
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
    fn permissions_that_are_not_covered() {
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
