//! An authorizer and what expressions make of it, step by step: a check, and a decision.

use std::sync::Arc;

use super::Opaque;
use crate::authorizer_check::{AuthorizerDecision, KnownDecisions, ResourceTarget, ServiceAccount};
use crate::value::Value;

/// A value of the library of authorization checks.
#[derive(Debug, Clone)]
pub enum AuthorizationValue {
    /// Whom to ask, and about whom.
    Authorizer(Authorizer),
    /// A path to ask about.
    Path(Authorizer, Arc<str>),
    /// An API group, of which a resource is still to be named.
    Group(Authorizer, Arc<str>),
    /// A resource to ask about.
    Resource(Authorizer, Box<ResourceTarget>),
    /// The answer.
    Decision(AuthorizerDecision),
}

/// Somebody to ask: the answers that are known, and in whose name.
#[derive(Debug, Clone, Default)]
pub struct Authorizer {
    pub(crate) decisions: KnownDecisions,
    pub(crate) service_account: Option<ServiceAccount>,
}

impl Authorizer {
    /// An authorizer that has given these answers to the user whom the host knows.
    pub fn new(decisions: KnownDecisions) -> Self {
        Self { decisions, service_account: None }
    }

    /// The authorizer as a value, of the type [`AuthorizationValue::AUTHORIZER`].
    pub fn value(self) -> Value<'static> {
        Value::from(AuthorizationValue::Authorizer(self))
    }

    /// A check about a resource as a value, of the type [`AuthorizationValue::RESOURCE_CHECK`].
    pub fn resource_check(self, target: ResourceTarget) -> Value<'static> {
        Value::from(AuthorizationValue::Resource(self, Box::new(target)))
    }
}

impl AuthorizationValue {
    /// The name of the type of [`AuthorizationValue::Authorizer`].
    pub const AUTHORIZER: &'static str = "kubernetes.authorization.Authorizer";
    /// The name of the type of [`AuthorizationValue::Path`].
    pub const PATH_CHECK: &'static str = "kubernetes.authorization.PathCheck";
    /// The name of the type of [`AuthorizationValue::Group`].
    pub const GROUP_CHECK: &'static str = "kubernetes.authorization.GroupCheck";
    /// The name of the type of [`AuthorizationValue::Resource`].
    pub const RESOURCE_CHECK: &'static str = "kubernetes.authorization.ResourceCheck";
    /// The name of the type of [`AuthorizationValue::Decision`].
    pub const DECISION: &'static str = "kubernetes.authorization.Decision";

    /// The name of the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Authorizer(_) => Self::AUTHORIZER,
            Self::Path(..) => Self::PATH_CHECK,
            Self::Group(..) => Self::GROUP_CHECK,
            Self::Resource(..) => Self::RESOURCE_CHECK,
            Self::Decision(_) => Self::DECISION,
        }
    }

    /// What the peer calls the type inside its own program.
    pub(crate) fn go_type_name(&self) -> &'static str {
        match self {
            Self::Authorizer(_) => "library.authorizerVal",
            Self::Path(..) => "library.pathCheckVal",
            Self::Group(..) => "library.groupCheckVal",
            Self::Resource(..) => "library.resourceCheckVal",
            Self::Decision(_) => "library.decisionVal",
        }
    }

    /// About how many octets of text the value was made from.
    pub(crate) fn text_len(&self) -> usize {
        match self {
            Self::Authorizer(_) => 0,
            Self::Path(_, text) | Self::Group(_, text) => text.len(),
            Self::Resource(_, target) => target.text_len(),
            Self::Decision(AuthorizerDecision { reason, error, .. }) => {
                reason.len() + error.as_ref().map_or(0, |error| error.len())
            }
        }
    }
}

impl From<AuthorizationValue> for Value<'_> {
    fn from(authorization: AuthorizationValue) -> Self {
        Self::opaque(Opaque::Authorization(authorization))
    }
}
