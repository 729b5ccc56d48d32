//! The suites: each knows the form of its vectors and which public functions answer them.

mod abac;
mod access_review;
mod admission_dispatch;
mod admission_rules;
mod admission_webhook_config;
mod chain;
mod config_load;
mod decision;
mod faults;
mod forbidden_response;
mod headers;
mod impersonation;
mod match_conditions;
mod node;
mod question;
mod rbac;
mod rbac_escalation;
mod request_attributes;
mod review;
mod texts;
mod user_info;

use serde_json::Value;

use crate::vectors::Vector;

pub(crate) use abac::{answer_to as abac_answer, refusal as abac_refusal};
pub(crate) use request_attributes::answer_to as request_answer;

/// The suites that are implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Loading an ABAC policy file, and what it grants.
    Abac,
    /// Creating a review of somebody's access.
    AccessReview,
    /// One request and the admission webhooks that are called for it.
    AdmissionDispatch,
    /// Which requests a rule of an admission webhook is about.
    AdmissionRules,
    /// Creating a configuration of admission webhooks.
    AdmissionWebhookConfig,
    /// A whole chain with webhooks that answer over the network.
    Chain,
    /// Loading an AuthorizationConfiguration file.
    ConfigLoad,
    /// What a client sees of a decision.
    ForbiddenResponse,
    /// Acting as somebody else.
    Impersonation,
    /// Compiling and evaluating the match conditions of a webhook.
    MatchConditions,
    /// Requests of nodes, by the objects that relate to them.
    Node,
    /// What roles and bindings grant.
    Rbac,
    /// What the default roles and bindings grant.
    RbacBootstrap,
    /// Who may grant what they hold.
    RbacEscalation,
    /// From an HTTP request line to the attributes of a request.
    RequestAttributes,
    /// Whom the headers of a proxy and the tokens of a file name.
    UserInfo,
}

/// A recorded answer and ours, in the same form.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) want: Value,
    pub(crate) got: Value,
    /// What our answer comes with that Kubernetes does not say.
    pub(crate) warnings: Vec<Warning>,
}

/// Something accepted with a warning.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The stable name of its kind.
    pub(crate) code: String,
    /// Where in the document.
    pub(crate) field: String,
}

impl Suite {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 16] = [
        Self::Abac,
        Self::AccessReview,
        Self::AdmissionDispatch,
        Self::AdmissionRules,
        Self::AdmissionWebhookConfig,
        Self::Chain,
        Self::ConfigLoad,
        Self::ForbiddenResponse,
        Self::Impersonation,
        Self::MatchConditions,
        Self::Node,
        Self::Rbac,
        Self::RbacBootstrap,
        Self::RbacEscalation,
        Self::RequestAttributes,
        Self::UserInfo,
    ];

    /// The name, which is that of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abac => "abac",
            Self::AccessReview => "access-review",
            Self::AdmissionDispatch => "admission-dispatch",
            Self::AdmissionRules => "admission-rules",
            Self::AdmissionWebhookConfig => "admission-webhook-config",
            Self::Chain => "chain",
            Self::ConfigLoad => "config-load",
            Self::ForbiddenResponse => "forbidden-response",
            Self::Impersonation => "impersonation",
            Self::MatchConditions => "match-conditions",
            Self::Node => "node",
            Self::Rbac => "rbac",
            Self::RbacBootstrap => "rbac-bootstrap",
            Self::RbacEscalation => "rbac-escalation",
            Self::RequestAttributes => "request-attributes",
            Self::UserInfo => "user-info",
        }
    }

    /// The suite of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// How many of its vectors are run at once: one, unless they mostly wait.
    pub(crate) fn vectors_at_once(self) -> usize {
        match self {
            Self::Chain => chain::VECTORS_AT_ONCE,
            _ => 1,
        }
    }

    /// Computes our answer; an error says why the vector can not be understood.
    pub(crate) fn answer(self, vector: &Vector) -> Result<Answer, String> {
        match self {
            Self::Abac => abac::answer(vector),
            Self::AccessReview => access_review::answer(vector),
            Self::AdmissionDispatch => admission_dispatch::answer(vector),
            Self::AdmissionRules => admission_rules::answer(vector),
            Self::AdmissionWebhookConfig => admission_webhook_config::answer(vector),
            Self::Chain => chain::answer(vector),
            Self::ConfigLoad => config_load::answer(vector),
            Self::ForbiddenResponse => forbidden_response::answer(vector),
            Self::Impersonation => impersonation::answer(vector),
            Self::MatchConditions => match_conditions::answer(vector),
            Self::Node => node::answer(vector),
            Self::Rbac => rbac::answer(vector),
            Self::RbacBootstrap => rbac::answer_beside_defaults(vector),
            Self::RbacEscalation => rbac_escalation::answer(vector),
            Self::RequestAttributes => request_attributes::answer(vector),
            Self::UserInfo => user_info::answer(vector),
        }
    }

    /// How many bytes of a text in the answer must agree.
    pub(crate) fn exact_length(self, path: &str, text: &str) -> usize {
        match self {
            Self::Abac => abac::exact_length(text),
            Self::AccessReview => access_review::exact_length(text),
            Self::AdmissionDispatch => admission_dispatch::exact_length(text),
            Self::AdmissionRules => admission_rules::exact_length(text),
            Self::AdmissionWebhookConfig => admission_webhook_config::exact_length(text),
            Self::Chain => chain::exact_length(text),
            Self::ConfigLoad => config_load::exact_length(text),
            Self::ForbiddenResponse => forbidden_response::exact_length(text),
            Self::Impersonation => impersonation::exact_length(text),
            Self::MatchConditions => match_conditions::exact_length(text),
            Self::Node => node::exact_length(text),
            Self::Rbac | Self::RbacBootstrap => rbac::exact_length(text),
            Self::RbacEscalation => rbac_escalation::exact_length(text),
            Self::RequestAttributes => request_attributes::exact_length(path, text),
            Self::UserInfo => user_info::exact_length(text),
        }
    }
}
