//! Schemas of the parts that all kinds share, such as metadata.

use super::{Field, Schema, Shape, TEXT_MAP, TEXTS};

pub(crate) static OBJECT_META: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "What every stored object has, whatever its kind.",
    &[
        Field::new("annotations", TEXT_MAP, "Notes of any kind, for tools; not searched by."),
        Field::new("creationTimestamp", Shape::Time, "When the server stored it first. Read-only."),
        Field::new(
            "deletionGracePeriodSeconds",
            Shape::Int64,
            "How long it may take to end before it is removed. Read-only.",
        ),
        Field::new("deletionTimestamp", Shape::Time, "When it is to be gone. Read-only."),
        Field::new("finalizers", TEXTS, "What must be done before it can be removed.").set(),
        Field::new(
            "generateName",
            Shape::Text,
            "The beginning of a name that the server completes, if no name is given.",
        ),
        Field::new("generation", Shape::Int64, "Counts the changes of what is wanted. Read-only."),
        Field::new(
            "initializers",
            Shape::Object(&INITIALIZERS),
            "Who still has to complete the object before others see it.",
        ),
        Field::new("labels", TEXT_MAP, "What the object can be selected by."),
        Field::new(
            "managedFields",
            Shape::List(&Shape::Object(&MANAGED_FIELDS_ENTRY)),
            "Who set which fields.",
        ),
        Field::new("name", Shape::Text, "Its name, unique in its namespace. Never changes."),
        Field::new("namespace", Shape::Text, "Where it lives; empty if it is of the cluster."),
        Field::new(
            "ownerReferences",
            Shape::List(&Shape::Object(&OWNER_REFERENCE)),
            "The objects that it belongs to: when all are gone, it goes too.",
        )
        .keyed("uid"),
        Field::new(
            "resourceVersion",
            Shape::Text,
            "Which state this is; equal to the current one for an update to succeed.",
        ),
        Field::new("selfLink", Shape::Text, "No longer filled in."),
        Field::new("uid", Shape::Text, "Tells objects of one name apart over time. Read-only."),
    ],
);

static OWNER_REFERENCE: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "An object that another one belongs to, in the same namespace or of the cluster.",
    &[
        Field::new("apiVersion", Shape::Text, "Version of the owner.").required(),
        Field::new(
            "blockOwnerDeletion",
            Shape::Boolean,
            "Whether the owner stays until this object is gone, if deleted in the foreground.",
        ),
        Field::new("controller", Shape::Boolean, "Whether this owner manages the object."),
        Field::new("kind", Shape::Text, "Kind of the owner.").required(),
        Field::new("name", Shape::Text, "Name of the owner.").required(),
        Field::new("uid", Shape::Text, "UID of the owner.").required(),
    ],
)
.atomic();

static MANAGED_FIELDS_ENTRY: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    "The fields that one party set with one kind of operation.",
    &[
        Field::new("apiVersion", Shape::Text, "The version whose fields these are."),
        Field::new("fieldsType", Shape::Text, "The form of the fields: FieldsV1."),
        Field::new("fieldsV1", Shape::AnyObject, "The fields, as a tree of keys."),
        Field::new("manager", Shape::Text, "Who set them."),
        Field::new("operation", Shape::Text, "How: Apply or Update."),
        Field::new("subresource", Shape::Text, "Through which subresource, if any."),
        Field::new("time", Shape::Time, "When the entry last changed."),
    ],
);

static INITIALIZERS: Schema = Schema::new(
    "io.portcullis.meta.v1.Initializers",
    "The progress of the completion of an object.",
    &[
        Field::new(
            "pending",
            Shape::List(&Shape::Object(&INITIALIZER)),
            "Who has yet to act, in order; the object is visible when it is empty.",
        )
        .keyed("name"),
        Field::new("result", Shape::AnyObject, "Why the completion failed, as a Status."),
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
        Field::new("name", Shape::Text, "Its name.").required(),
    ],
);

pub(super) static LABEL_SELECTOR: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "Selects objects by their labels; all parts must match. An empty one selects everything.",
    &[
        Field::new(
            "matchExpressions",
            Shape::List(&Shape::Object(&LABEL_SELECTOR_REQUIREMENT)),
            "Conditions on labels.",
        ),
        Field::new("matchLabels", TEXT_MAP, "Labels that an object must have."),
    ],
)
.atomic();

static LABEL_SELECTOR_REQUIREMENT: Schema = Schema::new(
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
    "A condition on one label.",
    &[
        Field::new("key", Shape::Text, "The key of the label.").required(),
        Field::new("operator", Shape::Text, "In, NotIn, Exists or DoesNotExist.").required(),
        Field::new("values", TEXTS, "What In and NotIn compare with."),
    ],
);
