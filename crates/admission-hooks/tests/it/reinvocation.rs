//! Which mutating hooks are called twice.

use admission_hooks::{HookOutcome, SkipReason};
use serde_json::{Value, json};

use crate::fixture::{Scene, allow, answers, hook, label, label_of, peer, review, says, with};

fn if_needed(hook: Value) -> Value {
    with(hook, "reinvocationPolicy", "IfNeeded")
}

#[tokio::test]
async fn a_hook_is_not_called_again_for_its_own_change() {
    let a = peer(says(label("a", "1")));
    Scene::new().mutating("c", vec![if_needed(hook("a.x.y", &a))]).allowed().await;
    assert_eq!(a.n_requests(), 1);

    let (a, b) = (peer(says(allow())), peer(says(label("b", "1"))));
    let hooks = vec![if_needed(hook("a.x.y", &a)), if_needed(hook("b.x.y", &b))];
    let (_, notes) = Scene::new().mutating("c", hooks).allowed().await;
    assert_eq!((a.n_requests(), b.n_requests()), (2, 1));
    assert_eq!(review(&a.requests()[1])["request"]["object"]["metadata"]["labels"]["b"], "1");
    let uids: Vec<_> = a.requests().iter().map(|it| review(it)["request"]["uid"].clone()).collect();
    assert_ne!(uids[0], uids[1]);
    let skipped = notes
        .hook_events
        .iter()
        .find(|event| event.hook_outcome == HookOutcome::Skipped(SkipReason::NotAgain));
    assert_eq!(skipped.map(|event| (event.round, event.webhook_name.as_str())), Some((1, "b.x.y")));
}

#[tokio::test]
async fn two_hooks_that_disagree_are_called_twice_and_no_more() {
    for (policy, n_calls) in [("IfNeeded", 2), ("Never", 1)] {
        let (a, b) = (peer(says(label("x", "true"))), peer(says(label("x", "false"))));
        let hooks = [("a.x.y", &a), ("b.x.y", &b)]
            .map(|(name, peer)| with(hook(name, peer), "reinvocationPolicy", policy));
        let (object, _) = Scene::new().mutating("c", hooks.to_vec()).allowed().await;
        assert_eq!((a.n_requests(), b.n_requests()), (n_calls, n_calls));
        assert_eq!(label_of(&object, "x"), Some("false"));
    }
}

#[tokio::test]
async fn a_hook_that_was_skipped_is_not_called_later() {
    let (a, b) = (peer(says(allow())), peer(says(label("b", "1"))));
    let selecting =
        with(if_needed(hook("a.x.y", &a)), "objectSelector", json!({"matchLabels": {"b": "1"}}));
    Scene::new().mutating("c", vec![selecting, if_needed(hook("b.x.y", &b))]).allowed().await;
    assert_eq!((a.n_requests(), b.n_requests()), (0, 1));
}

#[tokio::test]
async fn a_change_of_a_built_in_mutator_calls_hooks_again() {
    // Only the last hook changes something, so that only built-ins can call it again.
    for (does_change, n_calls) in [(false, 1), (true, 2)] {
        let a = peer(answers(vec![label("a", "1"), allow()]));
        let scene = Scene::new().mutating("c", vec![if_needed(hook("a.x.y", &a))]);
        let snapshot = scene.snapshot();
        let connections = scene.connections(&snapshot);
        let asking = scene.asking(&snapshot, &connections);
        let mut session = scene.session();
        let mut object =
            session.call_mutating_hooks(&asking, scene.object.clone()).await.unwrap().unwrap();
        assert!(session.needs_another_round());
        if does_change {
            object.insert("builtIn".to_owned(), true.into());
        }
        session.call_mutating_hooks(&asking, Some(object)).await.unwrap();
        assert!(!session.needs_another_round());
        assert_eq!(a.n_requests(), n_calls);
    }
}

#[tokio::test]
async fn a_built_in_can_refuse_what_a_hook_has_set() {
    // The mutating phase runs again with the built-ins before the hooks.
    let a = peer(says(label("forbidden", "1")));
    let scene = Scene::new().mutating("c", vec![hook("a.x.y", &a)]);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    let mut session = scene.session();
    let mut object = scene.object.clone();
    let mut n_rounds = 0;
    loop {
        n_rounds += 1;
        if label_of(object.as_ref().unwrap(), "forbidden").is_some() {
            break;
        }
        object = session.call_mutating_hooks(&asking, object).await.unwrap();
        assert!(session.needs_another_round());
    }
    assert_eq!(n_rounds, 2);
}
