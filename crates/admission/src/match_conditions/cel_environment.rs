//! The CEL environments of match conditions.

use std::sync::LazyLock;

use cel::{AuthorizationValue, Environment, ObjectType, Type};

use super::request_variable::request_cel_type;

/// The index of the variable `authorizer`.
pub(super) const AUTHORIZER_INDEX: usize = 4;
/// The index of the variable `authorizer.requestResource`.
pub(super) const REQUEST_RESOURCE_INDEX: usize = 5;

/// The environment for stored conditions. It has all functions, because a stored condition stays valid.
pub(super) static STORED_CONDITION_ENVIRONMENT: LazyLock<Environment> =
    LazyLock::new(|| Environment::for_stored_expressions(declare_cel_variables()));

/// The environment for new conditions. It has only functions that the previous version also has, so that a rollback is
/// possible.
pub(super) static NEW_CONDITION_ENVIRONMENT: LazyLock<Environment> =
    LazyLock::new(|| Environment::for_new_expressions(declare_cel_variables()));

/// Declares the variables, in the order of their values.
///
/// `params` and `variables` belong to policies, so a condition that uses one does not compile.
fn declare_cel_variables() -> Vec<(&'static str, Type)> {
    vec![
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("namespaceObject", namespace_cel_type()),
        ("request", request_cel_type()),
        ("authorizer", Type::Opaque(AuthorizationValue::AUTHORIZER)),
        ("authorizer.requestResource", Type::Opaque(AuthorizationValue::RESOURCE_CHECK)),
    ]
}

/// The type of `namespaceObject`, as Kubernetes declares it: without owner references and managed fields.
fn namespace_cel_type() -> Type {
    let texts = || Type::list_type_of(Type::String);
    let labels = || Type::map_type_of(Type::String, Type::String);
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
        vec![("conditions", Type::list_type_of(Type::Object(condition))), ("phase", Type::String)],
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
