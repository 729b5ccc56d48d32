//! Kinds of `admissionregistration.k8s.io/v1alpha1`: initializers and hooks behind services.

use super::{Field, FieldType, Schema, TEXTS};

pub(crate) static INITIALIZER_CONFIGURATION: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1alpha1.InitializerConfiguration",
    "Who completes new objects before others see them. All configurations together are one list, in \
     the order of their names.",
    &[Field::new(
        "initializers",
        FieldType::List(&FieldType::Object(&INITIALIZER)),
        "The initializers, in the order in which they act.",
    )
    .merge_list_by_key("name")],
);

pub(crate) static EXTERNAL_ADMISSION_HOOK_CONFIGURATION: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1alpha1.ExternalAdmissionHookConfiguration",
    "Hooks behind services that are asked about requests and may refuse them, all at once.",
    &[Field::new(
        "externalAdmissionHooks",
        FieldType::List(&FieldType::Object(&EXTERNAL_ADMISSION_HOOK)),
        "The hooks. If several refuse, the first one is heard.",
    )
    .merge_list_by_key("name")],
);

const NAME: Field = Field::new(
    "name",
    FieldType::Text,
    "Its name: a domain with at least three segments, unique in the object.",
)
.mark_required();
const API_GROUPS: Field =
    Field::new("apiGroups", TEXTS, "Groups of the resources; \"\" is the core group, * all.");
const API_VERSIONS: Field =
    Field::new("apiVersions", TEXTS, "Versions of the resources; * is all.");

static INITIALIZER: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1alpha1.Initializer",
    "A program that completes objects. It finds its name in metadata.initializers.pending of an \
     object, changes what it has to, and removes the name.",
    &[
        Field::new(
            "after",
            TEXTS,
            "Initializers that must be done before this one acts. With orderingMode Graph only.",
        ),
        Field::new(
            "before",
            TEXTS,
            "Initializers that wait for this one. With orderingMode Graph only.",
        ),
        Field::new(
            "failurePolicy",
            FieldType::Text,
            "What happens if it does not act in time: Ignore goes on without it, Fail tells the \
             creator of the object. Ignore if not said, and always at first; once it serves, it may \
             be changed to Fail.",
        ),
        NAME,
        Field::new(
            "orderingMode",
            FieldType::Text,
            "Sequential: it waits for the Sequential one before it in the list. Graph: it waits for \
             those that before and after say, and for nobody else. Sequential if not said.",
        ),
        Field::new(
            "rules",
            FieldType::List(&FieldType::Object(&RULE)),
            "Which new objects it completes: those that one of the rules matches.",
        ),
    ],
);

static RULE: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1alpha1.Rule",
    "Resources. Every combination counts.",
    &[
        API_GROUPS,
        API_VERSIONS,
        Field::new("resources", TEXTS, "Resources, without subresources; * is all."),
    ],
);

static EXTERNAL_ADMISSION_HOOK: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1alpha1.ExternalAdmissionHook",
    "A hook that may refuse requests.",
    &[
        Field::new(
            "clientConfig",
            FieldType::Object(&ADMISSION_HOOK_CLIENT_CONFIG),
            "Where the hook is, and whom to trust there.",
        )
        .mark_required(),
        Field::new(
            "failurePolicy",
            FieldType::Text,
            "What happens to a request if the hook cannot be asked: Ignore goes on without, Fail \
             refuses it. Ignore if not said, and always at first; once it serves, it may be changed \
             to Fail.",
        ),
        NAME,
        Field::new(
            "rules",
            FieldType::List(&FieldType::Object(&RULE_WITH_VERBS)),
            "Which requests the hook is asked about: those that one of the rules matches. Requests \
             for configurations of admission never are.",
        ),
    ],
);

static ADMISSION_HOOK_CLIENT_CONFIG: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1alpha1.AdmissionHookClientConfig",
    "Where a hook is.",
    &[
        Field::new(
            "caBundle",
            FieldType::Bytes,
            "The authorities to trust, and nobody else: certificates in PEM.",
        )
        .mark_required(),
        Field::new("service", FieldType::Object(&SERVICE_REFERENCE), "The service in front of it.")
            .mark_required(),
        Field::new("urlPath", FieldType::Text, "The path of the hook there. / if not said."),
    ],
);

static SERVICE_REFERENCE: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1alpha1.ServiceReference",
    "A service of the cluster. Its only port is used, or 443 if it has several.",
    &[
        Field::new("name", FieldType::Text, "Its name.").mark_required(),
        Field::new("namespace", FieldType::Text, "Its namespace.").mark_required(),
    ],
);

static RULE_WITH_VERBS: Schema = Schema::new(
    "io.k8s.api.admissionregistration.v1alpha1.RuleWithVerbs",
    "Operations and resources. Every combination counts.",
    &[
        API_GROUPS,
        API_VERSIONS,
        Field::new(
            "operations",
            TEXTS,
            "Another name of verbs. If both are there, they must agree.",
        ),
        Field::new(
            "resources",
            TEXTS,
            "Resources and, as resource/sub, subresources. * is all resources, pods/* all \
             subresources of pods, */scale that of all resources, */* everything.",
        ),
        Field::new("verbs", TEXTS, "CREATE, UPDATE, DELETE and CONNECT; * is all."),
    ],
);
