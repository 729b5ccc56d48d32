//! A few values, or how many there are.

use std::sync::Arc;

/// A list of which old versions stay readable. If it would be longer than `MAX`, only its length is
/// kept: whoever wants to read it is better off on another way, and a change never costs more than a
/// few values.
///
/// INVARIANT: whoever changes it takes out only what it added.
#[derive(Debug, Clone)]
pub(crate) enum Few<T, const MAX: usize> {
    /// All of them.
    All(Arc<[T]>),
    /// So many. Stays so until nothing is left.
    Crowd(u32),
}

/// There are too many to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

impl<T, const MAX: usize> Default for Few<T, MAX> {
    fn default() -> Self {
        Self::All(Arc::default())
    }
}

impl<T, const MAX: usize> Few<T, MAX> {
    /// All values.
    ///
    /// # Errors
    /// Fails if there are too many.
    #[inline]
    pub(crate) fn all(&self) -> Result<&[T], Crowded> {
        match self {
            Self::All(all) => Ok(all),
            Self::Crowd(_) => Err(Crowded),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::All(all) if all.is_empty())
    }
}

impl<T: Copy, const MAX: usize> Few<T, MAX> {
    pub(crate) fn insert(&mut self, value: T) {
        *self = match self {
            Self::All(all) if all.len() < MAX => {
                Self::All(all.iter().copied().chain([value]).collect())
            }
            Self::All(all) => Self::Crowd(all.len() as u32 + 1),
            Self::Crowd(n_values) => Self::Crowd(n_values.saturating_add(1)),
        };
    }

    /// Takes out the one value that is meant.
    pub(crate) fn remove(&mut self, is_meant: impl Fn(&T) -> bool) {
        *self = match self {
            Self::All(all) => Self::All(all.iter().filter(|own| !is_meant(own)).copied().collect()),
            Self::Crowd(..=1) => Self::default(),
            Self::Crowd(n_values) => Self::Crowd(*n_values - 1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_up_to_a_number_and_old_versions_keep_theirs() {
        let mut few: Few<u32, 3> = Few::default();
        (0..3).for_each(|value| few.insert(value));
        let before = few.clone();
        few.remove(|own| *own == 1);
        assert_eq!((few.all(), before.all()), (Ok(&[0, 2][..]), Ok(&[0, 1, 2][..])));
        (3..5).for_each(|value| few.insert(value));
        assert_eq!(few.all(), Err(Crowded));
        [0, 2, 3].into_iter().for_each(|value| few.remove(|own| *own == value));
        assert!(few.all().is_err() && !few.is_empty());
        few.remove(|own| *own == 4);
        assert!(few.all() == Ok(&[]) && few.is_empty());
    }
}
