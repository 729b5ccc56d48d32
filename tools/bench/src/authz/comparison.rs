//! One authorizer, one policy, one kind of asker: the index and the naive implementation.

use ::authz::{Attributes, Decision};

use crate::authz::agreement::{Agreement, Depth, compare};
use crate::authz::measure::{Effort, Times, allocated_max, time_decisions};
use crate::authz::question::Pool;
use crate::authz::upstream::Upstream;

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest {
    pub(crate) authorizer: &'static str,
    /// How many objects there are, and what they are called.
    pub(crate) size: usize,
    pub(crate) unit: &'static str,
    /// In how many groups those who ask are, if all are in as many.
    pub(crate) n_groups: Option<usize>,
    pub(crate) depth: Depth,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) contest: Contest,
    pub(crate) ours: Times,
    /// The most bytes that one decision that allows has allocated.
    pub(crate) allocated_max: usize,
    pub(crate) oracle: Times,
    pub(crate) agreement: Agreement,
    /// What Kubernetes' own authorizer needs, where it could be asked.
    pub(crate) upstream: Option<Upstream>,
}

impl Contest {
    /// The name by which the answers of upstream are found.
    pub(crate) fn name(&self) -> String {
        let groups = self.n_groups.map(|n_groups| format!("-{n_groups}")).unwrap_or_default();
        format!("{}-{}{groups}", self.authorizer.to_lowercase(), self.size)
    }

    pub(crate) fn run(
        self,
        pool: &Pool,
        effort: Effort,
        ours: impl Fn(&Attributes<'_>) -> Decision,
        oracle: impl Fn(&Attributes<'_>) -> Decision,
    ) -> Row {
        let times = time_decisions(pool, &ours);
        let allocated_max = allocated_max(pool, &ours);
        let (agreement, oracle) = compare(pool, effort.oracle_time_max, self.depth, &ours, oracle);
        Row { contest: self, ours: times, allocated_max, oracle, agreement, upstream: None }
    }
}

impl Row {
    /// How many times longer upstream takes for half of the decisions.
    pub(crate) fn upstream_ratio(&self) -> Option<f64> {
        self.upstream.as_ref().map(|upstream| upstream.p50_ns / self.ours.p50_ns.max(1.0))
    }
}
