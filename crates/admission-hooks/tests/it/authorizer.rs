//! Match conditions that ask the authorizer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use admission::HookSelectionError;
use admission_hooks::{HookOutcome, HookRefusal, SkipReason};
use authz::{
    Attributes, Authorizer, Decision, DecisionFuture, EvaluationErrors, TraceRecorder, User,
};
use serde_json::{Value, json};

use crate::fixture::{Scene, allow, hook, label, peer, says, with};

/// Allows what is asked of `admin`, fails when the verb is `fail`, and never answers `hang`. SessionReport
/// who asked with which verb for which path or name.
#[derive(Clone, Default)]
struct Clerk {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Clerk {
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Authorizer for Clerk {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        _: TraceRecorder<'a>,
    ) -> DecisionFuture<'a> {
        let user = attributes.user.map_or("nobody", |user| user.name.as_str());
        let target = attributes.resource().map_or(attributes.path(), |resource| resource.name);
        self.asked.lock().unwrap().push(format!("{user} {} {target}", attributes.verb));
        Box::pin(async move {
            // An authorizer may have to wait for another server.
            tokio::task::yield_now().await;
            match (attributes.verb.as_str(), user) {
                ("hang", _) => std::future::pending().await,
                ("fail", _) => {
                    Decision::no_opinion("").with_error(EvaluationErrors::message("down"))
                }
                (_, "admin") => Decision::allow("admins may"),
                _ => Decision::no_opinion("who are you?"),
            }
        })
    }
}

fn conditioned(hook: Value, expressions: &[&str]) -> Value {
    let conditions = expressions.iter().enumerate();
    let conditions: Vec<Value> = conditions
        .map(|(idx, expression)| json!({"name": format!("c{idx}"), "expression": expression}))
        .collect();
    with(hook, "matchConditions", conditions)
}

fn asking(clerk: &Clerk, user: &str) -> Scene {
    let mut scene = Scene::new();
    scene.authorizer = Some(Box::new(clerk.clone()));
    scene.user = Some(User { name: user.to_owned(), ..User::default() });
    scene
}

const BREAK_GLASS: &str = "!authorizer.requestResource.check('breakglass').allowed()";

#[tokio::test]
async fn t081_whoever_may_break_the_glass_passes_by() {
    let peer = peer(says(allow()));
    let hooks = || vec![conditioned(hook("h.x.y", &peer), &[BREAK_GLASS])];
    let clerk = Clerk::default();
    for (user, n_calls) in [("admin", 0), ("ana", 2)] {
        let scene = asking(&clerk, user).mutating("m", hooks()).validating("v", hooks());
        let (_, notes) = scene.allowed().await;
        assert_eq!(peer.n_requests(), n_calls, "{user}");
        // Once for both phases.
        assert_eq!(clerk.asked(), [format!("{user} breakglass w")]);
        for event in notes.hook_events {
            let is_skipped = matches!(
                &event.hook_outcome,
                HookOutcome::Skipped(SkipReason::Condition(name)) if name == "c0"
            );
            assert_eq!(is_skipped, n_calls == 0, "{event:?}");
        }
    }
}

/// Servers answer requests on many threads.
#[test]
fn a_request_that_waits_for_the_authorizer_can_move_between_threads() {
    fn check(_: impl Send) {}
    let scene = asking(&Clerk::default(), "ana");
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    check(crate::fixture::admit(scene.session(), &asking));
}

#[tokio::test]
async fn a_question_about_what_a_hook_has_changed_is_another_one() {
    let (first, second) = (peer(says(label("app", "other"))), peer(says(allow())));
    let check = "authorizer.path('/' + object.metadata.labels.app).check('get').allowed()";
    let hooks = [("a.x.y", &first), ("b.x.y", &second)]
        .map(|(name, peer)| conditioned(hook(name, peer), &[check]));
    let clerk = Clerk::default();
    asking(&clerk, "admin").mutating("m", hooks.to_vec()).allowed().await;
    assert_eq!(clerk.asked(), ["admin get /w", "admin get /other"]);
    assert_eq!((first.n_requests(), second.n_requests()), (1, 1));
}

#[tokio::test]
async fn an_authorizer_that_fails_allows_nothing() {
    let peer = peer(says(allow()));
    let clerk = Clerk::default();
    let called = |expression: &'static str| {
        let hooks = vec![conditioned(hook("h.x.y", &peer), &[expression])];
        let scene = asking(&clerk, "admin").validating("v", hooks);
        let before = peer.n_requests();
        let peer = &peer;
        async move {
            scene.allowed().await;
            peer.n_requests() > before
        }
    };
    assert!(!called("authorizer.path('/x').check('fail').allowed()").await);
    assert!(called("authorizer.path('/x').check('fail').errored()").await);
    assert!(called("authorizer.path('/x').check('fail').error() == 'down'").await);
    assert!(called("authorizer.path('/x').check('get').allowed()").await);
}

#[tokio::test]
async fn without_an_authorizer_the_failure_policy_decides() {
    let peer = peer(says(allow()));
    let hooks = |policy: &str| {
        vec![with(conditioned(hook("h.x.y", &peer), &[BREAK_GLASS]), "failurePolicy", policy)]
    };
    let (refusal, _) = Scene::new().validating("v", hooks("Fail")).refused().await;
    assert!(matches!(refusal, HookRefusal::Selection(HookSelectionError::ConditionsFailed { .. })));
    Scene::new().validating("v", hooks("Ignore")).allowed().await;
    assert_eq!(peer.n_requests(), 0);
}

#[tokio::test]
async fn an_authorizer_that_does_not_answer_ends_with_the_request() {
    let peer = peer(says(allow()));
    let hang = "authorizer.path('/x').check('hang').allowed()";
    let hooks =
        || vec![with(conditioned(hook("h.x.y", &peer), &[hang]), "failurePolicy", "Ignore")];
    for phase in [Scene::mutating, Scene::validating] {
        let mut scene = phase(asking(&Clerk::default(), "admin"), "c", hooks());
        scene.limit = Duration::from_millis(100);
        let (refusal, _) = scene.refused().await;
        assert_eq!(refusal, HookRefusal::DeadlineExceeded);
    }
    assert_eq!(peer.n_requests(), 0);
}

#[tokio::test]
async fn a_hook_asks_no_more_than_its_budget_allows() {
    let peer = peer(says(allow()));
    let checks: Vec<String> =
        (0..9).map(|n| format!("authorizer.path('/{n}').check('get').allowed()")).collect();
    let checks: Vec<&str> = checks.iter().map(String::as_str).collect();
    let clerk = Clerk::default();
    let hooks = vec![conditioned(hook("h.x.y", &peer), &checks)];
    let (refusal, _) = asking(&clerk, "admin").validating("v", hooks).refused().await;
    assert!(refusal.to_string().contains("running out of cost budget"), "{refusal}");
    assert_eq!(clerk.asked().len() as u64, admission::AUTHORIZER_CHECKS_MAX);
}

#[tokio::test]
async fn conditions_that_do_not_ask_leave_the_authorizer_alone() {
    let peer = peer(says(allow()));
    let clerk = Clerk::default();
    let plain =
        ["object.metadata.name == 'w'", "false && authorizer.path('/x').check('get').allowed()"];
    let hooks = vec![conditioned(hook("h.x.y", &peer), &plain)];
    asking(&clerk, "admin").validating("v", hooks).allowed().await;
    assert!(clerk.asked().is_empty());
}
