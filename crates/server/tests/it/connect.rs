//! Requests that become connections to a node: `exec`, `attach`, `portforward` and `proxy`.

use http::Method;
use serde_json::{Value, json};

use crate::admission_hooks::{HookAuthority, VALIDATING, allow, asked, deny, register, rule};
use crate::client::Client;
use crate::cluster::{Cluster, write_audit_log};

const PODS: &str = "/api/v1/namespaces/default/pods";
const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  resources: [{group: "", resources: [pods/exec]}]
- level: None
"#;
const NO_KUBELET: &str = "no kubelet is connected to this server";

async fn add_objects(admin: &Client) {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "image": "i"}]}});
    admin.post(PODS, &pod).await.expect(201);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    admin.post("/api/v1/namespaces/default/services", &service).await.expect(201);
    admin.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
}

/// Allows a user some verbs on resources of the core group.
async fn grant(admin: &Client, user: &str, verbs: &[&str], resources: &[&str]) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"verbs": verbs, "apiGroups": [""], "resources": resources}]);
    let name = format!("{user}-{}", verbs.join("-"));
    let role = json!({"metadata": {"name": name}, "rules": rules});
    admin.post(&format!("{rbac}/clusterroles"), &role).await.expect(201);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    admin.post(&format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
}

/// L1: no request becomes a tunnel, and nothing of its body is read.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_connected_and_the_answer_says_so() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    add_objects(&admin).await;
    let services = "/api/v1/namespaces/default/services";
    for (method, path, code, message) in [
        (Method::GET, format!("{PODS}/p/exec?command=sh"), 503, NO_KUBELET),
        (Method::POST, format!("{PODS}/p/exec?command=sh"), 503, NO_KUBELET),
        (Method::GET, format!("{PODS}/p/attach?stdin=true"), 503, NO_KUBELET),
        (Method::POST, format!("{PODS}/p/portforward?ports=80"), 503, NO_KUBELET),
        (Method::GET, format!("{PODS}/p/proxy"), 503, NO_KUBELET),
        (Method::PUT, format!("{PODS}/p:8080/proxy/a/b?timeout=soon"), 503, NO_KUBELET),
        (Method::DELETE, format!("{PODS}/https:p:8443/proxy/a"), 503, NO_KUBELET),
        (Method::PATCH, format!("{services}/s:80/proxy/"), 503, NO_KUBELET),
        (Method::POST, "/api/v1/nodes/n/proxy/run/x".to_owned(), 503, NO_KUBELET),
        (Method::GET, format!("{PODS}/none/exec"), 404, "pods \"none\" not found"),
        (Method::GET, format!("{services}/none:80/proxy"), 404, "services \"none\" not found"),
        (Method::GET, "/api/v1/nodes/none/proxy".to_owned(), 404, "nodes \"none\" not found"),
        (Method::GET, format!("{PODS}/ftp:p:21/proxy"), 400, "invalid pod request \"ftp:p:21\""),
        (Method::POST, format!("{PODS}/p/exec?dryRun=All"), 400, "dryRun is not supported"),
        (
            Method::POST,
            format!("{PODS}/p/portforward?ports=x"),
            400,
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
    ] {
        // The client accepts what the peer of the connection sends, which may be anything.
        let headers = [("accept", "text/html"), ("content-type", "text/plain")];
        let answer = admin.send(method.clone(), &path, &headers, "not JSON".to_owned()).await;
        let answer = answer.expect(code);
        assert_eq!(answer["message"], message, "{method} {path}");
        assert_eq!(answer["kind"], "Status", "{method} {path}");
    }
    for (method, path) in [
        (Method::PUT, format!("{PODS}/p/exec")),
        (Method::DELETE, format!("{PODS}/p/attach")),
        (Method::PATCH, format!("{PODS}/p/portforward")),
    ] {
        admin.send(method, &path, &[], "{}".to_owned()).await.expect(405);
    }
    for path in [format!("{PODS}/p/exec/more"), format!("{services}/s/exec")] {
        admin.get(&path).await.expect(404);
    }
    let head = admin.send(Method::HEAD, &format!("{PODS}/p/proxy"), &[], String::new()).await;
    assert_eq!(head.code, 503);
    let metrics = admin.get("/metrics").await.text();
    let counted = "code=\"503\"";
    let is_counted = |line: &&str| line.contains(counted) && line.contains("verb=\"CONNECT\"");
    assert!(metrics.lines().any(|line| is_counted(&line)), "{metrics}");
}

