//! Which configuration is in effect, and how reloads went.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use authz_reload::{AppliedConfig, ReloadStatus, sha256_hash};
use prometheus::proto::MetricFamily;

use crate::family;
use crate::samples::Samples;

/// The numbers of the configuration.
#[derive(Debug)]
pub(crate) struct Reloads {
    /// The hash of who this server is.
    identity: String,
    state: Mutex<State>,
}

/// One value behind one lock: whoever collects sees one hash, and with it its generation.
#[derive(Debug, Default)]
struct State {
    hash: Option<String>,
    generation: u64,
    successes: Outcomes,
    failures: Outcomes,
}

#[derive(Debug, Default)]
struct Outcomes {
    n: u64,
    last: f64,
}

impl Reloads {
    /// No configuration yet, of the server that is known as this.
    pub(crate) fn new(identity: &str) -> Self {
        Self { identity: sha256_hash(identity.as_bytes()), state: Mutex::default() }
    }

    /// A reload ended.
    pub(crate) fn reloaded(&self, status: ReloadStatus, at: SystemTime) {
        let mut state = self.state();
        let outcomes = match status {
            ReloadStatus::Success => &mut state.successes,
            ReloadStatus::Failure => &mut state.failures,
        };
        outcomes.n += 1;
        // A clock before 1970 is no reason to go without the count.
        outcomes.last = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    }

    /// A configuration is in effect.
    pub(crate) fn applied(&self, applied: &AppliedConfig<'_>) {
        let mut state = self.state();
        state.hash = applied.hash.map(str::to_owned);
        state.generation = applied.generation;
    }

    /// The generation as it is now.
    pub(crate) fn collect_generation(&self) -> MetricFamily {
        let mut generation = Samples::of(&family::GENERATION);
        generation.gauge(&[], self.state().generation as f64);
        generation.finish()
    }

    /// The numbers that only a file has, as they are now.
    pub(crate) fn collect_file(&self) -> [MetricFamily; 3] {
        let mut times = Samples::of(&family::RELOAD_TIME);
        let mut counts = Samples::of(&family::RELOADS);
        let mut info = Samples::of(&family::CONFIG_INFO);
        let state = self.state();
        for status in ReloadStatus::ALL {
            let outcomes = match status {
                ReloadStatus::Success => &state.successes,
                ReloadStatus::Failure => &state.failures,
            };
            if outcomes.n > 0 {
                times.gauge(&[&self.identity, status.name()], outcomes.last);
            }
            counts.counter(&[&self.identity, status.name()], outcomes.n);
        }
        if let Some(hash) = &state.hash {
            info.gauge(&[&self.identity, hash], 1.0);
        }
        [times.finish(), counts.finish(), info.finish()]
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
