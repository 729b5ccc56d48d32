//! The debug and metrics endpoints.

use std::collections::BTreeSet;

use http::Method;
use serde_json::json;

use super::grant_alice;
use crate::client::Client;
use crate::cluster::Cluster;

/// L17: nothing for developers is served, to nobody, and what is for operators is not for everybody.
#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_debug_paths() {
    let cluster = Cluster::start().await;
    let (anonymous, alice, admin) = (cluster.anonymous(), cluster.alice(), cluster.admin());
    for path in [
        "/debug",
        "/debug/pprof",
        "/debug/pprof/",
        "/debug/pprof/profile?seconds=1",
        "/debug/pprof/heap",
        "/debug/flags/v",
        "/debug/vars",
        "/debug/api_priority_and_fairness/dump_requests",
        "/logs",
        "/logs/kube-apiserver.log",
        "/configz",
        "/flagz",
        "/statusz",
    ] {
        for method in [Method::GET, Method::PUT, Method::POST] {
            for (client, code) in [(&anonymous, 403), (&alice, 403), (&admin, 404)] {
                let answer = client.send(method.clone(), path, &[], "").await;
                assert_eq!(answer.code, code, "{method} {path}: {}", answer.text());
            }
        }
    }
    for path in [
        "/metrics",
        "/portcullis/authorization/status",
        "/portcullis/admission/status",
        "/openapi/v3",
    ] {
        assert_eq!(anonymous.get(path).await.code, 403, "{path}");
        assert_eq!(admin.get(path).await.code, 200, "{path}");
    }
}

/// The series of the metrics, without their values.
async fn series(admin: &Client) -> BTreeSet<String> {
    let text = admin.get("/metrics").await.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
}

/// L16: users choose paths, methods, names, media types and user agents. None of these becomes the label
/// of a metric, so that the number of series does not grow with what they send.
#[tokio::test(flavor = "multi_thread")]
async fn what_users_send_becomes_no_label() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let rules = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let alice = grant_alice(&cluster, "default", rules).await;
    let anonymous = cluster.anonymous();
    let mut sizes = Vec::new();
    for round in 0..3 {
        for n in 0..20 {
            let mark = format!("zzmark{round}x{n}");
            let agent = [("user-agent", mark.as_str()), ("content-type", mark.as_str())];
            let method = Method::from_bytes(mark.to_uppercase().as_bytes()).expect("a method");
            for path in [
                format!("/{mark}"),
                format!("/api/{mark}/pods"),
                format!("/api/v1/{mark}"),
                format!("/api/v1/namespaces/default/{mark}"),
                format!("/api/v1/namespaces/default/pods/x/{mark}"),
                format!("/api/v1/namespaces/{mark}/pods"),
                format!("/api/v1/namespaces/default/pods/{mark}"),
                format!("/apis/{mark}.example.com/v1/namespaces/default/pods"),
                format!("/apis/apps/{mark}/namespaces/default/deployments"),
                format!("/api/v1/watch/namespaces/default/{mark}"),
                format!("/api/v1/namespaces/default/pods?dryRun={mark}&fieldManager={mark}"),
            ] {
                for client in [&alice, &anonymous] {
                    client.send(Method::GET, &path, &agent, "").await;
                    client.send(Method::POST, &path, &agent, "{}").await;
                }
                alice.send(method.clone(), &path, &agent, "").await;
            }
        }
        let found = series(&admin).await;
        let marked: Vec<&String> =
            found.iter().filter(|own| own.to_lowercase().contains("zzmark")).collect();
        assert!(marked.is_empty(), "{marked:?}");
        sizes.push(found.len());
    }
    // The first round brings the codes that there are; the others bring nothing new.
    assert_eq!(sizes[1], sizes[2], "{sizes:?}");
}
