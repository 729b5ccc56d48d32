//! The promises of the benchmark, and whether this run meets them.

use crate::numbers::duration;

use crate::targets::Target;
use crate::webhook::report::Report;
use crate::webhook::scenario::Scenario;

/// The largest median of a cached answer, in nanoseconds.
const CACHED_NS_MAX: f64 = 500.0;
/// The smallest ratio of upstream to ours for a cached answer.
const CACHED_RATIO_MIN: f64 = 10.0;
/// The smallest ratio of upstream to ours for a call: no slower.
const CALL_RATIO_MIN: f64 = 1.0;
/// The number of calls for many equal requests at the same moment.
const STORM_CALLS: u64 = 1;

/// The promises that the report has measurements for.
pub(crate) fn check(report: &Report) -> Vec<Target> {
    let mut targets = Vec::new();
    let our_side = |scenario| report.row(scenario).and_then(|row| row.our_side);
    let at_most = |scenario: Scenario, what: &str, limit: f64| {
        let measurement = our_side(scenario)?;
        Some(Target {
            promise: format!("{what}: at most {}", duration(limit)),
            measured: duration(measurement.p50_ns),
            is_met: measurement.p50_ns <= limit,
        })
    };
    let faster = |scenario: Scenario, promise: &str, least: f64| {
        let ratio = report.row(scenario)?.ratio()?;
        Some(Target {
            promise: promise.to_owned(),
            measured: format!("{ratio:.2} times as fast"),
            is_met: ratio >= least,
        })
    };
    for scenario in [Scenario::CachedFew, Scenario::CachedMany] {
        let name = scenario.name();
        targets.extend(at_most(scenario, name, CACHED_NS_MAX));
        targets.extend(our_side(scenario).map(|measurement| Target {
            promise: format!("{name}: no allocation"),
            measured: format!("at most {} bytes", measurement.allocated),
            is_met: measurement.allocated == 0,
        }));
        let promise = format!("{name}: at least 10 times as fast as upstream");
        targets.extend(faster(scenario, &promise, CACHED_RATIO_MIN));
    }
    for scenario in [Scenario::Calls, Scenario::CallsAtOnce, Scenario::Dead] {
        let promise = format!("{}: no slower than upstream", scenario.name());
        targets.extend(faster(scenario, &promise, CALL_RATIO_MIN));
    }
    targets.extend(our_side(Scenario::Storm).map(|measurement| Target {
        promise: "one call for the same question at once".to_owned(),
        measured: measurement.n_calls.to_string(),
        is_met: measurement.n_calls == STORM_CALLS,
    }));
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::measure::Measurement;
    use crate::webhook::report::Row;

    fn missed(scenario: Scenario, our_side: Measurement, upstream_ns: f64) -> Vec<String> {
        let upstream = Some(Measurement { p50_ns: upstream_ns, ..Measurement::default() });
        let row = Row { scenario, our_side: Some(our_side), upstream };
        let report = Report { rows: vec![row], upstream_absence: None };
        let missed = check(&report).into_iter().filter(|target| !target.is_met);
        missed.map(|target| target.promise).collect()
    }

    #[test]
    fn both_sides_of_every_promise() {
        let time = |p50_ns| Measurement { p50_ns, ..Measurement::default() };
        assert_eq!(missed(Scenario::CachedFew, time(500.0), 5_000.0), [""; 0]);
        assert_eq!(
            missed(Scenario::CachedFew, time(501.0), 5_010.0),
            ["cached, few questions: at most 500 ns"]
        );
        assert_eq!(
            missed(Scenario::CachedFew, time(500.0), 4_999.0),
            ["cached, few questions: at least 10 times as fast as upstream"]
        );
        assert_eq!(
            missed(Scenario::CachedFew, Measurement { allocated: 1, ..time(100.0) }, 5_000.0),
            ["cached, few questions: no allocation"]
        );
        assert_eq!(missed(Scenario::Calls, time(100.0), 100.0), [""; 0]);
        assert_eq!(
            missed(Scenario::Calls, time(100.0), 99.0),
            ["call, HTTP/1.1: no slower than upstream"]
        );
        assert_eq!(
            missed(Scenario::Dead, time(100.0), 99.0),
            ["dead service: no slower than upstream"]
        );
        let call_at_once = |n_calls| Measurement { n_calls, ..Measurement::default() };
        assert_eq!(missed(Scenario::Storm, call_at_once(1), 1.0), [""; 0]);
        assert_eq!(
            missed(Scenario::Storm, call_at_once(2), 1.0),
            ["one call for the same question at once"]
        );
    }
}
