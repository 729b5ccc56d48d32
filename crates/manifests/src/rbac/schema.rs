//! The schemas of the four kinds, for readers that refuse unknown fields.

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

const fn text_field(name: &'static str, description: &'static str) -> FieldSchema {
    FieldSchema::optional(name, description, FieldType::Text(TextRule::Any))
}

const fn list_field(
    name: &'static str,
    description: &'static str,
    item: &'static ObjectSchema,
) -> FieldSchema {
    FieldSchema::optional(
        name,
        description,
        FieldType::List { item, items_min: 0, items_max: None },
    )
}

const API_VERSION: FieldSchema = text_field("apiVersion", "Version of the object.");
const KIND: FieldSchema = text_field("kind", "Kind of the object.");
const METADATA: FieldSchema = FieldSchema::optional(
    "metadata",
    "Name, namespace and labels of the object.",
    FieldType::Object(&OBJECT_META),
);
const RULES: FieldSchema = list_field("rules", "Rules that the role grants.", &POLICY_RULE);
const SUBJECTS: FieldSchema =
    list_field("subjects", "Users, groups and service accounts that get the role.", &SUBJECT);
const ROLE_REF_FIELD: FieldSchema =
    FieldSchema::optional("roleRef", "The role that is granted.", FieldType::Object(&ROLE_REF));

static CLUSTER_ROLE: ObjectSchema = ObjectSchema {
    type_name: "ClusterRole",
    description: "Permissions in the whole cluster.",
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        RULES,
        FieldSchema::optional(
            "aggregationRule",
            "Selects the roles whose rules this role gets.",
            FieldType::Object(&AGGREGATION_RULE),
        ),
    ],
};

static ROLE: ObjectSchema = ObjectSchema {
    type_name: "Role",
    description: "Permissions in one namespace.",
    fields: &[API_VERSION, KIND, METADATA, RULES],
};

static CLUSTER_ROLE_BINDING: ObjectSchema = ObjectSchema {
    type_name: "ClusterRoleBinding",
    description: "Grants a role in the whole cluster.",
    fields: &[API_VERSION, KIND, METADATA, SUBJECTS, ROLE_REF_FIELD],
};

static ROLE_BINDING: ObjectSchema = ObjectSchema {
    type_name: "RoleBinding",
    description: "Grants a role in one namespace.",
    fields: &[API_VERSION, KIND, METADATA, SUBJECTS, ROLE_REF_FIELD],
};

static POLICY_RULE: ObjectSchema = ObjectSchema {
    type_name: "PolicyRule",
    description: "Verbs on resources, or verbs on paths.",
    fields: &[
        FieldSchema::optional("verbs", "The verbs.", FieldType::TextList),
        FieldSchema::optional("apiGroups", "The API groups of the resources.", FieldType::TextList),
        FieldSchema::optional("resources", "The resources.", FieldType::TextList),
        FieldSchema::optional(
            "resourceNames",
            "Names of objects; all of them if there are none.",
            FieldType::TextList,
        ),
        FieldSchema::optional(
            "nonResourceURLs",
            "Paths that are no resources.",
            FieldType::TextList,
        ),
    ],
};

static SUBJECT: ObjectSchema = ObjectSchema {
    type_name: "Subject",
    description: "A user, group or service account that gets the role.",
    fields: &[
        text_field("kind", "User, Group or ServiceAccount."),
        text_field("apiGroup", "The API group of the kind."),
        text_field("name", "The name."),
        text_field("namespace", "The namespace of a service account."),
    ],
};

static ROLE_REF: ObjectSchema = ObjectSchema {
    type_name: "RoleRef",
    description: "The role that is granted.",
    fields: &[
        text_field("apiGroup", "The API group of the kind."),
        text_field("kind", "Role or ClusterRole."),
        text_field("name", "The name."),
    ],
};

static AGGREGATION_RULE: ObjectSchema = ObjectSchema {
    type_name: "AggregationRule",
    description: "Selects the roles whose rules another role gets.",
    fields: &[list_field(
        "clusterRoleSelectors",
        "A role is selected if any of these selectors matches it.",
        &LABEL_SELECTOR,
    )],
};

static LABEL_SELECTOR: ObjectSchema = ObjectSchema {
    type_name: "LabelSelector",
    description: "A selector of objects by their labels.",
    fields: &[
        FieldSchema::optional(
            "matchLabels",
            "Labels that must have these values.",
            FieldType::TextMap,
        ),
        list_field("matchExpressions", "Further requirements.", &LABEL_EXPRESSION),
    ],
};

static LABEL_EXPRESSION: ObjectSchema = ObjectSchema {
    type_name: "LabelSelectorRequirement",
    description: "One requirement on a label.",
    fields: &[
        text_field("key", "The key of the label."),
        text_field("operator", "In, NotIn, Exists or DoesNotExist."),
        FieldSchema::optional(
            "values",
            "The values of the first two operators.",
            FieldType::TextList,
        ),
    ],
};

/// The metadata of every object. The server sets most of it, so most fields occur in dumps only.
pub(crate) static OBJECT_META: ObjectSchema = ObjectSchema {
    type_name: "ObjectMeta",
    description: "Identity and description of an object.",
    fields: &[
        text_field("name", "The name."),
        text_field("generateName", "The beginning of a name that the server completes."),
        text_field("namespace", "The namespace."),
        text_field("selfLink", "The path of the object, in dumps of old servers."),
        text_field("uid", "Distinguishes objects that had the same name at different times."),
        text_field("resourceVersion", "Changes with every change of the object."),
        FieldSchema::optional("generation", "Counts the changes.", FieldType::Integer),
        text_field("creationTimestamp", "Time of creation."),
        text_field("deletionTimestamp", "Time at which the object is deleted."),
        FieldSchema::optional(
            "deletionGracePeriodSeconds",
            "Time that the deletion may take.",
            FieldType::Integer,
        ),
        FieldSchema::optional(
            "labels",
            "Labels by which selectors find the object.",
            FieldType::TextMap,
        ),
        FieldSchema::optional("annotations", "Notes of tools.", FieldType::TextMap),
        list_field(
            "ownerReferences",
            "The objects that this one is deleted with.",
            &OWNER_REFERENCE,
        ),
        FieldSchema::optional(
            "finalizers",
            "Names that must be removed before the object is deleted.",
            FieldType::TextList,
        ),
        FieldSchema::optional("managedFields", "The manager of each field.", FieldType::Any),
        FieldSchema::optional(
            "initializers",
            "Initializers that must act before others see the object.",
            FieldType::Any,
        ),
    ],
};

static OWNER_REFERENCE: ObjectSchema = ObjectSchema {
    type_name: "OwnerReference",
    description: "An object that another one is deleted with.",
    fields: &[
        text_field("apiVersion", "Version of the owner."),
        text_field("kind", "Kind of the owner."),
        text_field("name", "Name of the owner."),
        text_field("uid", "Uid of the owner."),
        FieldSchema::optional(
            "controller",
            "The owner manages the object.",
            FieldType::Bool { default: false },
        ),
        FieldSchema::optional(
            "blockOwnerDeletion",
            "The owner is deleted only after the object.",
            FieldType::Bool { default: false },
        ),
    ],
};
