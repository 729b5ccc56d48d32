//! Requests to make a tunnel of the connection.

use http::Method;
use serde_json::json;

use crate::cluster::Cluster;

/// L1 and L3: the server opens no tunnel for anybody. A request to upgrade is answered like any other,
/// and the connection still speaks HTTP afterwards, with the identity of each request.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_stays_http() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let pod = json!({"metadata": {"name": "run"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "image": "i"}]}});
    admin.post("/api/v1/namespaces/default/pods", &pod).await.expect(201);
    let mut session = admin.session().await;
    for protocol in ["websocket", "SPDY/3.1", "h2c", "TLS/1.0"] {
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", protocol),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", "v4.channel.k8s.io"),
        ];
        for (method, path, code) in [
            (Method::GET, "/api/v1/namespaces/default/pods/run/exec?command=sh", 503),
            (Method::POST, "/api/v1/namespaces/default/pods/run/attach", 503),
            (Method::POST, "/api/v1/namespaces/default/pods/run/portforward", 503),
            (Method::GET, "/api/v1/namespaces/default/pods/run/proxy/", 503),
            (Method::GET, "/api/v1/namespaces/default/pods/p/exec?command=sh", 404),
            (Method::POST, "/api/v1/namespaces/default/pods/p/attach", 404),
            (Method::POST, "/api/v1/namespaces/default/pods/p/portforward", 404),
            (Method::GET, "/api/v1/namespaces/default/pods/p/proxy/", 404),
            (Method::GET, "/api/v1/namespaces/default/services/s/proxy/", 404),
            (Method::GET, "/api/v1/nodes/n/proxy/", 404),
            (Method::GET, "/api/v1/proxy/nodes/n", 404),
            (Method::GET, "/api/v1/namespaces/default", 200),
        ] {
            let (answer, _) = session.first_frame(method, path, &headers, "").await;
            assert_eq!(answer.code, code, "{protocol} {path}: {}", answer.text());
            assert!(!answer.headers.contains_key("upgrade"), "{protocol} {path}");
            let next = session.send(Method::GET, "/api/v1/namespaces/default", "").await;
            assert_eq!(next.code, 200, "{protocol} {path}");
        }
    }
}

/// L1: the server is no proxy: `CONNECT host:port` opens no tunnel, for administrators neither.
#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_to_another_host_is_refused() {
    let cluster = Cluster::start().await;
    for client in [cluster.admin(), cluster.anonymous()] {
        let answer = client.send(Method::CONNECT, "10.0.0.1:443", &[], "").await;
        assert_eq!(answer.code, 400, "{}", answer.text());
    }
}
