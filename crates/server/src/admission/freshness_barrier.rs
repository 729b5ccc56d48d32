//! The freshness barrier: confirms that the local admission configuration is current.
//!
//! A configuration that was acknowledged must be in force for every request that arrives afterwards, at any
//! server. So the server reads the config revision key after the request arrived, and the request waits
//! until the local snapshot contains that revision. Requests share reads: at most one read is in flight,
//! and requests that arrive during it wait for the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use store::Revision;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::FreshnessError;

/// How a server keeps its admission configuration current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdmissionConfigSyncMode {
    /// Each write confirms the configuration, or lets its transaction verify it.
    #[default]
    Barrier,
    /// The server reads the configuration at intervals, and writes use the result of the last read.
    Poll,
}

/// The settings of the freshness of the admission configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionConfigSyncOptions {
    /// How the configuration is kept current.
    pub admission_config_sync_mode: AdmissionConfigSyncMode,
    /// The interval of reads when no request causes one.
    pub admission_config_poll_interval: Duration,
    /// The maximum age of the last confirmation. If it is older, writes are refused.
    pub admission_config_staleness_max: Duration,
    /// How long a request waits for the first confirmation after the start of the server.
    pub first_config_confirmation_wait_max: Duration,
    /// This server is the only writer of the store. A write returns only after the local snapshot contains
    /// it, so the local configuration is always current.
    pub is_only_server: bool,
}

impl Default for AdmissionConfigSyncOptions {
    fn default() -> Self {
        Self {
            admission_config_sync_mode: AdmissionConfigSyncMode::default(),
            admission_config_poll_interval: Duration::from_secs(1),
            admission_config_staleness_max: Duration::from_secs(5),
            first_config_confirmation_wait_max: Duration::from_secs(5),
            is_only_server: false,
        }
    }
}

/// The result of the last read.
#[derive(Debug, Clone)]
struct LastConfigRead {
    /// Requests with a ticket up to this number arrived before the read began.
    last_covered_ticket: u64,
    /// The config revision that the read found, or why it failed.
    config_read_outcome: Result<RequiredConfigRevision, Arc<str>>,
    /// The last time at which the local snapshot contained every configuration of the store.
    config_confirmed_at: Option<Instant>,
}

/// Confirms the configuration for all requests.
pub(crate) struct FreshnessBarrier {
    pub(crate) options: AdmissionConfigSyncOptions,
    /// The ticket of the last request.
    last_request_ticket: AtomicU64,
    read_request_notify: Notify,
    last_config_read: watch::Sender<LastConfigRead>,
}

/// A revision that the local snapshot has to contain, and the start time of the read that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequiredConfigRevision {
    pub(crate) revision: Revision,
    pub(crate) read_began_at: Instant,
}

/// The age of the last confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigConfirmationAge {
    /// `None` before the first confirmation.
    pub(crate) last_confirmation_age: Option<Duration>,
    pub(crate) is_confirmation_stale: bool,
    /// The error of the last read, if it failed.
    pub(crate) last_read_error: Option<Arc<str>>,
}

const NO_RESPONSE: &str = "the store does not answer";

impl FreshnessBarrier {
    pub(crate) fn new(options: AdmissionConfigSyncOptions) -> Self {
        let outcome = Err("configuration is not ready".into());
        Self {
            options,
            last_request_ticket: AtomicU64::new(0),
            read_request_notify: Notify::new(),
            last_config_read: watch::Sender::new(LastConfigRead {
                last_covered_ticket: 0,
                config_read_outcome: outcome,
                config_confirmed_at: None,
            }),
        }
    }

    /// Reads the config revision key for requests, and at intervals when there are none, until it is
    /// dropped. `read_newest` is a linearizable read of the key; `applied` is the revision of the local
    /// snapshot.
    pub(crate) async fn run<F, E>(
        &self,
        read_newest: impl Fn() -> F,
        applied: impl Fn() -> Revision,
    ) where
        F: Future<Output = Result<Revision, E>>,
        E: std::fmt::Display,
    {
        loop {
            // Requests with a ticket up to this one arrived before the read and may use its result.
            let last_covered_ticket = self.last_request_ticket.load(Ordering::SeqCst);
            let read_began_at = Instant::now();
            let read =
                tokio::time::timeout(self.options.admission_config_staleness_max, read_newest())
                    .await;
            let outcome = match read {
                Ok(Ok(revision)) => Ok(RequiredConfigRevision { revision, read_began_at }),
                Ok(Err(error)) => Err(error.to_string().into()),
                Err(_) => Err(NO_RESPONSE.into()),
            };
            let applied = applied();
            self.last_config_read.send_modify(|last| {
                // The snapshot may have caught up with the previous read by now.
                for required in [&last.config_read_outcome, &outcome].into_iter().flatten() {
                    if applied >= required.revision {
                        last.config_confirmed_at =
                            last.config_confirmed_at.max(Some(required.read_began_at));
                    }
                }
                last.last_covered_ticket = last_covered_ticket;
                last.config_read_outcome = outcome;
            });
            if self.last_request_ticket.load(Ordering::SeqCst) == last_covered_ticket {
                tokio::select! {
                    () = self.read_request_notify.notified() => {}
                    () = tokio::time::sleep_until(read_began_at + self.options.admission_config_poll_interval) => {}
                }
            }
        }
    }

