//! Turns a panic inside a future into an error.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// The message of a panic in a future.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PanicMessage(String);

/// Runs a future and returns the message of a panic in it as an error, so that a bug in one call or one
/// request ends only that one.
///
/// A panic must not leave state half-changed that the future shares with others. Calls share clients and a
/// concurrency limit, each behind a lock that is held only for changes that cannot panic halfway.
///
/// # Errors
/// [`PanicMessage`] if the future has panicked.
pub async fn catch_panic<F: Future>(future: F) -> Result<F::Output, PanicMessage> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(PanicMessage(panic_message(panic.as_ref())))),
    })
    .await
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error() {
        assert_eq!(catch_panic(async { 7 }).await, Ok(7));
        let panics = |what: &'static str| async move {
            tokio::task::yield_now().await;
            match what {
                "text" => panic!("as text"),
                "formatted" => panic!("as {what}"),
                _ => std::panic::panic_any(7),
            }
        };
        for (what, want) in
            [("text", "as text"), ("formatted", "as formatted"), ("other", "without a message")]
        {
            let ended: Result<(), PanicMessage> = catch_panic(panics(what)).await;
            assert_eq!(ended, Err(PanicMessage(want.to_owned())));
        }
    }
}
