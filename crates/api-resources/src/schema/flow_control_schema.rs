//! Schemas of the kinds of `flowcontrol.apiserver.k8s.io`.

use super::{Field, FieldType, Schema, TEXTS};

pub(crate) static FLOW_SCHEMA: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.FlowSchema",
    "Assigns requests to a priority level, and divides them into flows.",
    &[
        Field::new(
            "spec",
            FieldType::Object(&FLOW_SCHEMA_SPEC),
            "Which requests, and which level.",
        )
        .mark_required(),
        Field::new(
            "status",
            FieldType::Object(&FLOW_SCHEMA_STATUS),
            "Whether the priority level exists.",
        ),
    ],
);

pub(crate) static PRIORITY_LEVEL_CONFIGURATION: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration",
    "A group of requests with seats of its own.",
    &[
        Field::new(
            "spec",
            FieldType::Object(&PRIORITY_LEVEL_SPEC),
            "Whether and how the requests are limited.",
        )
        .mark_required(),
        Field::new(
            "status",
            FieldType::Object(&PRIORITY_LEVEL_STATUS),
            "Conditions of the level; the server writes none.",
        ),
    ],
);

static FLOW_SCHEMA_SPEC: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.FlowSchemaSpec",
    "Which requests are assigned to which level.",
    &[
        Field::new(
            "distinguisherMethod",
            FieldType::Object(&DISTINGUISHER_METHOD),
            "How the requests are divided into flows; without it they are one flow.",
        ),
        Field::new(
            "matchingPrecedence",
            FieldType::Int32,
            "Schemas with a lower number are tried first; from 1 to 10000, 1000 if unset.",
        ),
        Field::new(
            "priorityLevelConfiguration",
            FieldType::Object(&LEVEL_REFERENCE),
            "The priority level of the requests that match.",
        )
        .mark_required(),
        Field::new(
            "rules",
            FieldType::List(&FieldType::Object(&POLICY_RULES)),
            "A request matches if one of these matches.",
        ),
    ],
);

static DISTINGUISHER_METHOD: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.FlowDistinguisherMethod",
    "How requests are divided into flows.",
    &[Field::new("type", FieldType::Text, "ByUser or ByNamespace.").mark_required()],
);

static LEVEL_REFERENCE: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationReference",
    "A priority level.",
    &[Field::new("name", FieldType::Text, "Its name.").mark_required()],
);

static POLICY_RULES: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.PolicyRulesWithSubjects",
    "Matches a request of one of the subjects by one of the rules.",
    &[
        Field::new(
            "nonResourceRules",
            FieldType::List(&FieldType::Object(&NON_RESOURCE_RULE)),
            "Rules for paths.",
        ),
        Field::new(
            "resourceRules",
            FieldType::List(&FieldType::Object(&RESOURCE_RULE)),
            "Rules for resources.",
        ),
        Field::new(
            "subjects",
            FieldType::List(&FieldType::Object(&SUBJECT)),
            "Users, groups and service accounts.",
        )
        .mark_required(),
    ],
);

static NON_RESOURCE_RULE: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.NonResourcePolicyRule",
    "Matches requests for paths.",
    &[
        Field::new("nonResourceURLs", TEXTS, "Paths; * is all, and /* ends a prefix.")
            .mark_required()
            .merge_list_as_set(),
        Field::new("verbs", TEXTS, "Verbs; * is all.").mark_required().merge_list_as_set(),
    ],
);

static RESOURCE_RULE: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.ResourcePolicyRule",
    "Matches requests for resources.",
    &[
        Field::new("apiGroups", TEXTS, "Groups; \"\" is the core group, * all.")
            .mark_required()
            .merge_list_as_set(),
        Field::new("clusterScope", FieldType::Boolean, "Also requests without a namespace."),
        Field::new("namespaces", TEXTS, "Namespaces; * is all.").merge_list_as_set(),
        Field::new("resources", TEXTS, "Resources and, as resource/sub, subresources; * is all.")
            .mark_required()
            .merge_list_as_set(),
        Field::new("verbs", TEXTS, "Verbs; * is all.").mark_required().merge_list_as_set(),
    ],
);

static SUBJECT: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.Subject",
    "A user, a group or a service account.",
    &[
        Field::new("group", FieldType::Object(&GROUP_SUBJECT), "The group, for the kind Group."),
        Field::new("kind", FieldType::Text, "User, Group or ServiceAccount.").mark_required(),
        Field::new(
            "serviceAccount",
            FieldType::Object(&SERVICE_ACCOUNT_SUBJECT),
            "The service account, for the kind ServiceAccount.",
        ),
        Field::new("user", FieldType::Object(&USER_SUBJECT), "The user, for the kind User."),
    ],
);

