//! Policies that would have granted a request but for one thing.

use std::collections::HashSet;

use authz::{Attributes, Target, User};

use crate::decide::Policies;
use crate::policy::{Policy, Subject, covers, covers_path};

/// The most near misses in one explanation: enough to find the typing error, few enough to read.
pub const NEAR_MISSES_MAX: usize = 10;

/// A policy and the one thing that it lacks.
#[derive(Debug)]
pub(crate) struct NearMiss<'p> {
    pub(crate) policy: &'p Policy,
    pub(crate) lack: Lack,
}

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The policy is for a user of almost this name.
    User,
    /// The user is not in the group of the policy, or in one of almost this name.
    Group,
    /// The policy is read-only and the request is not.
    Verb,
    /// The policy is for another namespace.
    Namespace,
    /// The policy is for a resource of almost this name.
    Resource,
    /// The policy is for another API group.
    ApiGroup,
    /// The policy is for almost this path.
    NonResourcePath,
}

impl Lack {
    /// The name of the part, as policies spell it where they have it.
    pub(crate) fn name(self) -> &'static str {
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

/// The near misses of a request that nothing grants, in file order.
///
/// 1. Policies for the user that differ from the request in one part.
/// 2. The first policy for the user as a member of each group that the user is not in.
/// 3. The first policy for each user and group of almost the same name. This looks at all policies,
///    which only somebody who asked for an explanation pays for.
pub(crate) fn find<'p>(policies: &'p Policies, attributes: &Attributes<'_>) -> Vec<NearMiss<'p>> {
    let Some(user) = attributes.user else { return Vec::new() };
    let own = policies
        .of_user(user)
        .filter_map(|policy| lack(policy, attributes).map(|lack| NearMiss { policy, lack }));
    let mut subjects = HashSet::new();
    let others = policies.as_slice().iter().filter_map(|policy| {
        let lack = lack_of_subject(policy.subject(), user)?;
        let grants = policy.matches_verb(attributes) && policy.matches_target(&attributes.target);
        (grants && subjects.insert(policy.subject())).then_some(NearMiss { policy, lack })
    });
    let mut found: Vec<NearMiss<'p>> = own.take(NEAR_MISSES_MAX).collect();
    found.extend(others.take(NEAR_MISSES_MAX));
    found.sort_by_key(|miss| miss.policy.line());
    found.truncate(NEAR_MISSES_MAX);
    found
}

/// How a subject differs from the user, if it does and is close.
fn lack_of_subject(subject: Subject<'_>, user: &User) -> Option<Lack> {
    match subject {
        Subject::User(name) => is_almost(name, &user.name).then_some(Lack::User),
        Subject::Group(name) => {
            user.groups.iter().any(|group| is_almost(name, group)).then_some(Lack::Group)
        }
        Subject::Member { user: name, group } => {
            (name == user.name && !user.is_in_group(group)).then_some(Lack::Group)
        }
        Subject::Nobody => None,
    }
}

/// The one part in which a policy for the user differs from the request, if it is one and close.
fn lack(policy: &Policy, attributes: &Attributes<'_>) -> Option<Lack> {
    let spec = policy.spec();
    let verb = (!policy.matches_verb(attributes)).then_some(Lack::Verb);
    let mut differing = match &attributes.target {
        // A policy about paths only has no resource, and is no near miss of any.
        Target::Resource(_) if spec.resource.is_empty() => return None,
        Target::Resource(wanted) => [
            verb,
            (!covers(&spec.namespace, wanted.namespace)).then_some(Lack::Namespace),
            (!covers(&spec.resource, wanted.resource)).then_some(Lack::Resource),
            (!covers(&spec.api_group, wanted.api_group)).then_some(Lack::ApiGroup),
        ],
        Target::Path(path) => {
            let covered = covers_path(&spec.non_resource_path, path);
            [verb, (!covered).then_some(Lack::NonResourcePath), None, None]
        }
    }
    .into_iter()
    .flatten();
    let only = differing.next()?;
    if differing.next().is_some() {
        return None;
    }
    let is_close = match (&attributes.target, only) {
        (Target::Resource(wanted), Lack::Resource) => is_almost(&spec.resource, wanted.resource),
        (Target::Path(path), Lack::NonResourcePath) => {
            let stem = spec.non_resource_path.trim_end_matches('*');
            is_almost(stem, path) || is_almost(&spec.non_resource_path, path)
        }
        (_, _) => true,
    };
    is_close.then_some(only)
}

/// Reports whether two different names differ only in case, or in one character that is changed,
/// added or left out. Single characters are all alike and never almost the same.
fn is_almost(a: &str, b: &str) -> bool {
    if a == b || a.chars().nth(1).is_none() || b.chars().nth(1).is_none() {
        return false;
    }
    if a.eq_ignore_ascii_case(b) {
        return true;
    }
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8());
    let same: usize = same.sum();
    let (a, b) = (a.get(same..).unwrap_or_default(), b.get(same..).unwrap_or_default());
    let rest = |text: &'_ str| text.chars().next().map_or(0, char::len_utf8);
    let (a_rest, b_rest) = (a.get(rest(a)..), b.get(rest(b)..));
    a_rest == b_rest || a_rest == Some(b) || b_rest == Some(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn almost_the_same_is_one_letter_off() {
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
            assert_eq!(is_almost(a, b), want, "{a} {b}");
            assert_eq!(is_almost(b, a), want, "{b} {a}");
        }
    }
}
