//! Leaks and growth in audit events, responses, metric series and watches.

use http::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, write_audit_log};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=1";

const POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]
}"#;

async fn audited() -> Cluster {
    Cluster::start_with(|options, folder| write_audit_log(options, folder, POLICY)).await
}

/// The lines of the audit log about one request, once the last is written.
async fn lines(cluster: &Cluster, audit_id: &str) -> Vec<String> {
    for _ in 0..500 {
        let text = std::fs::read_to_string(cluster.folder().join("audit.log")).expect("a log");
        let id = format!("\"auditID\":\"{audit_id}\"");
        let own = text.lines().filter(|line| line.contains(&id)).map(str::to_owned);
        let own: Vec<String> = own.collect();
        if own.last().is_some_and(|line| line.contains("\"ResponseComplete\"")) {
            return own;
        }
        crate::polling::pause().await;
    }
    panic!("{audit_id} was not recorded to its end");
}

/// The client hears what is wrong with its Secret; the audit log does not repeat it.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_secret_is_not_quoted_in_the_audit_log() {
    let cluster = audited().await;
    let admin = cluster.admin();
    let made = json!({"metadata": {"name": "db"}, "stringData": {"a": "b"}});
    admin.post(SECRETS, &made).await.expect(201);
    let db = format!("{SECRETS}/db");
    let json = "application/json";
    let cases = [
        ("unread", Method::POST, SECRETS, json, r#"{"stringData":{"p":"hunter2"}"#.to_owned()),
        ("no-json", Method::POST, SECRETS, json, "hunter2".to_owned()),
        ("yaml", Method::POST, SECRETS, "application/yaml", "p: hunter2\n x: [".to_owned()),
        ("no-map", Method::POST, SECRETS, json, r#"{"data":"hunter2"}"#.to_owned()),
        (
            "elsewhere",
            Method::POST,
            MAPS,
            json,
            r#"{"kind":"Secret","data":{"p":"hunter2""#.to_owned(),
        ),
        (
            "base64",
            Method::POST,
            SECRETS,
            json,
            r#"{"metadata":{"name":"x"},"data":{"p":"hunter2 is no base64"}}"#.to_owned(),
        ),
        (
            "patch",
            Method::PATCH,
            &db,
            "application/merge-patch+json",
            r#"{"data":["hunter2"]}"#.to_owned(),
        ),
        (
            "broken",
            Method::PATCH,
            &db,
            "application/merge-patch+json",
            r#"{"data":{"p":"hunter2"#.to_owned(),
        ),
    ];
    for (id, method, path, content_type, body) in cases {
        let headers = [("audit-id", id), ("content-type", content_type)];
        let answer = cluster.admin().send(method, path, &headers, body).await;
        assert!(matches!(answer.code, 400 | 422), "{id}: {}", answer.text());
        for line in lines(&cluster, id).await {
            let hexadecimal = "68756e74657232";
            assert!(!line.contains("hunter2") && !line.contains(hexadecimal), "{id}: {line}");
        }
    }
}

/// Credentials in a query are masked, however their names are written.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_a_query_are_not_in_the_audit_log() {
    let cluster = audited().await;
    let names =
        ["auth", "jwt", "sig", "key", "code", "session", "CODE", "%6bey", "token%3Dx", "a%3Ftoken"];
    for (n, name) in names.into_iter().enumerate() {
        let id = format!("query-{n}");
        let path = format!("{MAPS}?limit=1&{name}=hunter2&pretty=1");
        let headers = [("audit-id", id.as_str())];
        cluster.admin().send(Method::GET, &path, &headers, "").await.expect(200);
        for line in lines(&cluster, &id).await {
            assert!(line.contains("limit=1") && line.contains("pretty=1"), "{line}");
            assert!(!line.contains("hunter2"), "{name}: {line}");
        }
    }
    let headers = [("audit-id", "no-sign")];
    let path = format!("{MAPS}?token%3Dhunter2");
    cluster.admin().send(Method::GET, &path, &headers, "").await.expect(200);
    assert!(lines(&cluster, "no-sign").await.iter().all(|line| !line.contains("hunter2")));
}

