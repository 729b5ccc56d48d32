//! Peers that hang up while their requests are worked on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Response;
use https_server::{Body, DrainPlan, DrainResult, Limits};
use tokio::sync::Semaphore;

use crate::host::{Client, Host, request, soon};

/// Requests that wait at a gate.
#[derive(Debug)]
struct Gate {
    is_open: Semaphore,
    n_begun: AtomicUsize,
    n_ended: AtomicUsize,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            is_open: Semaphore::new(0),
            n_begun: AtomicUsize::new(0),
            n_ended: AtomicUsize::new(0),
        })
    }

    fn host(self: &Arc<Self>, limits: Limits) -> Host {
        let gate = Arc::clone(self);
        Host::start(limits, move |_, _| {
            let gate = Arc::clone(&gate);
            async move {
                gate.n_begun.fetch_add(1, Ordering::SeqCst);
                let _ = gate.is_open.acquire().await.unwrap();
                gate.n_ended.fetch_add(1, Ordering::SeqCst);
                Response::new(Body::empty_body())
            }
        })
    }

    async fn begun(&self, n_requests: usize) {
        let wait = async {
            while self.n_begun.load(Ordering::SeqCst) < n_requests {
                tokio::task::yield_now().await;
            }
        };
        soon("the beginning of requests", wait).await;
    }
}

#[tokio::test]
async fn a_request_goes_on_without_its_peer_and_draining_waits_for_it() {
    let gate = Gate::new();
    let host = gate.host(Limits::default());
    for protocol in ["http/1.1", "h2"] {
        let begun = gate.n_begun.load(Ordering::SeqCst);
        let client = Client::default();
        let asking = match protocol {
            "h2" => {
                let mut sender = host.http2(&client).await;
                tokio::spawn(async move { drop(sender.send_request(request("/", "")).await) })
            }
            _ => {
                let mut sender = host.http1(&client).await;
                tokio::spawn(async move { drop(sender.send_request(request("/", "")).await) })
            }
        };
        gate.begun(begun + 1).await;
        asking.abort();
        let _ = asking.await;
    }
    let plan = DrainPlan {
        unready_delay: Duration::ZERO,
        watch_termination_period: Duration::ZERO,
        request_drain_timeout: Duration::from_secs(20),
    };
    let mut draining = {
        let shutdown = host.shutdown.clone();
        tokio::spawn(async move { shutdown.drain(plan).await })
    };
    let is_early = tokio::time::timeout(Duration::from_millis(300), &mut draining).await.is_ok();
    assert!(!is_early);
    assert_eq!(gate.n_ended.load(Ordering::SeqCst), 0);
    gate.is_open.add_permits(2);
    assert_eq!(soon("the end", draining).await.unwrap(), DrainResult::Clean);
    assert_eq!(gate.n_ended.load(Ordering::SeqCst), 2);
}

/// A peer that resets streams begins no more requests at one time than one that waits.
#[tokio::test]
async fn streams_that_are_reset_still_count() {
    let gate = Gate::new();
    let host = gate.host(Limits { concurrent_streams_max: 3, ..Limits::default() });
    let sender = host.http2(&Client::default()).await;
    for _ in 0..12 {
        let mut sender = sender.clone();
        let asking = async move { sender.send_request(request("/", "")).await };
        let _ = tokio::time::timeout(Duration::from_millis(30), asking).await;
    }
    gate.begun(3).await;
    assert_eq!(gate.n_begun.load(Ordering::SeqCst), 3);
    gate.is_open.add_permits(1);
    let mut sender = sender.clone();
    let answer = soon("an answer", sender.send_request(request("/", ""))).await;
    assert_eq!(answer.unwrap().status(), 200);
}
