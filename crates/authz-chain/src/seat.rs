//! The order of authorizers, before what some of them decide from is known.

use std::fmt;
use std::sync::Arc;

use crate::kind::AuthorizerType;
use crate::member::Member;
use crate::observe::Observe;

/// One place in the order of authorizers.
///
/// Seats outlive the objects that authorizers decide from: a new state of the objects makes a new
/// chain on the same seats, and a new configuration puts new seats around the same objects.
#[derive(Clone)]
pub struct Seat {
    /// Who sits there.
    pub authorizer: Seated,
    /// Who is told what it answers; `None` if nobody wants to know.
    pub observe: Option<Arc<dyn Observe>>,
}

/// Who sits in a place.
#[derive(Debug, Clone)]
pub enum Seated {
    /// An authorizer that does not depend on objects.
    Fixed(Member),
    /// The one that decides what nodes may do.
    Node,
    /// The one that decides by roles and bindings.
    Rbac,
}

impl Seat {
    /// A seat that nobody looks at.
    pub const fn unobserved(authorizer: Seated) -> Self {
        Self { authorizer, observe: None }
    }

    /// The authorizer over these objects.
    pub fn member(
        &self,
        rbac: &Arc<authz_rbac::Snapshot>,
        node: &Arc<authz_node::Policy>,
    ) -> Member {
        match &self.authorizer {
            Seated::Fixed(member) => member.clone(),
            Seated::Node => Member::Node(Arc::clone(node)),
            Seated::Rbac => Member::Rbac(Arc::clone(rbac)),
        }
    }

    /// Its type; an authorizer written by others has none.
    pub fn authorizer_type(&self) -> Option<AuthorizerType> {
        match &self.authorizer {
            Seated::Fixed(member) => member.authorizer_type(),
            Seated::Node => Some(AuthorizerType::Node),
            Seated::Rbac => Some(AuthorizerType::Rbac),
        }
    }

    /// Its name in metrics and reasons.
    pub fn name(&self) -> &str {
        match &self.authorizer {
            Seated::Fixed(member) => member.name(),
            Seated::Node => AuthorizerType::Node.required_authorizer_name().unwrap_or_default(),
            Seated::Rbac => AuthorizerType::Rbac.required_authorizer_name().unwrap_or_default(),
        }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seat").field(&self.name()).finish()
    }
}
