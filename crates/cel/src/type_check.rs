//! Type checking: finds the type of every node and the overloads of every call.
//!
//! The procedure is cel-go's, so that an expression is accepted here exactly when Kubernetes
//! accepts it, with the same issues:
//! 1. Walk the tree; a call's arguments come before the call, its receiver after them.
//! 2. A selection is first tried as a qualified name, then as a field.
//! 3. A call matches every overload whose parameters accept the argument types. If the result types
//!    of these overloads differ, the type of the call is `dyn`.
//! 4. Type variables that are still free at the end are `dyn`.

mod call_type_check;
mod literal_checks;
mod unify;

use std::sync::Arc;

use crate::ast::{
    Ast, Comprehension, ExprKind, Literal, MapLiteralEntry, MessageLiteralField, NodeId, NodeMap,
};
use crate::compile_budget::CompileBudget;
use crate::environment::Environment;
use crate::static_type::Type;
use crate::well_known_message::WellKnownMessage;
use unify::{TypeSubstitution, more_general_type};

/// An AST with the type and the reference of each node.
#[derive(Debug)]
pub(crate) struct CheckedAst {
    pub(crate) ast: Ast,
    node_types: NodeMap<Type>,
    node_references: NodeMap<Option<ResolvedReference>>,
    /// Whether a value may have another type than its node, as in `dyn(x).distinct().min()`, where the checker
    /// infers the type from the use and not from `x`.
    pub(crate) has_unsound_types: bool,
}

/// The declaration that a name or a call refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResolvedReference {
    /// A variable of the environment.
    Variable(usize),
    /// A variable of an enclosing comprehension.
    Local(Arc<str>),
    /// A type used as a value.
    Type(Arc<str>),
    /// A constant of the environment.
    Constant(i64),
    /// A function, and the indices of the overloads that may apply. If `namespaced` is true, the receiver is part
    /// of the function name.
    Function { name: &'static str, overloads: Vec<usize>, namespaced: bool },
}

impl CheckedAst {
    pub(crate) fn type_of_node(&self, id: NodeId) -> &Type {
        &self.node_types[id]
    }

    pub(crate) fn reference_of_node(&self, id: NodeId) -> Option<&ResolvedReference> {
        self.node_references[id].as_ref()
    }

    /// The references of all names and calls.
    pub(crate) fn resolved_references(&self) -> impl Iterator<Item = &ResolvedReference> {
        self.node_references.iter().flatten()
    }
}

/// Issues as (code point offset, message).
pub(crate) type CheckIssues = Vec<(u32, String)>;

/// Checks a tree in an environment, literals included.
pub(crate) fn check(
    ast: Ast,
    environment: &Environment,
    compile_budget: &mut CompileBudget,
) -> Result<CheckedAst, CheckIssues> {
    let mut checker = TypeChecker {
        env: environment,
        ast: &ast,
        node_types: NodeMap::new(vec![None; ast.nodes.len()]),
        node_references: NodeMap::new(vec![None; ast.nodes.len()]),
        type_substitution: TypeSubstitution::new(&mut compile_budget.step_budget),
        local_variables: Vec::new(),
        issues: Vec::new(),
    };
    checker.check_node(ast.root_node);
    let TypeChecker {
        node_types: types,
        node_references: references,
        type_substitution: mut substitution,
        issues: complaints,
        ..
    } = checker;
    if !complaints.is_empty() {
        return Err(complaints);
    }
    let types = NodeMap::new(substitution.resolve_all_types(types.iter()));
    if let Some(message) = substitution.budget_exhausted_message() {
        return Err(vec![(0, message)]);
    }
    let has_unsound_types = substitution.has_unsound_types();
    let checked =
        CheckedAst { ast, node_types: types, node_references: references, has_unsound_types };
    let complaints = literal_checks::validate_literals(&checked, compile_budget);
    if complaints.is_empty() { Ok(checked) } else { Err(complaints) }
}

struct TypeChecker<'e> {
    env: &'e Environment,
    ast: &'e Ast,
    node_types: NodeMap<Option<Type>>,
    node_references: NodeMap<Option<ResolvedReference>>,
    type_substitution: TypeSubstitution<'e>,
    /// Local variables, innermost last.
    local_variables: Vec<(Arc<str>, Type)>,
    issues: CheckIssues,
}

