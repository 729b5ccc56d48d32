//! The resources of a cluster, in both forms of discovery.

use cluster_client::Discovery;
use fake_http::{Answer, Script};

use crate::fixture::Cluster;

const AGGREGATED: &str = r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[
  {"version":"v1","resources":[{"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced",
    "singularResource":"deployment","verbs":["get"],"shortNames":["deploy"],
    "subresources":[{"subresource":"scale"}]}]},
  {"version":"v1beta1","freshness":"Stale","resources":[{"resource":"deployments"}]}]}]}"#;

#[tokio::test]
async fn one_document_describes_all_groups() {
    let cluster = Cluster::start(Script::rule(|request| match request.target.as_str() {
        "/apis" => Answer::json(AGGREGATED),
        _ => Answer::json(r#"{"kind":"APIGroupDiscoveryList","items":[]}"#),
    }));
    let found = Discovery::read(&cluster.client("{token: t}")).await.unwrap();
    let [deployments] = found.resources.as_slice() else { panic!("{found:?}") };
    assert_eq!((deployments.kind.as_str(), deployments.version.as_str()), ("Deployment", "v1"));
    assert!(deployments.is_namespaced);
    assert_eq!(
        (&*deployments.subresources, &*deployments.short_names),
        (&["scale".to_owned()][..], &["deploy".to_owned()][..])
    );
    assert_eq!(found.unavailable_groups, ["apps"]);
}

#[tokio::test]
async fn older_servers_describe_one_version_at_a_time() {
    let cluster = Cluster::start(Script::rule(|request| match request.target.as_str() {
        "/api" => Answer::json(r#"{"kind":"APIVersions","versions":["v1"]}"#),
        "/api/v1" => Answer::json(
            r#"{"resources":[{"name":"pods","kind":"Pod","namespaced":true,"shortNames":["po"],"verbs":["get"]},
                {"name":"pods/log","kind":"Pod"},{"name":"nodes","kind":"Node","verbs":["get"]}]}"#,
        ),
        "/apis" => Answer::json(
            r#"{"kind":"APIGroupList","groups":[{"name":"metrics.k8s.io","versions":[{"version":"v1"}],
                "preferredVersion":{"version":"v1"}}]}"#,
        ),
        _ => Answer::json("{}").status(503),
    }));
    let found = Discovery::read(&cluster.client("{token: t}")).await.unwrap();
    let names: Vec<&str> = found.resources.iter().map(|own| own.plural.as_str()).collect();
    assert_eq!(names, ["pods", "nodes"]);
    assert_eq!(found.resources[0].subresources, ["log"]);
    assert_eq!(found.unavailable_groups, ["metrics.k8s.io"]);
}

#[tokio::test]
async fn a_server_of_another_sort_is_named_as_such() {
    let cluster = Cluster::start(Answer::json(r#"{"hello":"world"}"#));
    let error = Discovery::read(&cluster.client("{token: t}")).await.unwrap_err().to_string();
    assert!(error.contains("does the kubeconfig name the API server of a cluster?"), "{error}");
}
