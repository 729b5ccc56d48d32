//! Explaining decisions: which bindings were considered, and what almost allowed the request.

use std::borrow::Cow;
use std::cell::Cell;

use authz::{Attributes, Target, TraceEvent, TraceRecorder, User};

use crate::decide::{Grant, GrantSearchResult, describe_subject, request_namespace};
use crate::policy::{Binding, PolicyRule, Role};
use crate::rules::{RulePart, rule_parts_for_request};
use crate::snapshot::{RoleLookupError, Snapshot, UserBinding};

/// The maximum number of near misses that are recorded, so that an explanation stays readable.
const NEAR_MISSES_MAX: usize = 20;

/// The maximum number of elements of a list that are shown for a near miss.
const SHOWN_ELEMENTS_MAX: usize = 100;

/// The maximum number of names that are compared letter by letter for one explanation: all resources of all rules of
/// the user, and for each group of the user all groups that are allowed the request.
const COMPARISONS_MAX: usize = 20_000;

/// The number of names that may still be compared.
struct NameComparisonBudget(Cell<usize>);

impl NameComparisonBudget {
    /// Takes one comparison from the budget. Returns `false` if none is left.
    fn try_take_comparison(&self) -> bool {
        let rest = self.0.get().checked_sub(1);
        self.0.set(rest.unwrap_or_default());
        rest.is_some()
    }
}

/// Finds the binding that grants the request, the same one as `Snapshot::authorize`, and records every binding that it
/// examines. If no binding grants the request, it records near misses.
pub(crate) fn find_grant_and_record_trace<'s>(
    snapshot: &'s Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
    recorder: &mut TraceRecorder<'_>,
) -> GrantSearchResult<'s> {
    let mut has_dangling_bindings = false;
    for user_binding in snapshot.bindings_of_user(user, request_namespace(attributes)) {
        let UserBinding { binding, subject_idx, role } = user_binding;
        let event = || binding_trace_event(binding, Some(subject_idx));
        let Some(compiled) = role else {
            has_dangling_bindings = true;
            let error = RoleLookupError::new(binding).to_string();
            recorder.record_trace_event(|| {
                event()
                    .with_trace_event_value("allows", false)
                    .with_trace_event_value("error", error)
            });
            continue;
        };
        let mut rules = (0_usize..).zip(&compiled.role.rules);
        if let Some((rule_idx, rule)) = rules.find(|(_, rule)| rule.allows(attributes)) {
            recorder.record_trace_event(|| {
                let event = event()
                    .with_trace_event_value("allows", true)
                    .with_trace_event_value("ruleIndex", rule_idx);
                event.with_trace_event_value("rule", rule.to_string())
            });
            return GrantSearchResult::Granted(Grant { binding, subject_idx });
        }
        recorder.record_trace_event(|| event().with_trace_event_value("allows", false));
    }
    record_near_misses(snapshot, user, attributes, recorder);
    GrantSearchResult::NotGranted { has_dangling_bindings }
}

/// Records what almost allowed the request, the most useful first:
///
/// 1. a rule that the user holds and that does not match one part of the request; a rule about another
///    resource or path only if that is similar to the one of the request;
/// 2. a binding of the user that would allow the request in another namespace;
/// 3. a user or group that is allowed the request and has a name similar to that of the user.
fn record_near_misses(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
    recorder: &mut TraceRecorder<'_>,
) {
    let budget = &NameComparisonBudget(Cell::new(COMPARISONS_MAX));
    let mut misses = near_miss_rule_events(snapshot, user, attributes, budget);
    misses.extend(other_namespace_binding_events(snapshot, user, attributes));
    misses.truncate(NEAR_MISSES_MAX);
    misses.extend(similar_subject_events(snapshot, user, attributes, budget));
    for miss in misses {
        recorder.record_trace_event(|| miss);
    }
}

fn binding_trace_event(binding: &Binding, subject_idx: Option<usize>) -> TraceEvent {
    let mut event = TraceEvent::new("binding").with_trace_event_value("name", binding.name());
    if let Some(namespace) = binding.namespace().name() {
        event = event.with_trace_event_value("namespace", namespace);
    }
    let event = event.with_trace_event_value(
        "role",
        format!("{} {}", binding.role_ref.kind, binding.role_ref.name),
    );
    match subject_idx.and_then(|idx| binding.subjects.get(idx)) {
        Some(subject) => {
            event.with_trace_event_value("subject", describe_subject(subject, binding.namespace()))
        }
        None => event,
    }
}

