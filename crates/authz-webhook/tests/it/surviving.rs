//! Webhooks that are down or overloaded: the breaker and the limit of calls. Time is simulated.

use std::sync::Arc;
use std::time::Duration;

use authz::{Decision, Recorder};
use authz_webhook::{CallError, FaultKind, Guards, Reply};
use breaker::{BreakerOptions, BreakerState};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, advance};

use crate::peer::{
    ALLOW, Scene, Step, code, failing_closed, fault, line, named, pods, reply, says, settings,
};

fn guards(failures_to_open: u32) -> Guards {
    let breaker = BreakerOptions {
        is_enabled: true,
        failures_to_open,
        open_min: Duration::from_secs(1),
        open_max: Duration::from_secs(4),
    };
    Guards { breaker, ..Guards::default() }
}

fn down() -> Step {
    fault(FaultKind::Other, "refused")
}

async fn fail(scene: &Scene, n: usize) {
    for _ in 0..n {
        assert!(scene.ask_as("ana").await.error.is_some());
    }
}

fn is_breaker(decision: &Decision) -> bool {
    let causes = decision.error.as_ref().map(|error| error.causes()).unwrap_or_default();
    matches!(causes.first().and_then(|cause| cause.downcast_ref()), Some(CallError::Halted(_)))
}

