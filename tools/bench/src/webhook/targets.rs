//! What was promised, and whether it holds in this run.

use crate::numbers::duration;

use crate::targets::Target;
use crate::webhook::contest::Contest;
use crate::webhook::report::Report;

/// The median of a remembered answer, in nanoseconds.
const CACHED_NS_MAX: f64 = 500.0;
/// How many times faster than upstream a remembered answer is.
const CACHED_RATIO_MIN: f64 = 10.0;
/// How many times faster than upstream a call is: no slower.
const CALL_RATIO_MIN: f64 = 1.0;
/// Calls for one question that many have at once.
const STORM_CALLS: u64 = 1;

/// The promises that the report can tell about.
pub(crate) fn check(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    let ours = |contest| report.row(contest).and_then(|row| row.ours);
    let at_most = |contest: Contest, what: &str, limit: f64| {
        let outcome = ours(contest)?;
        Some(Target {
            promise: format!("{what}: at most {}", duration(limit)),
            measured: duration(outcome.p50_ns),
            is_met: outcome.p50_ns <= limit,
        })
    };
    let faster = |contest: Contest, promise: &str, least: f64| {
        let ratio = report.row(contest)?.ratio()?;
        Some(Target {
            promise: promise.to_owned(),
            measured: format!("{ratio:.2} times as fast"),
            is_met: ratio >= least,
        })
    };
    for contest in [Contest::CachedFew, Contest::CachedMany] {
        let name = contest.name();
        targets.extend(at_most(contest, name, CACHED_NS_MAX));
        targets.extend(ours(contest).map(|outcome| Target {
            promise: format!("{name}: no allocation"),
            measured: format!("at most {} bytes", outcome.allocated),
            is_met: outcome.allocated == 0,
        }));
        let promise = format!("{name}: at least 10 times as fast as upstream");
        targets.extend(faster(contest, &promise, CACHED_RATIO_MIN));
    }
    for contest in [Contest::Calls, Contest::CallsAtOnce, Contest::Dead] {
        let promise = format!("{}: no slower than upstream", contest.name());
        targets.extend(faster(contest, &promise, CALL_RATIO_MIN));
    }
    targets.extend(ours(Contest::Storm).map(|outcome| Target {
        promise: "one call for the same question at once".to_owned(),
        measured: outcome.n_calls.to_string(),
        is_met: outcome.n_calls == STORM_CALLS,
    }));
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::measure::Outcome;
    use crate::webhook::report::Row;

    fn missed(contest: Contest, ours: Outcome, upstream_ns: f64) -> Vec<String> {
        let upstream = Some(Outcome { p50_ns: upstream_ns, ..Outcome::default() });
        let row = Row { contest, ours: Some(ours), upstream };
        let report = Report { rows: vec![row], upstream_absence: None };
        let missed = check(&report).into_iter().filter(|target| !target.is_met);
        missed.map(|target| target.promise).collect()
    }

    #[test]
    fn both_sides_of_every_promise() {
        let time = |p50_ns| Outcome { p50_ns, ..Outcome::default() };
        assert_eq!(missed(Contest::CachedFew, time(500.0), 5_000.0), [""; 0]);
        assert_eq!(
            missed(Contest::CachedFew, time(501.0), 5_010.0),
            ["cached, few questions: at most 500 ns"]
        );
        assert_eq!(
            missed(Contest::CachedFew, time(500.0), 4_999.0),
            ["cached, few questions: at least 10 times as fast as upstream"]
        );
        assert_eq!(
            missed(Contest::CachedFew, Outcome { allocated: 1, ..time(100.0) }, 5_000.0),
            ["cached, few questions: no allocation"]
        );
        assert_eq!(missed(Contest::Calls, time(100.0), 100.0), [""; 0]);
        assert_eq!(
            missed(Contest::Calls, time(100.0), 99.0),
            ["call, HTTP/1.1: no slower than upstream"]
        );
        assert_eq!(
            missed(Contest::Dead, time(100.0), 99.0),
            ["dead service: no slower than upstream"]
        );
        let storm = |n_calls| Outcome { n_calls, ..Outcome::default() };
        assert_eq!(missed(Contest::Storm, storm(1), 1.0), [""; 0]);
        assert_eq!(
            missed(Contest::Storm, storm(2), 1.0),
            ["one call for the same question at once"]
        );
    }
}
