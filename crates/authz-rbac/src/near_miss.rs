//! Why a request was almost allowed, for people who ask.

use std::cell::Cell;

use authz::{Attributes, Event, Recorder, Target, User};

use crate::decide::{binding_event, namespace_of};
use crate::policy::{Binding, Identity, PolicyRule, Role};
use crate::rule::{Part, parts_of};
use crate::snapshot::Snapshot;

/// The most near misses that are noted, so that an explanation stays readable.
const NEAR_MISSES_MAX: usize = 20;

/// The most entries of a list that are shown for a near miss.
const SHOWN_ENTRIES_MAX: usize = 100;

/// The most names that are compared letter by letter for one explanation. There are as many as rules
/// have entries, and for each group of the asker as many as others have groups.
const COMPARISONS_MAX: usize = 20_000;

/// How many more names are compared.
struct Comparisons(Cell<usize>);

impl Comparisons {
    /// Reports whether one more name is compared.
    fn takes_one(&self) -> bool {
        let rest = self.0.get().checked_sub(1);
        self.0.set(rest.unwrap_or_default());
        rest.is_some()
    }
}

/// Notes what almost allowed the request, the most telling first:
///
/// 1. a rule that the user holds and that lacks one part of the request; a rule about another
///    resource or path only if it is nearly the one that is asked for;
/// 2. a binding of the user that would allow the request in another namespace;
/// 3. a user or group that is allowed the request and whose name is nearly that of the asker.
pub(crate) fn note(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
    recorder: &mut Recorder<'_>,
) {
    let names = &Comparisons(Cell::new(COMPARISONS_MAX));
    let mut misses = lacking_one_part(snapshot, user, attributes, names);
    misses.extend(in_other_namespaces(snapshot, user, attributes));
    misses.truncate(NEAR_MISSES_MAX);
    misses.extend(misspelt(snapshot, user, attributes, names));
    for miss in misses {
        recorder.note(|| miss);
    }
}

fn near_miss(binding: &Binding) -> Event {
    let mut event = binding_event(binding, usize::MAX);
    event.kind = "nearMiss".into();
    event
}

fn lacking_one_part(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
    names: &Comparisons,
) -> Vec<Event> {
    let mut misses = Vec::new();
    for binding in snapshot.held_by(user, namespace_of(attributes)) {
        let rules = snapshot.find_role_of(binding).map(|role| role.rules.iter().enumerate());
        for (rule_idx, rule) in rules.into_iter().flatten() {
            if let Some(part) = only_missing_part(rule, attributes, names) {
                let entries = part.of(rule).iter().take(SHOWN_ENTRIES_MAX);
                misses.push(
                    near_miss(binding)
                        .with("ruleIndex", rule_idx)
                        .with("lacks", part.field())
                        .with("has", entries.cloned().collect::<Vec<_>>()),
                );
                if misses.len() >= NEAR_MISSES_MAX {
                    return misses;
                }
            }
        }
    }
    misses
}

/// The part of the request that the rule lacks, if it has all others and the part tells something.
fn only_missing_part(
    rule: &PolicyRule,
    attributes: &Attributes<'_>,
    names: &Comparisons,
) -> Option<Part> {
    let mut missing =
        parts_of(attributes).iter().copied().filter(|part| !rule.has(*part, attributes));
    let first = missing.next()?;
    (missing.next().is_none() && is_telling(first, rule, attributes, names)).then_some(first)
}

/// Every rule with the verb lacks only the resource, so what counts is that it is nearly the same:
/// misspelt, or another part of the same thing.
fn is_telling(
    part: Part,
    rule: &PolicyRule,
    attributes: &Attributes<'_>,
    names: &Comparisons,
) -> bool {
    let is_near = |asked: &str| {
        let entries = part.of(rule).iter().map(|entry| entry.trim_end_matches(['*', '/']));
        let is_part = |whole: &str, part: &str| {
            part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('/')) && whole.len() > 1
        };
        let mut entries = entries.filter(|entry| !entry.is_empty());
        entries.any(|entry| {
            is_part(entry, asked)
                || is_part(asked, entry)
                || (names.takes_one() && field_errors::nearest(asked, [entry]).is_some())
        })
    };
    match (part, &attributes.target) {
        (Part::Resource, Target::Resource(asked)) if asked.subresource.is_empty() => {
            is_near(asked.resource)
        }
        (Part::Resource, Target::Resource(asked)) => {
            is_near(&format!("{}/{}", asked.resource, asked.subresource))
        }
        (Part::Path, Target::Path(path)) => is_near(path),
        (Part::Verb | Part::ApiGroup | Part::ResourceName, _)
        | (Part::Resource, Target::Path(_))
        | (Part::Path, Target::Resource(_)) => true,
    }
}

