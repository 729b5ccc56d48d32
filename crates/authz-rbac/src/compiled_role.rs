//! The rules of one role, indexed by the target of a request.
//!
//! A decision checks every role that the user holds, so the check of one role must be quick however many
//! rules it has. Rules are stored under a hash of their API group, resource and resource name, one entry for
//! each combination, and a request looks up the few hashes that can match it. A hash only finds an
//! entry; the texts of the rule are compared as well, so a collision of hashes costs time and nothing else.
//!
//! A rule grants the product of its lists. Rules whose product is much larger than their text are not
//! stored under hashes but compared one by one.

use std::hash::BuildHasher;
use std::sync::Arc;

use authz::{Attributes, Resource, Target};
use foldhash::fast::RandomState;

use crate::policy::{PolicyRule, Role};
use crate::rules::{contains, matches_resource};

/// The maximum number of entries of a rule for each element of its lists.
const ENTRIES_PER_ELEMENT_MAX: usize = 4;

/// The maximum number of entries of a role: 2 MiB. The rules after that are compared one by one.
const ROLE_ENTRIES_MAX: usize = 65_536;

/// The maximum number of earlier entries that are compared with a new entry to find out whether it is redundant.
const COMPARED_ENTRIES_MAX: usize = 32;

/// The maximum number of rules that are compared one by one without [`CompiledRole::is_slow_to_check`].
const QUICK_UNINDEXED_RULES_MAX: usize = 8;

/// A role and the index of its rules.
#[derive(Debug)]
pub(crate) struct CompiledRole {
    pub(crate) role: Arc<Role>,
    /// The entries in the order of their hashes.
    rule_entries: Box<[RuleEntry]>,
    /// The patterns of the targets of all entries, a bit for each pattern.
    target_patterns: TargetPatternSet,
    pub(crate) target_bloom_filter: TargetBloomFilter,
    /// The rules for resources that have no entries, in the order of the role.
    unindexed_resource_rules: Box<[UnindexedRule]>,
    /// The rules for paths that have no entries: those with a path such as `/healthz/*`.
    unindexed_path_rules: Box<[UnindexedRule]>,
}

/// A request in the form in which it is compared with compiled roles.
#[derive(Debug)]
pub(crate) struct CompiledRequest<'a> {
    attributes: &'a Attributes<'a>,
    verb: VerbSet,
    /// The patterns of the targets that can match the request.
    target_patterns: TargetPatternSet,
    /// The hash of the target for each pattern.
    target_hashes: [u64; N_TARGET_PATTERNS],
    pub(crate) target_bloom_filter: TargetBloomFilter,
}

/// A rule that grants some verbs on a target.
#[derive(Debug, Clone, Copy)]
struct RuleEntry {
    target_hash: u64,
    verbs: VerbSet,
    target: RuleTarget,
}

/// An API group, a resource and a resource name of a rule, or a path, by their positions.
#[derive(Debug, Clone, Copy)]
struct RuleTarget {
    rule_idx: u32,
    api_group_idx: u32,
    /// The position of the resource, or of the path.
    resource_or_path_idx: u32,
    /// The position of the resource name; rules without names ignore it.
    resource_name_idx: u32,
    is_path_target: bool,
}

/// A rule that is compared with a request list by list.
#[derive(Debug, Clone, Copy)]
struct UnindexedRule {
    verbs: VerbSet,
    rule_idx: u32,
}

/// A Bloom filter of API groups and resources, or of paths. A role whose filter has no bit in common with
/// that of a request does not allow it, and need not be read. A role with wildcards has all bits.
pub(crate) type TargetBloomFilter = u64;

/// A set of verbs as bits. [`OTHER_VERBS`] stands for all verbs that have no bit of their own.
type VerbSet = u32;
const ALL_VERBS: VerbSet = VerbSet::MAX;
const OTHER_VERBS: VerbSet = 1 << KNOWN_VERBS.len();