    /// Records the result of a poll of the whole configuration that began at this moment.
    pub(crate) fn record_config_poll(
        &self,
        read_began_at: Instant,
        outcome: Result<Revision, Arc<str>>,
    ) {
        self.last_config_read.send_modify(|last| {
            if outcome.is_ok() {
                last.config_confirmed_at = last.config_confirmed_at.max(Some(read_began_at));
            }
            last.config_read_outcome =
                outcome.map(|revision| RequiredConfigRevision { revision, read_began_at });
        });
    }

    /// Records that the local snapshot contains the required revision.
    pub(crate) fn record_config_confirmation(&self, required: RequiredConfigRevision) {
        self.last_config_read.send_if_modified(|last| {
            let is_newer = last.config_confirmed_at < Some(required.read_began_at);
            if is_newer {
                last.config_confirmed_at = Some(required.read_began_at);
            }
            is_newer
        });
    }

    /// Returns the revision that the snapshot has to contain for a request that arrives now; `None` if the current
    /// snapshot suffices. The only server of a store needs no read.
    ///
    /// 1. A read of the config revision key begins after the request has arrived.
    /// 2. If the read succeeds, its revision is required.
    /// 3. If the read fails, or takes longer than the maximum staleness, the last confirmed configuration
    ///    serves until it is older than the maximum staleness.
    /// 4. If the deadline of the caller passes first, the write is refused: a caller must not be able to
    ///    choose an old configuration with a short deadline.
    pub(crate) async fn required_config_revision(
        &self,
        deadline: Instant,
    ) -> Result<Option<RequiredConfigRevision>, FreshnessError> {
        if self.options.is_only_server {
            return Ok(None);
        }
        let mut reads = self.last_config_read.subscribe();
        let (is_first, is_failing) = {
            let last = reads.borrow();
            (last.config_confirmed_at.is_none(), last.config_read_outcome.is_err())
        };
        if !is_first && is_failing {
            self.check_confirmation_age()?;
        }
        let ticket = match self.options.admission_config_sync_mode {
            AdmissionConfigSyncMode::Barrier => {
                self.last_request_ticket.fetch_add(1, Ordering::SeqCst) + 1
            }
            AdmissionConfigSyncMode::Poll => 0,
        };
        self.read_request_notify.notify_one();
        let is_served = |last: &LastConfigRead| {
            last.last_covered_ticket >= ticket && (!is_first || last.config_read_outcome.is_ok())
        };
        let limit = match is_first {
            true => self.options.first_config_confirmation_wait_max,
            false => self.options.admission_config_staleness_max,
        };
        let limit = Instant::now() + limit;
        let served = tokio::time::timeout_at(deadline.min(limit), reads.wait_for(is_served)).await;
        let last = match served {
            Ok(Ok(last)) => last.clone(),
            Err(_) if deadline < limit => return Err(FreshnessError::DeadlineExceeded),
            // The sender lives as long as this value, so only the limit can have passed.
            Ok(Err(_)) | Err(_) => self.last_config_read.borrow().clone(),
        };
        match (&last.config_read_outcome, self.options.admission_config_sync_mode) {
            (Ok(required), AdmissionConfigSyncMode::Barrier)
                if last.last_covered_ticket >= ticket =>
            {
                Ok(Some(*required))
            }
            _ => self.check_confirmation_age().map(|()| None),
        }
    }

