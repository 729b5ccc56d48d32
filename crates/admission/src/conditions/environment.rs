//! The variables of match conditions.

use std::sync::LazyLock;

use cel::{AuthorizationValue, Environment, ObjectType, Type};

use super::request::request_type;

/// The number of the variable `authorizer`.
pub(super) const AUTHORIZER: usize = 4;
/// The number of the variable `authorizer.requestResource`.
pub(super) const REQUEST_RESOURCE: usize = 5;

/// For conditions that are stored: they are evaluated whatever they were once allowed to use.
pub(super) static STORED: LazyLock<Environment> =
    LazyLock::new(|| Environment::kubernetes(variables()));

/// For conditions that are new: they must not use what a server of the version before does not know.
pub(super) static NEW: LazyLock<Environment> =
    LazyLock::new(|| Environment::kubernetes_new_expressions(variables()));

/// Declared in the order in which values are handed over.
///
/// `params` and `variables` belong to policies, so that a condition that names one does not compile.
fn variables() -> Vec<(&'static str, Type)> {
    vec![
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("namespaceObject", namespace_type()),
        ("request", request_type()),
        ("authorizer", Type::Opaque(AuthorizationValue::AUTHORIZER)),
        ("authorizer.requestResource", Type::Opaque(AuthorizationValue::RESOURCE_CHECK)),
    ]
}

/// What Kubernetes declares of a Namespace. Ownership and managed fields are left out there, too.
fn namespace_type() -> Type {
    let texts = || Type::list(Type::String);
    let labels = || Type::map(Type::String, Type::String);
    let metadata = ObjectType::new(
        "kubernetes.NamespaceMetadata",
        vec![
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", texts()),
        ],
    );
    let condition = ObjectType::new(
        "kubernetes.NamespaceCondition",
        vec![
            ("status", Type::String),
            ("type", Type::String),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::String),
            ("reason", Type::String),
        ],
    );
    let spec = ObjectType::new("kubernetes.NamespaceSpec", vec![("finalizers", texts())]);
    let status = ObjectType::new(
        "kubernetes.NamespaceStatus",
        vec![("conditions", Type::list(Type::Object(condition))), ("phase", Type::String)],
    );
    Type::Object(ObjectType::new(
        "kubernetes.Namespace",
        vec![
            ("metadata", Type::Object(metadata)),
            ("spec", Type::Object(spec)),
            ("status", Type::Object(status)),
        ],
    ))
}
