//! Reads a CustomResourceDefinition leniently: unknown and malformed parts count as absent.
//!
//! Whether a definition is sound is decided when it is written. Here, what is stored is taken as
//! far as it makes sense, so that one odd object never keeps the others from being served.

use std::sync::Arc;

use api_object::Tree;
use serde_json::Value;

use crate::built_in::TABLE;
use crate::resource::Scope;
use crate::storage_key::is_path_segment;
use crate::tree::{flag, items, text, texts};

/// A definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The name of the object: the plural, a dot and the group.
    pub name: String,
    /// Tells definitions apart that had the same name at different times.
    pub uid: String,
    /// The group.
    pub group: String,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// The names that are wanted.
    pub names: Names,
    /// The versions, in the order of the object.
    pub versions: Vec<Version>,
    /// The names that no other definition of the group had before.
    pub accepted_names: Names,
    /// The status conditions, in the order of the object.
    pub conditions: Vec<Condition>,
    /// Whether it is to be deleted.
    pub is_deleted: bool,
}

/// The names of a resource and of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// The name in paths.
    pub plural: String,
    /// The singular name.
    pub singular: String,
    /// Shorter names for people.
    pub short_names: Vec<String>,
    /// The kind of an object.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// Groups of resources that people may list at once.
    pub categories: Vec<String>,
}

/// One version of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Whether there are paths for it.
    pub is_served: bool,
    /// Whether objects are stored in it.
    pub is_storage: bool,
    /// Whether it should still be used.
    pub deprecation: Deprecation,
    /// The OpenAPI schema of the objects.
    pub schema: Option<Arc<Value>>,
    /// Whether the status is a subresource.
    pub has_status: bool,
    /// The additional printer columns.
    pub columns: Vec<PrinterColumn>,
    /// The paths of the fields that lists can be filtered by.
    pub selectable_fields: Vec<String>,
}

/// Whether a version should still be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deprecation {
    /// It should.
    None,
    /// It should not, and the usual words say so.
    Usual,
    /// It should not, and these words say so.
    Warning(String),
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: String,
    /// How a value of the type is to be read; may be empty.
    pub format: String,
    /// For people; may be empty.
    pub description: String,
    /// Shown to those who want more if above zero.
    pub priority: i32,
    /// Where the value is.
    pub json_path: String,
}

/// A status condition of a definition, such as `Established`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The type, such as `NamesAccepted`.
    pub r#type: String,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// A machine-readable reason, in CamelCase.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

impl Definition {
    /// Reads a definition; `None` if it does not say which resource it defines, or by another name than
    /// its own. What names its place in the store is never in doubt after that.
    #[must_use]
    pub fn read(tree: &Tree) -> Option<Self> {
        let spec = tree.get("spec")?;
        let status = tree.get("status").unwrap_or(&Value::Null);
        let metadata = tree.get("metadata").unwrap_or(&Value::Null);
        let scope = match text(spec, "scope") {
            "Cluster" => Scope::Cluster,
            "Namespaced" => Scope::Namespaced,
            _ => return None,
        };
        let definition = Self {
            name: text(metadata, "name").to_owned(),
            uid: text(metadata, "uid").to_owned(),
            group: text(spec, "group").to_owned(),
            scope,
            names: Names::read(spec.get("names")),
            versions: items(spec, "versions").iter().map(Version::read).collect(),
            accepted_names: Names::read(status.get("acceptedNames")),
            conditions: items(status, "conditions").iter().map(Condition::read).collect(),
            is_deleted: metadata.get("deletionTimestamp").is_some_and(|it| !it.is_null()),
        };
        let (plural, group) = (&definition.names.plural, &definition.group);
        // A group of one word could be the place of something else that is stored.
        let is_named = is_path_segment(plural)
            && is_path_segment(group)
            && group.contains('.')
            && definition.name.strip_prefix(plural.as_str()).and_then(|own| own.strip_prefix('.'))
                == Some(group);
        is_named.then_some(definition)
    }

