//! Type variables: which type each stands for, and whether two types go together.

use crate::ty::Type;

/// What the checker knows about its type variables. Assignments made while a comparison fails are
/// taken back.
#[derive(Debug, Default)]
pub(super) struct Substitution {
    bound: Vec<Option<Type>>,
    /// Bindings to restore when the comparison under way fails.
    undo: Vec<(u32, Option<Type>)>,
}

impl Substitution {
    /// A type that stands for nothing yet.
    pub(super) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Var(self.bound.len() as u32 - 1)
    }

    /// Whether values of the types `from` can be passed where `to` are wanted; learns from it.
    pub(super) fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.undo.clear();
        let fits = from.len() == to.len() && from.iter().zip(to).all(|(a, b)| self.unify(a, b));
        if !fits {
            while let Some((var, old)) = self.undo.pop() {
                self.bound[var as usize] = old;
            }
        }
        fits
    }

    /// Whether `b` can be used where `a` is wanted; learns from it.
    pub(super) fn assign(&mut self, a: &Type, b: &Type) -> bool {
        self.assign_all(std::slice::from_ref(a), std::slice::from_ref(b))
    }

    /// Replaces variables by what they stand for, free ones by `dyn` if `free_to_dyn`.
    pub(super) fn resolve(&self, ty: &Type, free_to_dyn: bool) -> Type {
        let inner = |t: &Type| self.resolve(t, free_to_dyn);
        match ty {
            Type::Var(var) => match self.binding(*var) {
                Some(bound) => self.resolve(bound, free_to_dyn),
                None if free_to_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(element) => Type::list(inner(element)),
            Type::Map(key, value) => Type::map(inner(key), inner(value)),
            Type::Optional(value) => Type::optional(inner(value)),
            Type::Type(Some(value)) => Type::Type(Some(inner(value).into())),
            _ => ty.clone(),
        }
    }

    fn binding(&self, var: u32) -> Option<&Type> {
        self.bound.get(var as usize)?.as_ref()
    }

    fn bind(&mut self, var: u32, ty: Type) {
        let slot = &mut self.bound[var as usize];
        self.undo.push((var, slot.replace(ty)));
    }

    fn unify(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Var(var) = b {
            match self.stands_for(a, *var) {
                Fit::Yes => return true,
                Fit::BoundToOther => return false,
                Fit::Circular => {}
            }
        }
        if let Type::Var(var) = a {
            return matches!(self.stands_for(b, *var), Fit::Yes);
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

    /// Whether `var` can stand for `ty`, binding it if it is free and widening it if it is bound.
    fn stands_for(&mut self, ty: &Type, var: u32) -> Fit {
        if *ty == Type::Var(var) {
            return Fit::Yes;
        }
        if let Some(bound) = self.binding(var).cloned() {
            if *ty == bound {
                return Fit::Yes;
            }
            if self.unify(ty, &bound) {
                let general = most_general(ty, &bound).clone();
                if self.is_free_of(var, &general) {
                    self.bind(var, general);
                }
                return Fit::Yes;
            }
            return Fit::BoundToOther;
        }
        if self.is_free_of(var, ty) {
            self.bind(var, ty.clone());
            return Fit::Yes;
        }
        Fit::Circular
    }

    /// The occurs check: a variable never stands for a type that contains it.
    fn is_free_of(&self, var: u32, ty: &Type) -> bool {
        match ty {
            Type::Var(other) if *other == var => false,
            Type::Var(other) => self.binding(*other).is_none_or(|t| self.is_free_of(var, t)),
            Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => {
                self.is_free_of(var, inner)
            }
            Type::Map(key, value) => self.is_free_of(var, key) && self.is_free_of(var, value),
            _ => true,
        }
    }
}

enum Fit {
    Yes,
    BoundToOther,
    Circular,
}

/// Types for which `null` is an acceptable value.
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

/// The more general of two types that go together.
pub(super) fn most_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
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
