//! The fields of `ExternalAuthorizationHookConfiguration`.

use document::{Field, Object, Shape, TextRule};

/// The API group of the kind.
pub(crate) const GROUP: &str = "kubeapiserverauthorization.config.k8s.io";
/// The one version of the kind.
pub(super) const VERSION: &str = "v1alpha1";
/// The group with the version.
pub(super) const API_VERSION: &str = "kubeapiserverauthorization.config.k8s.io/v1alpha1";
/// The name of the kind.
pub(crate) const KIND: &str = "ExternalAuthorizationHookConfiguration";

pub(super) static HOOK_CONFIGURATION: Object = Object {
    type_name: KIND,
    description: "Where the authorization webhooks of an API server are.",
    fields: &[
        Field {
            name: "apiVersion",
            description: "Version of the format.",
            is_required: true,
            shape: Shape::Text(TextRule::OneOf(&[API_VERSION])),
        },
        Field {
            name: "kind",
            description: "Kind of the document.",
            is_required: true,
            shape: Shape::Text(TextRule::OneOf(&[KIND])),
        },
        Field {
            name: "metadata",
            description: "Not looked at.",
            is_required: false,
            shape: Shape::Any,
        },
        Field {
            name: "externalAuthorizationHooks",
            description: "The webhooks in the order in which they are asked; or by name, and then \
                in the order of their names.",
            is_required: true,
            shape: Shape::ListOrMap { item: &HOOK, items_min: 1 },
        },
    ],
};

static HOOK: Object = Object {
    type_name: "ExternalAuthorizationHook",
    description: "One webhook.",
    fields: &[
        Field {
            name: "name",
            description: "Name of the authorizer in metrics and reasons: unique.",
            is_required: true,
            shape: Shape::Text(TextRule::DnsSubdomain),
        },
        Field {
            name: "clientConfig",
            description: "How the webhook is reached: at a service or at a URL.",
            is_required: true,
            shape: Shape::Object(&CLIENT_CONFIG),
        },
    ],
};

static CLIENT_CONFIG: Object = Object {
    type_name: "WebhookClientConfig",
    description: "How a webhook is reached.",
    fields: &[
        Field {
            name: "serverCaFile",
            description: "File with the authorities that are trusted, instead of those of the \
                system.",
            is_required: false,
            shape: Shape::Text(TextRule::Any),
        },
        Field {
            name: "clientCertFile",
            description: "File with the client certificate: only together with clientKeyFile.",
            is_required: false,
            shape: Shape::Text(TextRule::Any),
        },
        Field {
            name: "clientCertificateFile",
            description: "Another name of clientCertFile.",
            is_required: false,
            shape: Shape::Text(TextRule::Any),
        },
        Field {
            name: "clientKeyFile",
            description: "File with the key of the client certificate.",
            is_required: false,
            shape: Shape::Text(TextRule::Any),
        },
        Field {
            name: "service",
            description: "Service of the cluster, port 443. It wins over a URL.",
            is_required: false,
            shape: Shape::Object(&SERVICE),
        },
        Field {
            name: "url",
            description: "URL with https and neither user, query nor fragment.",
            is_required: false,
            shape: Shape::Text(TextRule::Any),
        },
    ],
};

static SERVICE: Object = Object {
    type_name: "ServiceReference",
    description: "A service of the cluster.",
    fields: &[
        Field {
            name: "name",
            description: "Name of the service.",
            is_required: true,
            shape: Shape::Text(TextRule::Any),
        },
        Field {
            name: "namespace",
            description: "Namespace of the service.",
            is_required: true,
            shape: Shape::Text(TextRule::Any),
        },
    ],
};
