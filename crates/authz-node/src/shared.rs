//! Making copies of what others share.

use std::hint::black_box;
use std::sync::Arc;

/// A value that points to memory which copies of it share, or that holds such values.
pub(crate) trait Shared {
    /// How many values share the memory. This lies there, far from the value.
    fn n_owners(&self) -> usize;
}

impl<T: ?Sized> Shared for Arc<T> {
    fn n_owners(&self) -> usize {
        Self::strong_count(self)
    }
}

impl<T: Shared> Shared for Option<T> {
    fn n_owners(&self) -> usize {
        self.as_ref().map_or(0, T::n_owners)
    }
}

/// Makes ready for values to be copied.
///
/// Each copy counts one more owner. Counting waits for memory, for one value after the other;
/// reading does not. So all counts are read before one is changed.
pub(crate) fn read_owners<T: Shared>(values: &[T]) {
    black_box(values.iter().map(T::n_owners).sum::<usize>());
}
