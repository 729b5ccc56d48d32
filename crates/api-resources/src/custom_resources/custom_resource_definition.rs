//! Reads a CustomResourceDefinition leniently: unknown and malformed parts count as absent.
//!
//! A definition is validated when it is written. A stored definition is read as far as it makes sense,
//! so that one malformed object never prevents the others from being served.

use std::sync::Arc;

use api_object::Tree;
use serde_json::Value;

use crate::built_in_resources::TABLE;
use crate::json_members::{bool_member, list_member, string_list_member, string_member};
use crate::resource::Scope;
use crate::scale::ReplicaPaths;
use crate::storage_key::is_path_segment;

/// A CustomResourceDefinition, as far as the server uses it.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomResourceDefinition {
    /// The name of the object: the plural, a dot and the group.
    pub name: String,
    /// The uid, which distinguishes definitions that had the same name at different times.
    pub uid: String,
    /// The API group of the resource.
    pub group: String,
    /// Whether objects are namespaced.
    pub scope: Scope,
    /// The names that the spec requests.
    pub requested_names: ResourceNames,
    /// The versions, in the order of the object.
    pub versions: Vec<DefinitionVersion>,
    /// The names that the status accepts.
    pub accepted_names: ResourceNames,
    /// The status conditions, in the order of the object.
    pub conditions: Vec<DefinitionCondition>,
    /// Whether the definition has a deletion timestamp.
    pub is_being_deleted: bool,
}

/// The names of a resource and of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceNames {
    /// The name in paths.
    pub plural: String,
    /// The singular name for kubectl.
    pub singular: String,
    /// The short names for kubectl.
    pub short_names: Vec<String>,
    /// The kind of an object.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// The categories, such as `all`, under which kubectl lists the resource.
    pub categories: Vec<String>,
}

/// One version of the resource of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionVersion {
    /// The name, such as `v1beta1`.
    pub name: String,
    /// Whether the version is served.
    pub is_served: bool,
    /// Whether objects are stored in this version.
    pub is_storage_version: bool,
    /// Whether the version is deprecated.
    pub version_deprecation: VersionDeprecation,
    /// The OpenAPI schema of the objects, as JSON text: a decoded schema takes ten times as much memory, and the server
    /// uses it only for OpenAPI documents.
    pub schema_json: Option<Arc<str>>,
    /// Whether the status is a subresource.
    pub has_status_subresource: bool,
    /// The paths of replicas, if the scale is a subresource.
    pub replica_paths: Option<ReplicaPaths>,
    /// The additional printer columns.
    pub printer_columns: Vec<PrinterColumn>,
    /// The paths of the fields that lists can be filtered by.
    pub selectable_fields: Vec<String>,
}

/// Whether a version is deprecated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionDeprecation {
    /// The version is not deprecated.
    None,
    /// The version is deprecated, and clients receive the default warning.
    DefaultWarning,
    /// The version is deprecated, and clients receive this warning.
    CustomWarning(String),
}

/// A printer column of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// The heading of the column.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: String,
    /// The OpenAPI format of the value, such as `date-time`; may be empty.
    pub column_format: String,
    /// A sentence about the column, for users; may be empty.
    pub description: String,
    /// Clients show columns with a priority above 0 only in wide output.
    pub column_priority: i32,
    /// The path of the value in an object.
    pub json_path: String,
}

/// A status condition of a definition, such as `Established`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionCondition {
    /// The type, such as `NamesAccepted`.
    pub r#type: String,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// A machine-readable reason, in CamelCase.
    pub reason: String,
    /// The reason as a sentence for users.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition is known to hold.
    True,
    /// The condition does not hold.
    False,
    /// It is not known whether the condition holds.
    Unknown,
}

impl CustomResourceDefinition {
    /// Reads a definition. Returns `None` if it names no resource, or if its own name is not the plural
    /// name, a dot and the group. The storage path of a definition that was read is therefore certain.
    #[must_use]
    pub fn read(tree: &Tree) -> Option<Self> {
        let spec = tree.get("spec")?;
        let status = tree.get("status").unwrap_or(&Value::Null);
        let metadata = tree.get("metadata").unwrap_or(&Value::Null);
        let scope = match string_member(spec, "scope") {
            "Cluster" => Scope::Cluster,
            "Namespaced" => Scope::Namespaced,
            _ => return None,
        };
        let definition = Self {
            name: string_member(metadata, "name").to_owned(),
            uid: string_member(metadata, "uid").to_owned(),
            group: string_member(spec, "group").to_owned(),
            scope,
            requested_names: ResourceNames::read(spec.get("names")),
            versions: list_member(spec, "versions").iter().map(DefinitionVersion::read).collect(),
            accepted_names: ResourceNames::read(status.get("acceptedNames")),
            conditions: list_member(status, "conditions")
                .iter()
                .map(DefinitionCondition::read)
                .collect(),
            is_being_deleted: metadata.get("deletionTimestamp").is_some_and(|it| !it.is_null()),
        };
        let (plural, group) = (&definition.requested_names.plural, &definition.group);
        // A group of one word could be the storage path of a built-in resource.
        let is_named = is_path_segment(plural)
            && is_path_segment(group)
            && group.contains('.')
            && definition.name.strip_prefix(plural.as_str()).and_then(|own| own.strip_prefix('.'))
                == Some(group);
        is_named.then_some(definition)
    }

