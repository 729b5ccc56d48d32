//! Catches panics, so that a bug in one request ends only that request.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The message of a panic; empty if the panic has no text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PanicMessage(String);

/// Runs a future and returns the message of a panic in it.
///
/// A panic must not leave state that the future shares with other requests half-changed: all shared state of
/// the server is replaced as a whole.
///
/// # Errors
/// The future has panicked.
pub(crate) async fn catch_panic<F: Future>(future: F) -> Result<F::Output, PanicMessage> {
    CatchPanic { future: Box::pin(future) }.await
}

struct CatchPanic<F> {
    future: Pin<Box<F>>,
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, PanicMessage>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.future.as_mut();
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(payload) => Poll::Ready(Err(PanicMessage(panic_message(payload.as_ref())))),
        }
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error() {
        assert_eq!(catch_panic(async { 7 }).await, Ok(7));
        let broken = catch_panic(async {
            tokio::task::yield_now().await;
            panic!("of {}", "it")
        });
        let result: Result<(), PanicMessage> = broken.await;
        assert_eq!(result, Err(PanicMessage("of it".to_owned())));
    }
}