    /// Whether the last read succeeded and the configuration was confirmed recently. A write may then assume that
    /// its configuration is current, because its transaction verifies that.
    pub(crate) fn is_config_recently_confirmed(&self) -> bool {
        let AdmissionConfigSyncOptions {
            admission_config_poll_interval: config_poll_interval,
            admission_config_staleness_max: config_staleness_max,
            ..
        } = self.options;
        let last = self.last_config_read.borrow();
        // A read begins at least once in an interval.
        let recent = config_staleness_max.min(2 * config_poll_interval);
        last.config_read_outcome.is_ok()
            && last.config_confirmed_at.is_some_and(|at| at.elapsed() <= recent)
    }

    /// Checks that the last confirmation is recent enough.
    fn check_confirmation_age(&self) -> Result<(), FreshnessError> {
        let confirmation = self.config_confirmation_age();
        match (confirmation.last_confirmation_age, confirmation.is_confirmation_stale) {
            (None, _) => Err(FreshnessError::Pending),
            (Some(_), false) => Ok(()),
            (Some(_), true) => {
                let why = confirmation.last_read_error.unwrap_or_else(|| NO_RESPONSE.into());
                Err(FreshnessError::Stale(why))
            }
        }
    }

    /// The age of the last confirmation, and why there is no newer one.
    pub(crate) fn config_confirmation_age(&self) -> ConfigConfirmationAge {
        if self.options.is_only_server {
            return ConfigConfirmationAge {
                last_confirmation_age: Some(Duration::ZERO),
                is_confirmation_stale: false,
                last_read_error: None,
            };
        }
        let last = self.last_config_read.borrow();
        let age = last.config_confirmed_at.map(|at| at.elapsed());
        ConfigConfirmationAge {
            last_confirmation_age: age,
            is_confirmation_stale: age
                .is_none_or(|age| age > self.options.admission_config_staleness_max),
            last_read_error: last.config_read_outcome.as_ref().err().cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Advances the paused clock in steps, so that tasks that become due run in between.
    async fn pass_time(time: Duration) {
        let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
    }

    /// A store whose config revision and health can be set.
    #[derive(Default)]
    struct Scene {
        config_revision: AtomicU64,
        applied: AtomicU64,
        fault: Mutex<Option<&'static str>>,
        is_hanging: std::sync::atomic::AtomicBool,
        n_reads: AtomicU64,
        read_takes: Duration,
    }

    impl Scene {
        async fn read(&self) -> Result<Revision, &'static str> {
            self.n_reads.fetch_add(1, Ordering::SeqCst);
            let mark = self.config_revision.load(Ordering::SeqCst);
            pass_time(self.read_takes).await;
            if self.is_hanging.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let fault = *self.fault.lock().unwrap();
            fault.map_or(Ok(Revision::new(mark)), Err)
        }
    }

    fn begin(
        scene: Scene,
        sync_mode: AdmissionConfigSyncMode,
    ) -> (Arc<Scene>, Arc<FreshnessBarrier>) {
        let scene = Arc::new(scene);
        let barrier = Arc::new(FreshnessBarrier::new(AdmissionConfigSyncOptions {
            admission_config_sync_mode: sync_mode,
            ..AdmissionConfigSyncOptions::default()
        }));
        let (own, run) = (Arc::clone(&scene), Arc::clone(&barrier));
        tokio::spawn(async move {
            let applied = || Revision::new(own.applied.load(Ordering::SeqCst));
            run.run(|| own.read(), applied).await;
        });
        (scene, barrier)
    }

    async fn need(barrier: &FreshnessBarrier) -> Result<Option<u64>, FreshnessError> {
        let need = barrier.required_config_revision(Instant::now() + 30 * SECOND).await;
        need.map(|need| need.map(|need| need.revision.as_u64()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_needs_what_was_acknowledged_before_it() {
        let (scene, barrier) = begin(Scene::default(), AdmissionConfigSyncMode::Barrier);
        for mark in [3, 4, 9] {
            scene.config_revision.store(mark, Ordering::SeqCst);
            assert_eq!(need(&barrier).await, Ok(Some(mark)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_share_reads_that_begin_after_them() {
        let read_takes = Duration::from_millis(10);
        let (scene, barrier) =
            begin(Scene { read_takes, ..Scene::default() }, AdmissionConfigSyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        let before = scene.n_reads.load(Ordering::SeqCst);
        let mut requests = tokio::task::JoinSet::new();
        for n in 0..100 {
            let (scene, barrier) = (Arc::clone(&scene), Arc::clone(&barrier));
            requests.spawn(async move {
                pass_time(Duration::from_micros(200 * n)).await;
                let mark = scene.config_revision.fetch_add(1, Ordering::SeqCst) + 1;
                (mark, need(&barrier).await)
            });
        }
        while let Some(done) = requests.join_next().await {
            let (mark, need) = done.unwrap();
            assert!(need.unwrap().unwrap() >= mark);
        }
        assert!(scene.n_reads.load(Ordering::SeqCst) - before < 10);
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_fail_are_forgiven_for_a_while() {
        let (scene, barrier) = begin(Scene::default(), AdmissionConfigSyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        *scene.fault.lock().unwrap() = Some("cut off");
        pass_time(3 * SECOND).await;
        assert_eq!(need(&barrier).await, Ok(None));
        pass_time(3 * SECOND).await;
        assert_eq!(need(&barrier).await, Err(FreshnessError::Stale("cut off".into())));
        *scene.fault.lock().unwrap() = None;
        pass_time(SECOND).await;
        assert_eq!(need(&barrier).await, Ok(Some(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_hangs_makes_stale() {
        let (scene, barrier) = begin(Scene::default(), AdmissionConfigSyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        scene.is_hanging.store(true, Ordering::SeqCst);
        pass_time(2 * SECOND).await;
        let begun = Instant::now();
        assert_eq!(need(&barrier).await, Err(FreshnessError::Stale(NO_RESPONSE.into())));
        assert!(begun.elapsed() <= 5 * SECOND);
    }

    /// A5: a request with a short deadline is refused while the store is healthy, slow, or failing.
    #[tokio::test(start_paused = true)]
    async fn a_deadline_of_the_caller_never_degrades() {
        let read_takes = Duration::from_millis(100);
        let (scene, barrier) =
            begin(Scene { read_takes, ..Scene::default() }, AdmissionConfigSyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        for fault in [None, Some("cut off")] {
            scene.config_revision.fetch_add(1, Ordering::SeqCst);
            *scene.fault.lock().unwrap() = fault;
            for hurry in [0, 1, 15, 50] {
                let deadline = Instant::now() + Duration::from_millis(hurry);
                let hurried = barrier.required_config_revision(deadline).await;
                assert_eq!(hurried, Err(FreshnessError::DeadlineExceeded), "{hurry} ms, {fault:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_start_requests_wait() {
        let scene = Scene { fault: Mutex::new(Some("unreachable")), ..Scene::default() };
        let (scene, barrier) = begin(scene, AdmissionConfigSyncMode::Barrier);
        let begun = Instant::now();
        assert_eq!(need(&barrier).await, Err(FreshnessError::Pending));
        assert_eq!(begun.elapsed().as_secs(), 5);
        tokio::spawn(async move {
            pass_time(2 * SECOND).await;
            *scene.fault.lock().unwrap() = None;
        });
        assert_eq!(need(&barrier).await, Ok(Some(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_revision_that_the_snapshot_lacks_is_not_confirmed() {
        let (scene, barrier) = begin(Scene::default(), AdmissionConfigSyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        // The snapshot lacks a change: reads succeed, but they confirm nothing.
        scene.config_revision.store(7, Ordering::SeqCst);
        pass_time(6 * SECOND).await;
        assert!(barrier.config_confirmation_age().is_confirmation_stale);
        scene.applied.store(7, Ordering::SeqCst);
        pass_time(2 * SECOND).await;
        assert!(!barrier.config_confirmation_age().is_confirmation_stale);
    }

    #[tokio::test(start_paused = true)]
    async fn polling_relies_on_the_last_read() {
        let options = AdmissionConfigSyncOptions {
            admission_config_sync_mode: AdmissionConfigSyncMode::Poll,
            ..AdmissionConfigSyncOptions::default()
        };
        let barrier = FreshnessBarrier::new(options);
        assert_eq!(need(&barrier).await, Err(FreshnessError::Pending));
        barrier.record_config_poll(Instant::now(), Ok(Revision::new(5)));
        assert_eq!(need(&barrier).await, Ok(None));
        pass_time(4 * SECOND).await;
        barrier.record_config_poll(Instant::now(), Err("cut off".into()));
        assert_eq!(need(&barrier).await, Ok(None));
        pass_time(2 * SECOND).await;
        assert_eq!(need(&barrier).await, Err(FreshnessError::Stale("cut off".into())));
        barrier.record_config_poll(Instant::now(), Ok(Revision::new(5)));
        assert_eq!(need(&barrier).await, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn the_only_server_need_not_ask() {
        let options = AdmissionConfigSyncOptions {
            is_only_server: true,
            ..AdmissionConfigSyncOptions::default()
        };
        assert_eq!(need(&FreshnessBarrier::new(options)).await, Ok(None));
    }
}
