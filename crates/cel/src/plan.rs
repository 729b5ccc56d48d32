//! Compiles a checked AST to the intermediate representation.
//!
//! Constant lists, maps and conversions are folded; a conversion that fails makes the whole
//! expression unusable, as it does in Kubernetes.

mod plan_comprehension;

use std::sync::Arc;

use crate::ast::{Ast, ExprKind, Literal, MapEntry, NodeId, StructField};
use crate::check::{CheckedAst, ResolvedReference};
use crate::compile_budget::CompileBudget;
use crate::environment::Environment;
use crate::fast_path::with_fast_path;
use crate::function::{EvalError, Function, Overload};
use crate::ir::{
    Attribute, AttributeRoot, CallExpr, CompiledExpr, ConditionalExpr, ConstantSet, MapEntryExpr,
    MessageExpr, OverloadDispatch, Qualifier, QualifierKey, RegexCall, RegexFunction,
    ResolvedOverload,
};
use crate::program::ProgramError;
use crate::static_type::Type;
use crate::value::{Bytes, Map, OwnedMap, Str, Value};
use crate::well_known_message::WellKnownMessage;

/// Lists of text up to this length are searched, longer ones are hashed.
const FEW_STRINGS_MAX: usize = 8;

/// A compiled expression and the number of local variables it needs.
pub(crate) struct Plan {
    pub(crate) expr: CompiledExpr,
    pub(crate) n_local_slots: usize,
}

/// Compiles the subtree of a node that refers to no variable of an enclosing macro. The error is the
/// message about a constant that can not be folded.
pub(crate) fn plan_expression(
    checked_ast: &CheckedAst,
    id: NodeId,
    env: &Environment,
    compile_budget: &mut CompileBudget,
) -> Result<Plan, ProgramError> {
    let mut planner =
        Planner { checked_ast, env, local_slots: Vec::new(), n_local_slots: 0, compile_budget };
    let expr = planner.plan_node(id)?;
    Ok(Plan { expr, n_local_slots: planner.n_local_slots })
}

struct Planner<'c> {
    checked_ast: &'c CheckedAst,
    env: &'c Environment,
    /// Local variables in scope and their slots, innermost last.
    local_slots: Vec<(Arc<str>, usize)>,
    n_local_slots: usize,
    compile_budget: &'c mut CompileBudget,
}