    /// The condition of that type.
    #[must_use]
    pub fn find_condition(&self, r#type: &str) -> Option<&DefinitionCondition> {
        self.conditions.iter().find(|it| it.r#type == r#type)
    }

    /// Reports whether a condition has the status `True`.
    #[must_use]
    pub fn has_true_condition(&self, r#type: &str) -> bool {
        self.find_condition(r#type).is_some_and(|it| it.status == ConditionStatus::True)
    }

    /// Reports whether the server serves the resource: its names are or were accepted, and the
    /// accepted plural and kind equal those of the spec. Objects are stored under the names of the
    /// spec, so a request could otherwise be authorized under one name and executed under another.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let (accepted, own) = (&self.accepted_names, &self.requested_names);
        (self.has_true_condition("NamesAccepted") || self.is_established())
            && (&accepted.plural, &accepted.kind) == (&own.plural, &own.kind)
            && self.storage_path().is_some()
    }

    /// The path of its objects in the store, below the prefix of the store; `None` if a built-in resource
    /// uses that path.
    #[must_use]
    pub fn storage_path(&self) -> Option<String> {
        let path = format!("{}/{}", self.group, self.requested_names.plural);
        let is_taken = TABLE.iter().any(|row| {
            row.matches_resource(&self.group, &self.requested_names.plural)
                || row.storage_path().is_some_and(|own| is_same_or_nested_path(own, &path))
        });
        (!is_taken).then_some(path)
    }

    /// Reports whether the status tells clients that the resource is served.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.has_true_condition("Established")
    }

    /// Reports whether the definition is being deleted, so that no object may be created.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.is_being_deleted || self.has_true_condition("Terminating")
    }

    /// The version in which objects are stored.
    #[must_use]
    pub fn storage_version(&self) -> Option<&DefinitionVersion> {
        self.versions.iter().find(|it| it.is_storage_version)
    }
}

/// Reports whether two paths are equal, or one is a prefix of the other by whole segments.
fn is_same_or_nested_path(one: &str, other: &str) -> bool {
    one.split('/').zip(other.split('/')).all(|(one, other)| one == other)
}

impl ResourceNames {
    fn read(names: Option<&Value>) -> Self {
        let names = names.unwrap_or(&Value::Null);
        Self {
            plural: string_member(names, "plural").to_owned(),
            singular: string_member(names, "singular").to_owned(),
            short_names: string_list_member(names, "shortNames"),
            kind: string_member(names, "kind").to_owned(),
            list_kind: string_member(names, "listKind").to_owned(),
            categories: string_list_member(names, "categories"),
        }
    }
}

impl DefinitionVersion {
    fn read(version: &Value) -> Self {
        let schema = version.get("schema").and_then(|it| it.get("openAPIV3Schema"));
        let subresources = version.get("subresources").unwrap_or(&Value::Null);
        let deprecation = match version.get("deprecationWarning").and_then(Value::as_str) {
            _ if !bool_member(version, "deprecated") => VersionDeprecation::None,
            Some(warning) => VersionDeprecation::CustomWarning(warning.to_owned()),
            None => VersionDeprecation::DefaultWarning,
        };
        let paths = list_member(version, "selectableFields").iter();
        Self {
            name: string_member(version, "name").to_owned(),
            is_served: bool_member(version, "served"),
            is_storage_version: bool_member(version, "storage"),
            version_deprecation: deprecation,
            schema_json: schema.filter(|it| it.is_object()).map(|it| it.to_string().into()),
            has_status_subresource: subresources.get("status").is_some_and(|it| !it.is_null()),
            replica_paths: subresources.get("scale").and_then(ReplicaPaths::read),
            printer_columns: list_member(version, "additionalPrinterColumns")
                .iter()
                .map(PrinterColumn::read)
                .collect(),
            selectable_fields: paths.map(|it| string_member(it, "jsonPath").to_owned()).collect(),
        }
    }
}

impl PrinterColumn {
    fn read(column: &Value) -> Self {
        let owned = |key| string_member(column, key).to_owned();
        let priority = column.get("priority").and_then(Value::as_i64).unwrap_or_default();
        Self {
            name: owned("name"),
            r#type: owned("type"),
            column_format: owned("format"),
            description: owned("description"),
            column_priority: i32::try_from(priority).unwrap_or(i32::MAX),
            json_path: owned("jsonPath"),
        }
    }
}

impl DefinitionCondition {
    fn read(condition: &Value) -> Self {
        let owned = |key| string_member(condition, key).to_owned();
        let status = match string_member(condition, "status") {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        };
        Self { r#type: owned("type"), status, reason: owned("reason"), message: owned("message") }
    }
}

impl ConditionStatus {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}
