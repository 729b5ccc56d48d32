//! Roles as numbers, so that most are turned down at a glance and of the rest one name is compared.

use std::sync::Arc;

use authz::{Attributes, Target};

use crate::mask::Mask;
use crate::policy::{PolicyRule, Role};
use crate::question::{Hashes, OTHER_VERB, Question, VerbIdx, verb_idx};
use crate::rule::matches_resource;
use crate::texts::{Text, Texts, TextsBuilder};

/// The most targets of a rule that are listed for each entry of its lists. A rule is every pair of its
/// API groups and resources, so without a limit the index would grow with their product. A rule with
/// more is compared letter by letter.
const TARGETS_PER_ENTRY_MAX: usize = 4;

/// The most targets of a role that are listed. Its first rules come first; the rest are compared letter
/// by letter.
const ROLE_TARGETS_MAX: usize = 16_384;

/// A set of verbs: a bit for each number.
pub(crate) type Verbs = u32;
pub(crate) const ALL_VERBS: Verbs = Verbs::MAX;

/// A role and its rules as numbers.
#[derive(Debug)]
pub(crate) struct CompiledRole {
    pub(crate) role: Arc<Role>,
    /// What the rules speak of.
    pub(crate) mask: Mask,
    /// With which verbs they speak of targets that are not listed.
    pub(crate) wild: WildVerbs,
    /// What plain rules grant, in the order of targets and, for each, of rules.
    listed: Box<[Listed]>,
    /// The names of what is listed. In the rules each is a text by itself, far from the others.
    texts: Texts,
    /// The other rules in their order.
    unlisted: Box<[Unlisted]>,
}

/// The verbs with which a role speaks of targets beside those that it lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WildVerbs {
    pub(crate) resources: Verbs,
    pub(crate) paths: Verbs,
}

/// A plain rule grants these verbs on this target.
#[derive(Debug, Clone, Copy)]
struct Listed {
    target: u64,
    verbs: Verbs,
    rule_idx: u32,
    name: PackedName,
}

/// What a target is called.
#[derive(Debug, Clone, Copy)]
struct PackedName {
    /// `None` for a path.
    api_group: Option<Text>,
    /// The resource as rules write it, or the path.
    entry: Text,
}

/// A rule whose targets are not listed.
#[derive(Debug, Clone, Copy)]
struct Unlisted {
    verbs: Verbs,
    /// Whether it grants its verbs on all resources. Otherwise it is compared letter by letter: it
    /// has names, or verbs that are not told apart, or stars that stand for some targets only.
    is_about_all: bool,
    rule_idx: usize,
}

impl CompiledRole {
    pub(crate) fn new(hashes: &Hashes, role: Arc<Role>) -> Self {
        let (mut mask, mut wild) = (Mask::NONE, WildVerbs::default());
        let (mut listed, mut unlisted) = (Vec::new(), Vec::new());
        let mut texts = TextsBuilder::default();
        let mut room = TargetRoom::default();
        for (rule_idx, rule) in role.rules.iter().enumerate() {
            let verbs = verbs(rule);
            let targets = room.targets(hashes, rule);
            add_to_mask(&mut mask, verbs, rule, &targets);
            if targets.is_none() {
                wild.resources |= if rule.resources.is_empty() { 0 } else { verbs };
                wild.paths |= if rule.non_resource_urls.is_empty() { 0 } else { verbs };
            }
            let is_plain = is_plain(rule, verbs);
            let named = targets.filter(|_| is_plain);
            let named = named.and_then(|targets| with_names(targets, rule, &mut texts));
            match u32::try_from(rule_idx).ok().zip(named) {
                Some((rule_idx, targets)) => {
                    let own = |(target, name)| Listed { target, verbs, rule_idx, name };
                    listed.extend(targets.into_iter().map(own));
                }
                None => {
                    let is_about_all = is_plain && is_about_all(rule);
                    unlisted.push(Unlisted { verbs, is_about_all, rule_idx });
                }
            }
        }
        listed.sort_unstable_by_key(|own| (own.target, own.rule_idx));
        let (listed, unlisted) = (listed.into(), unlisted.into());
        Self { role, mask, wild, listed, texts: texts.finish(), unlisted }
    }

