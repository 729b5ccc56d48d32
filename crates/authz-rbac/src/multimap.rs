//! A map from hashes to a few values each, of which old versions stay readable.
//!
//! A key with many values keeps only their number: whoever looks for them is better off on another
//! way, and a change never costs more than a few values.

use std::sync::Arc;

use crate::trie::{FANOUT, Page, Trie};

/// The most keys of a page that can still be split.
const PAGE_KEYS_MAX: usize = 12;

/// The map. A key has at most `MAX` values, or is crowded.
///
/// INVARIANT: whoever changes it adds a value to a key only once, and takes out only what it added.
#[derive(Debug, Clone)]
pub(crate) struct Multimap<V, const MAX: usize> {
    trie: Trie<Entries<V>>,
}

/// The key has too many values to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

/// A page: a flat list in the order of keys.
#[derive(Debug)]
struct Entries<V>(Arc<[Entry<V>]>);

#[derive(Debug, Clone, Copy)]
struct Entry<V> {
    key: u64,
    value: Value<V>,
}

#[derive(Debug, Clone, Copy)]
enum Value<V> {
    One(V),
    /// So many. INVARIANT: the only entry of its key.
    Crowd(u32),
}

impl<V, const MAX: usize> Default for Multimap<V, MAX> {
    fn default() -> Self {
        Self { trie: Trie::default() }
    }
}

impl<V: Copy, const MAX: usize> Multimap<V, MAX> {
    /// Visits the values of a key until a visit fails.
    #[inline]
    pub(crate) fn visit(
        &self,
        key: u64,
        mut visit: impl FnMut(V) -> Result<(), Crowded>,
    ) -> Result<(), Crowded> {
        let entries = self.trie.page(key).0.iter();
        for entry in entries.filter(|entry| entry.key == key) {
            match entry.value {
                Value::One(value) => visit(value)?,
                Value::Crowd(_) => return Err(Crowded),
            }
        }
        Ok(())
    }

    pub(crate) fn insert(&mut self, key: u64, value: V) {
        self.trie.page_mut(key).edit(key, |own| {
            own.push(Entry { key, value: Value::One(value) });
            let n_values = own.iter().map(|entry| entry.value.count()).sum();
            if n_values > MAX as u32 || own.iter().any(|entry| entry.value.is_crowd()) {
                *own = vec![Entry { key, value: Value::Crowd(n_values) }];
            }
        });
    }

    /// Takes out a value of a key. A key that is crowded stays so until nothing is left.
    pub(crate) fn remove(&mut self, key: u64, is_meant: impl Fn(V) -> bool) {
        self.trie.take(key, |page| {
            page.edit(key, |own| {
                own.retain_mut(|entry| match &mut entry.value {
                    Value::One(value) => !is_meant(*value),
                    Value::Crowd(n_values) => {
                        *n_values = n_values.saturating_sub(1);
                        *n_values > 0
                    }
                });
            });
        });
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.trie.is_empty()
    }
}

impl<V> Value<V> {
    fn count(&self) -> u32 {
        match self {
            Self::One(_) => 1,
            Self::Crowd(n_values) => *n_values,
        }
    }

    fn is_crowd(&self) -> bool {
        matches!(self, Self::Crowd(_))
    }
}

impl<V: Copy> Entries<V> {
    /// Changes the entries of a key.
    fn edit(&mut self, key: u64, edit: impl FnOnce(&mut Vec<Entry<V>>)) {
        let start = self.0.partition_point(|entry| entry.key < key);
        let end = self.0.partition_point(|entry| entry.key <= key);
        let (before, rest) = self.0.split_at(start);
        let (own, after) = rest.split_at(end - start);
        let mut own = own.to_vec();
        edit(&mut own);
        self.0 = before.iter().chain(&own).chain(after).copied().collect();
    }
}

impl<V> Clone for Entries<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> Default for Entries<V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<V: Copy> Page for Entries<V> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_full(&self) -> bool {
        self.0.len() >= PAGE_KEYS_MAX
            && self.0.chunk_by(|a, b| a.key == b.key).count() >= PAGE_KEYS_MAX
    }

    fn split(&self, child: &dyn Fn(u64) -> usize) -> [Self; FANOUT] {
        let own = |idx| self.0.iter().filter(move |entry| child(entry.key) == idx).copied();
        std::array::from_fn(|idx| Self(own(idx).collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    const MAX: usize = 4;

    type Plain = BTreeMap<u64, BTreeSet<u32>>;

    /// Few keys, some of which are close, so that pages are split and keys are crowded.
    fn key() -> impl Strategy<Value = u64> {
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        prop_oneof![
            2 => 0..3u64,
            3 => (0..100u64).prop_map(spread),
            1 => (0..40u64).prop_map(|n| n << 40),
        ]
    }

    fn found(map: &Multimap<u32, MAX>, key: u64) -> Result<BTreeSet<u32>, Crowded> {
        let mut values = BTreeSet::new();
        map.visit(key, |value| {
            assert!(values.insert(value));
            Ok(())
        })?;
        Ok(values)
    }

    fn check(map: &Multimap<u32, MAX>, plain: &Plain) -> Result<(), TestCaseError> {
        for (key, want) in plain {
            match found(map, *key) {
                Ok(values) => prop_assert_eq!(&values, want),
                // What was crowded stays so until nothing is left.
                Err(Crowded) => prop_assert!(!want.is_empty()),
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn agrees_with_a_plain_map_and_keeps_old_versions(
            changes in prop::collection::vec((key(), 0..8u32), 0..1500),
        ) {
            let (mut map, mut plain) = (Multimap::default(), Plain::new());
            let mut versions = Vec::new();
            for (step, (key, value)) in changes.into_iter().enumerate() {
                let own = plain.entry(key).or_default();
                if own.remove(&value) {
                    map.remove(key, |own| own == value);
                } else {
                    map.insert(key, value);
                    own.insert(value);
                }
                prop_assert!(own.len() <= MAX || found(&map, key) == Err(Crowded));
                if step % 300 == 0 {
                    versions.push((map.clone(), plain.clone()));
                }
            }
            versions.push((map.clone(), plain.clone()));
            for (map, plain) in &versions {
                check(map, plain)?;
            }
            for (key, values) in plain {
                values.into_iter().for_each(|value| map.remove(key, |own| own == value));
            }
            prop_assert!(map.is_empty());
        }
    }

    #[test]
    fn a_key_lists_its_values_up_to_a_number() {
        let mut map: Multimap<u32, MAX> = Multimap::default();
        (0..4).for_each(|value| map.insert(7, value));
        assert_eq!(found(&map, 7), Ok((0..4).collect()));
        map.insert(7, 4);
        assert_eq!(found(&map, 7), Err(Crowded));
        (1..=4).for_each(|value| map.remove(7, |own| own == value));
        assert_eq!(found(&map, 7), Err(Crowded));
        map.remove(7, |own| own == 0);
        assert_eq!(found(&map, 7), Ok(BTreeSet::new()));
    }
}
