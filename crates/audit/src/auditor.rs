//! Records requests in a log as a policy demands.

use jiff::Timestamp;

use crate::event::{Event, ReceivedRequest};
use crate::log::{Log, LogError};
use crate::policy::Policy;
use crate::stage::{Level, Stage};

/// An audit policy and the log that it fills.
#[derive(Debug)]
pub struct Auditor {
    policy: Policy,
    log: Log,
}

impl Auditor {
    /// An auditor with this policy and this log.
    pub fn new(policy: Policy, log: Log) -> Self {
        Self { policy, log }
    }

    /// Begins the event of a request; returns `None` if the policy does not record it.
    pub fn begin_event(&self, received: &ReceivedRequest<'_>) -> Option<Event> {
        let config = self.policy.config_for_request(&received.attributes);
        (config.level > Level::None).then(|| Event::new(received, config))
    }

    /// Writes an event at a stage, unless the policy omits the stage. Returns after the system has accepted the line.
    ///
    /// # Errors
    /// [`LogError`] if the line could not be written. At stage RequestReceived the server should then reject the
    /// request.
    pub fn record_event(
        &self,
        event: &Event,
        stage: Stage,
        now: Timestamp,
    ) -> Result<(), LogError> {
        if !event.records_stage(stage) {
            return Ok(());
        }
        self.log.write(&event.encode_line(stage, now), now)
    }

    /// Returns the log to which events are written.
    pub fn log(&self) -> &Log {
        &self.log
    }
}