/// The verbs of the API, and those of the authorization checks of Kubernetes itself.
const KNOWN_VERBS: [&str; 16] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "proxy",
    "use",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
    "attest",
];

/// A set of [`TargetPattern`]s as bits.
type TargetPatternSet = u16;

/// The wildcard parts of a target, as bits: bit 0 for the API group, bit 1 for a resource name that is
/// given, bits 2 and 3 for the [`ResourcePattern`]; or [`PATH_PATTERN`].
type TargetPattern = usize;
const N_TARGET_PATTERNS: usize = 13;
const PATH_PATTERN: TargetPattern = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResourcePattern {
    /// A resource without a wildcard, such as `pods` or `pods/log`.
    Literal = 0,
    /// The wildcard `*`, which covers every resource.
    Any = 1,
    /// A subresource of every resource, such as `*/scale`.
    AnyWithSubresource = 2,
}

fn resource_target_pattern(
    is_any_group: bool,
    is_named: bool,
    resource: ResourcePattern,
) -> TargetPattern {
    usize::from(is_any_group) | usize::from(is_named) << 1 | (resource as usize) << 2
}

fn verb_bit(verb: &str) -> VerbSet {
    let idx = KNOWN_VERBS.iter().position(|known| *known == verb);
    idx.map_or(OTHER_VERBS, |idx| 1 << idx)
}

impl CompiledRole {
    pub(crate) fn new(hash_builder: &RandomState, role: Arc<Role>) -> Self {
        let mut builder = RuleEntriesBuilder {
            hash_builder,
            rule_entries: Vec::new(),
            target_patterns: 0,
            target_bloom_filter: 0,
        };
        let (mut unindexed_resource_rules, mut unindexed_path_rules) = (Vec::new(), Vec::new());
        for (rule_idx, rule) in (0..).zip(&role.rules) {
            let verbs = if contains(&rule.verbs, "*") {
                ALL_VERBS
            } else {
                rule.verbs.iter().fold(0, |verbs, verb| verbs | verb_bit(verb))
            };
            if !builder.add_resource_rule(rule, rule_idx, verbs) {
                unindexed_resource_rules.push(UnindexedRule { verbs, rule_idx });
            }
            if !builder.add_path_rule(rule, rule_idx, verbs) {
                unindexed_path_rules.push(UnindexedRule { verbs, rule_idx });
            }
        }
        let RuleEntriesBuilder {
            rule_entries: mut entries,
            target_patterns,
            target_bloom_filter: mut target_filter,
            ..
        } = builder;
        if !unindexed_resource_rules.is_empty() || !unindexed_path_rules.is_empty() {
            target_filter = TargetBloomFilter::MAX;
        }
        entries.sort_unstable_by_key(|entry| (entry.target_hash, entry.target.rule_idx));
        let entries = remove_redundant_entries(entries, &role).into();
        let unindexed_resource_rules = unindexed_resource_rules.into();
        let unindexed_path_rules = unindexed_path_rules.into();
        Self {
            role,
            rule_entries: entries,
            target_patterns,
            target_bloom_filter: target_filter,
            unindexed_resource_rules,
            unindexed_path_rules,
        }
    }

    /// Reports whether some rule allows the request. The result is that of [`PolicyRule::allows`] for each rule.
    pub(crate) fn allows(&self, request: &CompiledRequest<'_>) -> bool {
        let mut target_patterns = self.target_patterns & request.target_patterns;
        while target_patterns != 0 {
            let pattern = target_patterns.trailing_zeros() as usize;
            let Some(hash) = request.target_hashes.get(pattern).copied() else { break };
            let start = self.rule_entries.partition_point(|entry| entry.target_hash < hash);
            let entries = self.rule_entries.get(start..).unwrap_or_default().iter();
            let mut entries = entries.take_while(|entry| entry.target_hash == hash);
            if entries.any(|entry| self.rule_entry_allows_request(entry, request)) {
                return true;
            }
            target_patterns &= target_patterns - 1;
        }
        let unindexed_rules = match request.attributes.target {
            Target::Resource(_) => &self.unindexed_resource_rules,
            Target::Path(_) => &self.unindexed_path_rules,
        };
        let mut unindexed_rules =
            unindexed_rules.iter().filter(|scanned| scanned.verbs & request.verb != 0);
        unindexed_rules.any(|scanned| {
            let rule = self.role.rules.get(scanned.rule_idx as usize);
            rule.is_some_and(|rule| rule.allows(request.attributes))
        })
    }

