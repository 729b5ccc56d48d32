//! The groups that a server adds to a user because of its name.

use access_reviews::review_parsing::AccessQuestion;
use authz::{Attributes, TraceRecorder, User, Verdict};

use super::offline_authorizer::OfflineAuthorizer;
use super::offline_flags::SubjectFlags;

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
pub(super) const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";

/// Returns a user with the groups of the flags and those that a server adds.
pub(super) fn user_with_implicit_groups(name: String, flags: &SubjectFlags) -> User {
    let mut groups = flags.groups.clone();
    if !flags.no_implicit_groups {
        for group in implicit_groups(&name) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    User { name, groups, ..User::default() }
}

/// Returns a user that a list of subjects names. A server identifies a node by its group as well as by its name.
pub(crate) fn user_for_listed_name(name: &str) -> User {
    let is_node = name.starts_with(NODE_PREFIX);
    let groups = is_node.then(|| NODES.to_owned()).into_iter().collect();
    User { name: name.to_owned(), groups, ..User::default() }
}

/// Returns a member of a group that a list of subjects names. The group of nodes stands for all nodes, which have names of
/// their own; members of other groups need none.
pub(crate) fn user_for_listed_group(group: &str) -> User {
    let name = if group == NODES { format!("{NODE_PREFIX}any") } else { String::new() };
    User { name, groups: vec![group.to_owned()], ..User::default() }
}

/// Returns a hint if the request would be allowed with the group `system:authenticated`. Reviews often
/// lack that group, because a review lists all groups itself.
///
/// There is no hint if the chain calls webhooks, because it would need an additional call.
pub(crate) fn missing_group_hint(
    authorizer: &OfflineAuthorizer,
    question: &AccessQuestion<'_>,
) -> Option<String> {
    let user = add_authenticated_group(&question.user).filter(|_| !authorizer.calls_webhooks())?;
    let attributes = Attributes { user: Some(&user), ..question.attributes() };
    let outcome = authorizer.authorize(&attributes, TraceRecorder::disabled_recorder());
    (outcome.decision.verdict == Verdict::Allow).then(|| {
        format!(
            "the request is allowed with the group {AUTHENTICATED}, which the question lacks and \
             which a server adds to every authenticated user"
        )
    })
}

fn add_authenticated_group(user: &User) -> Option<User> {
    let is_known = user.name != ANONYMOUS && !user.is_in_group(UNAUTHENTICATED);
    (is_known && !user.is_in_group(AUTHENTICATED)).then(|| {
        let mut user = user.clone();
        user.groups.push(AUTHENTICATED.to_owned());
        user
    })
}

fn implicit_groups(name: &str) -> Vec<String> {
    if name == ANONYMOUS {
        return vec![UNAUTHENTICATED.to_owned()];
    }
    let account = name.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, account))
            if !namespace.is_empty() && !account.is_empty() && !account.contains(':') =>
        {
            vec![
                SERVICE_ACCOUNTS.to_owned(),
                format!("{SERVICE_ACCOUNTS}:{namespace}"),
                AUTHENTICATED.to_owned(),
            ]
        }
        Some(_) | None => vec![AUTHENTICATED.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_imply_groups() {
        for (name, given, want) in [
            ("ana", &["dev"][..], &["dev", "system:authenticated"][..]),
            ("ana", &["system:authenticated"], &["system:authenticated"]),
            ("", &["dev"], &["dev", "system:authenticated"]),
            ("system:anonymous", &[], &["system:unauthenticated"]),
            (
                "system:serviceaccount:ns:ci",
                &[],
                &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
            ),
            ("system:serviceaccount:ns", &[], &["system:authenticated"]),
            ("system:serviceaccount::ci", &[], &["system:authenticated"]),
            ("system:serviceaccount:a:b:c", &[], &["system:authenticated"]),
        ] {
            let groups = given.iter().map(|group| (*group).to_owned()).collect();
            let flags =
                SubjectFlags { user: Some(name.to_owned()), groups, no_implicit_groups: false };
            assert_eq!(user_with_implicit_groups(name.to_owned(), &flags).groups, want, "{name}");
            let literal = SubjectFlags { no_implicit_groups: true, ..flags };
            assert_eq!(
                user_with_implicit_groups(name.to_owned(), &literal).groups,
                given,
                "{name}"
            );
        }
    }

    #[test]
    fn listed_nodes_are_nodes() {
        let node = user_for_listed_name("system:node:a");
        assert_eq!(
            (node.name.as_str(), &node.groups[..]),
            ("system:node:a", &[NODES.to_owned()][..])
        );
        assert!(user_for_listed_name("ana").groups.is_empty());
        let member = user_for_listed_group(NODES);
        assert_eq!(
            (member.name.as_str(), &member.groups[..]),
            ("system:node:any", &[NODES.to_owned()][..])
        );
        assert_eq!(user_for_listed_group("dev").name, "");
    }

    #[test]
    fn only_the_known_lack_the_group_of_the_known() {
        let user = |name: &str, groups: &[&str]| User {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..User::default()
        };
        let added = add_authenticated_group(&user("ana", &["dev"])).unwrap();
        assert_eq!(added.groups, ["dev", "system:authenticated"]);
        assert_eq!(add_authenticated_group(&user("ana", &["system:authenticated"])), None);
        assert_eq!(add_authenticated_group(&user("system:anonymous", &[])), None);
        assert_eq!(add_authenticated_group(&user("", &["system:unauthenticated"])), None);
    }
}
