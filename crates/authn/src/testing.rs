//! Polls futures that are ready at once, for tests.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The output of a future that is ready at once.
pub(crate) fn poll_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future that should be ready waits"),
    }
}