impl<'c> Planner<'c> {
    fn ast(&self) -> &'c Ast {
        &self.checked_ast.ast
    }

    fn plan_node(&mut self, id: NodeId) -> Result<CompiledExpr, ProgramError> {
        match self.ast().kind(id) {
            ExprKind::Literal(literal) => Ok(CompiledExpr::Const(literal_value(literal))),
            ExprKind::Ident(_) => self.plan_reference(id),
            ExprKind::Select { operand, field, test_only } => {
                if self.checked_ast.reference_of_node(id).is_some() {
                    return self.plan_reference(id);
                }
                self.plan_select(*operand, field, *test_only)
            }
            ExprKind::Call { target, function, args } => {
                self.plan_call(id, *target, function, args)
            }
            ExprKind::List { elements, optional_indices } => {
                self.plan_list(elements, optional_indices)
            }
            ExprKind::Map { entries } => self.plan_map(entries),
            ExprKind::Struct { name, fields } => self.plan_message(name, fields),
            ExprKind::Comprehension(comprehension) => self.plan_comprehension(comprehension),
        }
    }

    fn plan_reference(&self, id: NodeId) -> Result<CompiledExpr, ProgramError> {
        // A variable whose type is `type` is treated as a type name.
        if let (Some(ResolvedReference::Local(name)), Type::Type(_)) =
            (self.checked_ast.reference_of_node(id), self.checked_ast.type_of_node(id))
        {
            return Err(format!("reference to undefined type: {name}").into());
        }
        let root = match self.checked_ast.reference_of_node(id) {
            Some(ResolvedReference::Variable(index)) => AttributeRoot::Variable(*index),
            Some(ResolvedReference::Local(name)) => {
                let slot = self.local_slots.iter().rev().find(|(local, _)| local == name);
                AttributeRoot::Slot(slot.ok_or_else(|| format!("no such attribute(s): {name}"))?.1)
            }
            Some(ResolvedReference::Type(name)) => {
                let value = self.env.find_type_value(name);
                let value = value.ok_or_else(|| format!("reference to undefined type: {name}"))?;
                return Ok(CompiledExpr::Const(Value::Type(value)));
            }
            Some(ResolvedReference::Constant(value)) => {
                return Ok(CompiledExpr::Const(Value::Int(*value)));
            }
            Some(ResolvedReference::Function { .. }) | None => {
                return Err("unresolved name".into());
            }
        };
        Ok(CompiledExpr::Attr(Attribute { root, qualifiers: Vec::new() }))
    }

    fn plan_select(
        &mut self,
        operand: NodeId,
        field: &Arc<str>,
        test: bool,
    ) -> Result<CompiledExpr, ProgramError> {
        let base = self.plan_node(operand)?;
        let key = self.field_qualifier_key(operand, field);
        let attr = with_qualifier(base, Qualifier { key, is_optional: false });
        Ok(if test { with_fast_path(CompiledExpr::Has(attr)) } else { CompiledExpr::Attr(attr) })
    }

    /// A field by index if the record type is known, otherwise by name.
    fn field_qualifier_key(&self, operand: NodeId, field: &Arc<str>) -> QualifierKey {
        let ty = match self.checked_ast.type_of_node(operand) {
            Type::Optional(inner) => inner,
            other => other,
        };
        if let Type::Object(object) = ty
            && let Some((index, _)) = object.field(field)
        {
            return QualifierKey::Field { index, name: Arc::clone(field) };
        }
        QualifierKey::Name(Arc::clone(field))
    }

    fn plan_call(
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

    /// Flattens nested `&&` or `||`: the order of evaluation and what is absorbed stay the same.
    fn plan_logical_operator(
        &mut self,
        name: &str,
        args: &[NodeId],
    ) -> Result<CompiledExpr, ProgramError> {
        let mut terms = Vec::new();
        for &arg in args {
            let nested = matches!(
                self.ast().kind(arg),
                ExprKind::Call { target: None, function, .. } if **function == *name
            );
            match self.plan_node(arg)? {
                CompiledExpr::And(inner) | CompiledExpr::Or(inner) if nested => terms.extend(inner),
                CompiledExpr::FastPath(fast_path) if nested => match fast_path.general_expr {
                    CompiledExpr::And(inner) | CompiledExpr::Or(inner) => terms.extend(inner),
                    other => terms.push(other),
                },
                other => terms.push(other),
            }
        }
        let terms = terms.into_boxed_slice();
        Ok(with_fast_path(if name == "_&&_" {
            CompiledExpr::And(terms)
        } else {
            CompiledExpr::Or(terms)
        }))
    }

    fn plan_conditional(&mut self, args: &[NodeId]) -> Result<CompiledExpr, ProgramError> {
        let [condition, then, otherwise] = args else {
            return Err("no such overload: _?_:_".into());
        };
        let conditional = ConditionalExpr {
            condition: self.plan_node(*condition)?,
            then: into_attribute(self.plan_node(*then)?),
            otherwise: into_attribute(self.plan_node(*otherwise)?),
        };
        let root = AttributeRoot::Conditional(Arc::new(conditional));
        Ok(CompiledExpr::Attr(Attribute { root, qualifiers: Vec::new() }))
    }

    fn plan_index(
        &mut self,
        args: &[NodeId],
        is_optional: bool,
    ) -> Result<CompiledExpr, ProgramError> {
        let [operand, index] = args else { return Err("no such overload: _[_]".into()) };
        let base = self.plan_node(*operand)?;
        let key = match self.plan_node(*index)? {
            CompiledExpr::Const(value @ (Value::Bool(_) | Value::Int(_) | Value::Uint(_))) => {
                QualifierKey::Const(value)
            }
            CompiledExpr::Const(Value::Double(value)) => QualifierKey::Const(Value::Double(value)),
            CompiledExpr::Const(Value::String(text)) => QualifierKey::Name(text.as_str().into()),
            CompiledExpr::Const(other) => {
                return Err(format!("invalid qualifier type: {}", other.go_type_name()).into());
            }
            other => QualifierKey::Computed(Arc::new(into_attribute(other))),
        };
        Ok(CompiledExpr::Attr(with_qualifier(base, Qualifier { key, is_optional })))
    }

    fn plan_optional_select(&mut self, args: &[NodeId]) -> Result<CompiledExpr, ProgramError> {
        let [operand, field] = args else { return Err("no such overload: _?._".into()) };
        let ExprKind::Literal(Literal::String(name)) = self.ast().kind(*field) else {
            return Err("no such overload: _?._".into());
        };
        let base = self.plan_node(*operand)?;
        let key = self.field_qualifier_key(*operand, name);
        Ok(CompiledExpr::Attr(with_qualifier(base, Qualifier { key, is_optional: true })))
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
        let call = CallExpr {
            name,
            dispatch: self.choose_dispatch(function, overloads, ids),
            args: args.into(),
        };
        if !is_conversion_function(name)
            || call.args.len() != 1
            || !matches!(call.args[0], CompiledExpr::Const(_))
        {
            return Ok(with_fast_path(CompiledExpr::Call(Box::new(call))));
        }
        let folded = fold_constant_call(&call)?;
        Ok(CompiledExpr::Const(folded))
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

    fn choose_dispatch(
        &self,
        function: &Function,
        overloads: &[usize],
        ids: &[NodeId],
    ) -> OverloadDispatch {
        if let [only] = overloads
            && let Some(overload) = function.overloads.get(*only)
        {
            let guarded = self.checked_ast.has_unsound_types
                || ids.iter().zip(&overload.params).any(|(&id, param)| {
                    !type_guarantees_match(self.checked_ast.type_of_node(id), param)
                });
            return OverloadDispatch::One { target: to_resolved_overload(overload), guarded };
        }
        let candidates = function.overloads.iter().filter(|o| o.params.len() == ids.len());
        OverloadDispatch::Many(candidates.map(to_resolved_overload).collect())
    }

    fn plan_list(
        &mut self,
        elements: &[NodeId],
        optional_indices: &[usize],
    ) -> Result<CompiledExpr, ProgramError> {
        let elements =
            elements.iter().map(|&e| self.plan_node(e)).collect::<Result<Vec<_>, _>>()?;
        if optional_indices.is_empty() {
            if let Some(constants) = fold_constant_elements(&elements) {
                return Ok(CompiledExpr::Const(Value::list(constants)));
            }
            return Ok(CompiledExpr::List {
                elements: elements.into(),
                is_optional: Box::default(),
            });
        }
        let is_optional =
            (0..elements.len()).map(|index| optional_indices.contains(&index)).collect();
        Ok(CompiledExpr::List { elements: elements.into(), is_optional })
    }

    fn plan_map(&mut self, entries: &[MapEntry]) -> Result<CompiledExpr, ProgramError> {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            planned.push(MapEntryExpr {
                key: self.plan_node(entry.key)?,
                value: self.plan_node(entry.value)?,
                is_optional: entry.is_optional,
            });
        }
        Ok(match fold_constant_map(&planned) {
            Some(map) => CompiledExpr::Const(map),
            None => CompiledExpr::Map(planned.into()),
        })
    }

    fn plan_message(
        &mut self,
        name: &Arc<str>,
        fields: &[StructField],
    ) -> Result<CompiledExpr, ProgramError> {
        let full: Arc<str> = name.strip_prefix('.').unwrap_or(name).into();
        let fields = fields
            .iter()
            .map(|f| Ok((Arc::clone(&f.name), self.plan_node(f.value)?, f.is_optional)))
            .collect::<Result<_, ProgramError>>()?;
        let message = WellKnownMessage::find_by_name(&full);
        Ok(CompiledExpr::Message(Box::new(MessageExpr { message, name: full, fields })))
    }
}

