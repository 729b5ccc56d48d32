//! The schemas of the four RBAC kinds, for readers that refuse unknown fields.

use document::{FieldSchema, FieldType, ObjectSchema, SchemaTextRule};

use super::decode_rbac::Kind;

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

const fn text_field_schema(name: &'static str, description: &'static str) -> FieldSchema {
    FieldSchema::optional_field(name, description, FieldType::Text(SchemaTextRule::Any))
}

const fn list_field_schema(
    name: &'static str,
    description: &'static str,
    item: &'static ObjectSchema,
) -> FieldSchema {
    FieldSchema::optional_field(
        name,
        description,
        FieldType::List { item, items_min: 0, items_max: None },
    )
}

const API_VERSION: FieldSchema = text_field_schema("apiVersion", "Version of the object.");
const KIND: FieldSchema = text_field_schema("kind", "Kind of the object.");
const METADATA: FieldSchema = FieldSchema::optional_field(
    "metadata",
    "Name, namespace and labels of the object.",
    FieldType::Object(&OBJECT_META),
);
const RULES: FieldSchema = list_field_schema("rules", "Rules that the role grants.", &POLICY_RULE);
const SUBJECTS: FieldSchema = list_field_schema(
    "subjects",
    "Users, groups and service accounts that get the role.",
    &SUBJECT,
);
const ROLE_REF_FIELD: FieldSchema = FieldSchema::optional_field(
    "roleRef",
    "The role that is granted.",
    FieldType::Object(&ROLE_REF),
);

static CLUSTER_ROLE: ObjectSchema = ObjectSchema {
    type_name: "ClusterRole",
    description: "Permissions in the whole cluster.",
    field_schemas: &[
        API_VERSION,
        KIND,
        METADATA,
        RULES,
        FieldSchema::optional_field(
            "aggregationRule",
            "Selects the roles whose rules this role gets.",
            FieldType::Object(&AGGREGATION_RULE),
        ),
    ],
};

static ROLE: ObjectSchema = ObjectSchema {
    type_name: "Role",
    description: "Permissions in one namespace.",
    field_schemas: &[API_VERSION, KIND, METADATA, RULES],
};

static CLUSTER_ROLE_BINDING: ObjectSchema = ObjectSchema {
    type_name: "ClusterRoleBinding",
    description: "Grants a role in the whole cluster.",
    field_schemas: &[API_VERSION, KIND, METADATA, SUBJECTS, ROLE_REF_FIELD],
};

static ROLE_BINDING: ObjectSchema = ObjectSchema {
    type_name: "RoleBinding",
    description: "Grants a role in one namespace.",
    field_schemas: &[API_VERSION, KIND, METADATA, SUBJECTS, ROLE_REF_FIELD],
};

static POLICY_RULE: ObjectSchema = ObjectSchema {
    type_name: "PolicyRule",
    description: "Verbs on resources, or verbs on paths.",
    field_schemas: &[
        FieldSchema::optional_field("verbs", "The verbs.", FieldType::TextList),
        FieldSchema::optional_field(
            "apiGroups",
            "The API groups of the resources.",
            FieldType::TextList,
        ),
        FieldSchema::optional_field("resources", "The resources.", FieldType::TextList),
        FieldSchema::optional_field(
            "resourceNames",
            "Names of objects; all of them if there are none.",
            FieldType::TextList,
        ),
        FieldSchema::optional_field(
            "nonResourceURLs",
            "Paths that are no resources.",
            FieldType::TextList,
        ),
    ],
};

static SUBJECT: ObjectSchema = ObjectSchema {
    type_name: "Subject",
    description: "A user, group or service account that gets the role.",
    field_schemas: &[
        text_field_schema("kind", "User, Group or ServiceAccount."),
        text_field_schema("apiGroup", "The API group of the kind."),
        text_field_schema("name", "The name."),
        text_field_schema("namespace", "The namespace of a service account."),
    ],
};

static ROLE_REF: ObjectSchema = ObjectSchema {
    type_name: "RoleRef",
    description: "The role that is granted.",
    field_schemas: &[
        text_field_schema("apiGroup", "The API group of the kind."),
        text_field_schema("kind", "Role or ClusterRole."),
        text_field_schema("name", "The name."),
    ],
};

static AGGREGATION_RULE: ObjectSchema = ObjectSchema {
    type_name: "AggregationRule",
    description: "Selects the roles whose rules another role gets.",
    field_schemas: &[list_field_schema(
        "clusterRoleSelectors",
        "A role is selected if any of these selectors matches it.",
        &LABEL_SELECTOR,
    )],
};

static LABEL_SELECTOR: ObjectSchema = ObjectSchema {
    type_name: "LabelSelector",
    description: "A selector of objects by their labels.",
    field_schemas: &[
        FieldSchema::optional_field(
            "matchLabels",
            "Labels that must have these values.",
            FieldType::TextMap,
        ),
        list_field_schema("matchExpressions", "Further requirements.", &LABEL_EXPRESSION),
    ],
};

static LABEL_EXPRESSION: ObjectSchema = ObjectSchema {
    type_name: "LabelSelectorRequirement",
    description: "One requirement on a label.",
    field_schemas: &[
        text_field_schema("key", "The key of the label."),
        text_field_schema("operator", "In, NotIn, Exists or DoesNotExist."),
        FieldSchema::optional_field(
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
    field_schemas: &[
        text_field_schema("name", "The name."),
        text_field_schema("generateName", "The beginning of a name that the server completes."),
        text_field_schema("namespace", "The namespace."),
        text_field_schema("selfLink", "The path of the object, in dumps of old servers."),
        text_field_schema(
            "uid",
            "Distinguishes objects that had the same name at different times.",
        ),
        text_field_schema("resourceVersion", "Changes with every change of the object."),
        FieldSchema::optional_field("generation", "Counts the changes.", FieldType::Integer),
        text_field_schema("creationTimestamp", "Time of creation."),
        text_field_schema("deletionTimestamp", "Time at which the object is deleted."),
        FieldSchema::optional_field(
            "deletionGracePeriodSeconds",
            "Time that the deletion may take.",
            FieldType::Integer,
        ),
        FieldSchema::optional_field(
            "labels",
            "Labels by which selectors find the object.",
            FieldType::TextMap,
        ),
        FieldSchema::optional_field("annotations", "Notes of tools.", FieldType::TextMap),
        list_field_schema(
            "ownerReferences",
            "The objects that this one is deleted with.",
            &OWNER_REFERENCE,
        ),
        FieldSchema::optional_field(
            "finalizers",
            "Names that must be removed before the object is deleted.",
            FieldType::TextList,
        ),
        FieldSchema::optional_field("managedFields", "The manager of each field.", FieldType::Any),
        FieldSchema::optional_field(
            "initializers",
            "Initializers that must act before others see the object.",
            FieldType::Any,
        ),
    ],
};

static OWNER_REFERENCE: ObjectSchema = ObjectSchema {
    type_name: "OwnerReference",
    description: "An object that another one is deleted with.",
    field_schemas: &[
        text_field_schema("apiVersion", "Version of the owner."),
        text_field_schema("kind", "Kind of the owner."),
        text_field_schema("name", "Name of the owner."),
        text_field_schema("uid", "Uid of the owner."),
        FieldSchema::optional_field(
            "controller",
            "The owner manages the object.",
            FieldType::Bool { default: false },
        ),
        FieldSchema::optional_field(
            "blockOwnerDeletion",
            "The owner is deleted only after the object.",
            FieldType::Bool { default: false },
        ),
    ],
};
