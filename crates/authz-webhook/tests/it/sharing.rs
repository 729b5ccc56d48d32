//! Concurrent checks of the same request share one call, and callers may stop waiting.

use std::sync::Arc;
use std::time::Duration;

use authz::{Decision, TraceRecorder};
use authz_webhook::{CacheSettings, WebhookLimits, WebhookSettings};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, yield_now};

use crate::peer::{
    ALLOW, Scene, Step, code, failing_closed, line, named, pods, reply, says, settings,
};

/// Runs a check in a task of its own.
fn asking(scene: &Scene, name: &str) -> JoinHandle<Decision> {
    let (webhook, user) = (Arc::clone(&scene.webhook), named(name));
    tokio::spawn(async move {
        webhook
            .authorize(&pods(&user, "default"), TraceRecorder::disabled_recorder())
            .await
            .decision
    })
}

/// Lets all tasks run until they wait.
async fn settle() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

fn told() -> (Arc<Semaphore>, Step) {
    let told = Arc::new(Semaphore::new(0));
    (Arc::clone(&told), Step::WhenTold(told, reply(200, ALLOW)))
}

#[tokio::test(start_paused = true)]
async fn a_storm_makes_one_call() {
    let (told, step) = told();
    let scene = Scene::new([step]);
    let storm: Vec<_> = (0..1000).map(|_| asking(&scene, "ana")).collect();
    settle().await;
    assert_eq!(scene.webhook.health().n_in_flight_calls, 1);
    told.add_permits(1);
    for answer in storm {
        assert_eq!(line(&answer.await.unwrap()), "allow [yes]");
    }
    assert_eq!((scene.peer.n_calls(), scene.tally.n("joined")), (1, 999));
    assert_eq!(scene.tally.n("attempt success"), 1);
    assert_eq!(scene.webhook.health().n_in_flight_calls, 0);
}