    /// Reports whether some rule allows the request: what [`allows`](Self::allows) says, found by
    /// numbers and confirmed by the one name that they lead to.
    pub(crate) fn quickly_allows(&self, question: &Question<'_>) -> bool {
        let start = self.listed.partition_point(|own| own.target < question.target);
        let listed = self.listed.get(start..).unwrap_or_default().iter();
        let mut listed = listed.take_while(|own| own.target == question.target);
        listed.any(|own| {
            has_verb(own.verbs, question.verb) && self.is_called(own.name, question.attributes)
        }) || self
            .unlisted
            .iter()
            .any(|own| has_verb(own.verbs, question.verb) && self.unlisted_allows(own, question))
    }

    /// Reports whether this is the name of what is asked. Two names may have one hash.
    fn is_called(&self, name: PackedName, attributes: &Attributes<'_>) -> bool {
        let Some(entry) = self.texts.get(name.entry) else { return false };
        match (name.api_group, &attributes.target) {
            (Some(api_group), Target::Resource(resource)) => {
                self.texts.get(api_group) == Some(resource.api_group)
                    && matches_resource(entry, resource)
            }
            (None, Target::Path(path)) => entry == *path,
            (Some(_), Target::Path(_)) | (None, Target::Resource(_)) => false,
        }
    }

    fn unlisted_allows(&self, own: &Unlisted, question: &Question<'_>) -> bool {
        match own.is_about_all {
            true => question.attributes.resource().is_some(),
            false => {
                let rule = self.role.rules.get(own.rule_idx);
                rule.is_some_and(|rule| rule.allows(question.attributes))
            }
        }
    }

    /// The first rule that allows the request.
    pub(crate) fn allows(&self, attributes: &Attributes<'_>) -> Option<usize> {
        self.role.rules.iter().position(|rule| rule.allows(attributes))
    }
}

impl WildVerbs {
    pub(crate) const ALL: Self = Self { resources: ALL_VERBS, paths: ALL_VERBS };
}

/// The verbs of a set.
pub(crate) fn verbs_of(verbs: Verbs) -> impl Iterator<Item = VerbIdx> + Clone {
    (0..=OTHER_VERB).filter(move |verb| has_verb(verbs, *verb))
}

/// Reports whether a verb is in a set.
#[inline]
pub(crate) fn has_verb(verbs: Verbs, verb: VerbIdx) -> bool {
    verbs >> verb & 1 == 1
}

/// The targets of a rule, if it lists them: pairs of an API group and a resource, in this order, and
/// paths.
pub(crate) struct Targets {
    pub(crate) resources: Vec<u64>,
    pub(crate) paths: Vec<u64>,
}

pub(crate) fn verbs(rule: &PolicyRule) -> Verbs {
    match has(&rule.verbs, "*") {
        true => ALL_VERBS,
        false => rule.verbs.iter().fold(0, |verbs, verb| verbs | 1 << verb_idx(verb)),
    }
}

/// How many more targets of a role are listed.
pub(crate) struct TargetRoom(usize);

impl Default for TargetRoom {
    fn default() -> Self {
        Self(ROLE_TARGETS_MAX)
    }
}

