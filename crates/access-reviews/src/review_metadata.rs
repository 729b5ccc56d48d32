//! The metadata of a review, which must be nearly empty.

use field_errors::{BadValue, FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::read_body::{MalformedBody, ObjectFields};
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;

/// The type of a metadata field.
#[derive(Clone, Copy)]
enum FieldType {
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
const FIELDS: &[(&str, FieldType)] = &[
    ("name", FieldType::Text),
    ("generateName", FieldType::Text),
    ("namespace", FieldType::Text),
    ("selfLink", FieldType::Text),
    ("uid", FieldType::Text),
    ("resourceVersion", FieldType::Text),
    ("generation", FieldType::Integer),
    ("creationTimestamp", FieldType::Time),
    ("deletionTimestamp", FieldType::Time),
    ("deletionGracePeriodSeconds", FieldType::OptionalInteger),
    ("labels", FieldType::Map),
    ("annotations", FieldType::Map),
    ("ownerReferences", FieldType::Items("[]v1.OwnerReference")),
    ("finalizers", FieldType::Texts),
];

/// The metadata of a body without its empty fields.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    fields: Map<String, Value>,
}

impl Metadata {
    pub(crate) fn read(body: &ObjectFields<'_>) -> Result<Self, MalformedBody> {
        let mut set_fields = Map::new();
        let Some(fields) =
            body.read_object("metadata", "ObjectMeta", "v1.ObjectMeta", "metadata")?
        else {
            return Ok(Self { fields: set_fields });
        };
        for (name, field_type) in FIELDS {
            if let Some(value) = fields.get(name)
                && !is_empty(&fields, name, value, *field_type)?
            {
                set_fields.insert((*name).to_owned(), value.clone());
            }
        }
        Ok(Self { fields: set_fields })
    }

    pub(crate) fn namespace(&self) -> &str {
        self.fields.get("namespace").and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets the namespace of the request. It is removed from a kind without namespaces; a different namespace is an error.
    pub(crate) fn set_namespace(
        &mut self,
        kind: ReviewKind,
        namespace: &str,
    ) -> Result<(), ReviewError> {
        if !kind.is_namespaced() {
            self.fields.shift_remove("namespace");
            return Ok(());
        }
        if namespace.is_empty() {
            return Err(ReviewError::NamespaceRequired);
        }
        match self.namespace() {
            "" => {
                self.fields.insert("namespace".to_owned(), namespace.into());
                Ok(())
            }
            own if own == namespace => Ok(()),
            _ => Err(ReviewError::NamespaceMismatch),
        }
    }

    /// The error, if a field is set that must be empty.
    pub(crate) fn validation_error(&self, kind: ReviewKind) -> Option<FieldError> {
        let is_meant = |name: &String| kind.is_namespaced() && name == "namespace";
        if self.fields.keys().all(is_meant) {
            return None;
        }
        let except = if kind.is_namespaced() { " except for namespace" } else { "" };
        Some(
            FieldPath::root("metadata")
                .invalid(BadValue::Json(self.to_ordered_json()), &format!("must be empty{except}")),
        )
    }

    /// The metadata in the response.
    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.fields)
    }

    fn to_ordered_json(&self) -> String {
        let ordered = FIELDS.iter().filter_map(|(name, _)| self.fields.get_key_value(*name));
        let ordered = ordered.map(|(name, value)| (name.clone(), value.clone()));
        Value::Object(ordered.collect()).to_string()
    }
}

/// Reports whether a present value is the zero value of its type.
fn is_empty(
    fields: &ObjectFields<'_>,
    name: &str,
    value: &Value,
    field_type: FieldType,
) -> Result<bool, MalformedBody> {
    let wrong = |value: &Value, go_type: &str| Err(fields.wrong_type_error(name, value, go_type));
    match (field_type, value) {
        (FieldType::Text, _) => fields.read_string(name).map(str::is_empty),
        (FieldType::Texts, _) => {
            fields.read_strings(name).map(|texts| texts.is_none_or(|all| all.is_empty()))
        }
        (FieldType::Integer, Value::Number(number)) if number.is_i64() => {
            Ok(number.as_i64() == Some(0))
        }
        (FieldType::OptionalInteger, Value::Number(number)) if number.is_i64() => Ok(false),
        (FieldType::Integer | FieldType::OptionalInteger, _) => wrong(value, "int64"),
        (FieldType::Time, Value::String(text)) => match text.parse::<jiff::Timestamp>() {
            Ok(_) => Ok(false),
            Err(_) => {
                let text = go_compat::quote(text);
                Err(MalformedBody::new(format!("parsing time {text}: not a time of RFC 3339")))
            }
        },
        (FieldType::Time, _) => wrong(value, "v1.Time"),
        (FieldType::Map, Value::Object(members)) => {
            let is_text = |value: &Value| value.is_string() || value.is_null();
            match members.values().find(|value| !is_text(value)) {
                Some(other) => wrong(other, "string"),
                None => Ok(members.is_empty()),
            }
        }
        (FieldType::Map, _) => wrong(value, "map[string]string"),
        (FieldType::Items(_), Value::Array(items)) => Ok(items.is_empty()),
        (FieldType::Items(go_type), _) => wrong(value, go_type),
    }
}
