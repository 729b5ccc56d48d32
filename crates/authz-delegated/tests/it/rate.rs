//! How often the core server is asked.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use authz::{Unavailable, Verdict};
use authz_delegated::{Delegated, RateLimit};

use crate::fixture::{Core, allows, ask, codes};

fn rate(qps: u32, burst: u32) -> RateLimit {
    RateLimit { qps: NonZeroU32::new(qps).unwrap(), burst: NonZeroU32::new(burst).unwrap() }
}

#[tokio::test]
async fn questions_wait_for_their_turn() {
    let core = Core::start(allows());
    let mut options = core.options();
    options.rate_limit = rate(20, 2);
    let delegated = Delegated::new(&options).unwrap();
    let began = Instant::now();
    for user in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(ask(&delegated, user).await.verdict, Verdict::Allow);
    }
    // Two at once, and four more in twentieths of a second.
    assert!(began.elapsed() >= Duration::from_millis(195), "{:?}", began.elapsed());
    // What is known needs no turn.
    let began = Instant::now();
    for _ in 0..1000 {
        assert_eq!(ask(&delegated, "a").await.verdict, Verdict::Allow);
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(core.peer.n_requests(), 6);
}

#[tokio::test]
async fn who_would_wait_too_long_is_not_asked_about() {
    let core = Core::start(allows());
    let mut options = core.options();
    options.rate_limit = rate(1, 1);
    options.timeout = Duration::from_millis(500);
    let (observe, mut codes) = codes();
    options.observe = observe;
    let delegated = Delegated::new(&options).unwrap();
    let (_, second) = tokio::join!(ask(&delegated, "ana"), ask(&delegated, "ben"));
    assert_eq!(second.verdict, Verdict::Unavailable(Unavailable::TooManyCalls));
    assert_eq!(
        second.error.unwrap().to_string(),
        "client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline"
    );
    assert_eq!(codes.recv().await.as_deref(), Some("<error>"));
    assert!(core.peer.n_requests() <= 1);
}
