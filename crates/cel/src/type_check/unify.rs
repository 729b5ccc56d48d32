//! Type unification: the bindings of type variables, and whether types are assignable.

use std::collections::HashMap;
use std::sync::Arc;

use crate::compile_budget::BudgetExhausted;
use crate::function::StepBudget;
use crate::static_type::Type;

/// The maximum number of types that the checker visits for one expression, including nested types.
/// A short expression can have a large type: each `.map(x, {x: x})` of a chain doubles the type.
/// The limit also bounds the memory of types and the length of messages about them.
const STEPS_MAX: u64 = 2_000_000;

/// The bindings of type variables. Bindings that a failed unification made are undone.
#[derive(Debug)]
pub(super) struct TypeSubstitution<'w> {
    /// The remaining steps of this expression; `shared_step_budget` is that of the whole group.
    step_budget: StepBudget,
    shared_step_budget: &'w mut StepBudget,
    is_budget_exhausted: bool,
    /// Whether the result type of a call contained a free type variable. A later use then binds it,
    /// although the value may have another type.
    has_unsound_types: bool,
    type_variable_bindings: Vec<Option<Type>>,
    /// Previous bindings, to restore if the current unification fails.
    binding_undo_log: Vec<(u32, Option<Type>)>,
}

impl<'w> TypeSubstitution<'w> {
    pub(super) fn new(shared_step_budget: &'w mut StepBudget) -> Self {
        let step_budget = StepBudget::new(STEPS_MAX);
        Self {
            step_budget,
            shared_step_budget,
            is_budget_exhausted: false,
            has_unsound_types: false,
            type_variable_bindings: Vec::new(),
            binding_undo_log: Vec::new(),
        }
    }

    /// The message for an exhausted step budget. In that case all other issues are meaningless.
    pub(super) fn budget_exhausted_message(&mut self) -> Option<String> {
        if !self.is_budget_exhausted {
            None
        } else if self.step_budget.spend_steps(1).is_err() {
            Some("the types of this expression are too large".to_owned())
        } else {
            Some(BudgetExhausted.to_string())
        }
    }

    /// The type of the result of a call.
    pub(super) fn resolve_result_type(&mut self, ty: &Type, n_arguments: usize) -> Type {
        let resolved = self.resolve_type(ty, false);
        self.has_unsound_types |= n_arguments > 0 && has_type_variable(&resolved);
        resolved
    }

    /// Reports whether the type of a node may differ from the type of its value.
    pub(super) fn has_unsound_types(&self) -> bool {
        self.has_unsound_types
    }

    /// Spends a step; returns false if none is left.
    fn try_spend_step(&mut self) -> bool {
        self.is_budget_exhausted |= self.step_budget.spend_steps(1).is_err()
            || self.shared_step_budget.spend_steps(1).is_err();
        !self.is_budget_exhausted
    }

    /// A new unbound type variable.
    pub(super) fn fresh_type_variable(&mut self) -> Type {
        self.type_variable_bindings.push(None);
        Type::Var(self.type_variable_bindings.len() as u32 - 1)
    }

    /// Reports whether values of the types `from` are assignable to `to`; binds type variables.
    pub(super) fn try_assign_all_types(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.binding_undo_log.clear();
        let fits = from.len() == to.len() && from.iter().zip(to).all(|(a, b)| self.unify(a, b));
        if !fits {
            while let Some((var, old)) = self.binding_undo_log.pop() {
                if let Some(binding) = self.type_variable_bindings.get_mut(var as usize) {
                    *binding = old;
                }
            }
        }
        fits
    }

    /// Reports whether `b` is assignable to `a`; binds type variables.
    pub(super) fn try_assign_type(&mut self, a: &Type, b: &Type) -> bool {
        self.try_assign_all_types(std::slice::from_ref(a), std::slice::from_ref(b))
    }

    /// Replaces type variables by their bindings, and free ones by `dyn` if `free_to_dyn`.
    pub(super) fn resolve_type(&mut self, ty: &Type, free_to_dyn: bool) -> Type {
        self.substitute_type_variables(ty, free_to_dyn, None).unwrap_or_else(|| ty.clone())
    }

