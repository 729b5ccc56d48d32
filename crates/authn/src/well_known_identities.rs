//! User names, group names and extra keys that Kubernetes defines.

use std::sync::Arc;

use authz::User;

/// The group of every authenticated user.
pub const AUTHENTICATED_GROUP: &str = "system:authenticated";
/// The group of the anonymous user.
pub const UNAUTHENTICATED_GROUP: &str = "system:unauthenticated";
/// Members of this group may do everything.
pub const MASTERS_GROUP: &str = "system:masters";
/// The group of all nodes.
pub const NODES_GROUP: &str = "system:nodes";
/// The group of all service accounts. The group of those of one namespace has this name, a colon
/// and the namespace.
pub const SERVICE_ACCOUNTS_GROUP: &str = "system:serviceaccounts";

/// The user name of requests without credentials.
pub const ANONYMOUS_USER: &str = "system:anonymous";
/// The user name of the server when it calls itself.
pub const LOOPBACK_USER: &str = "system:apiserver";

/// The extra key with the id of the credential that authenticated the user.
pub const CREDENTIAL_ID_KEY: &str = "authentication.kubernetes.io/credential-id";
/// The extra key with the name of the pod that a token is bound to.
pub const POD_NAME_KEY: &str = "authentication.kubernetes.io/pod-name";
/// The extra key with the uid of the pod that a token is bound to.
pub const POD_UID_KEY: &str = "authentication.kubernetes.io/pod-uid";
/// The extra key with the node that a token is bound to, or on which its pod runs.
pub const NODE_NAME_KEY: &str = "authentication.kubernetes.io/node-name";
/// The extra key with the uid of that node.
pub const NODE_UID_KEY: &str = "authentication.kubernetes.io/node-uid";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const NODE_PREFIX: &str = "system:node:";

/// Formats the user name of a service account.
pub fn service_account_user_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups that every service account of the namespace belongs to.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS_GROUP.to_owned(), format!("{SERVICE_ACCOUNTS_GROUP}:{namespace}")]
}

/// Splits the user name of a service account into namespace and name; `None` for every other user,
/// also if the name has the prefix but is malformed.
pub fn split_service_account_user_name(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_valid = field_errors::dns1123_label_faults(namespace).is_empty() && is_object_name(name);
    is_valid.then_some((namespace, name))
}

/// The node name in the user name of a node; `None` for every other user.
pub(crate) fn parse_node_user_name(user_name: &str) -> Option<&str> {
    user_name.strip_prefix(NODE_PREFIX).filter(|name| is_object_name(name))
}

fn is_object_name(name: &str) -> bool {
    field_errors::dns1123_subdomain_faults(name).is_empty()
}

/// Adds the group `system:authenticated`, unless the user is anonymous or already in one of the
/// groups `system:authenticated` and `system:unauthenticated`.
pub(crate) fn add_authenticated_group(user: &mut Arc<User>) {
    let is_settled = user.name == ANONYMOUS_USER
        || user.is_in_group(AUTHENTICATED_GROUP)
        || user.is_in_group(UNAUTHENTICATED_GROUP);
    if !is_settled {
        Arc::make_mut(user).groups.push(AUTHENTICATED_GROUP.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_names_are_service_accounts() {
        assert_eq!(
            split_service_account_user_name("system:serviceaccount:ns:a.b"),
            Some(("ns", "a.b"))
        );
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
            assert_eq!(split_service_account_user_name(name), None, "{name}");
        }
        let name = service_account_user_name("ns", "sa");
        assert_eq!(split_service_account_user_name(&name), Some(("ns", "sa")));
    }

    #[test]
    fn only_well_formed_names_are_nodes() {
        assert_eq!(
            parse_node_user_name("system:node:worker-1.example.com"),
            Some("worker-1.example.com")
        );
        for name in ["system:node:", "system:node:A", "system:node:a:b", "node:a"] {
            assert_eq!(parse_node_user_name(name), None, "{name}");
        }
    }

    #[test]
    fn the_group_of_the_authenticated_is_added_once() {
        let user = |name: &str, groups: &[&str]| User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        };
        for (before, want) in [
            (user("a", &[]), vec![AUTHENTICATED_GROUP]),
            (user("a", &["g"]), vec!["g", AUTHENTICATED_GROUP]),
            (user("a", &[AUTHENTICATED_GROUP, "g"]), vec![AUTHENTICATED_GROUP, "g"]),
            (user("a", &[UNAUTHENTICATED_GROUP]), vec![UNAUTHENTICATED_GROUP]),
            (user(ANONYMOUS_USER, &["g"]), vec!["g"]),
        ] {
            let mut user = Arc::new(before);
            add_authenticated_group(&mut user);
            assert_eq!(user.groups, want);
        }
    }
}
