//! Measures one authorizer with one policy and one kind of user: the index and the naive implementation.

use ::authz::{Attributes, Decision};

use crate::authz::agreement::{Agreement, Depth, compare};
use crate::authz::measure::{Effort, Times, allocated_max, time_decisions};
use crate::authz::request_pool::RequestPool;
use crate::authz::upstream::Upstream;

/// The authorizer, the policy and the users of one comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) authorizer: &'static str,
    /// The number of policy objects and the name of their kind.
    pub(crate) size: usize,
    pub(crate) unit: &'static str,
    /// The number of groups of each user; `None` if the users differ.
    pub(crate) n_groups: Option<usize>,
    pub(crate) depth: Depth,
}

/// The measurements of one comparison.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) comparison: Comparison,
    pub(crate) ours: Times,
    /// The largest number of bytes that one allowed decision allocates.
    pub(crate) allocated_max: usize,
    pub(crate) reference: Times,
    pub(crate) agreement: Agreement,
    /// The measurements of Kubernetes' authorizer, if it was run.
    pub(crate) upstream: Option<Upstream>,
}

impl Comparison {
    /// The name that identifies the results of upstream.
    pub(crate) fn name(&self) -> String {
        let groups = self.n_groups.map(|n_groups| format!("-{n_groups}")).unwrap_or_default();
        format!("{}-{}{groups}", self.authorizer.to_lowercase(), self.size)
    }

    pub(crate) fn run(
        self,
        pool: &RequestPool,
        effort: Effort,
        ours: impl Fn(&Attributes<'_>) -> Decision,
        reference: impl Fn(&Attributes<'_>) -> Decision,
    ) -> Row {
        let times = time_decisions(pool, &ours);
        let allocated_max = allocated_max(pool, &ours);
        let (agreement, reference) =
            compare(pool, effort.reference_time_max, self.depth, &ours, reference);
        Row { comparison: self, ours: times, allocated_max, reference, agreement, upstream: None }
    }
}

impl Row {
    /// The median of upstream as a multiple of ours.
    pub(crate) fn upstream_ratio(&self) -> Option<f64> {
        self.upstream.as_ref().map(|upstream| upstream.p50_ns / self.ours.p50_ns.max(1.0))
    }
}
