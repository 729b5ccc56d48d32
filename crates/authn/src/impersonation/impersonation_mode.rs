//! The modes of impersonation, and to which users each applies.

use authz::User;

use crate::well_known_identities::{
    NODE_NAME_KEY, parse_node_user_name, split_service_account_user_name,
};

/// A mode of impersonation. Each mode has its own verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImpersonationMode {
    /// A service account acts as the node that it runs on.
    AssociatedNode,
    /// Acts as any node.
    ArbitraryNode,
    /// Acts as a service account.
    ServiceAccount,
    /// Acts as a user that is neither node nor service account, with uid, groups and extra.
    UserInfo,
    /// Acts as any user, for every request.
    Legacy,
}

impl ImpersonationMode {
    /// All modes, in the order in which they are tried.
    pub const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Legacy,
    ];

    /// The name of the mode in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "legacy",
        }
    }

    /// The verb that permits impersonation in this mode. For constrained modes the audit log
    /// records it with the impersonated user.
    pub const fn verb(self) -> &'static str {
        match self {
            Self::AssociatedNode => "impersonate:associated-node",
            Self::ArbitraryNode => "impersonate:arbitrary-node",
            Self::ServiceAccount => "impersonate:serviceaccount",
            Self::UserInfo => "impersonate:user-info",
            Self::Legacy => "impersonate",
        }
    }

    /// Reports whether the mode also needs permission for the current request.
    pub const fn is_constrained(self) -> bool {
        !matches!(self, Self::Legacy)
    }

    /// The verb that permits an action while the requestor impersonates in this mode, such as
    /// `impersonate-on:user-info:create`. `None` for the mode that needs no permission for single actions.
    pub fn verb_for_action(self, verb: &str) -> Option<String> {
        self.is_constrained().then(|| format!("impersonate-on:{}:{verb}", self.name()))
    }

    /// Reports whether this mode is meant for this requestor and this user. This is a security
    /// check: nothing else restricts a service account to its own node.
    pub(super) fn is_applicable_to_users(self, requested: &User, requestor: &User) -> bool {
        let is_node = parse_node_user_name(&requested.name).is_some();
        let is_account = split_service_account_user_name(&requested.name).is_some();
        match self {
            Self::AssociatedNode => {
                has_only_name(requested)
                    && is_service_account_on_node(requestor, parse_node_user_name(&requested.name))
            }
            Self::ArbitraryNode => has_only_name(requested) && is_node,
            Self::ServiceAccount => has_only_name(requested) && is_account,
            Self::UserInfo => !is_node && !is_account,
            Self::Legacy => true,
        }
    }
}

fn has_only_name(user: &User) -> bool {
    user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty()
}

/// Reports whether the requestor is a service account whose token names exactly this node.
fn is_service_account_on_node(requestor: &User, node: Option<&str>) -> bool {
    let own = requestor.extra.get(NODE_NAME_KEY).map(Vec::as_slice);
    match (node, own) {
        (Some(node), Some([own])) => {
            own == node && split_service_account_user_name(&requestor.name).is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> User {
        User { name: name.to_owned(), ..User::default() }
    }

    fn on_nodes(name: &str, nodes: &[&str]) -> User {
        let nodes = nodes.iter().map(|&node| node.to_owned()).collect();
        User { extra: [(NODE_NAME_KEY.to_owned(), nodes)].into(), ..user(name) }
    }

    fn names(requested: &User, requestor: &User) -> Vec<&'static str> {
        let modes = ImpersonationMode::ALL.into_iter();
        modes
            .filter(|mode| mode.is_applicable_to_users(requested, requestor))
            .map(ImpersonationMode::name)
            .collect()
    }

    #[test]
    fn modes_are_meant_for_kinds_of_users() {
        let ana = user("ana");
        assert_eq!(names(&user("bob"), &ana), ["user-info", "legacy"]);
        assert_eq!(names(&user("system:node:n"), &ana), ["arbitrary-node", "legacy"]);
        assert_eq!(names(&user("system:node:"), &ana), ["user-info", "legacy"]);
        let account = user("system:serviceaccount:ns:sa");
        assert_eq!(names(&account, &ana), ["serviceaccount", "legacy"]);
        let with_uid = User { uid: "1".to_owned(), ..account };
        assert_eq!(names(&with_uid, &ana), ["legacy"]);
    }

    #[test]
    fn only_a_service_account_is_associated_with_its_node() {
        let node = user("system:node:n");
        let account = "system:serviceaccount:ns:sa";
        let all = ["associated-node", "arbitrary-node", "legacy"];
        assert_eq!(names(&node, &on_nodes(account, &["n"])), all);
        for other in [
            on_nodes("ana", &["n"]),
            on_nodes(account, &["m"]),
            on_nodes(account, &["n", "n"]),
            on_nodes(account, &[]),
            user(account),
        ] {
            assert_eq!(names(&node, &other), all[1..], "{other:?}");
        }
    }
}
