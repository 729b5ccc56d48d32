//! The fields of the four kinds, for those who read them strictly.

use document::{FieldSchema, FieldType, ObjectSchema, TextRule};

use super::decode::Kind;

impl Kind {
    /// The fields of the kind.
    pub(crate) fn object_schema(self) -> &'static ObjectSchema {
        match self {
            Self::ClusterRole => &CLUSTER_ROLE,
            Self::Role => &ROLE,
            Self::ClusterRoleBinding => &CLUSTER_ROLE_BINDING,
            Self::RoleBinding => &ROLE_BINDING,
        }
    }
}

const fn field(
    name: &'static str,
    description: &'static str,
    field_type: FieldType,
) -> FieldSchema {
    FieldSchema { name, description, is_required: false, field_type }
}

const fn text(name: &'static str, description: &'static str) -> FieldSchema {
    field(name, description, FieldType::Text(TextRule::Any))
}

const fn list(
    name: &'static str,
    description: &'static str,
    item: &'static ObjectSchema,
) -> FieldSchema {
    field(name, description, FieldType::List { item, items_min: 0, items_max: None })
}

const API_VERSION: FieldSchema = text("apiVersion", "Version of the object.");
const KIND: FieldSchema = text("kind", "Kind of the object.");
const METADATA: FieldSchema =
    field("metadata", "What identifies the object.", FieldType::Object(&OBJECT_META));
const RULES: FieldSchema = list("rules", "What the role grants.", &POLICY_RULE);
const SUBJECTS: FieldSchema = list("subjects", "To whom the role is granted.", &SUBJECT);
const ROLE_REF_FIELD: FieldSchema =
    field("roleRef", "The role that is granted.", FieldType::Object(&ROLE_REF));

static CLUSTER_ROLE: ObjectSchema = ObjectSchema {
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
            FieldType::Object(&AGGREGATION_RULE),
        ),
    ],
};

static ROLE: ObjectSchema = ObjectSchema {
    type_name: "Role",
    description: "What may be done in a namespace.",
    fields: &[API_VERSION, KIND, METADATA, RULES],
};

static CLUSTER_ROLE_BINDING: ObjectSchema = ObjectSchema {
    type_name: "ClusterRoleBinding",
    description: "Who has a role in the whole cluster.",
    fields: &[API_VERSION, KIND, METADATA, SUBJECTS, ROLE_REF_FIELD],
};

static ROLE_BINDING: ObjectSchema = ObjectSchema {
    type_name: "RoleBinding",
    description: "Who has a role in a namespace.",
    fields: &[API_VERSION, KIND, METADATA, SUBJECTS, ROLE_REF_FIELD],
};

static POLICY_RULE: ObjectSchema = ObjectSchema {
    type_name: "PolicyRule",
    description: "Verbs on resources, or verbs on paths.",
    fields: &[
        field("verbs", "The verbs.", FieldType::TextList),
        field("apiGroups", "The API groups of the resources.", FieldType::TextList),
        field("resources", "The resources.", FieldType::TextList),
        field(
            "resourceNames",
            "Names of objects; all of them if there are none.",
            FieldType::TextList,
        ),
        field("nonResourceURLs", "Paths that are no resources.", FieldType::TextList),
    ],
};

static SUBJECT: ObjectSchema = ObjectSchema {
    type_name: "Subject",
    description: "One to whom a role is granted.",
    fields: &[
        text("kind", "User, Group or ServiceAccount."),
        text("apiGroup", "The API group of the kind."),
        text("name", "The name."),
        text("namespace", "The namespace of a service account."),
    ],
};

static ROLE_REF: ObjectSchema = ObjectSchema {
    type_name: "RoleRef",
    description: "The role that is granted.",
    fields: &[
        text("apiGroup", "The API group of the kind."),
        text("kind", "Role or ClusterRole."),
        text("name", "The name."),
    ],
};

static AGGREGATION_RULE: ObjectSchema = ObjectSchema {
    type_name: "AggregationRule",
    description: "Which roles supply the rules of another.",
    fields: &[list(
        "clusterRoleSelectors",
        "A role that any of these selects is a supplier.",
        &LABEL_SELECTOR,
    )],
};

static LABEL_SELECTOR: ObjectSchema = ObjectSchema {
    type_name: "LabelSelector",
    description: "A selector of objects by their labels.",
    fields: &[
        field("matchLabels", "Labels that must have these values.", FieldType::TextMap),
        list("matchExpressions", "Further requirements.", &LABEL_EXPRESSION),
    ],
};

static LABEL_EXPRESSION: ObjectSchema = ObjectSchema {
    type_name: "LabelSelectorRequirement",
    description: "One requirement on a label.",
    fields: &[
        text("key", "The key of the label."),
        text("operator", "In, NotIn, Exists or DoesNotExist."),
        field("values", "The values of the first two operators.", FieldType::TextList),
    ],
};

/// The metadata of every object. The server sets most of it, so most fields occur in dumps only.
pub(crate) static OBJECT_META: ObjectSchema = ObjectSchema {
    type_name: "ObjectMeta",
    description: "What identifies and describes an object.",
    fields: &[
        text("name", "The name."),
        text("generateName", "The beginning of a name that the server completes."),
        text("namespace", "The namespace."),
        text("selfLink", "The path of the object, in dumps of old servers."),
        text("uid", "Tells objects apart that had the same name at different times."),
        text("resourceVersion", "Changes with every change of the object."),
        field("generation", "Counts the changes.", FieldType::Integer),
        text("creationTimestamp", "When the object was created."),
        text("deletionTimestamp", "When the object is to be deleted."),
        field("deletionGracePeriodSeconds", "How long deleting may take.", FieldType::Integer),
        field("labels", "What others select the object by.", FieldType::TextMap),
        field("annotations", "Notes of tools.", FieldType::TextMap),
        list("ownerReferences", "The objects that this one is deleted with.", &OWNER_REFERENCE),
        field("finalizers", "What must happen before the object is deleted.", FieldType::TextList),
        field("managedFields", "Who set which field.", FieldType::Any),
        field("initializers", "Who has to act before others see the object.", FieldType::Any),
    ],
};

static OWNER_REFERENCE: ObjectSchema = ObjectSchema {
    type_name: "OwnerReference",
    description: "An object that another one is deleted with.",
    fields: &[
        text("apiVersion", "Version of the owner."),
        text("kind", "Kind of the owner."),
        text("name", "Name of the owner."),
        text("uid", "Uid of the owner."),
        field("controller", "The owner manages the object.", FieldType::Bool { default: false }),
        field(
            "blockOwnerDeletion",
            "The owner is deleted only after the object.",
            FieldType::Bool { default: false },
        ),
    ],
};
