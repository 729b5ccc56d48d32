//! The fields of `ExternalAuthorizationHookConfiguration`.

use document::{FieldSchema, FieldType, ObjectSchema, SchemaTextRule};

/// The API group of the kind.
pub(crate) const GROUP: &str = "kubeapiserverauthorization.config.k8s.io";
/// The one version of the kind.
pub(super) const VERSION: &str = "v1alpha1";
/// The group with the version.
pub(super) const API_VERSION: &str = "kubeapiserverauthorization.config.k8s.io/v1alpha1";
/// The name of the kind.
pub(crate) const KIND: &str = "ExternalAuthorizationHookConfiguration";

pub(crate) static HOOK_CONFIGURATION: ObjectSchema = ObjectSchema {
    type_name: KIND,
    description: "Where the authorization webhooks of an API server are.",
    field_schemas: &[
        FieldSchema {
            name: "apiVersion",
            description: "Version of the format.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&[API_VERSION])),
        },
        FieldSchema {
            name: "kind",
            description: "Kind of the document.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::OneOf(&[KIND])),
        },
        FieldSchema {
            name: "metadata",
            description: "Not looked at.",
            is_required: false,
            field_type: FieldType::Any,
        },
        FieldSchema {
            name: "externalAuthorizationHooks",
            description: "The webhooks in the order in which they are asked; or by name, and then \
                in the order of their names.",
            is_required: true,
            field_type: FieldType::ListOrMap { item: &HOOK, items_min: 1 },
        },
    ],
};

static HOOK: ObjectSchema = ObjectSchema {
    type_name: "ExternalAuthorizationHook",
    description: "One webhook.",
    field_schemas: &[
        FieldSchema {
            name: "name",
            description: "Name of the authorizer in metrics and reasons: unique.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::DnsSubdomain),
        },
        FieldSchema {
            name: "clientConfig",
            description: "How the webhook is reached: at a service or at a URL.",
            is_required: true,
            field_type: FieldType::Object(&CLIENT_CONFIG),
        },
    ],
};

static CLIENT_CONFIG: ObjectSchema = ObjectSchema {
    type_name: "WebhookClientConfig",
    description: "How a webhook is reached.",
    field_schemas: &[
        FieldSchema {
            name: "serverCaFile",
            description: "File with the authorities that are trusted, instead of those of the \
                system.",
            is_required: false,
            field_type: FieldType::Text(SchemaTextRule::Any),
        },
        FieldSchema {
            name: "clientCertFile",
            description: "File with the client certificate: only together with clientKeyFile.",
            is_required: false,
            field_type: FieldType::Text(SchemaTextRule::Any),
        },
        FieldSchema {
            name: "clientCertificateFile",
            description: "Another name of clientCertFile.",
            is_required: false,
            field_type: FieldType::Text(SchemaTextRule::Any),
        },
        FieldSchema {
            name: "clientKeyFile",
            description: "File with the key of the client certificate.",
            is_required: false,
            field_type: FieldType::Text(SchemaTextRule::Any),
        },
        FieldSchema {
            name: "service",
            description: "Service of the cluster. It wins over a URL.",
            is_required: false,
            field_type: FieldType::Object(&SERVICE),
        },
        FieldSchema {
            name: "url",
            description: "URL with https and neither user, query nor fragment.",
            is_required: false,
            field_type: FieldType::Text(SchemaTextRule::Any),
        },
    ],
};

static SERVICE: ObjectSchema = ObjectSchema {
    type_name: "ServiceReference",
    description: "A service of the cluster.",
    field_schemas: &[
        FieldSchema {
            name: "name",
            description: "Name of the service.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::Any),
        },
        FieldSchema {
            name: "namespace",
            description: "Namespace of the service.",
            is_required: true,
            field_type: FieldType::Text(SchemaTextRule::Any),
        },
        FieldSchema {
            name: "port",
            description: "Port of the service. Without it the only port, or 443 if there are several.",
            is_required: false,
            field_type: FieldType::Integer,
        },
    ],
};
