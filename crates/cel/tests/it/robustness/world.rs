//! What random expressions are about: a request, much as match conditions see it.
//!
//! The fuzz targets include this file as well.

use std::collections::BTreeMap;

use cel::{Environment, List, Map, MapSource, ObjectType, Record, Type, Value};

/// The value of the variable `request`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: Extra,
    pub(crate) attributes: Option<Attributes>,
}

/// A map of the host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extra(pub(crate) BTreeMap<String, Vec<String>>);

/// A record inside of the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) name: String,
}

/// An environment with the one variable `request`.
pub(crate) fn environment() -> Environment {
    let texts = || Type::list(Type::String);
    let attributes = ObjectType::new(
        "kubernetes.ResourceAttributes",
        vec![("verb", Type::String), ("name", Type::String)],
    );
    let request = ObjectType::new(
        "kubernetes.SubjectAccessReviewSpec",
        vec![
            ("user", Type::String),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
            ("resourceAttributes", Type::Object(attributes)),
        ],
    );
    Environment::kubernetes(vec![("request", Type::Object(request))])
}

impl Request {
    /// A request with something in every place.
    pub(crate) fn sample() -> Self {
        let texts = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        Self {
            user: "alice".to_owned(),
            groups: texts(&["dev", "", "système"]),
            extra: Extra(BTreeMap::from([("a".to_owned(), texts(&["x", "y"]))])),
            attributes: Some(Attributes { verb: "get".to_owned(), name: "web".to_owned() }),
        }
    }

    /// The variables of an evaluation.
    pub(crate) fn variables(&self) -> [Value<'_>; 1] {
        [Value::Map(Map::Record(self))]
    }
}

impl Record for Request {
    fn field_names(&self) -> &'static [&'static str] {
        &["user", "groups", "extra", "resourceAttributes"]
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            0 => Some(Value::string(&self.user)),
            1 => Some(Value::List(List::Strings(&self.groups))),
            2 => Some(Value::Map(Map::Source(&self.extra))),
            3 => self.attributes.as_ref().map(|attributes| Value::Map(Map::Record(attributes))),
            _ => None,
        }
    }
}

impl Record for Attributes {
    fn field_names(&self) -> &'static [&'static str] {
        &["verb", "name"]
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            0 => Some(Value::string(&self.verb)),
            1 => Some(Value::string(&self.name)),
            _ => None,
        }
    }
}

impl MapSource for Extra {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.0.get(key).map(|texts| Value::List(List::Strings(texts)))
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_> {
        let entries = self.0.iter();
        Box::new(entries.map(|(key, texts)| (key.as_str(), Value::List(List::Strings(texts)))))
    }
}