fn near_miss_trace_event(binding: &Binding) -> TraceEvent {
    let mut event = binding_trace_event(binding, None);
    event.kind = "nearMiss".into();
    event
}

fn near_miss_rule_events(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
    budget: &NameComparisonBudget,
) -> Vec<TraceEvent> {
    let mut misses = Vec::new();
    for UserBinding { binding, role, .. } in
        snapshot.bindings_of_user(user, request_namespace(attributes))
    {
        let rules = role.map(|compiled| compiled.role.rules.iter().enumerate());
        for (rule_idx, rule) in rules.into_iter().flatten() {
            if let Some(part) = only_missing_rule_part(rule, attributes, budget) {
                let elements = part.values_in_rule(rule).iter().take(SHOWN_ELEMENTS_MAX);
                misses.push(
                    near_miss_trace_event(binding)
                        .with_trace_event_value("ruleIndex", rule_idx)
                        .with_trace_event_value("lacks", part.manifest_field_name())
                        .with_trace_event_value("has", elements.cloned().collect::<Vec<_>>()),
                );
                if misses.len() >= NEAR_MISSES_MAX {
                    return misses;
                }
            }
        }
    }
    misses
}

/// The one part of the request that the rule does not match, if that is a useful hint.
fn only_missing_rule_part(
    rule: &PolicyRule,
    attributes: &Attributes<'_>,
    budget: &NameComparisonBudget,
) -> Option<RulePart> {
    let parts = rule_parts_for_request(attributes).iter().copied();
    let mut missing = parts.filter(|part| !rule.matches_request_part(*part, attributes));
    let first = missing.next()?;
    (missing.next().is_none() && is_missing_part_worth_showing(first, rule, attributes, budget))
        .then_some(first)
}

/// Reports whether a missing part is worth showing. Very many rules match all of a request but its
/// resource, so a rule about another resource or path is shown only if that is similar: misspelt, or a
/// subresource or subpath of the same.
fn is_missing_part_worth_showing(
    part: RulePart,
    rule: &PolicyRule,
    attributes: &Attributes<'_>,
    budget: &NameComparisonBudget,
) -> bool {
    let is_similar = |requested: &str| {
        let elements = part.values_in_rule(rule).iter();
        let elements = elements.map(|element| element.trim_end_matches(['*', '/']));
        let is_part = |whole: &str, part: &str| {
            part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('/')) && whole.len() > 1
        };
        let mut elements = elements.filter(|element| !element.is_empty());
        elements.any(|element| {
            is_part(element, requested)
                || is_part(requested, element)
                || (budget.try_take_comparison()
                    && field_errors::nearest_word(requested, [element]).is_some())
        })
    };
    match (part, &attributes.target) {
        (RulePart::Resource, Target::Resource(resource)) if resource.subresource.is_empty() => {
            is_similar(resource.resource)
        }
        (RulePart::Resource, Target::Resource(resource)) => {
            is_similar(&format!("{}/{}", resource.resource, resource.subresource))
        }
        (RulePart::Path, Target::Path(path)) => is_similar(path),
        (RulePart::Verb | RulePart::ApiGroup | RulePart::ResourceName, _)
        | (RulePart::Resource, Target::Path(_))
        | (RulePart::Path, Target::Resource(_)) => true,
    }
}

fn other_namespace_binding_events(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
) -> Vec<TraceEvent> {
    if attributes.resource().is_none() {
        return Vec::new();
    }
    let requested_namespace = request_namespace(attributes);
    let mut granting_bindings: Vec<&Binding> = Vec::new();
    for namespace in snapshot.namespaces().filter(|name| *name != requested_namespace) {
        let Some(scope) = snapshot.scope_objects(namespace) else { continue };
        let held_bindings = snapshot.bindings_in_scope(user, scope).into_iter();
        let granting = held_bindings.filter(|user_binding| {
            user_binding.role.is_some_and(|compiled| any_rule_allows(&compiled.role, attributes))
        });
        granting_bindings.extend(granting.map(|user_binding| user_binding.binding.as_ref()));
        if granting_bindings.len() >= NEAR_MISSES_MAX {
            break;
        }
    }
    granting_bindings.sort_unstable_by_key(|binding| (binding.namespace(), binding.name()));
    let events = granting_bindings.into_iter().map(near_miss_trace_event);
    events.map(|event| event.with_trace_event_value("lacks", "namespace")).collect()
}

