//! The authorizer library: `authorizer.group('').resource('pods').check('get').allowed()`.
//!
//! Kubernetes declares these functions in every environment, but only admission has an `authorizer`
//! variable. A check looks up its decision among the known ones, and ends the evaluation if it is
//! missing.

use std::sync::Arc;

use field_errors::{dns1123_label_faults, dns1123_subdomain_faults};

use crate::authorizer_check::{
    AuthorizerCheck, AuthorizerCheckTarget, AuthorizerDecision, ResourceCheckTarget, ServiceAccount,
};
use crate::cost;
use crate::function::{
    CostFormula, EvalError, EvalResult, FunctionImpl, FunctionRegistry, Overload,
};
use crate::static_type::Type;
use crate::value::{AuthorizationValue, Authorizer, OpaqueValue, Str, Value};

const AUTHORIZER: Type = Type::Opaque(AuthorizationValue::AUTHORIZER);
const PATH: Type = Type::Opaque(AuthorizationValue::PATH_CHECK);
const GROUP: Type = Type::Opaque(AuthorizationValue::GROUP_CHECK);
const RESOURCE: Type = Type::Opaque(AuthorizationValue::RESOURCE_CHECK);
const DECISION: Type = Type::Opaque(AuthorizationValue::DECISION);

/// The cost of a check. Two of them fit into the cost limit of an expression.
pub const AUTHORIZER_CHECK_COST: u64 = 350_000;

/// Declares the checks and the selectors of resource checks.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let mut member = |name, id, params, result, implementation: FunctionImpl, cost| {
        let overload = Overload::new_member_overload(id, params, result, implementation);
        functions.add_overloads(name, vec![overload.with_cost_formula(cost)]);
    };
    let on = |receiver| vec![receiver, Type::String];
    let unit = CostFormula::Unit;
    member("path", "authorizer_path", on(AUTHORIZER), PATH, authorizer_path, unit);
    member("group", "authorizer_group", on(AUTHORIZER), GROUP, authorizer_group, unit);
    member("resource", "groupcheck_resource", on(GROUP), RESOURCE, group_check_resource, unit);
    let account = vec![AUTHORIZER, Type::String, Type::String];
    let id = "authorizer_serviceaccount";
    member("serviceAccount", id, account, AUTHORIZER, authorizer_service_account, unit);

    let narrow: [(_, _, FunctionImpl); 3] = [
        ("subresource", "resourcecheck_subresource", |args| {
            with_resource_attribute(args, |it| &mut it.subresource)
        }),
        ("namespace", "resourcecheck_namespace", |args| {
            with_resource_attribute(args, |it| &mut it.namespace)
        }),
        ("name", "resourcecheck_name", |args| with_resource_attribute(args, |it| &mut it.name)),
    ];
    for (name, id, implementation) in narrow {
        member(name, id, on(RESOURCE), RESOURCE, implementation, unit);
    }
    let select: [(_, _, FunctionImpl); 2] = [
        ("fieldSelector", "authorizer_fieldselector", |args| {
            with_resource_attribute(args, |it| &mut it.field_selector)
        }),
        ("labelSelector", "authorizer_labelselector", |args| {
            with_resource_attribute(args, |it| &mut it.label_selector)
        }),
    ];
    for (name, id, implementation) in select {
        let cost = CostFormula::Custom(cost_of_selector);
        member(name, id, on(RESOURCE), RESOURCE, implementation, cost);
    }
    for (id, receiver) in [("pathcheck_check", PATH), ("resourcecheck_check", RESOURCE)] {
        member(
            "check",
            id,
            on(receiver),
            DECISION,
            look_up_decision,
            CostFormula::Custom(|_| AUTHORIZER_CHECK_COST),
        );
    }
    let decision = || vec![DECISION];
    member("errored", "decision_errored", decision(), Type::Bool, decision_errored, unit);
    member("error", "decision_error", decision(), Type::String, decision_error, unit);
    member("allowed", "decision_allowed", decision(), Type::Bool, decision_allowed, unit);
    member("reason", "decision_reason", decision(), Type::String, decision_reason, unit);
}

fn authorizer_path<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let (authorizer, path) = authorizer_and_string_arguments(arguments)?;
    if path.as_str().trim().is_empty() {
        return Err(EvalError::new("path must not be empty"));
    }
    Ok(AuthorizationValue::Path(authorizer.clone(), to_arc_str(path)).into())
}

fn authorizer_group<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let (authorizer, group) = authorizer_and_string_arguments(arguments)?;
    Ok(AuthorizationValue::Group(authorizer.clone(), to_arc_str(group)).into())
}

fn group_check_resource<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [receiver, Value::String(resource)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let Some(AuthorizationValue::Group(authorizer, group)) = as_authorization_value(receiver)
    else {
        return Err(EvalError::no_such_overload());
    };
    if resource.as_str().trim().is_empty() {
        return Err(EvalError::new("resource must not be empty"));
    }
    let group = Arc::clone(group);
    let target = ResourceCheckTarget {
        group,
        resource: to_arc_str(resource),
        ..ResourceCheckTarget::default()
    };
    Ok(authorizer.clone().resource_check_value(target))
}

