//! Keeps long evaluations of match conditions from taking all workers of the server.
//!
//! The cost limit lets the conditions of one hook take about a second of a worker, and every write that the
//! hook's rules match pays it. So a hook whose last evaluation took long gets one of a few permits before the
//! next one. Half of the processors are left to requests that no such hook matches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::Duration;

use concurrency_limit::{ConcurrencyLimit, Permit};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::hook_refusal::HookRefusal;

/// An evaluation that takes longer than this is long. Usual conditions take less than a microsecond.
const LONG_EVALUATION: Duration = Duration::from_millis(5);

/// The number of long evaluations that may wait or run at one time, half of them for one user. Further writes
/// that such a hook matches are refused, because the time to wait would be that of the request.
const LONG_EVALUATIONS_MAX: usize = 16;

/// The evaluations that may run at one time: half of the processors.
static RUNNING: LazyLock<Semaphore> = LazyLock::new(|| {
    let n_processors = available_parallelism().map_or(1, |count| count.get());
    Semaphore::new((n_processors / 2).max(1))
});

/// The evaluations that wait or run.
static ADMITTED: LazyLock<Arc<ConcurrencyLimit>> =
    LazyLock::new(|| Arc::new(ConcurrencyLimit::new(LONG_EVALUATIONS_MAX)));

/// Whether the last evaluation of the conditions of one hook was long.
#[derive(Debug, Default)]
pub(crate) struct ConditionLoad {
    is_long: AtomicBool,
}

/// The right to make one long evaluation.
#[derive(Debug)]
pub(crate) struct LongEvaluationPermit {
    _running: SemaphorePermit<'static>,
    _admitted: Permit,
}

impl ConditionLoad {
    /// Waits for a permit if the last evaluation was long; `None` if none is needed.
    ///
    /// # Errors
    /// The deadline of the request passes, or too many long evaluations wait.
    pub(crate) async fn begin(
        &self,
        webhook: &str,
        user: &str,
        deadline: Instant,
    ) -> Result<Option<LongEvaluationPermit>, HookRefusal> {
        if !self.is_long.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let admitted = ADMITTED.acquire(authz::user_limit_key(user)).map_err(|_| {
            HookRefusal::CallUnavailable {
                webhook: webhook.to_owned(),
                why: "too many evaluations of its match conditions, which take long, are waiting"
                    .to_owned(),
                is_temporary: true,
            }
        })?;
        match timeout_at(deadline, RUNNING.acquire()).await {
            // The semaphore is never closed.
            Ok(Ok(running)) => {
                Ok(Some(LongEvaluationPermit { _running: running, _admitted: admitted }))
            }
            Ok(Err(_)) | Err(_) => Err(HookRefusal::DeadlineExceeded),
        }
    }

    /// Records how long an evaluation took. After a long one it lets other tasks of the worker run, and ends a
    /// request whose time is over, so that many hooks with long evaluations do not add up to more.
    ///
    /// # Errors
    /// The deadline of the request has passed.
    pub(crate) async fn end(&self, took: Duration, deadline: Instant) -> Result<(), HookRefusal> {
        let is_long = took > LONG_EVALUATION;
        self.is_long.store(is_long, Ordering::Relaxed);
        if !is_long {
            return Ok(());
        }
        tokio::task::yield_now().await;
        match Instant::now() < deadline {
            true => Ok(()),
            false => Err(HookRefusal::DeadlineExceeded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A17: long evaluations are few at a time, half of them for one user, and end with the request. Short ones
    /// do not wait. One test, because the permits are those of the process.
    #[tokio::test]
    async fn a17_long_evaluations_are_limited_for_each_user() {
        let load = ConditionLoad::default();
        let later = Instant::now() + Duration::from_secs(60);
        let soon = || Instant::now() + Duration::from_millis(5);
        assert!(load.begin("h", "jane", later).await.unwrap().is_none());
        assert!(load.end(Duration::from_secs(1), later).await.is_ok());
        let n_running = u32::try_from(RUNNING.available_permits()).expect("few processors");
        let running = RUNNING.acquire_many(n_running).await.expect("the semaphore is open");
        // All permits are in use, so the next one waits until its deadline.
        assert_eq!(load.begin("h", "joe", soon()).await.err(), Some(HookRefusal::DeadlineExceeded));
        // Evaluations of jane wait, until she has half of those that are admitted.
        let mut waiting: Vec<_> = (0..LONG_EVALUATIONS_MAX.div_ceil(2))
            .map(|_| Box::pin(load.begin("h", "jane", later)))
            .collect();
        for one in &mut waiting {
            assert!(tokio::time::timeout(Duration::from_millis(1), one).await.is_err());
        }
        let refused = load.begin("h", "jane", later).await.err();
        assert!(matches!(refused, Some(HookRefusal::CallUnavailable { is_temporary: true, .. })));
        // Another user still gets in, and a hook with short conditions does not wait at all.
        assert_eq!(load.begin("h", "joe", soon()).await.err(), Some(HookRefusal::DeadlineExceeded));
        assert!(ConditionLoad::default().begin("h", "jane", later).await.unwrap().is_none());
        drop((running, waiting));
        assert!(load.begin("h", "joe", later).await.unwrap().is_some());
        // A short evaluation ends the state, and one that outlasts the request ends the request.
        assert!(load.end(Duration::ZERO, later).await.is_ok());
        assert!(load.begin("h", "joe", later).await.unwrap().is_none());
        let past = load.end(Duration::from_secs(1), Instant::now()).await;
        assert_eq!(past.err(), Some(HookRefusal::DeadlineExceeded));
    }
}