static GROUP_SUBJECT: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.GroupSubject",
    "A group.",
    &[Field::new("name", FieldType::Text, "Its name; * is all.").mark_required()],
);

static USER_SUBJECT: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.UserSubject",
    "A user.",
    &[Field::new("name", FieldType::Text, "The name; * is all.").mark_required()],
);

static SERVICE_ACCOUNT_SUBJECT: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.ServiceAccountSubject",
    "A service account, or all of a namespace.",
    &[
        Field::new("name", FieldType::Text, "Its name; * is all of the namespace.").mark_required(),
        Field::new("namespace", FieldType::Text, "Its namespace.").mark_required(),
    ],
);

static FLOW_SCHEMA_STATUS: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.FlowSchemaStatus",
    "Whether the priority level of a schema exists.",
    &[Field::new(
        "conditions",
        FieldType::List(&FieldType::Object(&FLOW_SCHEMA_CONDITION)),
        "The server writes Dangling.",
    )
    .merge_list_by_key("type")],
);

static PRIORITY_LEVEL_STATUS: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationStatus",
    "Conditions of a priority level.",
    &[Field::new(
        "conditions",
        FieldType::List(&FieldType::Object(&PRIORITY_LEVEL_CONDITION)),
        "The server writes none.",
    )
    .merge_list_by_key("type")],
);

static FLOW_SCHEMA_CONDITION: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.FlowSchemaCondition",
    "One thing that is the case with a schema.",
    CONDITION_FIELDS,
);

static PRIORITY_LEVEL_CONDITION: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationCondition",
    "One thing that is the case with a level.",
    CONDITION_FIELDS,
);

static CONDITION_FIELDS: &[Field] = &[
    Field::new("lastTransitionTime", FieldType::Time, "When the status last changed."),
    Field::new("message", FieldType::Text, "Why, for people."),
    Field::new("reason", FieldType::Text, "Why, for programs."),
    Field::new("status", FieldType::Text, "True, False or Unknown."),
    Field::new("type", FieldType::Text, "Its name, such as Dangling.").mark_required(),
];

static PRIORITY_LEVEL_SPEC: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec",
    "Whether and how the requests of a level are limited.",
    &[
        Field::new("exempt", FieldType::Object(&EXEMPT), "For the type Exempt."),
        Field::new("limited", FieldType::Object(&LIMITED), "For the type Limited."),
        Field::new("type", FieldType::Text, "Exempt or Limited.").mark_required(),
    ],
);

static EXEMPT: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.ExemptPriorityLevelConfiguration",
    "The seats that an exempt level offers to other levels.",
    &[
        Field::new("lendablePercent", FieldType::Int32, "No seats are lent: it has no effect."),
        Field::new(
            "nominalConcurrencyShares",
            FieldType::Int32,
            "No seats are lent: it has no effect.",
        ),
    ],
);

static LIMITED: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration",
    "The seats of a level, and what happens while none is free.",
    &[
        Field::new(
            "borrowingLimitPercent",
            FieldType::Int32,
            "No seats are lent: it has no effect.",
        ),
        Field::new("lendablePercent", FieldType::Int32, "No seats are lent: it has no effect."),
        Field::new(
            "limitResponse",
            FieldType::Object(&LIMIT_RESPONSE),
            "What happens to a request while no seat is free.",
        )
        .mark_required(),
        Field::new(
            "nominalConcurrencyShares",
            FieldType::Int32,
            "The level's part of all seats, relative to the other levels; 30 if unset.",
        ),
    ],
);

static LIMIT_RESPONSE: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.LimitResponse",
    "What happens to a request while no seat is free.",
    &[
        Field::new("queuing", FieldType::Object(&QUEUING), "For the type Queue."),
        Field::new("type", FieldType::Text, "Queue or Reject.").mark_required(),
    ],
);

static QUEUING: Schema = Schema::new(
    "io.k8s.api.flowcontrol.v1.QueuingConfiguration",
    "The queues of a level.",
    &[
        Field::new(
            "handSize",
            FieldType::Int32,
            "How many queues one flow may use; 8 if unset. It uses the shortest of them.",
        ),
        Field::new(
            "queueLengthLimit",
            FieldType::Int32,
            "How many requests may wait in one queue; 50 if unset.",
        ),
        Field::new("queues", FieldType::Int32, "How many queues there are; 64 if unset."),
    ],
);
