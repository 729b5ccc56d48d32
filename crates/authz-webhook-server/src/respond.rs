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

/// The response of a failed request. Only 429 has `Retry-After`: kube-apiserver repeats a call whose response has it, up to its
/// timeout, and a webhook without a current policy must fail at once, so that the failure policy decides.
pub(crate) fn status_response(status: &Status) -> Response<Body> {
    let json = serde_json::to_vec(status).unwrap_or_default();
    let mut response = json_response(status.code, json);
    if status.code == 429 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
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
