//! The metadata of a review, of which hardly anything may be said.

use api_object::Status;
use field_errors::{BadValue, FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::kind::Kind;
use crate::read::{Fields, Malformed};

/// What a field of the metadata holds.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Time,
    Integer,
    /// An integer whose absence means something else than 0.
    OptionalInteger,
    Texts,
    Map,
    /// A list whose items are not looked at; messages give it this Go type.
    Items(&'static str),
}

/// The fields that are known, in the order in which Kubernetes shows them. Managed fields are not
/// among them: servers add them to every object, so they say nothing about the client.
const FIELDS: &[(&str, Holds)] = &[
    ("name", Holds::Text),
    ("generateName", Holds::Text),
    ("namespace", Holds::Text),
    ("selfLink", Holds::Text),
    ("uid", Holds::Text),
    ("resourceVersion", Holds::Text),
    ("generation", Holds::Integer),
    ("creationTimestamp", Holds::Time),
    ("deletionTimestamp", Holds::Time),
    ("deletionGracePeriodSeconds", Holds::OptionalInteger),
    ("labels", Holds::Map),
    ("annotations", Holds::Map),
    ("ownerReferences", Holds::Items("[]v1.OwnerReference")),
    ("finalizers", Holds::Texts),
];

/// What the metadata of a body says, without what is empty.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    said: Map<String, Value>,
}

impl Metadata {
    pub(crate) fn read(body: &Fields<'_>) -> Result<Self, Malformed> {
        let mut said = Map::new();
        let Some(fields) = body.fields("metadata", "ObjectMeta", "v1.ObjectMeta", "metadata")?
        else {
            return Ok(Self { said });
        };
        for (name, holds) in FIELDS {
            if let Some(value) = fields.get(name)
                && !is_empty(&fields, name, value, *holds)?
            {
                said.insert((*name).to_owned(), value.clone());
            }
        }
        Ok(Self { said })
    }

    pub(crate) fn namespace(&self) -> &str {
        self.said.get("namespace").and_then(Value::as_str).unwrap_or_default()
    }

    /// Puts the object where the request puts it. A namespace on an object that has none is
    /// forgotten; another than that of the request is refused.
    pub(crate) fn place(&mut self, kind: Kind, namespace: &str) -> Result<(), Status> {
        if !kind.is_namespaced() {
            self.said.shift_remove("namespace");
            return Ok(());
        }
        if namespace.is_empty() {
            return Err(Status::bad_request("namespace is required on this type: "));
        }
        match self.namespace() {
            "" => {
                self.said.insert("namespace".to_owned(), namespace.into());
                Ok(())
            }
            own if own == namespace => Ok(()),
            _ => Err(wrong_namespace()),
        }
    }

    /// The fault, if something is said that has no meaning for a review.
    pub(crate) fn fault(&self, kind: Kind) -> Option<FieldError> {
        let is_meant = |name: &String| kind.is_namespaced() && name == "namespace";
        if self.said.keys().all(is_meant) {
            return None;
        }
        let except = if kind.is_namespaced() { " except for namespace" } else { "" };
        Some(
            FieldPath::root("metadata")
                .invalid(BadValue::Json(self.shown()), &format!("must be empty{except}")),
        )
    }

    /// As the answer shows it.
    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.said)
    }

    fn shown(&self) -> String {
        let ordered = FIELDS.iter().filter_map(|(name, _)| self.said.get_key_value(*name));
        let ordered = ordered.map(|(name, value)| (name.clone(), value.clone()));
        Value::Object(ordered.collect()).to_string()
    }
}

/// The object says another namespace than the request.
pub(crate) fn wrong_namespace() -> Status {
    Status::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    )
}

/// Reports whether a value that is there says nothing.
fn is_empty(
    fields: &Fields<'_>,
    name: &str,
    value: &Value,
    holds: Holds,
) -> Result<bool, Malformed> {
    let wrong = |value: &Value, go_type: &str| Err(fields.wrong_type(name, value, go_type));
    match (holds, value) {
        (Holds::Text, _) => fields.text(name).map(str::is_empty),
        (Holds::Texts, _) => fields.texts(name).map(|texts| texts.is_none_or(|all| all.is_empty())),
        (Holds::Integer, Value::Number(number)) if number.is_i64() => {
            Ok(number.as_i64() == Some(0))
        }
        (Holds::OptionalInteger, Value::Number(number)) if number.is_i64() => Ok(false),
        (Holds::Integer | Holds::OptionalInteger, _) => wrong(value, "int64"),
        (Holds::Time, Value::String(text)) => match text.parse::<jiff::Timestamp>() {
            Ok(_) => Ok(false),
            Err(_) => {
                let text = go_compat::quote(text);
                Err(Malformed::new(format!("parsing time {text}: not a time of RFC 3339")))
            }
        },
        (Holds::Time, _) => wrong(value, "v1.Time"),
        (Holds::Map, Value::Object(members)) => {
            let is_text = |value: &Value| value.is_string() || value.is_null();
            match members.values().find(|value| !is_text(value)) {
                Some(other) => wrong(other, "string"),
                None => Ok(members.is_empty()),
            }
        }
        (Holds::Map, _) => wrong(value, "map[string]string"),
        (Holds::Items(_), Value::Array(items)) => Ok(items.is_empty()),
        (Holds::Items(go_type), _) => wrong(value, go_type),
    }
}
