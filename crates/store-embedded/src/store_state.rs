//! A state of the store: what all reads and watches look at.
//!
//! It holds the newest versions and the steps that led to them. An older state is the newest one with
//! the later steps old_versions, so that history costs nothing while nobody asks for it, and the tree never
//! holds what is deleted.

use std::collections::BTreeMap;
use std::io;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use store::{At, Entry, Got, Key, ListRequest, Page, Prefix, ReadError, Revision, Unavailable};

use crate::history::{History, KeyChange};
use crate::version::Version;
use crate::version_tree::{VersionIter, VersionTree};

/// A state. Cloning copies a few pointers; a clone does not see later writes.
#[derive(Debug, Clone)]
pub(crate) struct StoreState {
    pub(crate) revision: Revision,
    /// The oldest state that can be told.
    pub(crate) floor: Revision,
    pub(crate) tree: VersionTree,
    pub(crate) history: History,
}

/// The versions that keys had in an older state, for the keys that were written since.
type OldVersions = BTreeMap<Key, Option<Arc<Version>>>;

impl StoreState {
    /// A store to which nothing was written, or one that begins with these versions.
    pub(crate) fn new(revision: Revision, tree: VersionTree) -> Self {
        Self { revision, floor: revision, tree, history: History::new() }
    }

    /// Writes the version that `revision` makes of a key and returns it with the one before.
    pub(crate) fn put(
        &mut self,
        revision: Revision,
        key: Key,
        value: Bytes,
        expires_at_ms: Option<u64>,
    ) -> (Arc<Version>, Option<Arc<Version>>) {
        let create_rev = self.tree.get(&key).map_or(revision, |prev| prev.create_rev);
        let version =
            Arc::new(Version { key, value, mod_rev: revision, create_rev, expires_at_ms });
        let prev = self.tree.insert(version.clone());
        self.revision = revision;
        self.history.push(KeyChange {
            revision,
            new_version: Some(version.clone()),
            old_version: prev.clone(),
        });
        (version, prev)
    }

    /// Deletes a key and returns its last version; absent when there is nothing to delete.
    pub(crate) fn delete(&mut self, revision: Revision, key: &str) -> Option<Arc<Version>> {
        let prev = self.tree.remove(key)?;
        self.revision = revision;
        self.history.push(KeyChange {
            revision,
            new_version: None,
            old_version: Some(prev.clone()),
        });
        Some(prev)
    }

    /// Forgets the states before a revision.
    pub(crate) fn compact(&mut self, floor: Revision) {
        if floor > self.floor {
            self.floor = floor;
            self.history.drop_through(floor);
        }
    }

    /// The revision that a read is to show.
    pub(crate) fn resolve(&self, at: At) -> Result<Revision, ReadError> {
        let (requested, current, floor) = match at {
            At::Newest => return Ok(self.revision),
            At::NotOlderThan(requested) => (requested, self.revision, Revision::ZERO),
            At::Exactly(requested) => (requested, self.revision, self.floor),
        };
        if requested > current {
            return Err(ReadError::Future { requested, current });
        }
        if requested < floor {
            return Err(ReadError::Compacted { requested, floor });
        }
        Ok(if matches!(at, At::Exactly(_)) { requested } else { current })
    }

    /// Whether telling this state takes reading files.
    pub(crate) fn is_paged(&self, at: At) -> bool {
        match at {
            At::Newest | At::NotOlderThan(_) => false,
            At::Exactly(revision) => self.history.is_on_disk_after(revision),
        }
    }

    pub(crate) fn get(&self, key: &str, at: At) -> Result<Got, ReadError> {
        let revision = self.resolve(at)?;
        let mut entry = self.tree.get(key).map(|version| version.entry());
        if revision < self.revision
            && let Some(old_versions) = self.old_version_at(key, revision).map_err(unreadable)?
        {
            entry = old_versions;
        }
        Ok(Got { entry, revision })
    }

