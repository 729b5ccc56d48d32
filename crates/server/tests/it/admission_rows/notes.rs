//! The warnings, annotations and traces of hooks.

use fake_http::Answer as Say;
use serde_json::{Value, json};

use super::{MAPS, NAMESPACES, Scene, map};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, answering, patch_of, rule, warnings};
use crate::client::Answer;

#[tokio::test(flavor = "multi_thread")]
async fn warnings_become_headers() {
    let scene = Scene::start().await;
    let long: Vec<String> = (0..20).map(|n| format!("{n:02}{}", "x".repeat(298))).collect();
    for phase in [MUTATING, VALIDATING] {
        let texts = json!(["twice", "twice", "two\nlines", "ünïcode \"quoted\""]);
        let hook = scene.hook(answering(json!({"allowed": true, "warnings": texts})));
        scene.ask(phase, &hook, json!({})).await;
        let answer = scene.create("dryRun=All").await;
        let found = warning_headers(&answer);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0], "299 - \"twice\"");
        answer.expect(201);

        // A hook that denies has warnings and annotations as well.
        hook.replace(answering(json!({"allowed": false, "warnings": ["why"]}))).unwrap();
        let answer = scene.create("dryRun=All").await;
        assert_eq!(warnings(&answer), ["why"]);
        answer.expect(400);

        hook.replace(answering(json!({"allowed": true, "warnings": long}))).unwrap();
        let answer = scene.create("dryRun=All").await;
        let found = warnings(&answer);
        assert!(found.iter().all(|text| text.chars().count() <= 256));
        let total: usize = found.iter().map(String::len).sum();
        assert!(found.len() > 10 && total <= 4096 + 256, "{} of {total}", found.len());
        for (text, whole) in found.iter().zip(&long) {
            assert!(whole.starts_with(text.as_str()), "{text}");
        }
        answer.expect(201);

        // An invalid response adds neither warnings nor annotations.
        let bad = json!({"response": {"uid": "other", "allowed": true, "warnings": ["x"]},
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
        hook.replace(Say::json(bad.to_string())).unwrap();
        let answer = scene.create("dryRun=All").await;
        assert_eq!(warnings(&answer), Vec::<String>::new());
        answer.expect(500);
        scene.admin.delete(&format!("{phase}/c")).await.expect(200);
    }
}

fn warning_headers(answer: &Answer) -> Vec<String> {
    let values = answer.headers.get_all("warning").iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// Requests for the namespace `bodies` with their bodies, others without.
const POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [
    {"level": "Request", "namespaces": ["bodies"]}, {"level": "Metadata"}]}"#;

async fn audited() -> (Scene, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let log = audit::AuditLog::open_log_file(&file, audit::LogRotationOptions::default()).unwrap();
    let (policy, _) = audit::Policy::parse(POLICY.as_bytes()).unwrap();
    let auditor = audit::Auditor::with_log_backend(policy, log).expect("a thread");
    let scene = Scene::start_in(folder, |options| options.auditor = Some(auditor)).await;
    (scene, file)
}

