//! Explaining a decision: the policy that grants the request, or those that nearly do.

use std::collections::HashSet;

use authz::{Attributes, Target, TraceEvent, User};

use crate::policy::{Policy, Subject, covers_path, covers_value};
use crate::snapshot::Snapshot;

/// The largest number of near misses in one explanation: enough to find a typing error, few enough to
/// read.
pub const NEAR_MISSES_MAX: usize = 10;

/// A policy that differs from the request in one part.
#[derive(Debug)]
pub(crate) struct NearMiss<'p> {
    policy: &'p Policy,
    mismatch: Mismatch,
}

/// The part in which a policy differs from a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mismatch {
    /// The policy is for a user of a similar name.
    User,
    /// The user is not in the group of the policy, or is in one of a similar name.
    Group,
    /// The policy is read-only and the request is not.
    Verb,
    /// The policy is for another namespace.
    Namespace,
    /// The policy is for a resource of a similar name.
    Resource,
    /// The policy is for another API group.
    ApiGroup,
    /// The policy is for a similar path.
    NonResourcePath,
}

impl Mismatch {
    /// The name of the part in an explanation. It is that of the field in a policy, if there is one.
    fn mismatched_field_name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
            Self::Verb => "verb",
            Self::Namespace => "namespace",
            Self::Resource => "resource",
            Self::ApiGroup => "apiGroup",
            Self::NonResourcePath => "nonResourcePath",
        }
    }
}

impl NearMiss<'_> {
    /// Makes the trace event of the near miss: the policy, and the part in which it differs from the request.
    pub(crate) fn to_trace_event(&self) -> TraceEvent {
        policy_trace_event(self.policy)
            .with_trace_event_value("matches", false)
            .with_trace_event_value("lacks", self.mismatch.mismatched_field_name())
    }
}

/// Makes a trace event with the line of a policy and its parts. Empty parts are left out.
pub(crate) fn policy_trace_event(policy: &Policy) -> TraceEvent {
    let spec = policy.spec();
    let mut event = TraceEvent::new("rule").with_trace_event_value("line", policy.line_number());
    for (field_name, value) in [
        ("user", &spec.user),
        ("group", &spec.group),
        ("namespace", &spec.namespace),
        ("resource", &spec.resource),
        ("apiGroup", &spec.api_group),
        ("nonResourcePath", &spec.non_resource_path),
    ] {
        if !value.is_empty() {
            event = event.with_trace_event_value(field_name, value.as_str());
        }
    }
    event.with_trace_event_value("readonly", spec.is_readonly)
}

/// Finds the near misses of a request that no policy grants, in file order.
///
/// 1. The policies of the user that differ from the request in one part.
/// 2. The first policy for the user as a member of each group that the user is not in.
/// 3. The first policy for each user and group of a similar name. This reads all policies, which costs
///    time only if an explanation is requested.
pub(crate) fn find_near_misses<'p>(
    snapshot: &'p Snapshot,
    attributes: &Attributes<'_>,
) -> Vec<NearMiss<'p>> {
    let Some(user) = attributes.user else { return Vec::new() };
    let policies_of_user = snapshot.policies_of_user(user).filter_map(|policy| {
        only_mismatch(policy, attributes).map(|mismatch| NearMiss { policy, mismatch })
    });
    let mut similar_subjects = HashSet::new();
    let policies_of_others = snapshot.policies().iter().filter_map(|policy| {
        let mismatch = near_miss_of_subject(policy.subject(), user)?;
        let grants = policy.matches_verb(attributes) && policy.matches_target(&attributes.target);
        (grants && similar_subjects.insert(policy.subject()))
            .then_some(NearMiss { policy, mismatch })
    });
    let mut near_misses: Vec<NearMiss<'p>> = policies_of_user.take(NEAR_MISSES_MAX).collect();
    near_misses.extend(policies_of_others.take(NEAR_MISSES_MAX));
    near_misses.sort_by_key(|near_miss| near_miss.policy.line_number());
    near_misses.truncate(NEAR_MISSES_MAX);
    near_misses
}