    pub(crate) fn list(&self, prefix: &Prefix, request: &ListRequest) -> Result<Page, ReadError> {
        let revision = self.resolve(request.at)?;
        let (start, skipped) = match &request.from {
            Bound::Included(key) => (key.as_str(), None),
            Bound::Excluded(key) => (key.as_str(), Some(key.as_str())),
            Bound::Unbounded => (prefix.as_str(), None),
        };
        let start = start.max(prefix.as_str());
        let end = prefix_end(prefix);
        if start >= end.as_str() {
            return Ok(Page { items: Vec::new(), remaining: 0, revision });
        }
        let mut old_versions = self.old_versions_at(prefix, revision).map_err(unreadable)?;
        old_versions.retain(|key, _| key.as_str() >= start);
        let n_all = self.count(start, &end, skipped, &old_versions);
        let n_commands_wanted = request.limit.map_or(n_all, |limit| limit.get().min(n_all));
        let mut items = Vec::with_capacity(n_commands_wanted);
        let versions = self
            .versions(start, &old_versions)
            .filter(|version| skipped.is_none_or(|skipped| version.key.as_str() != skipped));
        items.extend(versions.take(n_commands_wanted).map(|version| version.item()));
        let remaining = (n_all - items.len()) as u64;
        Ok(Page { items, remaining, revision })
    }

    /// Calls `visit` with every version of the state at the floor.
    pub(crate) fn visit_floor(
        &self,
        visit: &mut dyn FnMut(&Version) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut old_versions = OldVersions::new();
        self.history.visit_changes_after(self.floor, &mut |change| {
            record_old_version(&mut old_versions, change, |_| true);
            true
        })?;
        self.versions("", &old_versions).try_for_each(|version| visit(version))
    }

    /// How many keys of an older state lie in a range.
    fn count(
        &self,
        start: &str,
        end: &str,
        skipped: Option<&str>,
        old_versions: &OldVersions,
    ) -> usize {
        let mut n = self.tree.rank(end).saturating_sub(self.tree.rank(start));
        for (key, then) in old_versions {
            match (self.tree.get(key), then) {
                (Some(_), None) => n = n.saturating_sub(1),
                (None, Some(_)) => n += 1,
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        let is_there = |key: &str| match old_versions.get(key) {
            Some(then) => then.is_some(),
            None => self.tree.get(key).is_some(),
        };
        let n_skipped = skipped.is_some_and(|key| key >= start && is_there(key));
        n - usize::from(n_skipped)
    }

    fn versions<'a>(&'a self, start: &str, old_versions: &'a OldVersions) -> VersionsAt<'a> {
        let tree = self.tree.iter_from(start).peekable();
        VersionsAt { tree, old_versions: old_versions.iter().peekable() }
    }

    /// The versions of the keys under a prefix in an older state, as far as they differ.
    fn old_versions_at(&self, prefix: &Prefix, revision: Revision) -> io::Result<OldVersions> {
        let mut old_versions = OldVersions::new();
        if revision < self.revision {
            self.history.visit_changes_after(revision, &mut |change| {
                record_old_version(&mut old_versions, change, |key| prefix.covers(key));
                true
            })?;
        }
        Ok(old_versions)
    }

    /// The version of a key in an older state; `None` if the key was not written since.
    fn old_version_at(&self, key: &str, revision: Revision) -> io::Result<Option<Option<Entry>>> {
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

/// The first step after a state that touches a key tells what the key was.
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
struct VersionsAt<'a> {
    tree: Peekable<VersionIter<'a>>,
    old_versions: Peekable<std::collections::btree_map::Iter<'a, Key, Option<Arc<Version>>>>,
}

impl<'a> Iterator for VersionsAt<'a> {
    type Item = &'a Arc<Version>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((key, _)) = self.old_versions.peek() else { return self.tree.next() };
            if let Some(version) = self.tree.next_if(|version| version.key < **key) {
                return Some(version);
            }
            self.tree.next_if(|version| version.key == **key);
            if let Some((_, Some(version))) = self.old_versions.next() {
                return Some(version);
            }
        }
    }
}

/// The least text that is greater than every key of a prefix. A prefix ends with `/`, and `0` is the
/// character after it.
fn prefix_end(prefix: &Prefix) -> String {
    let text = prefix.as_str();
    let mut end = text.strip_suffix('/').unwrap_or(text).to_owned();
    end.push('0');
    end
}

pub(crate) fn unreadable(error: io::Error) -> Unavailable {
    Unavailable { reason: format!("can not read history: {error}").into() }
}
