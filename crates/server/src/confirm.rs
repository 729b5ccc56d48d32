//! How it is known that the configuration of admission is new enough to admit something by.
//!
//! A configuration that was acknowledged must hold for every request that arrives after that, at any
//! server. So a request asks where the mark of the configuration is, after it has arrived, and waits
//! until the picture shows that. Requests share the question: at most one is on its way, and whoever
//! comes later waits for the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use store::Revision;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How the configuration is kept new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// Each request makes sure.
    #[default]
    Barrier,
    /// It is read at intervals, and requests rely on the last time.
    Poll,
}

/// When the configuration of admission is new enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncOptions {
    /// How it is kept new.
    pub mode: SyncMode,
    /// How often the store is asked when nobody else asks.
    pub poll_interval: Duration,
    /// How old the last good answer of the store may be.
    pub max_staleness: Duration,
    /// How long a request waits for the first answer after a start.
    pub bootstrap_wait: Duration,
    /// Nobody else writes to the store. Whoever writes here waits until the picture shows it, so it
    /// is never behind what was acknowledged.
    pub is_only_server: bool,
}

impl Default for SyncOptions {
    fn default() -> Self {
        Self {
            mode: SyncMode::default(),
            poll_interval: Duration::from_secs(1),
            max_staleness: Duration::from_secs(5),
            bootstrap_wait: Duration::from_secs(5),
            is_only_server: false,
        }
    }
}

/// What was found out last.
#[derive(Debug, Clone)]
struct Asked {
    /// All questions up to this number are answered.
    through: u64,
    /// Where the mark was, and when that was asked; or why it is not known.
    outcome: Result<Need, Arc<str>>,
    /// The picture showed what the store had at this moment, or something newer.
    confirmed_at: Option<Instant>,
}

/// Asks the store, for everybody.
pub(crate) struct FreshnessBarrier {
    pub(crate) options: SyncOptions,
    n_questions: AtomicU64,
    wanted: Notify,
    asked: watch::Sender<Asked>,
}

/// What the picture has to show, and when that was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) revision: Revision,
    pub(crate) as_of: Instant,
}

/// Why nothing can be admitted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unconfirmed {
    /// The store has not answered since the start.
    Pending,
    /// The last good answer is too old.
    Stale(Arc<str>),
    /// There is something newer than the picture shows.
    Behind,
    /// The caller's own time is up before that is known.
    DeadlineExceeded,
}

/// Whether requests are admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Freshness {
    /// `None` before the first confirmation.
    pub(crate) age: Option<Duration>,
    pub(crate) is_stale: bool,
    /// Why the last question has no answer.
    pub(crate) last_error: Option<Arc<str>>,
}

const NO_ANSWER: &str = "the store does not answer";

impl FreshnessBarrier {
    pub(crate) fn new(options: SyncOptions) -> Self {
        let outcome = Err("configuration is not ready".into());
        Self {
            options,
            n_questions: AtomicU64::new(0),
            wanted: Notify::new(),
            asked: watch::Sender::new(Asked { through: 0, outcome, confirmed_at: None }),
        }
    }

    /// Answers the questions of requests, and asks by itself when there are none, until it is
    /// dropped. `newest` is a linearizable read of the mark; `applied` is how far the picture is.
    pub(crate) async fn run<F>(&self, newest: impl Fn() -> F, applied: impl Fn() -> Revision)
    where
        F: Future<Output = Result<Revision, String>>,
    {
        loop {
            // Whoever has a number up to this one came before the read begins.
            let through = self.n_questions.load(Ordering::SeqCst);
            let as_of = Instant::now();
            let read = tokio::time::timeout(self.options.max_staleness, newest()).await;
            let outcome = match read {
                Ok(Ok(revision)) => Ok(Need { revision, as_of }),
                Ok(Err(why)) => Err(why.into()),
                Err(_) => Err(NO_ANSWER.into()),
            };
            let applied = applied();
            self.asked.send_modify(|asked| {
                // What was missing at the last question may be there by now.
                for need in [&asked.outcome, &outcome].into_iter().flatten() {
                    if applied >= need.revision {
                        asked.confirmed_at = asked.confirmed_at.max(Some(need.as_of));
                    }
                }
                asked.through = through;
                asked.outcome = outcome;
            });
            if self.n_questions.load(Ordering::SeqCst) == through {
                tokio::select! {
                    () = self.wanted.notified() => {}
                    () = tokio::time::sleep_until(as_of + self.options.poll_interval) => {}
                }
            }
        }
    }

