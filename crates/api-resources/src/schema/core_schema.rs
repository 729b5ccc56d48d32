//! Kinds of the core group.

use super::{Field, FieldType, Schema, TEXT_MAP, TEXTS};

pub(crate) static CONFIG_MAP: Schema = Schema::new(
    "io.k8s.api.core.v1.ConfigMap",
    "Configuration that is no secret, as texts and bytes under keys.",
    &[
        Field::new(
            "binaryData",
            FieldType::Map(&FieldType::Bytes),
            "Values that need not be text, in base64. No key may be in data as well.",
        ),
        Field::new("data", TEXT_MAP, "Values that are text. Keys: letters, digits, '-', '_', '.'."),
        Field::new("immutable", FieldType::Boolean, "Whether the values can no longer change."),
    ],
);

pub(crate) static SECRET: Schema = Schema::new(
    "io.k8s.api.core.v1.Secret",
    "Data that only some may read, as bytes under keys.",
    &[
        Field::new(
            "data",
            FieldType::Map(&FieldType::Bytes),
            "The values, in base64. Keys: letters, digits, '-', '_', '.'.",
        ),
        Field::new("immutable", FieldType::Boolean, "Whether the values can no longer change."),
        Field::new(
            "stringData",
            TEXT_MAP,
            "Values as text, for writing only: they are stored in data, and win over it.",
        ),
        Field::new("type", FieldType::Text, "What the values are for; Opaque if not said."),
    ],
);

pub(crate) static SERVICE_ACCOUNT: Schema = Schema::new(
    "io.k8s.api.core.v1.ServiceAccount",
    "An identity for programs that run in a namespace.",
    &[
        Field::new(
            "automountServiceAccountToken",
            FieldType::Boolean,
            "Whether pods get a token of the account unless they say otherwise.",
        ),
        Field::new(
            "imagePullSecrets",
            FieldType::List(&FieldType::Object(&LOCAL_OBJECT_REFERENCE)),
            "Secrets of the namespace with which images are pulled.",
        ),
        Field::new(
            "secrets",
            FieldType::List(&FieldType::Object(&OBJECT_REFERENCE)),
            "Secrets that pods of the account may use.",
        )
        .merge_list_by_key("name"),
    ],
);

static LOCAL_OBJECT_REFERENCE: Schema = Schema::new(
    "io.k8s.api.core.v1.LocalObjectReference",
    "An object of the same namespace.",
    &[Field::new("name", FieldType::Text, "Its name.")],
)
.mark_atomic();

static OBJECT_REFERENCE: Schema = Schema::new(
    "io.k8s.api.core.v1.ObjectReference",
    "An object, or a part of one.",
    &[
        Field::new("apiVersion", FieldType::Text, "Its version."),
        Field::new("fieldPath", FieldType::Text, "Which part of it."),
        Field::new("kind", FieldType::Text, "Its kind."),
        Field::new("name", FieldType::Text, "Its name."),
        Field::new("namespace", FieldType::Text, "Its namespace."),
        Field::new("resourceVersion", FieldType::Text, "Which state of it."),
        Field::new("uid", FieldType::Text, "Its UID."),
    ],
)
.mark_atomic();

pub(crate) static NAMESPACE: Schema = Schema::new(
    "io.k8s.api.core.v1.Namespace",
    "A scope for names and for rights.",
    &[
        Field::new("spec", FieldType::Object(&NAMESPACE_SPEC), "What is wanted."),
        Field::new("status", FieldType::Object(&NAMESPACE_STATUS), "What is the case."),
    ],
);

static NAMESPACE_SPEC: Schema = Schema::new(
    "io.k8s.api.core.v1.NamespaceSpec",
    "What is wanted of a namespace.",
    &[Field::new("finalizers", TEXTS, "Who must empty it before it can be removed.")],
);

static NAMESPACE_STATUS: Schema = Schema::new(
    "io.k8s.api.core.v1.NamespaceStatus",
    "What is the case with a namespace.",
    &[
        Field::new(
            "conditions",
            FieldType::List(&FieldType::Object(&NAMESPACE_CONDITION)),
            "What keeps it from being removed.",
        )
        .merge_list_by_key("type"),
        Field::new("phase", FieldType::Text, "Active or Terminating."),
    ],
);

static NAMESPACE_CONDITION: Schema = Schema::new(
    "io.k8s.api.core.v1.NamespaceCondition",
    "One thing that is the case, or not, or unknown.",
    &[
        Field::new("lastTransitionTime", FieldType::Time, "When the status last changed."),
        Field::new("message", FieldType::Text, "Why, for people."),
        Field::new("reason", FieldType::Text, "Why, for programs."),
        Field::new("status", FieldType::Text, "True, False or Unknown.").mark_required(),
        Field::new("type", FieldType::Text, "Which thing.").mark_required(),
    ],
);
