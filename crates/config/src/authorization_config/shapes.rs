//! The fields of `AuthorizationConfiguration`, the same in all three versions.

use authz_webhook::{
    Connection, FailurePolicy, MATCH_CONDITIONS_MAX, MatchConditions, ReviewVersion,
};
use document::{Field, Object, Shape, TextRule};

/// The API group of the kind.
pub(crate) const GROUP: &str = "apiserver.config.k8s.io";
/// The versions of the kind, the preferred one first.
pub(crate) const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// The name of the kind.
pub(crate) const KIND: &str = "AuthorizationConfiguration";
/// The group with each version.
pub(crate) const API_VERSIONS: [&str; 3] = [
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
];

/// The types of authorizers, as [`authz_chain::AuthorizerType`] names them, in its order.
pub(super) const AUTHORIZER_TYPES: [&str; 6] =
    ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];

pub(crate) static AUTHORIZATION_CONFIGURATION: Object = Object {
    type_name: KIND,
    description: "Configuration of the authorizers of an API server.",
    fields: &[
        Field {
            name: "apiVersion",
            description: "Version of the format.",
            is_required: true,
            shape: Shape::Text(TextRule::OneOf(&API_VERSIONS)),
        },
        Field {
            name: "kind",
            description: "Kind of the document.",
            is_required: true,
            shape: Shape::Text(TextRule::OneOf(&[KIND])),
        },
        Field {
            name: "authorizers",
            description: "The authorizers in the order in which they are asked. The first one \
                that allows or denies decides.",
            is_required: true,
            shape: Shape::List { item: &AUTHORIZER, items_min: 1, items_max: None },
        },
    ],
};

static AUTHORIZER: Object = Object {
    type_name: "AuthorizerConfiguration",
    description: "One authorizer.",
    fields: &[
        Field {
            name: "type",
            description: "Type of the authorizer. Only Webhook may occur more than once.",
            is_required: true,
            shape: Shape::Text(TextRule::OneOf(&AUTHORIZER_TYPES)),
        },
        Field {
            name: "name",
            description: "Name of the authorizer in metrics and reasons: unique, and for a type \
                other than Webhook the type in lower case.",
            is_required: true,
            shape: Shape::Text(TextRule::DnsSubdomain),
        },
        Field {
            name: "webhook",
            description: "Parameters of a webhook: required for type Webhook, not allowed for \
                any other type.",
            is_required: false,
            shape: Shape::Object(&WEBHOOK),
        },
    ],
};

static WEBHOOK: Object = Object {
    type_name: "WebhookConfiguration",
    description: "Parameters of a webhook.",
    fields: &[
        Field {
            name: "authorizedTTL",
            description: "How long an answer that allows is reused.",
            is_required: false,
            shape: Shape::Duration { default: Some("5m") },
        },
        Field {
            name: "cacheAuthorizedRequests",
            description: "Whether answers that allow are reused at all.",
            is_required: false,
            shape: Shape::Flag { default: true },
        },
        Field {
            name: "unauthorizedTTL",
            description: "How long any other well-formed answer is reused.",
            is_required: false,
            shape: Shape::Duration { default: Some("30s") },
        },
        Field {
            name: "cacheUnauthorizedRequests",
            description: "Whether answers that do not allow are reused at all.",
            is_required: false,
            shape: Shape::Flag { default: true },
        },
        Field {
            name: "timeout",
            description: "Limit of one attempt: more than 0s, at most 30s.",
            is_required: true,
            shape: Shape::Duration { default: None },
        },
        Field {
            name: "subjectAccessReviewVersion",
            description: "Version of the SubjectAccessReview that is sent and expected.",
            is_required: true,
            shape: Shape::Text(TextRule::OneOf(&ReviewVersion::NAMES)),
        },
        Field {
            name: "matchConditionSubjectAccessReviewVersion",
            description: "Version of the SubjectAccessReview that match conditions see: required \
                if there are any.",
            is_required: false,
            shape: Shape::Text(TextRule::OneOf(&MatchConditions::VERSION_NAMES)),
        },
        Field {
            name: "failurePolicy",
            description: "What a failing webhook or match condition means: NoOpinion asks the \
                next authorizer, Deny refuses the request.",
            is_required: true,
            shape: Shape::Text(TextRule::OneOf(&FailurePolicy::NAMES)),
        },
        Field {
            name: "connectionInfo",
            description: "How the webhook is reached.",
            is_required: true,
            shape: Shape::Object(&CONNECTION_INFO),
        },
        Field {
            name: "matchConditions",
            description: "Conditions that must all be true for the webhook to be asked.",
            is_required: false,
            shape: Shape::List {
                item: &MATCH_CONDITION,
                items_min: 0,
                items_max: Some(MATCH_CONDITIONS_MAX),
            },
        },
    ],
};

static CONNECTION_INFO: Object = Object {
    type_name: "WebhookConnectionInfo",
    description: "How a webhook is reached.",
    fields: &[
        Field {
            name: "type",
            description: "KubeConfigFile reads a kubeconfig file. InClusterConfig uses the \
                service account of the pod and is refused by the main server.",
            is_required: true,
            shape: Shape::Text(TextRule::OneOf(&Connection::TYPE_NAMES)),
        },
        Field {
            name: "kubeConfigFile",
            description: "Absolute path of the kubeconfig file: required for type \
                KubeConfigFile, not allowed otherwise.",
            is_required: false,
            shape: Shape::Text(TextRule::AbsolutePath),
        },
    ],
};

static MATCH_CONDITION: Object = Object {
    type_name: "WebhookMatchCondition",
    description: "One condition.",
    fields: &[Field {
        name: "expression",
        description: "A CEL expression of type bool over the variable request, a \
            SubjectAccessReview spec. An expression that begins with ! must be quoted.",
        is_required: true,
        shape: Shape::Text(TextRule::Any),
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_what_the_domain_names() {
        let types = authz_chain::AuthorizerType::ALL.map(authz_chain::AuthorizerType::name);
        assert_eq!(AUTHORIZER_TYPES, types);
        for (api_version, version) in API_VERSIONS.into_iter().zip(VERSIONS) {
            assert_eq!(api_version, format!("{GROUP}/{version}"));
        }
    }
}
