//! Errors that end a request, and their responses.

use api_object::Status;
use codec::{EndpointKind, FormatRequest};
use http::Response;
use http::header::{ACCEPT, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::request::Parts;
use https_server::Body;
use jiff::Timestamp;

use crate::request_record::RequestRecord;
use crate::respond::{IncludeObject, PLAIN_JSON, ResponseFormat, text_response};
use crate::rest::Query;

/// The error that ends a request.
pub(crate) enum RequestError {
    Status(Status),
    /// A Status with a `Retry-After` header.
    Retry(Status),
    /// A status code with plain text.
    Text(u16, String),
    /// The priority level has no seat for the request.
    NoSeat,
}

impl From<Status> for RequestError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl RequestError {
    /// Records the error and builds its response.
    pub(crate) fn into_response(
        self,
        parts: &Parts,
        record: &mut RequestRecord,
        now: Timestamp,
    ) -> Response<Body> {
        let (mut response, is_temporary) = match self {
            Self::Status(status) => (record_error_and_respond(parts, record, now, &status), false),
            Self::Retry(status) => (record_error_and_respond(parts, record, now, &status), true),
            Self::Text(code, text) => (text_response(code, text), false),
            Self::NoSeat => {
                let text = "Too many requests, please try again later.\n".to_owned();
                (text_response(429, text), true)
            }
        };
        if is_temporary {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The response format that the headers of a request ask for.
pub(crate) fn requested_response_format<'p>(
    parts: &'p Parts,
    pretty: Option<&'p str>,
) -> FormatRequest<'p> {
    let text = |name: HeaderName| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    };
    FormatRequest {
        accept_header: text(ACCEPT),
        pretty_parameter: pretty,
        user_agent: text(USER_AGENT),
    }
}

fn record_error_and_respond(
    parts: &Parts,
    record: &mut RequestRecord,
    now: Timestamp,
    status: &Status,
) -> Response<Body> {
    record.record_error(status);
    error_response(parts, now, status)
}

/// Builds the response of an error in the format that the client asks for, or in JSON.
pub(crate) fn error_response(parts: &Parts, now: Timestamp, status: &Status) -> Response<Body> {
    let query = parts.uri.query().map(|query| Query::parse(&format!("?{query}")));
    let pretty = query.as_ref().and_then(|query| query.get("pretty"));
    let encoding = codec::negotiate_response_format(
        &requested_response_format(parts, pretty),
        EndpointKind::Plain,
    );
    let encoding = encoding.unwrap_or(PLAIN_JSON);
    let include_object = IncludeObject::default();
    ResponseFormat { response_encoding: encoding, include_object, accepts_gzip: false, now }
        .status_response(status)
}