impl TargetRoom {
    /// The targets of the next rule of a role, if it lists them.
    pub(crate) fn targets(&mut self, hashes: &Hashes, rule: &PolicyRule) -> Option<Targets> {
        let PolicyRule { api_groups, resources, non_resource_urls: urls, .. } = rule;
        let is_odd = |entry: &String| entry.starts_with('*') || entry.ends_with('/');
        let n_pairs = api_groups.len().saturating_mul(resources.len());
        let n_pairs_max = (api_groups.len() + resources.len()) * TARGETS_PER_ENTRY_MAX;
        let is_listed = n_pairs <= n_pairs_max
            && n_pairs + urls.len() <= self.0
            && !has(api_groups, "*")
            && !resources.iter().any(is_odd)
            && !urls.iter().any(|url| url.ends_with('*'));
        if !is_listed {
            return None;
        }
        self.0 -= n_pairs + urls.len();
        let pairs = api_groups
            .iter()
            .flat_map(|group| resources.iter().map(|entry| hashes.rule_resource(group, entry)));
        let paths = urls.iter().map(|url| hashes.path(url));
        Some(Targets { resources: pairs.collect(), paths: paths.collect() })
    }
}

/// The targets that [`TargetRoom`] lists for a rule, beside what they are called; `None` if there is no
/// room for the texts.
fn with_names(
    targets: Targets,
    rule: &PolicyRule,
    texts: &mut TextsBuilder,
) -> Option<Vec<(u64, PackedName)>> {
    let mut add = |list: &[String]| -> Option<Vec<Text>> {
        list.iter().map(|text| texts.add(text)).collect()
    };
    let (api_groups, entries) = (add(&rule.api_groups)?, add(&rule.resources)?);
    let paths = add(&rule.non_resource_urls)?;
    let entries = &entries;
    let pairs = api_groups.into_iter().flat_map(|api_group| {
        entries.iter().map(move |entry| PackedName { api_group: Some(api_group), entry: *entry })
    });
    let paths = paths.into_iter().map(|entry| PackedName { api_group: None, entry });
    let resources = targets.resources.into_iter().zip(pairs);
    Some(resources.chain(targets.paths.into_iter().zip(paths)).collect())
}

/// Reports whether a rule with these verbs grants them on whatever is called as its targets are.
pub(crate) fn is_plain(rule: &PolicyRule, verbs: Verbs) -> bool {
    // Verbs that are not told apart are one for a request with such a verb.
    let are_verbs_plain = verbs == ALL_VERBS || verbs & (1 << OTHER_VERB) == 0;
    are_verbs_plain && rule.resource_names.is_empty()
}

fn is_about_all(rule: &PolicyRule) -> bool {
    has(&rule.api_groups, "*") && has(&rule.resources, "*") && rule.non_resource_urls.is_empty()
}

fn add_to_mask(mask: &mut Mask, verbs: Verbs, rule: &PolicyRule, targets: &Option<Targets>) {
    for verb in verbs_of(verbs) {
        match targets {
            Some(Targets { resources, .. }) => {
                resources.iter().for_each(|target| mask.add_resource(verb, *target));
            }
            None if rule.resources.is_empty() => {}
            None => mask.add_resources(verb),
        }
    }
    match targets {
        Some(Targets { paths, .. }) => paths.iter().for_each(|target| mask.add_path(*target)),
        None if rule.non_resource_urls.is_empty() => {}
        None => mask.add_paths(),
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == wanted)
}

#[cfg(test)]
mod tests {
    use authz::Resource;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::*;
    use crate::mask::Masks;

    const VERBS: [&str; 5] = ["get", "list", "frob", "frobnicate", "*"];
    const GROUPS: [&str; 3] = ["", "apps", "*"];
    const RESOURCES: [&str; 10] =
        ["pods", "pods/log", "*/log", "pods/*", "*", "", "pods/", "/log", "a/b/c", "/"];
    const PARTS: [&str; 9] = ["pods", "log", "*", "", "pods/log", "/", "a", "b/c", "c"];
    const URLS: [&str; 7] = ["/api", "/api/*", "/api/**", "*", "/version", "", "pods"];

    fn list(from: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
        subsequence(from, 0..=3).prop_map(|list| list.into_iter().map(str::to_owned).collect())
    }