impl TypeChecker<'_> {
    fn check_node(&mut self, id: NodeId) {
        let ast = self.ast;
        match ast.kind(id) {
            ExprKind::Literal(literal) => self.set_node_type(id, literal_type(literal)),
            ExprKind::Ident(name) => self.check_ident(id, name),
            ExprKind::Select { operand, field, test_only } => {
                self.check_select(id, *operand, field, *test_only);
            }
            ExprKind::Call { target, function, args } => {
                self.check_call(id, *target, function, args)
            }
            ExprKind::List { elements, optional_indices } => {
                self.check_list_literal(id, elements, optional_indices)
            }
            ExprKind::Map { entries } => self.check_map_literal(id, entries),
            ExprKind::Struct { name, fields } => self.check_message_literal(id, name, fields),
            ExprKind::Comprehension(comprehension) => self.check_comprehension(id, comprehension),
        }
    }

    fn report_issue(&mut self, id: NodeId, message: String) {
        self.issues.push((self.ast.source_offset(id), message));
    }

    fn set_node_type(&mut self, id: NodeId, ty: Type) {
        self.node_types[id] = Some(ty);
    }

    fn node_type_or_error(&self, id: NodeId) -> Type {
        self.node_types[id].clone().unwrap_or(Type::Error)
    }

    fn report_undeclared(&mut self, id: NodeId, name: &str) {
        self.report_issue(id, format!("undeclared reference to '{name}' (in container '')"));
        self.set_node_type(id, Type::Error);
    }

    fn check_ident(&mut self, id: NodeId, name: &str) {
        match self.resolve_name(name, name) {
            Some((reference, ty)) => {
                self.node_references[id] = Some(reference);
                self.set_node_type(id, ty);
            }
            None => self.report_undeclared(id, name),
        }
    }

    /// Resolves a simple or qualified name. `first` is its first part. If `first` is a local variable, the
    /// qualified name is a selection from that variable.
    fn resolve_name(&self, first: &str, name: &str) -> Option<(ResolvedReference, Type)> {
        if let Some((local, ty)) =
            self.local_variables.iter().rev().find(|(local, _)| **local == *first)
        {
            return (first == name)
                .then(|| (ResolvedReference::Local(Arc::clone(local)), ty.clone()));
        }
        let global = name.strip_prefix('.').unwrap_or(name);
        if let Some((index, ty)) = self.env.find_variable(global) {
            return Some((ResolvedReference::Variable(index), ty.clone()));
        }
        if let Some(ty) = self.env.find_named_type(global) {
            return Some((ResolvedReference::Type(global.into()), Type::Type(Some(Arc::new(ty)))));
        }
        // `NULL_VALUE` is the only enumeration value that the language itself defines.
        (global == "google.protobuf.NullValue.NULL_VALUE")
            .then_some((ResolvedReference::Constant(0), Type::Int))
    }

    fn check_select(&mut self, id: NodeId, operand: NodeId, field: &str, test_only: bool) {
        if !test_only
            && let Some((first, name)) = self.qualified_name(id)
            && let Some((reference, ty)) = self.resolve_name(&first, &name)
        {
            self.node_references[id] = Some(reference);
            self.set_node_type(id, ty);
            return;
        }
        let ty = self.check_field_selection(id, operand, field, false);
        let ty =
            if test_only { Type::Bool } else { self.type_substitution.resolve_type(&ty, false) };
        self.set_node_type(id, ty);
    }

    /// The first part and the whole of `a.b.c`, if it consists of plain selections from an
    /// identifier.
    fn qualified_name(&self, id: NodeId) -> Option<(String, String)> {
        let mut parts: Vec<&str> = Vec::new();
        let mut at = id;
        loop {
            match self.ast.kind(at) {
                ExprKind::Select { operand, field, test_only: false } => {
                    parts.push(field);
                    at = *operand;
                }
                ExprKind::Ident(name) => {
                    parts.push(name);
                    parts.reverse();
                    return Some((String::from(&**name), parts.join(".")));
                }
                ExprKind::Select { test_only: true, .. }
                | ExprKind::Literal(_)
                | ExprKind::Call { .. }
                | ExprKind::List { .. }
                | ExprKind::Map { .. }
                | ExprKind::Struct { .. }
                | ExprKind::Comprehension(_) => return None,
            }
        }
    }

    fn check_field_selection(
        &mut self,
        id: NodeId,
        operand: NodeId,
        field: &str,
        optional: bool,
    ) -> Type {
        self.check_node(operand);
        let operand_type =
            self.type_substitution.resolve_type(&self.node_type_or_error(operand), false);
        let (target, is_optional) = match operand_type {
            Type::Optional(inner) => ((*inner).clone(), true),
            other => (other, false),
        };
        let result = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object.field(field) {
                Some((_, ty)) => ty.clone(),
                None => {
                    self.report_issue(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            // These are declared as message types without a description.
            Type::Opaque(name) if name.starts_with("kubernetes.") => {
                self.report_issue(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            Type::Var(_) => {
                self.type_substitution.try_assign_type(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.report_issue(id, message);
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional_type_of(result) } else { result }
    }

    fn check_list_literal(&mut self, id: NodeId, elements: &[NodeId], optional_indices: &[usize]) {
        let mut joined: Option<Type> = None;
        for (index, &element) in elements.iter().enumerate() {
            self.check_node(element);
            let ty = self.check_element_type(element, optional_indices.contains(&index));
            joined = Some(self.join_element_types(joined, ty));
        }
        let element = joined.unwrap_or_else(|| self.type_substitution.fresh_type_variable());
        self.set_node_type(id, Type::list_type_of(element));
    }

    fn check_map_literal(&mut self, id: NodeId, entries: &[MapLiteralEntry]) {
        let mut joined: Option<(Type, Type)> = None;
        for entry in entries {
            self.check_node(entry.key);
            let key = self.node_type_or_error(entry.key);
            let (keys, values) = joined.map_or((None, None), |(k, v)| (Some(k), Some(v)));
            let keys = self.join_element_types(keys, key);
            self.check_node(entry.value);
            let value = self.check_element_type(entry.value, entry.is_optional_entry);
            joined = Some((keys, self.join_element_types(values, value)));
        }
        let (key, value) = match joined {
            Some(types) => types,
            None => (
                self.type_substitution.fresh_type_variable(),
                self.type_substitution.fresh_type_variable(),
            ),
        };
        self.set_node_type(id, Type::map_type_of(key, value));
    }

    /// The type of an element. An element written `?x` must have an optional type; its inner type
    /// counts.
    fn check_element_type(&mut self, element: NodeId, optional: bool) -> Type {
        let ty = self.node_type_or_error(element);
        if !optional {
            return ty;
        }
        match ty {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let message = format!("expected type 'optional_type({other})' but found '{other}'");
                self.report_issue(element, message);
                other
            }
        }
    }

    /// Joins the element type so far with that of the next element. Mixed types become `dyn` here;
    /// the literal checks reject them where Kubernetes does.
    fn join_element_types(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.type_substitution.try_assign_type(&previous, &current) {
            more_general_type(&previous, &current).clone()
        } else {
            Type::Dyn
        }
    }

    fn check_message_literal(
        &mut self,
        id: NodeId,
        name: &Arc<str>,
        fields: &[MessageLiteralField],
    ) {
        let full = name.strip_prefix('.').unwrap_or(name);
        let Some(ty) = self.env.find_message_type(full).or_else(|| self.env.find_named_type(full))
        else {
            return self.report_undeclared(id, name);
        };
        let message = WellKnownMessage::find_message_by_name(full);
        if message.is_none() && !matches!(ty, Type::Object(_)) {
            self.report_issue(id, format!("'{}' is not a message type", ty.runtime_type_name()));
            return self.set_node_type(id, Type::Error);
        }
        self.node_references[id] = Some(ResolvedReference::Type(full.into()));
        self.set_node_type(id, ty.clone());
        for field in fields {
            self.check_node(field.value);
            let expected = match (&message, &ty) {
                (Some(message), _) => message.field(&field.name),
                (None, Type::Object(object)) => object.field(&field.name).map(|(_, ty)| ty.clone()),
                _ => None,
            };
            let expected = expected.unwrap_or_else(|| {
                self.issues.push((field.colon_offset, format!("undefined field '{}'", field.name)));
                Type::Error
            });
            let value = self.check_element_type(field.value, field.is_optional_field);
            if !self.type_substitution.try_assign_type(&expected, &value) {
                let message = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{value}'",
                    field.name
                );
                self.issues.push((field.colon_offset, message));
            }
        }
    }

    fn check_comprehension(&mut self, id: NodeId, fold: &Comprehension) {
        self.check_node(fold.iter_range);
        self.check_node(fold.accu_init);
        let range =
            self.type_substitution.resolve_type(&self.node_type_or_error(fold.iter_range), false);
        let accu = self.node_type_or_error(fold.accu_init);
        let depth = self.local_variables.len();
        self.local_variables.push((Arc::clone(&fold.accu_var), accu.clone()));

        let two = fold.iter_var2.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.type_substitution.try_assign_type(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.report_issue(fold.iter_range, message);
                (Type::Error, Type::Error)
            }
        };
        self.local_variables.push((Arc::clone(&fold.iter_var), first));
        if let Some(var) = &fold.iter_var2 {
            self.local_variables.push((Arc::clone(var), second));
        }
        self.check_node(fold.loop_condition);
        self.check_node_has_type(fold.loop_condition, &Type::Bool);
        self.check_node(fold.loop_step);
        self.check_node_has_type(fold.loop_step, &accu);
        self.local_variables.truncate(depth + 1);
        self.check_node(fold.result_expr);
        self.local_variables.truncate(depth);
        let ty =
            self.type_substitution.resolve_type(&self.node_type_or_error(fold.result_expr), false);
        self.set_node_type(id, ty);
    }

    fn check_node_has_type(&mut self, id: NodeId, expected: &Type) {
        let found = self.node_type_or_error(id);
        if !self.type_substitution.try_assign_type(expected, &found) {
            self.report_issue(id, format!("expected type '{expected}' but found '{found}'"));
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
