//! A configured authorizer without the objects that it decides from.

use std::fmt;
use std::sync::Arc;

use crate::authorizer_type::AuthorizerType;
use crate::chain::DecisionObserver;
use crate::chain_member::ChainMember;

/// One position in the order of authorizers.
///
/// A change of roles or pods makes a new chain from the same slots. A change of the configuration makes new slots for the
/// same objects.
#[derive(Clone)]
pub struct AuthorizerSlot {
    /// The authorizer in this position.
    pub authorizer: SlotAuthorizer,
    /// The function that observes the decisions of the authorizer; `None` if nothing observes them.
    pub decision_observer: Option<DecisionObserver>,
}

/// The authorizer of a slot.
#[derive(Debug, Clone)]
pub enum SlotAuthorizer {
    /// An authorizer that does not depend on objects.
    Fixed(ChainMember),
    /// The Node authorizer, which decides by stored objects.
    Node,
    /// The RBAC authorizer, which decides by stored objects.
    Rbac,
}

impl AuthorizerSlot {
    /// A slot without an observer.
    pub const fn without_observer(authorizer: SlotAuthorizer) -> Self {
        Self { authorizer, decision_observer: None }
    }

    /// Makes a member of a chain: the authorizer of this slot together with the objects that it decides from.
    pub fn to_chain_member(
        &self,
        rbac: &Arc<authz_rbac::Snapshot>,
        node: &Arc<authz_node::Snapshot>,
    ) -> ChainMember {
        match &self.authorizer {
            SlotAuthorizer::Fixed(member) => member.clone(),
            SlotAuthorizer::Node => ChainMember::Node(Arc::clone(node)),
            SlotAuthorizer::Rbac => ChainMember::Rbac(Arc::clone(rbac)),
        }
    }

    /// The type of the authorizer; `None` for a plugin.
    pub fn authorizer_type(&self) -> Option<AuthorizerType> {
        match &self.authorizer {
            SlotAuthorizer::Fixed(member) => member.authorizer_type(),
            SlotAuthorizer::Node => Some(AuthorizerType::Node),
            SlotAuthorizer::Rbac => Some(AuthorizerType::Rbac),
        }
    }

    /// The name of the authorizer in metrics and reasons.
    pub fn name(&self) -> &str {
        match &self.authorizer {
            SlotAuthorizer::Fixed(member) => member.name(),
            SlotAuthorizer::Node => {
                AuthorizerType::Node.fixed_authorizer_name().unwrap_or_default()
            }
            SlotAuthorizer::Rbac => {
                AuthorizerType::Rbac.fixed_authorizer_name().unwrap_or_default()
            }
        }
    }
}

impl fmt::Debug for AuthorizerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AuthorizerSlot").field(&self.name()).finish()
    }
}
