//! The variables of random expressions: a request like that of match conditions, and an authorizer.
//!
//! The fuzz targets include this file as well.

use std::collections::BTreeMap;

use cel::{
    AUTHORIZER_CHECK_COST, AuthorizationValue, Authorizer, AuthorizerCheck, AuthorizerDecision,
    Environment, EvalError, KnownDecisions, List, Map, MapSource, ObjectType, Program,
    RecordSource, ResourceCheckTarget, Type, Value,
};

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

/// A record inside the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) name: String,
}

/// An environment with the variables `request`, `authorizer` and `authorizer.requestResource`.
pub(crate) fn environment() -> Environment {
    let texts = || Type::list_type_of(Type::String);
    let attributes = ObjectType::new(
        "kubernetes.ResourceAttributes",
        vec![("verb", Type::String), ("name", Type::String)],
    );
    let request = ObjectType::new(
        "kubernetes.SubjectAccessReviewSpec",
        vec![
            ("user", Type::String),
            ("groups", texts()),
            ("extra", Type::map_type_of(Type::String, texts())),
            ("resourceAttributes", Type::Object(attributes)),
        ],
    );
    Environment::for_stored_expressions(vec![
        ("request", Type::Object(request)),
        ("authorizer", Type::Opaque(AuthorizationValue::AUTHORIZER)),
        ("authorizer.requestResource", Type::Opaque(AuthorizationValue::RESOURCE_CHECK)),
    ])
}

/// Decides a check. The decision depends on the check only.
pub(crate) fn decide(question: &AuthorizerCheck) -> AuthorizerDecision {
    let text = format!("{question:?}");
    let sum: usize = text.bytes().map(usize::from).sum();
    let error = sum.is_multiple_of(3).then(|| "down".into());
    AuthorizerDecision {
        is_allowed: sum.is_multiple_of(2) && error.is_none(),
        reason: text.into(),
        error,
    }
}

/// Evaluates and adds missing decisions until none is missing. Returns also the number of added
/// decisions.
pub(crate) fn answer_all(
    program: &Program,
    request: &Request,
    decisions: &mut KnownDecisions,
    cost_limit: u64,
) -> usize {
    let mut n_answers = 0;
    loop {
        let variables = request.variables(decisions);
        let outcome = program.evaluate(&variables, cost_limit).result;
        let Err(EvalError::NeedsDecision(question)) = outcome else { return n_answers };
        n_answers += 1;
        assert!(n_answers as u64 * AUTHORIZER_CHECK_COST <= cost_limit, "too many questions");
        let decision = decide(&question);
        decisions.insert(*question, decision);
    }
}

impl Request {
    /// A request with a value for every field.
    pub(crate) fn sample() -> Self {
        let texts = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        Self {
            user: "alice".to_owned(),
            groups: texts(&["dev", "", "système"]),
            extra: Extra(BTreeMap::from([("a".to_owned(), texts(&["x", "y"]))])),
            attributes: Some(Attributes { verb: "get".to_owned(), name: "web".to_owned() }),
        }
    }

    /// The variables of an evaluation that knows these decisions.
    pub(crate) fn variables(&self, decisions: &KnownDecisions) -> [Value<'_>; 3] {
        let authorizer = Authorizer::new(decisions.clone());
        let resource =
            ResourceCheckTarget { resource: "pods".into(), ..ResourceCheckTarget::default() };
        let check = authorizer.clone().resource_check_value(resource);
        [Value::Map(Map::Record(self)), authorizer.value(), check]
    }
}

impl RecordSource for Request {
    fn field_names(&self) -> &'static [&'static str] {
        &["user", "groups", "extra", "resourceAttributes"]
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            0 => Some(Value::borrowed_string(&self.user)),
            1 => Some(Value::List(List::Strings(&self.groups))),
            2 => Some(Value::Map(Map::Source(&self.extra))),
            3 => self.attributes.as_ref().map(|attributes| Value::Map(Map::Record(attributes))),
            _ => None,
        }
    }
}

impl RecordSource for Attributes {
    fn field_names(&self) -> &'static [&'static str] {
        &["verb", "name"]
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index {
            0 => Some(Value::borrowed_string(&self.verb)),
            1 => Some(Value::borrowed_string(&self.name)),
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

    fn map_entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_> {
        let entries = self.0.iter();
        Box::new(entries.map(|(key, texts)| (key.as_str(), Value::List(List::Strings(texts)))))
    }
}
