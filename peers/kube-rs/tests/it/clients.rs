//! What clients do all day: write, list, watch, follow.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::server::Server;

/// How long any one step may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn config_map(name: &str, value: &str) -> ConfigMap {
    let object = json!({"metadata": {"name": name}, "data": {"k": value}});
    serde_json::from_value(object).unwrap()
}

async fn within<T>(step: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, step).await.expect("an answer in time")
}

#[tokio::test]
async fn objects_are_written_listed_and_watched() {
    let server = Server::start();
    let client = server.client().await;
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let listed = namespaces.list(&ListParams::default()).await.unwrap();
    let names: Vec<String> = listed.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);

    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let start = api.list(&ListParams::default()).await.unwrap();
    assert!(start.items.is_empty());
    let since = start.metadata.resource_version.expect("a revision");
    let watching = api.watch(&WatchParams::default().timeout(60), &since).await.unwrap();
    let mut watching = watching.boxed();

    let made = api.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let mut changed = made.clone();
    changed.data.as_mut().unwrap().insert("k".to_owned(), "2".to_owned());
    let changed = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"k": "3"}}));
    let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let patch = Patch::Strategic(json!({"metadata": {"labels": {"l": "1"}}}));
    let labelled = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(api.get("a").await.unwrap(), labelled);
    let stale = api.replace("a", &PostParams::default(), &made).await.unwrap_err();
    assert!(matches!(&stale, kube::Error::Api(status) if status.code == 409), "{stale}");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(api.get_opt("a").await.unwrap(), None);

    for written in [made, changed, patched, labelled] {
        let event = within(watching.try_next()).await.unwrap().expect("an event");
        let told = match event {
            WatchEvent::Added(told) | WatchEvent::Modified(told) => told,
            other => panic!("{other:?}"),
        };
        assert_eq!(told, written);
    }
    let last = within(watching.try_next()).await.unwrap().expect("an event");
    assert!(matches!(last, WatchEvent::Deleted(_)), "{last:?}");
}

/// Controllers see what is there and then every change, whichever way they ask for the beginning.
#[tokio::test]
async fn a_watcher_follows() {
    let server = Server::start();
    let client = server.client().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    for (round, config) in
        [watcher::Config::default().page_size(2), watcher::Config::default().streaming_lists()]
            .into_iter()
            .enumerate()
    {
        let mut events = watcher(api.clone(), config).boxed();
        let mut next = async || within(events.try_next()).await.unwrap().expect("an event");
        assert!(matches!(next().await, watcher::Event::Init));
        for name in ["a", "b", "c"] {
            let event = next().await;
            let watcher::Event::InitApply(object) = event else { panic!("{event:?}") };
            assert_eq!(object.name_any(), name);
        }
        assert!(matches!(next().await, watcher::Event::InitDone));
        let name = format!("later-{round}");
        api.create(&PostParams::default(), &config_map(&name, "1")).await.unwrap();
        let event = next().await;
        let watcher::Event::Apply(object) = event else { panic!("{event:?}") };
        assert_eq!(object.name_any(), name);
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        let event = next().await;
        let watcher::Event::Delete(object) = event else { panic!("{event:?}") };
        assert_eq!(object.name_any(), name);
    }
}

#[tokio::test]
async fn reviews_are_answered() {
    let server = Server::start();
    let client = server.client().await;
    assert!(is_allowed(&client, "system:admin", &["system:masters"]).await);
    assert!(!is_allowed(&client, "alice", &[]).await);
}

async fn is_allowed(client: &Client, user: &str, groups: &[&str]) -> bool {
    let attributes = ResourceAttributes {
        verb: Some("list".to_owned()),
        resource: Some("secrets".to_owned()),
        namespace: Some("default".to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(user.to_owned()),
        groups: Some(groups.iter().map(|group| (*group).to_owned()).collect()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await.unwrap();
    answer.status.expect("a status").allowed
}
