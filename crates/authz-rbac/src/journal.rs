//! A list that grows at its end and of which old versions stay readable.
//!
//! To add an item copies the few before it at most, however long the list is.

use std::sync::Arc;

/// The most items that are copied.
const PAGE_ITEMS_MAX: usize = 64;

/// The list.
#[derive(Debug, Clone)]
pub(crate) struct Journal<T> {
    last: Option<Arc<Page<T>>>,
    n_items: usize,
}

#[derive(Debug, Clone)]
struct Page<T> {
    /// INVARIANT: at least one, and at most [`PAGE_ITEMS_MAX`].
    items: Vec<T>,
    before: Option<Arc<Page<T>>>,
}

impl<T> Default for Journal<T> {
    fn default() -> Self {
        Self { last: None, n_items: 0 }
    }
}

impl<T: Copy> Journal<T> {
    pub(crate) fn len(&self) -> usize {
        self.n_items
    }

    /// All items, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        let pages = std::iter::successors(self.last.as_ref(), |page| page.before.as_ref());
        pages.flat_map(|page| page.items.iter().copied())
    }

    pub(crate) fn push(&mut self, item: T) {
        self.n_items += 1;
        match &mut self.last {
            Some(page) if page.items.len() < PAGE_ITEMS_MAX => Arc::make_mut(page).items.push(item),
            last => *last = Some(Arc::new(Page { items: vec![item], before: last.take() })),
        }
    }
}

impl<T> Drop for Journal<T> {
    /// Gives up one page after the other. Left to themselves, each would give up the one before it
    /// while it is given up itself, and a long list would take more stack than there is.
    fn drop(&mut self) {
        let mut next = self.last.take();
        while let Some(page) = next {
            next = Arc::into_inner(page).and_then(|mut page| page.before.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_stay_readable() {
        let mut journal = Journal::default();
        let mut versions = Vec::new();
        for n in 0..1000 {
            if n % 50 == 7 {
                versions.push(journal.clone());
            }
            journal.push(n);
        }
        versions.push(journal);
        for journal in versions {
            let mut items: Vec<usize> = journal.iter().collect();
            items.sort_unstable();
            assert_eq!(items, (0..journal.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_long_list_is_dropped_without_much_stack() {
        let drop_long = || {
            let mut journal = Journal::default();
            (0..3_000_000_u32).for_each(|n| journal.push(n));
            let older = journal.clone();
            journal.push(1);
            drop(journal);
            assert_eq!(older.iter().count(), 3_000_000);
        };
        let thread = std::thread::Builder::new().stack_size(128 * 1024).spawn(drop_long);
        thread.unwrap().join().unwrap();
    }
}
