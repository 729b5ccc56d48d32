//! The modes of impersonation, and when each applies.

use authz::User;

use crate::identity::{NODE_NAME_KEY, split_node, split_service_account};

/// How one may act as somebody else. Each mode has verbs of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImpersonationMode {
    /// A service account acts as the node that it runs on.
    AssociatedNode,
    /// Acting as any node.
    ArbitraryNode,
    /// Acting as a service account.
    ServiceAccount,
    /// Acting as a user that is neither node nor service account, with all that belongs to it.
    UserInfo,
    /// Acting as anybody, in everything.
    Legacy,
}

impl ImpersonationMode {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Legacy,
    ];

    /// The name, as metrics show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "legacy",
        }
    }

    /// The verb that allows to be somebody in this mode. For constrained modes the audit log names
    /// it beside the impersonated user.
    pub const fn verb(self) -> &'static str {
        match self {
            Self::AssociatedNode => "impersonate:associated-node",
            Self::ArbitraryNode => "impersonate:arbitrary-node",
            Self::ServiceAccount => "impersonate:serviceaccount",
            Self::UserInfo => "impersonate:user-info",
            Self::Legacy => "impersonate",
        }
    }

    /// Reports whether the mode needs permission for the request at hand too.
    pub const fn is_constrained(self) -> bool {
        !matches!(self, Self::Legacy)
    }

    /// Reports whether this mode is meant for that requestor and that user. It is a part of the
    /// protection: nothing else keeps a service account to its own node.
    pub(super) fn applies(self, wanted: &User, requestor: &User) -> bool {
        let is_node = split_node(&wanted.name).is_some();
        let is_account = split_service_account(&wanted.name).is_some();
        match self {
            Self::AssociatedNode => {
                has_only_name(wanted) && is_associated(requestor, split_node(&wanted.name))
            }
            Self::ArbitraryNode => has_only_name(wanted) && is_node,
            Self::ServiceAccount => has_only_name(wanted) && is_account,
            Self::UserInfo => !is_node && !is_account,
            Self::Legacy => true,
        }
    }
}

fn has_only_name(user: &User) -> bool {
    user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty()
}

/// The requestor is a service account whose token says that it runs on exactly this node.
fn is_associated(requestor: &User, node: Option<&str>) -> bool {
    let own = requestor.extra.get(NODE_NAME_KEY).map(Vec::as_slice);
    match (node, own) {
        (Some(node), Some([own])) => {
            own == node && split_service_account(&requestor.name).is_some()
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

    fn names(wanted: &User, requestor: &User) -> Vec<&'static str> {
        let modes = ImpersonationMode::ALL.into_iter();
        modes.filter(|mode| mode.applies(wanted, requestor)).map(ImpersonationMode::name).collect()
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

    /// Authorizers IM-19.
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
