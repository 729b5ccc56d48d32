//! Listing the rules of a user.

use authz::{Rules, User};

use crate::node_identity::NodeIdentity;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Reports that the rules of a node cannot be listed, because they depend on the graph. A user who is
    /// not a node has none.
    pub fn rules_for(&self, user: &User) -> Rules {
        match NodeIdentity::from_user(Some(user)) {
            NodeIdentity::Node(_) | NodeIdentity::Unnamed => {
                Rules::unlistable_rules("node authorizer does not support user rule resolution")
            }
            NodeIdentity::NotANode => Rules::default(),
        }
    }
}
