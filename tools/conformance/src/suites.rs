//! The suites. Each one reads its vectors and calls the public functions that answer them.

mod abac;
mod access_review;
mod admission_dispatch;
mod admission_rules;
mod admission_webhook_config;
mod chain;
mod config_load;
mod decision;
mod field_error_json;
mod forbidden_response;
mod headers;
mod impersonation;
mod match_conditions;
mod node;
mod rbac;
mod rbac_escalation;
mod recorded_attributes;
mod recorded_review;
mod replace_texts;
mod request_attributes;
mod user_info;

use serde_json::Value;

use crate::vectors::{UnusableVector, Vector};

pub(crate) use abac::{answer_for_policy, load_error_answer};
pub(crate) use request_attributes::answer_for_request_line;

/// The suites that are implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// An ABAC policy file is loaded and decides requests.
    Abac,
    /// A client creates an access review.
    AccessReview,
    /// One request and the admission webhooks that are called for it.
    AdmissionDispatch,
    /// A rule of an admission webhook matches requests or does not.
    AdmissionRules,
    /// A client creates a configuration of admission webhooks.
    AdmissionWebhookConfig,
    /// A whole chain decides, with webhooks that answer over the network.
    Chain,
    /// An AuthorizationConfiguration file is loaded.
    ConfigLoad,
    /// A client gets the response to a request that is not allowed.
    ForbiddenResponse,
    /// A user impersonates another user.
    Impersonation,
    /// The match conditions of a webhook are compiled and evaluated.
    MatchConditions,
    /// The node authorizer decides requests of nodes by the objects in its graph.
    Node,
    /// Roles and bindings decide requests.
    Rbac,
    /// The default roles and bindings decide requests.
    RbacBootstrap,
    /// A user writes a role, and the escalation check decides.
    RbacEscalation,
    /// An HTTP request line becomes authorization attributes.
    RequestAttributes,
    /// Front-proxy headers and the tokens of a file identify users.
    UserInfo,
}

/// A recorded answer and ours, in the same form.
#[derive(Debug)]
pub(crate) struct AnswerPair {
    pub(crate) want: Value,
    pub(crate) got: Value,
    /// Warnings of ours that Kubernetes does not have.
    pub(crate) warnings: Vec<Warning>,
}

/// A warning about a part of a document that is accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The stable name of the kind of warning.
    pub(crate) code: String,
    /// The path of the field in the document.
    pub(crate) field: String,
}

impl Suite {
    /// All suites in alphabetical order.
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

    /// The name of the suite and of its file.
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

    /// The number of vectors that run at the same time: one, unless they mostly wait.
    pub(crate) fn n_concurrent_vectors(self) -> usize {
        match self {
            Self::Chain => chain::N_CONCURRENT_VECTORS,
            _ => 1,
        }
    }

    /// Computes our answer to a vector.
    pub(crate) fn answer_vector(self, vector: &Vector) -> Result<AnswerPair, UnusableVector> {
        match self {
            Self::Abac => abac::answer_vector(vector),
            Self::AccessReview => access_review::answer_vector(vector),
            Self::AdmissionDispatch => admission_dispatch::answer_vector(vector),
            Self::AdmissionRules => admission_rules::answer_vector(vector),
            Self::AdmissionWebhookConfig => admission_webhook_config::answer_vector(vector),
            Self::Chain => chain::answer_vector(vector),
            Self::ConfigLoad => config_load::answer_vector(vector),
            Self::ForbiddenResponse => forbidden_response::answer_vector(vector),
            Self::Impersonation => impersonation::answer_vector(vector),
            Self::MatchConditions => match_conditions::answer_vector(vector),
            Self::Node => node::answer_vector(vector),
            Self::Rbac => rbac::answer_vector(vector),
            Self::RbacBootstrap => rbac::answer_with_default_policy(vector),
            Self::RbacEscalation => rbac_escalation::answer_vector(vector),
            Self::RequestAttributes => request_attributes::answer_vector(vector),
            Self::UserInfo => user_info::answer_vector(vector),
        }
    }

    /// The number of bytes of a text that must agree; the wording of the rest is free.
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
