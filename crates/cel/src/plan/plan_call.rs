//! Plans calls: chooses overloads, folds constant conversions, and replaces calls that have a
//! faster form.

use std::sync::Arc;

use super::Planner;
use crate::ast::NodeId;
use crate::compile_budget::CompileBudget;
use crate::function::{EvalError, Function, Overload};
use crate::ir::{
    CallExpr, CompiledExpr, ConstantSet, IntOperator, OverloadDispatch, RegexCall, RegexFunction,
    ResolvedOverload,
};
use crate::program::ProgramError;
use crate::static_type::Type;
use crate::string_predicate_fast_path::with_fast_path;
use crate::type_check::ResolvedReference;
use crate::value::Value;

/// A constant list of up to this many strings is searched linearly; a longer list is hashed.
const FEW_STRINGS_MAX: usize = 8;

impl Planner<'_> {
    pub(super) fn plan_call(
        &mut self,
        id: NodeId,
        target: Option<NodeId>,
        function: &str,
        args: &[NodeId],
    ) -> Result<CompiledExpr, ProgramError> {
        if function == "_?._" {
            return self.plan_optional_select(args);
        }
        let Some(ResolvedReference::Function { name, overloads, namespaced }) =
            self.checked_ast.reference_of_node(id)
        else {
            return Err(format!("no such overload: {function}").into());
        };
        let target = if *namespaced { None } else { target };
        match *name {
            "_&&_" | "_||_" => return self.plan_logical_operator(name, args),
            "_?_:_" => return self.plan_conditional(args),
            "_[_]" | "_[?_]" => return self.plan_index(args, *name == "_[?_]"),
            _ => {}
        }
        let ids: Vec<NodeId> = target.iter().chain(args).copied().collect();
        let args = ids.iter().map(|&arg| self.plan_node(arg)).collect::<Result<Vec<_>, _>>()?;
        match (*name, <[CompiledExpr; 2]>::try_from(args)) {
            ("_==_", Ok(sides)) => {
                Ok(with_fast_path(CompiledExpr::Equal { sides: Box::new(sides), negated: false }))
            }
            ("_!=_", Ok(sides)) => {
                Ok(with_fast_path(CompiledExpr::Equal { sides: Box::new(sides), negated: true }))
            }
            ("or", Ok(sides)) => {
                Ok(CompiledExpr::OptionalOr { sides: Box::new(sides), unwrap: false })
            }
            ("orValue", Ok(sides)) => {
                Ok(CompiledExpr::OptionalOr { sides: Box::new(sides), unwrap: true })
            }
            (name, Ok(sides)) => self.plan_function_call(name, overloads, &ids, sides.into()),
            ("!_", Err(args)) => match args.into_iter().next() {
                Some(arg) => Ok(with_fast_path(CompiledExpr::Not(Box::new(arg)))),
                None => Err("no such overload: !_()".into()),
            },
            (name, Err(args)) => self.plan_function_call(name, overloads, &ids, args),
        }
    }

    fn plan_function_call(
        &mut self,
        name: &'static str,
        overloads: &[usize],
        ids: &[NodeId],
        args: Vec<CompiledExpr>,
    ) -> Result<CompiledExpr, ProgramError> {
        let env = self.env;
        let function =
            env.functions().get(name).ok_or_else(|| format!("no such overload: {name}"))?;
        let args = match self.specialize_call(name, overloads.len() == 1, args)? {
            Ok(expr) => return Ok(with_fast_path(expr)),
            Err(args) => args,
        };
        let mut call = CallExpr {
            name,
            overload_dispatch: self.choose_overload_dispatch(function, overloads, ids),
            args: args.into(),
            int_operator: None,
        };
        call.int_operator = IntOperator::from_function_name(name)
            .filter(|_| call.args.len() == 2 && call.costs_one_unit_for_ints());
        match &*call.args {
            [CompiledExpr::Const(argument)] if is_conversion_function(name) => {
                Ok(CompiledExpr::Const(fold_constant_call(&call, argument)?))
            }
            _ => Ok(with_fast_path(CompiledExpr::Call(Box::new(call)))),
        }
    }

    /// Replaces a call by an equivalent expression that evaluates faster or lazily. Returns the
    /// arguments if there is none.
    fn specialize_call(
        &mut self,
        name: &str,
        resolved: bool,
        args: Vec<CompiledExpr>,
    ) -> Result<Result<CompiledExpr, Vec<CompiledExpr>>, ProgramError> {
        match name {
            "@in" if resolved => Ok(specialize_membership(args)),
            "_+_" => Ok(self.specialize_append(args)),
            "cel.@mapInsert" => Ok(self.specialize_map_insert(args)),
            "matches" => specialize_regex(RegexFunction::Matches, args, self.compile_budget),
            "find" => specialize_regex(RegexFunction::Find, args, self.compile_budget),
            "findAll" => specialize_regex(RegexFunction::FindAll, args, self.compile_budget),
            _ => Ok(Err(args)),
        }
    }

    fn choose_overload_dispatch(
        &self,
        function: &Function,
        overloads: &[usize],
        ids: &[NodeId],
    ) -> OverloadDispatch {
        if let [only] = overloads
            && let Some(overload) = function.overloads.get(*only)
        {
            let guarded = self.checked_ast.has_unsound_types
                || ids.iter().zip(&overload.param_types).any(|(&id, param)| {
                    !type_always_matches_param(self.checked_ast.type_of_node(id), param)
                });
            return OverloadDispatch::One { target: to_resolved_overload(overload), guarded };
        }
        let candidates = function.overloads.iter().filter(|o| o.param_types.len() == ids.len());
        OverloadDispatch::Many(candidates.map(to_resolved_overload).collect())
    }
}

