//! Schemas of the kinds of `apiextensions.k8s.io`.
//!
//! The OpenAPI schema inside a definition has no schema here, so the one of definitions is incomplete and
//! not published.

use super::{Field, FieldType, Schema, TEXTS};

pub(crate) static CUSTOM_RESOURCE_DEFINITION: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    "Defines a resource.",
    &[
        Field::new("spec", FieldType::Object(&SPEC), "What is wanted.").mark_required(),
        Field::new("status", FieldType::Object(&STATUS), "What is the case."),
    ],
)
.mark_incomplete();

static SPEC: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec",
    "What is wanted of a resource.",
    &[
        Field::new("conversion", FieldType::AnyObject, "How versions become each other."),
        Field::new("group", FieldType::Text, "Its group.").mark_required(),
        Field::new("names", FieldType::Object(&NAMES), "What it is called.").mark_required(),
        Field::new("preserveUnknownFields", FieldType::Boolean, "No longer used."),
        Field::new("scope", FieldType::Text, "Cluster or Namespaced.").mark_required(),
        Field::new("versions", FieldType::List(&FieldType::Object(&VERSION)), "Its versions.")
            .mark_required(),
    ],
);

static NAMES: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames",
    "What a resource is called.",
    &[
        Field::new("categories", TEXTS, "Groups of resources that can be listed at once."),
        Field::new("kind", FieldType::Text, "The kind of an object.").mark_required(),
        Field::new("listKind", FieldType::Text, "The kind of a list."),
        Field::new("plural", FieldType::Text, "The name in paths.").mark_required(),
        Field::new("shortNames", TEXTS, "Shorter names for people."),
        Field::new("singular", FieldType::Text, "The name of one."),
    ],
);

static VERSION: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion",
    "One version of a resource.",
    &[
        Field::new(
            "additionalPrinterColumns",
            FieldType::List(&FieldType::Object(&COLUMN)),
            "What a table shows besides the name.",
        ),
        Field::new("deprecated", FieldType::Boolean, "Whether it should no longer be used."),
        Field::new("deprecationWarning", FieldType::Text, "What its users are told."),
        Field::new("name", FieldType::Text, "Its name.").mark_required(),
        Field::new("schema", FieldType::Object(&VALIDATION), "What an object looks like."),
        Field::new(
            "selectableFields",
            FieldType::List(&FieldType::Object(&SELECTABLE_FIELD)),
            "What lists can be filtered by.",
        ),
        Field::new("served", FieldType::Boolean, "Whether there are paths for it.").mark_required(),
        Field::new("storage", FieldType::Boolean, "Whether objects are stored in it.")
            .mark_required(),
        Field::new("subresources", FieldType::AnyObject, "Which parts have paths of their own."),
    ],
);

static VALIDATION: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceValidation",
    "What an object looks like.",
    &[Field::new("openAPIV3Schema", FieldType::AnyObject, "Its schema.")],
);

static COLUMN: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceColumnDefinition",
    "A column of a table.",
    &[
        Field::new("description", FieldType::Text, "For people."),
        Field::new("format", FieldType::Text, "How a value of the type is to be read."),
        Field::new("jsonPath", FieldType::Text, "Where the value is.").mark_required(),
        Field::new("name", FieldType::Text, "The heading.").mark_required(),
        Field::new("priority", FieldType::Int32, "Above zero: for those who want more."),
        Field::new("type", FieldType::Text, "What type the value has.").mark_required(),
    ],
);

static SELECTABLE_FIELD: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.SelectableField",
    "A field that lists can be filtered by.",
    &[Field::new("jsonPath", FieldType::Text, "Where it is.").mark_required()],
);

static STATUS: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus",
    "What is the case with a resource.",
    &[
        Field::new("acceptedNames", FieldType::Object(&NAMES), "What it is really called."),
        Field::new(
            "conditions",
            FieldType::List(&FieldType::Object(&CONDITION)),
            "What is the case.",
        ),
        Field::new("observedGeneration", FieldType::Int64, "Which generation this is about."),
        Field::new("storedVersions", TEXTS, "In which versions objects may be stored."),
    ],
);

static CONDITION: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionCondition",
    "One thing that is the case, or not, or unknown.",
    &[
        Field::new("lastTransitionTime", FieldType::Time, "When the status last changed."),
        Field::new("message", FieldType::Text, "Why, for people."),
        Field::new("observedGeneration", FieldType::Int64, "Which generation this is about."),
        Field::new("reason", FieldType::Text, "Why, for programs."),
        Field::new("status", FieldType::Text, "True, False or Unknown.").mark_required(),
        Field::new("type", FieldType::Text, "Which thing.").mark_required(),
    ],
);
