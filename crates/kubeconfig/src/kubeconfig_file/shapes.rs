//! The fields of a kubeconfig that are looked at. All others are ignored.

use document::{Field, Object, Shape, TextRule};

/// The name of the kind.
pub(crate) const KIND: &str = "Config";
/// The version, which has no group.
pub(crate) const VERSION: &str = "v1";

const fn field(name: &'static str, shape: Shape) -> Field {
    Field { name, description: "", is_required: false, shape }
}

const fn text(name: &'static str) -> Field {
    field(name, Shape::Text(TextRule::Any))
}

const fn flag(name: &'static str) -> Field {
    field(name, Shape::Flag { default: false })
}

const fn list(name: &'static str, item: &'static Object) -> Field {
    field(name, Shape::List { item, items_min: 0, items_max: None })
}

pub(super) static CONFIG: Object = Object {
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

static NAMED_CLUSTER: Object = Object {
    type_name: "NamedCluster",
    description: "",
    fields: &[text("name"), field("cluster", Shape::Object(&CLUSTER))],
};

static CLUSTER: Object = Object {
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

static NAMED_CONTEXT: Object = Object {
    type_name: "NamedContext",
    description: "",
    fields: &[text("name"), field("context", Shape::Object(&CONTEXT))],
};

static CONTEXT: Object = Object {
    type_name: "Context",
    description: "",
    fields: &[text("cluster"), text("user"), text("namespace")],
};

static NAMED_USER: Object = Object {
    type_name: "NamedAuthInfo",
    description: "",
    fields: &[text("name"), field("user", Shape::Object(&USER))],
};

static USER: Object = Object {
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
        field("as-groups", Shape::Texts),
        // A map of lists, which the reader looks at by itself.
        field("as-user-extra", Shape::Any),
        text("username"),
        text("password"),
        field("auth-provider", Shape::Any),
        field("exec", Shape::Any),
    ],
};