fn to_resolved_overload(overload: &Overload) -> ResolvedOverload {
    ResolvedOverload {
        param_types: overload.param_types.clone().into(),
        cost_formula: overload.cost_formula,
        implementation: overload.implementation,
        metered_implementation: overload.metered_implementation,
    }
}

/// Runs a call with one constant argument.
fn fold_constant_call(
    call: &CallExpr,
    argument: &Value<'static>,
) -> Result<Value<'static>, ProgramError> {
    call.call_with_constants(std::slice::from_ref(argument))
        .map_err(|failure: EvalError| failure.to_string().into())
}

fn specialize_membership(args: Vec<CompiledExpr>) -> Result<CompiledExpr, Vec<CompiledExpr>> {
    let [_, CompiledExpr::Const(Value::List(list))] = &args[..] else { return Err(args) };
    if list.is_empty() {
        return Ok(CompiledExpr::Const(Value::Bool(false)));
    }
    let values: Vec<Value<'static>> = list.iter().collect();
    let scalar = |value: &Value<'_>| {
        matches!(
            value,
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
        )
    };
    if !values.iter().all(scalar) {
        return Err(args);
    }
    let texts: Option<Vec<Box<str>>> = values
        .iter()
        .map(|value| match value {
            Value::String(text) => Some(text.as_str().into()),
            _ => None,
        })
        .collect();
    let set = match texts {
        Some(texts) if texts.len() <= FEW_STRINGS_MAX => ConstantSet::FewStrings(texts.into()),
        Some(texts) => ConstantSet::ManyStrings(texts.into_iter().collect()),
        None => ConstantSet::Values(values.into()),
    };
    match args.into_iter().next() {
        Some(item) => Ok(CompiledExpr::Member { item: Box::new(item), set }),
        None => Err(Vec::new()),
    }
}

fn specialize_regex(
    kind: RegexFunction,
    args: Vec<CompiledExpr>,
    compile_budget: &mut CompileBudget,
) -> Result<Result<CompiledExpr, Vec<CompiledExpr>>, ProgramError> {
    let pattern: Arc<str> = match args.get(1) {
        Some(CompiledExpr::Const(Value::String(text))) => text.as_str().into(),
        _ => return Ok(Err(args)),
    };
    let compiled = compile_budget.compile_pattern(&pattern).map_err(|error| error.to_string())?;
    let mut args = args.into_iter();
    let (Some(text), limit) = (args.next(), args.nth(1)) else { return Ok(Err(Vec::new())) };
    let call = RegexCall {
        kind,
        pattern: compiled,
        pattern_code_points: pattern.chars().count() as u64,
        searched_text_expr: text,
        match_limit: limit,
    };
    Ok(Ok(CompiledExpr::Regex(Box::new(call))))
}

/// Reports whether the function is a type conversion, which is folded if its argument is constant.
fn is_conversion_function(name: &str) -> bool {
    matches!(
        name,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

/// Reports whether a value of this static type always matches the parameter at run time.
fn type_always_matches_param(ty: &Type, param: &Type) -> bool {
    match (ty, param) {
        (_, Type::Dyn | Type::Param(_)) => true,
        // Null matches message parameters, and wrappers may hold null.
        (Type::Dyn | Type::Error | Type::Null | Type::Wrapper(_), _) => false,
        (Type::List(a), Type::List(b)) => type_always_matches_param(a, b),
        (Type::Map(k1, v1), Type::Map(k2, v2)) => {
            type_always_matches_param(k1, k2) && type_always_matches_param(v1, v2)
        }
        (Type::Optional(a), Type::Optional(b)) => type_always_matches_param(a, b),
        (Type::Type(_), Type::Type(_)) => true,
        _ => ty == param,
    }
}
