//! A map from names to values of which old versions stay readable.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;
use persistent::Shared;

use crate::trie::{Page, Trie};

/// The most entries of a page that can still be split.
const PAGE_ENTRIES_MAX: usize = 8;

/// The map. Names are hashed with a seed of its own, so that nobody can choose names that collide.
#[derive(Debug, Clone)]
pub(crate) struct Names<V> {
    trie: Trie<Entries<V>, 16>,
    hasher: RandomState,
}

/// A page: a flat list, since looking through eight hashes is quicker than anything clever.
#[derive(Debug)]
struct Entries<V>(Arc<[Entry<V>]>);

#[derive(Debug, Clone)]
struct Entry<V> {
    hash: u64,
    name: Arc<str>,
    value: V,
}

impl<V> Default for Names<V> {
    fn default() -> Self {
        Self { trie: Trie::default(), hasher: RandomState::default() }
    }
}

impl<V: Clone> Names<V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.trie.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        let hash = self.hasher.hash_one(name);
        let entries = &self.trie.page(hash).0;
        entries.iter().find(|entry| entry.is(hash, name)).map(|entry| &entry.value)
    }

    /// The value of a name, which is made if it is missing.
    pub(crate) fn slot(&mut self, name: &str, make: impl FnOnce() -> V) -> &mut V {
        let hash = self.hasher.hash_one(name);
        let page = self.trie.page_mut(hash);
        let at = page.0.iter().position(|entry| entry.is(hash, name)).unwrap_or_else(|| {
            let new = Entry { hash, name: name.into(), value: make() };
            page.0 = page.0.iter().cloned().chain([new]).collect();
            page.0.len() - 1
        });
        &mut Arc::make_mut(&mut page.0)[at].value
    }

    /// Takes a name out; `None` if it is not there, and then nothing is copied.
    pub(crate) fn remove(&mut self, name: &str) -> Option<V> {
        let removed = self.get(name)?.clone();
        let hash = self.hasher.hash_one(name);
        self.trie.take(hash, |page| {
            page.0 = page.0.iter().filter(|entry| !entry.is(hash, name)).cloned().collect();
        });
        Some(removed)
    }

    /// Visits every entry, in no particular order.
    pub(crate) fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a V)) {
        self.trie.for_each(&mut |page| {
            page.0.iter().for_each(|entry| visit(&entry.name, &entry.value));
        });
    }
}

impl<V> Entry<V> {
    fn is(&self, hash: u64, name: &str) -> bool {
        self.hash == hash && *self.name == *name
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

impl<V> Shared for Entries<V> {
    fn n_owners(&self) -> usize {
        self.0.n_owners()
    }
}

impl<V: Clone> Page for Entries<V> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_full(&self) -> bool {
        self.0.len() >= PAGE_ENTRIES_MAX
    }

    fn split<const N: usize>(&self, child: impl Fn(u64) -> usize) -> [Self; N] {
        std::array::from_fn(|idx| {
            let own = self.0.iter().filter(|entry| child(entry.hash) == idx);
            Self(own.cloned().collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn contents(names: &Names<u32>) -> BTreeMap<String, u32> {
        let mut all = BTreeMap::new();
        names.for_each(&mut |name, value| assert!(all.insert(name.to_owned(), *value).is_none()));
        all
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_map_and_keeps_old_versions(
            changes in prop::collection::vec((0..200u32, prop::option::weighted(0.7, any::<u32>())), 0..600),
        ) {
            let (mut names, mut plain) = (Names::default(), BTreeMap::new());
            let mut versions = Vec::new();
            for (key, value) in changes {
                let name = format!("name-{key}");
                match value {
                    Some(value) => {
                        *names.slot(&name, || value) = value;
                        plain.insert(name.clone(), value);
                    }
                    None => prop_assert_eq!(names.remove(&name), plain.remove(&name)),
                }
                prop_assert_eq!(names.get(&name), plain.get(&name));
                prop_assert_eq!(names.is_empty(), plain.is_empty());
                if versions.len() < 20 {
                    versions.push((names.clone(), plain.clone()));
                }
            }
            versions.push((names, plain));
            for (names, plain) in versions {
                prop_assert_eq!(contents(&names), plain);
            }
        }
    }

    #[test]
    fn names_of_one_hash_share_the_last_page() {
        let entry = |n: u32| Entry { hash: 7, name: n.to_string().into(), value: n };
        let mut page = Entries((0..20).map(entry).collect());
        // Splitting can not part them, and must end.
        let parts = page.split::<16>(|_| 3);
        assert_eq!(parts.map(|part| part.0.len()).iter().sum::<usize>(), 20);
        page = page.split::<16>(|_| 0).into_iter().next().unwrap();
        assert!(page.is_full() && page.0.iter().filter(|entry| entry.is(7, "11")).count() == 1);
    }
}