fn any_rule_allows(role: &Role, attributes: &Attributes<'_>) -> bool {
    role.rules.iter().any(|rule| rule.allows(attributes))
}

fn similar_subject_events(
    snapshot: &Snapshot,
    user: &User,
    attributes: &Attributes<'_>,
    budget: &NameComparisonBudget,
) -> Vec<TraceEvent> {
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    for binding in snapshot.granting_bindings(attributes) {
        for subject in &binding.subjects {
            users.extend(subject.user_name(binding.namespace()).map(Cow::into_owned));
            groups.extend(subject.group_name().map(str::to_owned));
        }
    }
    let nearest = |field: &'static str, own: &str, allowed: &[String]| {
        let candidates =
            allowed.iter().map(String::as_str).take_while(|_| budget.try_take_comparison());
        let similar = field_errors::nearest_word(
            own,
            candidates.filter(|name| are_names_similar_after_shared_prefix(own, name)),
        )?;
        let event = TraceEvent::new("nearMiss").with_trace_event_value("lacks", "subject");
        Some(event.with_trace_event_value(field, own).with_trace_event_value("allowed", similar))
    };
    let by_name = nearest("user", &user.name, &users);
    let by_group = user.groups.iter().filter_map(|group| nearest("group", group, &groups));
    by_name.into_iter().chain(by_group.take(NEAR_MISSES_MAX)).collect()
}

/// Reports whether two names are similar after the parts up to a colon that they share. The names of
/// service accounts are long and begin alike, which does not make them similar.
fn are_names_similar_after_shared_prefix(own: &str, other: &str) -> bool {
    let n_shared = own.split(':').zip(other.split(':')).take_while(|(a, b)| a == b).count();
    let rest = |name: &str| name.split(':').skip(n_shared).collect::<Vec<_>>().join(":");
    field_errors::nearest_word(&rest(own), [rest(other).as_str()]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    use authz::{Resource, Verb};

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

    fn large_budget() -> NameComparisonBudget {
        NameComparisonBudget(Cell::new(COMPARISONS_MAX))
    }

    #[test]
    fn another_resource_is_a_hint_if_it_is_similar() {
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
            let attributes = Attributes { user: None, verb: Verb::GET, target };
            let rule = rule([&["get"], &[""], entries, &[]]);
            let missing = only_missing_rule_part(&rule, &attributes, &large_budget());
            assert_eq!(missing, want.then_some(RulePart::Resource), "{entries:?} {asked:?}");
        }
    }

    #[test]
    fn another_path_is_a_hint_if_it_is_similar() {
        for (entry, path, want) in [
            ("/healthz", "/healtz", true),
            ("/healthz", "/healthz/ping", true),
            ("/healthz/*", "/healthz", true),
            ("/healthz", "/metrics", false),
            ("/", "/metrics", false),
        ] {
            let attributes = Attributes { user: None, verb: Verb::GET, target: Target::Path(path) };
            let rule = rule([&["get"], &[], &[], &[entry]]);
            let missing = only_missing_rule_part(&rule, &attributes, &large_budget());
            assert_eq!(missing, want.then_some(RulePart::Path), "{entry} {path}");
        }
    }

    #[test]
    fn a_shared_prefix_does_not_make_names_similar() {
        for (own, other, want) in [
            ("devs", "dev", true),
            ("system:serviceaccount:prod:ci", "system:serviceaccount:prod:cd", true),
            ("system:serviceaccount:prod:ci", "system:serviceaccount:kube-system:ci", false),
            ("system:serviceaccount:prod:builder", "system:serviceaccount:prod:job", false),
            ("system:nodes", "system:node", true),
        ] {
            assert_eq!(are_names_similar_after_shared_prefix(own, other), want, "{own} {other}");
        }
    }
}
