//! The index beside the naive implementation: same questions, same answers.

use std::time::{Duration, Instant};

use ::authz::{Attributes, Decision, Verdict};

use crate::authz::measure::{Samples, Times};
use crate::authz::question::Pool;

/// The most disagreements that are shown.
const SHOWN_MAX: usize = 5;

/// Questions about each of the policies that are made up only to compare answers.
pub(crate) const SMALL_QUESTIONS: usize = 2_000;

/// How often two implementations agreed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Agreement {
    pub(crate) n_decisions: usize,
    pub(crate) n_disagreements: usize,
    /// Some of the disagreements, a line each.
    pub(crate) shown: Vec<String>,
}

impl Agreement {
    /// Adds what another comparison found.
    pub(crate) fn add(&mut self, other: Self) {
        self.n_decisions += other.n_decisions;
        self.n_disagreements += other.n_disagreements;
        let room = SHOWN_MAX.saturating_sub(self.shown.len());
        self.shown.extend(other.shown.into_iter().take(room));
    }
}

/// What is compared of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Verdict,
    VerdictAndReason,
}

/// Asks both until all questions are asked or the time is up, and times the naive one. The answer
/// that the pool expects is compared too.
pub(crate) fn compare(
    pool: &Pool,
    time_max: Duration,
    depth: Depth,
    ours: impl Fn(&Attributes<'_>) -> Decision,
    oracle: impl Fn(&Attributes<'_>) -> Decision,
) -> (Agreement, Times) {
    let start = Instant::now();
    let mut samples = Samples::new();
    let mut agreement = Agreement::default();
    for (attributes, is_allowed) in pool.iter() {
        if start.elapsed() > time_max {
            break;
        }
        let got = ours(&attributes);
        let before = Instant::now();
        let want = oracle(&attributes);
        samples.add(before.elapsed());
        agreement.n_decisions += 1;
        let agrees = got.verdict == want.verdict
            && (got.verdict == Verdict::Allow) == is_allowed
            && (depth == Depth::Verdict || got.reason == want.reason);
        if !agrees {
            agreement.n_disagreements += 1;
            if agreement.shown.len() < SHOWN_MAX {
                agreement.shown.push(format!(
                    "index {} {:?}, oracle {} {:?}: {attributes:?}",
                    got.verdict.name(),
                    got.reason.to_string(),
                    want.verdict.name(),
                    want.reason.to_string(),
                ));
            }
        }
    }
    (agreement, samples.times())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::question::Asked;
    use crate::authz::random::Random;

    #[test]
    fn each_kind_of_disagreement_counts() {
        let mut random = Random::new(1);
        let askers = vec![::authz::User::default()];
        let propose = |_: &mut Random, _: &::authz::User, is_allowed: bool| {
            Some(("get".to_owned(), Asked::Path(if is_allowed { "/a" } else { "/b" }.to_owned())))
        };
        let is_a = |attributes: &Attributes<'_>| attributes.path() == "/a";
        let pool = Pool::balanced(askers, 10, &mut random, propose, is_a).unwrap();
        let right = |asked: &Attributes<'_>| match is_a(asked) {
            true => Decision::allow("because"),
            false => Decision::no_opinion(""),
        };
        let silent = |asked: &Attributes<'_>| Decision { reason: "".into(), ..right(asked) };
        let deaf = |_: &Attributes<'_>| Decision::no_opinion("");
        let long = Duration::from_secs(60);
        let n_disagreements =
            |depth,
             ours: &dyn Fn(&Attributes<'_>) -> Decision,
             oracle: &dyn Fn(&Attributes<'_>) -> Decision| {
                let (agreement, _) = compare(&pool, long, depth, ours, oracle);
                assert_eq!(agreement.n_decisions, 10);
                assert_eq!(agreement.shown.len(), agreement.n_disagreements.min(SHOWN_MAX));
                agreement.n_disagreements
            };
        assert_eq!(n_disagreements(Depth::VerdictAndReason, &right, &right), 0);
        assert_eq!(n_disagreements(Depth::VerdictAndReason, &right, &silent), 5);
        assert_eq!(n_disagreements(Depth::Verdict, &right, &silent), 0);
        assert_eq!(n_disagreements(Depth::Verdict, &right, &deaf), 5);
        // Two that agree with each other and not with the data.
        assert_eq!(n_disagreements(Depth::Verdict, &deaf, &deaf), 5);
    }
}