    /// Reports whether [`allows`](Self::allows) may take much longer for this role than for others.
    pub(crate) fn is_slow_to_check(&self) -> bool {
        let n_unindexed_rules =
            self.unindexed_resource_rules.len().max(self.unindexed_path_rules.len());
        n_unindexed_rules > QUICK_UNINDEXED_RULES_MAX
    }

    /// Reports whether an entry allows the request. The caller has compared the hashes of their targets; this
    /// function compares the targets themselves.
    fn rule_entry_allows_request(&self, entry: &RuleEntry, request: &CompiledRequest<'_>) -> bool {
        if entry.verbs & request.verb == 0 {
            return false;
        }
        let Some(rule) = self.role.rules.get(entry.target.rule_idx as usize) else { return false };
        let has_verb = entry.verbs == ALL_VERBS
            || request.verb != OTHER_VERBS
            || contains(&rule.verbs, request.attributes.verb.as_str());
        has_verb
            && match &request.attributes.target {
                Target::Resource(resource) => entry
                    .target
                    .look_up_resource_in_rule(rule)
                    .is_some_and(|(api_group, entry, name)| {
                        (api_group == "*" || api_group == resource.api_group)
                            && matches_resource(entry, resource)
                            && name.is_none_or(|name| name == resource.name)
                    }),
                Target::Path(path) => entry.target.look_up_path_in_rule(rule) == Some(*path),
            }
    }
}

impl RuleTarget {
    /// The API group, the resource and, if the rule has names, the name.
    fn look_up_resource_in_rule(self, rule: &PolicyRule) -> Option<(&str, &str, Option<&str>)> {
        let api_group = list_element_at(&rule.api_groups, self.api_group_idx)?;
        let resource = list_element_at(&rule.resources, self.resource_or_path_idx)?;
        Some((api_group, resource, list_element_at(&rule.resource_names, self.resource_name_idx)))
    }

    fn look_up_path_in_rule(self, rule: &PolicyRule) -> Option<&str> {
        list_element_at(&rule.non_resource_urls, self.resource_or_path_idx)
    }
}

fn list_element_at(list: &[String], idx: u32) -> Option<&str> {
    list.get(idx as usize).map(String::as_str)
}

/// Collects the entries of a role.
struct RuleEntriesBuilder<'h> {
    hash_builder: &'h RandomState,
    rule_entries: Vec<RuleEntry>,
    target_patterns: TargetPatternSet,
    target_bloom_filter: TargetBloomFilter,
}

