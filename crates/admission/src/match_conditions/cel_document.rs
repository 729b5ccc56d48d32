//! Objects as CEL values.

use api_object::Tree;
use cel::{List, ListSource, Map, MapSource, Value};
use serde_json::Value as Json;

/// A JSON value in a form that CEL values can borrow from.
#[derive(Debug)]
pub(super) enum CelDocument<'a> {
    Scalar(&'a Json),
    List(CelDocumentList<'a>),
    Map(CelDocumentMap<'a>),
}

#[derive(Debug)]
pub(super) struct CelDocumentList<'a>(Vec<CelDocument<'a>>);

/// The members of an object. INVARIANT: sorted by key, so that a lookup is a binary search.
#[derive(Debug)]
pub(super) struct CelDocumentMap<'a>(Vec<(&'a str, CelDocument<'a>)>);

impl<'a> CelDocument<'a> {
    pub(super) fn from_json_object(tree: &'a Tree) -> Self {
        let members = tree.iter().map(|(key, value)| (key.as_str(), Self::from_json_value(value)));
        let mut members: Vec<_> = members.collect();
        members.sort_unstable_by_key(|(key, _)| *key);
        Self::Map(CelDocumentMap(members))
    }

    /// Converts a value. The decoder of the request bounds the nesting of values, and so the recursion.
    fn from_json_value(value: &'a Json) -> Self {
        match value {
            Json::Object(tree) => Self::from_json_object(tree),
            Json::Array(items) => {
                Self::List(CelDocumentList(items.iter().map(Self::from_json_value).collect()))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Self::Scalar(value),
        }
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Scalar(scalar) => json_scalar_to_cel_value(scalar),
            Self::List(items) => Value::List(List::Source(items)),
            Self::Map(members) => Value::Map(Map::Source(members)),
        }
    }
}

/// Converts a scalar. A number is an integer if it is written as one and fits into 64 bits; otherwise it is a
/// double.
fn json_scalar_to_cel_value(scalar: &Json) -> Value<'_> {
    match scalar {
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Int(integer),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::borrowed_string(text),
        Json::Null | Json::Array(_) | Json::Object(_) => Value::Null,
    }
}

impl ListSource for CelDocumentList<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        self.0.get(index).map(CelDocument::value)
    }
}

impl MapSource for CelDocumentMap<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &str) -> Option<Value<'_>> {
        let position = self.0.binary_search_by_key(&key, |(own, _)| own).ok()?;
        self.0.get(position).map(|(_, document)| document.value())
    }

    fn map_entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_> {
        Box::new(self.0.iter().map(|(key, document)| (*key, document.value())))
    }
}
