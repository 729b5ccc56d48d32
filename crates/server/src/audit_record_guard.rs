//! Makes sure that a request that was received is recorded to its end.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use api_object::Status;

use crate::record::Record;
use crate::server_state::ServerState;

/// The record of a request that is under way. It writes the last audit event, the line of the log and the
/// metrics exactly once: with the code of the answer by [`Self::finish`], or when it is dropped. Then the
/// task of the request has panicked or was cancelled when the server stopped, and the outcome is unknown:
/// the event says 500 or 504.
pub(crate) struct AuditRecordGuard<S> {
    server: Arc<ServerState<S>>,
    record: Record,
    started: Instant,
    is_finished: bool,
}

impl<S> AuditRecordGuard<S> {
    pub(crate) fn new(server: &Arc<ServerState<S>>, record: Record) -> Self {
        Self { server: Arc::clone(server), record, started: Instant::now(), is_finished: false }
    }

    /// The answer is known.
    pub(crate) fn finish(mut self, code: u16) {
        self.write(code);
    }

    fn write(&mut self, code: u16) {
        self.is_finished = true;
        self.record.finish(&self.server, code, self.started.elapsed());
    }
}

impl<S> Deref for AuditRecordGuard<S> {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

impl<S> DerefMut for AuditRecordGuard<S> {
    fn deref_mut(&mut self) -> &mut Record {
        &mut self.record
    }
}

impl<S> Drop for AuditRecordGuard<S> {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let status = match std::thread::panicking() {
            true => Status::internal("the server failed on the request"),
            false => Status::timeout(),
        };
        self.record.failed(&status);
        self.write(status.code);
    }
}
