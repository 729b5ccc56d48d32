//! Roles as numbers, so that most are turned down at a glance and no text is compared for the rest.

use std::sync::Arc;

use authz::Attributes;

use crate::mask::Mask;
use crate::policy::{PolicyRule, Role};
use crate::question::{Hashes, OTHER_VERB, Question, VerbIdx, verb_idx};

/// The most targets of a rule that are listed. A rule with more is compared letter by letter.
const RULE_TARGETS_MAX: usize = 1024;

/// A set of verbs: a bit for each number.
pub(crate) type Verbs = u32;
const ALL_VERBS: Verbs = Verbs::MAX;

/// A role and its rules as numbers.
#[derive(Debug)]
pub(crate) struct CompiledRole {
    pub(crate) role: Arc<Role>,
    /// What the rules speak of.
    pub(crate) mask: Mask,
    /// Whether they speak of targets that are not listed.
    pub(crate) wild: Wild,
    /// What plain rules grant, in the order of targets and, for each, of rules.
    listed: Box<[Listed]>,
    /// The other rules in their order.
    unlisted: Box<[Unlisted]>,
}

/// Of what a role speaks beside the targets that it lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wild {
    pub(crate) resources: bool,
    pub(crate) paths: bool,
}

/// A plain rule grants these verbs on this target.
#[derive(Debug, Clone, Copy)]
struct Listed {
    target: u64,
    verbs: Verbs,
    rule_idx: usize,
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
        let (mut mask, mut wild) = (Mask::NONE, Wild::default());
        let (mut listed, mut unlisted) = (Vec::new(), Vec::new());
        for (rule_idx, rule) in role.rules.iter().enumerate() {
            let verbs = verbs(rule);
            let targets = targets(hashes, rule);
            add_to_mask(&mut mask, verbs, rule, &targets);
            wild.resources |= targets.is_none() && !rule.resources.is_empty();
            wild.paths |= targets.is_none() && !rule.non_resource_urls.is_empty();
            // Verbs that are not told apart are one for a request with such a verb.
            let are_verbs_plain = verbs == ALL_VERBS || verbs & (1 << OTHER_VERB) == 0;
            match targets {
                Some(Targets { resources, paths })
                    if are_verbs_plain && rule.resource_names.is_empty() =>
                {
                    let all = resources.into_iter().chain(paths);
                    listed.extend(all.map(|target| Listed { target, verbs, rule_idx }));
                }
                _ => {
                    let is_about_all =
                        are_verbs_plain && rule.resource_names.is_empty() && is_about_all(rule);
                    unlisted.push(Unlisted { verbs, is_about_all, rule_idx });
                }
            }
        }
        listed.sort_unstable_by_key(|own| (own.target, own.rule_idx));
        Self { role, mask, wild, listed: listed.into(), unlisted: unlisted.into() }
    }

    /// The first rule that may allow the request: it does unless two targets have one hash. If there
    /// is none, no rule allows it.
    pub(crate) fn may_allow(&self, question: &Question<'_>) -> Option<usize> {
        let start = self.listed.partition_point(|own| own.target < question.target);
        let listed = self.listed.get(start..).unwrap_or_default().iter();
        let mut listed = listed.take_while(|own| own.target == question.target);
        let listed = listed.find(|own| has_verb(own.verbs, question.verb)).map(|own| own.rule_idx);
        for own in &self.unlisted {
            if listed.is_some_and(|listed| listed < own.rule_idx) {
                break;
            }
            if has_verb(own.verbs, question.verb) && self.unlisted_allows(own, question) {
                return Some(own.rule_idx);
            }
        }
        listed
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

impl Wild {
    pub(crate) const ALL: Self = Self { resources: true, paths: true };
}

impl Hashes {
    /// The targets that a role lists, each once, beside the verbs that it speaks of there. Those of
    /// a role of a namespace are mixed with its hash.
    pub(crate) fn spoken(&self, role: &Role) -> Vec<(u64, Verbs)> {
        let namespace = self.namespace(&role.metadata.namespace);
        let of_rule = |rule: &PolicyRule| {
            let verbs = verbs(rule);
            let targets = targets(self, rule).into_iter();
            let all = targets.flat_map(|own| own.resources.into_iter().chain(own.paths));
            all.map(move |target| (target ^ namespace, verbs))
        };
        let mut spoken: Vec<(u64, Verbs)> = role.rules.iter().flat_map(of_rule).collect();
        spoken.sort_unstable();
        spoken.dedup_by(|(target, verbs), (kept, kept_verbs)| {
            let is_same = target == kept;
            *kept_verbs |= if is_same { *verbs } else { 0 };
            is_same
        });
        spoken
    }
}

/// Reports whether a verb is in a set.
#[inline]
pub(crate) fn has_verb(verbs: Verbs, verb: VerbIdx) -> bool {
    verbs >> verb & 1 == 1
}

/// The targets of a rule, if it lists them.
struct Targets {
    resources: Vec<u64>,
    paths: Vec<u64>,
}

fn verbs(rule: &PolicyRule) -> Verbs {
    match has(&rule.verbs, "*") {
        true => ALL_VERBS,
        false => rule.verbs.iter().fold(0, |verbs, verb| verbs | 1 << verb_idx(verb)),
    }
}

fn targets(hashes: &Hashes, rule: &PolicyRule) -> Option<Targets> {
    let is_odd = |entry: &String| entry.starts_with('*') || entry.ends_with('/');
    let is_listed = !has(&rule.api_groups, "*")
        && !rule.resources.iter().any(is_odd)
        && !rule.non_resource_urls.iter().any(|url| url.ends_with('*'))
        && rule.api_groups.len() * rule.resources.len() <= RULE_TARGETS_MAX;
    let pairs = rule
        .api_groups
        .iter()
        .flat_map(|group| rule.resources.iter().map(|entry| hashes.rule_resource(group, entry)));
    let paths = rule.non_resource_urls.iter().map(|url| hashes.path(url));
    is_listed.then(|| Targets { resources: pairs.collect(), paths: paths.collect() })
}

fn is_about_all(rule: &PolicyRule) -> bool {
    has(&rule.api_groups, "*") && has(&rule.resources, "*") && rule.non_resource_urls.is_empty()
}

fn add_to_mask(mask: &mut Mask, verbs: Verbs, rule: &PolicyRule, targets: &Option<Targets>) {
    for verb in (0..=OTHER_VERB).filter(|verb: &VerbIdx| verbs >> verb & 1 == 1) {
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
    use authz::{Resource, Target};
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
        fn what_a_rule_allows_is_never_turned_down(
            rules in prop::collection::vec(rule(), 0..4),
            requests in prop::collection::vec((select(&VERBS[..]), target()), 40),
            loses_hashes in any::<bool>(),
        ) {
            let hashes = if loses_hashes { Hashes::weak() } else { Hashes::default() };
            let role = Arc::new(Role { rules, ..Role::default() });
            let compiled = CompiledRole::new(&hashes, Arc::clone(&role));
            let spoken = hashes.spoken(&role);
            prop_assert!(spoken.is_sorted_by(|(a, _), (b, _)| a < b));
            for (verb, target) in requests {
                let attributes = Attributes { user: None, verb, target };
                let Some(question) = Question::new(&hashes, &attributes) else { continue };
                let want = role.rules.iter().position(|rule| rule.allows(&attributes));
                let may = compiled.may_allow(&question);
                prop_assert_eq!(compiled.allows(&attributes), want);
                match loses_hashes {
                    false => prop_assert_eq!(may, want),
                    true => prop_assert!(want.is_none_or(|idx| may.is_some_and(|own| own <= idx))),
                }
                let mut masks = Masks::default();
                masks.set(0, compiled.mask);
                prop_assert!(want.is_none() || masks.glance(question.probe).meets(0));
                let is_wild = match attributes.target {
                    Target::Resource(_) => compiled.wild.resources,
                    Target::Path(_) => compiled.wild.paths,
                };
                let is_spoken = spoken.iter().any(|(target, verbs)| {
                    *target == question.target && has_verb(*verbs, question.verb)
                });
                prop_assert!(want.is_none() || is_wild || is_spoken);
            }
        }
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