/// Returns how the subject of a policy differs from the user. Returns `None` if the subject matches or is not
/// similar.
fn near_miss_of_subject(subject: Subject<'_>, user: &User) -> Option<Mismatch> {
    match subject {
        Subject::User(name) => is_similar_name(name, &user.name).then_some(Mismatch::User),
        Subject::Group(name) => {
            user.groups.iter().any(|group| is_similar_name(name, group)).then_some(Mismatch::Group)
        }
        Subject::Member { user: name, group } => {
            (name == user.name && !user.is_in_group(group)).then_some(Mismatch::Group)
        }
        Subject::Nobody => None,
    }
}

/// The part in which a policy of the user differs from the request, if it is the only one. A resource or
/// a path counts only if it is similar.
fn only_mismatch(policy: &Policy, attributes: &Attributes<'_>) -> Option<Mismatch> {
    let spec = policy.spec();
    let verb = (!policy.matches_verb(attributes)).then_some(Mismatch::Verb);
    let mut mismatches = match &attributes.target {
        // A policy for paths only has no resource, and is not a near miss of any resource.
        Target::Resource(_) if spec.resource.is_empty() => return None,
        Target::Resource(request) => [
            verb,
            (!covers_value(&spec.namespace, request.namespace.as_str()))
                .then_some(Mismatch::Namespace),
            (!covers_value(&spec.resource, request.resource)).then_some(Mismatch::Resource),
            (!covers_value(&spec.api_group, request.api_group)).then_some(Mismatch::ApiGroup),
        ],
        Target::Path(path) => {
            let is_covered = covers_path(&spec.non_resource_path, path);
            [verb, (!is_covered).then_some(Mismatch::NonResourcePath), None, None]
        }
    }
    .into_iter()
    .flatten();
    let mismatch = mismatches.next()?;
    if mismatches.next().is_some() {
        return None;
    }
    let is_near = match (&attributes.target, mismatch) {
        (Target::Resource(request), Mismatch::Resource) => {
            is_similar_name(&spec.resource, request.resource)
        }
        (Target::Path(path), Mismatch::NonResourcePath) => {
            let prefix = spec.non_resource_path.trim_end_matches('*');
            is_similar_name(prefix, path) || is_similar_name(&spec.non_resource_path, path)
        }
        (_, _) => true,
    };
    is_near.then_some(mismatch)
}

/// Reports whether two different names differ only in case, or in one character that is changed, added
/// or left out. A name of one character is similar to none.
fn is_similar_name(a: &str, b: &str) -> bool {
    if a == b || a.chars().nth(1).is_none() || b.chars().nth(1).is_none() {
        return false;
    }
    if a.eq_ignore_ascii_case(b) {
        return true;
    }
    let equal_chars = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
    let n_equal_bytes: usize = equal_chars.map(|(c, _)| c.len_utf8()).sum();
    let a = a.get(n_equal_bytes..).unwrap_or_default();
    let b = b.get(n_equal_bytes..).unwrap_or_default();
    let first_len = |text: &str| text.chars().next().map_or(0, char::len_utf8);
    let (a_rest, b_rest) = (a.get(first_len(a)..), b.get(first_len(b)..));
    a_rest == b_rest || a_rest == Some(b) || b_rest == Some(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_differ_in_one_character_or_in_case() {
        for (a, b, want) in [
            ("pods", "pods", false),
            ("pods", "pod", true),
            ("pods", "PODS", true),
            ("pods", "pobs", true),
            ("pods", "apods", true),
            ("pods", "podds", true),
            ("pods", "pdos", false),
            ("pods", "nodes", false),
            ("größe", "grösse", false),
            ("größe", "gröe", true),
            ("größe", "große", true),
            ("a", "b", false),
            ("ab", "b", false),
            ("", "a", false),
        ] {
            assert_eq!(is_similar_name(a, b), want, "{a} {b}");
            assert_eq!(is_similar_name(b, a), want, "{b} {a}");
        }
    }
}
