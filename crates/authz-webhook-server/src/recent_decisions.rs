//! The most recent decisions, so that an administrator can read why each was made.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use authz_chain::Chain;
use bytes::Bytes;
use jiff::Timestamp;

use crate::decision_id::DecisionId;

/// The memory of a decision besides its bytes.
const DECISION_OVERHEAD_BYTES: usize = 256;

/// The most policy snapshots that decisions keep in memory. The bytes of a decision do not count those of its snapshot, which
/// can be as large as the whole policy, and every change of the policy makes a new one.
const CHAINS_MAX: usize = 8;

/// A decision that can be explained.
#[derive(Debug, Clone)]
pub(crate) struct RecentDecision {
    /// The time of the decision.
    pub(crate) decided_at: Timestamp,
    /// The inputs of the explanation.
    pub(crate) explanation: ExplanationSource,
}

/// The source of the explanation of a decision.
#[derive(Debug, Clone)]
pub(crate) enum ExplanationSource {
    /// The chain that decided, and the review as JSON. The chain is immutable and asks nothing outside of it, so it decides
    /// again in the same way and records a trace then. A trace of each decision would slow down all of them.
    Chain(Arc<Chain>, Bytes),
    /// The explanation as JSON, which was recorded with the decision. Its chain calls webhooks or plugins.
    Recorded(Bytes),
}

/// The most recent decisions, bounded in number, in bytes and in the number of chains that they keep in memory. The oldest is
/// dropped first, whoever asked for it.
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
    /// The chains of the decisions, oldest first.
    ///
    /// INVARIANT: each chain of a decision is in it once, and there are at most [`CHAINS_MAX`].
    chains_by_age: VecDeque<ChainUse>,
}

/// A chain, and the number of decisions that keep it.
#[derive(Debug)]
struct ChainUse {
    chain: Arc<Chain>,
    n_decisions: usize,
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
        if let ExplanationSource::Chain(chain, _) = &decision.explanation {
            entries.add_chain_use(chain);
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
            if let ExplanationSource::Chain(chain, _) = &removed.explanation {
                self.remove_chain_use(chain);
            }
        }
    }

    /// Counts one more decision of a chain. For a chain beyond the limit, the decisions of the oldest chain are dropped.
    fn add_chain_use(&mut self, chain: &Arc<Chain>) {
        let is_same = |own: &&mut ChainUse| Arc::ptr_eq(&own.chain, chain);
        // Most decisions are of the newest chain.
        if let Some(chain_use) = self.chains_by_age.iter_mut().rev().find(is_same) {
            chain_use.n_decisions += 1;
            return;
        }
        while self.chains_by_age.len() >= CHAINS_MAX {
            let Some(oldest) = self.chains_by_age.pop_front() else { break };
            self.remove_decisions_of_chain(&oldest.chain);
        }
        self.chains_by_age.push_back(ChainUse { chain: Arc::clone(chain), n_decisions: 1 });
    }

    fn remove_chain_use(&mut self, chain: &Arc<Chain>) {
        let is_same = |own: &ChainUse| Arc::ptr_eq(&own.chain, chain);
        let Some(idx) = self.chains_by_age.iter().position(is_same) else { return };
        let Some(chain_use) = self.chains_by_age.get_mut(idx) else { return };
        chain_use.n_decisions = chain_use.n_decisions.saturating_sub(1);
        if chain_use.n_decisions == 0 {
            self.chains_by_age.remove(idx);
        }
    }

    fn remove_decisions_of_chain(&mut self, chain: &Arc<Chain>) {
        let is_of_chain = |decision: &RecentDecision| match &decision.explanation {
            ExplanationSource::Chain(own, _) => Arc::ptr_eq(own, chain),
            ExplanationSource::Recorded(_) => false,
        };
        let ids: Vec<DecisionId> =
            self.by_id.iter().filter(|entry| is_of_chain(entry.1)).map(|entry| *entry.0).collect();
        for id in ids {
            self.remove(id);
        }
        let by_id = &self.by_id;
        self.ids_by_age.retain(|id| by_id.contains_key(id));
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

    /// A policy that changes with every decision does not stay in memory as often as there are decisions.
    #[test]
    fn recent_decisions_keep_a_bounded_number_of_policies() {
        let ids = DecisionIdGenerator::new();
        let decisions = RecentDecisions::new(1_000, 1 << 20);
        let chains: Vec<Arc<Chain>> =
            (0..=CHAINS_MAX).map(|_| Arc::new(Chain::new(Vec::new()).unwrap())).collect();
        let add = |chain: &Arc<Chain>| {
            let id = ids.next_id();
            let explanation = ExplanationSource::Chain(Arc::clone(chain), Bytes::from_static(b"x"));
            let decided_at = Timestamp::UNIX_EPOCH;
            decisions.add(id, RecentDecision { decided_at, explanation });
            id
        };
        let recorded = ids.next_id();
        decisions.add(recorded, decision(1));
        let (last, first) = chains.split_last().unwrap();
        let added: Vec<DecisionId> = first.iter().flat_map(|own| [add(own), add(own)]).collect();
        let n_found = || added.iter().filter(|id| decisions.find(**id).is_some()).count();
        assert_eq!(n_found(), 2 * CHAINS_MAX);
        let newest = add(last);
        assert_eq!(n_found(), 2 * (CHAINS_MAX - 1));
        assert!(added[..2].iter().all(|id| decisions.find(*id).is_none()), "the oldest policy");
        assert!(decisions.find(newest).is_some() && decisions.find(recorded).is_some());
        let n_kept = 2 * CHAINS_MAX;
        assert_eq!(decisions.usage(), (n_kept, n_kept * (1 + DECISION_OVERHEAD_BYTES)));
        assert_eq!(decisions.lock().ids_by_age.len(), n_kept);
        assert_eq!(Arc::strong_count(&chains[0]), 1, "nothing keeps the oldest policy");
    }

    /// A policy whose last decision is dropped for its age is not counted any more.
    #[test]
    fn decisions_that_are_dropped_release_their_policy() {
        let ids = DecisionIdGenerator::new();
        let decisions = RecentDecisions::new(1, 1 << 20);
        for _ in 0..=CHAINS_MAX {
            let chain = Arc::new(Chain::new(Vec::new()).unwrap());
            let explanation = ExplanationSource::Chain(chain, Bytes::new());
            let decided_at = Timestamp::UNIX_EPOCH;
            decisions.add(ids.next_id(), RecentDecision { decided_at, explanation });
            assert_eq!(decisions.lock().chains_by_age.len(), 1);
        }
    }

    #[test]
    fn without_entries_nothing_is_kept() {
        let id = DecisionIdGenerator::new().next_id();
        let decisions = RecentDecisions::new(0, 1 << 20);
        decisions.add(id, decision(1));
        assert!(decisions.find(id).is_none());
    }
}
