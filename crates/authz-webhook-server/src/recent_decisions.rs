//! The most recent decisions, so that an administrator can read why each was made.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use authz_chain::Chain;
use bytes::Bytes;
use jiff::Timestamp;

use crate::decision_id::DecisionId;

/// The memory of a decision besides its bytes.
const DECISION_OVERHEAD_BYTES: usize = 256;

/// A decision that can be explained.
#[derive(Debug, Clone)]
pub(crate) struct RecentDecision {
    /// The time of the decision.
    pub(crate) decided_at: Timestamp,
    /// The inputs of the explanation.
    pub(crate) explanation: ExplanationSource,
}

/// What explains a decision.
#[derive(Debug, Clone)]
pub(crate) enum ExplanationSource {
    /// The chain that decided, and the review as JSON. The chain is immutable and asks nothing outside of it, so it decides
    /// again in the same way and records a trace then. A trace of each decision would slow down all of them.
    Chain(Arc<Chain>, Bytes),
    /// The explanation as JSON, which was recorded with the decision. Its chain calls webhooks or plugins.
    Recorded(Bytes),
}

/// The most recent decisions, bounded in number and in bytes. The oldest is dropped first, whoever asked for it.
#[derive(Debug)]
pub(crate) struct RecentDecisions {
    entries_max: usize,
    bytes_max: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<DecisionId, RecentDecision>,
    ids_by_age: VecDeque<DecisionId>,
    n_bytes: usize,
}

impl ExplanationSource {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Chain(_, bytes) | Self::Recorded(bytes) => bytes.len(),
        }
    }
}

impl RecentDecisions {
    /// Keeps at most so many decisions, with at most so many bytes together.
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self { entries_max, bytes_max, entries: Mutex::default() }
    }

    /// Whether decisions are kept at all.
    pub(crate) fn is_enabled(&self) -> bool {
        self.entries_max > 0
    }

    /// Adds a decision, and drops the oldest ones beyond the limits.
    pub(crate) fn add(&self, id: DecisionId, decision: RecentDecision) {
        let n_bytes = decision.explanation.n_bytes() + DECISION_OVERHEAD_BYTES;
        if n_bytes > self.bytes_max || !self.is_enabled() {
            return;
        }
        let mut entries = self.lock();
        while entries.by_id.len() >= self.entries_max || entries.n_bytes + n_bytes > self.bytes_max
        {
            let Some(oldest) = entries.ids_by_age.pop_front() else { break };
            entries.remove(oldest);
        }
        if entries.by_id.contains_key(&id) {
            // Ids are random; the earlier decision keeps its id.
            return;
        }
        entries.by_id.insert(id, decision);
        entries.ids_by_age.push_back(id);
        entries.n_bytes += n_bytes;
    }

    /// Returns a decision that is still kept.
    pub(crate) fn find(&self, id: DecisionId) -> Option<RecentDecision> {
        self.lock().by_id.get(&id).cloned()
    }

    /// The number of decisions and of their bytes.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let entries = self.lock();
        (entries.by_id.len(), entries.n_bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, id: DecisionId) {
        if let Some(removed) = self.by_id.remove(&id) {
            self.n_bytes -= removed.explanation.n_bytes() + DECISION_OVERHEAD_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision_id::DecisionIdGenerator;

    fn decision(n_bytes: usize) -> RecentDecision {
        let bytes = Bytes::from(vec![b'x'; n_bytes]);
        let explanation = ExplanationSource::Recorded(bytes);
        RecentDecision { decided_at: Timestamp::UNIX_EPOCH, explanation }
    }

    /// Callers share the decisions: many decisions of one caller drop the oldest ones, and never grow the memory.
    #[test]
    fn recent_decisions_are_bounded_in_number_and_bytes() {
        let ids = DecisionIdGenerator::new();
        let decisions = RecentDecisions::new(3, 4 * (100 + DECISION_OVERHEAD_BYTES));
        let added: Vec<DecisionId> = (0..5)
            .map(|_| {
                let id = ids.next_id();
                decisions.add(id, decision(100));
                id
            })
            .collect();
        let found: Vec<bool> = added.iter().map(|id| decisions.find(*id).is_some()).collect();
        assert_eq!(found, [false, false, true, true, true]);
        // One decision of the size of all others takes their place, and a larger one is not kept.
        let large = ids.next_id();
        decisions.add(large, decision(4 * 100 + 3 * DECISION_OVERHEAD_BYTES));
        assert_eq!(decisions.usage().0, 1);
        decisions.add(ids.next_id(), decision(4 * 100 + 3 * DECISION_OVERHEAD_BYTES + 1));
        assert!(decisions.find(large).is_some() && decisions.usage().0 == 1);
    }

    #[test]
    fn without_entries_nothing_is_kept() {
        let id = DecisionIdGenerator::new().next_id();
        let decisions = RecentDecisions::new(0, 1 << 20);
        decisions.add(id, decision(1));
        assert!(decisions.find(id).is_none());
    }
}
