//! Guarantees that every received request is recorded to its end.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use api_object::Status;
use audit::EventWriteReceipt;

use crate::request_record::RequestRecord;
use crate::server_state::ServerState;

/// The record of a request that is being processed. It writes the last audit event, the log line and the
/// metrics exactly once: with the status code of the response by [`Self::record_request_end`], or when it is
/// dropped. In the latter case the task of the request panicked, or was cancelled because the server
/// stopped. The outcome is unknown then, and the event has the code 500 or 504.
pub(crate) struct AuditRecordGuard {
    server: Arc<ServerState>,
    request_record: RequestRecord,
    request_started_at: Instant,
    is_request_end_recorded: bool,
}

impl AuditRecordGuard {
    pub(crate) fn new(server: &Arc<ServerState>, record: RequestRecord) -> Self {
        Self {
            server: Arc::clone(server),
            request_record: record,
            request_started_at: Instant::now(),
            is_request_end_recorded: false,
        }
    }

    /// Records the end of the request with the status code of its response. In the blocking modes of audit it
    /// waits, for a limited time, until the last event is written.
    pub(crate) async fn record_request_end(mut self, code: u16) {
        let receipt = self.write_end_of_request(code);
        if !receipt.needs_no_wait() {
            // The request has been executed: a response that is withheld would undo nothing.
            let _ = receipt.wait_until_written().await;
        }
    }

    fn write_end_of_request(&mut self, code: u16) -> EventWriteReceipt {
        self.is_request_end_recorded = true;
        self.request_record.record_request_end(
            &self.server,
            code,
            self.request_started_at.elapsed(),
        )
    }
}

impl Deref for AuditRecordGuard {
    type Target = RequestRecord;

    fn deref(&self) -> &RequestRecord {
        &self.request_record
    }
}

impl DerefMut for AuditRecordGuard {
    fn deref_mut(&mut self) -> &mut RequestRecord {
        &mut self.request_record
    }
}

impl Drop for AuditRecordGuard {
    fn drop(&mut self) {
        if self.is_request_end_recorded {
            return;
        }
        let status = match std::thread::panicking() {
            true => Status::internal_error("the server failed on the request"),
            false => Status::timeout(),
        };
        self.request_record.record_error(&status);
        drop(self.write_end_of_request(status.code));
    }
}
