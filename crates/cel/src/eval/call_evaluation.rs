//! Evaluates calls of library functions.

use super::Evaluator;
use crate::cost;
use crate::function::{EvalError, EvalResult};
use crate::ir::{CallExpr, OverloadDispatch, RegexCall, RegexFunction, ResolvedOverload};
use crate::static_type::Type;
use crate::value::{Str, Value};

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn evaluate_call(&mut self, call: &'a CallExpr) -> EvalResult<'a> {
        match &*call.args {
            [] => self.invoke_call(call, &[]),
            [only] => match self.evaluate_argument(only)? {
                Ok(value) => self.invoke_call(call, &[value]),
                Err(error) => self.charge_skipped_call(call, &[Value::Null], error),
            },
            [left, right] if call.evaluates_both_arguments() => {
                let left = self.evaluate_argument(left)?;
                let right = self.evaluate_argument(right)?;
                if let Some(operator) = call.int_operator
                    && let (Ok(Value::Int(left)), Ok(Value::Int(right))) = (&left, &right)
                    && let Some(result) = operator.apply_to_ints(*left, *right)
                {
                    self.charge_cost(1)?;
                    return Ok(result);
                }
                match (left, right) {
                    (Ok(left), Ok(right)) => self.invoke_call(call, &[left, right]),
                    (Err(error), Ok(right)) => {
                        self.charge_skipped_call(call, &[Value::Null, right], error)
                    }
                    (Ok(left), Err(error)) => {
                        self.charge_skipped_call(call, &[left, Value::Null], error)
                    }
                    (Err(error), Err(_)) => {
                        self.charge_skipped_call(call, &[Value::Null, Value::Null], error)
                    }
                }
            }
            [left, right] => {
                // An error in any argument but the last ends a call of this function before it is charged.
                let left = self.evaluate_expression(left)?;
                match self.evaluate_argument(right)? {
                    Ok(right) => self.invoke_call(call, &[left, right]),
                    Err(error) => self.charge_skipped_call(call, &[left, Value::Null], error),
                }
            }
            [first @ .., last] => {
                let mut args = Vec::with_capacity(call.args.len());
                for arg in first {
                    args.push(self.evaluate_expression(arg)?);
                }
                match self.evaluate_argument(last)? {
                    Ok(value) => {
                        args.push(value);
                        self.invoke_call(call, &args)
                    }
                    Err(error) => {
                        args.push(Value::Null);
                        self.charge_skipped_call(call, &args, error)
                    }
                }
            }
        }
    }

    #[inline]
    fn invoke_call(&mut self, call: &'a CallExpr, args: &[Value<'a>]) -> EvalResult<'a> {
        // Charge before the call where possible, so that a call over the limit does not run.
        let is_charged = !call.cost_depends_on_result();
        if is_charged {
            self.charge_cost(call.call_cost(args, None))?;
        }
        for arg in args {
            self.step_budget.spend_for_value(arg)?;
        }
        let outcome = match call.select_overload(args) {
            Ok(ResolvedOverload { metered_implementation: Some(implementation), .. }) => {
                implementation(args, &mut self.step_budget)
            }
            Ok(target) => (target.implementation)(args),
            Err(error) => Err(error),
        };
        if !is_charged {
            self.charge_cost(call.call_cost(args, outcome.as_ref().ok()))?;
        }
        if let Ok(value) = &outcome {
            self.step_budget.spend_for_value(value)?;
        }
        outcome
    }

    /// Charges a call that does not run because an argument is an error.
    fn charge_skipped_call(
        &mut self,
        call: &'a CallExpr,
        args: &[Value<'a>],
        error: EvalError,
    ) -> EvalResult<'a> {
        let cost = call.call_cost(args, None);
        self.charge_cost(cost)?;
        Err(error)
    }

    pub(super) fn evaluate_regex(&mut self, call: &'a RegexCall) -> EvalResult<'a> {
        let text = self.evaluate_expression(&call.searched_text_expr)?;
        let limit =
            call.match_limit.as_ref().map(|limit| self.evaluate_argument(limit)).transpose()?;
        self.charge_cost(cost::regex_cost(
            cost::argument_size(Some(&text)),
            call.pattern_code_points,
        ))?;
        let limit = limit.transpose()?;
        let text = match text {
            Value::String(text) => text,
            // A type is matched by its name.
            Value::Type(name) if call.kind == RegexFunction::Matches => Str::Borrowed(name.0),
            _ => return Err(EvalError::no_such_overload()),
        };
        let limit = match limit {
            None => -1,
            Some(Value::Int(limit)) => limit,
            Some(_) => return Err(EvalError::no_such_overload()),
        };
        Ok(match call.kind {
            RegexFunction::Matches => Value::Bool(call.pattern.is_match(text.as_str())),
            RegexFunction::Find => call.pattern.find_first_match(&text),
            RegexFunction::FindAll => {
                call.pattern.find_all_matches(&text, limit, &mut self.step_budget)?
            }
        })
    }
}

