//! What belongs to each namespace, and a number for it.
//!
//! Who has the number of a namespace at hand need not read its name, which lies far from everything
//! else, to tell it from others.

use std::sync::Arc;

use crate::names::Names;
use crate::slab::Slab;
use crate::snapshot::Scope;

/// The number of a namespace, or [`CLUSTER`]. Is used again when the namespace is gone.
pub(crate) type NamespaceNumber = u32;

/// The number of what is no namespace.
pub(crate) const CLUSTER: NamespaceNumber = 0;

/// The namespaces, of which old versions stay readable.
#[derive(Debug, Clone, Default)]
pub(crate) struct Namespaces {
    names: Names<Namespace>,
    /// One less than the number of each.
    numbers: Slab<()>,
}

#[derive(Debug, Clone)]
struct Namespace {
    number: NamespaceNumber,
    scope: Arc<Scope>,
}

impl Namespaces {
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn number(&self, name: &str) -> Option<NamespaceNumber> {
        self.names.get(name).map(|own| own.number)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Scope> {
        self.names.get(name).map(|own| own.scope.as_ref())
    }

    /// What belongs to a namespace, which is made if it is missing; `None` if there are no more
    /// numbers.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<(NamespaceNumber, &mut Scope)> {
        let number = match self.number(name) {
            Some(number) => number,
            None => self.numbers.insert(())?.checked_add(1)?,
        };
        let own = self.names.slot(name, || Namespace { number, scope: Arc::default() });
        Some((number, Arc::make_mut(&mut own.scope)))
    }

    /// Takes out a namespace.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(Namespace { number, .. }) = self.names.remove(name) {
            self.numbers.remove(number - 1);
        }
    }

    /// Visits every namespace, in no particular order.
    pub(crate) fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a Scope)) {
        self.names.for_each(&mut |name, own| visit(name, &own.scope));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_keeps_its_number_and_no_two_share_one() {
        let mut namespaces = Namespaces::default();
        let mut number = |name: &str| namespaces.get_mut(name).unwrap().0;
        let (a, b) = (number("a"), number("b"));
        assert!(a != b && a != CLUSTER && b != CLUSTER && number("a") == a);
        namespaces.remove("a");
        assert_eq!((namespaces.number("a"), namespaces.number("b")), (None, Some(b)));
        let c = namespaces.get_mut("c").unwrap().0;
        assert!(c == a && namespaces.get("c").is_some() && namespaces.get("a").is_none());
    }
}