fn to_resolved_overload(overload: &Overload) -> ResolvedOverload {
    ResolvedOverload {
        params: overload.params.clone().into(),
        cost: overload.cost,
        implementation: overload.implementation,
        metered_implementation: overload.metered_implementation,
    }
}

/// Appends a qualifier to an attribute. For a conditional it is appended to both branches.
fn with_qualifier(base: CompiledExpr, qualifier: Qualifier) -> Attribute {
    let mut attr = into_attribute(base);
    push_qualifier(&mut attr, qualifier);
    attr
}

fn push_qualifier(attr: &mut Attribute, qualifier: Qualifier) {
    match &mut attr.root {
        AttributeRoot::Conditional(conditional) => {
            // The conditional was just created, so there is no other reference.
            if let Some(conditional) = Arc::get_mut(conditional) {
                push_qualifier(&mut conditional.then, qualifier.clone());
                push_qualifier(&mut conditional.otherwise, qualifier);
            }
        }
        _ => attr.qualifiers.push(qualifier),
    }
}

fn into_attribute(expr: CompiledExpr) -> Attribute {
    match expr {
        CompiledExpr::Attr(attr) => attr,
        other => Attribute { root: AttributeRoot::Value(Arc::new(other)), qualifiers: Vec::new() },
    }
}

