//! Schemas of built-in kinds, as data.
//!
//! One schema serves three purposes: type checks of bodies, removal of unknown fields, and the
//! published OpenAPI schema.

mod admission_schema;
mod admission_v1alpha1_schema;
mod certificates_schema;
mod coordination_schema;
mod core_schema;
mod extensions_schema;
mod flow_control_schema;
mod meta_schema;
mod rbac_schema;
mod type_check;

pub(crate) use admission_schema::{
    MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION,
};
pub(crate) use admission_v1alpha1_schema::{
    EXTERNAL_ADMISSION_HOOK_CONFIGURATION, INITIALIZER_CONFIGURATION,
};
pub(crate) use certificates_schema::CERTIFICATE_SIGNING_REQUEST;
pub(crate) use coordination_schema::LEASE;
pub(crate) use core_schema::{CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT};
pub(crate) use extensions_schema::CUSTOM_RESOURCE_DEFINITION;
pub(crate) use flow_control_schema::{FLOW_SCHEMA, PRIORITY_LEVEL_CONFIGURATION};
pub(crate) use meta_schema::OBJECT_META;
pub(crate) use rbac_schema::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING};
pub(crate) use type_check::{WrongTypeError, check_types, prune_unknown_fields};

/// The schema of an object with named fields.
///
/// The schema of a kind does not list `apiVersion`, `kind` and `metadata`, which all kinds have.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The name under which it is published.
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) fields: &'static [Field],
    /// Whether patches replace the object as a whole (`x-kubernetes-map-type: atomic`).
    pub(crate) is_atomic: bool,
    /// Whether some fields are missing, so that the schema is not published.
    pub(crate) is_incomplete: bool,
}

/// A field of a schema.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) field_type: FieldType,
    pub(crate) description: &'static str,
    pub(crate) is_required: bool,
    pub(crate) list_type: ListType,
}

/// The type of the value of a field.
#[derive(Debug)]
pub(crate) enum FieldType {
    Text,
    /// Bytes, encoded as base64.
    Bytes,
    Boolean,
    Int32,
    Int64,
    /// A time in RFC 3339.
    Time,
    /// A time in RFC 3339 with six decimals.
    MicroTime,
    /// An object with any members.
    AnyObject,
    Object(&'static Schema),
    List(&'static FieldType),
    Map(&'static FieldType),
}

/// How patches treat a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListType {
    /// The list is replaced as a whole.
    Atomic,
    /// The items of the list are merged.
    Set,
    /// The items of the list are merged by the value of this field.
    Map(&'static str),
}

impl Schema {
    const fn new(name: &'static str, description: &'static str, fields: &'static [Field]) -> Self {
        Self { name, description, fields, is_atomic: false, is_incomplete: false }
    }

    const fn mark_atomic(self) -> Self {
        Self { is_atomic: true, ..self }
    }

    const fn mark_incomplete(self) -> Self {
        Self { is_incomplete: true, ..self }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|it| it.name == name)
    }
}

impl Field {
    const fn new(name: &'static str, field_type: FieldType, description: &'static str) -> Self {
        Self { name, field_type, description, is_required: false, list_type: ListType::Atomic }
    }

    const fn mark_required(self) -> Self {
        Self { is_required: true, ..self }
    }

    const fn merge_list_as_set(self) -> Self {
        Self { list_type: ListType::Set, ..self }
    }

    const fn merge_list_by_key(self, key: &'static str) -> Self {
        Self { list_type: ListType::Map(key), ..self }
    }
}

/// A list of strings.
const TEXTS: FieldType = FieldType::List(&FieldType::Text);
const TEXT_MAP: FieldType = FieldType::Map(&FieldType::Text);
