//! Checks of authorization: `authorizer.group('').resource('pods').check('get').allowed()`.
//!
//! Kubernetes declares these functions in every environment, but only admission has an `authorizer`
//! variable to call them on. A check looks its question up among the answers that the authorizer has
//! given, and ends the evaluation if it is not there.

use std::sync::Arc;

use super::named_format::{is_dns_label, is_dns_subdomain};
use crate::cost;
use crate::function::{Cost, Failure, Functions, Implementation, Outcome, Overload};
use crate::question::{CheckTarget, Decision, Question, ResourceTarget, ServiceAccount};
use crate::ty::Type;
use crate::value::{Authorization, Authorizer, Opaque, Str, Value};

const AUTHORIZER: Type = Type::Opaque(Authorization::AUTHORIZER);
const PATH: Type = Type::Opaque(Authorization::PATH_CHECK);
const GROUP: Type = Type::Opaque(Authorization::GROUP_CHECK);
const RESOURCE: Type = Type::Opaque(Authorization::RESOURCE_CHECK);
const DECISION: Type = Type::Opaque(Authorization::DECISION);

/// What a check costs: an expression can afford two of them.
pub const CHECK_COST: u64 = 350_000;

/// Declares the checks and the selectors of resource checks.
pub(crate) fn declare(functions: &mut Functions) {
    let mut member = |name, id, params, result, implementation: Implementation, cost| {
        let overload = Overload::member(id, params, result, implementation);
        functions.add(name, vec![overload.cost(cost)]);
    };
    let on = |receiver| vec![receiver, Type::String];
    let unit = Cost::Unit;
    member("path", "authorizer_path", on(AUTHORIZER), PATH, path, unit);
    member("group", "authorizer_group", on(AUTHORIZER), GROUP, group, unit);
    member("resource", "groupcheck_resource", on(GROUP), RESOURCE, resource, unit);
    let account = vec![AUTHORIZER, Type::String, Type::String];
    let id = "authorizer_serviceaccount";
    member("serviceAccount", id, account, AUTHORIZER, service_account, unit);

    let narrow: [(_, _, Implementation); 3] = [
        ("subresource", "resourcecheck_subresource", |args| {
            narrowed(args, |it| &mut it.subresource)
        }),
        ("namespace", "resourcecheck_namespace", |args| narrowed(args, |it| &mut it.namespace)),
        ("name", "resourcecheck_name", |args| narrowed(args, |it| &mut it.name)),
    ];
    for (name, id, implementation) in narrow {
        member(name, id, on(RESOURCE), RESOURCE, implementation, unit);
    }
    let select: [(_, _, Implementation); 2] = [
        ("fieldSelector", "authorizer_fieldselector", |args| {
            narrowed(args, |it| &mut it.field_selector)
        }),
        ("labelSelector", "authorizer_labelselector", |args| {
            narrowed(args, |it| &mut it.label_selector)
        }),
    ];
    for (name, id, implementation) in select {
        let cost = Cost::Custom(cost_of_selector);
        member(name, id, on(RESOURCE), RESOURCE, implementation, cost);
    }
    for (id, receiver) in [("pathcheck_check", PATH), ("resourcecheck_check", RESOURCE)] {
        member("check", id, on(receiver), DECISION, check, Cost::Custom(|_| CHECK_COST));
    }
    let decision = || vec![DECISION];
    member("errored", "decision_errored", decision(), Type::Bool, errored, unit);
    member("error", "decision_error", decision(), Type::String, error, unit);
    member("allowed", "decision_allowed", decision(), Type::Bool, allowed, unit);
    member("reason", "decision_reason", decision(), Type::String, reason, unit);
}

fn path<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let (authorizer, path) = authorizer_and_text(arguments)?;
    if path.as_str().trim().is_empty() {
        return Err(Failure::new("path must not be empty"));
    }
    Ok(Authorization::Path(authorizer.clone(), shared(path)).into())
}

fn group<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let (authorizer, group) = authorizer_and_text(arguments)?;
    Ok(Authorization::Group(authorizer.clone(), shared(group)).into())
}

fn resource<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let [receiver, Value::String(resource)] = arguments else {
        return Err(Failure::no_such_overload());
    };
    let Some(Authorization::Group(authorizer, group)) = authorization(receiver) else {
        return Err(Failure::no_such_overload());
    };
    if resource.as_str().trim().is_empty() {
        return Err(Failure::new("resource must not be empty"));
    }
    let group = Arc::clone(group);
    let target = ResourceTarget { group, resource: shared(resource), ..ResourceTarget::default() };
    Ok(authorizer.clone().resource_check(target))
}

