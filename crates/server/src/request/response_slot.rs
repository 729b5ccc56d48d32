//! The slot for the response of a request, which is filled once.

use http::Response;
use http::header::HeaderValue;
use https_server::{Body, ResponseSender};

use crate::audit_id::AUDIT_ID;

/// Sends the response of a request once, with its audit id.
pub(super) struct ResponseSlot {
    response_sender: Option<ResponseSender>,
    audit_id: String,
}

impl ResponseSlot {
    pub(super) fn new(response_sender: ResponseSender, audit_id: String) -> Self {
        Self { response_sender: Some(response_sender), audit_id }
    }

    /// Sends a response unless one was sent before; reports whether it did.
    pub(super) fn respond(&mut self, response: impl FnOnce() -> Response<Body>) -> bool {
        let Some(response_sender) = self.response_sender.take() else { return false };
        let mut response = response();
        if let Ok(value) = HeaderValue::from_str(&self.audit_id) {
            response.headers_mut().insert(AUDIT_ID, value);
        }
        response_sender.respond(response);
        true
    }
}
