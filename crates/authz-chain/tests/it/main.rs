//! Chains of real authorizers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod agreement;
mod policy;
mod who_can;

use std::task::{Context, Poll, Waker};

use authz::User;

/// Runs a future that never waits.
fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("waits"),
    }
}

fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    User { name: name.to_owned(), groups, ..User::default() }
}
