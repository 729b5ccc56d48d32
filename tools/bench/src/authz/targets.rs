//! The promises of the benchmark, and whether this run meets them.

use crate::numbers::{duration, thousands};

use crate::authz::comparison::Row;
use crate::authz::report::Report;
use crate::targets::Target;

/// The median and the 99th percentile of RBAC, in nanoseconds.
const RBAC_NS_MAX: (f64, f64) = (5_000.0, 20_000.0);
const ABAC_P50_NS_MAX: f64 = 2_000.0;
const NODE_P50_NS_MAX: f64 = 2_000.0;
/// The smallest ratio of upstream to ours for RBAC with this number of bindings.
const UPSTREAM_RATIOS_MIN: [(usize, f64); 2] = [(1_000, 20.0), (10_000, 200.0)];
const WHO_CAN_NS_MAX: f64 = 20e6;
const UPDATE_NS_MAX: f64 = 50e3;
/// The smallest number of decisions on which index and reference implementation must agree.
const DECISIONS_MIN: usize = 1_000_000;

/// The promises that the report has measurements for.
pub(crate) fn check(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut at_most = |promise: String, measured: Vec<f64>, limit: f64| {
        if let Some(worst) = measured.into_iter().reduce(f64::max) {
            let is_met = worst <= limit;
            targets.push(Target { promise, measured: duration(worst), is_met });
        }
    };
    let times = |authorizer: &'static str, size: Option<usize>, part: fn(&Row) -> f64| {
        let is_it = move |row: &&Row| {
            row.comparison.authorizer == authorizer
                && size.is_none_or(|size| row.comparison.size == size)
        };
        report.rows.iter().filter(is_it).map(part).collect::<Vec<f64>>()
    };
    for size in [100, 1_000, 10_000, 100_000] {
        let shown = thousands(size);
        let (p50, p99) = RBAC_NS_MAX;
        at_most(
            format!("RBAC p50 with {shown} bindings at most {}", duration(p50)),
            times("RBAC", Some(size), |row| row.ours.p50_ns),
            p50,
        );
        at_most(
            format!("RBAC p99 with {shown} bindings at most {}", duration(p99)),
            times("RBAC", Some(size), |row| row.ours.p99_ns),
            p99,
        );
    }
    at_most(
        format!("ABAC p50 at most {}", duration(ABAC_P50_NS_MAX)),
        times("ABAC", None, |row| row.ours.p50_ns),
        ABAC_P50_NS_MAX,
    );
    at_most(
        format!("Node p50 at most {}", duration(NODE_P50_NS_MAX)),
        times("Node", None, |row| row.ours.p50_ns),
        NODE_P50_NS_MAX,
    );
    let indexes = || report.indexes.iter().filter(|row| row.authorizer == "RBAC");
    at_most(
        format!("who can over 100,000 bindings at most {}", duration(WHO_CAN_NS_MAX)),
        indexes().filter_map(|row| row.who_can).map(|times| times.max_ns).collect(),
        WHO_CAN_NS_MAX,
    );
    at_most(
        format!("update of one binding (p99) at most {}", duration(UPDATE_NS_MAX)),
        indexes().filter_map(|row| row.update).map(|times| times.p99_ns).collect(),
        UPDATE_NS_MAX,
    );
    targets.extend(counted(report));
    targets
}

/// The promises that are not about a duration.
fn counted(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    for (size, least) in UPSTREAM_RATIOS_MIN {
        let is_it = |row: &&Row| row.comparison.authorizer == "RBAC" && row.comparison.size == size;
        let ratios = report.rows.iter().filter(is_it).filter_map(Row::upstream_ratio);
        if let Some(worst) = ratios.reduce(f64::min) {
            targets.push(Target {
                promise: format!(
                    "RBAC at least {least} times upstream with {} bindings",
                    thousands(size)
                ),
                measured: format!("{worst:.1} times"),
                is_met: worst >= least,
            });
        }
    }
    if let Some(most) = report.rows.iter().map(|row| row.allocated_max).max() {
        targets.push(Target {
            promise: "no allocation where a request is allowed".to_owned(),
            measured: format!("at most {most} bytes a decision"),
            is_met: most == 0,
        });
    }
    let (n_decisions, n_disagreements) = report.reference_agreement();
    let n_agreed = n_decisions - n_disagreements;
    targets.push(Target {
        promise: format!(
            "index and oracle agree on at least {} decisions, and on all",
            thousands(DECISIONS_MIN)
        ),
        measured: format!("{} of {}", thousands(n_agreed), thousands(n_decisions)),
        is_met: n_disagreements == 0 && n_agreed >= DECISIONS_MIN,
    });
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::agreement::{Agreement, Depth};
    use crate::authz::comparison::Comparison;
    use crate::authz::measure::Times;
    use crate::authz::upstream::Upstream;

    fn row(p50_ns: f64, upstream_ns: f64, n_disagreements: usize) -> Row {
        let times = Times { p50_ns, p99_ns: p50_ns, max_ns: p50_ns };
        Row {
            comparison: Comparison {
                authorizer: "RBAC",
                size: 1000,
                unit: "bindings",
                n_groups: Some(1),
                depth: Depth::Verdict,
            },
            ours: times,
            allocated_max: 0,
            reference: times,
            agreement: Agreement {
                n_decisions: DECISIONS_MIN + n_disagreements,
                n_disagreements,
                shown: Vec::new(),
            },
            upstream: Some(Upstream {
                p50_ns: upstream_ns,
                p99_ns: upstream_ns,
                n_decisions: 1,
                n_disagreements: 0,
                shown: Vec::new(),
            }),
        }
    }

    fn missed(rows: Vec<Row>) -> Vec<String> {
        let report = Report { rows, ..Report::default() };
        let missed = check(&report).into_iter().filter(|target| !target.is_met);
        missed.map(|target| target.promise).collect()
    }

    #[test]
    fn the_worst_row_counts() {
        assert_eq!(missed(vec![row(1000.0, 20_000.0, 0)]), [""; 0]);
        assert_eq!(
            missed(vec![row(5000.0, 200_000.0, 0), row(5001.0, 200_000.0, 0)]),
            ["RBAC p50 with 1,000 bindings at most 5.00 µs"]
        );
        assert_eq!(
            missed(vec![row(1000.0, 19_999.0, 0)]),
            ["RBAC at least 20 times upstream with 1,000 bindings"]
        );
        assert_eq!(
            missed(vec![row(1000.0, 20_000.0, 1)]),
            ["index and oracle agree on at least 1,000,000 decisions, and on all"]
        );
    }
}
