//! The fields of a kubeconfig that the reader uses. All others are ignored.

use document::{FieldSchema, FieldType, ObjectSchema, SchemaTextRule};

/// The kind of a kubeconfig.
pub(crate) const KIND: &str = "Config";
/// The version of a kubeconfig, which has no group.
pub(crate) const VERSION: &str = "v1";

const fn field(name: &'static str, field_type: FieldType) -> FieldSchema {
    FieldSchema { name, description: "", is_required: false, field_type }
}

const fn text_field_schema(name: &'static str) -> FieldSchema {
    field(name, FieldType::Text(SchemaTextRule::Any))
}

const fn bool_field_schema(name: &'static str) -> FieldSchema {
    field(name, FieldType::Bool { default: false })
}

const fn list_field_schema(name: &'static str, item: &'static ObjectSchema) -> FieldSchema {
    field(name, FieldType::List { item, items_min: 0, items_max: None })
}

pub(super) static CONFIG: ObjectSchema = ObjectSchema {
    type_name: "Config",
    description: "",
    field_schemas: &[
        text_field_schema("apiVersion"),
        text_field_schema("kind"),
        text_field_schema("current-context"),
        list_field_schema("clusters", &NAMED_CLUSTER),
        list_field_schema("contexts", &NAMED_CONTEXT),
        list_field_schema("users", &NAMED_USER),
    ],
};

static NAMED_CLUSTER: ObjectSchema = ObjectSchema {
    type_name: "NamedCluster",
    description: "",
    field_schemas: &[text_field_schema("name"), field("cluster", FieldType::Object(&CLUSTER))],
};

static CLUSTER: ObjectSchema = ObjectSchema {
    type_name: "Cluster",
    description: "",
    field_schemas: &[
        text_field_schema("server"),
        text_field_schema("tls-server-name"),
        bool_field_schema("insecure-skip-tls-verify"),
        text_field_schema("certificate-authority"),
        text_field_schema("certificate-authority-data"),
        text_field_schema("proxy-url"),
        bool_field_schema("disable-compression"),
    ],
};

static NAMED_CONTEXT: ObjectSchema = ObjectSchema {
    type_name: "NamedContext",
    description: "",
    field_schemas: &[text_field_schema("name"), field("context", FieldType::Object(&CONTEXT))],
};

static CONTEXT: ObjectSchema = ObjectSchema {
    type_name: "Context",
    description: "",
    field_schemas: &[
        text_field_schema("cluster"),
        text_field_schema("user"),
        text_field_schema("namespace"),
    ],
};

static NAMED_USER: ObjectSchema = ObjectSchema {
    type_name: "NamedAuthInfo",
    description: "",
    field_schemas: &[text_field_schema("name"), field("user", FieldType::Object(&USER))],
};

static USER: ObjectSchema = ObjectSchema {
    type_name: "AuthInfo",
    description: "",
    field_schemas: &[
        text_field_schema("client-certificate"),
        text_field_schema("client-certificate-data"),
        text_field_schema("client-key"),
        text_field_schema("client-key-data"),
        text_field_schema("token"),
        text_field_schema("tokenFile"),
        text_field_schema("as"),
        text_field_schema("as-uid"),
        field("as-groups", FieldType::TextList),
        // A map of lists, whose types the reader checks.
        field("as-user-extra", FieldType::Any),
        text_field_schema("username"),
        text_field_schema("password"),
        field("auth-provider", FieldType::Any),
        field("exec", FieldType::Any),
    ],
};