    /// A read of the whole configuration that began at that moment succeeded or failed.
    pub(crate) fn polled(&self, as_of: Instant, outcome: Result<Revision, Arc<str>>) {
        self.asked.send_modify(|asked| {
            if outcome.is_ok() {
                asked.confirmed_at = asked.confirmed_at.max(Some(as_of));
            }
            asked.outcome = outcome.map(|revision| Need { revision, as_of });
        });
    }

    /// The picture shows what was needed.
    pub(crate) fn confirmed(&self, need: Need) {
        self.asked.send_if_modified(|asked| {
            let is_newer = asked.confirmed_at < Some(need.as_of);
            if is_newer {
                asked.confirmed_at = Some(need.as_of);
            }
            is_newer
        });
    }

    /// The revision that the snapshot has to contain for a request that arrives now; `None` if the
    /// snapshot is good as it is.
    ///
    /// 1. The store is asked after the request has arrived.
    /// 2. If the store answers, its answer counts.
    /// 3. If the store fails, or does not answer for as long as a configuration may be stale, the
    ///    last confirmed configuration serves until it is too old.
    /// 4. If the caller's deadline comes first, nothing is admitted: a caller must not be able to
    ///    choose an old configuration by being in a hurry.
    pub(crate) async fn need(&self, deadline: Instant) -> Result<Option<Need>, Unconfirmed> {
        if self.options.is_only_server {
            return Ok(None);
        }
        let mut asked = self.asked.subscribe();
        let (is_first, is_failing) = {
            let asked = asked.borrow();
            (asked.confirmed_at.is_none(), asked.outcome.is_err())
        };
        if !is_first && is_failing {
            self.check_age()?;
        }
        let number = match self.options.mode {
            SyncMode::Barrier => self.n_questions.fetch_add(1, Ordering::SeqCst) + 1,
            SyncMode::Poll => 0,
        };
        self.wanted.notify_one();
        let is_answered =
            |asked: &Asked| asked.through >= number && (!is_first || asked.outcome.is_ok());
        let limit = match is_first {
            true => self.options.bootstrap_wait,
            false => self.options.max_staleness,
        };
        let limit = Instant::now() + limit;
        let answer =
            tokio::time::timeout_at(deadline.min(limit), asked.wait_for(is_answered)).await;
        let last = match answer {
            Ok(Ok(answered)) => answered.clone(),
            Err(_) if deadline < limit => return Err(Unconfirmed::DeadlineExceeded),
            // The sender lives as long as this value; what is left is that time is up.
            Ok(Err(_)) | Err(_) => self.asked.borrow().clone(),
        };
        match (&last.outcome, self.options.mode) {
            (Ok(need), SyncMode::Barrier) if last.through >= number => Ok(Some(*need)),
            _ => self.check_age().map(|()| None),
        }
    }

    /// Whether the store answers, and the picture shows what it says: a request may suppose that it
    /// still does, if the store is asked again before anything comes of it.
    pub(crate) fn is_calm(&self) -> bool {
        let SyncOptions { poll_interval, max_staleness, .. } = self.options;
        let asked = self.asked.borrow();
        // Every question is answered in time unless something is wrong.
        let lately = max_staleness.min(2 * poll_interval);
        asked.outcome.is_ok() && asked.confirmed_at.is_some_and(|at| at.elapsed() <= lately)
    }