/// `authorizer.serviceAccount(namespace, name)`. The name is validated before the namespace.
fn authorizer_service_account<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [receiver, Value::String(namespace), Value::String(name)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let Some(AuthorizationValue::Authorizer(authorizer)) = as_authorization_value(receiver) else {
        return Err(EvalError::no_such_overload());
    };
    if !dns1123_subdomain_faults(name.as_str()).is_empty() {
        return Err(EvalError::new("Invalid service account name"));
    }
    if !dns1123_label_faults(namespace.as_str()).is_empty() {
        return Err(EvalError::new("Invalid service account namespace"));
    }
    let account = ServiceAccount { namespace: to_arc_str(namespace), name: to_arc_str(name) };
    let known_decisions = authorizer.known_decisions.clone();
    Ok(Authorizer { known_decisions, service_account: Some(account) }.value())
}

/// Returns the check with one more resource attribute.
fn with_resource_attribute<'a>(
    arguments: &[Value<'a>],
    part: fn(&mut ResourceCheckTarget) -> &mut Arc<str>,
) -> EvalResult<'a> {
    let [receiver, Value::String(text)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let Some(AuthorizationValue::Resource(authorizer, target)) = as_authorization_value(receiver)
    else {
        return Err(EvalError::no_such_overload());
    };
    let mut target = target.clone();
    *part(&mut target) = to_arc_str(text);
    Ok(AuthorizationValue::Resource(authorizer.clone(), target).into())
}

/// Looks up the decision. If it is not known, the evaluation ends with `NeedsDecision`.
fn look_up_decision<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [receiver, Value::String(verb)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let (authorizer, target) = match as_authorization_value(receiver) {
        Some(AuthorizationValue::Path(authorizer, path)) => {
            (authorizer, AuthorizerCheckTarget::Path(Arc::clone(path)))
        }
        Some(AuthorizationValue::Resource(authorizer, target)) => {
            (authorizer, AuthorizerCheckTarget::Resource(target.clone()))
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    let question = AuthorizerCheck {
        service_account: authorizer.service_account.clone(),
        verb: to_arc_str(verb),
        check_target: target,
    };
    match authorizer.known_decisions.get(&question) {
        Some(decision) => Ok(AuthorizationValue::Decision(decision.clone()).into()),
        None => Err(EvalError::NeedsDecision(Box::new(question))),
    }
}

fn decision_errored<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    decision_argument(arguments).map(|decision| Value::Bool(decision.error.is_some()))
}

fn decision_error<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let decision = decision_argument(arguments)?;
    Ok(Value::owned_string(decision.error.clone().unwrap_or_default()))
}

fn decision_allowed<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    decision_argument(arguments).map(|decision| Value::Bool(decision.is_allowed))
}

fn decision_reason<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    decision_argument(arguments).map(|decision| Value::owned_string(Arc::clone(&decision.reason)))
}

fn as_authorization_value<'v>(value: &'v Value<'_>) -> Option<&'v AuthorizationValue> {
    match value {
        Value::Opaque(opaque) => match &**opaque {
            OpaqueValue::Authorization(authorization) => Some(authorization),
            _ => None,
        },
        _ => None,
    }
}

fn authorizer_and_string_arguments<'v, 'a>(
    arguments: &'v [Value<'a>],
) -> Result<(&'v Authorizer, &'v Str<'a>), EvalError> {
    match arguments {
        [receiver, Value::String(text)] => match as_authorization_value(receiver) {
            Some(AuthorizationValue::Authorizer(authorizer)) => Ok((authorizer, text)),
            _ => Err(EvalError::no_such_overload()),
        },
        _ => Err(EvalError::no_such_overload()),
    }
}

fn decision_argument<'v>(arguments: &'v [Value<'_>]) -> Result<&'v AuthorizerDecision, EvalError> {
    match arguments {
        [receiver] => match as_authorization_value(receiver) {
            Some(AuthorizationValue::Decision(decision)) => Ok(decision),
            _ => Err(EvalError::no_such_overload()),
        },
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_arc_str(text: &Str<'_>) -> Arc<str> {
    match text {
        Str::Borrowed(text) => Arc::from(*text),
        Str::Owned(text) => Arc::clone(text),
    }
}

/// The cost of reading the selector, of a list, and of one requirement (a record and a list) for
/// every two code points.
fn cost_of_selector(arguments: &[Value<'_>]) -> u64 {
    let size = cost::argument_size(arguments.get(1));
    cost::LIST_CREATION
        + cost::traversal_cost(size)
        + size.div_ceil(2) * (cost::LIST_CREATION + cost::MESSAGE_CREATION)
}

#[cfg(test)]
mod tests;