    fn rule() -> impl Strategy<Value = PolicyRule> {
        let names = prop_oneof![3 => Just(Vec::new()), 1 => list(&["", "a", "b"])];
        let urls = prop_oneof![Just(Vec::new()), list(&URLS)];
        (list(&VERBS), list(&GROUPS), list(&RESOURCES), names, urls).prop_map(
            |(verbs, api_groups, resources, resource_names, non_resource_urls)| PolicyRule {
                verbs,
                api_groups,
                resources,
                resource_names,
                non_resource_urls,
            },
        )
    }

    fn target() -> impl Strategy<Value = Target<'static>> {
        let parts = (select(&GROUPS[..]), select(&PARTS[..]), select(&PARTS[..]));
        let resource = (parts, select(&["", "a"][..])).prop_map(|(parts, name)| {
            let (api_group, resource, subresource) = parts;
            let resource =
                Resource { api_group, resource, subresource, name, ..Resource::default() };
            Target::Resource(resource)
        });
        prop_oneof![3 => resource, 1 => select(&URLS[..]).prop_map(Target::Path)]
    }

    proptest! {
        #[test]
        fn numbers_say_what_names_say_and_no_mask_turns_it_down(
            rules in prop::collection::vec(rule(), 0..4),
            requests in prop::collection::vec((select(&VERBS[..]), target()), 40),
            loses_hashes in any::<bool>(),
        ) {
            let hashes = if loses_hashes { Hashes::weak() } else { Hashes::default() };
            let role = Arc::new(Role { rules, ..Role::default() });
            let compiled = CompiledRole::new(&hashes, Arc::clone(&role));
            let spoken = hashes.spoken(&role);
            prop_assert!(spoken.is_sorted_by(|a, b| a.target < b.target));
            for (verb, target) in requests {
                let attributes = Attributes { user: None, verb, target };
                let Some(question) = Question::new(&hashes, &attributes) else { continue };
                let want = role.rules.iter().position(|rule| rule.allows(&attributes));
                prop_assert_eq!(compiled.allows(&attributes), want);
                prop_assert_eq!(compiled.quickly_allows(&question), want.is_some());
                let mut masks = Masks::default();
                masks.set(0, compiled.mask);
                prop_assert!(want.is_none() || masks.glance(question.probe).meets(0));
                let wild = match attributes.target {
                    Target::Resource(_) => compiled.wild.resources,
                    Target::Path(_) => compiled.wild.paths,
                };
                let is_spoken = spoken.iter().any(|own| {
                    own.target == question.target && has_verb(own.verbs, question.verb)
                });
                let is_wild = has_verb(wild, question.verb);
                prop_assert!(want.is_none() || is_wild || is_spoken);
            }
        }
    }

    #[test]
    fn two_listed_targets_are_one_line() {
        assert_eq!(size_of::<[Listed; 2]>(), 64);
    }

    #[test]
    fn most_of_what_a_role_does_not_speak_of_is_turned_down() {
        let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let rule = |verbs: &[&str], resources: &[&str]| PolicyRule {
            verbs: list(verbs),
            api_groups: list(&[""]),
            resources: list(resources),
            ..PolicyRule::default()
        };
        let everything = list(&["*"]);
        let paths = PolicyRule {
            verbs: everything.clone(),
            non_resource_urls: everything,
            ..PolicyRule::default()
        };
        let rules =
            vec![rule(&["get", "list"], &["pods", "pods/log"]), rule(&["*"], &["jobs"]), paths];
        let hashes = Hashes::default();
        let role = CompiledRole::new(&hashes, Arc::new(Role { rules, ..Role::default() }));
        let mut masks = Masks::default();
        masks.set(0, role.mask);
        let names: Vec<String> = (0..1000).map(|n| format!("other-{n}")).collect();
        let met = names.iter().filter(|name| {
            let resource = Resource { resource: name, ..Resource::default() };
            let target = Target::Resource(resource);
            let attributes = Attributes { user: None, verb: "get", target };
            Question::new(&hashes, &attributes).is_some_and(|it| masks.glance(it.probe).meets(0))
        });
        let n_met = met.count();
        assert!(n_met < 100, "{n_met}");
    }
}
