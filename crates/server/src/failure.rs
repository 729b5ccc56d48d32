//! Requests that get no further, and how clients hear of it.

use api_object::Status;
use codec::{Endpoint, FormatRequest};
use http::Response;
use http::header::{ACCEPT, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::request::Parts;
use https_server::Body;
use jiff::Timestamp;

use crate::record::Record;
use crate::respond::{Form, IncludeObject, PLAIN, text_response};
use crate::rest::Query;

/// Why a request gets no further.
pub(crate) enum Failure {
    Status(Status),
    /// The same, and it may help to try again soon.
    Later(Status),
    /// Plain text, and its code.
    Text(u16, String),
    /// Too many requests are under way.
    Busy,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl Failure {
    pub(crate) fn response(
        self,
        parts: &Parts,
        record: &mut Record,
        now: Timestamp,
    ) -> Response<Body> {
        let (mut response, is_temporary) = match self {
            Self::Status(status) => (refuse(parts, record, now, &status), false),
            Self::Later(status) => (refuse(parts, record, now, &status), true),
            Self::Text(code, text) => (text_response(code, text), false),
            Self::Busy => {
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

/// In which form the client wants an answer.
pub(crate) fn asked<'p>(parts: &'p Parts, pretty: Option<&'p str>) -> FormatRequest<'p> {
    let text = |name: HeaderName| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    };
    FormatRequest { accept: text(ACCEPT), pretty, user_agent: text(USER_AGENT) }
}

/// A failure in the form that the client wants, or in JSON.
fn refuse(parts: &Parts, record: &mut Record, now: Timestamp, status: &Status) -> Response<Body> {
    record.failed(status);
    rendered(parts, now, status)
}

/// The same for a request whose record says something else.
pub(crate) fn rendered(parts: &Parts, now: Timestamp, status: &Status) -> Response<Body> {
    let query = parts.uri.query().map(|query| Query::parse(&format!("?{query}")));
    let pretty = query.as_ref().and_then(|query| query.get("pretty"));
    let answer = codec::negotiate(&asked(parts, pretty), Endpoint::Plain).unwrap_or(PLAIN);
    let form = Form { answer, include: IncludeObject::default(), accepts_gzip: false, now };
    form.status_response(status)
}
