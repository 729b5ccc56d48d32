//! Compiles a checked AST to the intermediate representation.
//!
//! The planner folds constant lists, maps and conversions. If a constant conversion fails, the
//! whole expression has no program, as in Kubernetes.

mod plan_call;
mod plan_comprehension;

use std::sync::Arc;

use crate::ast::{Ast, ExprKind, Literal, MapLiteralEntry, MessageLiteralField, NodeId};
use crate::compile_budget::CompileBudget;
use crate::environment::Environment;
use crate::ir::{
    Attribute, AttributeRoot, CompiledExpr, ConditionalExpr, MapEntryExpr, MessageExpr, Qualifier,
    QualifierKey,
};
use crate::program::ProgramError;
use crate::static_type::Type;
use crate::string_predicate_fast_path::with_fast_path;
use crate::type_check::{CheckedAst, ResolvedReference};
use crate::value::{Bytes, Map, OwnedMap, Str, Value};
use crate::well_known_message::WellKnownMessage;

/// A compiled expression and the number of local variables it needs.
pub(crate) struct Plan {
    pub(crate) compiled_expr: CompiledExpr,
    pub(crate) n_local_slots: usize,
}

/// Compiles the subtree of a node that refers to no variable of an enclosing macro. The error is
/// the message about a constant that cannot be folded.
pub(crate) fn plan_expression(
    checked_ast: &CheckedAst,
    id: NodeId,
    environment: &Environment,
    compile_budget: &mut CompileBudget,
) -> Result<Plan, ProgramError> {
    let mut planner = Planner {
        checked_ast,
        env: environment,
        local_slots: Vec::new(),
        n_local_slots: 0,
        compile_budget,
    };
    let expr = planner.plan_node(id)?;
    Ok(Plan { compiled_expr: expr, n_local_slots: planner.n_local_slots })
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
        Ok(CompiledExpr::Attr(Attribute { attribute_root: root, qualifiers: Vec::new() }))
    }

    fn plan_select(
        &mut self,
        operand: NodeId,
        field: &Arc<str>,
        test: bool,
    ) -> Result<CompiledExpr, ProgramError> {
        let base = self.plan_node(operand)?;
        let key = self.field_qualifier_key(operand, field);
        let attr = append_qualifier_to_expr(base, Qualifier { key, is_optional_qualifier: false });
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

    /// Flattens nested `&&` or `||`. The order of evaluation and the absorbed errors stay the same.
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
                CompiledExpr::FastPath(fast_path) if nested => match fast_path.fallback_expr {
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
            then_branch: into_attribute(self.plan_node(*then)?),
            else_branch: into_attribute(self.plan_node(*otherwise)?),
        };
        let root = AttributeRoot::Conditional(Arc::new(conditional));
        Ok(CompiledExpr::Attr(Attribute { attribute_root: root, qualifiers: Vec::new() }))
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
        Ok(CompiledExpr::Attr(append_qualifier_to_expr(
            base,
            Qualifier { key, is_optional_qualifier: is_optional },
        )))
    }

    fn plan_optional_select(&mut self, args: &[NodeId]) -> Result<CompiledExpr, ProgramError> {
        let [operand, field] = args else { return Err("no such overload: _?._".into()) };
        let ExprKind::Literal(Literal::String(name)) = self.ast().kind(*field) else {
            return Err("no such overload: _?._".into());
        };
        let base = self.plan_node(*operand)?;
        let key = self.field_qualifier_key(*operand, name);
        Ok(CompiledExpr::Attr(append_qualifier_to_expr(
            base,
            Qualifier { key, is_optional_qualifier: true },
        )))
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
                return Ok(CompiledExpr::Const(Value::owned_list_value(constants)));
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

    fn plan_map(&mut self, entries: &[MapLiteralEntry]) -> Result<CompiledExpr, ProgramError> {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            planned.push(MapEntryExpr {
                key: self.plan_node(entry.key)?,
                value: self.plan_node(entry.value)?,
                is_optional_entry: entry.is_optional_entry,
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
        fields: &[MessageLiteralField],
    ) -> Result<CompiledExpr, ProgramError> {
        let full: Arc<str> = name.strip_prefix('.').unwrap_or(name).into();
        let fields = fields
            .iter()
            .map(|f| Ok((Arc::clone(&f.name), self.plan_node(f.value)?, f.is_optional_field)))
            .collect::<Result<_, ProgramError>>()?;
        let message = WellKnownMessage::find_message_by_name(&full);
        Ok(CompiledExpr::Message(Box::new(MessageExpr {
            message,
            name: full,
            field_exprs: fields,
        })))
    }
}

/// Appends a qualifier to an attribute. For a conditional it is appended to both branches.
fn append_qualifier_to_expr(base: CompiledExpr, qualifier: Qualifier) -> Attribute {
    let mut attr = into_attribute(base);
    push_qualifier(&mut attr, qualifier);
    attr
}

fn push_qualifier(attr: &mut Attribute, qualifier: Qualifier) {
    match &mut attr.attribute_root {
        AttributeRoot::Conditional(conditional) => {
            // The conditional was just created, so there is no other reference.
            if let Some(conditional) = Arc::get_mut(conditional) {
                push_qualifier(&mut conditional.then_branch, qualifier.clone());
                push_qualifier(&mut conditional.else_branch, qualifier);
            }
        }
        AttributeRoot::Variable(_) | AttributeRoot::Slot(_) | AttributeRoot::Value(_) => {
            attr.qualifiers.push(qualifier);
        }
    }
}

fn into_attribute(expr: CompiledExpr) -> Attribute {
    match expr {
        CompiledExpr::Attr(attr) => attr,
        other => Attribute {
            attribute_root: AttributeRoot::Value(Arc::new(other)),
            qualifiers: Vec::new(),
        },
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
            (CompiledExpr::Const(key), CompiledExpr::Const(value)) if !entry.is_optional_entry => {
                map.set(key.clone(), value.clone());
            }
            _ => return None,
        }
    }
    Some(Value::Map(Map::from_owned_map(map)))
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
