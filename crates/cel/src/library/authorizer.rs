//! Checks of other requests' authorization, as declarations only.
//!
//! Kubernetes declares these functions in every environment, but only admission has an `authorizer`
//! variable to call them on. Here no value has one of their types, so none of them ever runs; the
//! declarations make misuse fail to compile in the same words.

use crate::cost;
use crate::function::{Cost, Failure, Functions, Outcome, Overload};
use crate::ty::Type;
use crate::value::Value;

const AUTHORIZER: Type = Type::Opaque("kubernetes.authorization.Authorizer");
const PATH: Type = Type::Opaque("kubernetes.authorization.PathCheck");
const GROUP: Type = Type::Opaque("kubernetes.authorization.GroupCheck");
const RESOURCE: Type = Type::Opaque("kubernetes.authorization.ResourceCheck");
const DECISION: Type = Type::Opaque("kubernetes.authorization.Decision");

/// An expression can afford two checks.
const CHECK_COST: Cost = Cost::Custom(|_| 350_000);

/// Declares the checks and the selectors of resource checks.
pub(crate) fn declare(functions: &mut Functions) {
    let mut member = |name, id, params, result, cost| {
        let overload = Overload::member(id, params, result, refuse);
        functions.add(name, vec![overload.cost(cost)]);
    };
    let on = |receiver| vec![receiver, Type::String];
    for (name, id, receiver, result) in [
        ("path", "authorizer_path", AUTHORIZER, PATH),
        ("group", "authorizer_group", AUTHORIZER, GROUP),
        ("resource", "groupcheck_resource", GROUP, RESOURCE),
    ] {
        member(name, id, on(receiver), result, Cost::Unit);
    }
    let account = vec![AUTHORIZER, Type::String, Type::String];
    let id = "authorizer_serviceaccount";
    member("serviceAccount", id, account, AUTHORIZER, Cost::Unit);
    for (name, id) in [
        ("subresource", "resourcecheck_subresource"),
        ("namespace", "resourcecheck_namespace"),
        ("name", "resourcecheck_name"),
    ] {
        member(name, id, on(RESOURCE), RESOURCE, Cost::Unit);
    }
    for (name, id) in [
        ("fieldSelector", "authorizer_fieldselector"),
        ("labelSelector", "authorizer_labelselector"),
    ] {
        let cost = Cost::Custom(cost_of_selector);
        member(name, id, on(RESOURCE), RESOURCE, cost);
    }
    for (id, receiver) in [("pathcheck_check", PATH), ("resourcecheck_check", RESOURCE)] {
        member("check", id, on(receiver), DECISION, CHECK_COST);
    }
    for (name, id, result) in [
        ("errored", "decision_errored", Type::Bool),
        ("error", "decision_error", Type::String),
        ("allowed", "decision_allowed", Type::Bool),
        ("reason", "decision_reason", Type::String),
    ] {
        member(name, id, vec![DECISION], result, Cost::Unit);
    }
}

fn refuse<'a>(_arguments: &[Value<'a>]) -> Outcome<'a> {
    Err(Failure::no_such_overload())
}

/// Reading the selector, a list, and for each two code points a requirement: a record and a list.
fn cost_of_selector(arguments: &[Value<'_>]) -> u64 {
    let size = cost::size(arguments.get(1));
    cost::LIST + cost::traversal(size) + size.div_ceil(2) * (cost::LIST + cost::MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_cost_what_they_would_cost_in_kubernetes() {
        let mut functions = Functions::default();
        declare(&mut functions);
        for (name, text, want) in [
            ("group", "apps", 1),
            ("check", "get", 350_000),
            ("fieldSelector", "", 10),
            ("fieldSelector", "abcde", 161),
            ("labelSelector", "abcdefghijklmnopq", 462),
        ] {
            let arguments = [Value::string("no authorizer"), Value::string(text)];
            for overload in &functions.get(name).unwrap().overloads {
                assert!(overload.member);
                assert_eq!(overload.cost.of(&arguments, None), want, "{name} {text}");
                assert!((overload.implementation)(&arguments).is_err());
            }
        }
    }
}