/// On several threads, with answers that arrive while other checks begin: no check makes a second call between
/// the end of a call and the caching of its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_storm_makes_one_call_on_many_threads() {
    for round in 0..50 {
        let scene = Scene::new([says(ALLOW)]);
        let storm: Vec<_> = (0..64).map(|_| asking(&scene, "ana")).collect();
        for answer in storm {
            assert_eq!(line(&answer.await.unwrap()), "allow [yes]");
        }
        assert_eq!(scene.peer.n_calls(), 1, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_share_failures_too() {
    let scene = Scene::new([code(404)]);
    let storm: Vec<_> = (0..10).map(|_| asking(&scene, "ana")).collect();
    for answer in storm {
        let want = "noOpinion [] ! the server could not find the requested resource";
        assert_eq!(line(&answer.await.unwrap()), want);
    }
    // Each check failed open, and all shared one call.
    assert_eq!((scene.peer.n_calls(), scene.tally.n("fail-open error")), (1, 10));
    let _ = scene.ask_as("ana").await;
    assert_eq!(scene.peer.n_calls(), 2, "a failure is not kept");
}

/// If answers are not cached, only checks that begin before the request is sent share it. The policy of the
/// webhook may change after that, so a later check makes a call of its own.
#[tokio::test(start_paused = true)]
async fn answers_that_are_not_kept_are_not_for_those_who_ask_later() {
    let settings = WebhookSettings {
        authorized_cache_settings: CacheSettings::new(Duration::ZERO, true),
        ..settings()
    };
    let (told, step) = told();
    let scene = Scene::with(settings, WebhookLimits::default(), [step]);
    let mut storm: Vec<_> = (0..10).map(|_| asking(&scene, "ana")).collect();
    settle().await;
    assert_eq!(scene.peer.n_calls(), 1, "nobody was asked before the last one had come");
    storm.push(asking(&scene, "ana"));
    settle().await;
    assert_eq!((scene.peer.n_calls(), scene.webhook.health().n_in_flight_calls), (2, 2));
    told.add_permits(10);
    for answer in storm {
        assert_eq!(line(&answer.await.unwrap()), "allow [yes]");
    }
    assert_eq!((scene.peer.n_calls(), scene.webhook.health().n_in_flight_calls), (2, 0));
}

/// Two calls for one request: each call ends when its last waiter leaves.
#[tokio::test(start_paused = true)]
async fn calls_for_the_same_question_end_by_themselves() {
    let settings = WebhookSettings {
        authorized_cache_settings: CacheSettings::new(Duration::ZERO, true),
        ..settings()
    };
    let (told, step) = told();
    let scene = Scene::with(settings, WebhookLimits::default(), [step]);
    let first = asking(&scene, "ana");
    settle().await;
    let second = asking(&scene, "ana");
    settle().await;
    first.abort();
    settle().await;
    assert_eq!(
        (scene.webhook.health().n_in_flight_calls, scene.tally.n("attempt canceled")),
        (1, 1)
    );
    told.add_permits(1);
    assert_eq!(line(&second.await.unwrap()), "allow [yes]");
}

#[tokio::test(start_paused = true)]
async fn different_questions_are_different_calls() {
    let (told, step) = told();
    let scene = Scene::new([step]);
    let answers = [asking(&scene, "ana"), asking(&scene, "bob")];
    settle().await;
    assert_eq!((scene.peer.n_calls(), scene.webhook.health().n_in_flight_calls), (2, 2));
    told.add_permits(2);
    for answer in answers {
        assert_eq!(line(&answer.await.unwrap()), "allow [yes]");
    }
    assert_eq!(scene.tally.n("joined"), 0);
}

/// The request that began a shared call may be canceled; the other requests still get its answer.
#[tokio::test(start_paused = true)]
async fn a_call_goes_on_as_long_as_somebody_waits() {
    let (told, step) = told();
    let scene = Scene::new([step]);
    let first = asking(&scene, "ana");
    settle().await;
    let second = asking(&scene, "ana");
    settle().await;
    first.abort();
    settle().await;
    assert_eq!(
        (scene.webhook.health().n_in_flight_calls, scene.tally.n("attempt canceled")),
        (1, 0)
    );
    told.add_permits(1);
    assert_eq!(line(&second.await.unwrap()), "allow [yes]");
    assert_eq!(scene.peer.n_calls(), 1);
    assert!(first.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_ends() {
    let scene = Scene::new([Step::Hang, says(ALLOW)]);
    let askers = [asking(&scene, "ana"), asking(&scene, "ana")];
    settle().await;
    for asker in askers {
        asker.abort();
    }
    settle().await;
    assert_eq!(scene.webhook.health().n_in_flight_calls, 0);
    let events = ["cache miss", "cache miss", "joined", "attempt canceled"];
    assert_eq!(scene.tally.events(), events, "canceled once, no fail-open");
    assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
}

#[tokio::test(start_paused = true)]
async fn giving_up_between_attempts_counts_nothing_more() {
    let scene = Scene::new([code(500), says(ALLOW)]);
    let user = named("ana");
    let asked = pods(&user, "default");
    let limit = Duration::from_millis(100);
    assert!(tokio::time::timeout(limit, scene.ask(&asked)).await.is_err());
    settle().await;
    tokio::time::advance(Duration::from_secs(10)).await;
    settle().await;
    assert_eq!(scene.peer.n_calls(), 1);
    assert_eq!(scene.tally.events(), ["cache miss", "attempt error"]);
}

/// A check that is dropped before its first poll makes no call.
#[tokio::test(start_paused = true)]
async fn giving_up_before_the_call_makes_none() {
    let scene = Scene::new([says(ALLOW)]);
    let user = named("ana");
    let asked = pods(&user, "default");
    drop(scene.ask(&asked));
    settle().await;
    assert_eq!((scene.peer.n_calls(), scene.tally.events().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_call_leaves_nobody_waiting() {
    let scene = Scene::with(failing_closed(), WebhookLimits::default(), [Step::Panic, says(ALLOW)]);
    let askers = [asking(&scene, "ana"), asking(&scene, "ana")];
    for asker in askers {
        let want = "unavailable [] ! webhook call failed: it ended without an answer";
        assert_eq!(line(&asker.await.unwrap()), want);
    }
    let health = scene.webhook.health();
    assert_eq!((health.n_in_flight_calls, scene.tally.n("attempt error")), (0, 1));
    assert!(health.last_failed_call.is_some());
    assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
}

/// A runtime that is shutting down drops new tasks at once; no check waits for a lock forever.
#[test]
fn a_runtime_that_is_gone_is_a_failure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    let _entered = handle.enter();
    let scene = Scene::with(failing_closed(), WebhookLimits::default(), [says(ALLOW)]);
    let user = named("ana");
    let asked = pods(&user, "default");
    let mut asking = Box::pin(scene.ask(&asked));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match asking.as_mut().poll(&mut context) {
        std::task::Poll::Ready(decision) => {
            let want = "unavailable [] ! webhook call failed: it ended without an answer";
            assert_eq!(line(&decision), want);
        }
        std::task::Poll::Pending => panic!("it waits for nothing"),
    }
}

#[test]
fn without_a_runtime_nothing_is_asked() {
    let scene = Scene::with(failing_closed(), WebhookLimits::default(), [says(ALLOW)]);
    let user = named("ana");
    let asked = pods(&user, "default");
    let mut asking = Box::pin(scene.ask(&asked));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(asking.as_mut().poll(&mut context).is_ready());
    assert_eq!(scene.peer.n_calls(), 0);
}
