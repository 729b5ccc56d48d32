//! Schemas of the parts that all kinds share, such as metadata.

use super::{Field, FieldType, Schema, TEXT_MAP, TEXTS};

pub(crate) static OBJECT_META: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "What every stored object has, whatever its kind.",
    &[
        Field::new("annotations", TEXT_MAP, "Notes of any kind, for tools; not searched by."),
        Field::new(
            "creationTimestamp",
            FieldType::Time,
            "When the server stored it first. Read-only.",
        ),
        Field::new(
            "deletionGracePeriodSeconds",
            FieldType::Int64,
            "How long it may take to end before it is removed. Read-only.",
        ),
        Field::new("deletionTimestamp", FieldType::Time, "When it is to be gone. Read-only."),
        Field::new("finalizers", TEXTS, "What must be done before it can be removed.")
            .merge_list_as_set(),
        Field::new(
            "generateName",
            FieldType::Text,
            "The beginning of a name that the server completes, if no name is given.",
        ),
        Field::new(
            "generation",
            FieldType::Int64,
            "Counts the changes of what is wanted. Read-only.",
        ),
        Field::new(
            "initializers",
            FieldType::Object(&INITIALIZERS),
            "Who still has to complete the object before others see it.",
        ),
        Field::new("labels", TEXT_MAP, "What the object can be selected by."),
        Field::new(
            "managedFields",
            FieldType::List(&FieldType::Object(&MANAGED_FIELDS_ENTRY)),
            "Who set which fields.",
        ),
        Field::new("name", FieldType::Text, "Its name, unique in its namespace. Never changes."),
        Field::new("namespace", FieldType::Text, "Where it lives; empty if it is of the cluster."),
        Field::new(
            "ownerReferences",
            FieldType::List(&FieldType::Object(&OWNER_REFERENCE)),
            "The objects that it belongs to: when all are gone, it goes too.",
        )
        .merge_list_by_key("uid"),
        Field::new(
            "resourceVersion",
            FieldType::Text,
            "Which state this is; equal to the current one for an update to succeed.",
        ),
        Field::new("selfLink", FieldType::Text, "No longer filled in."),
        Field::new("uid", FieldType::Text, "Tells objects of one name apart over time. Read-only."),
    ],
);

static OWNER_REFERENCE: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "An object that another one belongs to, in the same namespace or of the cluster.",
    &[
        Field::new("apiVersion", FieldType::Text, "Version of the owner.").mark_required(),
        Field::new(
            "blockOwnerDeletion",
            FieldType::Boolean,
            "Whether the owner stays until this object is gone, if deleted in the foreground.",
        ),
        Field::new("controller", FieldType::Boolean, "Whether this owner manages the object."),
        Field::new("kind", FieldType::Text, "Kind of the owner.").mark_required(),
        Field::new("name", FieldType::Text, "Name of the owner.").mark_required(),
        Field::new("uid", FieldType::Text, "UID of the owner.").mark_required(),
    ],
)
.mark_atomic();

static MANAGED_FIELDS_ENTRY: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    "The fields that one party set with one kind of operation.",
    &[
        Field::new("apiVersion", FieldType::Text, "The version whose fields these are."),
        Field::new("fieldsType", FieldType::Text, "The form of the fields: FieldsV1."),
        Field::new("fieldsV1", FieldType::AnyObject, "The fields, as a tree of keys."),
        Field::new("manager", FieldType::Text, "Who set them."),
        Field::new("operation", FieldType::Text, "How: Apply or Update."),
        Field::new("subresource", FieldType::Text, "Through which subresource, if any."),
        Field::new("time", FieldType::Time, "When the entry last changed."),
    ],
);

static INITIALIZERS: Schema = Schema::new(
    "io.portcullis.meta.v1.Initializers",
    "The progress of the completion of an object.",
    &[
        Field::new(
            "pending",
            FieldType::List(&FieldType::Object(&INITIALIZER)),
            "Who has yet to act, in order; the object is visible when it is empty.",
        )
        .merge_list_by_key("name"),
        Field::new("result", FieldType::AnyObject, "Why the completion failed, as a Status."),
    ],
);

static INITIALIZER: Schema = Schema::new(
    "io.portcullis.meta.v1.Initializer",
    "One party that completes objects.",
    &[
        Field::new(
            "after",
            TEXTS,
            "Those of the list that it waits for; all before it in the list if not said.",
        ),
        Field::new("name", FieldType::Text, "Its name.").mark_required(),
    ],
);

pub(super) static LABEL_SELECTOR: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "Selects objects by their labels; all parts must match. An empty one selects everything.",
    &[
        Field::new(
            "matchExpressions",
            FieldType::List(&FieldType::Object(&LABEL_SELECTOR_REQUIREMENT)),
            "Conditions on labels.",
        ),
        Field::new("matchLabels", TEXT_MAP, "Labels that an object must have."),
    ],
)
.mark_atomic();

static LABEL_SELECTOR_REQUIREMENT: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
    "A condition on one label.",
    &[
        Field::new("key", FieldType::Text, "The key of the label.").mark_required(),
        Field::new("operator", FieldType::Text, "In, NotIn, Exists or DoesNotExist.")
            .mark_required(),
        Field::new("values", TEXTS, "What In and NotIn compare with."),
    ],
);
