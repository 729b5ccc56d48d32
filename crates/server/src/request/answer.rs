//! The answer to a request, which is given once.

use http::Response;
use http::header::HeaderValue;
use https_server::{Body, Responder};

use crate::audit_id::AUDIT_ID;

/// Answers a request once, under the id that it is recorded by.
pub(super) struct Answer {
    responder: Option<Responder>,
    audit_id: String,
}

impl Answer {
    pub(super) fn new(responder: Responder, audit_id: String) -> Self {
        Self { responder: Some(responder), audit_id }
    }

    /// Gives the answer, or drops it if there was one; reports which.
    pub(super) fn give(&mut self, response: impl FnOnce() -> Response<Body>) -> bool {
        let Some(responder) = self.responder.take() else { return false };
        let mut response = response();
        if let Ok(value) = HeaderValue::from_str(&self.audit_id) {
            response.headers_mut().insert(AUDIT_ID, value);
        }
        responder.respond(response);
        true
    }
}
