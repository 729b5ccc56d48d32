//! The flags of dynamic admission: each changes what clients of a real server see.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_http::{Answer, Authority, Conduct, Leaf, Peer, Request, Script, ServerTls};
use http::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Place, Server, directory};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Longer than anything here takes, and shorter than what the server waits without flags.
const SOON: Duration = Duration::from_secs(4);

/// A server with these flags, and its administrator.
struct Scene {
    client: Client,
    _server: Server,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn start(flags: &[&str]) -> Self {
        let folder = directory();
        let server = Server::start_with(folder.path(), &Place::Embedded, flags);
        Self { client: server.client(), _server: server, _folder: folder }
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.client.ask(Method::POST, path, body).await
    }

    /// Registers an initializer of configmaps.
    async fn initializer(&self, name: &str) {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
        let body = json!({
            "metadata": {"name": name}, "initializers": [{"name": name, "rules": [rule]}],
        });
        let path = format!("{CONFIGURATIONS}/v1alpha1/initializerconfigurations");
        let (code, answer) = self.post(&path, &body).await;
        assert_eq!(code, 201, "{answer}");
    }

    /// Registers a validating webhook of configmaps that must be asked.
    async fn webhook(&self, hook: &Hook) {
        let rule = json!({
            "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        });
        let webhook = json!({
            "name": "hook.example.com",
            "clientConfig": {"url": hook.url(), "caBundle": hook.bundle},
            "rules": [rule],
            "timeoutSeconds": 10,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        let path = format!("{CONFIGURATIONS}/v1/validatingwebhookconfigurations");
        let body = json!({"metadata": {"name": "hook"}, "webhooks": [webhook]});
        let (code, answer) = self.post(&path, &body).await;
        assert_eq!(code, 201, "{answer}");
    }

    /// Creates a config map, and returns the duration.
    async fn create(&self, name: &str, query: &str) -> (u16, Value, Duration) {
        let begun = Instant::now();
        let (code, answer) =
            self.post(&format!("{MAPS}{query}"), &json!({"metadata": {"name": name}})).await;
        (code, answer, begun.elapsed())
    }
}

/// An admission webhook on loopback.
struct Hook {
    peer: Peer,
    bundle: String,
}

impl Hook {
    fn start(script: impl Into<Script>) -> Self {
        let authority = Authority::new("hooks").unwrap();
        let tls = ServerTls::new(authority.issue(&Leaf::loopback()).unwrap());
        let peer = Peer::start_tls(script, &tls).unwrap();
        Self { peer, bundle: STANDARD.encode(authority.pem()) }
    }

    fn url(&self) -> String {
        format!("https://{}/", self.peer.address())
    }
}

/// Allows, with so long a warning.
fn allow(request: &Request, warning: &str) -> Answer {
    let review: Value = serde_json::from_slice(&request.body).unwrap();
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"], "allowed": true, "warnings": [warning],
        },
    });
    Answer::json(answer.to_string())
}

/// Configurations with everything that decides whether a hook is called. Nobody is there, which is
/// ignored.
fn configurations() -> Vec<Value> {
    let webhook = |name: &str, changes: Value| {
        let mut webhook = json!({
            "name": name,
            "clientConfig": {"url": format!("https://{}/", fake_http::NOBODY)},
            "rules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }],
            "failurePolicy": "Ignore",
            "timeoutSeconds": 1,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        webhook.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        webhook
    };
    let condition = |text: &str| json!({"matchConditions": [{"name": "c", "expression": text}]});
    let configuration = |kind: &str, name: &str, webhooks: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": name},
            "webhooks": webhooks,
        })
    };
    let mutating = [
        webhook("all.x.y", json!({})),
        webhook("space.x.y", json!({"namespaceSelector": {"matchLabels": {"team": "a"}}})),
        webhook("label.x.y", json!({"objectSelector": {"matchLabels": {"app": "web"}}})),
        webhook("other.x.y", json!({"rules": []})),
    ];
    let validating = [
        webhook("data.x.y", condition("has(object.data) && object.data.size() > 1")),
        webhook("fails.x.y", condition("object.data['a'] == 'b'")),
        webhook("asks.x.y", condition("authorizer.requestResource.check('create').allowed()")),
        webhook("user.x.y", condition("'system:masters' in request.userInfo.groups")),
    ];
    vec![
        configuration("Mutating", "m", json!(mutating)),
        configuration("Validating", "v", json!(validating)),
    ]
}

