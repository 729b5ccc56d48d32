//! Kinds of `apiextensions.k8s.io`.
//!
//! The schemas inside a definition are not described here, so this description is not published.

use super::{Field, Schema, Shape, TEXTS};

pub(crate) static CUSTOM_RESOURCE_DEFINITION: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    "Defines a resource.",
    &[
        Field::new("spec", Shape::Object(&SPEC), "What is wanted.").required(),
        Field::new("status", Shape::Object(&STATUS), "What is the case."),
    ],
)
.incomplete();

static SPEC: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec",
    "What is wanted of a resource.",
    &[
        Field::new("conversion", Shape::AnyObject, "How versions become each other."),
        Field::new("group", Shape::Text, "Its group.").required(),
        Field::new("names", Shape::Object(&NAMES), "What it is called.").required(),
        Field::new("preserveUnknownFields", Shape::Boolean, "No longer used."),
        Field::new("scope", Shape::Text, "Cluster or Namespaced.").required(),
        Field::new("versions", Shape::List(&Shape::Object(&VERSION)), "Its versions.").required(),
    ],
);

static NAMES: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames",
    "What a resource is called.",
    &[
        Field::new("categories", TEXTS, "Groups of resources that can be listed at once."),
        Field::new("kind", Shape::Text, "The kind of an object.").required(),
        Field::new("listKind", Shape::Text, "The kind of a list."),
        Field::new("plural", Shape::Text, "The name in paths.").required(),
        Field::new("shortNames", TEXTS, "Shorter names for people."),
        Field::new("singular", Shape::Text, "The name of one."),
    ],
);

static VERSION: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion",
    "One version of a resource.",
    &[
        Field::new(
            "additionalPrinterColumns",
            Shape::List(&Shape::Object(&COLUMN)),
            "What a table shows besides the name.",
        ),
        Field::new("deprecated", Shape::Boolean, "Whether it should no longer be used."),
        Field::new("deprecationWarning", Shape::Text, "What its users are told."),
        Field::new("name", Shape::Text, "Its name.").required(),
        Field::new("schema", Shape::Object(&VALIDATION), "What an object looks like."),
        Field::new(
            "selectableFields",
            Shape::List(&Shape::Object(&SELECTABLE_FIELD)),
            "What lists can be filtered by.",
        ),
        Field::new("served", Shape::Boolean, "Whether there are paths for it.").required(),
        Field::new("storage", Shape::Boolean, "Whether objects are stored in it.").required(),
        Field::new("subresources", Shape::AnyObject, "Which parts have paths of their own."),
    ],
);

static VALIDATION: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceValidation",
    "What an object looks like.",
    &[Field::new("openAPIV3Schema", Shape::AnyObject, "Its schema.")],
);

static COLUMN: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceColumnDefinition",
    "A column of a table.",
    &[
        Field::new("description", Shape::Text, "For people."),
        Field::new("format", Shape::Text, "How a value of the type is to be read."),
        Field::new("jsonPath", Shape::Text, "Where the value is.").required(),
        Field::new("name", Shape::Text, "The heading.").required(),
        Field::new("priority", Shape::Int32, "Above zero: for those who want more."),
        Field::new("type", Shape::Text, "What type the value has.").required(),
    ],
);

static SELECTABLE_FIELD: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.SelectableField",
    "A field that lists can be filtered by.",
    &[Field::new("jsonPath", Shape::Text, "Where it is.").required()],
);

static STATUS: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus",
    "What is the case with a resource.",
    &[
        Field::new("acceptedNames", Shape::Object(&NAMES), "What it is really called."),
        Field::new("conditions", Shape::List(&Shape::Object(&CONDITION)), "What is the case."),
        Field::new("observedGeneration", Shape::Int64, "Which generation this is about."),
        Field::new("storedVersions", TEXTS, "In which versions objects may be stored."),
    ],
);

static CONDITION: Schema = Schema::new(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionCondition",
    "One thing that is the case, or not, or unknown.",
    &[
        Field::new("lastTransitionTime", Shape::Time, "When the status last changed."),
        Field::new("message", Shape::Text, "Why, for people."),
        Field::new("observedGeneration", Shape::Int64, "Which generation this is about."),
        Field::new("reason", Shape::Text, "Why, for programs."),
        Field::new("status", Shape::Text, "True, False or Unknown.").required(),
        Field::new("type", Shape::Text, "Which thing.").required(),
    ],
);
