//! Kinds of the core group.

use super::{Field, Schema, Shape, TEXT_MAP, TEXTS};

pub(crate) static CONFIG_MAP: Schema = Schema::new(
    "io.k8s.api.core.v1.ConfigMap",
    "Configuration that is no secret, as texts and bytes under keys.",
    &[
        Field::new(
            "binaryData",
            Shape::Map(&Shape::Bytes),
            "Values that need not be text, in base64. No key may be in data as well.",
        ),
        Field::new("data", TEXT_MAP, "Values that are text. Keys: letters, digits, '-', '_', '.'."),
        Field::new("immutable", Shape::Boolean, "Whether the values can no longer change."),
    ],
);

pub(crate) static SECRET: Schema = Schema::new(
    "io.k8s.api.core.v1.Secret",
    "Data that only some may read, as bytes under keys.",
    &[
        Field::new(
            "data",
            Shape::Map(&Shape::Bytes),
            "The values, in base64. Keys: letters, digits, '-', '_', '.'.",
        ),
        Field::new("immutable", Shape::Boolean, "Whether the values can no longer change."),
        Field::new(
            "stringData",
            TEXT_MAP,
            "Values as text, for writing only: they are stored in data, and win over it.",
        ),
        Field::new("type", Shape::Text, "What the values are for; Opaque if not said."),
    ],
);

pub(crate) static SERVICE_ACCOUNT: Schema = Schema::new(
    "io.k8s.api.core.v1.ServiceAccount",
    "An identity for programs that run in a namespace.",
    &[
        Field::new(
            "automountServiceAccountToken",
            Shape::Boolean,
            "Whether pods get a token of the account unless they say otherwise.",
        ),
        Field::new(
            "imagePullSecrets",
            Shape::List(&Shape::Object(&LOCAL_OBJECT_REFERENCE)),
            "Secrets of the namespace with which images are pulled.",
        ),
        Field::new(
            "secrets",
            Shape::List(&Shape::Object(&OBJECT_REFERENCE)),
            "Secrets that pods of the account may use.",
        )
        .keyed("name"),
    ],
);

static LOCAL_OBJECT_REFERENCE: Schema = Schema::new(
    "io.k8s.api.core.v1.LocalObjectReference",
    "An object of the same namespace.",
    &[Field::new("name", Shape::Text, "Its name.")],
)
.atomic();

static OBJECT_REFERENCE: Schema = Schema::new(
    "io.k8s.api.core.v1.ObjectReference",
    "An object, or a part of one.",
    &[
        Field::new("apiVersion", Shape::Text, "Its version."),
        Field::new("fieldPath", Shape::Text, "Which part of it."),
        Field::new("kind", Shape::Text, "Its kind."),
        Field::new("name", Shape::Text, "Its name."),
        Field::new("namespace", Shape::Text, "Its namespace."),
        Field::new("resourceVersion", Shape::Text, "Which state of it."),
        Field::new("uid", Shape::Text, "Its UID."),
    ],
)
.atomic();

pub(crate) static NAMESPACE: Schema = Schema::new(
    "io.k8s.api.core.v1.Namespace",
    "A scope for names and for rights.",
    &[
        Field::new("spec", Shape::Object(&NAMESPACE_SPEC), "What is wanted."),
        Field::new("status", Shape::Object(&NAMESPACE_STATUS), "What is the case."),
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
            Shape::List(&Shape::Object(&NAMESPACE_CONDITION)),
            "What keeps it from being removed.",
        )
        .keyed("type"),
        Field::new("phase", Shape::Text, "Active or Terminating."),
    ],
);

static NAMESPACE_CONDITION: Schema = Schema::new(
    "io.k8s.api.core.v1.NamespaceCondition",
    "One thing that is the case, or not, or unknown.",
    &[
        Field::new("lastTransitionTime", Shape::Time, "When the status last changed."),
        Field::new("message", Shape::Text, "Why, for people."),
        Field::new("reason", Shape::Text, "Why, for programs."),
        Field::new("status", Shape::Text, "True, False or Unknown.").required(),
        Field::new("type", Shape::Text, "Which thing.").required(),
    ],
);
