//! A value that remembers where it was written.

use std::fmt;

use crate::source::SourcePosition;

/// A value with its position. Debug output shows the position only, since the value may be a
/// secret.
#[derive(Clone, PartialEq)]
pub struct WithPosition<T> {
    /// The value, or the default of its type if the field is absent.
    pub value: T,
    /// Position of the value, or of the object that lacks it.
    pub position: SourcePosition,
}

impl<T> fmt::Debug for WithPosition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[at {}:{}]", self.position.line, self.position.column)
    }
}
