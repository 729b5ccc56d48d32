//! Attempts, waits and their metrics. Time is simulated.

use std::time::Duration;

use authz_webhook::{
    HttpResponse, RetryOptions, Timeout, TransportErrorKind, WebhookLimits, WebhookSettings,
};
use tokio::time::Instant;

use crate::peer::{
    ALLOW, NEITHER, Scene, Step, code, code_retry_after, failing_closed, fault, line, reply, says,
    settings,
};

/// Retries without jitter, so that waits have exact lengths.
fn steady() -> WebhookLimits {
    WebhookLimits {
        retry_options: RetryOptions { jitter_fraction: 0.0, ..RetryOptions::default() },
        ..WebhookLimits::default()
    }
}

/// A webhook that caches nothing, so that every check makes a call.
async fn n_calls(script: impl IntoIterator<Item = Step>) -> (usize, String) {
    let scene = Scene::with(settings(), steady(), script);
    let decision = scene.ask_as("ana").await;
    (scene.peer.n_calls(), line(&decision))
}

#[tokio::test(start_paused = true)]
async fn codes_that_are_retried() {
    let boom = "noOpinion [] ! an error on the server (\"unknown\") has prevented the request from \
                succeeding";
    assert_eq!(n_calls([code(500)]).await, (5, boom.to_owned()));
    assert_eq!(n_calls([code(429)]).await.0, 5);
    assert_eq!(n_calls([code(504)]).await.0, 5);
    for status in [400, 401, 403, 404, 409, 422, 302] {
        assert_eq!(n_calls([code(status)]).await.0, 1, "{status}");
    }
    assert_eq!(n_calls([code(503)]).await.0, 1);
    let hinted = [code_retry_after(503, "1"), says(ALLOW)];
    assert_eq!(n_calls(hinted).await, (2, "allow [yes]".to_owned()));
    let (n, last) = n_calls([code(504), code(500), code(406), says(ALLOW)]).await;
    let last_code = "the server was unable to respond with a content type that the client supports";
    assert_eq!((n, last), (3, format!("noOpinion [] ! {last_code}")));
    // `Retry-After` in a 4xx response makes the caller retry.
    let hinted = [code_retry_after(404, "1"), says(ALLOW)];
    assert_eq!(n_calls(hinted).await, (2, "allow [yes]".to_owned()));
    assert_eq!(n_calls([code_retry_after(404, "0"), says(ALLOW)]).await.0, 1);
    assert_eq!(n_calls([code_retry_after(404, "soon"), says(ALLOW)]).await.0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_status_in_the_body_decides_in_the_place_of_the_code() {
    let status = |status: u16, rest: &str| {
        let body = format!(r#"{{"kind":"Status","status":"Failure","message":"m",{rest}}}"#);
        Step::HttpResponse(reply(status, &body))
    };
    for (code, rest, n) in [
        (400, r#""reason":"InternalError""#, 5),
        (400, r#""reason":"Timeout""#, 5),
        (400, r#""reason":"TooManyRequests""#, 5),
        (400, r#""reason":"Unheard","code":500"#, 5),
        (400, r#""reason":"BadRequest","code":500"#, 1),
        (400, r#""reason":"BadRequest","code":429"#, 5),
        (400, r#""reason":"ServerTimeout","details":{}"#, 5),
        (500, r#""reason":"ServiceUnavailable""#, 1),
        (503, r#""reason":"BadRequest","details":{"retryAfterSeconds":1}"#, 5),
        (500, r#""reason":"","code":502"#, 1),
    ] {
        let (calls, last) = n_calls([status(code, rest)]).await;
        assert_eq!((calls, last.as_str()), (n, "noOpinion [] ! m"), "{code} {rest}");
    }
}

#[tokio::test(start_paused = true)]
async fn faults_that_are_retried() {
    for (kind, n) in [
        (TransportErrorKind::Reset, 5),
        (TransportErrorKind::Timeout, 1),
        (TransportErrorKind::TooLarge, 1),
        (TransportErrorKind::Other, 1),
    ] {
        let got = n_calls([fault(kind, "broke")]).await;
        assert_eq!(got, (n, "noOpinion [] ! broke".to_owned()), "{kind:?}");
    }
    let broken = Step::HttpResponse(HttpResponse {
        content_type: Some("a/b; c".to_owned()),
        ..reply(200, ALLOW)
    });
    let (n, last) = n_calls([broken]).await;
    let want = "noOpinion [] ! Internal error occurred: mime: invalid media parameter";
    assert_eq!((n, last.as_str()), (5, want));
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_made_good() {
    let scene = Scene::new([fault(TransportErrorKind::Reset, "reset"), says(ALLOW)]);
    assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
    assert_eq!(scene.tally.n("attempt error"), 1);
    assert_eq!(scene.tally.n("attempt success"), 1);
    assert_eq!(scene.tally.n("fail-open error"), 0);
}

#[tokio::test(start_paused = true)]
async fn waits_grow_and_vary() {
    let nominal = Duration::from_millis(500 + 750) + Duration::from_micros(1_125_000 + 1_687_500);
    let scene = Scene::with(settings(), steady(), [code(500)]);
    let started_at = Instant::now();
    let _ = scene.ask_as("ana").await;
    let took = started_at.elapsed();
    assert!(took >= nominal && took < nominal + Duration::from_millis(20), "{took:?}");

    let mut seen = Vec::new();
    for _ in 0..20 {
        let scene = Scene::new([code(500)]);
        let started_at = Instant::now();
        let _ = scene.ask_as("ana").await;
        let took = started_at.elapsed();
        assert!(took >= nominal && took <= nominal.mul_f64(1.2) + Duration::from_millis(20));
        seen.push(took);
    }
    seen.dedup();
    assert!(seen.len() > 1, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_service_may_ask_for_the_same_again_within_an_attempt() {
    let scene = Scene::new([
        code_retry_after(429, "1"),
        code_retry_after(500, "0"),
        code_retry_after(503, "-1"),
        says(ALLOW),
    ]);
    let started_at = Instant::now();
    assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
    assert_eq!((scene.peer.n_calls(), scene.tally.n("attempt success")), (4, 1));
    assert_eq!(started_at.elapsed().as_secs(), 1);

    // Each of the five attempts sends the request once and again at most ten times.
    let scene = Scene::with(settings(), steady(), [code_retry_after(500, "0")]);
    let _ = scene.ask_as("ana").await;
    assert_eq!((scene.peer.n_calls(), scene.tally.n("attempt error")), (55, 5));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_has_no_more_than_its_time() {
    for script in [
        vec![code_retry_after(429, "30")],
        vec![Step::After(Duration::from_secs(60), reply(200, ALLOW))],
        vec![Step::Hang],
        vec![code_retry_after(500, "2"), Step::Hang],
        vec![code_retry_after(500, "9223372036854775807")],
    ] {
        let scene = Scene::with(failing_closed(), steady(), script);
        let started_at = Instant::now();
        let decision = scene.ask_as("ana").await;
        let took = started_at.elapsed();
        assert!(took >= Duration::from_secs(3) && took < Duration::from_millis(3300), "{took:?}");
        let text = line(&decision);
        assert!(text.starts_with("deny [] ! ") && text.ends_with("context deadline exceeded"));
        assert_eq!(scene.tally.events(), ["cache miss", "attempt timeout"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_is_a_second() {
    let settings = WebhookSettings {
        timeout: Timeout::new(Duration::from_secs(1)).unwrap(),
        ..failing_closed()
    };
    let slow = Step::After(Duration::from_secs(2), reply(200, ALLOW));
    let scene = Scene::with(settings, WebhookLimits::default(), [slow]);
    assert_eq!(line(&scene.ask_as("ana").await), "deny [] ! context deadline exceeded");
    assert_eq!(scene.peer.n_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn results_are_labelled() {
    let success = Scene::new([says(NEITHER)]);
    let _ = success.ask_as("ana").await;
    assert_eq!(success.tally.events(), ["cache miss", "attempt success", "cache stored"]);

    let timeout = Scene::new([code(504)]);
    let _ = timeout.ask_as("ana").await;
    let n = |scene: &Scene, event| scene.tally.n(event);
    assert_eq!(n(&timeout, "attempt timeout"), 5);
    assert_eq!(n(&timeout, "fail-open timeout"), 1);

    let error = Scene::new([code(500)]);
    let _ = error.ask_as("ana").await;
    assert_eq!((n(&error, "attempt error"), n(&error, "fail-open error")), (5, 1));

    let refused =
        Scene::new([fault(TransportErrorKind::Other, "remote error: tls: bad certificate")]);
    let _ = refused.ask_as("ana").await;
    assert_eq!((n(&refused, "attempt error"), n(&refused, "fail-open error")), (1, 1));
}
