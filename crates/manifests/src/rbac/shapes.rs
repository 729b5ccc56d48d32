//! The fields of the four kinds, for those who read them strictly.

use document::{Field, Object, Shape, TextRule};

use super::decode::Kind;

impl Kind {
    /// The fields of the kind.
    pub(crate) fn shape(self) -> &'static Object {
        match self {
            Self::ClusterRole => &CLUSTER_ROLE,
            Self::Role => &ROLE,
            Self::ClusterRoleBinding => &CLUSTER_ROLE_BINDING,
            Self::RoleBinding => &ROLE_BINDING,
        }
    }
}

const fn field(name: &'static str, description: &'static str, shape: Shape) -> Field {
    Field { name, description, is_required: false, shape }
}

const fn text(name: &'static str, description: &'static str) -> Field {
    field(name, description, Shape::Text(TextRule::Any))
}

const fn list(name: &'static str, description: &'static str, item: &'static Object) -> Field {
    field(name, description, Shape::List { item, items_min: 0, items_max: None })
}

const API_VERSION: Field = text("apiVersion", "Version of the object.");
const KIND: Field = text("kind", "Kind of the object.");
const METADATA: Field =
    field("metadata", "What identifies the object.", Shape::Object(&OBJECT_META));
const RULES: Field = list("rules", "What the role grants.", &POLICY_RULE);
const SUBJECTS: Field = list("subjects", "To whom the role is granted.", &SUBJECT);
const ROLE_REF_FIELD: Field =
    field("roleRef", "The role that is granted.", Shape::Object(&ROLE_REF));

static CLUSTER_ROLE: Object = Object {
    type_name: "ClusterRole",
    description: "What may be done in the whole cluster.",
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        RULES,
        field(
            "aggregationRule",
            "Where the rules come from, if other roles supply them.",
            Shape::Object(&AGGREGATION_RULE),
        ),
    ],
};

static ROLE: Object = Object {
    type_name: "Role",
    description: "What may be done in a namespace.",
    fields: &[API_VERSION, KIND, METADATA, RULES],
};

static CLUSTER_ROLE_BINDING: Object = Object {
    type_name: "ClusterRoleBinding",
    description: "Who has a role in the whole cluster.",
    fields: &[API_VERSION, KIND, METADATA, SUBJECTS, ROLE_REF_FIELD],
};

static ROLE_BINDING: Object = Object {
    type_name: "RoleBinding",
    description: "Who has a role in a namespace.",
    fields: &[API_VERSION, KIND, METADATA, SUBJECTS, ROLE_REF_FIELD],
};

static POLICY_RULE: Object = Object {
    type_name: "PolicyRule",
    description: "Verbs on resources, or verbs on paths.",
    fields: &[
        field("verbs", "The verbs.", Shape::Texts),
        field("apiGroups", "The API groups of the resources.", Shape::Texts),
        field("resources", "The resources.", Shape::Texts),
        field("resourceNames", "Names of objects; all of them if there are none.", Shape::Texts),
        field("nonResourceURLs", "Paths that are no resources.", Shape::Texts),
    ],
};

static SUBJECT: Object = Object {
    type_name: "Subject",
    description: "One to whom a role is granted.",
    fields: &[
        text("kind", "User, Group or ServiceAccount."),
        text("apiGroup", "The API group of the kind."),
        text("name", "The name."),
        text("namespace", "The namespace of a service account."),
    ],
};

static ROLE_REF: Object = Object {
    type_name: "RoleRef",
    description: "The role that is granted.",
    fields: &[
        text("apiGroup", "The API group of the kind."),
        text("kind", "Role or ClusterRole."),
        text("name", "The name."),
    ],
};

static AGGREGATION_RULE: Object = Object {
    type_name: "AggregationRule",
    description: "Which roles supply the rules of another.",
    fields: &[list(
        "clusterRoleSelectors",
        "A role that any of these selects is a supplier.",
        &LABEL_SELECTOR,
    )],
};

static LABEL_SELECTOR: Object = Object {
    type_name: "LabelSelector",
    description: "A selector of objects by their labels.",
    fields: &[
        field("matchLabels", "Labels that must have these values.", Shape::TextMap),
        list("matchExpressions", "Further requirements.", &LABEL_EXPRESSION),
    ],
};

static LABEL_EXPRESSION: Object = Object {
    type_name: "LabelSelectorRequirement",
    description: "One requirement on a label.",
    fields: &[
        text("key", "The key of the label."),
        text("operator", "In, NotIn, Exists or DoesNotExist."),
        field("values", "The values of the first two operators.", Shape::Texts),
    ],
};

/// What every object has. Most of it is set by the server and found in dumps only.
pub(crate) static OBJECT_META: Object = Object {
    type_name: "ObjectMeta",
    description: "What identifies and describes an object.",
    fields: &[
        text("name", "The name."),
        text("generateName", "The beginning of a name that the server completes."),
        text("namespace", "The namespace."),
        text("selfLink", "The path of the object, in dumps of old servers."),
        text("uid", "Tells objects apart that had the same name at different times."),
        text("resourceVersion", "Changes with every change of the object."),
        field("generation", "Counts the changes.", Shape::Number),
        text("creationTimestamp", "When the object was created."),
        text("deletionTimestamp", "When the object is to be deleted."),
        field("deletionGracePeriodSeconds", "How long deleting may take.", Shape::Number),
        field("labels", "What others select the object by.", Shape::TextMap),
        field("annotations", "Notes of tools.", Shape::TextMap),
        list("ownerReferences", "The objects that this one is deleted with.", &OWNER_REFERENCE),
        field("finalizers", "What must happen before the object is deleted.", Shape::Texts),
        field("managedFields", "Who set which field.", Shape::Any),
        field("initializers", "Who has to act before others see the object.", Shape::Any),
    ],
};

static OWNER_REFERENCE: Object = Object {
    type_name: "OwnerReference",
    description: "An object that another one is deleted with.",
    fields: &[
        text("apiVersion", "Version of the owner."),
        text("kind", "Kind of the owner."),
        text("name", "Name of the owner."),
        text("uid", "Uid of the owner."),
        field("controller", "The owner manages the object.", Shape::Flag { default: false }),
        field(
            "blockOwnerDeletion",
            "The owner is deleted only after the object.",
            Shape::Flag { default: false },
        ),
    ],
};