impl CallExpr {
    /// Reports whether both arguments are evaluated even if the first one fails. cel-go treats `format` as a
    /// function with many arguments, although it has two.
    fn evaluates_both_arguments(&self) -> bool {
        match self.overload_dispatch {
            OverloadDispatch::One { .. } => self.name != "format",
            OverloadDispatch::Many(_) => has_single_implementation(self.name),
        }
    }

    /// Reports whether a call with two integers finds an overload and costs one unit.
    pub(crate) fn costs_one_unit_for_ints(&self) -> bool {
        let ints = [Value::Int(1), Value::Int(1)];
        let accepts =
            self.select_overload(&ints).is_ok_and(|target| target.accepts_arguments(&ints));
        accepts && !self.cost_depends_on_result() && self.call_cost(&ints, None) == 1
    }

    /// Runs the call on constants, for folding.
    pub(crate) fn call_with_constants<'v>(&self, args: &[Value<'v>]) -> EvalResult<'v> {
        (self.select_overload(args)?.implementation)(args)
    }

    /// The overload that matches these arguments.
    #[inline]
    fn select_overload(&self, args: &[Value<'_>]) -> Result<&ResolvedOverload, EvalError> {
        match &self.overload_dispatch {
            OverloadDispatch::One { target, guarded: false } => Ok(target),
            OverloadDispatch::One { target, guarded: true } if target.accepts_arguments(args) => {
                Ok(target)
            }
            OverloadDispatch::One { target, .. } if has_single_implementation(self.name) => {
                Ok(target)
            }
            OverloadDispatch::One { .. } => Err(no_matching_overload_error(self.name, args)),
            OverloadDispatch::Many(targets) => targets
                .iter()
                .find(|target| target.accepts_arguments(args))
                .or_else(|| targets.first().filter(|_| has_single_implementation(self.name)))
                .ok_or_else(|| no_matching_overload_error(self.name, args)),
        }
    }

    /// Reports whether the cost depends on the result of the call.
    #[inline]
    fn cost_depends_on_result(&self) -> bool {
        match &self.overload_dispatch {
            OverloadDispatch::One { target, .. } => target.cost_formula.is_charged_after_call(),
            OverloadDispatch::Many(targets) => {
                targets.last().is_some_and(|target| target.cost_formula.is_charged_after_call())
            }
        }
    }

    fn call_cost<'v>(&self, args: &[Value<'v>], result: Option<&Value<'v>>) -> u64 {
        match &self.overload_dispatch {
            OverloadDispatch::One { target, .. } => target.cost_formula.cost_of_call(args, result),
            // A call whose overload is chosen at run time costs 1, unless the function has a cost
            // by name.
            OverloadDispatch::Many(targets) if cost::has_cost_by_function_name(self.name) => {
                targets.last().map_or(1, |target| target.cost_formula.cost_of_call(args, result))
            }
            OverloadDispatch::Many(_) => 1,
        }
    }
}

impl ResolvedOverload {
    fn accepts_arguments(&self, args: &[Value<'_>]) -> bool {
        args.len() == self.param_types.len()
            && args.iter().zip(&self.param_types).all(|(arg, param)| value_matches_type(param, arg))
    }
}

/// Reports whether a value matches a parameter type. For lists and maps only the first element is checked, as
/// cel-go does.
fn value_matches_type(ty: &Type, value: &Value<'_>) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Param(_) | Type::Var(_), _) => true,
        (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Type(_), Value::Type(_))
        | (Type::Optional(_), Value::Optional(_))
        | (Type::Object(_), Value::Map(_)) => true,
        (Type::Wrapper(_), Value::Null) => true,
        (Type::Wrapper(inner), value) => value_matches_type(inner, value),
        (Type::List(element), Value::List(list)) => {
            list.get(0).is_none_or(|first| value_matches_type(element, &first))
        }
        (Type::Map(key, item), Value::Map(map)) => map
            .iter()
            .next()
            .is_none_or(|(k, v)| value_matches_type(key, &k) && value_matches_type(item, &v)),
        (Type::Opaque(name), Value::Opaque(opaque)) => opaque.type_name() == *name,
        _ => false,
    }
}

/// Reports whether all overloads of the function share one implementation, which takes any arguments and returns
/// its own error message.
fn has_single_implementation(name: &str) -> bool {
    name.starts_with(['_', '-', '!', '@'])
        || matches!(
            name,
            "contains" | "endsWith" | "flatten" | "matches" | "size" | "sort" | "startsWith"
        )
}

/// The error for arguments that no overload takes.
fn no_matching_overload_error(name: &str, args: &[Value<'_>]) -> EvalError {
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    EvalError::new(format!("no such overload: {name}({})", types.join(", ")))
}