/// A server calls the hooks that `portcullis explain --admission` predicts.
#[tokio::test]
async fn explanations_agree_with_the_server() {
    let scene = Scene::start(&[]);
    let folder = directory();
    let namespace = |name: &str, team: &str| {
        let metadata = json!({"name": name, "labels": {"team": team}});
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    };
    let namespaces = [namespace("alpha", "a"), namespace("beta", "b")];
    let mut stored = namespaces.to_vec();
    for object in &namespaces {
        let (code, answer) = scene.post("/api/v1/namespaces", object).await;
        assert_eq!(code, 201, "{answer}");
    }
    for object in configurations() {
        let plural = object["kind"].as_str().unwrap().to_lowercase();
        let path = format!("{CONFIGURATIONS}/v1/{plural}s");
        let (code, answer) = scene.post(&path, &object).await;
        assert_eq!(code, 201, "{answer}");
        stored.push(object);
    }
    let cluster = folder.path().join("cluster.json");
    let text: String = stored.iter().map(|object| format!("{object}\n")).collect();
    std::fs::write(&cluster, text).unwrap();

    let mut outcomes = BTreeSet::new();
    for namespace in ["alpha", "beta"] {
        for labels in [json!({}), json!({"app": "web"})] {
            for data in [json!({}), json!({"a": "b"}), json!({"b": "c", "d": "e"})] {
                let map = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"generateName": "m", "namespace": namespace, "labels": labels},
                    "data": data,
                });
                let path = format!("/api/v1/namespaces/{namespace}/configmaps");
                let (code, trace) = scene.client.post_traced(&path, &map).await;
                assert_eq!(code, 201, "{trace}");
                // The server notes those first that it does not call.
                let told: BTreeSet<_> = trace.as_array().unwrap().iter().map(outcome).collect();
                assert_eq!(told, explained(&map, &cluster), "{map}");
                outcomes.extend(told);
            }
        }
    }
    // Every way in which a hook can be skipped, and every hook that can be called.
    assert_eq!(outcomes.len(), 11, "{outcomes:#?}");
}

/// `mutating label.x.y called: ` or `mutating label.x.y skipped: objectSelector does not match`.
fn outcome(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let (outcome, why) = match text("outcome") {
        "skipped" => ("skipped", text("why")),
        // Nobody is there, so that calls fail.
        "called" | "failed open" => ("called", ""),
        other => (other, text("why")),
    };
    format!("{} {} {outcome}: {why}", text("phase"), text("webhook"))
}

/// The outcome of each hook in the explanation.
fn explained(object: &Value, cluster: &Path) -> BTreeSet<String> {
    let file = cluster.with_file_name("object.json");
    std::fs::write(&file, object.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["explain", "--admission", "-o", "json", "--as", "kubernetes-admin"])
        .args(["--as-group", "system:masters", "--objects"])
        .args([cluster, Path::new("--"), &file])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let explanation: Value = serde_json::from_slice(&output.stdout).unwrap();
    explanation["hooks"].as_array().unwrap().iter().map(outcome).collect()
}

#[tokio::test]
async fn the_mode_of_synchronising_is_told() {
    for (mode, want) in [("barrier", "barrier"), ("poll", "poll")] {
        let mode = format!("--admission-sync-mode={mode}");
        let scene = Scene::start(&[&mode, "--admission-sync-poll-interval=100ms"]);
        let path = "/portcullis/admission/status";
        let (code, status) = scene.client.ask(Method::GET, path, &Value::Null).await;
        assert_eq!((code, &status["mode"]), (200, &json!(want)), "{status}");
        // Either way configurations hold, if not at once.
        let hook = Hook::start(Script::rule(|request| allow(request, "seen")));
        scene.webhook(&hook).await;
        let begun = Instant::now();
        for n in 0.. {
            let (code, answer, _) = scene.create(&format!("m{n}"), "").await;
            assert_eq!(code, 201, "{answer}");
            if !hook.peer.take_requests().is_empty() {
                break;
            }
            assert!(begun.elapsed() < SOON, "{want}: the hook is never asked");
        }
    }
}

