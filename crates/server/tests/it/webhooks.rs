//! Authorization webhooks and requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::audit::{AuditLog, Auditor, LogRotationOptions, Policy};
use authz_reload::AuthorizationOptions;
use fake_http::{Answer, Conduct, Leaf};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::hooks::{Hooks, LONG, abstain, allow, deny, rbac};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The samples of a metric, by their labels.
async fn samples(cluster: &Cluster, name: &str) -> Vec<String> {
    let text = cluster.admin().get("/metrics").await.text();
    let samples = text.lines().filter_map(|line| line.strip_prefix(name));
    samples.filter(|rest| rest.starts_with('{')).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_allows_and_denies() {
    let hooks = Hooks::new();
    let peer = hooks.peer("w", vec![allow(), deny(), abstain()]);
    let never = json!({"unauthorizedTTL": "1ms", "authorizedTTL": "1ms"});
    let plan = hooks.plan(&[hooks.webhook("w", never), rbac()]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let alice = cluster.alice();
    alice.get(MAPS).await.expect(200);
    // The test waits for a real process: the cached decision expires after 1 ms.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let denied = alice.get(MAPS).await.expect(403);
    let want = "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API \
                group \"\" in the namespace \"default\": because not";
    assert_eq!(denied["message"], want);
    // The test waits for a real process: the cached decision expires after 1 ms.
    tokio::time::sleep(Duration::from_millis(5)).await;
    alice.get(MAPS).await.expect(403);
    assert_eq!(peer.requests().len(), 3);
    // The server calls no webhook for superusers.
    cluster.admin().get(MAPS).await.expect(200);
    assert_eq!(peer.requests().len(), 3);
    let decisions = samples(&cluster, "apiserver_authorization_decisions_total").await;
    assert_eq!(
        decisions,
        [
            "{decision=\"allowed\",name=\"w\",type=\"Webhook\"} 1",
            "{decision=\"denied\",name=\"w\",type=\"Webhook\"} 1"
        ]
    );
}

/// A webhook that fails closed is an internal error; one that fails open leaves the decision to the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_webhook_follows_its_policy() {
    for (policy, code) in [("Deny", 500), ("NoOpinion", 500)] {
        let hooks = Hooks::new();
        let peer = hooks.peer("w", vec![Answer::json("garbage")]);
        let plan = hooks.plan(&[hooks.webhook("w", json!({"failurePolicy": policy})), rbac()]);
        let cluster = hooks.cluster(&plan, |_, _| {}).await;
        let refused = cluster.alice().get(MAPS).await;
        assert_eq!(refused.code, code, "{policy}");
        let text = refused.text();
        assert!(text.starts_with("Internal Server Error: \"/api/v1/"), "{text}");
        // A request that a later authorizer allows is allowed only if the webhook fails open.
        let discovery = cluster.alice().get("/api").await.code;
        assert_eq!(discovery, if policy == "Deny" { 500 } else { 200 });
        assert_eq!(peer.requests().len(), 2);
        let opened =
            samples(&cluster, "apiserver_authorization_webhook_evaluations_fail_open_total").await;
        let want: &[&str] =
            if policy == "Deny" { &[] } else { &["{name=\"w\",result=\"error\"} 2"] };
        assert_eq!(opened, want);
    }
}

/// The audit event names the webhooks that were skipped, also for the error of a match condition. It also names those
/// that failed and were passed over, and why.
#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_were_not_asked_are_told_in_the_audit() {
    let hooks = Hooks::new();
    let _peers = ["a", "b", "c", "e"].map(|name| hooks.peer(name, vec![abstain()]));
    let _failing = hooks.peer("d", vec![Answer::json("garbage")]);
    let when = |expression: &str| json!({"matchConditions": [{"expression": expression}]});
    let plan = hooks.plan(&[
        hooks.webhook("a", when("request.user == 'bob'")),
        hooks.webhook("b", when("request.user == 'alice'")),
        hooks.webhook("c", when("has(request.nonResourceAttributes)")),
        hooks.webhook("d", json!({})),
        hooks.webhook("e", when("request.nonResourceAttributes.path == '/'")),
        json!({"type": "AlwaysAllow", "name": "alwaysallow"}),
    ]);
    let cluster = hooks
        .cluster(&plan, |options, folder| {
            let policy = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
                "rules": [{"level": "Metadata"}]}"#;
            let (policy, _) = Policy::parse(policy.as_bytes()).expect("a policy");
            let log =
                AuditLog::open_log_file(&folder.join("audit.log"), LogRotationOptions::default())
                    .expect("a log");
            options.auditor = Some(Auditor::with_log_backend(policy, log).expect("a thread"));
        })
        .await;
    let answer = cluster.alice().get(MAPS).await;
    let id = answer.headers["audit-id"].to_str().unwrap().to_owned();
    answer.expect(200);
    let begun = Instant::now();
    let event = loop {
        let text = std::fs::read_to_string(cluster.folder().join("audit.log")).expect("a log");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let found = lines
            .into_iter()
            .find(|event| event["auditID"] == id.as_str() && event["stage"] == "ResponseComplete");
        match found {
            Some(event) => break event,
            None => assert!(begun.elapsed() < LONG, "no event"),
        }
        crate::polling::pause().await;
    };
    let annotation = |key: &str| event["annotations"][key].as_str().unwrap_or_default();
    assert_eq!(annotation("authorization.k8s.io/webhook-skipped"), "a,c,e", "{event}");
    let causes = annotation("authorization.portcullis.io/failed-open-by");
    assert_eq!(causes, "d: bad_answer, e: match_condition", "{event}");
    let by_cause = samples(&cluster, "portcullis_authorization_webhook_failed_open_total").await;
    assert!(by_cause.contains(&r#"{cause="bad_answer",name="d"} 1"#.to_owned()), "{by_cause:?}");
}

/// A request ends at its deadline, however long its webhooks take.
#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_of_a_request_bounds_its_webhooks() {
    let hooks = Hooks::new();
    let _peers = ["a", "b"].map(|name| hooks.peer(name, vec![Answer::misbehave(Conduct::Hang)]));
    let slow = || json!({"timeout": "30s"});
    let plan = hooks.plan(&[hooks.webhook("a", slow()), hooks.webhook("b", slow()), rbac()]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let begun = Instant::now();
    let late = cluster.alice().get(&format!("{MAPS}?timeout=1s")).await.expect(504);
    assert_eq!(late["reason"], "Timeout");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let results = samples(&cluster, "authorization_attempts_total").await;
    assert!(results.contains(&"{result=\"error\"} 1".to_owned()), "{results:?}");
}

/// A request that is under way goes on with the authorizers that it began with.
/// L29: also across a reload.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_keeps_the_authorizers_that_it_began_with() {
    let hooks = Hooks::new();
    let peer = hooks.peer("w", vec![deny().delay(Duration::from_millis(500))]);
    let plan = hooks.plan(&[hooks.webhook("w", json!({})), rbac()]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let alice = cluster.alice();
    let old = tokio::spawn(async move { alice.get(MAPS).await });
    assert!(peer.wait_requests(1, LONG));
    let open = hooks.plan(&[json!({"type": "AlwaysAllow", "name": "alwaysallow"})]);
    cluster.authorizer_replacer()(&Arc::clone(&hooks.generation(&open).authorizer_slots))
        .expect("other authorizers");
    cluster.alice().get(MAPS).await.expect(200);
    old.await.unwrap().expect(403);
    assert_eq!(peer.requests().len(), 1);
    // Objects change on their own, and the authorizers stay.
    cluster.admin().post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    cluster.admin().post(roles, &role).await.expect(201);
    cluster.alice().get(MAPS).await.expect(200);
}

/// An authorization webhook can be a service of the cluster itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_inside_the_cluster() {
    let hooks = Hooks::new();
    let file = hooks.write(
        "hooks.yaml",
        "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n\
         kind: ExternalAuthorizationHookConfiguration\n\
         externalAuthorizationHooks:\n\
         - name: webhook-name\n  clientConfig:\n    serverCaFile: ca.pem\n    \
         service: {name: some-service, namespace: default}\n",
    );
    let plan = hooks.plan_of(&AuthorizationOptions {
        modes: Some(vec!["RBAC".to_owned(), "Webhook".to_owned()]),
        webhook_config_file: Some(file),
        webhook_authorized_ttl_ns: Some(0),
        webhook_unauthorized_ttl_ns: Some(0),
        ..Default::default()
    });
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    // The service does not exist yet.
    let refused = alice.get(MAPS).await;
    assert_eq!(refused.code, 500);
    assert!(refused.text().contains("services \"some-service\" not found"), "{}", refused.text());

    let name = "some-service.default.svc";
    let beta = |status: Value| {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1beta1",
            "kind": "SubjectAccessReview",
            "status": status,
        });
        Answer::json(review.to_string())
    };
    let allowing = || vec![beta(json!({"allowed": true}))];
    let first = hooks.service(&Leaf::server(&[name]), allowing());
    let service = json!({
        "metadata": {"name": "some-service"},
        "spec": {"ports": [{"name": "https", "port": 443}]},
    });
    admin.post("/api/v1/namespaces/default/services", &service).await.expect(201);
    let slice = |port: u16| {
        json!({
            "metadata": {
                "name": "some-service-1",
                "labels": {"kubernetes.io/service-name": "some-service"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": port}],
        })
    };
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    admin.post(slices, &slice(first.address().port())).await.expect(201);
    alice.get(MAPS).await.expect(200);
    let request = &first.requests()[0];
    assert_eq!(request.target, "/?timeout=30s");
    assert_eq!(request.header("host"), Some(name));
    assert_eq!(first.handshakes()[0].server_name.as_deref(), Some(name));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["apiVersion"], "authorization.k8s.io/v1beta1");

    // The endpoint moves: the next connection goes to the new one.
    let second = hooks.service(&Leaf::server(&[name]), allowing());
    let path = format!("{slices}/some-service-1");
    admin.put(&path, &slice(second.address().port())).await.expect(200);
    first.close_connections().unwrap();
    alice.get(MAPS).await.expect(200);
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));

    // A certificate for another name is rejected.
    let other = hooks.service(&Leaf::server(&["other.default.svc"]), allowing());
    admin.put(&path, &slice(other.address().port())).await.expect(200);
    second.close_connections().unwrap();
    assert_eq!(alice.get(MAPS).await.code, 500);
    assert!(other.requests().is_empty());
}