#[tokio::test(start_paused = true)]
async fn a_dead_webhook_is_left_alone() {
    let scene = Scene::with(settings(), guards(3), [down()]);
    fail(&scene, 3).await;
    assert_eq!(scene.webhook.health().breaker, BreakerState::Open);
    let began = Instant::now();
    let want = "noOpinion [] ! webhook was not called: its last 3 calls failed, and it is left \
                alone for another 1000ms";
    assert_eq!(line(&scene.ask_as("ana").await), want);
    assert_eq!((scene.peer.n_calls(), began.elapsed()), (3, Duration::ZERO));
    assert_eq!(scene.tally.n("rejected breaker_open"), 1);
    // It counts as failing open, and as no attempt.
    assert_eq!((scene.tally.n("fail-open error"), scene.tally.n("attempt error")), (4, 3));

    let closed = Scene::with(failing_closed(), guards(1), [down()]);
    fail(&closed, 1).await;
    let decision = closed.ask_as("ana").await;
    assert!(is_breaker(&decision) && decision.verdict.name() == "deny");
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_answered_while_the_breaker_is_open() {
    let scene = Scene::with(settings(), guards(1), [says(ALLOW), down()]);
    let _ = scene.ask_as("bob").await;
    fail(&scene, 1).await;
    assert_eq!(line(&scene.ask_as("bob").await), "allow [yes]");
    assert!(is_breaker(&scene.ask_as("ana").await));
}

#[tokio::test(start_paused = true)]
async fn a_probe_finds_out_whether_it_is_back() {
    let scene = Scene::with(settings(), guards(2), [down(), down(), down(), says(ALLOW)]);
    fail(&scene, 2).await;
    advance(Duration::from_millis(999)).await;
    assert!(is_breaker(&scene.ask_as("ana").await));
    advance(Duration::from_millis(1)).await;
    // The probe fails, and the wait is twice as long.
    assert_eq!(line(&scene.ask_as("ana").await), "noOpinion [] ! refused");
    advance(Duration::from_millis(1999)).await;
    assert!(is_breaker(&scene.ask_as("ana").await));
    advance(Duration::from_millis(1)).await;
    assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
    let states: Vec<String> =
        scene.tally.events().into_iter().filter(|event| event.starts_with("breaker")).collect();
    let want = ["open", "half_open", "open", "half_open", "closed"];
    assert_eq!(states, want.map(|state| format!("breaker {state}")));
    assert_eq!(scene.peer.n_calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_wait_grows_to_its_limit() {
    let scene = Scene::with(settings(), guards(1), [down()]);
    fail(&scene, 1).await;
    for seconds in [1, 2, 4, 4, 4] {
        let before = scene.peer.n_calls();
        advance(Duration::from_secs(seconds) - Duration::from_millis(1)).await;
        fail(&scene, 1).await;
        assert_eq!(scene.peer.n_calls(), before, "{seconds}");
        advance(Duration::from_millis(1)).await;
        fail(&scene, 1).await;
        assert_eq!(scene.peer.n_calls(), before + 1, "{seconds}");
    }
}

fn asking(scene: &Scene, name: &str) -> JoinHandle<Decision> {
    let (webhook, user) = (Arc::clone(&scene.webhook), named(name));
    tokio::spawn(async move {
        webhook.authorize(&pods(&user, "default"), Recorder::off()).await.decision
    })
}

async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_probe_at_a_time() {
    let told = Arc::new(Semaphore::new(0));
    let answer = Step::WhenTold(Arc::clone(&told), reply(200, ALLOW));
    let scene = Scene::with(settings(), guards(1), [down(), answer]);
    fail(&scene, 1).await;
    advance(Duration::from_secs(1)).await;
    let probe = asking(&scene, "ana");
    settle().await;
    assert_eq!(scene.webhook.health().breaker, BreakerState::HalfOpen);
    assert!(is_breaker(&scene.ask_as("bob").await), "another question is not asked");
    let joined = asking(&scene, "ana");
    settle().await;
    told.add_permits(1);
    assert_eq!(line(&probe.await.unwrap()), "allow [yes]");
    assert_eq!(line(&joined.await.unwrap()), "allow [yes]", "the same one waits for the probe");
    assert_eq!(scene.webhook.health().breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_given_up_makes_room_for_another() {
    let scene = Scene::with(settings(), guards(1), [down(), Step::Hang, says(ALLOW)]);
    fail(&scene, 1).await;
    advance(Duration::from_secs(1)).await;
    let probe = asking(&scene, "ana");
    settle().await;
    probe.abort();
    settle().await;
    assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
    assert_eq!(scene.webhook.health().breaker, BreakerState::Closed);
}

/// A single answer in between is enough, whatever it says.
#[tokio::test(start_paused = true)]
async fn a_webhook_that_lives_is_never_left_alone() {
    let broken = Step::Reply(Reply { status: 200, ..Reply::default() });
    for alive in [says(ALLOW), code(404), says("nonsense"), code(302), broken] {
        let script = [down(), down(), alive, down(), down(), down()];
        let scene = Scene::with(settings(), guards(3), script);
        for n in 0..5 {
            let _ = scene.ask_as(&format!("user{n}")).await;
        }
        assert_eq!(scene.webhook.health().breaker, BreakerState::Closed);
        let _ = scene.ask_as("user5").await;
        assert_eq!(scene.webhook.health().breaker, BreakerState::Open);
        assert_eq!(scene.tally.n("rejected breaker_open"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_counts_as_dead() {
    let timeout = Step::After(Duration::from_secs(60), Reply::default());
    for dead in [timeout, Step::Hang, code(500), code(503), code(429), code(504), down()] {
        let scene = Scene::with(settings(), guards(1), [dead]);
        fail(&scene, 1).await;
        assert_eq!(scene.webhook.health().breaker, BreakerState::Open);
    }
    // Retries belong to their call.
    let scene = Scene::with(settings(), guards(1), [code(500), code(500), says(ALLOW)]);
    assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
    assert_eq!(scene.webhook.health().breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn guards_can_be_disabled() {
    let scene = Scene::with(settings(), Guards::disabled(), [down()]);
    fail(&scene, 100).await;
    assert_eq!((scene.peer.n_calls(), scene.tally.n("rejected breaker_open")), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_limited() {
    let told = Arc::new(Semaphore::new(0));
    let answer = Step::WhenTold(Arc::clone(&told), reply(200, ALLOW));
    let limited = Guards { in_flight_max: 2, ..Guards::default() };
    let scene = Scene::with(settings(), limited, [answer]);
    let in_flight = [asking(&scene, "a"), asking(&scene, "b")];
    settle().await;
    let want = "noOpinion [] ! webhook was not called: 2 calls are in flight";
    assert_eq!(line(&scene.ask_as("c").await), want);
    assert_eq!(scene.tally.n("rejected too_many_in_flight"), 1);
    assert_eq!(scene.tally.n("fail-open error"), 1);
    // Waiting for a call that is made anyway takes no seat.
    let joined = asking(&scene, "a");
    settle().await;
    told.add_permits(3);
    for answer in in_flight.into_iter().chain([joined]) {
        assert_eq!(line(&answer.await.unwrap()), "allow [yes]");
    }
    assert_eq!(line(&scene.ask_as("c").await), "allow [yes]", "a refusal is not kept");
    assert_eq!(scene.webhook.health().breaker, BreakerState::Closed, "and no sign of death");
}

#[tokio::test(start_paused = true)]
async fn health_tells_the_latest_ends() {
    let scene = Scene::new([says(ALLOW), code(404)]);
    let fresh = scene.webhook.health();
    assert!(fresh.last_success.is_none() && fresh.last_failure.is_none());
    let _ = scene.ask_as("ana").await;
    let _ = scene.ask_as("bob").await;
    let health = scene.webhook.health();
    assert!(health.last_success.is_some());
    let message = "the server could not find the requested resource";
    assert_eq!(health.last_failure.unwrap().message, message);
    assert_eq!((health.cache_entries, health.in_flight), (1, 0));
}
