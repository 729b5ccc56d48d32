//! A value that remembers where it was written.

use std::fmt;

use crate::source::Place;

/// A value and where it stands. It prints its place only: the value may be a secret.
#[derive(Clone, PartialEq)]
pub struct Located<T> {
    /// The value; that of its type's default if it is absent.
    pub value: T,
    /// Where it stands, or what it is missing in.
    pub place: Place,
}

impl<T> fmt::Debug for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[at {}:{}]", self.place.line, self.place.column)
    }
}
