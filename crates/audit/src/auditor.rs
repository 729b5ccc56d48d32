//! The policy and the log together.

use jiff::Timestamp;

use crate::event::{Event, Received};
use crate::log::{Log, LogError};
use crate::policy::Policy;
use crate::stage::{Level, Stage};

/// Records requests as a policy says, in a log.
#[derive(Debug)]
pub struct Auditor {
    policy: Policy,
    log: Log,
}

impl Auditor {
    /// An auditor with a policy and a log of its own.
    pub fn new(policy: Policy, log: Log) -> Self {
        Self { policy, log }
    }

    /// The event of a request, to be filled and recorded; `None` if the request is not recorded.
    pub fn begin(&self, received: &Received<'_>) -> Option<Event> {
        let config = self.policy.config_for_request(&received.attributes);
        (config.level > Level::None).then(|| Event::new(received, config))
    }

    /// Writes an event as it is at a stage, unless the policy leaves the stage out. It returns when
    /// the system has the line.
    ///
    /// # Errors
    /// [`LogError`] if the line could not be written. A request that was only just received should
    /// then be refused; one that was answered can not be taken back.
    pub fn record(&self, event: &Event, stage: Stage, now: Timestamp) -> Result<(), LogError> {
        if !event.is_recorded(stage) {
            return Ok(());
        }
        self.log.write(&event.line(stage, now), now)
    }

    /// Where events go.
    pub fn log(&self) -> &Log {
        &self.log
    }
}
