//! A fault in one request ends that request and nothing else.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs a future; a panic in it is an error with its message.
///
/// What the future shared with others must not be left half-changed by a panic: everything here is
/// swapped whole.
pub(crate) async fn guarded<F: Future>(future: F) -> Result<F::Output, String> {
    Guarded { future: Box::pin(future) }.await
}

struct Guarded<F> {
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Guarded<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.future.as_mut();
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(payload) => Poll::Ready(Err(message(payload.as_ref()))),
        }
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error() {
        assert_eq!(guarded(async { 7 }).await, Ok(7));
        let broken = guarded(async {
            tokio::task::yield_now().await;
            panic!("of {}", "it")
        });
        let result: Result<(), String> = broken.await;
        assert_eq!(result, Err("of it".to_owned()));
    }
}