/// The same authorizer, asked about a service account. The name is looked at first.
fn service_account<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let [receiver, Value::String(namespace), Value::String(name)] = arguments else {
        return Err(Failure::no_such_overload());
    };
    let Some(Authorization::Authorizer(authorizer)) = authorization(receiver) else {
        return Err(Failure::no_such_overload());
    };
    if !is_dns_subdomain(name.as_str()) {
        return Err(Failure::new("Invalid service account name"));
    }
    if !is_dns_label(namespace.as_str()) {
        return Err(Failure::new("Invalid service account namespace"));
    }
    let account = ServiceAccount { namespace: shared(namespace), name: shared(name) };
    let decisions = authorizer.decisions.clone();
    Ok(Authorizer { decisions, account: Some(account) }.value())
}

/// The same check with one part set to a text.
fn narrowed<'a>(
    arguments: &[Value<'a>],
    part: fn(&mut ResourceTarget) -> &mut Arc<str>,
) -> Outcome<'a> {
    let [receiver, Value::String(text)] = arguments else {
        return Err(Failure::no_such_overload());
    };
    let Some(Authorization::Resource(authorizer, target)) = authorization(receiver) else {
        return Err(Failure::no_such_overload());
    };
    let mut target = target.clone();
    *part(&mut target) = shared(text);
    Ok(Authorization::Resource(authorizer.clone(), target).into())
}

/// Looks the answer up; without one, the evaluation ends here.
fn check<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let [receiver, Value::String(verb)] = arguments else {
        return Err(Failure::no_such_overload());
    };
    let (authorizer, target) = match authorization(receiver) {
        Some(Authorization::Path(authorizer, path)) => {
            (authorizer, CheckTarget::Path(Arc::clone(path)))
        }
        Some(Authorization::Resource(authorizer, target)) => {
            (authorizer, CheckTarget::Resource(target.clone()))
        }
        _ => return Err(Failure::no_such_overload()),
    };
    let question = Question { account: authorizer.account.clone(), verb: shared(verb), target };
    match authorizer.decisions.get(&question) {
        Some(decision) => Ok(Authorization::Decision(decision.clone()).into()),
        None => Err(Failure::Wanted(Box::new(question))),
    }
}

fn errored<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    decided(arguments).map(|decision| Value::Bool(decision.error.is_some()))
}

fn error<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let decision = decided(arguments)?;
    Ok(Value::owned_string(decision.error.clone().unwrap_or_default()))
}

fn allowed<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    decided(arguments).map(|decision| Value::Bool(decision.is_allowed))
}

fn reason<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    decided(arguments).map(|decision| Value::owned_string(Arc::clone(&decision.reason)))
}

fn authorization<'v>(value: &'v Value<'_>) -> Option<&'v Authorization> {
    match value {
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Authorization(authorization) => Some(authorization),
            _ => None,
        },
        _ => None,
    }
}

fn authorizer_and_text<'v, 'a>(
    arguments: &'v [Value<'a>],
) -> Result<(&'v Authorizer, &'v Str<'a>), Failure> {
    match arguments {
        [receiver, Value::String(text)] => match authorization(receiver) {
            Some(Authorization::Authorizer(authorizer)) => Ok((authorizer, text)),
            _ => Err(Failure::no_such_overload()),
        },
        _ => Err(Failure::no_such_overload()),
    }
}

fn decided<'v>(arguments: &'v [Value<'_>]) -> Result<&'v Decision, Failure> {
    match arguments {
        [receiver] => match authorization(receiver) {
            Some(Authorization::Decision(decision)) => Ok(decision),
            _ => Err(Failure::no_such_overload()),
        },
        _ => Err(Failure::no_such_overload()),
    }
}

fn shared(text: &Str<'_>) -> Arc<str> {
    match text {
        Str::Borrowed(text) => Arc::from(*text),
        Str::Owned(text) => Arc::clone(text),
    }
}

/// Reading the selector, a list, and for each two code points a requirement: a record and a list.
fn cost_of_selector(arguments: &[Value<'_>]) -> u64 {
    let size = cost::size(arguments.get(1));
    cost::LIST + cost::traversal(size) + size.div_ceil(2) * (cost::LIST + cost::MESSAGE)
}

#[cfg(test)]
mod tests;
