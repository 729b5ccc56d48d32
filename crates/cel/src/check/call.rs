//! Calls: which overloads take the arguments, and what type comes back.

use std::sync::Arc;

use super::unify::Substitution;
use super::{ResolvedReference, TypeChecker};
use crate::ast::{ExprKind, Literal, NodeId};
use crate::function::Function;
use crate::static_type::Type;

impl TypeChecker<'_> {
    pub(super) fn call(
        &mut self,
        id: NodeId,
        target: Option<NodeId>,
        function: &Arc<str>,
        args: &[NodeId],
    ) {
        if **function == *"_?._" {
            return self.optional_select(id, args);
        }
        for &arg in args {
            self.node(arg);
        }
        let env = self.env;
        let Some(target) = target else {
            let name = function.strip_prefix('.').unwrap_or(function);
            return match env.functions().get(name) {
                Some(found) => self.resolve_call(id, found, None, args, false),
                None => self.undeclared(id, function),
            };
        };
        if let Some((_, prefix)) = self.qualified_name(target) {
            let name = format!("{prefix}.{function}");
            if let Some(found) = env.functions().get(name.strip_prefix('.').unwrap_or(&name)) {
                return self.resolve_call(id, found, None, args, true);
            }
        }
        self.node(target);
        match env.functions().get(function) {
            Some(found) => self.resolve_call(id, found, Some(target), args, false),
            None => self.undeclared(id, function),
        }
    }

    /// `operand.?field`, which the parser writes as a call with the field as a literal.
    fn optional_select(&mut self, id: NodeId, args: &[NodeId]) {
        let [operand, field] = args else {
            self.set(id, Type::Error);
            let message = format!(
                "unsupported optional field selection: incorrect signature. argument count: {}",
                args.len()
            );
            return self.complain(id, message);
        };
        let ExprKind::Literal(Literal::String(name)) = self.ast.kind(*field) else {
            self.set(id, Type::Error);
            let message = "unsupported optional field selection".to_owned();
            return self.complain(*field, message);
        };
        self.set(*field, Type::String);
        let name = Arc::clone(name);
        let ty = self.select_field(id, *operand, &name, true);
        let ty = self.substitution.resolve(&ty, false);
        self.set(id, ty);
    }

    fn resolve_call(
        &mut self,
        id: NodeId,
        function: &Function,
        target: Option<NodeId>,
        args: &[NodeId],
        namespaced: bool,
    ) {
        if matches!(function.name, "_&&_" | "_||_") {
            return self.logic(id, function.name, args);
        }
        let argument_types: Vec<Type> =
            target.iter().chain(args).map(|&arg| self.get(arg)).collect();
        let mut result: Option<Type> = None;
        let mut matched = Vec::new();
        for (position, overload) in function.overloads.iter().enumerate() {
            if overload.is_member != target.is_some() {
                continue;
            }
            let mut instance = OverloadInstance::default();
            let params: Vec<Type> = overload
                .params
                .iter()
                .map(|param| instance.of(param, &mut self.substitution))
                .collect();
            let returns = instance.of(&overload.result, &mut self.substitution);
            if !self.substitution.assign_all(&argument_types, &params) {
                continue;
            }
            matched.push(position);
            let returns = self.substitution.resolve_result(&returns, params.len());
            result = Some(match result {
                None => returns,
                Some(Type::Dyn) => Type::Dyn,
                Some(first) if first == returns => first,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(ty) => {
                self.references[id.index()] = Some(ResolvedReference::Function {
                    name: function.name,
                    overloads: matched,
                    namespaced,
                });
                self.set(id, ty);
            }
            None => {
                let shown: Vec<String> = argument_types
                    .iter()
                    .map(|ty| self.substitution.resolve(ty, true).to_string())
                    .collect();
                let signature = match (target, shown.split_first()) {
                    (Some(_), Some((receiver, rest))) => {
                        format!("{receiver}.({})", rest.join(", "))
                    }
                    _ => format!("({})", shown.join(", ")),
                };
                let name = function.name;
                self.complain(
                    id,
                    format!("found no matching overload for '{name}' applied to '{signature}'"),
                );
                self.set(id, Type::Error);
            }
        }
    }

    /// `&&` and `||` blame the operand that is not a bool rather than the operator.
    fn logic(&mut self, id: NodeId, name: &'static str, args: &[NodeId]) {
        let mut fits = true;
        for &arg in args {
            let ty = self.get(arg);
            if !self.substitution.assign(&ty, &Type::Bool) {
                self.complain(arg, format!("expected type 'bool' but found '{ty}'"));
                fits = false;
            }
        }
        self.set(id, if fits { Type::Bool } else { Type::Error });
        self.references[id.index()] =
            Some(ResolvedReference::Function { name, overloads: vec![0], namespaced: false });
    }
}

/// The variables that stand for the type parameters of one overload in one call.
#[derive(Default)]
struct OverloadInstance {
    params: Vec<(&'static str, Type)>,
}

impl OverloadInstance {
    fn of(&mut self, ty: &Type, substitution: &mut Substitution<'_>) -> Type {
        match ty {
            Type::Param(name) => {
                if let Some((_, var)) = self.params.iter().find(|(param, _)| param == name) {
                    return var.clone();
                }
                let var = substitution.fresh();
                self.params.push((name, var.clone()));
                var
            }
            Type::List(element) => Type::list(self.of(element, substitution)),
            Type::Map(key, value) => {
                Type::map(self.of(key, substitution), self.of(value, substitution))
            }
            Type::Optional(inner) => Type::optional(self.of(inner, substitution)),
            Type::Type(Some(inner)) => Type::Type(Some(self.of(inner, substitution).into())),
            _ => ty.clone(),
        }
    }
}
