//! Lists in pages, at one revision.

use cluster_client::{ClusterError, ListObjectsOutcome, ListRevision, ObjectList, list_objects};
use fake_http::{Answer, Conduct, Script};
use serde_json::Value;

use crate::fixture::Cluster;

const PATH: &str = "/apis/g/v1/roles";

fn page(names: &[&str], next: &str) -> Answer {
    let items: Vec<String> =
        names.iter().map(|name| format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)).collect();
    Answer::json(format!(
        r#"{{"kind":"RoleList","apiVersion":"g/v1","metadata":{{"resourceVersion":"7","continue":"{next}"}},"items":[{}]}}"#,
        items.join(",")
    ))
}

fn gone() -> Answer {
    Answer::json(r#"{"kind":"Status","message":"too old","reason":"Expired","code":410}"#)
        .status(410)
}

/// Lists `kind/name` of all objects.
async fn list(
    cluster: &Cluster,
    revision: ListRevision,
) -> Result<Option<ObjectList<String>>, ClusterError> {
    let name = |object: &Value| {
        Some(format!("{}/{}", object["kind"].as_str()?, object["metadata"]["name"].as_str()?))
    };
    let client = cluster.client("{token: t}");
    Ok(match list_objects(&client, PATH, &revision, &name, &mut |_| {}).await? {
        ListObjectsOutcome::Complete(list) => Some(list),
        ListObjectsOutcome::RevisionGone => None,
    })
}

fn targets(cluster: &Cluster) -> Vec<String> {
    cluster.peer.requests().into_iter().map(|request| request.target).collect()
}

#[tokio::test]
async fn pages_are_joined_and_objects_get_their_kind() {
    let cluster = Cluster::start(vec![page(&["a", "b"], "x+y"), page(&["c"], "")]);
    let found = list(&cluster, ListRevision::Newest).await.unwrap().unwrap();
    assert_eq!(found.items, ["Role/a", "Role/b", "Role/c"]);
    assert_eq!(found.revision, "7");
    let want = ["/apis/g/v1/roles?limit=500", "/apis/g/v1/roles?limit=500&continue=x%2By"];
    assert_eq!(targets(&cluster), want);
}

/// More bytes than the client reads of a response.
const TOO_MANY_BYTES: u64 = 1 << 30;

/// A few huge objects, which anybody with a namespace can create, do not make the list fail for everybody.
#[tokio::test]
async fn a_page_that_is_too_large_is_requested_with_fewer_objects() {
    // The second object is huge, so a page with it has room for no other one.
    let names = ["a", "huge", "b", "c", "d"];
    let cluster = Cluster::start(Script::rule(move |request| {
        let (_, query) = request.target.split_once('?').unwrap();
        let parameter = |name: &str| {
            let mut parts = query.split('&').filter_map(|part| part.split_once('='));
            parts.find(|part| part.0 == name).map_or(0, |part| part.1.parse::<usize>().unwrap())
        };
        let begin = parameter("continue");
        let end = (begin + parameter("limit")).min(names.len());
        let shown = &names[begin..end];
        let next = if end < names.len() { end.to_string() } else { String::new() };
        match shown.len() > 1 && shown.contains(&"huge") {
            true => Answer::misbehave(Conduct::Claim(TOO_MANY_BYTES)),
            false => page(shown, &next),
        }
    }));
    let found = list(&cluster, ListRevision::Newest).await.unwrap().unwrap();
    assert_eq!(found.items, ["Role/a", "Role/huge", "Role/b", "Role/c", "Role/d"]);
    let want = [
        "/apis/g/v1/roles?limit=500",
        "/apis/g/v1/roles?limit=62",
        "/apis/g/v1/roles?limit=7",
        "/apis/g/v1/roles?limit=1",
        "/apis/g/v1/roles?limit=2&continue=1",
        "/apis/g/v1/roles?limit=1&continue=1",
        "/apis/g/v1/roles?limit=2&continue=2",
        "/apis/g/v1/roles?limit=4&continue=4",
    ];
    assert_eq!(targets(&cluster), want);
}

#[tokio::test]
async fn an_object_that_is_too_large_alone_is_an_error() {
    let cluster =
        Cluster::start(Script::rule(|_| Answer::misbehave(Conduct::Claim(TOO_MANY_BYTES))));
    let error = list(&cluster, ListRevision::Newest).await.unwrap_err();
    assert!(matches!(error, ClusterError::NoResponse(_)), "{error}");
    assert_eq!(targets(&cluster).len(), 4, "500, 62, 7 and 1 objects");
}

#[tokio::test]
async fn a_server_that_repeats_a_page_does_not_keep_the_list_going() {
    let cluster = Cluster::start(Script::rule(|_| page(&["a"], "same")));
    let error = list(&cluster, ListRevision::Newest).await.unwrap_err();
    assert!(matches!(error, ClusterError::NotKubernetes { .. }), "{error}");
    assert_eq!(targets(&cluster).len(), 2);
}

#[tokio::test]
async fn a_list_that_expires_begins_again() {
    let cluster =
        Cluster::start(vec![page(&["a"], "x"), gone(), page(&["a", "b"], "x"), page(&["c"], "")]);
    let found = list(&cluster, ListRevision::Newest).await.unwrap().unwrap();
    assert_eq!(found.items, ["Role/a", "Role/b", "Role/c"]);
    let always = Cluster::start(Script::rule(|_| gone()));
    let error = list(&always, ListRevision::Newest).await.unwrap_err();
    assert!(matches!(error, ClusterError::Expired { .. }), "{error}");
}

#[tokio::test]
async fn an_exact_revision_that_is_gone_is_for_the_caller() {
    let cluster = Cluster::start(vec![gone()]);
    assert!(list(&cluster, ListRevision::Exact("7".to_owned())).await.unwrap().is_none());
    assert_eq!(
        targets(&cluster),
        ["/apis/g/v1/roles?limit=500&resourceVersion=7&resourceVersionMatch=Exact"]
    );
}

#[tokio::test]
async fn answers_that_are_no_lists_are_errors() {
    for (answer, want) in [
        (Answer::json("<html>"), "is not JSON"),
        (Answer::json("[]"), "is not a list"),
        (Answer::json(r#"{"kind":"RoleList","items":{}}"#), "is not a list"),
        (Answer::json(r#"{"kind":"RoleList","items":[1]}"#), "is not a list"),
        (Answer::json(r#"{"message":"no"}"#).status(403), "no"),
        (Answer::json("").status(500), "the server answers 500"),
        (Answer::redirect("https://elsewhere/"), "a redirect, which is not followed"),
    ] {
        let cluster = Cluster::start(answer);
        let error = list(&cluster, ListRevision::Newest).await.unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}
