//! Counts the bytes of each tenant: in the current versions and in the history.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use store::Revision;

use crate::history::KeyChange;
use crate::store_state::StoreState;
use crate::tenant::TenantResolver;
use crate::version::Version;

/// Overhead of a version in bytes, in addition to its key and value.
const VERSION_BYTES: u64 = 64;
/// Maximum number of changes and bytes of a segment. History is dropped in whole segments.
const SEGMENT_CHANGES_MAX: usize = 128;
const SEGMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes per tenant and in total.
#[derive(Debug, Default)]
struct BytesByTenant {
    total_bytes: u64,
    bytes_by_tenant: HashMap<Arc<str>, u64, foldhash::fast::RandomState>,
}

/// A change that is not committed yet.
#[derive(Debug)]
struct PendingChange {
    revision: Revision,
    tenant: Arc<str>,
    /// Bytes of the new version.
    added_bytes: u64,
    /// Bytes of the old version.
    replaced_bytes: u64,
}

/// A run of changes that is dropped as a whole.
#[derive(Debug, Default)]
struct HistorySegment {
    last_revision: Revision,
    n_changes: usize,
    segment_bytes: u64,
    bytes_by_tenant: Vec<(Arc<str>, u64)>,
}

/// The byte counts of the store, kept by the writer.
#[derive(Debug)]
pub(crate) struct UsageAccounting {
    tenant_resolver: TenantResolver,
    live_bytes_by_tenant: BytesByTenant,
    history_bytes_by_tenant: BytesByTenant,
    history_segments: VecDeque<HistorySegment>,
    /// Changes of the current batch, which is not durable yet.
    pending_changes: Vec<PendingChange>,
    /// All changes up to this revision are counted.
    recorded_through_revision: Revision,
}

/// The size of a version for accounting.
pub(crate) fn version_bytes(key_len: usize, value_len: usize) -> u64 {
    (key_len as u64).saturating_add(value_len as u64).saturating_add(VERSION_BYTES)
}

fn accounted_version_bytes(version: Option<&Arc<Version>>) -> u64 {
    version.map_or(0, |version| version_bytes(version.key.len(), version.value.len()))
}

impl BytesByTenant {
    fn add_tenant_bytes(&mut self, tenant: &Arc<str>, bytes: u64) {
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        let own = self.bytes_by_tenant.entry(tenant.clone()).or_default();
        *own = own.saturating_add(bytes);
    }

    fn subtract_tenant_bytes(&mut self, tenant: &Arc<str>, bytes: u64) {
        self.total_bytes = self.total_bytes.saturating_sub(bytes);
        if let Some(own) = self.bytes_by_tenant.get_mut(tenant) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.bytes_by_tenant.remove(tenant);
            }
        }
    }

    fn bytes_of_tenant(&self, tenant: &str) -> u64 {
        self.bytes_by_tenant.get(tenant).copied().unwrap_or(0)
    }

    /// Returns the shared name of a tenant, so that its changes do not copy it.
    fn intern_tenant(&self, tenant: &str) -> Arc<str> {
        self.bytes_by_tenant
            .get_key_value(tenant)
            .map_or_else(|| tenant.into(), |(name, _)| name.clone())
    }
}

impl UsageAccounting {
    /// Counts a state that has no history yet.
    pub(crate) fn new(tenant_of: TenantResolver, state: &StoreState) -> Self {
        let mut live_bytes_by_tenant = BytesByTenant::default();
        for version in state.version_tree.iter_from("") {
            let tenant = live_bytes_by_tenant.intern_tenant(tenant_of.tenant_of_key(&version.key));
            live_bytes_by_tenant.add_tenant_bytes(&tenant, accounted_version_bytes(Some(version)));
        }
        let history_bytes_by_tenant = BytesByTenant::default();
        let (segments, pending_changes) = (VecDeque::new(), Vec::new());
        Self {
            tenant_resolver: tenant_of,
            live_bytes_by_tenant,
            history_bytes_by_tenant,
            history_segments: segments,
            pending_changes,
            recorded_through_revision: state.revision,
        }
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes_by_tenant.total_bytes
    }

