//! From serving to gone.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use https_server::{Body, DrainPlan, DrainResult, Limits, Shutdown, ShutdownPhase};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::host::{Client, Host, SOON, request, soon, text};

const PLAN: DrainPlan = DrainPlan {
    unready_delay: Duration::ZERO,
    watch_termination_period: Duration::ZERO,
    request_drain_timeout: SOON,
};

fn closed() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

/// Answers `/watch` with a stream that lasts until watches are told to end, `/slow` when `gate`
/// opens, and everything else at once. Slow requests that came are counted by permits of `came`.
fn host(gate: &Arc<Semaphore>, came: &Arc<Semaphore>) -> Host {
    let came = Arc::clone(came);
    let gate = Arc::clone(gate);
    let slot: Arc<std::sync::OnceLock<Shutdown>> = Arc::default();
    let shutdown = Arc::clone(&slot);
    let host = Host::start(Limits::default(), move |request, _| {
        let (gate, came) = (Arc::clone(&gate), Arc::clone(&came));
        let shutdown = shutdown.get().unwrap().clone();
        async move {
            match request.uri().path() {
                "/watch" => {
                    let watch = shutdown.register_watch();
                    let (sender, body) = Body::from_channel(1);
                    tokio::spawn(async move {
                        sender.send("begin\n".into()).await.unwrap();
                        watch.wait_for_watch_end().await;
                        sender.send("end\n".into()).await.unwrap();
                    });
                    Response::new(body)
                }
                "/slow" => {
                    came.add_permits(1);
                    gate.acquire().await.unwrap().forget();
                    Response::new(Body::from("done"))
                }
                _ => Response::new(Body::from(format!("{:?}", shutdown.current_phase()))),
            }
        }
    });
    slot.set(host.shutdown.clone()).unwrap();
    host
}

#[tokio::test]
async fn watches_end_cleanly_and_requests_are_answered() {
    let (gate, came) = (closed(), closed());
    let host = host(&gate, &came);
    let _fresh = host.tls(&Client::default()).await.unwrap();
    let mut idle = host.http1(&Client::default()).await;
    idle.send_request(request("/", "")).await.unwrap();
    let mut one = host.http1(&Client::default()).await;
    let watch_one = one.send_request(request("/watch", "")).await.unwrap();
    let mut two = host.http2(&Client::default()).await;
    let watch_two = two.send_request(request("https://localhost/watch", "")).await.unwrap();
    let slow = tokio::spawn(two.send_request(request("https://localhost/slow", "")));
    let mut three = host.http1(&Client::default()).await;
    let slow_one = tokio::spawn(async move { three.send_request(request("/slow", "")).await });
    soon("the slow requests", came.acquire_many(2)).await.unwrap().forget();

    let draining = {
        let shutdown = host.shutdown.clone();
        tokio::spawn(async move { shutdown.drain(PLAN).await })
    };
    assert_eq!(soon("the end of a watch", text(watch_one)).await, "begin\nend\n");
    assert_eq!(soon("the end of a watch", text(watch_two)).await, "begin\nend\n");
    soon("closing", host.shutdown.wait_for_phase(ShutdownPhase::Closing)).await;
    assert!(TcpStream::connect(host.address).await.is_err());
    assert!(!draining.is_finished());
    gate.add_permits(2);
    assert_eq!(text(slow.await.unwrap().unwrap()).await, "done");
    let response = slow_one.await.unwrap().unwrap();
    assert_eq!(response.headers()["connection"], "close");
    assert_eq!(text(response).await, "done");
    assert_eq!(soon("the end", draining).await.unwrap(), DrainResult::Clean);
    soon("the end of the server", host.task).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_ready_still_serves() {
    let host = host(&closed(), &closed());
    host.shutdown.advance_to_phase(ShutdownPhase::Unready);
    let mut sender = host.http1(&Client::default()).await;
    let response = sender.send_request(request("/", "")).await.unwrap();
    assert_eq!(text(response).await, "Unready");
    host.shutdown.advance_to_phase(ShutdownPhase::Refusing);
    // The service still sees requests, so that it can refuse them in its own words.
    let response = sender.send_request(request("/", "")).await.unwrap();
    assert_eq!(response.headers()["connection"], "close");
    assert_eq!(text(response).await, "Refusing");
}

#[tokio::test]
async fn a_request_that_does_not_end_is_dropped() {
    let came = closed();
    let host = host(&closed(), &came);
    let mut sender = host.http1(&Client::default()).await;
    let stuck = tokio::spawn(async move { sender.send_request(request("/slow", "")).await });
    soon("the request", came.acquire()).await.unwrap().forget();
    let plan = DrainPlan { request_drain_timeout: Duration::from_millis(100), ..PLAN };
    assert_eq!(host.shutdown.drain(plan).await, DrainResult::Dropped(1));
    assert!(stuck.await.unwrap().is_err());
    soon("the end of the server", host.task).await.unwrap();
}
