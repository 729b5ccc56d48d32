//! Measures reading a SubjectAccessReview and writing its answer, by the fast path and by the general path. The
//! decision in between is not measured.
//!
//! `cargo bench -p access-reviews` prints nanoseconds per review. A test run makes only a few rounds.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use access_reviews::{
    PlainSubjectAccessReview, PreparedReview, ReviewKind, ReviewRequest, prepare_review,
};
use authz::Decision;

/// The number of rounds in one measurement. The median of [`REPEATS`] measurements is shown.
const ROUNDS: usize = 20_000;
const REPEATS: usize = 9;

const BODY: &[u8] = br#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{"creationTimestamp":null},"spec":{"resourceAttributes":{"namespace":"team-a","verb":"list","version":"v1","resource":"pods"},"user":"system:serviceaccount:team-a:builder","groups":["system:serviceaccounts","system:serviceaccounts:team-a","system:authenticated"],"extra":{"authentication.kubernetes.io/pod-name":["builder-0"]},"uid":"4f2c7a90-8f3b-4b6e-9d0c-5a1e2f3b4c5d"},"status":{"allowed":false}}"#;

fn main() -> std::io::Result<()> {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let rounds = if is_measured { ROUNDS } else { 10 };
    let decision = Decision::allow("RBAC: allowed by ClusterRoleBinding \"readers\"");
    let mut out = std::io::stdout().lock();
    for (name, round) in [
        ("quick", answer_by_fast_path as fn(&Decision, &mut Vec<u8>) -> bool),
        ("long", answer_by_general_path),
    ] {
        let mut answer = Vec::with_capacity(4096);
        if !round(&decision, &mut answer) {
            return Err(std::io::Error::other("the body is not read"));
        }
        let mut times: Vec<f64> = (0..REPEATS)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..rounds {
                    answer.clear();
                    black_box(round(black_box(&decision), &mut answer));
                }
                start.elapsed().as_secs_f64() * 1e9 / rounds as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        if is_measured {
            writeln!(out, "{name}: {:.0} ns a review", times[REPEATS / 2])?;
        }
    }
    Ok(())
}

fn answer_by_fast_path(decision: &Decision, answer: &mut Vec<u8>) -> bool {
    let Some(review) = PlainSubjectAccessReview::parse(BODY) else { return false };
    black_box(review.attributes());
    review.write_response(decision, answer);
    true
}

fn answer_by_general_path(decision: &Decision, answer: &mut Vec<u8>) -> bool {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let request = ReviewRequest { version: "v1", namespace: "", user: None, now };
    let Ok(body) = serde_json::from_slice(BODY) else { return false };
    let Ok(PreparedReview::Access(review)) =
        prepare_review(ReviewKind::SubjectAccessReview, &body, &request)
    else {
        return false;
    };
    black_box(review.attributes());
    serde_json::to_writer(answer, &review.into_response(decision)).is_ok()
}
