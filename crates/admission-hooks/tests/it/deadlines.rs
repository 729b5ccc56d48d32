//! How long hooks may take.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use admission_hooks::{CallVerdict, HookFailureCause, HookOutcome, HookRefusal};
use fake_http::{Answer, Conduct};
use serde_json::Value;

use crate::fixture::{Scene, allow, deny, hook, label, label_of, peer, says, until, with};

const LIMIT: Duration = Duration::from_millis(300);

fn ignored(hook: Value) -> Value {
    with(hook, "failurePolicy", "Ignore")
}

#[tokio::test]
async fn hooks_are_told_their_own_time() {
    // Not what the request has left, for a hook that gives up in time for that would fail
    // because of the caller.
    let peer = peer(says(allow()));
    let hooks = [20, 5, 20].map(|seconds| with(hook("m.x.y", &peer), "timeoutSeconds", seconds));
    let mut scene = Scene::new()
        .mutating("a", hooks.to_vec())
        .validating("b", vec![with(hook("v.x.y", &peer), "timeoutSeconds", 20)]);
    scene.limit = Duration::from_secs(10);
    scene.allowed().await;
    let targets: Vec<_> = peer.requests().into_iter().map(|it| it.target).collect();
    let [twenty, five] = ["/admit?timeout=20s", "/admit?timeout=5s"];
    assert_eq!(targets, [twenty, five, twenty, twenty]);
}

#[tokio::test]
async fn the_end_of_the_request_is_its_end_whatever_the_policy() {
    let (hanging, later) = (peer(Answer::misbehave(Conduct::Hang)), peer(says(allow())));
    for policy in ["Ignore", "Fail"] {
        let first = with(hook("m.x.y", &hanging), "failurePolicy", policy);
        let mut scene = Scene::new().mutating("a", vec![first, ignored(hook("n.x.y", &later))]);
        scene.limit = LIMIT;
        let (refusal, _) = scene.refused().await;
        assert_eq!(refusal, HookRefusal::DeadlineExceeded);
        let want = "Timeout: request did not complete within requested timeout";
        assert_eq!(refusal.to_string(), want);

        let first = with(hook("v.x.y", &hanging), "failurePolicy", policy);
        let mut scene = Scene::new().validating("a", vec![first]);
        scene.limit = LIMIT;
        assert_eq!(scene.complaint().await, want);
    }
    assert_eq!(later.n_requests(), 0);

    // A request whose deadline has passed calls no hook.
    let hooks = vec![hook("v.x.y", &later)];
    let mut scene = Scene::new().validating("a", hooks.clone());
    scene.limit = Duration::ZERO;
    assert_eq!(scene.refused().await.0, HookRefusal::DeadlineExceeded);
    let mut scene = Scene::new().mutating("a", hooks);
    scene.limit = Duration::ZERO;
    assert_eq!(scene.refused().await.0, HookRefusal::DeadlineExceeded);
    assert_eq!(later.n_requests(), 0);
}

#[tokio::test]
async fn a_hook_that_takes_too_long_is_a_failed_call() {
    let hanging = peer(Answer::misbehave(Conduct::Hang));
    let slow = with(ignored(hook("m.x.y", &hanging)), "timeoutSeconds", 1);
    let scene = Scene::new().mutating("a", vec![slow]);
    let began = Instant::now();
    let (_, notes) = scene.allowed().await;
    assert!((1..5).contains(&began.elapsed().as_secs()));
    let HookOutcome::Called { verdict: CallVerdict::FailOpen { cause, message }, .. } =
        &notes.hook_events[0].hook_outcome
    else {
        panic!("{notes:?}")
    };
    assert_eq!(*cause, HookFailureCause::Timeout);
    assert!(message.contains("context deadline exceeded"), "{message}");
}

/// Attack A6: hooks that hang must not leave a hook unasked that denies, however long they take together.
/// The clock stands still but for what the test says.
#[tokio::test(start_paused = true)]
async fn hanging_hooks_that_may_be_ignored_leave_no_other_hook_unasked() {
    let hanging = peer(Answer::misbehave(Conduct::Hang));
    let judge = peer(says(deny("no")));
    let mut hooks = ["a.x.y", "b.x.y", "c.x.y"].map(|name| ignored(hook(name, &hanging))).to_vec();
    hooks.push(ignored(hook("d.x.y", &judge)));
    let mut scene = Scene::new().mutating("a", hooks);
    let (release, held) = std::sync::mpsc::channel::<()>();
    // Time does not pass by itself while there is such a task.
    let _clock = tokio::task::spawn_blocking(move || held.recv().is_ok());
    for (seconds, waits, is_denied) in [(34, &[10, 10, 10][..], true), (25, &[10, 10, 5], false)] {
        scene.limit = Duration::from_secs(seconds);
        let n_before = hanging.n_requests();
        let (n_judged, refused) = (judge.n_requests(), scene.refused());
        let clock = async {
            for (n, wait) in waits.iter().enumerate() {
                while hanging.n_requests() <= n_before + n {
                    std::thread::yield_now();
                    tokio::task::yield_now().await;
                }
                tokio::time::advance(Duration::from_secs(*wait)).await;
            }
        };
        let ((refusal, _), ()) = tokio::join!(refused, clock);
        match is_denied {
            true => assert!(matches!(refusal, HookRefusal::Denied(_)), "{refusal}"),
            false => assert_eq!(refusal, HookRefusal::DeadlineExceeded),
        }
        assert_eq!(judge.n_requests() - n_judged, usize::from(is_denied));
    }
    drop(release);
}

/// A large write is not polled while it waits for its turn. The hook answers at once, so
/// this wait must not count against the timeout of the hook.
#[tokio::test]
async fn a_request_that_waits_for_its_turn_makes_no_hook_late() {
    let (judge, peer) = (peer(says(allow())), peer(says(label("a", "b"))));
    let prompt = |name| with(ignored(hook(name, &peer)), "timeoutSeconds", 1);
    let mut scene = Scene::new()
        .mutating("a", vec![prompt("m.x.y"), prompt("n.x.y")])
        .validating("b", vec![with(ignored(hook("v.x.y", &judge)), "timeoutSeconds", 1)]);
    scene.limit = Duration::from_secs(600);
    let mut request = pin!(scene.allowed());
    let mut n_polls = 0;
    let (object, notes) = loop {
        let polled = poll_once(request.as_mut());
        n_polls += 1;
        let woken = match polled {
            (Poll::Ready(done), _) => break done,
            (Poll::Pending, woken) => woken,
        };
        until(|| woken.load(Ordering::Acquire)).await;
        // The request waits for its turn.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(5)).await;
        tokio::time::resume();
    };
    assert!(n_polls > 2, "{n_polls}");
    assert_eq!(label_of(&object, "a"), Some("b"));
    let failed = notes.hook_events.iter().find(|event| {
        let outcome = &event.hook_outcome;
        matches!(outcome, HookOutcome::Called { verdict: CallVerdict::FailOpen { .. }, .. })
    });
    assert!(failed.is_none(), "{failed:?}");
    assert_eq!((peer.n_requests(), judge.n_requests()), (2, 1));
}

/// Polls a future, and returns a flag that is set when the future can go on.
fn poll_once<F: Future>(future: Pin<&mut F>) -> (Poll<F::Output>, Arc<AtomicBool>) {
    struct Flag(Arc<AtomicBool>);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }
    let woken = Arc::new(AtomicBool::new(false));
    let waker = Waker::from(Arc::new(Flag(Arc::clone(&woken))));
    (future.poll(&mut Context::from_waker(&waker)), woken)
}
