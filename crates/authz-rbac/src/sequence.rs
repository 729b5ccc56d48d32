//! A list in the order of names of which old versions stay readable.
//!
//! The list is cut into chunks that versions share. A change copies one chunk and the list of
//! chunks, so it stays cheap for the one group to which half of all bindings belong.

use std::sync::Arc;

/// The most items of a chunk; a longer one is cut in two.
const CHUNK_ITEMS_MAX: usize = 128;

/// What has a place in the order.
pub(crate) trait Named {
    fn name(&self) -> &str;
}

/// The list. Names are unique.
///
/// INVARIANT: chunks are not empty, and names ascend within and across them.
#[derive(Debug, Clone)]
pub(crate) struct Sequence<T> {
    chunks: Arc<Vec<Arc<Vec<T>>>>,
}

impl<T> Default for Sequence<T> {
    fn default() -> Self {
        Self { chunks: Arc::default() }
    }
}

impl<T: Named> Sequence<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        let chunk = self.chunks.get(self.chunk_idx(name))?;
        let at = chunk.binary_search_by(|item| item.name().cmp(name)).ok()?;
        chunk.get(at)
    }

    /// The first chunk whose last name is not before `name`.
    fn chunk_idx(&self, name: &str) -> usize {
        let ends_before = |chunk: &Arc<Vec<T>>| chunk.last().is_some_and(|last| last.name() < name);
        self.chunks.partition_point(ends_before)
    }
}

impl<T: Named + Clone> Sequence<T> {
    /// Puts an item in its place, instead of one of the same name.
    pub(crate) fn put(&mut self, item: T) {
        let at = self.chunk_idx(item.name()).min(self.chunks.len().saturating_sub(1));
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(chunk) = chunks.get_mut(at) else {
            chunks.push(Arc::new(vec![item]));
            return;
        };
        let chunk = Arc::make_mut(chunk);
        match chunk.binary_search_by(|other| other.name().cmp(item.name())) {
            Ok(found) => chunk[found] = item,
            Err(place) => chunk.insert(place, item),
        }
        if chunk.len() > CHUNK_ITEMS_MAX {
            let tail = chunk.split_off(CHUNK_ITEMS_MAX / 2);
            chunks.insert(at + 1, Arc::new(tail));
        }
    }

    /// Takes an item out; `None` if it is not there, and then nothing is copied.
    pub(crate) fn remove(&mut self, name: &str) -> Option<T> {
        let at = self.chunk_idx(name);
        let found = self.chunks.get(at)?.binary_search_by(|item| item.name().cmp(name)).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(chunks.get_mut(at)?);
        let removed = chunk.remove(found);
        if chunk.is_empty() {
            chunks.remove(at);
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Item(String, u32);

    impl Named for Item {
        fn name(&self) -> &str {
            &self.0
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_map_and_keeps_old_versions(
            changes in prop::collection::vec((0..500u32, prop::option::weighted(0.8, any::<u32>())), 0..900),
        ) {
            let (mut sequence, mut plain) = (Sequence::default(), BTreeMap::new());
            let mut versions = Vec::new();
            for (step, (key, value)) in changes.into_iter().enumerate() {
                let name = format!("{key:03}");
                match value {
                    Some(value) => {
                        sequence.put(Item(name.clone(), value));
                        plain.insert(name.clone(), value);
                    }
                    None => prop_assert_eq!(
                        sequence.remove(&name).map(|item| item.1),
                        plain.remove(&name)
                    ),
                }
                prop_assert_eq!(sequence.get(&name).map(|item| item.1), plain.get(&name).copied());
                prop_assert_eq!(sequence.is_empty(), plain.is_empty());
                if step % 100 == 0 {
                    versions.push((sequence.clone(), plain.clone()));
                }
            }
            versions.push((sequence, plain));
            for (sequence, plain) in versions {
                let items: Vec<_> = sequence.iter().map(|item| (item.0.clone(), item.1)).collect();
                prop_assert_eq!(items, plain.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
