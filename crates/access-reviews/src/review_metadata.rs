//! The metadata of a review, which must be nearly empty.

use field_errors::{BadValue, FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::read_body::{MalformedBodyError, ObjectFields};
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;

/// The type of a metadata field.
#[derive(Clone, Copy)]
enum MetadataFieldType {
    Text,
    Time,
    Integer,
    /// An integer whose absence differs from 0.
    OptionalInteger,
    Texts,
    Map,
    /// A list whose items are not read; messages name this Go type.
    Items(&'static str),
}

/// The known fields, in the order of Kubernetes' messages. Managed fields are ignored, because servers add them to every
/// object.
const FIELDS: &[(&str, MetadataFieldType)] = &[
    ("name", MetadataFieldType::Text),
    ("generateName", MetadataFieldType::Text),
    ("namespace", MetadataFieldType::Text),
    ("selfLink", MetadataFieldType::Text),
    ("uid", MetadataFieldType::Text),
    ("resourceVersion", MetadataFieldType::Text),
    ("generation", MetadataFieldType::Integer),
    ("creationTimestamp", MetadataFieldType::Time),
    ("deletionTimestamp", MetadataFieldType::Time),
    ("deletionGracePeriodSeconds", MetadataFieldType::OptionalInteger),
    ("labels", MetadataFieldType::Map),
    ("annotations", MetadataFieldType::Map),
    ("ownerReferences", MetadataFieldType::Items("[]v1.OwnerReference")),
    ("finalizers", MetadataFieldType::Texts),
];

/// The fields that only a server sets. Kubernetes drops them from every object that a client creates.
pub(crate) const SET_BY_SERVER: [&str; 5] =
    ["selfLink", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// The metadata of a body without its empty fields and those that only a server sets.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    metadata_fields: Map<String, Value>,
}

impl Metadata {
    pub(crate) fn read(body: &ObjectFields<'_>) -> Result<Self, MalformedBodyError> {
        let mut set_fields = Map::new();
        let Some(fields) =
            body.read_object("metadata", "ObjectMeta", "v1.ObjectMeta", "metadata")?
        else {
            return Ok(Self { metadata_fields: set_fields });
        };
        for (name, field_type) in FIELDS {
            if let Some(value) = fields.get(name)
                && !is_empty(&fields, name, value, *field_type)?
                && !SET_BY_SERVER.contains(name)
            {
                set_fields.insert((*name).to_owned(), value.clone());
            }
        }
        Ok(Self { metadata_fields: set_fields })
    }

    pub(crate) fn namespace(&self) -> &str {
        self.metadata_fields.get("namespace").and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets the namespace of a namespaced review to that of the request. If the body already has another namespace,
    /// that is an error. Removes the namespace of a cluster-scoped review.
    pub(crate) fn set_namespace(
        &mut self,
        kind: ReviewKind,
        namespace: &str,
    ) -> Result<(), ReviewError> {
        if !kind.is_namespaced() {
            self.metadata_fields.shift_remove("namespace");
            return Ok(());
        }
        if namespace.is_empty() {
            return Err(ReviewError::NamespaceRequired);
        }
        match self.namespace() {
            "" => {
                self.metadata_fields.insert("namespace".to_owned(), namespace.into());
                Ok(())
            }
            own if own == namespace => Ok(()),
            _ => Err(ReviewError::NamespaceMismatch),
        }
    }

    /// The error, if a field is set that must be empty.
    pub(crate) fn validation_error(&self, kind: ReviewKind) -> Option<FieldError> {
        let is_meant = |name: &String| kind.is_namespaced() && name == "namespace";
        if self.metadata_fields.keys().all(is_meant) {
            return None;
        }
        let except = if kind.is_namespaced() { " except for namespace" } else { "" };
        Some(
            FieldPath::root("metadata")
                .invalid(BadValue::Json(self.to_ordered_json()), &format!("must be empty{except}")),
        )
    }

    /// The metadata in the response.
    pub(crate) fn into_json_value(self) -> Value {
        Value::Object(self.metadata_fields)
    }

    fn to_ordered_json(&self) -> String {
        let ordered =
            FIELDS.iter().filter_map(|(name, _)| self.metadata_fields.get_key_value(*name));
        let ordered = ordered.map(|(name, value)| (name.clone(), value.clone()));
        Value::Object(ordered.collect()).to_string()
    }
}

/// Reports whether a present value is the zero value of its type.
fn is_empty(
    fields: &ObjectFields<'_>,
    name: &str,
    value: &Value,
    field_type: MetadataFieldType,
) -> Result<bool, MalformedBodyError> {
    let wrong = |value: &Value, go_type: &str| Err(fields.wrong_type_error(name, value, go_type));
    match (field_type, value) {
        (MetadataFieldType::Text, _) => fields.read_string(name).map(str::is_empty),
        (MetadataFieldType::Texts, _) => {
            fields.read_strings(name).map(|texts| texts.is_none_or(|all| all.is_empty()))
        }
        (MetadataFieldType::Integer, Value::Number(number)) if number.is_i64() => {
            Ok(number.as_i64() == Some(0))
        }
        (MetadataFieldType::OptionalInteger, Value::Number(number)) if number.is_i64() => Ok(false),
        (MetadataFieldType::Integer | MetadataFieldType::OptionalInteger, _) => {
            wrong(value, "int64")
        }
        (MetadataFieldType::Time, Value::String(text)) => match text.parse::<jiff::Timestamp>() {
            Ok(_) => Ok(false),
            Err(_) => {
                let text = go_compat::quote(text);
                Err(MalformedBodyError::new(format!("parsing time {text}: not a time of RFC 3339")))
            }
        },
        (MetadataFieldType::Time, _) => wrong(value, "v1.Time"),
        (MetadataFieldType::Map, Value::Object(members)) => {
            let is_text = |value: &Value| value.is_string() || value.is_null();
            match members.values().find(|value| !is_text(value)) {
                Some(other) => wrong(other, "string"),
                None => Ok(members.is_empty()),
            }
        }
        (MetadataFieldType::Map, _) => wrong(value, "map[string]string"),
        (MetadataFieldType::Items(_), Value::Array(items)) => Ok(items.is_empty()),
        (MetadataFieldType::Items(go_type), _) => wrong(value, go_type),
    }
}