    /// Whether the last confirmation is new enough.
    fn check_age(&self) -> Result<(), Unconfirmed> {
        let freshness = self.freshness();
        match (freshness.age, freshness.is_stale) {
            (None, _) => Err(Unconfirmed::Pending),
            (Some(_), false) => Ok(()),
            (Some(_), true) => {
                let why = freshness.last_error.unwrap_or_else(|| NO_ANSWER.into());
                Err(Unconfirmed::Stale(why))
            }
        }
    }

    /// How old the last good answer is, and why there is no newer one.
    pub(crate) fn freshness(&self) -> Freshness {
        if self.options.is_only_server {
            return Freshness { age: Some(Duration::ZERO), is_stale: false, last_error: None };
        }
        let asked = self.asked.borrow();
        let age = asked.confirmed_at.map(|at| at.elapsed());
        Freshness {
            age,
            is_stale: age.is_none_or(|age| age > self.options.max_staleness),
            last_error: asked.outcome.as_ref().err().cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A store whose mark and health can be set.
    #[derive(Default)]
    struct Scene {
        mark: AtomicU64,
        applied: AtomicU64,
        fault: Mutex<Option<&'static str>>,
        is_hanging: std::sync::atomic::AtomicBool,
        n_reads: AtomicU64,
        read_takes: Duration,
    }

    impl Scene {
        async fn read(&self) -> Result<Revision, String> {
            self.n_reads.fetch_add(1, Ordering::SeqCst);
            let mark = self.mark.load(Ordering::SeqCst);
            tokio::time::sleep(self.read_takes).await;
            if self.is_hanging.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let fault = *self.fault.lock().unwrap();
            fault.map_or(Ok(Revision::new(mark)), |why| Err(why.to_owned()))
        }
    }

    fn begin(scene: Scene, mode: SyncMode) -> (Arc<Scene>, Arc<FreshnessBarrier>) {
        let scene = Arc::new(scene);
        let barrier =
            Arc::new(FreshnessBarrier::new(SyncOptions { mode, ..SyncOptions::default() }));
        let (own, run) = (Arc::clone(&scene), Arc::clone(&barrier));
        tokio::spawn(async move {
            let applied = || Revision::new(own.applied.load(Ordering::SeqCst));
            run.run(|| own.read(), applied).await;
        });
        (scene, barrier)
    }

    async fn need(barrier: &FreshnessBarrier) -> Result<Option<u64>, Unconfirmed> {
        let need = barrier.need(Instant::now() + 30 * SECOND).await;
        need.map(|need| need.map(|need| need.revision.number()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_needs_what_was_acknowledged_before_it() {
        // T-142
        let (scene, barrier) = begin(Scene::default(), SyncMode::Barrier);
        for mark in [3, 4, 9] {
            scene.mark.store(mark, Ordering::SeqCst);
            assert_eq!(need(&barrier).await, Ok(Some(mark)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_share_reads_that_begin_after_them() {
        // T-157
        let read_takes = Duration::from_millis(10);
        let (scene, barrier) = begin(Scene { read_takes, ..Scene::default() }, SyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        let before = scene.n_reads.load(Ordering::SeqCst);
        let mut requests = tokio::task::JoinSet::new();
        for n in 0..100 {
            let (scene, barrier) = (Arc::clone(&scene), Arc::clone(&barrier));
            requests.spawn(async move {
                tokio::time::sleep(Duration::from_micros(200 * n)).await;
                let mark = scene.mark.fetch_add(1, Ordering::SeqCst) + 1;
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
        // T-144, T-145, T-149
        let (scene, barrier) = begin(Scene::default(), SyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        *scene.fault.lock().unwrap() = Some("cut off");
        tokio::time::sleep(3 * SECOND).await;
        assert_eq!(need(&barrier).await, Ok(None));
        tokio::time::sleep(3 * SECOND).await;
        assert_eq!(need(&barrier).await, Err(Unconfirmed::Stale("cut off".into())));
        *scene.fault.lock().unwrap() = None;
        tokio::time::sleep(SECOND).await;
        assert_eq!(need(&barrier).await, Ok(Some(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_hangs_makes_stale() {
        // T-148
        let (scene, barrier) = begin(Scene::default(), SyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        scene.is_hanging.store(true, Ordering::SeqCst);
        tokio::time::sleep(2 * SECOND).await;
        let begun = Instant::now();
        assert_eq!(need(&barrier).await, Err(Unconfirmed::Stale(NO_ANSWER.into())));
        assert!(begun.elapsed() <= 5 * SECOND);
    }

    /// Attack A5: a caller in a hurry is refused, while the store is well, slow, or failing.
    #[tokio::test(start_paused = true)]
    async fn a_deadline_of_the_caller_never_degrades() {
        let read_takes = Duration::from_millis(100);
        let (scene, barrier) = begin(Scene { read_takes, ..Scene::default() }, SyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        for fault in [None, Some("cut off")] {
            scene.mark.fetch_add(1, Ordering::SeqCst);
            *scene.fault.lock().unwrap() = fault;
            for hurry in [0, 1, 15, 50] {
                let deadline = Instant::now() + Duration::from_millis(hurry);
                let hurried = barrier.need(deadline).await;
                assert_eq!(hurried, Err(Unconfirmed::DeadlineExceeded), "{hurry} ms, {fault:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_start_requests_wait() {
        // T-150
        let scene = Scene { fault: Mutex::new(Some("unreachable")), ..Scene::default() };
        let (scene, barrier) = begin(scene, SyncMode::Barrier);
        let begun = Instant::now();
        assert_eq!(need(&barrier).await, Err(Unconfirmed::Pending));
        assert_eq!(begun.elapsed().as_secs(), 5);
        tokio::spawn(async move {
            tokio::time::sleep(2 * SECOND).await;
            *scene.fault.lock().unwrap() = None;
        });
        assert_eq!(need(&barrier).await, Ok(Some(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_picture_does_not_show_is_not_confirmed() {
        let (scene, barrier) = begin(Scene::default(), SyncMode::Barrier);
        assert_eq!(need(&barrier).await, Ok(Some(0)));
        // A change that the picture misses: reads succeed, and yet nothing is confirmed by them.
        scene.mark.store(7, Ordering::SeqCst);
        tokio::time::sleep(6 * SECOND).await;
        assert!(barrier.freshness().is_stale);
        scene.applied.store(7, Ordering::SeqCst);
        tokio::time::sleep(2 * SECOND).await;
        assert!(!barrier.freshness().is_stale);
    }

    #[tokio::test(start_paused = true)]
    async fn polling_relies_on_the_last_read() {
        // T-141, T-145, T-148
        let options = SyncOptions { mode: SyncMode::Poll, ..SyncOptions::default() };
        let barrier = FreshnessBarrier::new(options);
        assert_eq!(need(&barrier).await, Err(Unconfirmed::Pending));
        barrier.polled(Instant::now(), Ok(Revision::new(5)));
        assert_eq!(need(&barrier).await, Ok(None));
        tokio::time::sleep(4 * SECOND).await;
        barrier.polled(Instant::now(), Err("cut off".into()));
        assert_eq!(need(&barrier).await, Ok(None));
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(need(&barrier).await, Err(Unconfirmed::Stale("cut off".into())));
        barrier.polled(Instant::now(), Ok(Revision::new(5)));
        assert_eq!(need(&barrier).await, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn the_only_server_need_not_ask() {
        let options = SyncOptions { is_only_server: true, ..SyncOptions::default() };
        assert_eq!(need(&FreshnessBarrier::new(options)).await, Ok(None));
    }
}
