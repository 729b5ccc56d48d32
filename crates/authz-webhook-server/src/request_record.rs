//! The record of a request: its audit event and its line in the log.

use std::net::SocketAddr;
use std::sync::Arc;

use api_object::Status;
use audit::{Event, ReceivedRequest, Stage};
use authz::{Attributes, Target, User, Verb};
use component_base::{AuditId, LogField, LogLevel};
use http::request::Parts;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::review::DecidedReview;
use crate::serve::WebhookState;

/// The audit annotations of a decided review. The verdict of the review is not the authorization of the request that posts it,
/// so the keys are not those of Kubernetes.
const REVIEW_DECISION: &str = "authorization.portcullis.io/review-decision";
const REVIEW_REASON: &str = "authorization.portcullis.io/review-reason";
const REVIEW_USER: &str = "authorization.portcullis.io/review-user";
const REVIEW_REQUEST: &str = "authorization.portcullis.io/review-request";
const DECISION_ID: &str = "authorization.portcullis.io/decision-id";

/// The record of one request.
pub(crate) struct RequestRecord {
    method: String,
    path: String,
    client_address: SocketAddr,
    audit_id: AuditId,
    begun_at: Instant,
    caller: Option<Arc<User>>,
    decision_id: Option<String>,
    audit_event: Option<Box<Event>>,
}

impl RequestRecord {
    /// A record without a caller.
    pub(crate) fn new(server: &WebhookState, parts: &Parts, client_address: SocketAddr) -> Self {
        Self {
            method: parts.method.as_str().to_owned(),
            path: parts.uri.path().to_owned(),
            client_address,
            audit_id: server.audit_ids.audit_id_for_request(&parts.headers),
            begun_at: Instant::now(),
            caller: None,
            decision_id: None,
            audit_event: None,
        }
    }

    /// The audit id, which the response has too.
    pub(crate) fn audit_id(&self) -> &AuditId {
        &self.audit_id
    }

    /// The time since the request began.
    pub(crate) fn elapsed(&self) -> std::time::Duration {
        self.begun_at.elapsed()
    }

    /// Records the caller, and writes the first audit event.
    ///
    /// # Errors
    /// 500 if the audit event is not written although it must be.
    pub(crate) async fn record_caller(
        &mut self,
        server: &WebhookState,
        caller: &Arc<User>,
        parts: &Parts,
        now: Timestamp,
    ) -> Result<(), Status> {
        self.caller = Some(Arc::clone(caller));
        let Some(auditor) = &server.auditor else { return Ok(()) };
        let verb = self.method.to_ascii_lowercase();
        let user_agent = parts.headers.get(http::header::USER_AGENT);
        let received = ReceivedRequest {
            audit_id: self.audit_id.as_str(),
            request_uri: &self.path,
            attributes: Attributes {
                user: Some(caller),
                verb: Verb::new(&verb),
                target: Target::Path(&self.path),
            },
            source_ips: &[self.client_address.ip()],
            user_agent: user_agent.and_then(|own| own.to_str().ok()).unwrap_or_default(),
            at: now,
        };
        self.audit_event = auditor.begin_event(&received).map(Box::new);
        let Some(event) = &self.audit_event else { return Ok(()) };
        let receipt = auditor.record_event(event, Stage::RequestReceived, now);
        receipt.wait_until_written().await.map_err(|error| {
            self.audit_event = None;
            Status::internal_error(&format!("the audit event cannot be written: {error}"))
        })
    }

    /// Records a decided review.
    pub(crate) fn record_review(&mut self, review: &DecidedReview) {
        let id = review.decision_id.to_string();
        if let Some(event) = &mut self.audit_event {
            event.add_annotation(DECISION_ID, &id);
            event.add_annotation(REVIEW_DECISION, review.decision.verdict.name());
            event.add_annotation(REVIEW_REASON, &review.decision.reason.to_string());
            event.add_annotation(REVIEW_USER, &review.reviewed_user);
            event.add_annotation(REVIEW_REQUEST, &review.reviewed_request);
        }
        self.decision_id = Some(id);
    }

    /// Records the end of the request: the last audit event and the line of the log. The response is sent after that.
    pub(crate) async fn record_end(mut self, server: &WebhookState, code: u16) {
        if let (Some(auditor), Some(event)) = (&server.auditor, &mut self.audit_event) {
            event.set_response_status(code, None);
            let receipt = auditor.record_event(event, Stage::ResponseComplete, Timestamp::now());
            // The auditor counts events that are lost.
            let _ = receipt.wait_until_written().await;
        }
        if server.log.least_severe_level < LogLevel::Info {
            return;
        }
        let micros = self.begun_at.elapsed().as_micros();
        let caller = self.caller.as_ref().map_or("", |user| user.name.as_str());
        let mut fields: Vec<LogField<'_>> = vec![
            ("method", &self.method),
            ("path", &self.path),
            ("code", &code),
            ("micros", &micros),
            ("user", &caller),
            ("auditID", &self.audit_id),
            ("source", &self.client_address),
        ];
        if let Some(id) = &self.decision_id {
            fields.push(("decision", id));
        }
        server.log.info("request", &fields);
    }
}
