use std::hint::black_box;
use std::sync::Arc;

/// A value that points to memory which copies of it share, or that holds such values.
pub trait Shared {
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

macro_rules! points_nowhere {
    ($($value:ty),*) => {
        $(impl Shared for $value {
            fn n_owners(&self) -> usize {
                0
            }
        })*
    };
}

points_nowhere!((), u32, u64);

/// Values that are held by one pointer, to be changed: `Arc::make_mut`, but quicker.
pub fn own<C: AsRef<[T]> + Clone, T: Shared>(values: &mut Arc<C>) -> &mut C {
    if Arc::strong_count(values) > 1 {
        read_owners(C::as_ref(values));
    }
    Arc::make_mut(values)
}

/// Makes ready for values to be copied: reads all counts, so that changing them waits for none.
pub fn read_owners<T: Shared>(values: &[T]) {
    black_box(values.iter().map(T::n_owners).sum::<usize>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_those_of_what_is_pointed_to() {
        let value = Arc::new(1);
        let copies = [Some(Arc::clone(&value)), None];
        assert_eq!(copies.iter().map(Shared::n_owners).collect::<Vec<_>>(), [2, 0]);
        read_owners(&copies);
        assert_eq!((value.n_owners(), ().n_owners()), (2, 0));
    }
}
