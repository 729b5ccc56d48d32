//! An immutable state of the store, which reads and watches use.
//!
//! A state holds the newest versions and the changes that led to them. A read of an older state undoes the later
//! changes. So history costs nothing until somebody reads it, and the tree holds no deleted keys.

use std::collections::BTreeMap;
use std::io;
use std::iter::Peekable;
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use store::{
    At, Entry, GetResult, Key, ListPage, ListRequest, Prefix, ReadError, Revision, Unavailable,
};

use crate::history::{History, KeyChange};
use crate::version::Version;
use crate::version_tree::{VersionIter, VersionTree};

/// A state of the store. Cloning copies a few pointers; a clone does not see later writes.
#[derive(Debug, Clone)]
pub(crate) struct StoreState {
    pub(crate) revision: Revision,
    /// The oldest revision that can be read.
    pub(crate) compaction_floor: Revision,
    pub(crate) version_tree: VersionTree,
    pub(crate) history: History,
}

/// The versions that keys had in an older state, for the keys that were written since.
type OldVersions = BTreeMap<Key, Option<Arc<Version>>>;

impl StoreState {
    /// Makes a state with these versions and no history.
    pub(crate) fn new(revision: Revision, tree: VersionTree) -> Self {
        Self { revision, compaction_floor: revision, version_tree: tree, history: History::new() }
    }

    /// Writes a version of a key. Returns it with the version that it replaces.
    pub(crate) fn put(
        &mut self,
        revision: Revision,
        key: Key,
        value: Bytes,
        expires_at_ms: Option<u64>,
    ) -> (Arc<Version>, Option<Arc<Version>>) {
        let create_rev = self.version_tree.get(&key).map_or(revision, |prev| prev.create_rev);
        let version =
            Arc::new(Version { key, value, mod_rev: revision, create_rev, expires_at_ms });
        let prev = self.version_tree.insert(version.clone());
        self.revision = revision;
        self.history.push(KeyChange {
            revision,
            new_version: Some(version.clone()),
            old_version: prev.clone(),
        });
        (version, prev)
    }

    /// Deletes a key and returns its last version; `None` if the key does not exist.
    pub(crate) fn delete(&mut self, revision: Revision, key: &str) -> Option<Arc<Version>> {
        let prev = self.version_tree.remove(key)?;
        self.revision = revision;
        self.history.push(KeyChange {
            revision,
            new_version: None,
            old_version: Some(prev.clone()),
        });
        Some(prev)
    }

    /// Drops the states before a revision.
    pub(crate) fn compact(&mut self, floor: Revision) {
        if floor > self.compaction_floor {
            self.compaction_floor = floor;
            self.history.drop_chunks_up_to(floor);
        }
    }

    /// Returns the revision at which a read is answered.
    pub(crate) fn resolve_revision(&self, at: At) -> Result<Revision, ReadError> {
        let (requested, current, floor) = match at {
            At::Newest => return Ok(self.revision),
            At::NotOlderThan(requested) => (requested, self.revision, Revision::ZERO),
            At::Exactly(requested) => (requested, self.revision, self.compaction_floor),
        };
        if requested > current {
            return Err(ReadError::Future { requested, current });
        }
        if requested < floor {
            return Err(ReadError::Compacted { requested, floor });
        }
        Ok(if matches!(at, At::Exactly(_)) { requested } else { current })
    }

    /// Reports whether a read of this state must read files.
    pub(crate) fn needs_file_reads(&self, at: At) -> bool {
        match at {
            At::Newest | At::NotOlderThan(_) => false,
            At::Exactly(revision) => self.history.needs_file_reads_after(revision),
        }
    }

    pub(crate) fn get(&self, key: &str, at: At) -> Result<GetResult, ReadError> {
        let revision = self.resolve_revision(at)?;
        let mut entry = self.version_tree.get(key).map(|version| version.entry());
        if revision < self.revision
            && let Some(old_version) =
                self.find_old_version(key, revision).map_err(unreadable_history_error)?
        {
            entry = old_version;
        }
        Ok(GetResult { entry, revision })
    }