fn fold_constant_elements(elements: &[CompiledExpr]) -> Option<Vec<Value<'static>>> {
    elements
        .iter()
        .map(|element| match element {
            CompiledExpr::Const(value) => Some(value.clone()),
            _ => None,
        })
        .collect()
}

/// The value of a map literal made of constants only.
fn fold_constant_map(entries: &[MapEntryExpr]) -> Option<Value<'static>> {
    let mut map = OwnedMap::new();
    for entry in entries {
        match (&entry.key, &entry.value) {
            (CompiledExpr::Const(key), CompiledExpr::Const(value)) if !entry.is_optional => {
                map.set(key.clone(), value.clone());
            }
            _ => return None,
        }
    }
    Some(Value::Map(Map::from_owned(map)))
}

fn fold_constant_call(call: &CallExpr) -> Result<Value<'static>, ProgramError> {
    let Some(CompiledExpr::Const(argument)) = call.args.first() else {
        return Err("no constant".into());
    };
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
        pattern_size: pattern.chars().count() as u64,
        text,
        match_limit: limit,
    };
    Ok(Ok(CompiledExpr::Regex(Box::new(call))))
}

/// Whether the function is a type conversion, which is folded if its argument is constant.
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

/// Whether a value of this static type always matches the parameter at run time.
fn type_guarantees_match(ty: &Type, param: &Type) -> bool {
    match (ty, param) {
        (_, Type::Dyn | Type::Param(_)) => true,
        // Null matches message parameters, and wrappers may hold null.
        (Type::Dyn | Type::Error | Type::Null | Type::Wrapper(_), _) => false,
        (Type::List(a), Type::List(b)) => type_guarantees_match(a, b),
        (Type::Map(k1, v1), Type::Map(k2, v2)) => {
            type_guarantees_match(k1, k2) && type_guarantees_match(v1, v2)
        }
        (Type::Optional(a), Type::Optional(b)) => type_guarantees_match(a, b),
        (Type::Type(_), Type::Type(_)) => true,
        _ => ty == param,
    }
}

fn literal_value(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(i) => Value::Int(*i),
        Literal::Uint(u) => Value::Uint(*u),
        Literal::Double(d) => Value::Double(*d),
        Literal::String(text) => Value::String(Str::Owned(Arc::clone(text))),
        Literal::Bytes(bytes) => Value::Bytes(Bytes::Owned(Arc::clone(bytes))),
    }
}