/// The annotations of a request, once its last event is written, but for those of the authorizers.
async fn annotations(file: &std::path::Path, answer: &Answer) -> Value {
    let id = answer.headers["audit-id"].to_str().unwrap();
    for _ in 0..1000 {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut own = lines.filter(|it| it["auditID"] == id && it["stage"] == "ResponseComplete");
        if let Some(event) = own.next() {
            let mut annotations = event["annotations"].clone();
            let members = annotations.as_object_mut().unwrap();
            members.retain(|key, _| !key.starts_with("authorization.k8s.io/"));
            return annotations;
        }
        crate::polling::pause().await;
    }
    panic!("the request was not recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_stand_in_the_audit_log() {
    let (scene, file) = audited().await;
    scene.admin.post(NAMESPACES, &json!({"metadata": {"name": "bodies"}})).await.expect(201);
    let patch = json!([{"op": "add", "path": "/data/x", "value": "y"}]);
    let mut response = patch_of(&patch);
    response["auditAnnotations"] = json!({"key1": "value", "invalid*key": "value"});
    let patching = scene.hook(answering(response));
    let idle = scene.hook(answering(patch_of(&json!([]))));
    let broken = scene.hook(Say::json("{}").status(500));
    let ignored = json!({"failurePolicy": "Ignore"});
    let webhooks = [
        scene.webhook("p.x.y", &patching, json!({})),
        scene.webhook("i.x.y", &idle, json!({})),
        scene.webhook("n.x.y", &idle, json!({"rules": [rule(&["*"], "", "secrets")]})),
        scene.webhook("b.x.y", &broken, ignored.clone()),
    ];
    scene.configure(MUTATING, &webhooks).await;
    let others = json!({"failurePolicy": "Ignore", "rules": [rule(&["*"], "", "secrets")]});
    let webhooks = [
        scene.webhook("v0.x.y", &broken, ignored.clone()),
        scene.webhook("other.x.y", &broken, others),
        scene.webhook("v1.x.y", &broken, ignored.clone()),
        scene.webhook("v2.x.y", &broken, ignored),
    ];
    scene.configure(VALIDATING, &webhooks).await;
    for (namespace, has_bodies) in [("default", false), ("bodies", true)] {
        let path = format!("{NAMESPACES}/{namespace}/configmaps?dryRun=All");
        let answer = scene.admin.post(&path, &map("m")).await;
        let mut found = annotations(&file, &answer).await;
        answer.expect(201);
        let trace = found.as_object_mut().unwrap().shift_remove("admission.portcullis.io/hooks");
        let trace: Value = serde_json::from_str(trace.unwrap().as_str().unwrap()).unwrap();
        let outcome = |webhook: &str| {
            let mut events = trace.as_array().unwrap().iter();
            events.find(|event| event["webhook"] == webhook).map(|event| event["outcome"].clone())
        };
        assert_eq!(outcome("p.x.y"), Some(json!("patched")), "{trace}");
        assert_eq!(outcome("v2.x.y"), Some(json!("failed open")), "{trace}");
        assert!(!trace.to_string().contains("\"patch\":"), "{trace}");
        let mutation = |name: &str, mutated: bool| {
            format!("{{\"configuration\":\"c\",\"webhook\":\"{name}\",\"mutated\":{mutated}}}")
        };
        let mut want = json!({
            "mutation.webhook.admission.k8s.io/round_0_index_0": mutation("p.x.y", true),
            "mutation.webhook.admission.k8s.io/round_0_index_1": mutation("i.x.y", false),
            "mutation.webhook.admission.k8s.io/round_0_index_3": mutation("b.x.y", false),
            "failed-open.mutation.webhook.admission.k8s.io/round_0_index_3": "b.x.y",
            "failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "v0.x.y",
            "failed-open.validating.webhook.admission.k8s.io/round_0_index_1": "v1.x.y",
            "failed-open.validating.webhook.admission.k8s.io/round_0_index_2": "v2.x.y",
            "failed-open-by.mutation.webhook.portcullis.io/round_0_index_3": "b.x.y: http_status",
            "failed-open-by.validating.webhook.portcullis.io/round_0_index_0": "v0.x.y: http_status",
            "failed-open-by.validating.webhook.portcullis.io/round_0_index_1": "v1.x.y: http_status",
            "failed-open-by.validating.webhook.portcullis.io/round_0_index_2": "v2.x.y: http_status",
            "p.x.y/key1": "value",
        });
        if has_bodies {
            let shown = format!(
                "{{\"configuration\":\"c\",\"webhook\":\"p.x.y\",\"patch\":{patch},\
                 \"patchType\":\"JSONPatch\"}}"
            );
            want["patch.webhook.admission.k8s.io/round_0_index_0"] = shown.into();
        }
        assert_eq!(found, want, "{namespace}");
    }
}

/// The annotations of each object of a collection, and of objects that the server deletes by itself.
#[tokio::test(flavor = "multi_thread")]
async fn annotations_of_several_objects_and_of_the_server() {
    let (scene, file) = audited().await;
    scene.admin.post(NAMESPACES, &json!({"metadata": {"name": "n"}})).await.expect(201);
    let maps = format!("{NAMESPACES}/n/configmaps");
    let hook = scene.hook(allow());
    scene.ask(MUTATING, &hook, json!({})).await;
    for name in ["a", "b", "c"] {
        scene.admin.post(&maps, &map(name)).await.expect(201);
    }
    let answer = scene.admin.delete(&format!("{maps}?dryRun=All")).await;
    let found = annotations(&file, &answer).await;
    answer.expect(200);
    let trace = found["admission.portcullis.io/hooks"].as_str().unwrap();
    let trace: Value = serde_json::from_str(trace).unwrap();
    assert_eq!(trace.as_array().map(Vec::len), Some(3), "{trace}");

    let path = format!("{NAMESPACES}/n");
    scene.admin.delete(&path).await.expect(200);
    while scene.admin.get(&path).await.code != 404 {
        crate::polling::pause().await;
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_own = |event: &Value| {
        event["user"]["username"] == server::SERVER_USER
            && event["requestURI"] == format!("{maps}/b")
            && event["stage"] == "ResponseComplete"
    };
    let event = events.into_iter().find(is_own).expect("an event");
    let key = "mutation.webhook.admission.k8s.io/round_0_index_0";
    assert!(event["annotations"][key].is_string(), "{event}");
}

/// Rounds have separate annotations, and a denied request has them as well.
#[tokio::test(flavor = "multi_thread")]
async fn annotations_of_two_rounds_and_of_a_denial() {
    let (scene, file) = audited().await;
    let patch = json!([{"op": "add", "path": "/data/x", "value": "y"}]);
    let (a, b) = (scene.hook(allow()), scene.hook(answering(patch_of(&patch))));
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let webhooks = [scene.webhook("a.x.y", &a, again), scene.webhook("b.x.y", &b, json!({}))];
    scene.configure(MUTATING, &webhooks).await;
    let denial = json!({"allowed": false, "auditAnnotations": {"why": "so"}});
    let hook = scene.hook(answering(denial));
    scene.ask(VALIDATING, &hook, json!({})).await;
    let answer = scene.admin.post(MAPS, &map("m")).await;
    let found = annotations(&file, &answer).await;
    answer.expect(400);
    let keys: Vec<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "mutation.webhook.admission.k8s.io/round_0_index_0",
        "mutation.webhook.admission.k8s.io/round_0_index_1",
        "mutation.webhook.admission.k8s.io/round_1_index_0",
        "h.x.y/why",
    ] {
        assert!(keys.contains(&key), "{key}: {keys:?}");
    }
    assert!(!keys.contains(&"mutation.webhook.admission.k8s.io/round_1_index_1"), "{keys:?}");
}
