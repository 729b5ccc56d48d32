//! The rules of one role, found by what a request asks for.
//!
//! Deciding reads every role that the user holds, so asking one role must be quick however many rules
//! it has. Rules are stored under a hash of their API group, resource and resource name, one entry for
//! each combination, and a request looks up the few hashes that can match it. A hash only finds an
//! entry; the texts of the rule confirm it, so a collision of hashes costs time and nothing else.
//!
//! A rule grants the product of its lists. Rules whose product is much larger than their text are not
//! stored under hashes but compared one by one.

use std::hash::BuildHasher;
use std::sync::Arc;

use authz::{Attributes, Resource, Target};
use foldhash::fast::RandomState;

use crate::policy::{PolicyRule, Role};
use crate::rules::{contains, matches_resource};

/// The most entries of a rule for each element of its lists.
const ENTRIES_PER_ELEMENT_MAX: usize = 4;

/// The most entries of a role: 2 MiB. The rules after that are compared one by one.
const ROLE_ENTRIES_MAX: usize = 65_536;

/// The most earlier entries that are searched for one that makes a new entry needless.
const COMPARED_ENTRIES_MAX: usize = 32;

/// The most rules that are compared one by one without [`CompiledRole::is_slow`].
const QUICK_SCANNED_RULES_MAX: usize = 8;

/// A role and the index of its rules.
#[derive(Debug)]
pub(crate) struct CompiledRole {
    pub(crate) role: Arc<Role>,
    /// In the order of hashes.
    entries: Box<[RuleEntry]>,
    /// The shapes of the targets of all entries, a bit for each.
    shapes: Shapes,
    pub(crate) target_filter: TargetFilter,
    /// The rules for resources that have no entries, in the order of the role.
    scanned_resource_rules: Box<[ScannedRule]>,
    /// The rules for paths that have no entries: those with a path such as `/healthz/*`.
    scanned_path_rules: Box<[ScannedRule]>,
}

/// A request in the form in which it is compared with compiled roles.
#[derive(Debug)]
pub(crate) struct CompiledRequest<'a> {
    attributes: &'a Attributes<'a>,
    verb: VerbSet,
    /// The shapes of targets that can match the request.
    shapes: Shapes,
    /// The hash of the target of each shape.
    hashes: [u64; N_SHAPES],
    pub(crate) target_filter: TargetFilter,
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
    group_idx: u32,
    /// The position of the resource, or of the path.
    resource_idx: u32,
    /// Of no meaning for rules without names.
    name_idx: u32,
    is_path: bool,
}

/// A rule that is compared with a request list by list.
#[derive(Debug, Clone, Copy)]
struct ScannedRule {
    verbs: VerbSet,
    rule_idx: u32,
}

/// A Bloom filter of API groups and resources, or of paths. A role whose filter has no bit in common with
/// that of a request does not allow it, and need not be read. A role with wildcards has all bits.
pub(crate) type TargetFilter = u64;

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

/// A set of [`Shape`]s as bits.
type Shapes = u16;

/// The wildcard parts of a target, as bits: bit 0 for the API group, bit 1 for a resource name that is
/// given, bits 2 and 3 for the [`ResourceShape`]; or [`PATH_SHAPE`].
type Shape = usize;
const N_SHAPES: usize = 13;
const PATH_SHAPE: Shape = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResourceShape {
    /// `pods` or `pods/log`.
    Literal = 0,
    /// `*`.
    Any = 1,
    /// `*/scale`.
    AnyWithSubresource = 2,
}

fn target_shape(is_any_group: bool, is_named: bool, resource: ResourceShape) -> Shape {
    usize::from(is_any_group) | usize::from(is_named) << 1 | (resource as usize) << 2
}

fn known_verb(verb: &str) -> VerbSet {
    let idx = KNOWN_VERBS.iter().position(|known| *known == verb);
    idx.map_or(OTHER_VERBS, |idx| 1 << idx)
}

