//! A configuration waits until its new webhooks answer one review.

use std::time::Duration;

use authz_reload::{FileCheckResult, ReloadOptions, ReloadStatus, sha256_hash};
use fake_http::{Answer, Authority};

use crate::hook::RunningHook;
use crate::stage::{NEVER, Stage, with_webhook};

fn checking() -> ReloadOptions {
    ReloadOptions { poll_interval: NEVER, watches_files: false, checks_webhook_health: true }
}

#[tokio::test]
async fn a_configuration_waits_for_its_webhooks() {
    let stage = Stage::new();
    let (old, new) = (RunningHook::start(&stage, "old"), RunningHook::start(&stage, "new"));
    stage.write("config", &with_webhook("w", &old.path(&stage)));
    let reloader = stage.start_reloader("config", checking());
    new.peer.stop_listening().unwrap();
    stage.write("config", &with_webhook("w", &new.path(&stage)));
    for _ in 0..2 {
        let FileCheckResult::Failed(message) = reloader.check_files_now().await else {
            panic!("the check did not fail")
        };
        assert!(message.contains("webhook w is not healthy: "), "{message}");
        assert!(message.contains("connection refused"), "{message}");
        assert_eq!(stage.observed().failures(), 1, "one edit counts once");
        assert!(reloader.status().rejected_config_hash.is_some());
    }
    new.peer.listen().unwrap();
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
    assert_eq!(reloader.status().rejected_config_hash, None);
}

