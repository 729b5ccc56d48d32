//! Encodes responses as JSON or text.

use api_object::Status;
use component_base::TextResponse;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use https_server::Body;

/// A response of JSON bytes.
pub(crate) fn json_response(code: u16, json: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(json.into());
    *response.status_mut() = status_code(code);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The response of a failed request. Only 429 has `Retry-After` and `details.retryAfterSeconds`: kube-apiserver repeats a call
/// whose response has one of them, up to its timeout, and a webhook without a current policy must fail at once, so that the
/// failure policy decides.
pub(crate) fn status_response(status: &Status) -> Response<Body> {
    if status.code == 429 {
        let mut response = encode_status(status);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    }
    encode_status(&without_retry_after(status))
}

fn encode_status(status: &Status) -> Response<Body> {
    json_response(status.code, serde_json::to_vec(status).unwrap_or_default())
}

fn without_retry_after(status: &Status) -> Status {
    let mut status = status.clone();
    if let Some(details) = &mut status.details {
        details.retry_after_seconds = 0;
    }
    status
}

/// A response in plain text.
pub(crate) fn text_response(text: TextResponse) -> Response<Body> {
    let mut response = Response::new(text.body_text.into());
    *response.status_mut() = status_code(text.code);
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn status_code(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use authz::UnavailableCause;

    #[test]
    fn only_429_asks_for_a_repetition() {
        let busy = Status::authorization_undecided(UnavailableCause::TooManyCalls);
        assert!(status_response(&busy).headers().contains_key(RETRY_AFTER));
        for cause in [UnavailableCause::OutOfResources, UnavailableCause::DeadlineExceeded] {
            let status = Status::authorization_undecided(cause);
            assert!(!status_response(&status).headers().contains_key(RETRY_AFTER));
            assert_eq!(without_retry_after(&status).retry_after_seconds(), None);
        }
    }
}