/// Seven webhooks with different failure policies and match conditions are in one chain.
#[tokio::test(flavor = "multi_thread")]
async fn several_webhooks_in_one_chain() {
    let hooks = Hooks::new();
    let garbage = || vec![Answer::json("garbage")];
    let slow = vec![allow().delay(Duration::from_secs(2))];
    let selector = fake_http::Script::rule(|request| {
        let is_allowed = String::from_utf8_lossy(&request.body).contains("\"key\":\"allow\"");
        if is_allowed { allow() } else { abstain() }
    });
    let peers = [
        ("error", hooks.peer("error", garbage())),
        ("timeout", hooks.peer("timeout", slow)),
        ("deny", hooks.peer("deny", vec![deny()])),
        ("selector", hooks.peer("selector", selector)),
        ("noop", hooks.peer("noop", vec![abstain()])),
        ("failopen", hooks.peer("failopen", garbage())),
        ("allow", hooks.peer("allow", vec![allow()])),
    ];
    let webhook = |name: &str, policy: &str, timeout: &str, conditions: &[&str]| {
        let conditions: Vec<Value> =
            conditions.iter().map(|own| json!({"expression": own})).collect();
        let changes = json!({
            "failurePolicy": policy,
            "timeout": timeout,
            "authorizedTTL": "1ms",
            "unauthorizedTTL": "1ms",
            "matchConditions": conditions,
        });
        hooks.webhook(name, changes)
    };
    let resource = "has(request.resourceAttributes)";
    let fail = "request.resourceAttributes.namespace == 'fail'";
    let labelled = "has(request.resourceAttributes.labelSelector) && \
                    request.resourceAttributes.labelSelector.requirements.exists(r, r.key == \
                    'testselector')";
    let plan = hooks.plan(&[
        webhook(
            "error",
            "Deny",
            "5s",
            &[resource, fail, "request.resourceAttributes.name == 'error'"],
        ),
        webhook("timeout", "Deny", "1s", &[fail, "request.resourceAttributes.name == 'timeout'"]),
        webhook("deny", "NoOpinion", "5s", &[resource, fail]),
        webhook("selector", "NoOpinion", "5s", &[resource, labelled]),
        webhook("noop", "Deny", "5s", &[]),
        webhook("failopen", "NoOpinion", "5s", &[]),
        webhook("allow", "NoOpinion", "5s", &[]),
    ]);
    let cluster = hooks.cluster(&plan, |_, _| {}).await;
    let maps = |verb: &str, namespace: &str, name: &str| {
        json!({"resourceAttributes": {
            "verb": verb, "version": "v1", "resource": "configmaps", "namespace": namespace,
            "name": name,
        }})
    };
    let path = json!({"nonResourceAttributes": {"path": "/x", "verb": "list"}});
    let requirement = |key: &str| json!({"key": key, "operator": "Exists"});
    let pods = json!({"resourceAttributes": {
        "verb": "list", "version": "v1", "resource": "pods",
        "labelSelector": {"requirements": [requirement("testselector"), requirement("allow")]},
    }});
    // The review, whether it is allowed (otherwise it is denied), the webhooks that were called,
    // and the numbers of excluded webhooks, failed conditions and ignored failures.
    type Row<'a> = (&'a str, Value, bool, &'a [&'a str], [usize; 3]);
    let rows: [Row<'_>; 6] = [
        ("failure with policy Deny", maps("get", "fail", "error"), false, &["error"], [0, 0, 0]),
        (
            "timeout with policy Deny",
            maps("get", "fail", "timeout"),
            false,
            &["timeout"],
            [1, 0, 0],
        ),
        ("denial", maps("list", "fail", ""), false, &["deny"], [2, 0, 0]),
        (
            "failing open until one allows",
            maps("list", "allow", ""),
            true,
            &["noop", "failopen", "allow"],
            [4, 0, 1],
        ),
        ("a condition that cannot be evaluated", path, false, &[], [1, 1, 0]),
        ("label selector", pods, true, &["selector"], [3, 0, 0]),
    ];
    let mut before = counts(&cluster).await;
    for (id, mut spec, is_allowed, called, want) in rows {
        spec["user"] = json!("alice");
        let answer = cluster.admin().post(REVIEWS, &json!({"spec": spec})).await.expect(201);
        let status = &answer["status"];
        assert_eq!(status["allowed"], is_allowed, "{id}: {answer}");
        assert_eq!(status["denied"].as_bool().unwrap_or_default(), !is_allowed, "{id}: {answer}");
        for (name, peer) in &peers {
            let n_calls = peer.take_requests().len();
            assert_eq!(n_calls, usize::from(called.contains(name)), "{id}: {name}");
        }
        let after = counts(&cluster).await;
        let grown = [0, 1, 2].map(|index| after[index] - before[index]);
        assert_eq!(grown, want, "{id}: exclusions, condition errors, failed open");
        before = after;
    }
    let results = samples(&cluster, "apiserver_authorization_webhook_evaluations_total").await;
    let timeout = "{name=\"timeout\",result=\"timeout\"} 1".to_owned();
    assert!(results.contains(&timeout), "{results:?}");
}

/// Exclusions, failed conditions and calls that failed open, over all webhooks.
async fn counts(cluster: &Cluster) -> [usize; 3] {
    let mut counts = [0; 3];
    for (index, name) in [
        "apiserver_authorization_match_condition_exclusions_total",
        "apiserver_authorization_match_condition_evaluation_errors_total",
        "apiserver_authorization_webhook_evaluations_fail_open_total",
    ]
    .into_iter()
    .enumerate()
    {
        for sample in samples(cluster, name).await {
            let (_, number) = sample.rsplit_once(' ').expect("a number");
            counts[index] += number.parse::<usize>().expect("a number");
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_is_told_to_those_who_may_ask() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_by(
        folder,
        |_, _| {},
        |options| {
            options.authorization_status_json = Arc::new(|| json!({"source": "flags"}));
        },
    )
    .await;
    let path = "/portcullis/authorization/status";
    let status = json!({"source": "flags", "undecodableObjects": []});
    assert_eq!(cluster.admin().get(path).await.expect(200), status);
    cluster.alice().get(path).await.expect(403);
    cluster.admin().post(path, &json!({})).await.expect(405);
}
