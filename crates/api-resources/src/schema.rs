//! Schemas of built-in kinds, as data.
//!
//! One schema serves three purposes: type checks of bodies, removal of unknown fields, and the
//! published OpenAPI schema.

mod admission;
mod admission_v1alpha1;
mod certificates;
mod coordination;
mod core;
mod extensions;
mod meta;
mod rbac;
mod type_check;

pub(crate) use admission::{MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION};
pub(crate) use admission_v1alpha1::{
    EXTERNAL_ADMISSION_HOOK_CONFIGURATION, INITIALIZER_CONFIGURATION,
};
pub(crate) use certificates::CERTIFICATE_SIGNING_REQUEST;
pub(crate) use coordination::LEASE;
pub(crate) use core::{CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT};
pub(crate) use extensions::CUSTOM_RESOURCE_DEFINITION;
pub(crate) use meta::OBJECT_META;
pub(crate) use rbac::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING};
pub(crate) use type_check::{WrongTypeError, check, prune};

/// A structure with named fields.
///
/// That of a kind leaves out `apiVersion`, `kind` and `metadata`, which all kinds have.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The name under which it is published.
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) fields: &'static [Field],
    /// Whether a patch replaces it as a whole where several people share an object.
    pub(crate) is_atomic: bool,
    /// Whether parts are not described, so that the schema must not be published.
    pub(crate) is_incomplete: bool,
}

/// A field of a structure.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) description: &'static str,
    pub(crate) is_required: bool,
    pub(crate) list: ListType,
}

/// The type of the value of a field.
#[derive(Debug)]
pub(crate) enum Shape {
    Text,
    /// Bytes, as text of base64.
    Bytes,
    Boolean,
    Int32,
    Int64,
    /// A time in RFC 3339.
    Time,
    /// A time in RFC 3339 with six decimals.
    MicroTime,
    /// Whatever an object can hold.
    AnyObject,
    Object(&'static Schema),
    List(&'static Shape),
    Map(&'static Shape),
}

/// How patches treat a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListType {
    /// It is replaced as a whole.
    Atomic,
    /// Its items are merged.
    Set,
    /// Its items are merged by this field of theirs.
    Map(&'static str),
}

impl Schema {
    const fn new(name: &'static str, description: &'static str, fields: &'static [Field]) -> Self {
        Self { name, description, fields, is_atomic: false, is_incomplete: false }
    }

    const fn atomic(self) -> Self {
        Self { is_atomic: true, ..self }
    }

    const fn incomplete(self) -> Self {
        Self { is_incomplete: true, ..self }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|it| it.name == name)
    }
}

impl Field {
    const fn new(name: &'static str, shape: Shape, description: &'static str) -> Self {
        Self { name, shape, description, is_required: false, list: ListType::Atomic }
    }

    const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    const fn set(self) -> Self {
        Self { list: ListType::Set, ..self }
    }

    const fn keyed(self, key: &'static str) -> Self {
        Self { list: ListType::Map(key), ..self }
    }
}

/// Lists and maps of texts are so common that they have names.
const TEXTS: Shape = Shape::List(&Shape::Text);
const TEXT_MAP: Shape = Shape::Map(&Shape::Text);