    /// Replaces the type variables of all node types. The types share most of the types nested in
    /// them, so replaced types are cached.
    pub(super) fn resolve_all_types<'t>(
        &mut self,
        types: impl Iterator<Item = &'t Option<Type>>,
    ) -> Vec<Type> {
        let mut known = TypeSubstitutionCache::new();
        let resolved = types.map(|ty| match ty {
            Some(ty) => self
                .substitute_type_variables(ty, true, Some(&mut known))
                .unwrap_or_else(|| ty.clone()),
            None => Type::Error,
        });
        resolved.collect()
    }

    /// The type with its variables replaced; `None` if there is nothing to replace.
    fn substitute_type_variables(
        &mut self,
        ty: &Type,
        to_dyn: bool,
        mut known: Option<&mut TypeSubstitutionCache>,
    ) -> Option<Type> {
        if !self.try_spend_step() {
            return Some(Type::Error);
        }
        let mut inner =
            |part: &Arc<Type>| self.substitute_nested_type(part, to_dyn, known.as_deref_mut());
        match ty {
            Type::Var(var) => match self.find_type_binding(*var).cloned() {
                Some(bound) => {
                    Some(self.substitute_type_variables(&bound, to_dyn, known).unwrap_or(bound))
                }
                None => to_dyn.then_some(Type::Dyn),
            },
            Type::List(element) => inner(element).map(Type::List),
            Type::Map(key, value) => match (inner(key), inner(value)) {
                (None, None) => None,
                (new_key, new_value) => Some(Type::Map(
                    new_key.unwrap_or_else(|| Arc::clone(key)),
                    new_value.unwrap_or_else(|| Arc::clone(value)),
                )),
            },
            Type::Optional(value) => inner(value).map(Type::Optional),
            Type::Type(Some(value)) => inner(value).map(|value| Type::Type(Some(value))),
            _ => None,
        }
    }

    fn substitute_nested_type(
        &mut self,
        part: &Arc<Type>,
        to_dyn: bool,
        mut known: Option<&mut TypeSubstitutionCache>,
    ) -> Option<Arc<Type>> {
        if let Some(found) = known.as_deref().and_then(|known| known.get(&Arc::as_ptr(part))) {
            return found.clone();
        }
        let replaced =
            self.substitute_type_variables(part, to_dyn, known.as_deref_mut()).map(Arc::new);
        if let Some(known) = known {
            known.insert(Arc::as_ptr(part), replaced.clone());
        }
        replaced
    }

    fn find_type_binding(&self, var: u32) -> Option<&Type> {
        self.type_variable_bindings.get(var as usize)?.as_ref()
    }

    fn bind_type_variable(&mut self, var: u32, ty: Type) {
        if let Some(binding) = self.type_variable_bindings.get_mut(var as usize) {
            self.binding_undo_log.push((var, binding.replace(ty)));
        }
    }

    fn unify(&mut self, a: &Type, b: &Type) -> bool {
        if !self.try_spend_step() {
            return true;
        }
        if let Type::Var(var) = b {
            match self.unify_variable(a, *var) {
                VariableUnification::Unified => return true,
                VariableUnification::BoundToOther => return false,
                VariableUnification::Circular => {}
            }
        }
        if let Type::Var(var) = a {
            return matches!(self.unify_variable(b, *var), VariableUnification::Unified);
        }
        match (a, b) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(x), Type::List(y)) | (Type::Optional(x), Type::Optional(y)) => {
                self.unify(x, y)
            }
            (Type::Map(k1, v1), Type::Map(k2, v2)) => self.unify(k1, k2) && self.unify(v1, v2),
            (Type::Wrapper(x), Type::Wrapper(y)) => x == y,
            (Type::Wrapper(x), y) | (y, Type::Wrapper(x)) => **x == *y,
            _ => a == b,
        }
    }

    /// Unifies a variable with a type: binds a free variable, widens a bound one.
    fn unify_variable(&mut self, ty: &Type, var: u32) -> VariableUnification {
        if *ty == Type::Var(var) {
            return VariableUnification::Unified;
        }
        if let Some(bound) = self.find_type_binding(var).cloned() {
            if *ty == bound {
                return VariableUnification::Unified;
            }
            if self.unify(ty, &bound) {
                let general = more_general_type(ty, &bound).clone();
                if self.passes_occurs_check(var, &general) {
                    self.bind_type_variable(var, general);
                }
                return VariableUnification::Unified;
            }
            return VariableUnification::BoundToOther;
        }
        if self.passes_occurs_check(var, ty) {
            self.bind_type_variable(var, ty.clone());
            return VariableUnification::Unified;
        }
        VariableUnification::Circular
    }

    /// Performs the occurs check: a type variable must not be bound to a type that contains it.
    fn passes_occurs_check(&mut self, var: u32, ty: &Type) -> bool {
        if !self.try_spend_step() {
            return true;
        }
        match ty {
            Type::Var(other) if *other == var => false,
            Type::Var(other) => match self.find_type_binding(*other).cloned() {
                Some(bound) => self.passes_occurs_check(var, &bound),
                None => true,
            },
            Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => {
                self.passes_occurs_check(var, inner)
            }
            Type::Map(key, value) => {
                self.passes_occurs_check(var, key) && self.passes_occurs_check(var, value)
            }
            _ => true,
        }
    }
}

/// Replaced types by the address of the original. The types outlive this map, so an address
/// identifies one type.
type TypeSubstitutionCache = HashMap<*const Type, Option<Arc<Type>>>;

/// Reports whether a variable occurs in a type.
fn has_type_variable(ty: &Type) -> bool {
    match ty {
        Type::Var(_) => true,
        Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => {
            has_type_variable(inner)
        }
        Type::Map(key, value) => has_type_variable(key) || has_type_variable(value),
        _ => false,
    }
}

enum VariableUnification {
    Unified,
    BoundToOther,
    Circular,
}

/// Reports whether `null` is an acceptable value of a type.
fn is_nullable(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null
            | Type::Optional(_)
            | Type::Wrapper(_)
            | Type::Opaque(_)
            | Type::Object(_)
            | Type::Duration
            | Type::Timestamp
    )
}

/// The more general of two assignable types.
pub(super) fn more_general_type<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(a, b) { a } else { b }
}

fn is_equal_or_less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Var(_), _) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::List(x), Type::List(y)) | (Type::Optional(x), Type::Optional(y)) => {
            is_equal_or_less_specific(x, y)
        }
        (Type::Map(k1, v1), Type::Map(k2, v2)) => {
            is_equal_or_less_specific(k1, k2) && is_equal_or_less_specific(v1, v2)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => a == b,
    }
}
