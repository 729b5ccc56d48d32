//! Webhooks that misbehave: the result of the request, and the metrics.

use std::time::Duration;

use fake_http::{Answer, Body, Conduct, Leaf, Peer, Script};
use serde_json::json;

use crate::cluster::Cluster;
use crate::hooks::{Hooks, LONG, allow, rbac};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How a webhook misbehaves.
struct Bad {
    name: &'static str,
    script: Script,
    leaf: Leaf,
    /// How many attempts are made, and what is counted for each.
    attempts: (usize, &'static str),
}

fn bad(name: &'static str, answer: Answer, attempts: (usize, &'static str)) -> Bad {
    Bad { name, script: vec![answer].into(), leaf: Leaf::loopback(), attempts }
}

/// The peers, one for each kind of misbehaviour.
fn all() -> Vec<Bad> {
    let huge = || Answer::json("").body(Body::Filler(100 << 20));
    vec![
        bad("hangs", Answer::misbehave(Conduct::Hang), (1, "timeout")),
        bad("hangs-in-body", allow().conduct(Conduct::HangInBody), (1, "timeout")),
        bad("resets", Answer::misbehave(Conduct::Reset), (5, "error")),
        bad("closes", Answer::misbehave(Conduct::Close), (1, "error")),
        bad("says-500", Answer::json("{}").status(500), (5, "error")),
        bad("says-429", Answer::json("{}").status(429), (5, "error")),
        bad("says-504", Answer::json("{}").status(504), (5, "timeout")),
        bad("says-503", Answer::json("{}").status(503), (1, "error")),
        bad("redirects", Answer::redirect("https://127.0.0.1:1/"), (1, "error")),
        bad("announces-more", allow().conduct(Conduct::Claim(1 << 20)), (1, "timeout")),
        // More than is ever read is refused at once.
        bad("announces-too-much", allow().conduct(Conduct::Claim(1 << 40)), (1, "error")),
        bad("truncates", allow().conduct(Conduct::Truncate), (1, "error")),
        bad("sends-100-mb", huge(), (1, "error")),
        bad("never-ends", Answer::json("").body(Body::Endless), (1, "error")),
        bad("sends-garbage", Answer::json("garbage"), (1, "error")),
        bad("sends-nothing", Answer::json(""), (1, "error")),
        Bad { leaf: Leaf::server(&["other"]), ..bad("other-name", allow(), (1, "error")) },
        Bad { leaf: Leaf::loopback().expired(), ..bad("expired", allow(), (1, "error")) },
    ]
}

/// The memory of this process that is in use, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    let kilobytes = line.split_whitespace().nth(1).expect("a number");
    kilobytes.parse::<usize>().expect("a number") * 1024
}

async fn check(bad: Bad) {
    let Bad { name, script, leaf, attempts: (n_attempts, result) } = bad;
    let hooks = Hooks::new();
    let peer = hooks.service(&leaf, script);
    hooks.kubeconfig("w", &format!("https://{}/authorize", peer.address()));
    // Only a webhook that never responds uses up the timeout, so the others have enough time on a
    // slow machine.
    let timeout = if (n_attempts, result) == (1, "timeout") { "2s" } else { "20s" };
    let strict = json!({"failurePolicy": "Deny", "timeout": timeout});
    let plan = hooks.plan(&[hooks.webhook("w", strict), rbac()]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let answer = cluster.alice().get(MAPS).await;
    assert_eq!(answer.code, 500, "{name}: {}", answer.text());
    let counted = evaluations(&cluster).await;
    assert_eq!(counted, [format!("{{name=\"w\",result=\"{result}\"}} {n_attempts}")], "{name}");
    // A failure is not cached: the next request reaches a working webhook.
    recover(&peer, name, &cluster).await;
    cluster.stop(Duration::ZERO).await;
    // Waiting blocks the thread.
    let is_idle = tokio::task::spawn_blocking(move || peer.wait_idle(LONG)).await;
    assert!(is_idle.expect("an answer"), "{name}: connections are left open");
}

async fn recover(peer: &Peer, name: &str, cluster: &Cluster) {
    peer.replace(vec![allow()]).expect("another script");
    let is_trusted = !matches!(name, "other-name" | "expired");
    let code = cluster.alice().get(MAPS).await.code;
    assert_eq!(code, if is_trusted { 200 } else { 500 }, "{name}");
}

async fn evaluations(cluster: &Cluster) -> Vec<String> {
    let text = cluster.admin().get("/metrics").await.text();
    let name = "apiserver_authorization_webhook_evaluations_total";
    text.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect()
}

/// L2: a webhook that redirects has failed.
#[tokio::test(flavor = "multi_thread")]
async fn every_misbehaviour_has_its_decision_and_its_count() {
    let before = resident();
    let mut checks = tokio::task::JoinSet::new();
    for bad in all() {
        checks.spawn(check(bad));
    }
    while let Some(checked) = checks.join_next().await {
        checked.expect("a check");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 400 << 20, "{} MB more", grown >> 20);
}

/// A webhook stops and starts again.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_stops_listening_is_found_again() {
    let hooks = Hooks::new();
    let peer = hooks.peer("w", vec![allow()]);
    let plan = hooks.plan(&[hooks.webhook("w", json!({"authorizedTTL": "1ms"})), rbac()]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let alice = cluster.alice();
    alice.get(MAPS).await.expect(200);
    // The test waits for a real process: the cached decision expires after 1 ms.
    tokio::time::sleep(Duration::from_millis(5)).await;
    peer.stop_listening().expect("nobody listens");
    peer.close_connections().expect("no connections");
    let refused = alice.get(MAPS).await;
    assert_eq!(refused.code, 500);
    assert!(refused.text().contains("connection refused"), "{}", refused.text());
    peer.listen().expect("somebody listens");
    alice.get(MAPS).await.expect(200);
}