impl CompiledRole {
    pub(crate) fn new(hash_builder: &RandomState, role: Arc<Role>) -> Self {
        let mut builder =
            EntriesBuilder { hash_builder, entries: Vec::new(), shapes: 0, target_filter: 0 };
        let (mut scanned_resource_rules, mut scanned_path_rules) = (Vec::new(), Vec::new());
        for (rule_idx, rule) in (0..).zip(&role.rules) {
            let verbs = if contains(&rule.verbs, "*") {
                ALL_VERBS
            } else {
                rule.verbs.iter().fold(0, |verbs, verb| verbs | known_verb(verb))
            };
            if !builder.add_resources(rule, rule_idx, verbs) {
                scanned_resource_rules.push(ScannedRule { verbs, rule_idx });
            }
            if !builder.add_paths(rule, rule_idx, verbs) {
                scanned_path_rules.push(ScannedRule { verbs, rule_idx });
            }
        }
        let EntriesBuilder { mut entries, shapes, mut target_filter, .. } = builder;
        if !scanned_resource_rules.is_empty() || !scanned_path_rules.is_empty() {
            target_filter = TargetFilter::MAX;
        }
        entries.sort_unstable_by_key(|entry| (entry.target_hash, entry.target.rule_idx));
        let entries = without_needless_entries(entries, &role).into();
        let scanned_resource_rules = scanned_resource_rules.into();
        let scanned_path_rules = scanned_path_rules.into();
        Self { role, entries, shapes, target_filter, scanned_resource_rules, scanned_path_rules }
    }

    /// Reports whether some rule allows the request: the same as asking each rule, but quicker.
    pub(crate) fn allows(&self, request: &CompiledRequest<'_>) -> bool {
        let mut shapes = self.shapes & request.shapes;
        while shapes != 0 {
            let hash = request.hashes[shapes.trailing_zeros() as usize];
            let start = self.entries.partition_point(|entry| entry.target_hash < hash);
            let entries = self.entries.get(start..).unwrap_or_default().iter();
            let mut entries = entries.take_while(|entry| entry.target_hash == hash);
            if entries.any(|entry| self.confirms(entry, request)) {
                return true;
            }
            shapes &= shapes - 1;
        }
        let scanned_rules = match request.attributes.target {
            Target::Resource(_) => &self.scanned_resource_rules,
            Target::Path(_) => &self.scanned_path_rules,
        };
        let mut scanned_rules =
            scanned_rules.iter().filter(|scanned| scanned.verbs & request.verb != 0);
        scanned_rules.any(|scanned| {
            let rule = self.role.rules.get(scanned.rule_idx as usize);
            rule.is_some_and(|rule| rule.allows(request.attributes))
        })
    }

    /// Reports whether [`allows`](Self::allows) may take much longer for this role than for others.
    pub(crate) fn is_slow(&self) -> bool {
        let n_scanned_rules = self.scanned_resource_rules.len().max(self.scanned_path_rules.len());
        n_scanned_rules > QUICK_SCANNED_RULES_MAX
    }

    /// Reports whether an entry of an equal hash allows the request.
    fn confirms(&self, entry: &RuleEntry, request: &CompiledRequest<'_>) -> bool {
        if entry.verbs & request.verb == 0 {
            return false;
        }
        let Some(rule) = self.role.rules.get(entry.target.rule_idx as usize) else { return false };
        let has_verb = entry.verbs == ALL_VERBS
            || request.verb != OTHER_VERBS
            || contains(&rule.verbs, request.attributes.verb);
        has_verb
            && match &request.attributes.target {
                Target::Resource(resource) => {
                    entry.target.resource_of(rule).is_some_and(|(api_group, entry, name)| {
                        (api_group == "*" || api_group == resource.api_group)
                            && matches_resource(entry, resource)
                            && name.is_none_or(|name| name == resource.name)
                    })
                }
                Target::Path(path) => entry.target.path_of(rule) == Some(*path),
            }
    }
}