    pub(crate) fn history_bytes(&self) -> u64 {
        self.history_bytes_by_tenant.total_bytes
    }

    /// The tenant of a key, with its bytes in the current versions and in the history.
    pub(crate) fn tenant_usage<'k>(&self, key: &'k str) -> (&'k str, u64, u64) {
        let tenant = self.tenant_resolver.tenant_of_key(key);
        (
            tenant,
            self.live_bytes_by_tenant.bytes_of_tenant(tenant),
            self.history_bytes_by_tenant.bytes_of_tenant(tenant),
        )
    }

    /// Counts the changes since the last call.
    pub(crate) fn record_new_changes(&mut self, state: &StoreState) {
        let (mut recorded_through, after) =
            (self.recorded_through_revision, self.recorded_through_revision);
        // The newest changes are in memory, so this reads no file.
        let visited = state.history.visit_changes_after(after, &mut |change| {
            recorded_through = change.revision;
            self.record_change(change);
            true
        });
        if visited.is_ok() {
            self.recorded_through_revision = recorded_through;
        }
    }

    fn record_change(&mut self, change: &KeyChange) {
        let Some(version) = change.new_version.as_ref().or(change.old_version.as_ref()) else {
            return;
        };
        let text = self.tenant_resolver.tenant_of_key(&version.key);
        let tenant = self.live_bytes_by_tenant.intern_tenant(text);
        let (added_bytes, replaced_bytes) = (
            accounted_version_bytes(change.new_version.as_ref()),
            accounted_version_bytes(change.old_version.as_ref()),
        );
        self.live_bytes_by_tenant.add_tenant_bytes(&tenant, added_bytes);
        self.live_bytes_by_tenant.subtract_tenant_bytes(&tenant, replaced_bytes);
        self.history_bytes_by_tenant.add_tenant_bytes(&tenant, added_bytes + replaced_bytes);
        self.pending_changes.push(PendingChange {
            revision: change.revision,
            tenant,
            added_bytes,
            replaced_bytes,
        });
    }

    /// Commits the batch, and drops the history up to the floor.
    pub(crate) fn commit_batch(&mut self, floor: Revision) {
        for change in std::mem::take(&mut self.pending_changes) {
            let is_full = |segment: &HistorySegment| {
                // A revision is never split between segments.
                segment.last_revision < change.revision
                    && (segment.n_changes >= SEGMENT_CHANGES_MAX
                        || segment.segment_bytes >= SEGMENT_BYTES_MAX)
            };
            if self.history_segments.back().is_none_or(is_full) {
                self.history_segments.push_back(HistorySegment::default());
            }
            if let Some(segment) = self.history_segments.back_mut() {
                segment.add_change(change);
            }
        }
        while let Some(segment) =
            self.history_segments.pop_front_if(|segment| segment.last_revision <= floor)
        {
            for (tenant, bytes) in &segment.bytes_by_tenant {
                self.history_bytes_by_tenant.subtract_tenant_bytes(tenant, *bytes);
            }
        }
    }

    /// Undoes the batch after it failed.
    pub(crate) fn roll_back_batch(&mut self, revision: Revision) {
        // Newest first, so that no count falls below zero.
        for PendingChange { tenant, added_bytes, replaced_bytes, .. } in
            std::mem::take(&mut self.pending_changes).into_iter().rev()
        {
            self.live_bytes_by_tenant.add_tenant_bytes(&tenant, replaced_bytes);
            self.live_bytes_by_tenant.subtract_tenant_bytes(&tenant, added_bytes);
            self.history_bytes_by_tenant
                .subtract_tenant_bytes(&tenant, added_bytes + replaced_bytes);
        }
        self.recorded_through_revision = revision;
    }

    /// The lowest floor that keeps at most `bytes_max` bytes of history, in whole segments; `None` if all of
    /// it may stay.
    pub(crate) fn floor_for_history_bytes(&self, bytes_max: u64) -> Option<Revision> {
        let mut excess = self.history_bytes_by_tenant.total_bytes.saturating_sub(bytes_max);
        let mut floor = None;
        for segment in &self.history_segments {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(segment.segment_bytes);
            floor = Some(segment.last_revision);
        }
        floor
    }
}