    pub(crate) fn list(
        &self,
        prefix: &Prefix,
        request: &ListRequest,
    ) -> Result<ListPage, ReadError> {
        let revision = self.resolve_revision(request.at)?;
        let (start, skipped) = match &request.from {
            Bound::Included(key) => (key.as_str(), None),
            Bound::Excluded(key) => (key.as_str(), Some(key.as_str())),
            Bound::Unbounded => (prefix.as_str(), None),
        };
        let start = start.max(prefix.as_str());
        let end = prefix.range_end();
        if start >= end.as_str() {
            return Ok(ListPage { items: Vec::new(), n_remaining_items: 0, revision });
        }
        let mut old_versions =
            self.collect_old_versions(prefix, revision).map_err(unreadable_history_error)?;
        old_versions.retain(|key, _| key.as_str() >= start);
        let n_all = self.count(start, &end, skipped, &old_versions);
        let n_wanted = request.items_max.map_or(n_all, |limit| limit.get().min(n_all));
        let mut items = Vec::with_capacity(n_wanted);
        let versions = self
            .iter_old_state(start, &old_versions)
            .filter(|version| skipped.is_none_or(|skipped| version.key.as_str() != skipped));
        let mut bytes_left = request.page_bytes_max.map_or(usize::MAX, NonZeroUsize::get);
        for version in versions.take(n_wanted) {
            items.push(version.to_item());
            bytes_left = bytes_left.saturating_sub(version.value.len());
            if bytes_left == 0 {
                items.shrink_to_fit();
                break;
            }
        }
        let remaining = (n_all - items.len()) as u64;
        Ok(ListPage { items, n_remaining_items: remaining, revision })
    }

    /// Calls `visit` with every version of the state at the floor.
    pub(crate) fn visit_versions_at_floor(
        &self,
        visit: &mut dyn FnMut(&Version) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut old_versions = OldVersions::new();
        self.history.visit_changes_after(self.compaction_floor, &mut |change| {
            record_old_version(&mut old_versions, change, |_| true);
            true
        })?;
        self.iter_old_state("", &old_versions).try_for_each(|version| visit(version))
    }

    /// Counts the keys of an older state in a range.
    fn count(
        &self,
        start: &str,
        end: &str,
        skipped: Option<&str>,
        old_versions: &OldVersions,
    ) -> usize {
        let mut n = self
            .version_tree
            .count_keys_before(end)
            .saturating_sub(self.version_tree.count_keys_before(start));
        for (key, then) in old_versions {
            match (self.version_tree.get(key), then) {
                (Some(_), None) => n = n.saturating_sub(1),
                (None, Some(_)) => n += 1,
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        let is_there = |key: &str| match old_versions.get(key) {
            Some(then) => then.is_some(),
            None => self.version_tree.get(key).is_some(),
        };
        let n_skipped = skipped.is_some_and(|key| key >= start && is_there(key));
        n - usize::from(n_skipped)
    }

    fn iter_old_state<'a>(
        &'a self,
        start: &str,
        old_versions: &'a OldVersions,
    ) -> OldStateIter<'a> {
        let tree = self.version_tree.iter_from(start).peekable();
        OldStateIter { current_versions: tree, old_versions: old_versions.iter().peekable() }
    }

    /// Collects the versions of the keys under a prefix in an older state, for the keys that were written since.
    fn collect_old_versions(&self, prefix: &Prefix, revision: Revision) -> io::Result<OldVersions> {
        let mut old_versions = OldVersions::new();
        if revision < self.revision {
            self.history.visit_changes_after(revision, &mut |change| {
                record_old_version(&mut old_versions, change, |key| prefix.covers_key(key));
                true
            })?;
        }
        Ok(old_versions)
    }

    /// Finds the version of a key in an older state; `None` if the key was not written since.
    fn find_old_version(&self, key: &str, revision: Revision) -> io::Result<Option<Option<Entry>>> {
        let mut found = None;
        self.history.visit_changes_after(revision, &mut |change| {
            let written = change.new_version.as_ref().or(change.old_version.as_ref());
            if written.is_some_and(|version| version.key.as_str() == key) {
                found = Some(change.old_version.as_ref().map(|version| version.entry()));
            }
            found.is_none()
        })?;
        Ok(found)
    }
}

/// Records the old version of the key of a change, unless an earlier change of the key was recorded.
fn record_old_version(
    old_versions: &mut OldVersions,
    change: &KeyChange,
    is_wanted: impl Fn(&str) -> bool,
) {
    if let Some(version) = change.new_version.as_ref().or(change.old_version.as_ref())
        && is_wanted(&version.key)
        && !old_versions.contains_key(&version.key)
    {
        old_versions.insert(version.key.clone(), change.old_version.clone());
    }
}

/// The versions of an older state in the order of their keys.
struct OldStateIter<'a> {
    current_versions: Peekable<VersionIter<'a>>,
    old_versions: Peekable<std::collections::btree_map::Iter<'a, Key, Option<Arc<Version>>>>,
}

impl<'a> Iterator for OldStateIter<'a> {
    type Item = &'a Arc<Version>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((key, _)) = self.old_versions.peek() else {
                return self.current_versions.next();
            };
            if let Some(version) = self.current_versions.next_if(|version| version.key < **key) {
                return Some(version);
            }
            self.current_versions.next_if(|version| version.key == **key);
            if let Some((_, Some(version))) = self.old_versions.next() {
                return Some(version);
            }
        }
    }
}

pub(crate) fn unreadable_history_error(error: io::Error) -> Unavailable {
    Unavailable { reason: format!("cannot read history: {error}").into() }
}
