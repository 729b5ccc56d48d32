//! Why a request was almost allowed, for people who ask.

use authz::{Attributes, Event, Recorder, User};

use crate::decide::{binding_event, namespace_of};
use crate::policy::{Binding, Identity, PolicyRule, Role};
use crate::rule::{Part, parts_of};
use crate::snapshot::Snapshot;

/// The most near misses that are noted, so that an explanation stays readable.
const NEAR_MISSES_MAX: usize = 20;

/// Notes what almost allowed the request, the most telling first:
///
/// 1. a rule that the user holds and that lacks one part of the request;
/// 2. a binding of the user that would allow the request in another namespace;
/// 3. a user or group that is allowed the request and whose name is nearly that of the asker.
pub(crate) fn note(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
    recorder: &mut Recorder<'_>,
) {
    let mut misses = lacking_one_part(snapshot, user, attributes);
    misses.extend(in_other_namespaces(snapshot, user, attributes));
    misses.truncate(NEAR_MISSES_MAX);
    misses.extend(misspelt(snapshot, user, attributes));
    for miss in misses {
        recorder.note(|| miss);
    }
}

fn near_miss(binding: &Binding) -> Event {
    let mut event = binding_event(binding, usize::MAX);
    event.kind = "nearMiss".into();
    event
}

fn lacking_one_part(snapshot: &Snapshot, user: &User, attributes: &Attributes<'_>) -> Vec<Event> {
    let mut misses = Vec::new();
    for binding in snapshot.held_by(user, namespace_of(attributes)) {
        let rules = snapshot.find_role_of(binding).map(|role| role.rules.iter().enumerate());
        for (rule_idx, rule) in rules.into_iter().flatten() {
            if let Some(part) = only_missing_part(rule, attributes) {
                misses.push(
                    near_miss(binding)
                        .with("ruleIndex", rule_idx)
                        .with("lacks", part.field())
                        .with("has", part.of(rule).to_vec()),
                );
                if misses.len() >= NEAR_MISSES_MAX {
                    return misses;
                }
            }
        }
    }
    misses
}

/// The part of the request that the rule lacks, if it has all others.
fn only_missing_part(rule: &PolicyRule, attributes: &Attributes<'_>) -> Option<Part> {
    let mut missing =
        parts_of(attributes).iter().copied().filter(|part| !rule.has(*part, attributes));
    let first = missing.next()?;
    missing.next().is_none().then_some(first)
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
    for holdings in snapshot.holdings_of(user) {
        holdings.namespaces.for_each(&mut |namespace, held| {
            if namespace != asked && granting.len() < NEAR_MISSES_MAX {
                let bindings = held.iter().map(|held| held.binding.as_ref());
                granting.extend(bindings.filter(|binding| grants(snapshot, binding, attributes)));
            }
        });
    }
    granting.sort_unstable_by_key(|binding| (binding.namespace(), binding.name()));
    granting.dedup_by_key(|binding| (binding.namespace(), binding.name()));
    granting.into_iter().map(|binding| near_miss(binding).with("lacks", "namespace")).collect()
}

fn grants(snapshot: &Snapshot, binding: &Binding, attributes: &Attributes<'_>) -> bool {
    let allows = |role: &Role| role.rules.iter().any(|rule| rule.allows(attributes));
    snapshot.find_role_of(binding).is_some_and(|role| allows(role))
}

fn misspelt(snapshot: &Snapshot, user: &User, attributes: &Attributes<'_>) -> Vec<Event> {
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    for (binding, subject) in snapshot.granted_subjects(attributes) {
        match subject.identity(binding.namespace()) {
            Some(Identity::User(name)) => users.push(name),
            Some(Identity::Group(name)) => groups.push(name),
            None => {}
        }
    }
    let nearest = |what: &'static str, own: &str, known: &[String]| {
        let near = field::nearest(own, known.iter().map(String::as_str))?;
        let event = Event::new("nearMiss").with("lacks", "subject");
        Some(event.with(what, own).with("allowed", near))
    };
    let by_name = nearest("user", &user.name, &users);
    let by_group = user.groups.iter().filter_map(|group| nearest("group", group, &groups));
    by_name.into_iter().chain(by_group.take(NEAR_MISSES_MAX)).collect()
}