fn in_other_namespaces(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
) -> Vec<Event> {
    if attributes.resource().is_none() {
        return Vec::new();
    }
    let asked = namespace_of(attributes);
    let mut granting: Vec<&Binding> = Vec::new();
    snapshot.for_each_namespace(&mut |namespace, _| {
        if namespace != asked && granting.len() < NEAR_MISSES_MAX {
            let held = snapshot.visits_in(user, namespace).into_iter().map(|visit| visit.binding);
            let held = held.map(AsRef::as_ref);
            granting.extend(held.filter(|binding| grants(snapshot, binding, attributes)));
        }
    });
    granting.sort_unstable_by_key(|binding| (binding.namespace(), binding.name()));
    granting.into_iter().map(|binding| near_miss(binding).with("lacks", "namespace")).collect()
}

fn grants(snapshot: &Snapshot, binding: &Binding, attributes: &Attributes<'_>) -> bool {
    let allows = |role: &Role| role.rules.iter().any(|rule| rule.allows(attributes));
    snapshot.find_role_of(binding).is_some_and(|role| allows(role))
}

fn misspelt(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
    names: &Comparisons,
) -> Vec<Event> {
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    for (binding, subject) in snapshot.granted_subjects(attributes) {
        match subject.identity(binding.namespace()) {
            Some(Identity::User(name)) => users.push(name),
            Some(Identity::Group(name)) => groups.push(name),
            None => {}
        }
    }
    let nearest = |what: &'static str, own: &str, known: &[String]| {
        let candidates = known.iter().map(String::as_str).take_while(|_| names.takes_one());
        let near =
            field_errors::nearest(own, candidates.filter(|name| is_near_in_its_place(own, name)))?;
        let event = Event::new("nearMiss").with("lacks", "subject");
        Some(event.with(what, own).with("allowed", near))
    };
    let by_name = nearest("user", &user.name, &users);
    let by_group = user.groups.iter().filter_map(|group| nearest("group", group, &groups));
    by_name.into_iter().chain(by_group.take(NEAR_MISSES_MAX)).collect()
}

/// Names of the system are long and begin alike, so what they have in common up to a colon does not
/// make them near.
fn is_near_in_its_place(own: &str, other: &str) -> bool {
    let is_same = |(a, b): &(&str, &str)| a == b;
    let n_shared = own.split(':').zip(other.split(':')).take_while(is_same).count();
    let rest = |name: &str| name.split(':').skip(n_shared).collect::<Vec<_>>().join(":");
    field_errors::nearest(&rest(own), [rest(other).as_str()]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    use authz::Resource;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    fn rule([verbs, api_groups, resources, urls]: [&[&str]; 4]) -> PolicyRule {
        PolicyRule {
            verbs: list(verbs),
            api_groups: list(api_groups),
            resources: list(resources),
            non_resource_urls: list(urls),
            ..PolicyRule::default()
        }
    }

    fn many() -> Comparisons {
        Comparisons(Cell::new(COMPARISONS_MAX))
    }

    #[test]
    fn another_resource_is_near_if_it_is_nearly_the_same() {
        for (entries, asked, want) in [
            (&["pods"][..], ("pod", ""), true),
            (&["pods"], ("secrets", ""), false),
            (&["pods"], ("pods", "log"), true),
            (&["pods/log"], ("pods", ""), true),
            (&["pods/log"], ("pods", "exec"), false),
            (&["nodes", "pods/*"], ("pods", "exec"), true),
            (&["*/scale"], ("pods", ""), false),
        ] {
            let (resource, subresource) = asked;
            let resource = Resource { resource, subresource, ..Resource::default() };
            let target = Target::Resource(resource);
            let attributes = Attributes { user: None, verb: "get", target };
            let rule = rule([&["get"], &[""], entries, &[]]);
            let missing = only_missing_part(&rule, &attributes, &many());
            assert_eq!(missing, want.then_some(Part::Resource), "{entries:?} {asked:?}");
        }
    }

    #[test]
    fn another_path_is_near_if_it_is_nearly_the_same() {
        for (entry, path, want) in [
            ("/healthz", "/healtz", true),
            ("/healthz", "/healthz/ping", true),
            ("/healthz/*", "/healthz", true),
            ("/healthz", "/metrics", false),
            ("/", "/metrics", false),
        ] {
            let attributes = Attributes { user: None, verb: "get", target: Target::Path(path) };
            let rule = rule([&["get"], &[], &[], &[entry]]);
            let missing = only_missing_part(&rule, &attributes, &many());
            assert_eq!(missing, want.then_some(Part::Path), "{entry} {path}");
        }
    }

    #[test]
    fn a_long_beginning_makes_no_names_near() {
        for (own, other, want) in [
            ("devs", "dev", true),
            ("system:serviceaccount:prod:ci", "system:serviceaccount:prod:cd", true),
            ("system:serviceaccount:prod:ci", "system:serviceaccount:kube-system:ci", false),
            ("system:serviceaccount:prod:builder", "system:serviceaccount:prod:job", false),
            ("system:nodes", "system:node", true),
        ] {
            assert_eq!(is_near_in_its_place(own, other), want, "{own} {other}");
        }
    }
}
