//! The order of authorizers, before what some of them decide from is known.

use std::fmt;
use std::sync::Arc;

use crate::kind::AuthorizerType;
use crate::member::Member;
use crate::observe::Observe;

/// One place in the order of authorizers.
///
/// Seats outlive the objects that authorizers decide from: a new state of the objects makes a new
/// chain on the same slots, and a new configuration puts new slots around the same objects.
#[derive(Clone)]
pub struct AuthorizerSlot {
    /// Who sits there.
    pub authorizer: ActiveAuthorizer,
    /// Who is told what it answers; `None` if nobody wants to know.
    pub observe: Option<Arc<dyn Observe>>,
}

/// Who sits in a place.
#[derive(Debug, Clone)]
pub enum ActiveAuthorizer {
    /// An authorizer that does not depend on objects.
    Fixed(Member),
    /// The one that decides what nodes may do.
    Node,
    /// The one that decides by roles and bindings.
    Rbac,
}

impl AuthorizerSlot {
    /// A slot that nobody looks at.
    pub const fn unobserved(authorizer: ActiveAuthorizer) -> Self {
        Self { authorizer, observe: None }
    }

    /// The authorizer over these objects.
    pub fn member(
        &self,
        rbac: &Arc<authz_rbac::Snapshot>,
        node: &Arc<authz_node::Snapshot>,
    ) -> Member {
        match &self.authorizer {
            ActiveAuthorizer::Fixed(member) => member.clone(),
            ActiveAuthorizer::Node => Member::Node(Arc::clone(node)),
            ActiveAuthorizer::Rbac => Member::Rbac(Arc::clone(rbac)),
        }
    }

    /// Its type; an authorizer written by others has none.
    pub fn authorizer_type(&self) -> Option<AuthorizerType> {
        match &self.authorizer {
            ActiveAuthorizer::Fixed(member) => member.authorizer_type(),
            ActiveAuthorizer::Node => Some(AuthorizerType::Node),
            ActiveAuthorizer::Rbac => Some(AuthorizerType::Rbac),
        }
    }

    /// Its name in metrics and reasons.
    pub fn name(&self) -> &str {
        match &self.authorizer {
            ActiveAuthorizer::Fixed(member) => member.name(),
            ActiveAuthorizer::Node => {
                AuthorizerType::Node.required_authorizer_name().unwrap_or_default()
            }
            ActiveAuthorizer::Rbac => {
                AuthorizerType::Rbac.required_authorizer_name().unwrap_or_default()
            }
        }
    }
}

impl fmt::Debug for AuthorizerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AuthorizerSlot").field(&self.name()).finish()
    }
}
