//! The promises of the comparison, and whether this run meets them.

use std::time::Duration;

use crate::floor::case::Case;
use crate::floor::report::Report;
use crate::numbers::thousands;
use crate::server::report::{duration, megabytes};
use crate::targets::Target;

/// The smallest share of the CPU time of a request that the floor takes too.
const SHARE_MIN: f64 = 0.75;
const LARGE_LIST_MAX: Duration = Duration::from_millis(4);
/// A tenth of what kube-apiserver takes on such a machine.
const DELIVERY_MAX: Duration = Duration::from_nanos(2_300);
const BINDINGS_BYTES_MAX: u64 = 55_000_000;

/// The promises that the report has measurements for.
pub(crate) fn check(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    for row in &report.rows {
        let time_max = match row.case {
            Case::Review | Case::Get | Case::GetAsServiceAccount => {
                if let Some(share) = row.share_of_floor() {
                    targets.push(Target {
                        promise: format!(
                            "{}: at least {:.0} % of the floor",
                            row.name,
                            SHARE_MIN * 100.0
                        ),
                        measured: format!("{:.0} %", share * 100.0),
                        is_met: share >= SHARE_MIN,
                    });
                }
                continue;
            }
            Case::List => continue,
            Case::ListLarge => LARGE_LIST_MAX,
            Case::Watch => DELIVERY_MAX,
        };
        if let Some(time) = row.server_time(1) {
            targets.push(Target {
                promise: format!("{}: at most {} of CPU", row.name, duration(time_max)),
                measured: duration(time),
                is_met: time <= time_max,
            });
        }
    }
    targets.push(Target {
        promise: format!(
            "resident memory with {} more bindings at most {}",
            thousands(report.n_bindings),
            megabytes(BINDINGS_BYTES_MAX)
        ),
        measured: megabytes(report.bindings_bytes),
        is_met: report.bindings_bytes <= BINDINGS_BYTES_MAX,
    });
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::report::{Measurement, Row};

    fn row(case: Case, floor_ns: u64, ours_ns: u64) -> Row {
        let measurement =
            |nanos| Measurement { per_second: 1.0, server_time: Duration::from_nanos(nanos) };
        Row {
            case,
            name: case.name(10_000),
            results: vec![vec![measurement(floor_ns)], vec![measurement(ours_ns)]],
        }
    }

    fn missed(rows: Vec<Row>, bindings_bytes: u64) -> Vec<String> {
        let names = vec!["floor", "ours"];
        let report = Report { names, rows, n_bindings: 10_000, bindings_bytes };
        let missed = check(&report).into_iter().filter(|target| !target.is_met);
        missed.map(|target| target.promise).collect()
    }

    #[test]
    fn each_promise_can_be_broken() {
        let kept = vec![
            row(Case::Review, 750, 1_000),
            row(Case::Get, 750, 1_000),
            row(Case::List, 1, 1_000),
            row(Case::ListLarge, 1, 4_000_000),
            row(Case::Watch, 1, 2_300),
        ];
        assert_eq!(missed(kept, 55_000_000), [""; 0]);
        let broken = vec![
            row(Case::Review, 749, 1_000),
            row(Case::Get, 749, 1_000),
            row(Case::ListLarge, 1, 4_000_001),
            row(Case::Watch, 1, 2_301),
        ];
        assert_eq!(
            missed(broken, 55_000_001),
            [
                "SubjectAccessReview: at least 75 % of the floor",
                "GET a Namespace: at least 75 % of the floor",
                "LIST 10,000 ConfigMaps: at most 4.00 ms of CPU",
                "WATCH, one delivery: at most 2.30 µs of CPU",
                "resident memory with 10,000 more bindings at most 55.0 MB",
            ]
        );
    }
}
