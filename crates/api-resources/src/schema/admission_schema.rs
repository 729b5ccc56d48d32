//! Kinds of `admissionregistration.k8s.io/v1` that call webhooks.

use super::meta_schema::LABEL_SELECTOR;
use super::{Field, FieldType, Schema, TEXTS};

static MATCH_CONDITION_SHAPE: FieldType = FieldType::Object(&MATCH_CONDITION);
static RULE_WITH_OPERATIONS_SHAPE: FieldType = FieldType::Object(&RULE_WITH_OPERATIONS);

pub(crate) static MUTATING_WEBHOOK_CONFIGURATION: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
    "Webhooks that are asked about requests and may change their objects, one after the other.",
    &[Field::new(
        "webhooks",
        FieldType::List(&FieldType::Object(&MUTATING_WEBHOOK)),
        "The webhooks, in the order in which they are asked.",
    )
    .merge_list_by_key("name")],
);

pub(crate) static VALIDATING_WEBHOOK_CONFIGURATION: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    "Webhooks that are asked about requests and may refuse them, all at once.",
    &[Field::new(
        "webhooks",
        FieldType::List(&FieldType::Object(&VALIDATING_WEBHOOK)),
        "The webhooks. If several refuse, the first one is heard.",
    )
    .merge_list_by_key("name")],
);

const ADMISSION_REVIEW_VERSIONS: Field = Field::new(
    "admissionReviewVersions",
    TEXTS,
    "The versions of AdmissionReview that the webhook understands, the preferred one first; at least \
     one of v1 and v1beta1. The first that the server knows is sent.",
)
.mark_required();
const CLIENT_CONFIG: Field = Field::new(
    "clientConfig",
    FieldType::Object(&WEBHOOK_CLIENT_CONFIG),
    "Where the webhook is, and whom to trust there.",
)
.mark_required();
const FAILURE_POLICY: Field = Field::new(
    "failurePolicy",
    FieldType::Text,
    "What happens to a request if the webhook cannot be asked: Fail refuses it, Ignore goes on \
     without. Fail if not said.",
);
const MATCH_CONDITIONS: Field = Field::new(
    "matchConditions",
    FieldType::List(&MATCH_CONDITION_SHAPE),
    "Expressions that must all be true for the webhook to be asked; at most 64. If one is false, the \
     webhook is left out; if none is and one fails, the failurePolicy decides.",
)
.merge_list_by_key("name");
const MATCH_POLICY: Field = Field::new(
    "matchPolicy",
    FieldType::Text,
    "Exact: rules name the resource as it was requested. Equivalent: they may name another version \
     or group of the same objects, which are then converted. Equivalent if not said.",
);
const NAME: Field = Field::new(
    "name",
    FieldType::Text,
    "The name of the webhook: a domain with at least three segments, unique in the object.",
)
.mark_required();
const NAMESPACE_SELECTOR: Field = Field::new(
    "namespaceSelector",
    FieldType::Object(&LABEL_SELECTOR),
    "Labels of the namespaces whose objects count, or of the object if it is a namespace. Objects of \
     the cluster always count. All if not said.",
);
const OBJECT_SELECTOR: Field = Field::new(
    "objectSelector",
    FieldType::Object(&LABEL_SELECTOR),
    "Labels of the objects that count, before or after the request. All if not said.",
);
const REINVOCATION_POLICY: Field = Field::new(
    "reinvocationPolicy",
    FieldType::Text,
    "IfNeeded: the webhook is asked once more if the object was changed after its turn. Never if not \
     said.",
);
const RULES: Field = Field::new(
    "rules",
    FieldType::List(&RULE_WITH_OPERATIONS_SHAPE),
    "Which requests the webhook is asked about: those that one of the rules matches. Requests for \
     configurations of admission never are.",
);
const SIDE_EFFECTS: Field = Field::new(
    "sideEffects",
    FieldType::Text,
    "Whether being asked changes something elsewhere: None, or NoneOnDryRun if a dry run does not. \
     Old objects may say Some or Unknown; then dry runs are refused.",
)
.mark_required();
const TIMEOUT_SECONDS: Field = Field::new(
    "timeoutSeconds",
    FieldType::Int32,
    "How long an answer may take, from 1 to 30. 10 if not said.",
);

static MUTATING_WEBHOOK: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1.MutatingWebhook",
    "A webhook that may change objects.",
    &[
        ADMISSION_REVIEW_VERSIONS,
        CLIENT_CONFIG,
        FAILURE_POLICY,
        MATCH_CONDITIONS,
        MATCH_POLICY,
        NAME,
        NAMESPACE_SELECTOR,
        OBJECT_SELECTOR,
        REINVOCATION_POLICY,
        RULES,
        SIDE_EFFECTS,
        TIMEOUT_SECONDS,
    ],
);

static VALIDATING_WEBHOOK: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1.ValidatingWebhook",
    "A webhook that may refuse requests.",
    &[
        ADMISSION_REVIEW_VERSIONS,
        CLIENT_CONFIG,
        FAILURE_POLICY,
        MATCH_CONDITIONS,
        MATCH_POLICY,
        NAME,
        NAMESPACE_SELECTOR,
        OBJECT_SELECTOR,
        RULES,
        SIDE_EFFECTS,
        TIMEOUT_SECONDS,
    ],
);

static WEBHOOK_CLIENT_CONFIG: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1.WebhookClientConfig",
    "Where a webhook is: behind a URL or behind a service, never both.",
    &[
        Field::new(
            "caBundle",
            FieldType::Bytes,
            "The authorities to trust, certificates in PEM. Those of the server's host if not said.",
        ),
        Field::new("service", FieldType::Object(&SERVICE_REFERENCE), "The service in front of it."),
        Field::new(
            "url",
            FieldType::Text,
            "Its URL, as https://host[:port][/path], without user, query and fragment.",
        ),
    ],
);

static SERVICE_REFERENCE: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1.ServiceReference",
    "A service of the cluster.",
    &[
        Field::new("name", FieldType::Text, "Its name.").mark_required(),
        Field::new("namespace", FieldType::Text, "Its namespace.").mark_required(),
        Field::new("path", FieldType::Text, "The path of the webhook there."),
        Field::new("port", FieldType::Int32, "The port of the service. 443 if not said."),
    ],
);

static RULE_WITH_OPERATIONS: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1.RuleWithOperations",
    "Operations and resources. Every combination counts.",
    &[
        Field::new("apiGroups", TEXTS, "Groups of the resources; \"\" is the core group, * all."),
        Field::new("apiVersions", TEXTS, "Versions of the resources; * is all."),
        Field::new("operations", TEXTS, "CREATE, UPDATE, DELETE and CONNECT; * is all."),
        Field::new(
            "resources",
            TEXTS,
            "Resources and, as resource/sub, subresources. * is all resources, pods/* all \
             subresources of pods, */scale that of all resources, */* everything.",
        ),
        Field::new(
            "scope",
            FieldType::Text,
            "Cluster, Namespaced, or * for both. Subresources have the scope of their resource. * if \
             not said.",
        ),
    ],
);

static MATCH_CONDITION: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1.MatchCondition",
    "A condition on requests.",
    &[
        Field::new(
            "expression",
            FieldType::Text,
            "A CEL expression of type bool over object, oldObject, request and authorizer.",
        )
        .mark_required(),
        Field::new("name", FieldType::Text, "Its name, a qualified one and unique in the webhook.")
            .mark_required(),
    ],
);
