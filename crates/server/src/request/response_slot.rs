//! The slot for the response of a request, which is filled once.

use http::Response;
use http::header::HeaderValue;
use https_server::{Body, Responder};

use crate::audit_id::AUDIT_ID;

/// Sends the response of a request once, with its audit id.
pub(super) struct ResponseSlot {
    responder: Option<Responder>,
    audit_id: String,
}

impl ResponseSlot {
    pub(super) fn new(responder: Responder, audit_id: String) -> Self {
        Self { responder: Some(responder), audit_id }
    }

    /// Sends a response unless one was sent before; reports whether it did.
    pub(super) fn respond(&mut self, response: impl FnOnce() -> Response<Body>) -> bool {
        let Some(responder) = self.responder.take() else { return false };
        let mut response = response();
        if let Ok(value) = HeaderValue::from_str(&self.audit_id) {
            response.headers_mut().insert(AUDIT_ID, value);
        }
        responder.respond(response);
        true
    }
}