impl HistorySegment {
    fn add_change(&mut self, change: PendingChange) {
        let bytes = change.added_bytes + change.replaced_bytes;
        self.last_revision = change.revision;
        self.n_changes += 1;
        self.segment_bytes += bytes;
        match self.bytes_by_tenant.iter_mut().find(|(tenant, _)| *tenant == change.tenant) {
            Some((_, own)) => *own += bytes,
            None => self.bytes_by_tenant.push((change.tenant, bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version_tree::VersionTree;
    use store::Key;

    fn put(state: &mut StoreState, key: &str, value_len: usize) {
        let revision = state.revision.next();
        state.put(revision, Key::new(key).unwrap(), vec![b'x'; value_len].into(), None);
    }

    fn accounting() -> (StoreState, UsageAccounting) {
        let state = StoreState::new(Revision::FIRST, VersionTree::new());
        let accounting = UsageAccounting::new(TenantResolver::default(), &state);
        (state, accounting)
    }

    #[test]
    fn shares_are_counted_and_forgotten_with_the_history() {
        let (mut state, mut accounting) = accounting();
        put(&mut state, "/a/x", 100);
        put(&mut state, "/a/x", 300);
        put(&mut state, "/b/x", 1000);
        accounting.record_new_changes(&state);
        let one = |value| version_bytes(4, value);
        assert_eq!(
            accounting.tenant_usage("/a/y"),
            ("/a/", one(300), one(100) + one(300) + one(100))
        );
        assert_eq!(accounting.tenant_usage("/b/y"), ("/b/", one(1000), one(1000)));
        let floor = state.revision;
        state.compact(floor);
        accounting.commit_batch(floor);
        assert_eq!(accounting.tenant_usage("/a/y"), ("/a/", one(300), 0));
        assert_eq!(
            (accounting.live_bytes(), accounting.history_bytes()),
            (one(300) + one(1000), 0)
        );
        assert_eq!(
            UsageAccounting::new(TenantResolver::default(), &state).live_bytes(),
            accounting.live_bytes()
        );
    }

    #[test]
    fn a_failed_batch_changes_no_count() {
        let (mut state, mut accounting) = accounting();
        put(&mut state, "/a/x", 100);
        accounting.record_new_changes(&state);
        accounting.commit_batch(state.compaction_floor);
        let before = state.clone();
        let books =
            (accounting.live_bytes(), accounting.history_bytes(), accounting.tenant_usage("/a/x"));
        put(&mut state, "/a/x", 5000);
        state.delete(state.revision.next(), "/a/x");
        accounting.record_new_changes(&state);
        assert_eq!(accounting.live_bytes(), 0);
        accounting.roll_back_batch(before.revision);
        assert_eq!(
            (accounting.live_bytes(), accounting.history_bytes(), accounting.tenant_usage("/a/x")),
            books
        );
    }

    #[test]
    fn the_floor_that_keeps_so_many_bytes() {
        let (mut state, mut accounting) = accounting();
        for _ in 0..10 {
            put(&mut state, "/a/x", SEGMENT_BYTES_MAX as usize);
            accounting.record_new_changes(&state);
            accounting.commit_batch(state.compaction_floor);
        }
        assert_eq!(accounting.floor_for_history_bytes(accounting.history_bytes()), None);
        // The first change replaces no version, so it is half as large as the others.
        assert_eq!(
            accounting.floor_for_history_bytes(accounting.history_bytes() - 1),
            Some(Revision::new(2))
        );
        assert_eq!(accounting.floor_for_history_bytes(0), Some(state.revision));
        let kept = accounting.floor_for_history_bytes(3 * 2 * SEGMENT_BYTES_MAX).unwrap();
        assert_eq!(kept.as_u64(), state.revision.as_u64() - 2, "two and the slack of a segment");
    }
}
