//! A list in some order of which old versions stay readable.
//!
//! The list is cut into chunks that versions share. A change copies one chunk and the list of
//! chunks, so it stays cheap for the one group to which half of all bindings belong. Items are
//! numbers, and copying them is one move of memory.

use std::cmp::Ordering;
use std::sync::Arc;

use persistent::{Shared, own};

/// The most items of a chunk; a longer one is cut in two. At a hundred thousand items, copying a
/// chunk and copying the list of chunks take about as long.
const CHUNK_ITEMS_MAX: usize = 1024;

/// The list. Whoever changes or searches it says how an item stands to the one that is meant:
/// before it, in its place, or after it.
///
/// INVARIANT: chunks are not empty, and items ascend within and across them.
#[derive(Debug, Clone)]
pub(crate) struct Sequence<T> {
    chunks: Arc<Vec<Arc<Vec<T>>>>,
}

impl<T> Default for Sequence<T> {
    fn default() -> Self {
        Self { chunks: Arc::default() }
    }
}

impl<T> Shared for Sequence<T> {
    fn n_owners(&self) -> usize {
        self.chunks.n_owners()
    }
}

impl<T: Copy> Sequence<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        self.chunks().flatten().copied()
    }

    /// The items in slices, for those who skip some.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &[T]> {
        self.chunks.iter().map(|chunk| chunk.as_slice())
    }

    pub(crate) fn get(&self, compare: impl Fn(T) -> Ordering) -> Option<T> {
        let chunk = self.chunks.get(self.chunk_idx(&compare))?;
        let at = chunk.binary_search_by(|item| compare(*item)).ok()?;
        chunk.get(at).copied()
    }

    /// Puts an item in its place, instead of the one that is there.
    pub(crate) fn put(&mut self, item: T, compare: impl Fn(T) -> Ordering) {
        let at = self.chunk_idx(&compare).min(self.chunks.len().saturating_sub(1));
        // What grows at its end leaves full chunks behind.
        let is_last = at + 1 == self.chunks.len();
        let chunks = own(&mut self.chunks);
        let Some(chunk) = chunks.get_mut(at) else {
            chunks.push(Arc::new(vec![item]));
            return;
        };
        let chunk = Arc::make_mut(chunk);
        match chunk.binary_search_by(|item| compare(*item)) {
            Ok(found) => chunk[found] = item,
            Err(place) => chunk.insert(place, item),
        }
        if chunk.len() > CHUNK_ITEMS_MAX {
            let n_kept = if is_last { CHUNK_ITEMS_MAX } else { CHUNK_ITEMS_MAX / 2 };
            let tail = chunk.split_off(n_kept);
            chunks.insert(at + 1, Arc::new(tail));
        }
    }

    /// Takes an item out; `None` if it is not there, and then nothing is copied.
    pub(crate) fn remove(&mut self, compare: impl Fn(T) -> Ordering) -> Option<T> {
        let at = self.chunk_idx(&compare);
        let found = self.chunks.get(at)?.binary_search_by(|item| compare(*item)).ok()?;
        let chunks = own(&mut self.chunks);
        let chunk = Arc::make_mut(chunks.get_mut(at)?);
        let removed = chunk.remove(found);
        if chunk.is_empty() {
            chunks.remove(at);
        }
        Some(removed)
    }

    /// The first chunk whose last item is not before the one that is meant.
    fn chunk_idx(&self, compare: &impl Fn(T) -> Ordering) -> usize {
        let ends_before =
            |chunk: &Arc<Vec<T>>| chunk.last().is_some_and(|last| compare(*last).is_lt());
        self.chunks.partition_point(ends_before)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_sorted_map_and_keeps_old_versions(
            changes in prop::collection::vec((0..2000u32, prop::option::weighted(0.8, any::<u32>())), 0..3000),
        ) {
            let (mut sequence, mut plain) = (Sequence::default(), BTreeMap::new());
            let mut versions = Vec::new();
            for (step, (key, value)) in changes.into_iter().enumerate() {
                let compare = |item: (u32, u32)| item.0.cmp(&key);
                match value {
                    Some(value) => {
                        sequence.put((key, value), compare);
                        plain.insert(key, value);
                    }
                    None => prop_assert_eq!(
                        sequence.remove(compare).map(|item| item.1),
                        plain.remove(&key)
                    ),
                }
                prop_assert_eq!(sequence.get(compare).map(|item| item.1), plain.get(&key).copied());
                prop_assert_eq!(sequence.is_empty(), plain.is_empty());
                if step % 300 == 0 {
                    versions.push((sequence.clone(), plain.clone()));
                }
            }
            versions.push((sequence, plain));
            for (sequence, plain) in versions {
                prop_assert!(sequence.chunks().all(|chunk| (1..=CHUNK_ITEMS_MAX).contains(&chunk.len())));
                prop_assert_eq!(sequence.iter().collect::<Vec<_>>(), plain.into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_list_that_grows_at_its_end_has_full_chunks() {
        let mut sequence = Sequence::default();
        for n in 0..3 * CHUNK_ITEMS_MAX {
            sequence.put(n, |item| item.cmp(&n));
        }
        assert!(sequence.chunks().all(|chunk| chunk.len() == CHUNK_ITEMS_MAX));
    }
}
