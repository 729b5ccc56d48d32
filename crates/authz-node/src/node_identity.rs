//! Determines which users are nodes.

use authz::User;

/// The prefix of the user name of a node. The name of the node follows it.
pub const NODE_USER_PREFIX: &str = "system:node:";
/// The group of all nodes.
pub const NODES_GROUP: &str = "system:nodes";

/// Whether a user is a node, and which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeIdentity<'a> {
    /// The user is the kubelet of this node.
    Node(&'a str),
    /// The user is in the group of nodes and has the prefix, but no name follows it.
    Unnamed,
    /// The user is not a node.
    NotANode,
}

impl<'a> NodeIdentity<'a> {
    /// Determines whether a user is a node. A node has both the user name prefix and the group. The prefix alone
    /// does not suffice, because an administrator may give it to any user, and the group alone does not say which
    /// node the user is.
    pub fn from_user(user: Option<&'a User>) -> Self {
        let Some(user) = user else { return Self::NotANode };
        match user.name.strip_prefix(NODE_USER_PREFIX) {
            Some(name) if user.is_in_group(NODES_GROUP) => {
                if name.is_empty() {
                    Self::Unnamed
                } else {
                    Self::Node(name)
                }
            }
            _ => Self::NotANode,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_needs_both_the_prefix_and_the_group() {
        for (name, groups, want) in [
            ("system:node:a", &["x", "system:nodes"][..], NodeIdentity::Node("a")),
            ("system:node:a:b", &["system:nodes"], NodeIdentity::Node("a:b")),
            ("system:node:", &["system:nodes"], NodeIdentity::Unnamed),
            ("system:node:a", &[], NodeIdentity::NotANode),
            ("system:node:a", &["system:node"], NodeIdentity::NotANode),
            ("system:nodes:a", &["system:nodes"], NodeIdentity::NotANode),
            ("System:node:a", &["system:nodes"], NodeIdentity::NotANode),
            ("", &["system:nodes"], NodeIdentity::NotANode),
        ] {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let user = User { name: name.to_owned(), groups, ..User::default() };
            assert_eq!(NodeIdentity::from_user(Some(&user)), want, "{name}");
        }
        assert_eq!(NodeIdentity::from_user(None), NodeIdentity::NotANode);
    }
}
