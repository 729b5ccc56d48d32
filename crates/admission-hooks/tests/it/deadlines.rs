//! How long hooks may take.

use std::time::{Duration, Instant};

use admission_hooks::{Fate, Verdict};
use scripted::{Answer, Conduct, Script};
use serde_json::Value;

use crate::fixture::{Scene, allow, answer_to, hook, peer, says, with};

const LIMIT: Duration = Duration::from_millis(300);

fn ignored(hook: Value) -> Value {
    with(hook, "failurePolicy", "Ignore")
}

#[tokio::test]
async fn hooks_are_told_the_time_that_they_have() {
    // T-112
    let peer = peer(says(allow()));
    let hooks = [20, 5, 20].map(|seconds| with(hook("m.x.y", &peer), "timeoutSeconds", seconds));
    let mut scene = Scene::new()
        .mutating("a", hooks.to_vec())
        .validating("b", vec![with(hook("v.x.y", &peer), "timeoutSeconds", 20)]);
    scene.limit = Duration::from_secs(10);
    scene.allowed().await;
    let targets: Vec<_> = peer.requests().into_iter().map(|it| it.target).collect();
    let [ten, five] = ["/admit?timeout=10s", "/admit?timeout=5s"];
    assert_eq!(targets, [ten, five, ten, ten]);
}

#[tokio::test]
async fn the_end_of_the_request_is_its_end_whatever_the_policy() {
    // T-114
    let (hanging, later) = (peer(Answer::misbehave(Conduct::Hang)), peer(says(allow())));
    for policy in ["Ignore", "Fail"] {
        let first = with(hook("m.x.y", &hanging), "failurePolicy", policy);
        let mut scene = Scene::new().mutating("a", vec![first, ignored(hook("n.x.y", &later))]);
        scene.limit = LIMIT;
        let (refusal, _) = scene.refused().await;
        assert_eq!((refusal.code, refusal.reason.as_str()), (504, "Timeout"));
        let want = "Timeout: request did not complete within requested timeout";
        assert_eq!(refusal.message, want);

        let first = with(hook("v.x.y", &hanging), "failurePolicy", policy);
        let mut scene = Scene::new().validating("a", vec![first]);
        scene.limit = LIMIT;
        assert_eq!(scene.complaint().await, want);
    }
    assert_eq!(later.n_requests(), 0);

    // A request whose time is over calls nobody.
    let hooks = vec![hook("v.x.y", &later)];
    let mut scene = Scene::new().validating("a", hooks.clone());
    scene.limit = Duration::ZERO;
    assert_eq!(scene.refused().await.0.code, 504);
    let mut scene = Scene::new().mutating("a", hooks);
    scene.limit = Duration::ZERO;
    assert_eq!(scene.refused().await.0.code, 504);
    assert_eq!(later.n_requests(), 0);
}

#[tokio::test]
async fn a_hook_that_takes_too_long_is_a_failed_call() {
    // T-115
    let hanging = peer(Answer::misbehave(Conduct::Hang));
    let slow = with(ignored(hook("m.x.y", &hanging)), "timeoutSeconds", 1);
    let scene = Scene::new().mutating("a", vec![slow]);
    let began = Instant::now();
    let (_, notes) = scene.allowed().await;
    assert!((1..5).contains(&began.elapsed().as_secs()));
    let Fate::Called { verdict: Verdict::FailOpen(cause), .. } = &notes.events[0].fate else {
        panic!("{notes:?}")
    };
    assert!(cause.contains("context deadline exceeded"), "{cause}");
}

#[tokio::test]
async fn hooks_that_may_be_ignored_do_not_use_up_the_time_of_the_request() {
    let hanging = peer(Answer::misbehave(Conduct::Hang));
    let (last, judge) = (peer(says(allow())), peer(says(allow())));
    let hooks = ["a.x.y", "b.x.y", "c.x.y"].map(|name| ignored(hook(name, &hanging)));
    let mut hooks = hooks.to_vec();
    hooks.push(hook("d.x.y", &last));
    let mut scene = Scene::new()
        .mutating("a", hooks)
        .validating("b", vec![ignored(hook("v.x.y", &judge)), hook("w.x.y", &judge)]);
    scene.ignorable = Some(LIMIT);
    let (_, notes) = scene.allowed().await;
    // The first takes all the time that there is for those; the others are not even called.
    assert_eq!((hanging.n_requests(), last.n_requests(), judge.n_requests()), (1, 1, 1));
    let n_open = notes
        .events
        .iter()
        .filter(|event| matches!(&event.fate, Fate::Called { verdict: Verdict::FailOpen(_), .. }));
    assert_eq!(n_open.count(), 4);
}

#[tokio::test]
async fn ignorable_hooks_that_are_asked_at_once_wait_at_once() {
    let slow = Script::rule(|request| answer_to(request, allow()).delay(LIMIT / 2));
    let slow = peer(slow);
    let hooks = ["a.x.y", "b.x.y", "c.x.y"].map(|name| ignored(hook(name, &slow)));
    let mut scene = Scene::new().validating("a", hooks.to_vec());
    scene.ignorable = Some(10 * LIMIT);
    let (_, notes) = scene.allowed().await;
    assert!(notes.annotations.is_empty(), "{notes:?}");
}
