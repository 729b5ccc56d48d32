//! The revision counter that orders all writes.

use std::fmt;

/// The number of a state of the store. Each successful write increments it.
///
/// Clients see it in decimal as `resourceVersion`. Zero is never the revision of a state, so it can
/// mean "any" or "before everything" where a client sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(u64);

impl Revision {
    /// The revision before every state. A watch after it delivers the whole history, and a read that must
    /// not be older than it accepts every state.
    pub const ZERO: Self = Self(0);

    /// The revision of an empty store, as in etcd. It is not zero because a list of an empty store must have
    /// a `resourceVersion` from which a client can watch.
    pub const FIRST: Self = Self(1);

    /// Makes a revision from its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the revision as a number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The next revision. The counter saturates at its maximum, where engines refuse to write; reaching it
    /// would take centuries.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_compare_as_numbers_and_print_in_decimal() {
        assert!(Revision::new(9) < Revision::new(10));
        assert_eq!(Revision::FIRST.next().to_string(), "2");
        assert_eq!(Revision::new(u64::MAX).next(), Revision::new(u64::MAX));
    }
}
