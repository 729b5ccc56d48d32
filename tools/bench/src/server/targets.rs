//! The promises of the benchmark, and whether this run meets them.

use crate::numbers::thousands;
use std::time::Duration;

use crate::server::report::{Report, Row, duration, megabytes};
use crate::targets::Target;

/// The smallest number of reviews per second with the default policy, on two processors that the client uses
/// too.
const REVIEWS_PER_SECOND_MIN: f64 = 15_000.0;
/// The smallest share of that with many bindings, in the median of the rounds. Two runs of the same server
/// differ by some percent, so only a smaller share counts as slower.
const REVIEWS_SHARE_MIN: f64 = 0.95;
const START_BYTES_MAX: u64 = 60_000_000;
const BINDINGS_BYTES_MAX: u64 = 150_000_000;
const READY_MAX: Duration = Duration::from_secs(1);

/// The promises that the report has measurements for.
pub(crate) fn check(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    let reviews = || report.rows.iter().filter(|row| row.case.is_review());
    let default = reviews().filter(|row| row.n_bindings == 0);
    let per_second = default.clone().filter_map(Row::best).map(|best| best.per_second);
    if let Some(worst) = per_second.reduce(f64::min) {
        targets.push(Target {
            promise: format!(
                "at least {} SubjectAccessReviews a second",
                thousands(REVIEWS_PER_SECOND_MIN as u64)
            ),
            measured: thousands(worst as u64),
            is_met: worst >= REVIEWS_PER_SECOND_MIN,
        });
    }
    for life in &report.servers {
        let bindings = thousands(life.n_bindings as u64);
        let own = reviews().filter(|row| row.n_bindings == life.n_bindings);
        let shares = own.zip(default.clone()).filter_map(|(own, default)| own.ratio(default));
        let worst = shares.reduce(f64::min).filter(|_| life.n_bindings > 0);
        if let Some(worst) = worst {
            targets.push(Target {
                promise: format!("no slower with {bindings} more bindings"),
                measured: format!("{:.0} % of the default policy", worst * 100.0),
                is_met: worst >= REVIEWS_SHARE_MIN,
            });
        }
    }
    targets.extend(report.servers.iter().map(|life| match life.n_bindings {
        0 => memory("at start", life.start_bytes, START_BYTES_MAX),
        n_bindings => memory(
            &format!("with {} more bindings", thousands(n_bindings as u64)),
            life.populated_bytes.max(life.restarted_bytes).max(life.read_bytes),
            BINDINGS_BYTES_MAX,
        ),
    }));
    let ready = report.servers.iter().map(|life| life.ready_new.max(life.ready_kept));
    if let Some(worst) = ready.max() {
        targets.push(Target {
            promise: format!("ready in under {}", duration(READY_MAX)),
            measured: duration(worst),
            is_met: worst < READY_MAX,
        });
    }
    targets
}

fn memory(when: &str, bytes: u64, limit: u64) -> Target {
    Target {
        promise: format!("resident memory {when} under {}", megabytes(limit)),
        measured: megabytes(bytes),
        is_met: bytes < limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::case::Case;
    use crate::server::load::LoadResult;
    use crate::server::measured_server::ServerMeasurements;

    fn row(n_bindings: usize, per_second: f64) -> Row {
        let time = Duration::from_micros(50);
        let result = LoadResult { per_second, p50: time, p99: time, server_time: time };
        Row { case: Case::ReviewDenied, n_bindings, results: vec![result] }
    }

    fn life(n_bindings: usize, bytes: u64, ready: Duration) -> ServerMeasurements {
        ServerMeasurements {
            n_bindings,
            ready_new: ready,
            start_bytes: bytes,
            read_bytes: bytes,
            ..ServerMeasurements::default()
        }
    }

    fn missed(report: &Report) -> Vec<String> {
        let missed = check(report).into_iter().filter(|target| !target.is_met);
        missed.map(|target| target.promise).collect()
    }

    #[test]
    fn each_promise_can_be_broken() {
        let ready = READY_MAX - Duration::from_millis(1);
        let kept = Report {
            n_connections: 1,
            rows: vec![row(0, 15_000.0), row(7, 14_250.0)],
            servers: vec![
                life(0, START_BYTES_MAX - 1, ready),
                life(7, BINDINGS_BYTES_MAX - 1, ready),
            ],
        };
        assert_eq!(check(&kept).len(), 5);
        assert_eq!(missed(&kept), [""; 0]);
        let broken = Report {
            n_connections: 1,
            rows: vec![row(0, 14_999.0), row(7, 14_000.0)],
            servers: vec![
                life(0, START_BYTES_MAX, READY_MAX),
                life(7, BINDINGS_BYTES_MAX, READY_MAX),
            ],
        };
        assert_eq!(
            missed(&broken),
            [
                "at least 15,000 SubjectAccessReviews a second",
                "no slower with 7 more bindings",
                "resident memory at start under 60.0 MB",
                "resident memory with 7 more bindings under 150.0 MB",
                "ready in under 1.00 s",
            ]
        );
    }
}
