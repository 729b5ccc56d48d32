//! The field tables of kinds.
//!
//! The tables are text that the program contains and parses when it needs them first. `kubernetes.txt` is derived from
//! `conformance/kinds/types.jsonl`, which describes every type of Kubernetes; a test compares them. `portcullis.txt` adds
//! the kinds and fields that Kubernetes does not have.
//!
//! A line without indentation begins a type, and lists the kinds that have this type after `=`. An indented line is a
//! field: its number (or `-`), its JSON name, its type. `[]` marks a list, `{}` a map, `^` a message that is inlined in
//! JSON, and `!` a field whose zero is a value; in other fields a zero means that the field is unset.

#[cfg(test)]
mod derive_table_test;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::field_types::{Field, FieldType, Message, MessageId, SchemaAlternative, ValueType};

const TEXTS: [&str; 2] =
    [include_str!("field_tables/kubernetes.txt"), include_str!("field_tables/portcullis.txt")];

static TABLES: LazyLock<FieldTables> =
    LazyLock::new(|| FieldTables::parse(&TEXTS).unwrap_or_default());

/// The kinds whose JSON bodies have the types and the fields of the table. Bodies of other kinds keep unknown fields, and
/// the rules of the kind check types.
const CONFORMED_TO_TABLE: &[(&str, &[&str])] = &[
    ("", &["ConfigMap", "Endpoints", "Event", "Namespace", "Secret", "Service", "ServiceAccount"]),
    (
        "admissionregistration.k8s.io",
        &[
            "ExternalAdmissionHookConfiguration",
            "InitializerConfiguration",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("autoscaling", &["Scale"]),
    ("authentication.k8s.io", &["SelfSubjectReview", "TokenRequest", "TokenReview"]),
    (
        "authorization.k8s.io",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    ("coordination.k8s.io", &["Lease"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
];

/// The tables, parsed from their texts.
#[derive(Debug, Default)]
struct FieldTables {
    messages: Vec<Message>,
    /// The messages by the name of their type, such as `core/v1.Pod`.
    message_ids_by_type: HashMap<&'static str, MessageId>,
    /// The messages by group, version and kind.
    message_ids_by_kind: HashMap<(&'static str, &'static str, &'static str), MessageId>,
}

/// A line of the text is no type and no field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a line of a field table")]
struct TableSyntaxError(&'static str);

/// The field table of a kind, if it has one.
pub(crate) fn fields_of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Message> {
    TABLES.message_ids_by_kind.get(&(group, version, kind)).map(|id| id.message())
}

/// The field tables of all kinds.
#[cfg(test)]
pub(crate) fn messages_of_all_kinds() -> impl Iterator<Item = &'static Message> {
    TABLES.message_ids_by_kind.values().map(|id| id.message())
}

/// The field table that JSON bodies of a kind must follow, if there is one.
pub(crate) fn json_fields_of_kind(
    group: &str,
    version: &str,
    kind: &str,
) -> Option<&'static Message> {
    let is_conformed = CONFORMED_TO_TABLE
        .iter()
        .any(|(conformed_group, kinds)| *conformed_group == group && kinds.contains(&kind));
    if is_conformed { fields_of_kind(group, version, kind) } else { None }
}

/// The table of the options of a delete.
pub(crate) fn delete_options_fields() -> &'static Message {
    message_of_type("meta/v1.DeleteOptions").message()
}

/// The table of the metadata of all objects.
pub(crate) fn object_meta_fields() -> MessageId {
    message_of_type("meta/v1.ObjectMeta")
}

/// The table of the schema of a custom resource.
pub(crate) fn json_schema_fields() -> MessageId {
    message_of_type("apiextensions/v1.JSONSchemaProps")
}

/// The message at this place; one without fields if there is none.
pub(crate) fn message(id: MessageId) -> &'static Message {
    static NO_FIELDS: Message = Message { fields: Vec::new() };
    TABLES.messages.get(usize::from(id.0)).unwrap_or(&NO_FIELDS)
}

fn message_of_type(name: &str) -> MessageId {
    TABLES.message_ids_by_type.get(name).copied().unwrap_or(MessageId(u16::MAX))
}

/// Reports whether all fields of a built-in kind are known: then its bodies may be protobuf.
#[must_use]
pub fn has_field_table(group: &str, version: &str, kind: &str) -> bool {
    fields_of_kind(group, version, kind).is_some()
}

impl FieldTables {
    fn parse(texts: &[&'static str]) -> Result<Self, TableSyntaxError> {
        let lines =
            || texts.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with('#'));
        let mut tables = Self::default();
        for line in lines().filter(|line| !line.starts_with(' ')) {
            tables.add_message_type(line)?;
        }
        let mut current = MessageId(u16::MAX);
        for line in lines() {
            match line.strip_prefix(' ') {
                Some(line) => {
                    let field = tables.parse_field(line).ok_or(TableSyntaxError(line))?;
                    let message = tables.messages.get_mut(usize::from(current.0));
                    message.ok_or(TableSyntaxError(line))?.fields.push(field);
                }
                None => {
                    let name = line.split(' ').next().unwrap_or_default();
                    current = tables
                        .message_ids_by_type
                        .get(name)
                        .copied()
                        .ok_or(TableSyntaxError(line))?;
                }
            }
        }
        Ok(tables)
    }

    fn add_message_type(&mut self, line: &'static str) -> Result<(), TableSyntaxError> {
        let (name, kinds) = line.split_once(" = ").unwrap_or((line, ""));
        let next = u16::try_from(self.messages.len()).map_err(|_| TableSyntaxError(line))?;
        let id = *self.message_ids_by_type.entry(name).or_insert(MessageId(next));
        if id.0 == next {
            self.messages.push(Message::default());
        }
        for kind in kinds.split_terminator(' ') {
            let (group_version, kind) = kind.rsplit_once('/').ok_or(TableSyntaxError(line))?;
            let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
            self.message_ids_by_kind.insert((group, version, kind), id);
        }
        Ok(())
    }

    fn parse_field(&self, line: &'static str) -> Option<Field> {
        let mut words = line.split(' ');
        let (number, name, type_name) = (words.next()?, words.next()?, words.next()?);
        let number = if number == "-" { 0 } else { number.parse().ok()? };
        let (type_name, keeps_zero_value) = match type_name.strip_suffix('!') {
            Some(type_name) => (type_name, true),
            None => (type_name, false),
        };
        let field_type = if let Some(inlined) = type_name.strip_prefix('^') {
            FieldType::Inline(*self.message_ids_by_type.get(inlined)?)
        } else if let Some(item) = type_name.strip_prefix("[]") {
            FieldType::List(self.parse_value_type(item)?)
        } else if let Some(value) = type_name.strip_prefix("{}") {
            FieldType::Map(self.parse_value_type(value)?)
        } else {
            FieldType::One(self.parse_value_type(type_name)?)
        };
        Some(Field { protobuf_number: number, name, field_type, keeps_zero_value })
    }

    fn parse_value_type(&self, name: &str) -> Option<ValueType> {
        Some(match name {
            "string" => ValueType::Text,
            "bytes" => ValueType::Bytes,
            "bool" => ValueType::Bool,
            "int32" => ValueType::Int32,
            "int64" => ValueType::Int64,
            "double" => ValueType::Double,
            "time" => ValueType::Time,
            "microtime" => ValueType::MicroTime,
            "quantity" => ValueType::Quantity,
            "json" => ValueType::Json,
            "int-or-string" => ValueType::IntOrString,
            "texts" => ValueType::WrappedTexts,
            "schema-or-bool" => ValueType::SchemaOr(SchemaAlternative::Bool),
            "schema-or-list" => ValueType::SchemaOr(SchemaAlternative::Schemas),
            "schema-or-texts" => ValueType::SchemaOr(SchemaAlternative::Texts),
            _ => ValueType::Object(*self.message_ids_by_type.get(name)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMISSION: &str = "admissionregistration.k8s.io";

    /// The program uses empty tables if the text has a fault, so this test must find it.
    #[test]
    fn the_texts_are_parsed() {
        let tables = FieldTables::parse(&TEXTS).unwrap();
        assert!(
            tables.message_ids_by_kind.len() > 70,
            "{} kinds",
            tables.message_ids_by_kind.len()
        );
        for text in ["core/v1.A\n 1 a core/v1.B", "core/v1.A\n x a string", " 1 a string"] {
            assert!(FieldTables::parse(&[text]).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_and_names_are_unique() {
        let tables = FieldTables::parse(&TEXTS).unwrap();
        for (name, id) in &tables.message_ids_by_type {
            let fields = &tables.messages[usize::from(id.0)].fields;
            for (idx, field) in fields.iter().enumerate() {
                let others = &fields[idx + 1..];
                let is_twice = |other: &Field| {
                    other.protobuf_number == field.protobuf_number && field.protobuf_number > 0
                };
                assert!(
                    !others.iter().any(is_twice),
                    "{name}: {} stands twice",
                    field.protobuf_number
                );
                assert!(
                    others.iter().all(|other| other.name != field.name),
                    "{name} {}",
                    field.name
                );
            }
        }
        for (kind, id) in &tables.message_ids_by_kind {
            assert!(id.message().field_by_name("metadata").is_some(), "{kind:?}");
        }
    }

    #[test]
    fn kinds_are_found_by_group_version_and_kind() {
        for (group, version, kind, has_table) in [
            ("", "v1", "ConfigMap", true),
            ("", "v2", "ConfigMap", false),
            ("x", "v1", "ConfigMap", false),
            ("", "v1", "Pod", true),
            ("", "v1", "PodList", false),
            ("apps", "v1", "Deployment", true),
            ("autoscaling", "v1", "Scale", true),
            ("policy", "v1", "Eviction", true),
            ("policy", "v1beta1", "Eviction", true),
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", true),
            (ADMISSION, "v1alpha1", "InitializerConfiguration", true),
            (ADMISSION, "v1", "InitializerConfiguration", false),
            (ADMISSION, "v1alpha1", "ValidatingWebhookConfiguration", false),
        ] {
            assert_eq!(
                has_field_table(group, version, kind),
                has_table,
                "{group} {version} {kind}"
            );
        }
        for (group, kinds) in CONFORMED_TO_TABLE {
            for kind in *kinds {
                let found = ["v1", "v1alpha1"].map(|it| json_fields_of_kind(group, it, kind));
                assert!(found.iter().any(Option::is_some), "{kind}");
            }
        }
        assert!(json_fields_of_kind("", "v1", "Pod").is_none());
        assert!(!delete_options_fields().fields.is_empty());
        assert!(!object_meta_fields().message().fields.is_empty());
        assert!(!json_schema_fields().message().fields.is_empty());
    }

    #[test]
    fn fields_of_inlined_messages_belong_to_the_parent() {
        let probe = message_of_type("core/v1.Probe").message();
        assert!(probe.field_by_name("exec").is_some_and(|field| field.protobuf_number == 1));
        assert!(probe.field_by_name("handler").is_none());
    }
}
