//! An authorizer and what expressions make of it, step by step: a check, and a decision.

use std::sync::Arc;

use super::Opaque;
use crate::question::{Decision, Decisions, ResourceTarget, ServiceAccount};
use crate::value::Value;

/// A value of the library of authorization checks.
#[derive(Debug, Clone)]
pub enum Authorization {
    /// Whom to ask, and about whom.
    Authorizer(Authorizer),
    /// A path to ask about.
    Path(Authorizer, Arc<str>),
    /// An API group, of which a resource is still to be named.
    Group(Authorizer, Arc<str>),
    /// A resource to ask about.
    Resource(Authorizer, Box<ResourceTarget>),
    /// The answer.
    Decision(Decision),
}

/// Somebody to ask: the answers that are known, and in whose name.
#[derive(Debug, Clone, Default)]
pub struct Authorizer {
    pub(crate) decisions: Decisions,
    pub(crate) account: Option<ServiceAccount>,
}

impl Authorizer {
    /// An authorizer that has given these answers to the user whom the host knows.
    pub fn new(decisions: Decisions) -> Self {
        Self { decisions, account: None }
    }

    /// The authorizer as a value, of the type [`Authorization::AUTHORIZER`].
    pub fn value(self) -> Value<'static> {
        Value::from(Authorization::Authorizer(self))
    }

    /// A check about a resource as a value, of the type [`Authorization::RESOURCE_CHECK`].
    pub fn resource_check(self, target: ResourceTarget) -> Value<'static> {
        Value::from(Authorization::Resource(self, Box::new(target)))
    }
}

impl Authorization {
    /// The name of the type of [`Authorization::Authorizer`].
    pub const AUTHORIZER: &'static str = "kubernetes.authorization.Authorizer";
    /// The name of the type of [`Authorization::Path`].
    pub const PATH_CHECK: &'static str = "kubernetes.authorization.PathCheck";
    /// The name of the type of [`Authorization::Group`].
    pub const GROUP_CHECK: &'static str = "kubernetes.authorization.GroupCheck";
    /// The name of the type of [`Authorization::Resource`].
    pub const RESOURCE_CHECK: &'static str = "kubernetes.authorization.ResourceCheck";
    /// The name of the type of [`Authorization::Decision`].
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
            Self::Decision(Decision { reason, error, .. }) => {
                reason.len() + error.as_ref().map_or(0, |error| error.len())
            }
        }
    }
}

impl From<Authorization> for Value<'_> {
    fn from(authorization: Authorization) -> Self {
        Self::opaque(Opaque::Authorization(authorization))
    }
}
