//! Compares the decisions of the index with those of the naive implementation.

use std::time::{Duration, Instant};

use ::authz::{Attributes, Decision, Verdict};

use crate::authz::measure::{Samples, Times};
use crate::authz::request_pool::RequestPool;

/// The largest number of disagreements that are shown.
const SHOWN_MAX: usize = 5;

/// The number of requests for each small policy that is generated only to compare decisions.
pub(crate) const N_SMALL_REQUESTS: usize = 2_000;

/// How often two implementations agree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Agreement {
    pub(crate) n_decisions: usize,
    pub(crate) n_disagreements: usize,
    /// Some of the disagreements, one line each.
    pub(crate) shown: Vec<String>,
}

impl Agreement {
    /// Adds the result of another comparison.
    pub(crate) fn add(&mut self, other: Self) {
        self.n_decisions += other.n_decisions;
        self.n_disagreements += other.n_disagreements;
        let room = SHOWN_MAX.saturating_sub(self.shown.len());
        self.shown.extend(other.shown.into_iter().take(room));
    }
}

/// The parts of a decision that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Verdict,
    VerdictAndReason,
}

/// Decides requests with both implementations until none is left or the time is up, and times the naive one.
/// It also compares the decisions with the expected ones.
pub(crate) fn compare(
    pool: &RequestPool,
    time_max: Duration,
    depth: Depth,
    ours: impl Fn(&Attributes<'_>) -> Decision,
    reference: impl Fn(&Attributes<'_>) -> Decision,
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
        let want = reference(&attributes);
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
    use crate::authz::random::Random;
    use crate::authz::request_pool::RequestTarget;

    #[test]
    fn each_kind_of_disagreement_counts() {
        let mut random = Random::new(1);
        let users = vec![::authz::User::default()];
        let propose = |_: &mut Random, _: &::authz::User, is_allowed: bool| {
            Some((
                "get".to_owned(),
                RequestTarget::Path(if is_allowed { "/a" } else { "/b" }.to_owned()),
            ))
        };
        let is_a = |attributes: &Attributes<'_>| attributes.path() == "/a";
        let pool = RequestPool::generate_balanced(users, 10, &mut random, propose, is_a).unwrap();
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
             reference: &dyn Fn(&Attributes<'_>) -> Decision| {
                let (agreement, _) = compare(&pool, long, depth, ours, reference);
                assert_eq!(agreement.n_decisions, 10);
                assert_eq!(agreement.shown.len(), agreement.n_disagreements.min(SHOWN_MAX));
                agreement.n_disagreements
            };
        assert_eq!(n_disagreements(Depth::VerdictAndReason, &right, &right), 0);
        assert_eq!(n_disagreements(Depth::VerdictAndReason, &right, &silent), 5);
        assert_eq!(n_disagreements(Depth::Verdict, &right, &silent), 0);
        assert_eq!(n_disagreements(Depth::Verdict, &right, &deaf), 5);
        // Both implementations agree with each other, and not with the expected decisions.
        assert_eq!(n_disagreements(Depth::Verdict, &deaf, &deaf), 5);
    }
}