#[tokio::test]
async fn initializers_have_the_time_of_the_flag() {
    let scene = Scene::start(&["--admission-initializers-step-timeout=300ms"]);
    scene.initializer("dead.example.com").await;
    let (code, map, took) = scene.create("a", "").await;
    assert_eq!((code, &map["metadata"]["initializers"]), (201, &Value::Null), "{map}");
    assert!((Duration::from_millis(300)..SOON).contains(&took), "{took:?}");
}

#[tokio::test]
async fn objects_that_wait_are_shown_as_the_flag_says() {
    for (flag, want) in [
        ("--admission-initializers-get-mode=object", 200),
        ("--admission-initializers-get-mode=accepted", 202),
    ] {
        let scene = Scene::start(&[flag]);
        scene.initializer("slow.example.com").await;
        let (code, map, _) = scene.create("a", "?includeUninitialized=true").await;
        assert_eq!(code, 202, "{map}");
        let path = format!("{MAPS}/a");
        let (code, shown) = scene.client.ask(Method::GET, &path, &Value::Null).await;
        assert_eq!(code, want, "{shown}");
    }
}

#[tokio::test]
async fn initializers_can_be_few_and_none() {
    let scene = Scene::start(&["--admission-initializers-max-pending=1"]);
    let pending = json!([{"name": "a.example.com"}, {"name": "b.example.com"}]);
    let body = json!({"metadata": {"name": "a", "initializers": {"pending": pending}}});
    let (code, answer) = scene.post(MAPS, &body).await;
    assert_eq!(code, 422, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("Too many: 2: must have at most 1 item"), "{message}");

    let scene = Scene::start(&["--admission-initializers-enabled=false"]);
    scene.initializer("dead.example.com").await;
    let (code, map, took) = scene.create("a", "").await;
    assert_eq!((code, &map["metadata"]["initializers"]), (201, &Value::Null), "{map}");
    assert!(took < SOON, "{took:?}");
}

#[tokio::test]
async fn calls_and_writes_end_when_the_flags_say() {
    let hang = || Hook::start(vec![Answer::misbehave(Conduct::Hang)]);
    let scene = Scene::start(&["--admission-webhook-client-timeout=300ms"]);
    let hook = hang();
    scene.webhook(&hook).await;
    let (code, answer, took) = scene.create("a", "").await;
    assert_eq!((code, &answer["reason"]), (500, &json!("InternalError")), "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("failed calling webhook \"hook.example.com\""), "{message}");
    assert!(took < SOON, "{took:?}");

    let scene = Scene::start(&["--write-timeout-ceiling=300ms"]);
    let hook = hang();
    scene.webhook(&hook).await;
    let (code, answer, took) = scene.create("a", "").await;
    assert_eq!((code, &answer["reason"]), (504, &json!("Timeout")), "{answer}");
    assert!(took < SOON, "{took:?}");
}

#[tokio::test]
async fn long_answers_are_refused() {
    let long = "x".repeat(70_000);
    for (flag, want) in [
        ("--admission-webhook-max-response-bytes=131072", 201),
        ("--admission-webhook-max-response-bytes=65536", 500),
        // So little that an answer may exceed it by repeating the object.
        ("--admission-webhook-max-response-bytes=1024", 503),
    ] {
        let scene = Scene::start(&[flag]);
        let warning = long.clone();
        let hook = Hook::start(Script::rule(move |request| allow(request, &warning)));
        scene.webhook(&hook).await;
        let (code, answer, _) = scene.create("a", "").await;
        assert_eq!(code, want, "{answer}");
    }
}

#[tokio::test]
async fn hooks_learn_who_the_server_is() {
    let hook = Hook::start(Script::rule(|request| allow(request, "")));
    let folder = directory();
    let file = folder.path().join("hooks.kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config",
        "users": [
            {"name": hook.peer.address().to_string(), "user": {"token": "for-this-one"}},
            {"name": "*", "user": {"token": "for-others"}},
        ],
    });
    std::fs::write(&file, config.to_string()).unwrap();
    let flag = format!("--admission-webhook-kubeconfig={}", file.display());
    let scene = Scene::start(&[&flag]);
    scene.webhook(&hook).await;
    let (code, answer, _) = scene.create("a", "").await;
    assert_eq!(code, 201, "{answer}");
    let requests = hook.peer.take_requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer for-this-one"));
}