/// A16: an object with 150,000 faults is answered with 100 of them and a count, and recorded likewise.
#[tokio::test(flavor = "multi_thread")]
async fn the_causes_of_a_refusal_are_bounded() {
    const N_FAULTS: usize = 150_000;
    let cluster = audited().await;
    let labels: serde_json::Map<String, Value> =
        (0..N_FAULTS).map(|n| (format!("-{n}"), json!(""))).collect();
    let body = json!({"metadata": {"name": "a", "labels": labels}});
    let headers = [("audit-id", "faults"), ("content-type", "application/json")];
    let answer = cluster.admin().send(Method::POST, MAPS, &headers, body.to_string()).await;
    assert!(answer.bytes.len() < 256 << 10, "{} bytes", answer.bytes.len());
    let status = answer.expect(422);
    let causes = status["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 101);
    let rest = format!("and {} more errors", N_FAULTS - 100);
    assert_eq!(causes[100]["message"], rest.as_str());
    assert!(status["message"].as_str().unwrap().ends_with(&format!(", {rest}]")));
    let lines = lines(&cluster, "faults").await;
    let event: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(event["responseStatus"]["details"]["causes"].as_array().unwrap().len(), 101);
    assert_eq!(event["responseObject"]["details"]["causes"].as_array().unwrap().len(), 101);
}

/// The metric series of a resource are removed with its definition.
#[tokio::test(flavor = "multi_thread")]
async fn the_series_of_a_definition_go_with_it() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget",
                "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let series = async || {
        let text = admin.get("/metrics").await.text();
        text.lines().filter(|line| line.contains("widgets")).map(str::to_owned).collect::<Vec<_>>()
    };
    admin.post(definitions, &definition).await.expect(201);
    for _ in 0..500 {
        if admin.get(widgets).await.code == 200 {
            break;
        }
        crate::polling::pause().await;
    }
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    admin.post(widgets, &widget).await.expect(201);
    drop(admin.watch(&format!("{widgets}?watch=1")).await);
    assert!(series().await.len() > 20);
    admin.delete(&format!("{definitions}/widgets.example.com")).await;
    for _ in 0..500 {
        if admin.get(&format!("{definitions}/widgets.example.com")).await.code == 404 {
            break;
        }
        crate::polling::pause().await;
    }
    assert_eq!(series().await, Vec::<String>::new());
}

/// A user opens watches up to the limit. Other users are served, and watches that end free their
/// permits.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_a_share_of_the_watches() {
    let cluster = Cluster::start_with(|options, _| {
        (options.watches_max, options.watches_per_user_max) = (6, 3);
    })
    .await;
    let (admin, alice, bob) = (cluster.admin(), cluster.alice(), cluster.bob());
    let binding = json!({"metadata": {"name": "watchers"},
        "subjects": [{"kind": "User", "name": "alice"}, {"kind": "User", "name": "bob"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.post(bindings, &binding).await.expect(201);
    let mut hers = Vec::new();
    for _ in 0..3 {
        hers.push(alice.watch(WATCH).await);
    }
    let refused = alice.get(WATCH).await;
    assert_eq!(refused.headers["retry-after"], "1");
    let refused = refused.expect(429);
    assert_eq!(refused["reason"], "TooManyRequests");
    let message = "Too many requests: 3 watches of this user are open, which is the most for one user, \
                   please try again later";
    assert_eq!(refused["message"], message);
    // Others are served, and so is everything of hers that is no watch.
    alice.get(MAPS).await.expect(200);
    let mut his = Vec::new();
    for _ in 0..3 {
        his.push(bob.watch(WATCH).await);
    }
    let full = bob.get(WATCH).await.expect(429);
    assert_eq!(
        full["message"],
        "Too many requests: 6 watches are open, which is the most, please try again later"
    );
    let mut told = admin.watch(WATCH).await;
    admin.post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    assert_eq!(told.next().await.unwrap()["type"], "ADDED");
    assert_eq!(his[0].next().await.unwrap()["type"], "ADDED");
    // A watch that ends makes room.
    hers.pop();
    for _ in 0..500 {
        let (parts, body) = alice.begin(Method::GET, WATCH, &[], "").await;
        if parts.status == 200 {
            return;
        }
        drop(body);
        crate::polling::pause().await;
    }
    panic!("the place of a watch that ended did not come back");
}
