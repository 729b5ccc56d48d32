use super::*;

fn describe(status: u16, body: &str) -> (String, RetryAdvice, bool) {
    let reply = HttpResponse { status, body: body.to_owned().into(), ..HttpResponse::default() };
    match error_from_response(&reply, true, body) {
        CallError::Response { message, retry_advice, is_timeout, .. } => {
            (message.to_string(), retry_advice, is_timeout)
        }
        other => panic!("{other:?}"),
    }
}

/// Kubernetes' message for each status code without a body, and whether the call is retried.
#[test]
fn codes() {
    use RetryAdvice::{Later, Never};
    for (status, want, retry) in [
        (302, "the server responded with the status code 302 but did not return more", Never),
        (400, "the server rejected our request for an unknown reason", Never),
        (401, "the server has asked for the client to provide credentials", Never),
        (403, "the server responded with the status code 403 but did not return more", Never),
        (404, "the server could not find the requested resource", Never),
        (405, "the server does not allow this method on the requested resource", Never),
        (406, "the server was unable to respond with a content type that the client", Never),
        (409, "the server reported a conflict", Never),
        (415, "the server responded with the status code 415 but did not return more", Never),
        (422, "the server rejected our request due to an error in our request", Never),
        (429, "the server has received too many requests and has asked us to try again", Later),
        (500, "an error on the server (\"unknown\") has prevented the request from", Later),
        (502, "an error on the server (\"unknown\") has prevented the request from", Later),
        (503, "the server is currently unable to handle the request", Never),
        (504, "the server was unable to return a response in the time allotted, but may", Later),
        (999, "an error on the server (\"unknown\") has prevented the request from", Later),
    ] {
        let (message, retried, is_timeout) = describe(status, " said\n");
        assert!(message.starts_with(want), "{status} {message}");
        assert_eq!((retried, is_timeout), (retry, status == 504), "{status}");
    }
}

/// L5: a message repeats no part of a body that is not a `Status`, and a limited part of a `Status`.
#[test]
fn bodies_are_not_repeated() {
    for status in (300..=599).chain([999]) {
        for is_text in [true, false] {
            let reply = HttpResponse { status, body: "5ecret".into(), ..HttpResponse::default() };
            let message = error_from_response(&reply, is_text, "5ecret").to_string();
            assert!(!message.contains("5ecret") && !message.is_empty(), "{status}: {message}");
        }
    }
    let reply = HttpResponse { status: 403, body: "{}".into(), ..HttpResponse::default() };
    assert_eq!(error_from_response(&reply, false, "{}").to_string(), "unknown");
}

#[test]
fn a_long_text_is_cut() {
    let long = format!("{}é", "x".repeat(MESSAGE_BYTES_MAX - 1));
    let body = format!(r#"{{"kind":"Status","status":"Failure","message":"{long}"}}"#);
    assert_eq!(describe(500, &body).0, "x".repeat(MESSAGE_BYTES_MAX - 1));
}

#[test]
fn only_a_whole_status_counts() {
    let failing = r#"{"kind":"Status","status":"Failure","message":"m","reason":"Gone"}"#;
    assert_eq!(describe(500, failing).0, "m");
    assert_eq!(describe(500, "kind: Status\napiVersion: v1\nstatus: Failure\nmessage: m").0, "m");
    for other in [
        r#"{"kind":"Status","status":"Success","message":"m"}"#,
        r#"{"kind":"Status","message":"m"}"#,
        r#"{"status":"Failure","message":"m"}"#,
        r#"{"kind":"status","status":"Failure","message":"m"}"#,
        r#"{"kind":"Status","apiVersion":"v2","status":"Failure","message":"m"}"#,
        r#"{"kind":"Status","status":"Failure","message":1}"#,
        r#"{"kind":"Status","status":"Failure","message":"m","code":"500"}"#,
        r#"{"kind":"Status","status":"Failure","message":"m","code":3000000000}"#,
        r#"{"kind":"Status","status":"Failure","message":"m","details":[]}"#,
        r#"{"kind":"Status","status":"Failure","message":"m","details":{"retryAfterSeconds":1.5}}"#,
        r#"{"kind":"Status","status":"Failure","message":"m""#,
    ] {
        assert_eq!(
            describe(404, other).0,
            "the server could not find the requested resource",
            "{other}"
        );
    }
}
