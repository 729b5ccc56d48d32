//! The timeouts of hooks.

use std::time::{Duration, Instant};

use fake_http::{Answer, Conduct, Peer, Script};
use serde_json::json;

use super::Scene;
use crate::admission_hooks::{MUTATING, VALIDATING, allow, answer};

const SECOND: Duration = Duration::from_secs(1);

fn slow(delay: Duration) -> Script {
    Script::rule(move |request| answer(request, &json!({"allowed": true})).delay(delay))
}

/// The timeout that a hook received.
fn timeouts(peer: &Peer) -> Vec<String> {
    let target =
        |request: fake_http::Request| request.target.rsplit('?').next().unwrap().to_owned();
    peer.take_requests().into_iter().map(target).collect()
}

/// The hook is not told the remaining time of the request: a caller could make a hook fail with it.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_told_their_own_time() {
    let scene = Scene::start().await;
    for kind in [MUTATING, VALIDATING] {
        let (a, b) = (scene.hook(allow()), scene.hook(allow()));
        let webhooks = [
            scene.webhook("a.x.y", &a, json!({"timeoutSeconds": 20})),
            scene.webhook("b.x.y", &b, json!({"timeoutSeconds": 5})),
        ];
        scene.configure(kind, &webhooks).await;
        scene.create("dryRun=All&timeout=10s").await.expect(201);
        assert_eq!(
            (timeouts(&a), timeouts(&b)),
            (vec!["timeout=20s".into()], vec!["timeout=5s".into()])
        );
        scene.create("dryRun=All").await.expect(201);
        assert_eq!(
            (timeouts(&a), timeouts(&b)),
            (vec!["timeout=20s".into()], vec!["timeout=5s".into()])
        );
        scene.admin.delete(&format!("{kind}/c")).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mutating_hooks_use_up_the_time_of_the_request() {
    let scene = Scene::start().await;
    let hooks = [scene.hook(slow(SECOND)), scene.hook(slow(SECOND)), scene.hook(slow(SECOND))];
    let webhooks: Vec<_> = (hooks.iter().zip([20, 5, 20]).enumerate())
        .map(|(idx, (hook, seconds))| {
            scene.webhook(&format!("h{idx}.x.y"), hook, json!({"timeoutSeconds": seconds}))
        })
        .collect();
    scene.configure(MUTATING, &webhooks).await;
    let validating = scene.hook(allow());
    scene.ask(VALIDATING, &validating, json!({"timeoutSeconds": 20})).await;
    scene.create("dryRun=All&timeout=10s").await.expect(201);
    let told: Vec<String> = hooks.iter().chain([&validating]).flat_map(timeouts).collect();
    assert_eq!(told, ["timeout=20s", "timeout=5s", "timeout=20s", "timeout=20s"]);
    scene.create("dryRun=All&timeout=2500ms").await.expect(504);
    assert_eq!(timeouts(&validating), [""; 0]);
}

/// The request ends at its deadline, whatever the failure policies are.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_ends_when_its_time_is_over() {
    let scene = Scene::start().await;
    for kind in [MUTATING, VALIDATING] {
        let hanging = scene.hook(Answer::misbehave(Conduct::Hang));
        let later = scene.hook(allow());
        let changes = json!({"failurePolicy": "Ignore", "timeoutSeconds": 30});
        let webhooks = [
            scene.webhook("a.x.y", &hanging, changes.clone()),
            scene.webhook("b.x.y", &later, changes),
        ];
        scene.configure(kind, &webhooks).await;
        let begun = Instant::now();
        let status = scene.create("timeout=1s").await.expect(504);
        let took = begun.elapsed();
        assert!(took >= SECOND && took < 10 * SECOND, "{took:?}");
        assert_eq!(status["reason"], "Timeout");
        assert_eq!(status["message"], "Timeout: request did not complete within requested timeout");
        assert_eq!(hanging.n_requests(), 1);
        if kind == MUTATING {
            assert_eq!(later.n_requests(), 0, "later hooks are not called");
        }
        scene.admin.get(&format!("{}/m", super::MAPS)).await.expect(404);
        scene.admin.delete(&format!("{kind}/c")).await.expect(200);
    }
}

/// A hook delays a request for its own timeout at most, whatever its failure policy.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_ends_when_its_time_is_over() {
    let scene = Scene::start().await;
    for kind in [MUTATING, VALIDATING] {
        let hook = scene.hook(Answer::misbehave(Conduct::Hang));
        for (policy, code) in [("Ignore", 201), ("Fail", 500)] {
            scene.ask(kind, &hook, json!({"failurePolicy": policy, "timeoutSeconds": 1})).await;
            let begun = Instant::now();
            scene.create("dryRun=All&timeout=15s").await.expect(code);
            let took = begun.elapsed();
            assert!(took >= SECOND && took < 10 * SECOND, "{took:?}");
        }
        scene.admin.delete(&format!("{kind}/c")).await.expect(200);
    }
}
