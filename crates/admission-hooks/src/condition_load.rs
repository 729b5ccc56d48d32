//! Keeps long evaluations of match conditions from delaying requests that no such condition concerns.
//!
//! Every write that the rules of a hook match evaluates its conditions, which may cost up to the limit of
//! Kubernetes. If the last evaluation for a hook took long, the next request that evaluates the conditions waits
//! for a [`concurrency_limit::Turn`] first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use concurrency_limit::LongWork;
use tokio::time::Instant;

use crate::hook_refusal::HookRefusal;

/// An evaluation that takes longer than this is long. Usual conditions take less than a microsecond.
const LONG_EVALUATION: Duration = Duration::from_micros(500);

/// Whether the last evaluation of the conditions of one hook was long.
#[derive(Debug, Default)]
pub(crate) struct ConditionLoad {
    is_long: AtomicBool,
}

impl ConditionLoad {
    /// Announces a long evaluation if the last one was long. Returns the work that [`Self::end`] ends.
    pub(crate) async fn begin<'w>(&self, work: Option<&'w LongWork>) -> Option<&'w LongWork> {
        let work = work.filter(|_| self.is_long.load(Ordering::Relaxed))?;
        work.begin().await.then_some(work)
    }

    /// Records how long an evaluation took. After a long evaluation other tasks run first, and a request whose
    /// deadline has passed ends, so that the evaluations for many hooks do not exceed the deadline together.
    ///
    /// # Errors
    /// The deadline of the request has passed.
    pub(crate) async fn end(
        &self,
        took: Duration,
        work: Option<&LongWork>,
        deadline: Instant,
    ) -> Result<(), HookRefusal> {
        let is_long = took > LONG_EVALUATION;
        self.is_long.store(is_long, Ordering::Relaxed);
        if let Some(work) = work {
            work.end();
        }
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

    /// A17: after a long evaluation the next one is announced, so that it waits for a turn of its user. A short one is not.
    #[tokio::test]
    async fn a17_long_evaluations_are_announced() {
        let load = ConditionLoad::default();
        let later = Instant::now() + Duration::from_secs(60);
        let (work, long) = (LongWork::default(), Duration::from_secs(1));
        assert!(load.begin(Some(&work)).await.is_none());
        assert!(load.end(long, None, later).await.is_ok());
        let begun = load.begin(Some(&work)).await;
        assert!(begun.is_some() && work.has_begun());
        // The rest of the request needs no turn.
        assert!(load.end(long, begun, later).await.is_ok());
        assert!(!work.has_begun());
        assert!(load.begin(None).await.is_none());
        // A request that takes long for another reason still does afterwards.
        work.set_begun();
        assert!(load.begin(Some(&work)).await.is_none());
        // A short evaluation ends the state, and one that outlasts the request ends the request.
        assert!(load.end(Duration::ZERO, None, later).await.is_ok());
        assert!(load.begin(Some(&LongWork::default())).await.is_none());
        let past = load.end(long, None, Instant::now()).await;
        assert_eq!(past.err(), Some(HookRefusal::DeadlineExceeded));
    }
}
