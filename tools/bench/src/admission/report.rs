//! The tables of the benchmark of dynamic admission, and its promises.

use std::fmt::Write as _;
use std::time::Duration;

use crate::numbers::{duration, ratio, thousands};

use super::matching::MatchingTime;
use crate::server::load::LoadResult;
use crate::targets::{self, Target};

/// The measurements of creates with some hooks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HookedCreates {
    pub(super) name: String,
    pub(super) n_connections: usize,
    pub(super) results: Vec<LoadResult>,
}

/// The measurements of creates with the barrier and without it, in turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Overhead {
    pub(super) store: &'static str,
    pub(super) barrier: Vec<LoadResult>,
    pub(super) none: Vec<LoadResult>,
}

/// All measurements of the benchmark.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Report {
    pub(super) matching: Vec<MatchingTime>,
    pub(super) passed: Vec<HookedCreates>,
    pub(super) overheads: Vec<Overhead>,
}

/// The limit for matching among a thousand hooks, and for its growth from ten hooks.
const MATCHING_MAX: Duration = Duration::from_micros(2);
const MATCHING_GROWTH_MAX: f64 = 2.0;
/// The limit for the time of ten parallel hooks as a multiple of that of one.
const PARALLEL_MAX: f64 = 1.5;
/// The limit for the share of creates that the barrier costs, by store.
const OVERHEAD_MAX: [(&str, f64); 2] = [("embedded", 0.05), ("etcd", 0.20)];

impl HookedCreates {
    fn median(&self) -> Option<LoadResult> {
        median(&self.results)
    }
}

impl Overhead {
    /// The share of creates that the barrier costs, in the median of the rounds. It is negative if the noise
    /// of the runs is larger than the cost.
    fn share(&self) -> f64 {
        let pairs = self.barrier.iter().zip(&self.none);
        let mut shares: Vec<f64> =
            pairs.map(|(with, without)| 1.0 - with.per_second / without.per_second).collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// The median by requests per second.
fn median(results: &[LoadResult]) -> Option<LoadResult> {
    let mut sorted = results.to_vec();
    sorted.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    sorted.get(sorted.len() / 2).copied()
}

impl Report {
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` never fails.
        let _ = self.write(&mut text);
        text.push_str(&targets::render(&self.targets()));
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "| hooks registered | matching, ours | upstream | upstream / ours |")?;
        writeln!(out, "|---|---|---|---|")?;
        for own in &self.matching {
            let nanos = own.upstream.map(|time| time.as_nanos() as f64);
            let upstream = nanos.map_or_else(|| "-".to_owned(), duration);
            let factor = ratio(nanos.map(|nanos| nanos / own.ours.as_nanos() as f64));
            let ours = duration(own.ours.as_nanos() as f64);
            let hooks = thousands(own.n_hooks as u64);
            writeln!(out, "| {hooks} | {ours} | {upstream} | {factor} |")?;
        }
        writeln!(out, "\n| create a ConfigMap through | connections | a second | p50 | p99 |")?;
        writeln!(out, "|---|---|---|---|---|")?;
        for own in &self.passed {
            let Some(result) = own.median() else { continue };
            let (p50, p99) = (result.p50.as_nanos() as f64, result.p99.as_nanos() as f64);
            writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                own.name,
                own.n_connections,
                thousands(result.per_second as u64),
                duration(p50),
                duration(p99),
            )?;
        }
        writeln!(out, "\n| store | creates a second, barrier | polling | the barrier costs |")?;
        writeln!(out, "|---|---|---|---|")?;
        for own in &self.overheads {
            let rate = |results: &[LoadResult]| {
                median(results).map_or_else(String::new, |own| thousands(own.per_second as u64))
            };
            let (with, without) = (rate(&own.barrier), rate(&own.none));
            writeln!(out, "| {} | {with} | {without} | {:.1} % |", own.store, own.share() * 100.0)?;
        }
        writeln!(out)
    }

    fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        let at = |n_hooks: usize| self.matching.iter().find(|own| own.n_hooks == n_hooks);
        if let (Some(few), Some(many)) = (at(10), at(1_000)) {
            let growth = many.ours.as_secs_f64() / few.ours.as_secs_f64();
            targets.push(Target {
                promise: "matching among 1,000 hooks takes at most 2 µs".to_owned(),
                measured: duration(many.ours.as_nanos() as f64),
                is_met: many.ours <= MATCHING_MAX,
            });
            targets.push(Target {
                promise: "and at most twice as long as among 10".to_owned(),
                measured: format!("{growth:.2} times"),
                is_met: growth <= MATCHING_GROWTH_MAX,
            });
        }
        let delay = |n_hooks: &str| {
            let named =
                |own: &&HookedCreates| own.name.starts_with(n_hooks) && own.name.contains("thinks");
            self.passed.iter().find(named).and_then(HookedCreates::median)
        };
        if let (Some(one), Some(ten)) = (delay("1 "), delay("10 ")) {
            let factor = ten.p50.as_secs_f64() / one.p50.as_secs_f64();
            targets.push(Target {
                promise: "ten validating hooks take at most 1.5 times as long as one".to_owned(),
                measured: format!("{factor:.2} times"),
                is_met: factor <= PARALLEL_MAX,
            });
        }
        for own in &self.overheads {
            let limit = OVERHEAD_MAX.iter().find(|(store, _)| *store == own.store);
            let Some((_, limit)) = limit else { continue };
            targets.push(Target {
                promise: format!(
                    "the barrier costs at most {:.0} % of creates on {}",
                    limit * 100.0,
                    own.store
                ),
                measured: format!("{:.1} %", own.share() * 100.0),
                is_met: own.share() <= *limit,
            });
        }
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(per_second: f64, p50: u64) -> LoadResult {
        let p50 = Duration::from_micros(p50);
        LoadResult { per_second, p50, p99: p50, server_time: p50 }
    }

    fn report(barrier: f64, growth: u64, ten: u64) -> Report {
        let matched = |n_hooks, nanos| MatchingTime {
            n_hooks,
            ours: Duration::from_nanos(nanos),
            upstream: Some(Duration::from_micros(5)),
        };
        let passed = |name: &str, p50| HookedCreates {
            name: name.to_owned(),
            n_connections: 1,
            results: vec![result(50.0, p50)],
        };
        let overhead = |store| Overhead {
            store,
            barrier: vec![result(barrier, 9); 3],
            none: vec![result(100.0, 9); 3],
        };
        Report {
            matching: vec![matched(10, 200), matched(1_000, 200 * growth)],
            passed: vec![
                passed("1 validating, each thinks for 10 ms", 10_000),
                passed("10 validating, each thinks for 10 ms", ten),
            ],
            overheads: vec![overhead("embedded"), overhead("etcd")],
        }
    }

    #[test]
    fn each_promise_can_be_broken() {
        let missed =
            |report: &Report| report.targets().iter().filter(|target| !target.is_met).count();
        assert_eq!(report(96.0, 2, 15_000).targets().len(), 5);
        assert_eq!(missed(&report(96.0, 2, 15_000)), 0);
        assert_eq!(missed(&report(90.0, 2, 15_000)), 1);
        assert_eq!(missed(&report(79.0, 2, 15_000)), 2);
        assert_eq!(missed(&report(96.0, 11, 15_001)), 3);
        let text = report(96.0, 2, 15_000).render();
        assert!(text.contains("| 1,000 | 400 ns | 5.00 µs |"), "{text}");
        assert!(text.contains("| etcd | 96 | 100 | 4.0 % |"), "{text}");
    }
}
