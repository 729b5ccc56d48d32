//! The fields of a kubeconfig that the reader uses. All others are ignored.

use document::{FieldSchema, FieldType, ObjectSchema, TextRule};

/// The kind of a kubeconfig.
pub(crate) const KIND: &str = "Config";
/// The version of a kubeconfig, which has no group.
pub(crate) const VERSION: &str = "v1";

const fn field(name: &'static str, field_type: FieldType) -> FieldSchema {
    FieldSchema { name, description: "", is_required: false, field_type }
}

const fn text_field(name: &'static str) -> FieldSchema {
    field(name, FieldType::Text(TextRule::Any))
}

const fn bool_field(name: &'static str) -> FieldSchema {
    field(name, FieldType::Bool { default: false })
}

const fn list_field(name: &'static str, item: &'static ObjectSchema) -> FieldSchema {
    field(name, FieldType::List { item, items_min: 0, items_max: None })
}

pub(super) static CONFIG: ObjectSchema = ObjectSchema {
    type_name: "Config",
    description: "",
    fields: &[
        text_field("apiVersion"),
        text_field("kind"),
        text_field("current-context"),
        list_field("clusters", &NAMED_CLUSTER),
        list_field("contexts", &NAMED_CONTEXT),
        list_field("users", &NAMED_USER),
    ],
};

static NAMED_CLUSTER: ObjectSchema = ObjectSchema {
    type_name: "NamedCluster",
    description: "",
    fields: &[text_field("name"), field("cluster", FieldType::Object(&CLUSTER))],
};

static CLUSTER: ObjectSchema = ObjectSchema {
    type_name: "Cluster",
    description: "",
    fields: &[
        text_field("server"),
        text_field("tls-server-name"),
        bool_field("insecure-skip-tls-verify"),
        text_field("certificate-authority"),
        text_field("certificate-authority-data"),
        text_field("proxy-url"),
        bool_field("disable-compression"),
    ],
};

static NAMED_CONTEXT: ObjectSchema = ObjectSchema {
    type_name: "NamedContext",
    description: "",
    fields: &[text_field("name"), field("context", FieldType::Object(&CONTEXT))],
};

static CONTEXT: ObjectSchema = ObjectSchema {
    type_name: "Context",
    description: "",
    fields: &[text_field("cluster"), text_field("user"), text_field("namespace")],
};

static NAMED_USER: ObjectSchema = ObjectSchema {
    type_name: "NamedAuthInfo",
    description: "",
    fields: &[text_field("name"), field("user", FieldType::Object(&USER))],
};

static USER: ObjectSchema = ObjectSchema {
    type_name: "AuthInfo",
    description: "",
    fields: &[
        text_field("client-certificate"),
        text_field("client-certificate-data"),
        text_field("client-key"),
        text_field("client-key-data"),
        text_field("token"),
        text_field("tokenFile"),
        text_field("as"),
        text_field("as-uid"),
        field("as-groups", FieldType::TextList),
        // A map of lists, whose types the reader checks.
        field("as-user-extra", FieldType::Any),
        text_field("username"),
        text_field("password"),
        field("auth-provider", FieldType::Any),
        field("exec", FieldType::Any),
    ],
};