/// A WebSocket begins with GET: a user who may only read must not run commands.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_by_get_needs_create_too() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    add_objects(&admin).await;
    let streams = ["pods/exec", "pods/attach", "pods/portforward", "pods/proxy"];
    grant(&admin, "reader", &["get"], &streams).await;
    grant(&admin, "creator", &["create"], &streams).await;
    grant(&admin, "both", &["get", "create"], &streams).await;
    for (user, method, part, code) in [
        ("reader", Method::GET, "exec", 403),
        ("reader", Method::GET, "attach", 403),
        ("reader", Method::GET, "portforward", 403),
        ("reader", Method::POST, "exec", 403),
        // As in Kubernetes, `proxy` needs the verb of the method alone.
        ("reader", Method::GET, "proxy", 503),
        ("reader", Method::POST, "proxy", 403),
        ("creator", Method::POST, "exec", 503),
        ("creator", Method::GET, "exec", 403),
        ("both", Method::GET, "exec", 503),
        ("both", Method::POST, "attach", 503),
        ("nobody", Method::GET, "exec", 403),
    ] {
        let path = format!("{PODS}/p/{part}");
        let headers = [("impersonate-user", user)];
        let answer = admin.send(method.clone(), &path, &headers, String::new()).await;
        assert_eq!(answer.code, code, "{user} {method} {part}: {}", answer.text());
        if (user, &method, code) == ("reader", &Method::GET, 403) {
            let want = format!("User \"reader\" cannot create resource \"pods/{part}\"");
            let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
            assert!(message.contains(&want), "{message}");
        }
    }
}

/// Hooks see the options of the connection as the object of CONNECT.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_admit_connections() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    add_objects(&admin).await;
    let authority = HookAuthority::new();
    let hook = authority.hook(allow());
    let rules = json!({"rules": [rule(&["CONNECT"], "", "*/*")]});
    let webhook = authority.webhook("connect.x.y", &hook, rules);
    register(&cluster, VALIDATING, "connect", &[webhook]).await;
    for (path, kind, options) in [
        (
            format!("{PODS}/p/exec?command=sh&command=-c&stdin=true&container=c"),
            "PodExecOptions",
            json!({"stdin": true, "container": "c", "command": ["sh", "-c"]}),
        ),
        (format!("{PODS}/p/attach?tty=1"), "PodAttachOptions", json!({"tty": true})),
        (format!("{PODS}/p/portforward?ports=80"), "PodPortForwardOptions", json!({"ports": [80]})),
        (format!("{PODS}/p/proxy"), "PodProxyOptions", json!({})),
        (format!("{PODS}/p:80/proxy/a/b?x=y"), "PodProxyOptions", json!({"path": "/a/b"})),
        ("/api/v1/nodes/n/proxy/".to_owned(), "NodeProxyOptions", json!({"path": "/"})),
        ("/api/v1/nodes/n/proxy/logs/".to_owned(), "NodeProxyOptions", json!({"path": "/logs/"})),
    ] {
        assert_eq!(admin.get(&path).await.expect(503)["message"], NO_KUBELET, "{path}");
        let told: Vec<Value> = hook.take_requests().iter().map(asked).collect();
        let [told] = told.as_slice() else { panic!("{path}: {told:?}") };
        let mut want = options;
        want["kind"] = kind.into();
        want["apiVersion"] = "v1".into();
        assert_eq!(told["object"], want, "{path}");
        assert_eq!(told["kind"], json!({"group": "", "version": "v1", "kind": kind}), "{path}");
        assert_eq!(told["operation"], "CONNECT", "{path}");
        for member in ["options", "oldObject"] {
            assert_eq!(told[member], Value::Null, "{path}");
        }
        let name = path.split('?').next().unwrap_or_default().split('/').skip(3);
        let name = name.skip_while(|part| !matches!(*part, "pods" | "nodes")).nth(1);
        assert_eq!(told["name"].as_str(), name, "{path}");
    }
    // Hooks are not called for a request that is not authorized.
    let headers = [("impersonate-user", "nobody")];
    let path = format!("{PODS}/p/exec");
    admin.send(Method::POST, &path, &headers, String::new()).await.expect(403);
    assert!(hook.take_requests().is_empty());
    let refusing = authority.hook(deny("no shells"));
    let rules = json!({"rules": [rule(&["CONNECT"], "", "pods/exec")]});
    let webhook = authority.webhook("deny.x.y", &refusing, rules);
    register(&cluster, VALIDATING, "deny", &[webhook]).await;
    let refused = admin.get(&path).await.expect(403);
    let want = "admission webhook \"deny.x.y\" denied the request: no shells";
    assert_eq!(refused["message"], want);
    admin.get(&format!("{PODS}/p/attach")).await.expect(503);
}

/// Only authorizers decide about connections of a node, and audit events name what was requested.
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_recorded() {
    let cluster =
        Cluster::start_with(|options, folder| write_audit_log(options, folder, POLICY)).await;
    let admin = cluster.admin();
    add_objects(&admin).await;
    grant(&admin, "system:node:n", &["get", "create"], &["pods/exec"]).await;
    let headers = [("impersonate-user", "system:node:n"), ("impersonate-group", "system:nodes")];
    let path = format!("{PODS}/p/exec?command=id");
    admin.send(Method::GET, &path, &headers, String::new()).await.expect(503);
    let folder = cluster.stop(std::time::Duration::ZERO).await;
    let log = std::fs::read_to_string(folder.path().join("audit.log")).expect("a log");
    let events: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let stages: Vec<&str> =
        events.iter().map(|event| event["stage"].as_str().expect("a stage")).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    for event in &events {
        assert_eq!(event["verb"], "get");
        assert_eq!(event["objectRef"]["subresource"], "exec");
    }
    assert_eq!(events[2]["responseStatus"]["code"], 503);
}
