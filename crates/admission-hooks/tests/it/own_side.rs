//! Faults of this process, to which no failure policy applies.

use std::fs::File;
use std::future::poll_fn;
use std::pin::pin;
use std::process::Command;

use admission_hooks::HookRefusal;
use fake_http::{Answer, Conduct, Peer};
use serde_json::Value;

use crate::fixture::{Scene, allow, hook, hook_at, peer, says, until, with};

const POLICIES: [&str; 2] = ["Fail", "Ignore"];

/// A mutating and a validating scene with this one hook.
fn scenes(hook: &Value, policy: &str) -> [Scene; 2] {
    let hooks = vec![with(hook.clone(), "failurePolicy", policy)];
    [Scene::new().mutating("c", hooks.clone()), Scene::new().validating("c", hooks)]
}

/// The same hook, at an address and at a name that has to be looked up.
fn hooks(peer: &Peer) -> [Value; 2] {
    let port = peer.address().port();
    [hook("h.x.y", peer), hook_at("h.x.y", &format!("https://localhost:{port}/admit"))]
}

/// The test runs itself once more with a limit, for a lack of descriptors concerns the whole process.
#[test]
fn a_lack_of_descriptors_is_no_failure_of_the_hook() {
    const CHILD: &str = "ADMISSION_HOOKS_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(call_without_descriptors());
    }
    let name = "own_side::a_lack_of_descriptors_is_no_failure_of_the_hook";
    let limited = Command::new("sh")
        .args(["-c", "ulimit -n 100 && exec \"$0\" --exact --nocapture \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&limited.stdout);
    assert!(limited.status.success() && said.contains("1 passed"), "{limited:?}");
}

async fn call_without_descriptors() {
    let peer = peer(says(allow()));
    for policy in POLICIES {
        for hook in hooks(&peer) {
            for scene in scenes(&hook, policy) {
                until(|| peer.n_open() == 0).await;
                let all: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
                let (refusal, _) = scene.refused().await;
                assert!(matches!(refusal, HookRefusal::CallUnavailable { .. }), "{refusal}");
                assert!(refusal.to_string().contains("too many open files"), "{refusal}");
                drop(all);
                assert_eq!(*scene.seen.failed_open.lock().unwrap(), [""; 0]);
                scene.allowed().await;
            }
        }
    }
}

/// Tasks that make calls end with their runtime.
#[test]
fn a_server_that_stops_is_no_failure_of_the_hook() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hanging = peer(Answer::misbehave(Conduct::Hang));
    for policy in POLICIES {
        let [_, scene] = scenes(&hook("h.x.y", &hanging), policy);
        let mut stopping =
            Some(tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap());
        let n_before = hanging.n_requests();
        let (refusal, _) = runtime.block_on(async {
            let mut refused = pin!(scene.refused());
            poll_fn(|cx| {
                if hanging.n_requests() > n_before
                    && let Some(stopping) = stopping.take()
                {
                    stopping.shutdown_background();
                }
                let _entered = stopping.as_ref().map(|runtime| runtime.enter());
                cx.waker().wake_by_ref();
                refused.as_mut().poll(cx)
            })
            .await
        });
        assert_eq!(refusal, HookRefusal::ShuttingDown);
    }
}