/// Every answer of the peer, and whether a configuration with it takes effect.
#[tokio::test]
async fn any_review_of_the_configured_version_is_healthy() {
    let review = |version: &str, status: &str| {
        Answer::json(format!(
            r#"{{"apiVersion":"authorization.k8s.io/{version}","kind":"SubjectAccessReview","status":{status}}}"#
        ))
    };
    let untyped = |status: &str| Answer::json(format!(r#"{{"status":{status}}}"#));
    let denies = r#"{"allowed":false,"denied":true,"reason":"no"}"#;
    let table = [
        (review("v1", r#"{"allowed":true}"#), None),
        (review("v1", denies), None),
        (review("v1", "{}"), None),
        (untyped(denies), None),
        (review("v1beta1", r#"{"allowed":true}"#), Some("unknown conversion")),
        (untyped("{}"), Some("not a SubjectAccessReview")),
        (Answer::json("{}"), Some("not a SubjectAccessReview")),
        (Answer::json(r#"{"ok":true}"#), Some("not a SubjectAccessReview")),
        (Answer::json("<html></html>"), Some("couldn't get version/kind")),
        (Answer::json(""), Some("0-length response")),
        (
            Answer::json("404 page not found").status(404).content_type(None),
            Some("could not find the requested resource"),
        ),
        (Answer::json("forbidden").status(403).content_type(None), Some("status code 403")),
        (Answer::json("busy").status(503).header("retry-after", "1"), Some("is not healthy")),
        (Answer::redirect("/elsewhere"), Some("is not healthy")),
    ];
    for (idx, (answer, fault)) in table.into_iter().enumerate() {
        let stage = Stage::new();
        let old = RunningHook::start(&stage, "old");
        let new = RunningHook::start_with(&stage, "new", vec![answer]);
        stage.write("config", &with_webhook("w", &old.path(&stage)));
        let reloader = stage.start_reloader("config", checking());
        stage.write("config", &with_webhook("w", &new.path(&stage)));
        match (reloader.check_files_now().await, fault) {
            (FileCheckResult::Applied(2), None) => {}
            (FileCheckResult::Failed(message), Some(fault)) if message.contains(fault) => {}
            (other, _) => panic!("answer {idx}, want {fault:?}: {other:?}"),
        }
        let [request] = &new.peer.requests()[..] else { panic!("answer {idx}: one request") };
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let want = serde_json::json!({
            "nonResourceAttributes": {"path": "/healthz", "verb": "get"},
            "user": "system:portcullis-probe",
        });
        assert_eq!(
            (&body["spec"], &body["apiVersion"]),
            (&want, &"authorization.k8s.io/v1".into())
        );
        let health = reloader.generation().configured_webhooks[0].webhook.health();
        assert_eq!(
            (health.n_cached_answers, health.last_successful_call_at),
            (0, None),
            "answer {idx}"
        );
        assert_eq!(old.peer.n_requests(), 0, "the webhook of the start is not asked");
    }
}

/// The peer's TLS accepts only clients with a certificate of its authority, which the handshake of TLS 1.3 alone does not
/// show to the client.
#[tokio::test]
async fn a_missing_or_foreign_client_certificate_is_not_healthy() {
    let stage = Stage::new();
    let old = RunningHook::start(&stage, "old");
    let clients = Authority::new("clients").unwrap();
    let new = RunningHook::start_requiring_clients(&stage, "new", &clients);
    stage.write("config", &with_webhook("w", &old.path(&stage)));
    let reloader = stage.start_reloader("config", checking());
    stage.write("config", &with_webhook("w", &new.path(&stage)));
    let is_unhealthy = |result| match result {
        FileCheckResult::Failed(message) => message.contains("webhook w is not healthy: "),
        FileCheckResult::Unchanged | FileCheckResult::Applied(_) => false,
    };
    assert!(is_unhealthy(reloader.check_files_now().await), "no certificate");
    new.write_client_certificate(&stage, &Authority::new("foreign").unwrap());
    assert!(is_unhealthy(reloader.check_files_now().await), "a certificate of another authority");
    assert_eq!(stage.observed().failures(), 2, "two edits");
    new.write_client_certificate(&stage, &clients);
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
}

/// A bad edit that is taken back leaves no trace: the status is healthy, and the metrics end with a success.
#[tokio::test]
async fn an_unhealthy_edit_counts_once_and_its_revert_ends_it() {
    let stage = Stage::new();
    let old = RunningHook::start(&stage, "old");
    let not_found = Answer::json("404 page not found").status(404);
    let new = RunningHook::start_with(&stage, "new", vec![not_found, Answer::json("{}")]);
    let text = with_webhook("w", &old.path(&stage));
    stage.write("config", &text);
    let reloader = stage.start_reloader("config", checking());
    stage.write("config", &with_webhook("w", &new.path(&stage)));
    // The faults differ from check to check, and the edit is the same.
    for _ in 0..3 {
        assert!(matches!(reloader.check_files_now().await, FileCheckResult::Failed(_)));
    }
    assert_eq!(stage.observed().reloads, [ReloadStatus::Failure]);
    assert_eq!(stage.observed().log.len(), 2, "{:?}", stage.observed().log);
    stage.write("config", &text);
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Unchanged);
    assert_eq!(stage.observed().reloads, [ReloadStatus::Failure, ReloadStatus::Success]);
    let status = reloader.status();
    assert!(status.last_attempt.unwrap().ok);
    assert_eq!((status.rejected_config_hash, status.generation), (None, 1));
    assert_eq!(status.hash, Some(sha256_hash(text.as_bytes())));
}

#[test]
fn the_check_is_on_unless_it_is_disabled() {
    assert!(ReloadOptions::default().checks_webhook_health);
}

#[tokio::test]
async fn an_unchanged_webhook_need_not_be_healthy() {
    let stage = Stage::new();
    let hook = RunningHook::start(&stage, "w");
    let text = with_webhook("w", &hook.path(&stage));
    stage.write("config", &text);
    let reloader = stage.start_reloader("config", checking());
    hook.peer.stop_listening().unwrap();
    // The same authorizers in another order.
    let entries = text.replace("- type: RBAC\n  name: rbac\n", "");
    let entries = entries.replace("authorizers:\n", "authorizers:\n- type: RBAC\n  name: rbac\n");
    stage.write("config", &entries);
    assert_eq!(reloader.check_files_now().await, FileCheckResult::Applied(2));
}

#[tokio::test]
async fn the_poll_tries_again() {
    let stage = Stage::new();
    let (old, new) = (RunningHook::start(&stage, "old"), RunningHook::start(&stage, "new"));
    stage.write("config", &with_webhook("w", &old.path(&stage)));
    let poll = Duration::from_millis(20);
    let _reloader =
        stage.start_reloader("config", ReloadOptions { poll_interval: poll, ..checking() });
    new.peer.stop_listening().unwrap();
    stage.write("config", &with_webhook("w", &new.path(&stage)));
    stage.wait_until("the check failed", |observed| observed.failures() == 1).await;
    new.peer.listen().unwrap();
    stage.wait_until("the check succeeded", |observed| observed.successes() == 1).await;
}

#[tokio::test]
async fn waiting_for_a_webhook_does_not_delay_a_newer_configuration() {
    let stage = Stage::new();
    let (old, new) = (RunningHook::start(&stage, "old"), RunningHook::start(&stage, "new"));
    stage.write("config", &with_webhook("w", &old.path(&stage)));
    let options = ReloadOptions { watches_files: true, ..checking() };
    let reloader = stage.start_reloader("config", options);
    // Connections are made and never answered, so the handshake lasts as long as it may.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let kubeconfig = old.kubeconfig();
    let (address, port) = (old.peer.address(), silent.local_addr().unwrap());
    stage.write("silent", &kubeconfig.replace(&address.to_string(), &port.to_string()));
    let waiting = with_webhook("w", &stage.path("silent")).replace("timeout: 3s", "timeout: 30s");
    stage.write("config", &waiting);
    let (silent, connected) = tokio::task::spawn_blocking(move || {
        let connected = silent.accept().unwrap();
        (silent, connected)
    })
    .await
    .unwrap();
    stage.write("config", &with_webhook("w", &new.path(&stage)));
    stage.wait_until("newer configuration", |observed| observed.successes() == 1).await;
    assert_eq!(stage.observed().failures(), 0);
    assert_eq!(reloader.generation().generation_number, 2);
    drop((silent, connected));
}
