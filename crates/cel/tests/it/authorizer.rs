//! Expressions with authorization checks, and the results of Kubernetes.
//!
//! `testdata/README.md` describes the lines. Type, value, cost, error message and checks must be
//! those of Kubernetes. Unlike Kubernetes, this crate does not perform a check that exceeds the
//! cost limit.

use cel::{
    AuthorizationValue, Authorizer, AuthorizerCheck, AuthorizerCheckTarget, AuthorizerDecision,
    COST_LIMIT, Environment, EvalError, KnownDecisions, Map, ObjectType, OwnedMap,
    ResourceCheckTarget, ServiceAccount, Type, Value,
};
use serde_json::{Value as Json, json};

const LINES: &str = include_str!("../../testdata/authorizer.jsonl");

/// The variables of match conditions, with the fields that the expressions use.
fn declarations() -> Vec<(&'static str, Type)> {
    let object = |name: &str, fields| Type::Object(ObjectType::new(name, fields));
    let texts = |names: &[&'static str]| names.iter().map(|name| (*name, Type::String)).collect();
    let resource = texts(&["group", "version", "resource"]);
    let resource = object("kubernetes.GroupVersionResource", resource);
    let mut request: Vec<_> = texts(&["subResource", "namespace", "name"]);
    request.push(("resource", resource));
    let metadata = object("kubernetes.NamespaceMetadata", texts(&["name"]));
    vec![
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("namespaceObject", object("kubernetes.Namespace", vec![("metadata", metadata)])),
        ("request", object("kubernetes.AdmissionRequest", request)),
        ("authorizer", Type::Opaque(AuthorizationValue::AUTHORIZER)),
        ("authorizer.requestResource", Type::Opaque(AuthorizationValue::RESOURCE_CHECK)),
    ]
}

fn value(json: &Json) -> Value<'static> {
    match json {
        Json::String(text) => Value::owned_string(text.as_str()),
        Json::Object(members) => {
            let mut map = OwnedMap::new();
            for (key, member) in members {
                map.set(Value::owned_string(key.as_str()), value(member));
            }
            Value::Map(Map::from_owned_map(map))
        }
        _ => Value::Null,
    }
}

/// The request of all expressions: ana creates a scale of the deployment web in the namespace shop.
fn variables(decisions: &KnownDecisions) -> [Value<'static>; 6] {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
    });
    let request = json!({
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "subResource": "scale", "namespace": "shop", "name": "web",
    });
    let target = ResourceCheckTarget {
        group: "apps".into(),
        resource: "deployments".into(),
        subresource: "scale".into(),
        namespace: "shop".into(),
        name: "web".into(),
        ..ResourceCheckTarget::default()
    };
    let authorizer = Authorizer::new(decisions.clone());
    let check = authorizer.clone().resource_check_value(target);
    [value(&object), Value::Null, Value::Null, value(&request), authorizer.value(), check]
}

/// Decides a check by its verb.
fn decide(question: &AuthorizerCheck) -> AuthorizerDecision {
    let verb = &*question.verb;
    let error = verb.starts_with("err").then(|| format!("broken: {verb}").into());
    let (is_allowed, reason) = if verb.ends_with("deny") {
        (false, "denied it".into())
    } else if verb.ends_with("none") {
        (false, "".into())
    } else {
        (true, format!("allowed {verb}").into())
    };
    AuthorizerDecision { is_allowed, reason, error }
}

/// Renders a check in the form of the lines.
fn shown(question: &AuthorizerCheck) -> Json {
    let user = question.service_account.as_ref().map(|ServiceAccount { namespace, name }| {
        format!("system:serviceaccount:{namespace}:{name}")
    });
    let members = match &question.check_target {
        AuthorizerCheckTarget::Path(path) => vec![("path", &**path)],
        AuthorizerCheckTarget::Resource(target) => vec![
            ("group", &*target.group),
            ("resource", &*target.resource),
            ("subresource", &*target.subresource),
            ("namespace", &*target.namespace),
            ("name", &*target.name),
        ],
    };
    let members = [("user", user.as_deref().unwrap_or_default()), ("verb", &*question.verb)]
        .into_iter()
        .chain(members)
        .filter(|(_, text)| !text.is_empty());
    Json::Object(members.map(|(name, text)| (name.to_owned(), text.into())).collect())
}

