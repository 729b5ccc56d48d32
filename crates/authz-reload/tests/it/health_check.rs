//! A configuration whose webhooks can not be reached waits.

use std::time::Duration;

use authz_reload::{CheckResult, ReloadOptions};

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
    for n_failures in [1, 2] {
        let CheckResult::Failed(message) = reloader.check_now().await else {
            panic!("the check did not fail")
        };
        assert!(message.contains("webhook w is not healthy: "), "{message}");
        assert!(message.contains("connection refused"), "{message}");
        assert_eq!(stage.observed().failures(), n_failures);
        assert!(reloader.status().pending.is_some());
    }
    new.peer.listen().unwrap();
    assert_eq!(reloader.check_now().await, CheckResult::Applied(2));
    assert_eq!(reloader.status().pending, None);
    assert_eq!(new.peer.requests(), [], "nothing is asked");
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
    assert_eq!(reloader.check_now().await, CheckResult::Applied(2));
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
    stage.wait_until("the check failed twice", |observed| observed.failures() > 1).await;
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
    assert_eq!(reloader.generation().number, 2);
    drop((silent, connected));
}
