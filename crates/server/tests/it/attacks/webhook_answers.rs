//! Answers of webhooks that are no reviews, which may be those of services that users cannot reach.

use ::audit::{AuditLog, Auditor, LogRotationOptions, Policy};
use fake_http::{Answer, Leaf};
use serde_json::json;

use crate::admission_hooks::{HookAuthority, MUTATING, VALIDATING, register};
use crate::cluster::Cluster;
use crate::hooks::{Hooks, rbac};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// A part of each answer that no user may see.
const PRIVATE: &str = "5ecret-0f-the-far-side";

/// Everything about every request.
const POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "rules": [{"level": "RequestResponse"}]}"#;

/// Answers that a service gives that is no webhook.
fn answers() -> Vec<Answer> {
    let mut answers: Vec<Answer> = [400, 401, 403, 404, 406, 415, 418, 500, 502, 503, 504, 599]
        .into_iter()
        .flat_map(|status| {
            [Some("text/plain"), Some("text/html"), Some("application/json"), None]
                .map(|kind| Answer::json(format!("{PRIVATE}\n")).content_type(kind).status(status))
        })
        .collect();
    answers.push(Answer::redirect(&format!("https://{PRIVATE}.internal/")));
    answers.push(Answer::json(PRIVATE));
    answers.push(Answer::json(json!({"data": PRIVATE}).to_string()));
    answers.push(Answer::json(json!({"response": {"allowed": PRIVATE}}).to_string()));
    answers.push(Answer::json(json!({"response": PRIVATE}).to_string()));
    answers.push(Answer::json(json!({"status": PRIVATE}).to_string()));
    answers.push(Answer::json(json!({"kind": {"k": PRIVATE}}).to_string()));
    answers
}

fn audit_everything(options: &mut server::ServerOptions, folder: &std::path::Path) {
    let (policy, _) = Policy::parse(POLICY.as_bytes()).expect("a policy");
    let log = AuditLog::open_log_file(&folder.join("audit.log"), LogRotationOptions::default())
        .expect("a log");
    options.auditor = Some(Auditor::with_log_backend(policy, log).expect("a thread"));
}

/// L5: what a webhook answers that is neither a review nor a `Status` reaches neither the client nor the
/// audit log.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_failed_calls_reach_nobody() {
    let cluster = Cluster::start_with(audit_everything).await;
    let hooks = HookAuthority::new();
    let peer = hooks.hook(Answer::json("{}"));
    for (path, policy) in [(VALIDATING, "Fail"), (MUTATING, "Ignore")] {
        let changes = json!({"failurePolicy": policy});
        let webhook = hooks.webhook("tenant.example.com", &peer, changes);
        register(&cluster, path, "tenant", &[webhook]).await;
    }
    let admin = cluster.admin();
    for answer in answers() {
        let shown = format!("{answer:?}");
        peer.replace(answer).expect("a script");
        let refused = admin.post(MAPS, &json!({"metadata": {"generateName": "m-"}})).await;
        let text = refused.text();
        assert_eq!(refused.code, 500, "{shown}: {text}");
        assert!(text.contains("failed calling webhook"), "{shown}: {text}");
        assert!(!text.contains(PRIVATE), "{shown}: {text}");
        let headers = format!("{:?}", refused.headers);
        assert!(!headers.contains(PRIVATE), "{shown}: {headers}");
    }
    let folder = cluster.stop(std::time::Duration::ZERO).await;
    let audit = std::fs::read_to_string(folder.path().join("audit.log")).expect("a log");
    assert!(audit.contains("failed calling webhook") && !audit.contains(PRIVATE));
}

/// L5: the same of authorization webhooks, whose errors stand in access reviews.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_failed_authorization_calls_reach_nobody() {
    let hooks = Hooks::new();
    let peer = hooks.service(&Leaf::loopback(), Answer::json("{}"));
    hooks.kubeconfig("w", &format!("https://{}/authorize", peer.address()));
    let plan = hooks.plan(&[rbac(), hooks.webhook("w", json!({"failurePolicy": "Deny"}))]);
    let cluster = hooks.cluster(&plan, audit_everything).await;
    let alice = cluster.alice();
    let question = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    // Errors of the service are tried again, each after a while, so one of them is enough.
    let is_cheap = |answer: &Answer| answer.status < 500 || answer.status == 503;
    let mut some: Vec<Answer> = answers().into_iter().filter(is_cheap).collect();
    // Answers of success are kept, so this one comes first.
    some.insert(0, Answer::json(PRIVATE).content_type(Some("text/plain")).status(500));
    for answer in some {
        let (shown, is_success) = (format!("{answer:?}"), answer.status == 200);
        peer.replace(answer).expect("a script");
        let review = alice.post(REVIEWS, &question).await;
        let text = review.text();
        assert_eq!(review.code, 201, "{shown}: {text}");
        assert_eq!(review.json()["status"]["allowed"], false, "{shown}: {text}");
        // A document without a status is a review without an opinion.
        let has_error = review.json()["status"]["evaluationError"].is_string();
        assert!(has_error || is_success, "{shown}: {text}");
        assert!(!text.contains(PRIVATE), "{shown}: {text}");
        let refused = alice.get(MAPS).await;
        assert!(!refused.text().contains(PRIVATE), "{shown}: {}", refused.text());
    }
    let folder = cluster.stop(std::time::Duration::ZERO).await;
    let audit = std::fs::read_to_string(folder.path().join("audit.log")).expect("a log");
    assert!(!audit.is_empty() && !audit.contains(PRIVATE));
}
