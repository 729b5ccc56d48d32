//! One user against the decisions that others get, by way of admission hooks: attacks A4, A5 and A6.

use std::time::Duration;

use fake_http::{Answer, Conduct, Request, Script};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::admission::{Scene, create, map};
use crate::admission_hooks::{MUTATING, VALIDATING, answer, asked};
use crate::client::Client;

/// A hook that denies what is called `forbidden`, and that mallory can make fail in many ways.
fn guard(request: &Request) -> Answer {
    let name = asked(request)["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let allowed = name != "forbidden";
    let honest = answer(request, &json!({ "allowed": allowed }));
    match name.rsplit('-').next() {
        Some("error") => Answer::json("{}").status(500),
        Some("nonsense") => Answer::json("nonsense"),
        Some("close") => Answer::misbehave(Conduct::Close),
        Some("reset") => Answer::misbehave(Conduct::Reset),
        Some("hang") => Answer::misbehave(Conduct::Hang),
        Some("slow") => honest.delay(Duration::from_millis(300)),
        _ => honest,
    }
}

/// The decisions of an idle server.
async fn expect_decisions(victim: &Client, context: &str) {
    let reply = create(victim, "dryRun=All", &map("forbidden")).await;
    assert_eq!(reply.code, 400, "{context}: {}", reply.text());
    let reply = create(victim, "dryRun=All", &map("harmless")).await;
    assert_eq!(reply.code, 201, "{context}: {}", reply.text());
}

/// Mallory's requests, all at the same time.
async fn attack(mallory: &Client, query: &'static str, objects: Vec<Value>) -> Vec<u16> {
    let mut requests = JoinSet::new();
    for object in objects {
        let mallory = mallory.clone();
        requests.spawn(async move { create(&mallory, query, &object).await.code });
    }
    requests.join_all().await
}

/// A4: 20 requests that make a hook fail in each way, then another user asks for what it denies.
#[tokio::test(flavor = "multi_thread")]
async fn a4_failures_that_one_user_provokes_concern_nobody_else() {
    let scene = Scene::start(|_| {}).await;
    let (mallory, victim) = (scene.user("mallory"), scene.user("victim"));
    let hook = scene.hook(Script::rule(guard));
    for kind in [MUTATING, VALIDATING] {
        for (policy, failed) in [("Ignore", 201), ("Fail", 500)] {
            scene.configure(kind, &[scene.webhook("h.x.y", &hook, policy, 1)]).await;
            for way in ["error", "nonsense", "close", "reset", "hang"] {
                let objects = (0..20).map(|n| map(&format!("m-{n}-{way}"))).collect();
                let codes = attack(&mallory, "dryRun=All", objects).await;
                assert!(
                    codes.iter().all(|code| *code == failed),
                    "{kind} {policy} {way} {codes:?}"
                );
                expect_decisions(&victim, &format!("{kind}, {policy}, {way}")).await;
            }
        }
    }
}

/// A5: deadlines that are too short for the hook, then another user asks for what it denies.
#[tokio::test(flavor = "multi_thread")]
async fn a5_deadlines_of_one_user_concern_nobody_else() {
    let scene = Scene::start(|_| {}).await;
    let (mallory, victim) = (scene.user("mallory"), scene.user("victim"));
    let hook = scene.hook(Script::rule(guard));
    for kind in [MUTATING, VALIDATING] {
        for policy in ["Ignore", "Fail"] {
            scene.configure(kind, &[scene.webhook("h.x.y", &hook, policy, 10)]).await;
            for query in ["timeout=15ms", "dryRun=All&timeout=15ms"] {
                let objects = (0..30).map(|n| map(&format!("m-{n}-slow"))).collect();
                let codes = attack(&mallory, query, objects).await;
                assert!(codes.iter().all(|code| *code == 504), "{kind} {policy} {query} {codes:?}");
                expect_decisions(&victim, &format!("{kind}, {policy}, {query}")).await;
            }
        }
    }
}

/// A5: a hook that gives up in time for what it is told must not be told the deadline of the caller, or
/// the caller could make it fail.
#[tokio::test(flavor = "multi_thread")]
async fn a5_a_hook_is_not_told_the_deadline_of_the_caller() {
    let scene = Scene::start(|_| {}).await;
    let mallory = scene.user("mallory");
    let hook = scene.hook(Script::rule(|request| match request.target.ends_with("timeout=10s") {
        true => answer(request, &json!({"allowed": false})),
        false => Answer::json("{}").status(503),
    }));
    for kind in [MUTATING, VALIDATING] {
        scene.configure(kind, &[scene.webhook("h.x.y", &hook, "Ignore", 10)]).await;
        for query in ["timeout=1s", "timeout=5s", "dryRun=All&timeout=2s"] {
            let reply = create(&mallory, query, &map("forbidden")).await;
            assert!(matches!(reply.code, 400 | 504), "{kind} {query}: {}", reply.text());
        }
    }
}

/// A6: hooks that hang stand before one that denies. With the usual 10 seconds each they would take 30;
/// `admission-hooks` tests that with a clock of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a6_hanging_hooks_leave_no_other_hook_unasked() {
    let scene = Scene::start(|_| {}).await;
    let (mallory, victim) = (scene.user("mallory"), scene.user("victim"));
    let hanging = scene.hook(Answer::misbehave(Conduct::Hang));
    let healthy = scene.hook(Script::rule(guard));
    for kind in [MUTATING, VALIDATING] {
        let mut hooks: Vec<Value> = ["a.x.y", "b.x.y", "c.x.y"]
            .into_iter()
            .map(|name| scene.webhook(name, &hanging, "Ignore", 1))
            .collect();
        hooks.push(scene.webhook("d.x.y", &healthy, "Ignore", 1));
        scene.configure(kind, &hooks).await;
        let forbidden = (0..5).map(|_| map("forbidden")).collect();
        assert_eq!(attack(&mallory, "dryRun=All", forbidden).await, [400; 5], "{kind}");
        // The deadline ends before the hooks do: nobody passes because of that.
        let forbidden = (0..5).map(|_| map("forbidden")).collect();
        assert_eq!(attack(&mallory, "timeout=500ms", forbidden).await, [504; 5], "{kind}");
        expect_decisions(&victim, kind).await;
    }
}