impl RuleEntriesBuilder<'_> {
    /// Adds the entries of a rule for resources. Returns `false` if they are too many.
    fn add_resource_rule(&mut self, rule: &PolicyRule, rule_idx: u32, verbs: VerbSet) -> bool {
        let PolicyRule { api_groups, resources, resource_names, .. } = rule;
        let n_names = resource_names.len().max(1);
        let n_entries = api_groups.len().saturating_mul(resources.len()).saturating_mul(n_names);
        let n_elements = api_groups.len() + resources.len() + resource_names.len();
        if n_entries > n_elements * ENTRIES_PER_ELEMENT_MAX || !self.has_room_for_entries(n_entries)
        {
            return false;
        }
        for (group_idx, api_group) in (0..).zip(api_groups) {
            let group_hash = self.hash_builder.hash_one(api_group.as_str());
            for (resource_idx, resource) in (0..).zip(resources) {
                let resource_hash = hash_rule_resource(self.hash_builder, resource);
                let resource_pattern = match resource.as_str() {
                    "*" => ResourcePattern::Any,
                    resource if resource.starts_with("*/") => ResourcePattern::AnyWithSubresource,
                    _ => ResourcePattern::Literal,
                };
                let is_wild = api_group == "*" || resource_pattern != ResourcePattern::Literal;
                self.target_bloom_filter |= match is_wild {
                    true => TargetBloomFilter::MAX,
                    false => target_bloom_filter_bit(combine_target_hashes(
                        group_hash,
                        resource_hash,
                        None,
                    )),
                };
                for name_idx in 0..n_names {
                    let name = resource_names.get(name_idx);
                    let name_hash = name.map(|name| self.hash_builder.hash_one(name.as_str()));
                    let target_pattern =
                        resource_target_pattern(api_group == "*", name.is_some(), resource_pattern);
                    let name_idx = name_idx as u32;
                    self.target_patterns |= 1 << target_pattern;
                    self.rule_entries.push(RuleEntry {
                        target_hash: combine_target_hashes(group_hash, resource_hash, name_hash),
                        verbs,
                        target: RuleTarget {
                            rule_idx,
                            api_group_idx: group_idx,
                            resource_or_path_idx: resource_idx,
                            resource_name_idx: name_idx,
                            is_path_target: false,
                        },
                    });
                }
            }
        }
        true
    }

    /// Adds the entries of a rule for paths. Returns `false` if they are too many or if one ends in a wildcard.
    fn add_path_rule(&mut self, rule: &PolicyRule, rule_idx: u32, verbs: VerbSet) -> bool {
        let paths = &rule.non_resource_urls;
        if paths.iter().any(|path| path.ends_with('*')) || !self.has_room_for_entries(paths.len()) {
            return false;
        }
        for (resource_idx, path) in (0..).zip(paths) {
            let target_hash = self.hash_builder.hash_one(path.as_str());
            self.target_patterns |= 1 << PATH_PATTERN;
            self.target_bloom_filter |= target_bloom_filter_bit(target_hash);
            self.rule_entries.push(RuleEntry {
                target_hash,
                verbs,
                target: RuleTarget {
                    rule_idx,
                    api_group_idx: 0,
                    resource_or_path_idx: resource_idx,
                    resource_name_idx: 0,
                    is_path_target: true,
                },
            });
        }
        true
    }

    fn has_room_for_entries(&self, n_entries: usize) -> bool {
        self.rule_entries.len() + n_entries <= ROLE_ENTRIES_MAX
    }
}

/// Removes an entry if earlier entries for the same target grant all its verbs. So a request finds few
/// entries even if very many rules are for one target.
fn remove_redundant_entries(entries: Vec<RuleEntry>, role: &Role) -> Vec<RuleEntry> {
    let has_same_target = |a: &RuleEntry, b: &RuleEntry| {
        let rule_of = |entry: &RuleEntry| role.rules.get(entry.target.rule_idx as usize);
        match (rule_of(a), rule_of(b)) {
            (Some(rule_a), Some(rule_b)) => {
                a.target.is_path_target == b.target.is_path_target
                    && match a.target.is_path_target {
                        true => {
                            a.target.look_up_path_in_rule(rule_a)
                                == b.target.look_up_path_in_rule(rule_b)
                        }
                        false => {
                            a.target.look_up_resource_in_rule(rule_a)
                                == b.target.look_up_resource_in_rule(rule_b)
                        }
                    }
            }
            (None, _) | (_, None) => false,
        }
    };
    let mut kept: Vec<RuleEntry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let equal_hashes =
            kept.iter().rev().take_while(|earlier| earlier.target_hash == entry.target_hash);
        let same_targets = equal_hashes
            .take(COMPARED_ENTRIES_MAX)
            .filter(|earlier| has_same_target(earlier, &entry));
        let granted_verbs = same_targets.fold(0, |verbs, earlier| match earlier.verbs {
            ALL_VERBS => ALL_VERBS,
            some => verbs | some & !OTHER_VERBS,
        });
        if entry.verbs & !granted_verbs != 0 {
            kept.push(entry);
        }
    }
    kept
}

