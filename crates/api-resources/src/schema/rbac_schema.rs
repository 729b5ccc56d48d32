//! Schemas of the kinds of `rbac.authorization.k8s.io`.

use super::meta_schema::LABEL_SELECTOR;
use super::{Field, FieldType, Schema, TEXTS};

static POLICY_RULE_SHAPE: FieldType = FieldType::Object(&POLICY_RULE);
static SUBJECT_SHAPE: FieldType = FieldType::Object(&SUBJECT);

const RULES: Field = Field::new(
    "rules",
    FieldType::List(&POLICY_RULE_SHAPE),
    "What the role allows; what no rule allows stays forbidden.",
);
const ROLE_REF: Field = Field::new(
    "roleRef",
    FieldType::Object(&ROLE_REFERENCE),
    "The role that is granted. Never changes.",
)
.mark_required();
const SUBJECTS: Field =
    Field::new("subjects", FieldType::List(&SUBJECT_SHAPE), "Who holds the role.");

pub(crate) static ROLE: Schema =
    Schema::new("io.k8s.api.rbac.v1.Role", "A set of rights in one namespace.", &[RULES]);

pub(crate) static CLUSTER_ROLE: Schema = Schema::new(
    "io.k8s.api.rbac.v1.ClusterRole",
    "A set of rights that can be granted in one namespace or everywhere.",
    &[
        Field::new(
            "aggregationRule",
            FieldType::Object(&AGGREGATION_RULE),
            "From which roles the rules are gathered; they are then kept up to date.",
        ),
        RULES,
    ],
);

pub(crate) static ROLE_BINDING: Schema = Schema::new(
    "io.k8s.api.rbac.v1.RoleBinding",
    "Grants a role, of its namespace or of the cluster, in its namespace.",
    &[ROLE_REF, SUBJECTS],
);

pub(crate) static CLUSTER_ROLE_BINDING: Schema = Schema::new(
    "io.k8s.api.rbac.v1.ClusterRoleBinding",
    "Grants a role of the cluster everywhere.",
    &[ROLE_REF, SUBJECTS],
);

static POLICY_RULE: Schema = Schema::new(
    "io.k8s.api.rbac.v1.PolicyRule",
    "Verbs, and either the resources or the paths that they are allowed on.",
    &[
        Field::new("apiGroups", TEXTS, "Groups of the resources; \"\" is the core group, * all."),
        Field::new("nonResourceURLs", TEXTS, "Paths that are no resources; * may end them."),
        Field::new("resourceNames", TEXTS, "Names of single objects; empty means any."),
        Field::new("resources", TEXTS, "Resources and, as resource/sub, subresources; * is all."),
        Field::new("verbs", TEXTS, "What may be done; * is everything.").mark_required(),
    ],
);

static AGGREGATION_RULE: Schema = Schema::new(
    "io.k8s.api.rbac.v1.AggregationRule",
    "From which roles of the cluster rules are gathered.",
    &[Field::new(
        "clusterRoleSelectors",
        FieldType::List(&FieldType::Object(&LABEL_SELECTOR)),
        "A role that one of them selects adds its rules.",
    )],
);

static ROLE_REFERENCE: Schema = Schema::new(
    "io.k8s.api.rbac.v1.RoleRef",
    "A role.",
    &[
        Field::new("apiGroup", FieldType::Text, "The group: rbac.authorization.k8s.io."),
        Field::new("kind", FieldType::Text, "Role or ClusterRole.").mark_required(),
        Field::new("name", FieldType::Text, "Its name.").mark_required(),
    ],
)
.mark_atomic();

static SUBJECT: Schema = Schema::new(
    "io.k8s.api.rbac.v1.Subject",
    "A user, a group or a service account.",
    &[
        Field::new("apiGroup", FieldType::Text, "The group: empty for a ServiceAccount."),
        Field::new("kind", FieldType::Text, "User, Group or ServiceAccount.").mark_required(),
        Field::new("name", FieldType::Text, "Its name.").mark_required(),
        Field::new("namespace", FieldType::Text, "Where a service account lives."),
    ],
)
.mark_atomic();
