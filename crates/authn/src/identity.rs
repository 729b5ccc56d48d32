//! The names of users, groups and extra keys that have a meaning of their own.

use authz::User;

/// Everybody who was authenticated is in this group.
pub const AUTHENTICATED_GROUP: &str = "system:authenticated";
/// Everybody who was not is in this one.
pub const UNAUTHENTICATED_GROUP: &str = "system:unauthenticated";
/// Its members may do everything.
pub const MASTERS_GROUP: &str = "system:masters";
/// The group of the nodes.
pub const NODES_GROUP: &str = "system:nodes";
/// The group of all service accounts; each namespace has one more, below this name.
pub const SERVICE_ACCOUNTS_GROUP: &str = "system:serviceaccounts";

/// Who sends no credentials.
pub const ANONYMOUS_USER: &str = "system:anonymous";
/// The server, when it calls itself.
pub const LOOPBACK_USER: &str = "system:apiserver";

/// The extra key that tells one credential of a user from another.
pub const CREDENTIAL_ID_KEY: &str = "authentication.kubernetes.io/credential-id";
/// The extra key with the pod that a token is bound to.
pub const POD_NAME_KEY: &str = "authentication.kubernetes.io/pod-name";
/// The extra key with the uid of that pod.
pub const POD_UID_KEY: &str = "authentication.kubernetes.io/pod-uid";
/// The extra key with the node that a token is bound to, or that its pod runs on.
pub const NODE_NAME_KEY: &str = "authentication.kubernetes.io/node-name";
/// The extra key with the uid of that node.
pub const NODE_UID_KEY: &str = "authentication.kubernetes.io/node-uid";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const NODE_PREFIX: &str = "system:node:";

/// The user name of a service account.
pub fn service_account_user_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups that every service account of the namespace is in.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS_GROUP.to_owned(), format!("{SERVICE_ACCOUNTS_GROUP}:{namespace}")]
}

/// The namespace and the name of the service account that a user name is of; `None` for every
/// other user, also one whose name only begins like that of a service account.
pub fn split_service_account(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_valid = field_errors::dns1123_label_faults(namespace).is_empty() && is_object_name(name);
    is_valid.then_some((namespace, name))
}

/// The node that a user name is of; `None` for every other user.
pub(crate) fn split_node(user_name: &str) -> Option<&str> {
    user_name.strip_prefix(NODE_PREFIX).filter(|name| is_object_name(name))
}

fn is_object_name(name: &str) -> bool {
    field_errors::dns1123_subdomain_faults(name).is_empty()
}

/// Puts an authenticated user into the group of the authenticated, unless its groups already say
/// whether it is one, or it is the anonymous user after all.
pub(crate) fn add_authenticated_group(user: &mut User) {
    let is_settled = user.name == ANONYMOUS_USER
        || user.is_in_group(AUTHENTICATED_GROUP)
        || user.is_in_group(UNAUTHENTICATED_GROUP);
    if !is_settled {
        user.groups.push(AUTHENTICATED_GROUP.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Authorizers AU-33.
    #[test]
    fn only_well_formed_names_are_service_accounts() {
        assert_eq!(split_service_account("system:serviceaccount:ns:a.b"), Some(("ns", "a.b")));
        for name in [
            "system:serviceaccount:foo:bar:baz",
            "system:serviceaccount::x",
            "system:serviceaccount:foo :bar",
            "system:serviceaccount:foo:",
            "system:serviceaccount:foo",
            "system:serviceaccount:a.b:c",
            "system:serviceaccount:foo:Bar",
            "System:serviceaccount:foo:bar",
        ] {
            assert_eq!(split_service_account(name), None, "{name}");
        }
        let name = service_account_user_name("ns", "sa");
        assert_eq!(split_service_account(&name), Some(("ns", "sa")));
    }

    #[test]
    fn only_well_formed_names_are_nodes() {
        assert_eq!(split_node("system:node:worker-1.example.com"), Some("worker-1.example.com"));
        for name in ["system:node:", "system:node:A", "system:node:a:b", "node:a"] {
            assert_eq!(split_node(name), None, "{name}");
        }
    }

    /// Authorizers AU-34 and §2.9.
    #[test]
    fn the_group_of_the_authenticated_is_added_once() {
        let user = |name: &str, groups: &[&str]| User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        };
        for (mut before, want) in [
            (user("a", &[]), vec![AUTHENTICATED_GROUP]),
            (user("a", &["g"]), vec!["g", AUTHENTICATED_GROUP]),
            (user("a", &[AUTHENTICATED_GROUP, "g"]), vec![AUTHENTICATED_GROUP, "g"]),
            (user("a", &[UNAUTHENTICATED_GROUP]), vec![UNAUTHENTICATED_GROUP]),
            (user(ANONYMOUS_USER, &["g"]), vec!["g"]),
        ] {
            add_authenticated_group(&mut before);
            assert_eq!(before.groups, want);
        }
    }
}
