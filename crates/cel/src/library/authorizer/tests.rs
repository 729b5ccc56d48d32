//! Tests of single functions. The integration tests evaluate expressions with them.

use super::*;
use crate::authorizer_check::KnownDecisions;

fn functions() -> FunctionRegistry {
    let mut functions = FunctionRegistry::default();
    declare_functions(&mut functions);
    functions
}

/// Calls the overload of a function that accepts the receiver.
fn call<'a>(functions: &FunctionRegistry, name: &str, arguments: &[Value<'a>]) -> EvalResult<'a> {
    let receiver = arguments[0].type_name();
    let overloads = &functions.get(name).unwrap().overloads;
    let overload =
        overloads.iter().find(|overload| overload.param_types[0].to_string() == receiver);
    (overload.unwrap().implementation)(arguments)
}

fn authorizer() -> Value<'static> {
    Authorizer::default().value()
}

#[test]
fn call_costs_match_kubernetes() {
    let functions = functions();
    for (name, text, want) in [
        ("group", "apps", 1),
        ("check", "get", 350_000),
        ("fieldSelector", "", 10),
        ("fieldSelector", "abcde", 161),
        ("labelSelector", "abcdefghijklmnopq", 462),
    ] {
        let arguments = [Value::borrowed_string("no authorizer"), Value::borrowed_string(text)];
        for overload in &functions.get(name).unwrap().overloads {
            assert!(overload.is_receiver_style);
            assert_eq!(overload.cost_formula.cost_of_call(&arguments, None), want, "{name} {text}");
        }
    }
}

#[test]
fn functions_refuse_receivers_of_other_types() {
    let refusal = EvalError::no_such_overload();
    for (name, function) in functions().iter() {
        for overload in &function.overloads {
            let arguments = vec![Value::Null; overload.param_types.len()];
            let outcome = (overload.implementation)(&arguments);
            assert_eq!(outcome.unwrap_err(), refusal, "{name} of null");
            // A receiver of another type of this library.
            let other = match overload.param_types[0] {
                AUTHORIZER => AuthorizationValue::Decision(AuthorizerDecision::default()).into(),
                _ => authorizer(),
            };
            let mut arguments = vec![Value::borrowed_string("x"); overload.param_types.len()];
            arguments[0] = other;
            let outcome = (overload.implementation)(&arguments);
            assert_eq!(outcome.unwrap_err(), refusal, "{name} of another");
        }
    }
}

#[test]
fn blank_paths_and_resources_are_refused() {
    let functions = functions();
    let group = call(&functions, "group", &[authorizer(), Value::borrowed_string("")]).unwrap();
    for blank in ["", " ", "\t\n", "\u{a0}\u{2003}"] {
        let blank = Value::borrowed_string(blank);
        let path = call(&functions, "path", &[authorizer(), blank.clone()]);
        assert_eq!(path.unwrap_err().to_string(), "path must not be empty");
        let resource = call(&functions, "resource", &[group.clone(), blank]);
        assert_eq!(resource.unwrap_err().to_string(), "resource must not be empty");
    }
    assert!(call(&functions, "path", &[authorizer(), Value::borrowed_string(" x")]).is_ok());
}

#[test]
fn service_account_name_is_validated_before_namespace() {
    let functions = functions();
    let (label, long) = ("a".repeat(63), "a".repeat(64));
    for (namespace, name, want) in [
        ("default", "x", None),
        ("default", "x.y", None),
        (&label, &long, None),
        (&long, "x", Some("Invalid service account namespace")),
        ("a.b", "x", Some("Invalid service account namespace")),
        ("", "x", Some("Invalid service account namespace")),
        ("default", "", Some("Invalid service account name")),
        ("default", "X", Some("Invalid service account name")),
        ("A", "X", Some("Invalid service account name")),
    ] {
        let arguments =
            [authorizer(), Value::borrowed_string(namespace), Value::borrowed_string(name)];
        let outcome = call(&functions, "serviceAccount", &arguments);
        let found = outcome.err().map(|error| error.to_string());
        assert_eq!(found.as_deref(), want, "{namespace} {name}");
    }
}

#[test]
fn an_unknown_check_needs_a_decision() {
    let functions = functions();
    let ask = |decisions: &KnownDecisions| {
        let check = Authorizer::new(decisions.clone()).resource_check_value(ResourceCheckTarget {
            resource: "pods".into(),
            ..ResourceCheckTarget::default()
        });
        let check = call(&functions, "name", &[check, Value::borrowed_string("web")])?;
        call(&functions, "check", &[check, Value::borrowed_string("get")])
    };
    let mut decisions = KnownDecisions::default();
    let Err(EvalError::NeedsDecision(question)) = ask(&decisions) else {
        panic!("nobody answered")
    };
    let target = ResourceCheckTarget {
        resource: "pods".into(),
        name: "web".into(),
        ..ResourceCheckTarget::default()
    };
    let target = AuthorizerCheckTarget::Resource(Box::new(target));
    assert_eq!(
        *question,
        AuthorizerCheck { service_account: None, verb: "get".into(), check_target: target }
    );

    let error = Some("down".into());
    decisions.insert(
        *question,
        AuthorizerDecision { is_allowed: false, reason: "because".into(), error },
    );
    let decision = ask(&decisions).unwrap();
    for (name, want) in [
        ("allowed", Value::Bool(false)),
        ("reason", Value::borrowed_string("because")),
        ("errored", Value::Bool(true)),
        ("error", Value::borrowed_string("down")),
    ] {
        let found = call(&functions, name, std::slice::from_ref(&decision)).unwrap();
        assert!(found.equals(&want), "{name}: {found:?}");
    }
}

#[test]
fn a_decision_without_an_error_has_an_empty_one() {
    let functions = functions();
    let decision = Value::from(AuthorizationValue::Decision(AuthorizerDecision::default()));
    let found = call(&functions, "error", std::slice::from_ref(&decision)).unwrap();
    assert!(found.equals(&Value::borrowed_string("")));
    assert!(call(&functions, "errored", &[decision]).unwrap().equals(&Value::Bool(false)));
}