impl RuleTarget {
    /// The API group, the resource and, if the rule has names, the name.
    fn resource_of(self, rule: &PolicyRule) -> Option<(&str, &str, Option<&str>)> {
        let api_group = element_of(&rule.api_groups, self.group_idx)?;
        let resource = element_of(&rule.resources, self.resource_idx)?;
        Some((api_group, resource, element_of(&rule.resource_names, self.name_idx)))
    }

    fn path_of(self, rule: &PolicyRule) -> Option<&str> {
        element_of(&rule.non_resource_urls, self.resource_idx)
    }
}

fn element_of(list: &[String], idx: u32) -> Option<&str> {
    list.get(idx as usize).map(String::as_str)
}

/// Collects the entries of a role.
struct EntriesBuilder<'h> {
    hash_builder: &'h RandomState,
    entries: Vec<RuleEntry>,
    shapes: Shapes,
    target_filter: TargetFilter,
}

impl EntriesBuilder<'_> {
    /// Adds the entries of a rule for resources; `false` if they are too many.
    fn add_resources(&mut self, rule: &PolicyRule, rule_idx: u32, verbs: VerbSet) -> bool {
        let PolicyRule { api_groups, resources, resource_names, .. } = rule;
        let n_names = resource_names.len().max(1);
        let n_entries = api_groups.len().saturating_mul(resources.len()).saturating_mul(n_names);
        let n_elements = api_groups.len() + resources.len() + resource_names.len();
        if n_entries > n_elements * ENTRIES_PER_ELEMENT_MAX || !self.has_room_for(n_entries) {
            return false;
        }
        for (group_idx, api_group) in (0..).zip(api_groups) {
            let group_hash = self.hash_builder.hash_one(api_group.as_str());
            for (resource_idx, resource) in (0..).zip(resources) {
                let resource_hash = hash_rule_resource(self.hash_builder, resource);
                let resource_shape = match resource.as_str() {
                    "*" => ResourceShape::Any,
                    resource if resource.starts_with("*/") => ResourceShape::AnyWithSubresource,
                    _ => ResourceShape::Literal,
                };
                let is_wild = api_group == "*" || resource_shape != ResourceShape::Literal;
                self.target_filter |= match is_wild {
                    true => TargetFilter::MAX,
                    false => filter_bit(combine_hashes(group_hash, resource_hash, None)),
                };
                for name_idx in 0..n_names {
                    let name = resource_names.get(name_idx);
                    let name_hash = name.map(|name| self.hash_builder.hash_one(name.as_str()));
                    let shape = target_shape(api_group == "*", name.is_some(), resource_shape);
                    let name_idx = name_idx as u32;
                    self.shapes |= 1 << shape;
                    self.entries.push(RuleEntry {
                        target_hash: combine_hashes(group_hash, resource_hash, name_hash),
                        verbs,
                        target: RuleTarget {
                            rule_idx,
                            group_idx,
                            resource_idx,
                            name_idx,
                            is_path: false,
                        },
                    });
                }
            }
        }
        true
    }

    /// Adds the entries of a rule for paths; `false` if they are too many or end in a wildcard.
    fn add_paths(&mut self, rule: &PolicyRule, rule_idx: u32, verbs: VerbSet) -> bool {
        let paths = &rule.non_resource_urls;
        if paths.iter().any(|path| path.ends_with('*')) || !self.has_room_for(paths.len()) {
            return false;
        }
        for (resource_idx, path) in (0..).zip(paths) {
            let target_hash = self.hash_builder.hash_one(path.as_str());
            self.shapes |= 1 << PATH_SHAPE;
            self.target_filter |= filter_bit(target_hash);
            self.entries.push(RuleEntry {
                target_hash,
                verbs,
                target: RuleTarget {
                    rule_idx,
                    group_idx: 0,
                    resource_idx,
                    name_idx: 0,
                    is_path: true,
                },
            });
        }
        true
    }

    fn has_room_for(&self, n_entries: usize) -> bool {
        self.entries.len() + n_entries <= ROLE_ENTRIES_MAX
    }
}