fn encoded(value: &Value<'_>) -> Json {
    match value {
        Value::Bool(truth) => json!({"bool": truth}),
        Value::Int(number) => json!({"int": number.to_string()}),
        Value::String(text) => json!({"string": text.as_str()}),
        Value::Type(name) => json!({"type": name.0}),
        Value::Optional(inner) => {
            json!({"optional": inner.iter().map(|inner| encoded(inner)).collect::<Vec<_>>()})
        }
        Value::List(list) => {
            json!({"list": list.iter().map(|item| encoded(&item)).collect::<Vec<_>>()})
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| json!([encoded(&key), encoded(&value)]));
            json!({"map": entries.collect::<Vec<_>>()})
        }
        other => json!({"object": other.type_name()}),
    }
}

/// Renders the result in the form of a line, without the fields about new expressions.
fn answer(expr: &str, environment: &Environment) -> Json {
    let checked = match environment.check(expr) {
        Ok(checked) => checked,
        Err(issues) => {
            return json!({"expr": expr, "error": format!("compilation failed: {issues}")});
        }
    };
    let mut line = json!({"expr": expr, "type": checked.output_type().runtime_type_name()});
    let program = checked.into_program().unwrap();
    let (mut decisions, mut asked) = (KnownDecisions::default(), Vec::new());
    loop {
        let variables = variables(&decisions);
        let evaluation = program.evaluate(&variables, COST_LIMIT);
        match evaluation.result {
            Err(EvalError::NeedsDecision(question)) => {
                asked.push(shown(&question));
                let decision = decide(&question);
                decisions.insert(*question, decision);
                continue;
            }
            Ok(value) => line["value"] = encoded(&value),
            Err(error) => {
                let error = format!("expression '{expr}' resulted in error: {error}");
                line["error"] = error.into();
            }
        }
        if evaluation.cost > 0 {
            line["cost"] = evaluation.cost.into();
        }
        if !asked.is_empty() {
            line["asked"] = asked.into();
        }
        return line;
    }
}

/// The checks of Kubernetes, each once. A third check is left out, because it exceeds the cost
/// limit.
fn asked_once(mut line: Json) -> Json {
    let mut once: Vec<Json> = Vec::new();
    for question in line["asked"].as_array().into_iter().flatten() {
        if !once.contains(question) {
            once.push(question.clone());
        }
    }
    once.truncate(2);
    if !once.is_empty() {
        line["asked"] = once.into();
    }
    line
}

fn lines() -> Vec<Json> {
    LINES.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn results_match_kubernetes() {
    let environment = Environment::for_stored_expressions(declarations());
    for mut want in lines() {
        want.as_object_mut().unwrap().remove("new");
        let want = asked_once(want);
        assert_eq!(answer(want["expr"].as_str().unwrap(), &environment), want);
    }
}

#[test]
fn new_expressions_have_the_functions_of_kubernetes() {
    let environment = Environment::for_new_expressions(declarations());
    let mut n_refused = 0;
    for line in lines() {
        let expr = line["expr"].as_str().unwrap();
        let found = environment.check(expr).err().map(|it| format!("compilation failed: {it}"));
        let is_refused = line.get("type").is_none();
        let want = line.get("new").or(line.get("error").filter(|_| is_refused));
        assert_eq!(found.as_deref(), want.and_then(Json::as_str), "{expr}");
        n_refused += usize::from(line.get("new").is_some());
    }
    assert!(n_refused > 0, "no line tells the environments apart");
}
