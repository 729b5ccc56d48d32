//! The response to `/metrics`.

use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use https_server::Body;
use prometheus::{Encoder, Registry, TextEncoder};

/// The content type of `/metrics`.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Encodes all families of a registry as the response to `/metrics`.
pub fn metrics_response(registry: &Registry) -> Response<Body> {
    let mut text = Vec::new();
    // Writing to memory does not fail, and all families come from one registry.
    let _ = TextEncoder::new().encode(&registry.gather(), &mut text);
    let mut response = Response::new(text.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
