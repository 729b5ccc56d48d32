//! The fast path reads any body of a SubjectAccessReview as the full parser does, or leaves it to that
//! parser.

#![no_main]

use access_reviews::{PlainSubjectAccessReview, PreparedReview, ReviewKind, ReviewRequest};
use authz::Decision;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let _ = std::str::from_utf8(bytes)
        .map(|line| access_reviews::review_parsing::read_review_line("file", 1, line).is_ok());
    let Some(quick) = PlainSubjectAccessReview::parse(bytes) else { return };
    let decision = Decision::allow("because");
    let mut written = Vec::new();
    quick.write_response(&decision, &mut written);
    let written: Value = serde_json::from_slice(&written).expect("JSON");

    let body: Value = serde_json::from_slice(bytes).expect("what was read is JSON");
    let request =
        ReviewRequest { version: "v1", namespace: "", user: None, now: Default::default() };
    let review = access_reviews::prepare_review(ReviewKind::SubjectAccessReview, &body, &request);
    let Ok(PreparedReview::Access(review)) = review else { panic!("the long way refuses it") };
    assert_eq!(review.into_response(&decision), written);
});
