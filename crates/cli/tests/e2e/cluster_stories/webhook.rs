//! `portcullis webhook` beside a cluster.

use std::time::{Duration, Instant};

use fake_http::Authority;
use http::Method;
use serde_json::{Value, json};

use super::cluster::{Cluster, portcullis};
use super::webhook_process::{Webhook, post, review_of, try_post, wait_until};

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: prod}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: prod}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: ana}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: dev}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: decision-reader}
rules: [{nonResourceURLs: [/portcullis/decisions/*, /metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: decision-readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: decision-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: auditor}]
";

/// The webhook of this chain cannot be reached, so it denies what its condition matches.
const CHAIN: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: guard
  webhook:
    timeout: 1s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    authorizedTTL: 1s
    unauthorizedTTL: 1s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: GUARD}
    matchConditions: [{expression: \"request.user == 'mallory'\"}]
- type: RBAC
  name: rbac
";

const GUARD: &str = "
current-context: guard
contexts: [{name: guard, context: {cluster: guard, user: guard}}]
clusters: [{name: guard, cluster: {server: 'https://127.0.0.1:1/'}}]
users: [{name: guard, user: {}}]
";

fn status(answer: &(u16, Value)) -> (u16, Option<bool>, Option<bool>) {
    (answer.0, answer.1["status"]["allowed"].as_bool(), answer.1["status"]["denied"].as_bool())
}

fn decision_id(answer: &(u16, Value)) -> String {
    let reason = answer.1["status"]["reason"].as_str().unwrap();
    let (_, id) = reason.split_once("[decision ").unwrap();
    id.trim_end_matches(']').to_owned()
}

fn kubeconfig_flag(cluster: &Cluster) -> String {
    format!("--kubeconfig={}", cluster.kubeconfig().display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_decides_by_the_objects_of_a_cluster() {
    let cluster = tokio::task::spawn_blocking(|| {
        let cluster = Cluster::start();
        cluster.create(OBJECTS);
        cluster
    });
    let cluster = cluster.await.unwrap();
    let guard = cluster.write("guard.kubeconfig", GUARD);
    let chain = cluster.write("chain.yaml", &CHAIN.replace("GUARD", guard.to_str().unwrap()));
    let chain = format!("--authorization-config={}", chain.display());
    let webhook = Webhook::start(&[&kubeconfig_flag(&cluster), &chain]);
    webhook.wait_until_ready().await;
    let client = webhook.caller("kube-apiserver");

    // Allow, no opinion and deny.
    let allowed = post(&client, &review_of("ana")).await;
    assert_eq!(status(&allowed), (200, Some(true), None), "{allowed:?}");
    let reason = allowed.1["status"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("RBAC: allowed by RoleBinding \"readers/prod\""), "{reason}");
    let no_opinion = post(&client, &review_of("bob")).await;
    assert_eq!(status(&no_opinion), (200, Some(false), None), "{no_opinion:?}");
    let denied = post(&client, &review_of("mallory")).await;
    assert_eq!(status(&denied), (200, Some(false), Some(true)), "{denied:?}");

    // Version v1beta1, whose groups have another name, and all fields of v1.
    let mut beta = review_of("x");
    beta["apiVersion"] = "authorization.k8s.io/v1beta1".into();
    beta["spec"]["group"] = json!(["dev"]);
    let answer = post(&client, &beta).await;
    assert_eq!(status(&answer), (200, Some(true), None), "{answer:?}");
    assert_eq!(answer.1["apiVersion"], "authorization.k8s.io/v1beta1");
    let mut full = review_of("x");
    full["spec"]["groups"] = json!(["dev"]);
    full["spec"]["uid"] = "1".into();
    full["spec"]["extra"] = json!({"example.com/scope": ["a", "b"]});
    let requirement = json!({"key": "spec.nodeName", "operator": "In", "values": ["n1"]});
    full["spec"]["resourceAttributes"]["fieldSelector"] = json!({"requirements": [requirement]});
    let requirement = json!({"key": "app", "operator": "Exists"});
    full["spec"]["resourceAttributes"]["labelSelector"] = json!({"requirements": [requirement]});
    let answer = post(&client, &full).await;
    assert_eq!(status(&answer), (200, Some(true), None), "{answer:?}");
    assert_eq!(answer.1["spec"], full["spec"]);
    let bad = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "TokenReview"});
    assert_eq!(post(&client, &bad).await.0, 400);

    explain_decisions(&webhook, &allowed, &no_opinion, &denied);

    // A revocation counts within a moment, and the earlier decision is explained by the policy of its time.
    let revoked = Instant::now();
    let deleted = cluster.kubectl(&["delete", "rolebinding", "readers", "-n", "prod"]);
    assert!(deleted.status.success(), "{deleted:?}");
    let deleted_after = revoked.elapsed();
    let seen = wait_until(
        || webhook.log(),
        async || status(&post(&client, &review_of("ana")).await) == (200, Some(false), None),
    );
    let seen = seen.await;
    println!("the write took {deleted_after:?}, the webhook saw it {seen:?} later");
    assert!(seen < Duration::from_secs(5), "{seen:?}");
    let (code, out, err) = explain(&webhook, "auditor", &decision_id(&allowed));
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("readers"), "{out}");

    // Metrics need a permission.
    let metrics = webhook.caller("auditor").get_text("/metrics").await;
    assert!(
        metrics.1.contains("portcullis_webhook_reviews_total{result=\"allow\"}"),
        "{metrics:?}"
    );
    assert_eq!(client.ask(Method::GET, "/metrics", &Value::Null).await.0, 403);
    tokio::task::spawn_blocking(move || drop(cluster)).await.unwrap();
}

/// Runs `portcullis explain --decision` with the certificate of a caller.
fn explain(webhook: &Webhook, caller: &str, id: &str) -> (i32, String, String) {
    webhook.write_caller(caller);
    let file = |name: &str| webhook.file(name).display().to_string();
    let server = format!("https://{}", webhook.address);
    portcullis(&[
        "explain",
        "--decision",
        id,
        "--server",
        &server,
        "--certificate-authority",
        &file("serving.crt"),
        "--client-certificate",
        &file(&format!("{caller}.crt")),
        "--client-key",
        &file(&format!("{caller}.key")),
    ])
}

fn explain_decisions(
    webhook: &Webhook,
    allowed: &(u16, Value),
    no_opinion: &(u16, Value),
    denied: &(u16, Value),
) {
    for (answer, want_code, wanted) in [
        (
            allowed,
            0,
            &["ALLOWED  ana get pods in namespace \"prod\"", "readers", "rbac: allows"][..],
        ),
        (no_opinion, 1, &["DENIED  bob get pods", "no authorizer has an opinion"]),
        (denied, 1, &["DENIED  mallory get pods", "guard: denies", "rbac: not asked"]),
    ] {
        let (code, out, err) = explain(webhook, "auditor", &decision_id(answer));
        assert_eq!(code, want_code, "{out}{err}");
        assert!(wanted.iter().all(|text| out.contains(text)), "{out}");
    }
    // Another caller may ask for decisions, and not for their explanations.
    let (code, out, err) = explain(webhook, "kube-apiserver", &decision_id(allowed));
    assert!(code == 3 && out.is_empty() && err.contains("forbidden"), "{code} {out}{err}");
    let (code, _, err) = explain(webhook, "auditor", "00000000-00000000");
    assert!(code == 3 && err.contains("has no decision"), "{err}");
}

/// No caller without a certificate of the authority, or without an allowed name, gets an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_callers_with_a_certificate_get_answers() {
    let folder = crate::server::directory();
    let objects = folder.path().join("objects.yaml");
    std::fs::write(&objects, OBJECTS).unwrap();
    let objects = objects.to_str().unwrap();
    let webhook = Webhook::start(&["-f", objects, "--allowed-client-names=kube-apiserver"]);
    webhook.wait_until_ready().await;
    let review = review_of("ana");
    let allowed = post(&webhook.caller("kube-apiserver"), &review).await;
    assert_eq!(status(&allowed), (200, Some(true), None), "{allowed:?}");
    assert_eq!(post(&webhook.caller("other"), &review).await.0, 403);
    let stranger = webhook.client_of(&Authority::new("stranger").unwrap(), "kube-apiserver");
    assert_eq!(post(&stranger, &review).await.0, 401);
    let anonymous = webhook.client_without_certificate();
    assert!(try_post(&anonymous, &review).await.is_none(), "the handshake fails");
    assert!(!anonymous.is_ready().await);
    // The port for probes answers nothing else.
    let probe = webhook.probe();
    assert_eq!(probe.get_text("/authorize").await.0, 404);
    assert_eq!(probe.get_text("/metrics").await.0, 404);
}

/// Manifests and certificates are read again, and SIGTERM ends the webhook.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_followed_without_a_restart() {
    let folder = crate::server::directory();
    let objects = folder.path().join("objects.yaml");
    std::fs::write(&objects, OBJECTS).unwrap();
    let mut webhook = Webhook::start(&["-f", objects.to_str().unwrap()]);
    webhook.wait_until_ready().await;
    let client = webhook.caller("kube-apiserver");
    assert_eq!(status(&post(&client, &review_of("zoe")).await), (200, Some(false), None));
    std::fs::write(&objects, OBJECTS.replace("name: ana", "name: zoe")).unwrap();
    wait_until(
        || webhook.log(),
        async || status(&post(&client, &review_of("zoe")).await) == (200, Some(true), None),
    )
    .await;
    assert_eq!(status(&post(&client, &review_of("ana")).await), (200, Some(false), None));
    // A file with errors changes nothing.
    std::fs::write(&objects, "kind: Role\napiVersion: rbac.authorization.k8s.io/v1\nrules: 7")
        .unwrap();
    wait_until(|| webhook.log(), async || webhook.log().contains("cannot be read again")).await;
    assert_eq!(status(&post(&client, &review_of("zoe")).await), (200, Some(true), None));

    let rotated = webhook.rotate_serving_certificate();
    wait_until(|| webhook.log(), async || try_post(&rotated, &review_of("zoe")).await.is_some())
        .await;
    assert_eq!(webhook.terminate(), Some(0), "{}", webhook.log());
}

/// Before the first sync, and again some seconds after the cluster has gone, every answer is 503.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_cluster_there_is_no_decision() {
    let cluster = tokio::task::spawn_blocking(|| {
        let cluster = Cluster::start();
        cluster.create(OBJECTS);
        cluster
    });
    let cluster = cluster.await.unwrap();
    let webhook = Webhook::start(&[&kubeconfig_flag(&cluster), "--max-policy-age=3s"]);
    webhook.wait_until_ready().await;
    let client = webhook.caller("kube-apiserver");
    let review = review_of("ana");
    assert_eq!(status(&post(&client, &review).await), (200, Some(true), None));
    // The proof is renewed: more than the time of the flag passes.
    let renewed_until = Instant::now() + Duration::from_secs(5);
    wait_until(
        || webhook.log(),
        async || {
            let answer = post(&client, &review).await;
            assert_eq!(status(&answer), (200, Some(true), None), "{answer:?} {}", webhook.log());
            Instant::now() > renewed_until
        },
    )
    .await;

    let stopped = Instant::now();
    tokio::task::spawn_blocking(move || drop(cluster)).await.unwrap();
    wait_until(
        || webhook.log(),
        async || {
            let answer = post(&client, &review).await;
            match answer.0 {
                503 => true,
                // Until then the answers are those of the last proven policy.
                _ => {
                    assert_eq!(status(&answer), (200, Some(true), None), "{answer:?}");
                    false
                }
            }
        },
    )
    .await;
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    let answer = post(&client, &review).await;
    assert_eq!((answer.0, &answer.1["kind"]), (503, &json!("Status")), "{answer:?}");
    assert_eq!(webhook.probe().get_text("/readyz").await.0, 500);
    assert_eq!(webhook.probe().get_text("/livez").await.0, 200);

    let kubeconfig = webhook.file("gone.kubeconfig");
    std::fs::write(&kubeconfig, GUARD).unwrap();
    let unsynced = Webhook::start(&[&format!("--kubeconfig={}", kubeconfig.display())]);
    let answer = post(&unsynced.caller("kube-apiserver"), &review).await;
    assert_eq!(answer.0, 503, "{answer:?}");
    let message = answer.1["message"].as_str().unwrap();
    assert!(message.contains("has not synced yet"), "{message}");
}

#[test]
fn the_node_authorizer_is_refused() {
    let folder = crate::server::directory();
    let chain = folder.path().join("chain.yaml");
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
                authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]\n";
    std::fs::write(&chain, text).unwrap();
    let objects = folder.path().join("objects.yaml");
    std::fs::write(&objects, OBJECTS).unwrap();
    let authority = Authority::new("a").unwrap();
    let leaf = fake_http::Leaf::loopback();
    let issued = authority.issue(&leaf).unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).display().to_string()
    };
    let (certificate, key) =
        (file("tls.crt", &issued.certificate_pem), file("tls.key", &issued.key_pem));
    let (code, _, err) = portcullis(&[
        "webhook",
        "--secure-port=0",
        "-f",
        objects.to_str().unwrap(),
        "--authorization-config",
        chain.to_str().unwrap(),
        "--tls-cert-file",
        &certificate,
        "--tls-private-key-file",
        &key,
        "--client-ca-file",
        &file("ca.crt", &authority.pem()),
    ]);
    assert!(code == 3 && err.contains("`Node` cannot be in the chain of the webhook"), "{err}");
}
