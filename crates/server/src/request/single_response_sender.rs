//! The slot for the response of a request, which is filled once.

use component_base::{AUDIT_ID, AuditId};
use flow_control::Classification;
use http::Response;
use http::header::{HeaderName, HeaderValue};
use https_server::{Body, ResponseSender};

/// The header with the uid of the flow schema that the request matches.
const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
/// The header with the uid of the priority level of the request.
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Sends the response of a request once, with its audit id and its classification.
pub(super) struct SingleResponseSender {
    response_sender: Option<ResponseSender>,
    audit_id: AuditId,
    flow_classification: Option<Classification>,
}

impl SingleResponseSender {
    pub(super) fn new(response_sender: ResponseSender, audit_id: AuditId) -> Self {
        Self { response_sender: Some(response_sender), audit_id, flow_classification: None }
    }

    /// Sets the classification that the headers of the response name.
    pub(super) fn set_flow_classification(&mut self, classification: Classification) {
        self.flow_classification = Some(classification);
    }

    /// Sends a response unless one was sent before; reports whether it did.
    pub(super) fn send_response_once(&mut self, response: impl FnOnce() -> Response<Body>) -> bool {
        let Some(response_sender) = self.response_sender.take() else { return false };
        let mut response = response();
        if let Ok(value) = HeaderValue::from_bytes(self.audit_id.as_bytes()) {
            response.headers_mut().insert(AUDIT_ID, value);
        }
        if let Some(own) = &self.flow_classification {
            let uids =
                [(FLOW_SCHEMA_UID, &*own.flow_schema().uid), (PRIORITY_LEVEL_UID, own.level_uid())];
            for (name, uid) in uids {
                if let Ok(value) = HeaderValue::from_str(uid) {
                    response.headers_mut().insert(name, value);
                }
            }
        }
        response_sender.send_response(response);
        true
    }
}
