//! The values of the authorizer library: authorizer, checks and decision.

use std::sync::Arc;

use super::OpaqueValue;
use crate::authorizer_check::{
    AuthorizerDecision, KnownDecisions, ResourceCheckTarget, ServiceAccount,
};
use crate::value::Value;

/// A value of Kubernetes' authorizer library.
#[derive(Debug, Clone)]
pub enum AuthorizationValue {
    /// The authorizer, for the user of the request or for a service account.
    Authorizer(Authorizer),
    /// A check of a non-resource path.
    Path(Authorizer, Arc<str>),
    /// A check of an API group that does not yet name a resource.
    Group(Authorizer, Arc<str>),
    /// A check of a resource.
    Resource(Authorizer, Box<ResourceCheckTarget>),
    /// The decision of a check.
    Decision(AuthorizerDecision),
}

/// The `authorizer` variable: the known decisions, and the service account to check if any.
#[derive(Debug, Clone, Default)]
pub struct Authorizer {
    pub(crate) known_decisions: KnownDecisions,
    pub(crate) service_account: Option<ServiceAccount>,
}

impl Authorizer {
    /// An authorizer for the user of the request, with the decisions that are already known.
    pub fn new(known_decisions: KnownDecisions) -> Self {
        Self { known_decisions, service_account: None }
    }

    /// The authorizer as a value, of the type [`AuthorizationValue::AUTHORIZER`].
    pub fn value(self) -> Value<'static> {
        Value::from(AuthorizationValue::Authorizer(self))
    }

    /// A check about a resource as a value, of the type [`AuthorizationValue::RESOURCE_CHECK`].
    pub fn resource_check_value(self, target: ResourceCheckTarget) -> Value<'static> {
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

    /// The Go type that Kubernetes uses for the value; error messages show it.
    pub(crate) fn go_type_name(&self) -> &'static str {
        match self {
            Self::Authorizer(_) => "library.authorizerVal",
            Self::Path(..) => "library.pathCheckVal",
            Self::Group(..) => "library.groupCheckVal",
            Self::Resource(..) => "library.resourceCheckVal",
            Self::Decision(_) => "library.decisionVal",
        }
    }

    /// The approximate number of bytes of the text that the value was created from.
    pub(crate) fn approx_text_len(&self) -> usize {
        match self {
            Self::Authorizer(_) => 0,
            Self::Path(_, text) | Self::Group(_, text) => text.len(),
            Self::Resource(_, target) => target.approx_text_len(),
            Self::Decision(AuthorizerDecision { reason, error, .. }) => {
                reason.len() + error.as_ref().map_or(0, |error| error.len())
            }
        }
    }
}

impl From<AuthorizationValue> for Value<'_> {
    fn from(authorization: AuthorizationValue) -> Self {
        Self::opaque_value(OpaqueValue::Authorization(authorization))
    }
}
