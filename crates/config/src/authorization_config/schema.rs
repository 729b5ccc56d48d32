//! The fields of `AuthorizationConfiguration`, the same in all three versions.

use authz_webhook::{
    ConnectionInfo, FailurePolicy, MATCH_CONDITIONS_MAX, MatchConditions, ReviewVersion,
};
use document::{FieldSchema, FieldType, ObjectSchema, SchemaTextRule};

/// The API group of the kind.
pub(crate) const GROUP: &str = "apiserver.config.k8s.io";
/// The versions of the kind, the preferred one first.
pub(crate) const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// The name of the kind.
pub(crate) const KIND: &str = "AuthorizationConfiguration";
/// The group with the preferred version.
pub(super) const PREFERRED_API_VERSION: &str = "apiserver.config.k8s.io/v1";
/// The group with each version.
pub(crate) const API_VERSIONS: [&str; 3] =
    [PREFERRED_API_VERSION, "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];

/// The types of authorizers, as [`authz_chain::AuthorizerType`] names them, in its order.
pub(super) const AUTHORIZER_TYPES: [&str; 6] =
    ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];

pub(crate) static AUTHORIZATION_CONFIGURATION: ObjectSchema = ObjectSchema {
    type_name: KIND,
    description: "Configuration of the authorizers of an API server.",
    field_schemas: &[
        FieldSchema {
            name: "apiVersion",
            description: "Version of the format.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&API_VERSIONS)),
        },
        FieldSchema {
            name: "kind",
            description: "Kind of the document.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&[KIND])),
        },
        FieldSchema {
            name: "authorizers",
            description: "The authorizers in the order in which they are asked. The first one \
                that allows or denies decides.",
            is_required: true,
            field_type: FieldType::List { item: &AUTHORIZER, items_min: 1, items_max: None },
        },
    ],
};

static AUTHORIZER: ObjectSchema = ObjectSchema {
    type_name: "AuthorizerConfiguration",
    description: "One authorizer.",
    field_schemas: &[
        FieldSchema {
            name: "type",
            description: "Type of the authorizer. Only Webhook may occur more than once.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&AUTHORIZER_TYPES)),
        },
        FieldSchema {
            name: "name",
            description: "Name of the authorizer in metrics and reasons: unique, and for a type \
                other than Webhook the type in lower case.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::DnsSubdomain),
        },
        FieldSchema {
            name: "webhook",
            description: "Parameters of a webhook: required for type Webhook, not allowed for \
                any other type.",
            is_required: false,
            field_type: FieldType::Object(&WEBHOOK),
        },
    ],
};

static WEBHOOK: ObjectSchema = ObjectSchema {
    type_name: "WebhookConfiguration",
    description: "Parameters of a webhook.",
    field_schemas: &[
        FieldSchema {
            name: "authorizedTTL",
            description: "How long an answer that allows is reused.",
            is_required: false,
            field_type: FieldType::Duration { default: Some("5m") },
        },
        FieldSchema {
            name: "cacheAuthorizedRequests",
            description: "Whether answers that allow are reused at all.",
            is_required: false,
            field_type: FieldType::Bool { default: true },
        },
        FieldSchema {
            name: "unauthorizedTTL",
            description: "How long any other well-formed answer is reused.",
            is_required: false,
            field_type: FieldType::Duration { default: Some("30s") },
        },
        FieldSchema {
            name: "cacheUnauthorizedRequests",
            description: "Whether answers that do not allow are reused at all.",
            is_required: false,
            field_type: FieldType::Bool { default: true },
        },
        FieldSchema {
            name: "timeout",
            description: "Limit of one attempt: more than 0s, at most 30s.",
            is_required: true,
            field_type: FieldType::Duration { default: None },
        },
        FieldSchema {
            name: "subjectAccessReviewVersion",
            description: "Version of the SubjectAccessReview that is sent and expected.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&ReviewVersion::NAMES)),
        },
        FieldSchema {
            name: "matchConditionSubjectAccessReviewVersion",
            description: "Version of the SubjectAccessReview that match conditions see: required \
                if there are any.",
            is_required: false,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&MatchConditions::VERSION_NAMES)),
        },
        FieldSchema {
            name: "failurePolicy",
            description: "What a failing webhook or match condition means: NoOpinion asks the \
                next authorizer, Deny refuses the request.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&FailurePolicy::NAMES)),
        },
        FieldSchema {
            name: "connectionInfo",
            description: "How the webhook is reached.",
            is_required: true,
            field_type: FieldType::Object(&CONNECTION_INFO),
        },
        FieldSchema {
            name: "matchConditions",
            description: "Conditions that must all be true for the webhook to be asked.",
            is_required: false,
            field_type: FieldType::List {
                item: &MATCH_CONDITION,
                items_min: 0,
                items_max: Some(MATCH_CONDITIONS_MAX),
            },
        },
    ],
};

static CONNECTION_INFO: ObjectSchema = ObjectSchema {
    type_name: "WebhookConnectionInfo",
    description: "How a webhook is reached.",
    field_schemas: &[
        FieldSchema {
            name: "type",
            description: "KubeConfigFile reads a kubeconfig file. InClusterConfig uses the \
                service account of the pod and is refused by the main server.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&ConnectionInfo::TYPE_NAMES)),
        },
        FieldSchema {
            name: "kubeConfigFile",
            description: "Absolute path of the kubeconfig file: required for type \
                KubeConfigFile, not allowed otherwise.",
            is_required: false,
            field_type: FieldType::Text(SchemaTextRule::AbsolutePath),
        },
    ],
};

static MATCH_CONDITION: ObjectSchema = ObjectSchema {
    type_name: "WebhookMatchCondition",
    description: "One condition.",
    field_schemas: &[FieldSchema {
        name: "expression",
        description: "A CEL expression of type bool over the variable request, a \
            SubjectAccessReview spec. An expression that begins with ! must be quoted.",
        is_required: true,
        field_type: FieldType::Text(SchemaTextRule::Any),
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorizer_types_match_the_chain() {
        let types = authz_chain::AuthorizerType::BUILT_IN.map(authz_chain::AuthorizerType::name);
        assert_eq!(AUTHORIZER_TYPES, types);
        for (api_version, version) in API_VERSIONS.into_iter().zip(VERSIONS) {
            assert_eq!(api_version, format!("{GROUP}/{version}"));
        }
    }
}
