//! Type-checks calls: finds the matching overloads and the result type.

use std::sync::Arc;

use super::unify::TypeSubstitution;
use super::{ResolvedReference, TypeChecker};
use crate::ast::{ExprKind, Literal, NodeId};
use crate::function::Function;
use crate::static_type::Type;

impl TypeChecker<'_> {
    pub(super) fn check_call(
        &mut self,
        id: NodeId,
        target: Option<NodeId>,
        function: &Arc<str>,
        args: &[NodeId],
    ) {
        if **function == *"_?._" {
            return self.check_optional_select(id, args);
        }
        for &arg in args {
            self.check_node(arg);
        }
        let env = self.env;
        let Some(target) = target else {
            let name = function.strip_prefix('.').unwrap_or(function);
            return match env.functions().get(name) {
                Some(found) => self.resolve_overloads(id, found, None, args, false),
                None => self.report_undeclared(id, function),
            };
        };
        if let Some((_, prefix)) = self.qualified_name(target) {
            let name = format!("{prefix}.{function}");
            if let Some(found) = env.functions().get(name.strip_prefix('.').unwrap_or(&name)) {
                return self.resolve_overloads(id, found, None, args, true);
            }
        }
        self.check_node(target);
        match env.functions().get(function) {
            Some(found) => self.resolve_overloads(id, found, Some(target), args, false),
            None => self.report_undeclared(id, function),
        }
    }

    /// Checks `operand.?field`. The parser represents it as a call whose second argument is the field name as a
    /// string literal.
    fn check_optional_select(&mut self, id: NodeId, args: &[NodeId]) {
        let [operand, field] = args else {
            self.set_node_type(id, Type::Error);
            let message = format!(
                "unsupported optional field selection: incorrect signature. argument count: {}",
                args.len()
            );
            return self.report_issue(id, message);
        };
        let ExprKind::Literal(Literal::String(name)) = self.ast.kind(*field) else {
            self.set_node_type(id, Type::Error);
            let message = "unsupported optional field selection".to_owned();
            return self.report_issue(*field, message);
        };
        self.set_node_type(*field, Type::String);
        let name = Arc::clone(name);
        let ty = self.check_field_selection(id, *operand, &name, true);
        let ty = self.type_substitution.resolve_type(&ty, false);
        self.set_node_type(id, ty);
    }

    fn resolve_overloads(
        &mut self,
        id: NodeId,
        function: &Function,
        target: Option<NodeId>,
        args: &[NodeId],
        namespaced: bool,
    ) {
        if matches!(function.name, "_&&_" | "_||_") {
            return self.check_logical_operator(id, function.name, args);
        }
        let argument_types: Vec<Type> =
            target.iter().chain(args).map(|&arg| self.node_type_or_error(arg)).collect();
        let mut result: Option<Type> = None;
        let mut matched = Vec::new();
        for (position, overload) in function.overloads.iter().enumerate() {
            if overload.is_receiver_style != target.is_some() {
                continue;
            }
            let mut instance = TypeParameterBindings::default();
            let params: Vec<Type> = overload
                .param_types
                .iter()
                .map(|param| instance.instantiate_type(param, &mut self.type_substitution))
                .collect();
            let returns =
                instance.instantiate_type(&overload.result_type, &mut self.type_substitution);
            if !self.type_substitution.try_assign_all_types(&argument_types, &params) {
                continue;
            }
            matched.push(position);
            let returns = self.type_substitution.resolve_result_type(&returns, params.len());
            result = Some(match result {
                None => returns,
                Some(Type::Dyn) => Type::Dyn,
                Some(first) if first == returns => first,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(ty) => {
                self.node_references[id] = Some(ResolvedReference::Function {
                    name: function.name,
                    overloads: matched,
                    namespaced,
                });
                self.set_node_type(id, ty);
            }
            None => {
                let shown: Vec<String> = argument_types
                    .iter()
                    .map(|ty| self.type_substitution.resolve_type(ty, true).to_string())
                    .collect();
                let signature = match (target, shown.split_first()) {
                    (Some(_), Some((receiver, rest))) => {
                        format!("{receiver}.({})", rest.join(", "))
                    }
                    _ => format!("({})", shown.join(", ")),
                };
                let name = function.name;
                self.report_issue(
                    id,
                    format!("found no matching overload for '{name}' applied to '{signature}'"),
                );
                self.set_node_type(id, Type::Error);
            }
        }
    }

    /// Checks `&&` or `||`. The issue is reported at the operand that is not a bool, not at the operator.
    fn check_logical_operator(&mut self, id: NodeId, name: &'static str, args: &[NodeId]) {
        let mut fits = true;
        for &arg in args {
            let ty = self.node_type_or_error(arg);
            if !self.type_substitution.try_assign_type(&ty, &Type::Bool) {
                self.report_issue(arg, format!("expected type 'bool' but found '{ty}'"));
                fits = false;
            }
        }
        self.set_node_type(id, if fits { Type::Bool } else { Type::Error });
        self.node_references[id] =
            Some(ResolvedReference::Function { name, overloads: vec![0], namespaced: false });
    }
}

/// The type variables that replace the type parameters of an overload in one call.
#[derive(Default)]
struct TypeParameterBindings {
    type_variables: Vec<(&'static str, Type)>,
}

impl TypeParameterBindings {
    fn instantiate_type(&mut self, ty: &Type, substitution: &mut TypeSubstitution<'_>) -> Type {
        match ty {
            Type::Param(name) => {
                if let Some((_, var)) = self.type_variables.iter().find(|(param, _)| param == name)
                {
                    return var.clone();
                }
                let var = substitution.fresh_type_variable();
                self.type_variables.push((name, var.clone()));
                var
            }
            Type::List(element) => Type::list_type_of(self.instantiate_type(element, substitution)),
            Type::Map(key, value) => Type::map_type_of(
                self.instantiate_type(key, substitution),
                self.instantiate_type(value, substitution),
            ),
            Type::Optional(inner) => {
                Type::optional_type_of(self.instantiate_type(inner, substitution))
            }
            Type::Type(Some(inner)) => {
                Type::Type(Some(self.instantiate_type(inner, substitution).into()))
            }
            _ => ty.clone(),
        }
    }
}
