//! The failure policy applies to failures of the webhook, and never to failures of this server. Time is
//! simulated.

use std::sync::Arc;
use std::time::Duration;

use authz::{Decision, TraceRecorder, UnavailableCause};
use authz_webhook::{HttpResponse, TransportErrorKind, WebhookLimits};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, yield_now};

use crate::peer::{
    ALLOW, DENY, Scene, Step, code, failing_closed, fault, line, named, pods, reply, says, settings,
};

/// Runs a check in a task of its own.
fn asking(scene: &Scene, name: &str, namespace: &str) -> JoinHandle<Decision> {
    let (webhook, user, namespace) =
        (Arc::clone(&scene.webhook), named(name), namespace.to_owned());
    tokio::spawn(async move {
        webhook
            .authorize(&pods(&user, &namespace), TraceRecorder::disabled_recorder())
            .await
            .decision
    })
}

async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

fn guards(in_flight_max: usize) -> WebhookLimits {
    WebhookLimits { in_flight_calls_max: in_flight_max, ..WebhookLimits::default() }
}

/// Both failure policies for every failure of a webhook, and the cause that is reported.
#[tokio::test(start_paused = true)]
async fn the_policy_applies_to_failures_of_the_webhook() {
    let too_late = Step::After(Duration::from_secs(60), HttpResponse::default());
    for (step, cause) in [
        (fault(TransportErrorKind::Connect, "refused"), "connect"),
        (fault(TransportErrorKind::Tls, "unknown authority"), "tls"),
        (fault(TransportErrorKind::Reset, "reset"), "connection_lost"),
        (fault(TransportErrorKind::Other, "EOF"), "connection_lost"),
        (fault(TransportErrorKind::Timeout, "late"), "timeout"),
        (too_late, "timeout"),
        (Step::Hang, "timeout"),
        (code(500), "http_status"),
        (code(404), "http_status"),
        (code(429), "http_status"),
        (code(504), "http_status"),
        (code(302), "http_status"),
        (says("nonsense"), "bad_answer"),
        (says(""), "bad_answer"),
        (fault(TransportErrorKind::TooLarge, "too large"), "bad_answer"),
    ] {
        let open = Scene::with(settings(), WebhookLimits::default(), [step.clone()]);
        let user = named("ana");
        let (answered, _) = open.explain(&pods(&user, "default")).await;
        assert_eq!(answered.decision.verdict.name(), "noOpinion", "{cause}");
        assert_eq!(answered.fail_open_cause.unwrap().name(), cause);
        assert_eq!(open.tally.n(&format!("fail-open by {cause}")), 1);
        let closed = Scene::with(failing_closed(), WebhookLimits::default(), [step]);
        let (answered, _) = closed.explain(&pods(&user, "default")).await;
        assert_eq!(answered.decision.verdict.name(), "deny", "{cause}");
        assert!(answered.fail_open_cause.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn no_policy_applies_to_failures_of_this_server() {
    let out_of_descriptors =
        fault(TransportErrorKind::Local(UnavailableCause::OutOfResources), "too many files");
    let throttled = fault(TransportErrorKind::Local(UnavailableCause::TooManyCalls), "throttled");
    for (step, in_flight_max, why) in [
        (out_of_descriptors, 2, UnavailableCause::OutOfResources),
        (throttled, 2, UnavailableCause::TooManyCalls),
        (Step::Panic, 2, UnavailableCause::OutOfResources),
        (says(ALLOW), 0, UnavailableCause::TooManyCalls),
    ] {
        for settings in [settings(), failing_closed()] {
            let scene = Scene::with(settings, guards(in_flight_max), [step.clone()]);
            let user = named("ana");
            let (answered, _) = scene.explain(&pods(&user, "default")).await;
            assert_eq!(answered.decision.verdict, authz::Verdict::Unavailable(why));
            assert!(answered.fail_open_cause.is_none() && answered.decision.error.is_some());
            assert!(!scene.tally.events().iter().any(|event| event.starts_with("fail-open")));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_limited() {
    let told = Arc::new(Semaphore::new(0));
    let answer = Step::WhenTold(Arc::clone(&told), reply(200, ALLOW));
    let scene = Scene::with(settings(), guards(2), [answer]);
    let in_flight = [asking(&scene, "a", "x"), asking(&scene, "b", "x")];
    settle().await;
    let want = "unavailable [] ! webhook was not called: 2 calls to the webhook are in flight, which is \
                the limit; try again later";
    assert_eq!(line(&scene.ask_as("c").await), want);
    assert_eq!(scene.tally.n("rejected too_many_in_flight"), 1);
    // A check that shares a call takes no permit.
    let joined = asking(&scene, "a", "x");
    settle().await;
    told.add_permits(3);
    for answer in in_flight.into_iter().chain([joined]) {
        assert_eq!(line(&answer.await.unwrap()), "allow [yes]");
    }
    assert_eq!(line(&scene.ask_as("c").await), "allow [yes]", "a refusal is not kept");
}

/// Attack A3 in small: one user has as many calls in flight as one user may have, and the webhook still
/// decides the requests of others.
#[tokio::test(start_paused = true)]
async fn one_user_has_at_most_half_of_the_calls_in_flight() {
    let slow = Step::After(Duration::from_secs(2), reply(200, DENY));
    let scene = Scene::with(settings(), guards(10), [slow]);
    let attacks: Vec<_> = (0..20).map(|n| asking(&scene, "eve", &format!("ns-{n}"))).collect();
    settle().await;
    assert_eq!(scene.webhook.health().n_in_flight_calls, 5);
    assert_eq!(scene.tally.n("rejected too_many_in_flight_of_user"), 15);
    assert_eq!(line(&scene.ask_as("ana").await), "deny [no]");
    let mut verdicts = Vec::new();
    for attack in attacks {
        verdicts.push(attack.await.unwrap().verdict.name());
    }
    assert_eq!(verdicts, [["deny"; 5].as_slice(), &["unavailable"; 15]].concat());
}

/// A review takes the permits of the user who posts it, not of the user it is about.
#[tokio::test(start_paused = true)]
async fn calls_count_for_the_caller() {
    let slow = Step::After(Duration::from_secs(2), reply(200, DENY));
    let scene = Scene::with(settings(), guards(4), [slow]);
    let reviews: Vec<_> = (0..4)
        .map(|n| {
            let (webhook, subject) = (Arc::clone(&scene.webhook), named("ana"));
            tokio::spawn(async move {
                let namespace = format!("ns-{n}");
                let asked = pods(&subject, &namespace);
                webhook
                    .authorize_for_caller("reviewer", &asked, TraceRecorder::disabled_recorder())
                    .await
                    .decision
            })
        })
        .collect();
    settle().await;
    assert_eq!(scene.webhook.health().n_in_flight_calls, 2);
    assert_eq!(line(&scene.ask_as("ana").await), "deny [no]");
    for review in reviews {
        let _ = review.await.unwrap();
    }
}

/// Attack A4 in small: failures of one user's calls change nothing for another user.
#[tokio::test(start_paused = true)]
async fn failures_leave_no_state_behind() {
    for step in [code(500), Step::Hang, says("nonsense"), fault(TransportErrorKind::Reset, "reset")]
    {
        let script = std::iter::repeat_n(step, 20).chain([says(DENY)]);
        let scene = Scene::with(settings(), WebhookLimits::default(), script);
        let mut n_asked = 0;
        while scene.peer.n_calls() < 20 {
            let user = named("eve");
            let decision = scene.ask(&pods(&user, &format!("ns-{n_asked}"))).await;
            n_asked += 1;
            if scene.peer.n_calls() < 20 {
                assert_eq!(decision.verdict.name(), "noOpinion");
            }
        }
        assert_eq!(line(&scene.ask_as("ana").await), "deny [no]");
    }
}

#[tokio::test(start_paused = true)]
async fn health_tells_the_latest_ends() {
    let scene = Scene::new([says(ALLOW), code(404)]);
    let fresh = scene.webhook.health();
    assert!(fresh.last_successful_call_at.is_none() && fresh.last_failed_call.is_none());
    let _ = scene.ask_as("ana").await;
    let _ = scene.ask_as("bob").await;
    let health = scene.webhook.health();
    assert!(health.last_successful_call_at.is_some());
    let message = "the server could not find the requested resource";
    assert_eq!(health.last_failed_call.unwrap().message, message);
    assert_eq!((health.n_cached_answers, health.n_in_flight_calls), (1, 0));
}