/// Drops the entries all of whose verbs earlier entries grant on the same target, so that a request
/// finds few entries even if very many rules are for the same target.
fn without_needless_entries(entries: Vec<RuleEntry>, role: &Role) -> Vec<RuleEntry> {
    let has_same_target = |a: &RuleEntry, b: &RuleEntry| {
        let rule_of = |entry: &RuleEntry| role.rules.get(entry.target.rule_idx as usize);
        match (rule_of(a), rule_of(b)) {
            (Some(rule_a), Some(rule_b)) => {
                a.target.is_path == b.target.is_path
                    && match a.target.is_path {
                        true => a.target.path_of(rule_a) == b.target.path_of(rule_b),
                        false => a.target.resource_of(rule_a) == b.target.resource_of(rule_b),
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

impl<'a> CompiledRequest<'a> {
    pub(crate) fn new(hash_builder: &RandomState, attributes: &'a Attributes<'a>) -> Self {
        let verb = known_verb(attributes.verb);
        let (mut shapes, mut hashes) = (0, [0; N_SHAPES]);
        match &attributes.target {
            Target::Path(path) => {
                shapes = 1 << PATH_SHAPE;
                hashes[PATH_SHAPE] = hash_builder.hash_one(*path);
            }
            Target::Resource(resource) => {
                let literal = hash_resource(hash_builder, resource);
                let any = hash_resource_parts(hash_builder, "*", "");
                let any_with_subresource = (!resource.subresource.is_empty())
                    .then(|| hash_resource_parts(hash_builder, "*", resource.subresource));
                let resource_hashes = [
                    (ResourceShape::Literal, Some(literal)),
                    (ResourceShape::Any, Some(any)),
                    (ResourceShape::AnyWithSubresource, any_with_subresource),
                ];
                let name_hash = Some(hash_builder.hash_one(resource.name));
                for (is_any_group, api_group) in [(false, resource.api_group), (true, "*")] {
                    let group_hash = hash_builder.hash_one(api_group);
                    for (resource_shape, resource_hash) in resource_hashes {
                        let Some(resource_hash) = resource_hash else { continue };
                        for name_hash in [None, name_hash] {
                            let shape =
                                target_shape(is_any_group, name_hash.is_some(), resource_shape);
                            shapes |= 1 << shape;
                            hashes[shape] = combine_hashes(group_hash, resource_hash, name_hash);
                        }
                    }
                }
            }
        }
        let literal_shape = match attributes.target {
            Target::Path(_) => PATH_SHAPE,
            Target::Resource(_) => target_shape(false, false, ResourceShape::Literal),
        };
        let target_filter = filter_bit(hashes[literal_shape]);
        Self { attributes, verb, shapes, hashes, target_filter }
    }
}

fn filter_bit(target_hash: u64) -> TargetFilter {
    1 << (target_hash >> (u64::BITS - TargetFilter::BITS.trailing_zeros()))
}

fn combine_hashes(group_hash: u64, resource_hash: u64, name_hash: Option<u64>) -> u64 {
    group_hash ^ resource_hash.rotate_left(21) ^ name_hash.unwrap_or_default().rotate_left(42)
}

/// The hash of a resource as rules write it, such as `pods/log`.
fn hash_rule_resource(hash_builder: &RandomState, entry: &str) -> u64 {
    let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    hash_resource_parts(hash_builder, resource, subresource)
}

/// The hash of the entry of a rule that is literally this resource.
fn hash_resource(hash_builder: &RandomState, resource: &Resource<'_>) -> u64 {
    let Resource { resource, subresource, .. } = *resource;
    if !resource.contains('/') {
        return hash_resource_parts(hash_builder, resource, subresource);
    }
    // Rules write both parts in one text, of which the part up to the first slash counts as resource.
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