    /// The condition of that type.
    #[must_use]
    pub fn condition(&self, r#type: &str) -> Option<&Condition> {
        self.conditions.iter().find(|it| it.r#type == r#type)
    }

    /// Reports whether a condition is known to hold.
    #[must_use]
    pub fn is(&self, r#type: &str) -> bool {
        self.condition(r#type).is_some_and(|it| it.status == ConditionStatus::True)
    }

    /// Reports whether there are paths for its resource: its names are accepted, or were once, and they
    /// are those that its objects are stored by. Otherwise requests would be authorized by one name and
    /// executed by another.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let (accepted, own) = (&self.accepted_names, &self.names);
        (self.is("NamesAccepted") || self.is_established())
            && (&accepted.plural, &accepted.kind) == (&own.plural, &own.kind)
            && self.storage_path().is_some()
    }

    /// Where its objects are stored, below the prefix of the store; `None` if that is the place of a
    /// resource that is part of the program.
    #[must_use]
    pub fn storage_path(&self) -> Option<String> {
        let path = format!("{}/{}", self.group, self.names.plural);
        let is_taken = TABLE.iter().any(|row| {
            row.matches_resource(&self.group, &self.names.plural)
                || row.storage_path().is_some_and(|own| is_same_place(own, &path))
        });
        (!is_taken).then_some(path)
    }

    /// Reports whether clients have been told that its resource is served.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.is("Established")
    }

    /// Reports whether its resource is about to go: nothing new may be created.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.is_deleted || self.is("Terminating")
    }

    /// The version in which objects are stored.
    #[must_use]
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|it| it.is_storage)
    }
}

/// Whether one path is the other or leads to it.
fn is_same_place(one: &str, other: &str) -> bool {
    one.split('/').zip(other.split('/')).all(|(one, other)| one == other)
}

impl Names {
    fn read(names: Option<&Value>) -> Self {
        let names = names.unwrap_or(&Value::Null);
        Self {
            plural: text(names, "plural").to_owned(),
            singular: text(names, "singular").to_owned(),
            short_names: texts(names, "shortNames"),
            kind: text(names, "kind").to_owned(),
            list_kind: text(names, "listKind").to_owned(),
            categories: texts(names, "categories"),
        }
    }
}

impl Version {
    fn read(version: &Value) -> Self {
        let schema = version.get("schema").and_then(|it| it.get("openAPIV3Schema"));
        let subresources = version.get("subresources").unwrap_or(&Value::Null);
        let deprecation = match version.get("deprecationWarning").and_then(Value::as_str) {
            _ if !flag(version, "deprecated") => Deprecation::None,
            Some(warning) => Deprecation::Warning(warning.to_owned()),
            None => Deprecation::Usual,
        };
        let paths = items(version, "selectableFields").iter();
        Self {
            name: text(version, "name").to_owned(),
            is_served: flag(version, "served"),
            is_storage: flag(version, "storage"),
            deprecation,
            schema: schema.filter(|it| it.is_object()).map(|it| Arc::new(it.clone())),
            has_status: subresources.get("status").is_some_and(|it| !it.is_null()),
            columns: items(version, "additionalPrinterColumns")
                .iter()
                .map(PrinterColumn::read)
                .collect(),
            selectable_fields: paths.map(|it| text(it, "jsonPath").to_owned()).collect(),
        }
    }
}

impl PrinterColumn {
    fn read(column: &Value) -> Self {
        let owned = |key| text(column, key).to_owned();
        let priority = column.get("priority").and_then(Value::as_i64).unwrap_or_default();
        Self {
            name: owned("name"),
            r#type: owned("type"),
            format: owned("format"),
            description: owned("description"),
            priority: i32::try_from(priority).unwrap_or(i32::MAX),
            json_path: owned("jsonPath"),
        }
    }
}

impl Condition {
    fn read(condition: &Value) -> Self {
        let owned = |key| text(condition, key).to_owned();
        let status = match text(condition, "status") {
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
