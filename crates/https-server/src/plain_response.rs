//! Responses that this crate sends itself, without calling the service.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use crate::response_body::Body;

/// The response to a request whose target exceeds the limit.
pub(crate) fn uri_too_long_response() -> Response<Body> {
    plain_text_response(StatusCode::URI_TOO_LONG, "the request URI is too long\n")
}

/// The response to a request that arrives while its connection is being closed.
pub(crate) fn connection_evicted_response() -> Response<Body> {
    plain_text_response(StatusCode::SERVICE_UNAVAILABLE, "too many connections\n")
}

/// The response if the service panicked.
pub(crate) fn panic_response() -> Response<Body> {
    plain_text_response(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the request was lost to a fault of the server\n",
    )
}

fn plain_text_response(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