#[expect(
    clippy::indexing_slicing,
    reason = "INVARIANT on TargetPattern: it is less than N_TARGET_PATTERNS"
)]
impl<'a> CompiledRequest<'a> {
    pub(crate) fn new(hash_builder: &RandomState, attributes: &'a Attributes<'a>) -> Self {
        let verb = verb_bit(attributes.verb.as_str());
        let (mut target_patterns, mut hashes) = (0, [0; N_TARGET_PATTERNS]);
        match &attributes.target {
            Target::Path(path) => {
                target_patterns = 1 << PATH_PATTERN;
                hashes[PATH_PATTERN] = hash_builder.hash_one(*path);
            }
            Target::Resource(resource) => {
                let literal = hash_resource(hash_builder, resource);
                let any = hash_resource_parts(hash_builder, "*", "");
                let wildcard_subresources = (!resource.subresource.is_empty())
                    .then(|| hash_resource_parts(hash_builder, "*", resource.subresource));
                let resource_hashes = [
                    (ResourcePattern::Literal, Some(literal)),
                    (ResourcePattern::Any, Some(any)),
                    (ResourcePattern::AnyWithSubresource, wildcard_subresources),
                ];
                let name_hash = Some(hash_builder.hash_one(resource.name));
                for (is_any_group, api_group) in [(false, resource.api_group), (true, "*")] {
                    let group_hash = hash_builder.hash_one(api_group);
                    for (resource_pattern, resource_hash) in resource_hashes {
                        let Some(resource_hash) = resource_hash else { continue };
                        for name_hash in [None, name_hash] {
                            let target_pattern = resource_target_pattern(
                                is_any_group,
                                name_hash.is_some(),
                                resource_pattern,
                            );
                            target_patterns |= 1 << target_pattern;
                            hashes[target_pattern] =
                                combine_target_hashes(group_hash, resource_hash, name_hash);
                        }
                    }
                }
            }
        }
        let literal_pattern = match attributes.target {
            Target::Path(_) => PATH_PATTERN,
            Target::Resource(_) => resource_target_pattern(false, false, ResourcePattern::Literal),
        };
        let target_filter = target_bloom_filter_bit(hashes[literal_pattern]);
        Self {
            attributes,
            verb,
            target_patterns,
            target_hashes: hashes,
            target_bloom_filter: target_filter,
        }
    }
}

fn target_bloom_filter_bit(target_hash: u64) -> TargetBloomFilter {
    1 << (target_hash >> (u64::BITS - TargetBloomFilter::BITS.trailing_zeros()))
}

fn combine_target_hashes(group_hash: u64, resource_hash: u64, name_hash: Option<u64>) -> u64 {
    group_hash ^ resource_hash.rotate_left(21) ^ name_hash.unwrap_or_default().rotate_left(42)
}

/// The hash of a resource as rules write it, such as `pods/log`.
fn hash_rule_resource(hash_builder: &RandomState, entry: &str) -> u64 {
    let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    hash_resource_parts(hash_builder, resource, subresource)
}

/// The hash that a rule entry has if it names exactly this resource.
fn hash_resource(hash_builder: &RandomState, resource: &Resource<'_>) -> u64 {
    let Resource { resource, subresource, .. } = *resource;
    if !resource.contains('/') {
        return hash_resource_parts(hash_builder, resource, subresource);
    }
    // A rule writes both parts in one text, and the part up to the first slash counts as the resource.
    match subresource {
        "" => hash_rule_resource(hash_builder, resource),
        subresource => hash_rule_resource(hash_builder, &format!("{resource}/{subresource}")),
    }
}

fn hash_resource_parts(hash_builder: &RandomState, resource: &str, subresource: &str) -> u64 {
    match subresource {
        "" => hash_builder.hash_one(resource),
        subresource => hash_builder.hash_one((resource, subresource)),
    }
}

#[cfg(test)]
mod tests;
