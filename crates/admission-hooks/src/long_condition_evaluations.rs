//! Keeps long evaluations of match conditions from delaying requests that no such condition concerns.
//!
//! Every write that the rules of a hook match evaluates its conditions, which may cost up to the limit of
//! Kubernetes. If the last evaluation for a hook took long, the next request that evaluates the conditions waits
//! for a [`concurrency_limit::CpuSlot`] first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use concurrency_limit::LongComputationFlag;
use tokio::time::Instant;

use crate::hook_refusal::HookRefusal;

/// An evaluation that takes longer than this is long. Usual conditions take less than a microsecond.
const LONG_EVALUATION: Duration = Duration::from_micros(500);

/// Whether the last evaluation of the conditions of one hook was long.
#[derive(Debug, Default)]
pub(crate) struct LongEvaluationTracker {
    was_last_evaluation_long: AtomicBool,
}

impl LongEvaluationTracker {
    /// Sets the flag of the operation if the last evaluation was long. Returns the flag, for
    /// [`Self::end_condition_evaluation`] to clear.
    pub(crate) async fn begin_condition_evaluation<'w>(
        &self,
        work: Option<&'w LongComputationFlag>,
    ) -> Option<&'w LongComputationFlag> {
        let work = work.filter(|_| self.was_last_evaluation_long.load(Ordering::Relaxed))?;
        work.begin_long_computation().await.then_some(work)
    }

    /// Records how long an evaluation took. After a long evaluation other tasks run first, and a request whose
    /// deadline has passed ends, so that the evaluations for many hooks do not exceed the deadline together.
    ///
    /// # Errors
    /// The deadline of the request has passed.
    pub(crate) async fn end_condition_evaluation(
        &self,
        took: Duration,
        work: Option<&LongComputationFlag>,
        deadline: Instant,
    ) -> Result<(), HookRefusal> {
        let was_last_evaluation_long = took > LONG_EVALUATION;
        self.was_last_evaluation_long.store(was_last_evaluation_long, Ordering::Relaxed);
        if let Some(work) = work {
            work.end_long_computation();
        }
        if !was_last_evaluation_long {
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

    /// A17: after a long evaluation the next one sets the flag, so that it waits for a CPU slot. After a short one
    /// it does not.
    #[tokio::test]
    async fn a17_long_evaluations_are_announced() {
        let load = LongEvaluationTracker::default();
        let later = Instant::now() + Duration::from_secs(60);
        let (work, long) = (LongComputationFlag::default(), Duration::from_secs(1));
        assert!(load.begin_condition_evaluation(Some(&work)).await.is_none());
        assert!(load.end_condition_evaluation(long, None, later).await.is_ok());
        let begun = load.begin_condition_evaluation(Some(&work)).await;
        assert!(begun.is_some() && work.is_long_computation());
        // The rest of the request needs no CPU slot.
        assert!(load.end_condition_evaluation(long, begun, later).await.is_ok());
        assert!(!work.is_long_computation());
        assert!(load.begin_condition_evaluation(None).await.is_none());
        // A request that takes long for another reason still does afterwards.
        work.mark_long_computation();
        assert!(load.begin_condition_evaluation(Some(&work)).await.is_none());
        // A short evaluation ends the state, and one that outlasts the request ends the request.
        assert!(load.end_condition_evaluation(Duration::ZERO, None, later).await.is_ok());
        assert!(
            load.begin_condition_evaluation(Some(&LongComputationFlag::default())).await.is_none()
        );
        let past = load.end_condition_evaluation(long, None, Instant::now()).await;
        assert_eq!(past.err(), Some(HookRefusal::DeadlineExceeded));
    }
}
