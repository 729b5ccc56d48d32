//! The fields of a kubeconfig that the reader uses. All others are ignored.

use document::{FieldSchema, FieldType, ObjectSchema, TextRule};

/// The name of the kind.
pub(crate) const KIND: &str = "Config";
/// The version, which has no group.
pub(crate) const VERSION: &str = "v1";

const fn field(name: &'static str, field_type: FieldType) -> FieldSchema {
    FieldSchema { name, description: "", is_required: false, field_type }
}

const fn text(name: &'static str) -> FieldSchema {
    field(name, FieldType::Text(TextRule::Any))
}

const fn flag(name: &'static str) -> FieldSchema {
    field(name, FieldType::Bool { default: false })
}

const fn list(name: &'static str, item: &'static ObjectSchema) -> FieldSchema {
    field(name, FieldType::List { item, items_min: 0, items_max: None })
}

pub(super) static CONFIG: ObjectSchema = ObjectSchema {
    type_name: "Config",
    description: "",
    fields: &[
        text("apiVersion"),
        text("kind"),
        text("current-context"),
        list("clusters", &NAMED_CLUSTER),
        list("contexts", &NAMED_CONTEXT),
        list("users", &NAMED_USER),
    ],
};

static NAMED_CLUSTER: ObjectSchema = ObjectSchema {
    type_name: "NamedCluster",
    description: "",
    fields: &[text("name"), field("cluster", FieldType::Object(&CLUSTER))],
};

static CLUSTER: ObjectSchema = ObjectSchema {
    type_name: "Cluster",
    description: "",
    fields: &[
        text("server"),
        text("tls-server-name"),
        flag("insecure-skip-tls-verify"),
        text("certificate-authority"),
        text("certificate-authority-data"),
        text("proxy-url"),
        flag("disable-compression"),
    ],
};

static NAMED_CONTEXT: ObjectSchema = ObjectSchema {
    type_name: "NamedContext",
    description: "",
    fields: &[text("name"), field("context", FieldType::Object(&CONTEXT))],
};

static CONTEXT: ObjectSchema = ObjectSchema {
    type_name: "Context",
    description: "",
    fields: &[text("cluster"), text("user"), text("namespace")],
};

static NAMED_USER: ObjectSchema = ObjectSchema {
    type_name: "NamedAuthInfo",
    description: "",
    fields: &[text("name"), field("user", FieldType::Object(&USER))],
};

static USER: ObjectSchema = ObjectSchema {
    type_name: "AuthInfo",
    description: "",
    fields: &[
        text("client-certificate"),
        text("client-certificate-data"),
        text("client-key"),
        text("client-key-data"),
        text("token"),
        text("tokenFile"),
        text("as"),
        text("as-uid"),
        field("as-groups", FieldType::TextList),
        // A map of lists, whose types the reader checks.
        field("as-user-extra", FieldType::Any),
        text("username"),
        text("password"),
        field("auth-provider", FieldType::Any),
        field("exec", FieldType::Any),
    ],
};
