//! Checks of the store for health endpoints, whose results all callers share.
//!
//! Clients may call the health endpoints without credentials and without a seat. Each check reads the store or
//! syncs its disk, so without sharing a flood of probes would become a flood of reads.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The timeout of a check.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum age of a shared result.
const AGE_MAX: Duration = Duration::from_secs(1);

/// One check. At most one run of it is in progress, and all requests of the next second share its result. Requests
/// can therefore neither cause more reads of the store nor change the results of other requests.
#[derive(Debug, Default)]
pub(crate) struct CoalescedStoreCheck(Arc<Mutex<Option<StoreCheckResult>>>);

#[derive(Debug, Clone, Copy)]
struct StoreCheckResult {
    checked_at: Instant,
    has_passed: bool,
}

impl CoalescedStoreCheck {
    /// Returns the last result if it is recent enough, and otherwise runs `check`. The check continues if the
    /// caller stops waiting.
    pub(crate) async fn passes_store_check<T, E>(
        &self,
        check: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> bool {
        let mut last = Arc::clone(&self.0).lock_owned().await;
        if let Some(result) = last.filter(|result| result.checked_at.elapsed() < AGE_MAX) {
            return result.has_passed;
        }
        let checking = tokio::spawn(async move {
            let checked = tokio::time::timeout(TIMEOUT, check).await;
            let is_ok = matches!(checked, Ok(Ok(_)));
            *last = Some(StoreCheckResult { checked_at: Instant::now(), has_passed: is_ok });
            is_ok
        });
        // A check that panics has no result.
        checking.await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Waits on the paused clock.
    async fn wait(time: Duration) {
        let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
    }

    /// Asks so many times at once, of a store that answers after some time. Returns the answers and the number of reads.
    async fn ask(
        check: &Arc<CoalescedStoreCheck>,
        n_callers: usize,
        after: Duration,
        answer: Result<(), ()>,
    ) -> (Vec<bool>, usize) {
        let n_reads = Arc::new(AtomicUsize::new(0));
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..n_callers {
            let (check, n_reads) = (Arc::clone(check), Arc::clone(&n_reads));
            callers.spawn(async move {
                let read = async move {
                    n_reads.fetch_add(1, Ordering::Relaxed);
                    wait(after).await;
                    answer
                };
                check.passes_store_check(read).await
            });
        }
        (callers.join_all().await, n_reads.load(Ordering::Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_probes_reads_the_store_once_a_second() {
        let check = Arc::new(CoalescedStoreCheck::default());
        let moment = Duration::from_millis(10);
        assert_eq!(ask(&check, 100, moment, Ok(())).await, (vec![true; 100], 1));
        assert_eq!(ask(&check, 100, moment, Err(())).await, (vec![true; 100], 0));
        tokio::time::advance(AGE_MAX).await;
        assert_eq!(ask(&check, 100, moment, Err(())).await, (vec![false; 100], 1));
        tokio::time::advance(AGE_MAX).await;
        // A hanging store is read once too, and each caller gets the failure within the timeout.
        let begun = Instant::now();
        assert_eq!(ask(&check, 100, 10 * TIMEOUT, Ok(())).await, (vec![false; 100], 1));
        assert_eq!(begun.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_does_not_end_the_check() {
        let check = Arc::new(CoalescedStoreCheck::default());
        let second = Duration::from_secs(1);
        let slow = async move {
            wait(second).await;
            Result::<(), ()>::Ok(())
        };
        assert!(tokio::time::timeout(second / 10, check.passes_store_check(slow)).await.is_err());
        let (answers, n_reads) = ask(&check, 1, second, Err(())).await;
        assert_eq!((answers, n_reads), (vec![true], 0));
    }
}
