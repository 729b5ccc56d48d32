//! How many objects may wait for initializers, and whose (A21). The real limits are 10,000 objects and
//! 1,000 of one user; here they are small.

use std::time::Duration;

use admission::WaitingObjectLimits;
use bytes::Bytes;
use etcd_testing::Member;
use http::Method;
use serde_json::{Value, json};
use server::ServerOptions;
use store::{At, Delete, ExpectedKeyState, Key, ListRequest, Prefix, Put, Store};

use super::scene::{INITIALIZERS, MAPS, Scene, configuration, entry, map};
use crate::client::Client;
use crate::three_servers::Station;

const OBJECTS_MAX: usize = 5;
const OBJECTS_PER_USER_MAX: usize = 3;
const BYTES_PER_USER_MAX: usize = 10_000;
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

fn small(options: &mut ServerOptions) {
    let initializers = &mut options.admission_options.initializer_options;
    initializers.waiting_object_limits =
        WaitingObjectLimits { waiting_objects_max: OBJECTS_MAX, waiting_object_bytes_max: 50_000 };
    initializers.waiting_object_limits_per_user = WaitingObjectLimits {
        waiting_objects_max: OBJECTS_PER_USER_MAX,
        waiting_object_bytes_max: BYTES_PER_USER_MAX,
    };
}

/// A server with an initializer that never acts, and two users who create what waits for it.
async fn scene() -> (Scene, Client, Client) {
    let scene = Scene::start_with(small).await;
    scene.register(&[("a.x.y", "Fail")]).await;
    let alice = scene.grant_alice(&[]).await;
    let binding = json!({"metadata": {"name": "bob"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    scene.admin.post(&format!("{RBAC}/rolebindings"), &binding).await.expect(201);
    let bob = scene.cluster.bob();
    (scene, alice, bob)
}

/// Another server on the same data.
async fn restart(scene: Scene) -> (Scene, Client, Client) {
    let folder = scene.cluster.stop(Duration::ZERO).await;
    let scene = Scene::start_in(folder, jiff::Timestamp::now(), small).await;
    let (alice, bob) = (scene.cluster.alice(), scene.cluster.bob());
    (scene, alice, bob)
}

async fn create(client: &Client, name: &str) -> u16 {
    client.post(&format!("{MAPS}?includeUninitialized=1"), &map(name)).await.code
}

/// Creates an object as soon as there is room for it.
async fn create_in_time(client: &Client, name: &str) {
    let creating = async { while create(client, name).await == 429 {} };
    tokio::time::timeout(Duration::from_secs(20), creating).await.expect("room");
}

async fn keys(scene: &Scene, path: &str) -> Vec<Key> {
    let prefix = Prefix::new(&format!("/registry/{path}/")).unwrap();
    let page = scene.cluster.store.list(&prefix, ListRequest::default()).await.unwrap();
    page.items.into_iter().map(|item| item.key).collect()
}

/// A21: a user who creates more and more objects that wait is refused; others are not.
#[tokio::test(flavor = "multi_thread")]
async fn a21_one_user_leaves_room_for_others() {
    let (scene, alice, bob) = scene().await;
    for n in 0..OBJECTS_PER_USER_MAX {
        assert_eq!(create(&alice, &format!("alice-{n}")).await, 202);
    }
    let refused = alice.post(MAPS, &map("alice-more")).await.expect(429);
    let want = "Too many requests: too many of your objects wait for their initializers, please try again later";
    assert_eq!(refused["message"], want);
    assert_eq!(create(&bob, "alice-0").await, 409, "a name that is taken");
    assert_eq!(create(&bob, "bob-0").await, 202);
    assert_eq!(create(&bob, "bob-1").await, 202);
    let refused = bob.post(MAPS, &map("bob-more")).await.expect(429);
    let want =
        "Too many requests: too many objects wait for their initializers, please try again later";
    assert_eq!(refused["message"], want);

    // The next server knows the creators of the objects.
    let (scene, alice, bob) = restart(scene).await;
    assert_eq!(create(&bob, "bob-2").await, 429);
    bob.delete(&format!("{MAPS}/alice-0")).await.expect(200);
    create_in_time(&bob, "bob-2").await;
    assert_eq!(create(&bob, "bob-3").await, 429, "bob's part and everybody's");
    scene.act("bob-0", "a.x.y").await;
    create_in_time(&alice, "alice-3").await;
    assert_eq!(create(&alice, "alice-4").await, 429);
    for name in ["alice-1", "alice-2", "alice-3", "bob-0", "bob-1", "bob-2"] {
        alice.delete(&format!("{MAPS}/{name}")).await.expect(200);
    }
    let emptied = async { while !keys(&scene, "waitingobjects").await.is_empty() {} };
    tokio::time::timeout(Duration::from_secs(20), emptied).await.expect("no useless records");
}

/// A21: an object that waits at one server counts at another server.
#[tokio::test(flavor = "multi_thread")]
async fn a21_objects_that_wait_count_at_every_server() {
    let members = [Member::alone()];
    members[0].wait_until_healthy();
    let one = Station::start(&members, small).await;
    let two = Station::start(&members, small).await;
    let entries = json!([entry("a.x.y", json!({}))]);
    one.admin().post(INITIALIZERS, &configuration("a", entries)).await.expect(201);
    let patch = json!({"initializers": [{"name": "a.x.y", "failurePolicy": "Fail"}]});
    let path = format!("{INITIALIZERS}/a");
    one.admin().patch(&path, "strategic-merge-patch", &patch).await.expect(200);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({"metadata": {"name": "testers"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "testers"}]});
    let bindings = format!("/apis/{group}/v1/clusterrolebindings");
    one.admin().post(&bindings, &binding).await.expect(201);
    let create = async |station: &Station, user: &str, name: &str| {
        let headers = [
            ("impersonate-user", user),
            ("impersonate-group", "testers"),
            ("content-type", "application/json"),
        ];
        let path = format!("{MAPS}?includeUninitialized=1");
        let body = map(name).to_string();
        station.admin().send(Method::POST, &path, &headers, body).await.code
    };
    for n in 0..OBJECTS_PER_USER_MAX {
        assert_eq!(create(&one, "jane", &format!("jane-{n}")).await, 202);
    }
    // The name is taken, whatever the other server has seen so far. Before it has seen the binding, it refuses.
    let seen = async {
        loop {
            match create(&two, "jane", "jane-0").await {
                403 | 409 => {}
                code => break code,
            }
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(20), seen).await;
    assert_eq!(seen.expect("the other server follows"), 429);
    assert_eq!(create(&two, "joe", "joe-0").await, 202);
}

/// A21: few large objects are bounded like many small ones.
#[tokio::test(flavor = "multi_thread")]
async fn a21_bytes_of_objects_that_wait_are_bounded() {
    let (_scene, alice, bob) = scene().await;
    let large = |name: &str| json!({"metadata": {"name": name}, "data": {"a": "x".repeat(BYTES_PER_USER_MAX / 2)}});
    let path = format!("{MAPS}?includeUninitialized=1");
    alice.post(&path, &large("first")).await.expect(202);
    alice.post(&path, &large("second")).await.expect(429);
    assert_eq!(create(&alice, "small").await, 202);
    bob.post(&path, &large("third")).await.expect(202);
}

/// Gives up on an object as a server does that dies before it deletes the object.
async fn give_up(scene: &Scene, name: &str) {
    let store = &scene.cluster.store;
    let key = Key::new(&format!("/registry/configmaps/default/{name}")).unwrap();
    let entry = store.get(&key, At::Newest).await.unwrap().entry.unwrap();
    let mut stored: Value = serde_json::from_slice(&entry.value).unwrap();
    stored["metadata"]["initializers"]["result"] = json!({"status": "Failure"});
    let value = Bytes::from(stored.to_string());
    let expected_state = ExpectedKeyState::At(entry.mod_rev);
    store
        .put(Put { key, value, expected_state, ttl: None, key_group_revision_action: None })
        .await
        .unwrap();
}

/// A21: an object that failed before a crash goes when the next server starts, also if an earlier
/// version stored it, which kept no records.
#[tokio::test(flavor = "multi_thread")]
async fn a21_an_object_that_failed_before_a_crash_does_not_stay() {
    let (scene, alice, _) = scene().await;
    for name in ["failed", "failed-long-ago", "waits"] {
        assert_eq!(create(&alice, name).await, 202);
    }
    give_up(&scene, "failed").await;
    give_up(&scene, "failed-long-ago").await;
    let store = &scene.cluster.store;
    for key in keys(&scene, "waitingobjects").await {
        let entry = store.get(&key, At::Newest).await.unwrap().entry.unwrap();
        let record: Value = serde_json::from_slice(&entry.value).unwrap();
        if record["key"] == "/registry/configmaps/default/failed-long-ago" {
            let expected_state = ExpectedKeyState::At(entry.mod_rev);
            store
                .delete(Delete { key, expected_state, key_group_revision_action: None })
                .await
                .unwrap();
        }
    }
    let (scene, ..) = restart(scene).await;
    let ended = async {
        for name in ["failed", "failed-long-ago"] {
            let path = format!("{MAPS}/{name}?includeUninitialized=1");
            while scene.admin.get(&path).await.code != 404 {}
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("they are gone");
    scene.admin.get(&format!("{MAPS}/waits?includeUninitialized=1")).await.expect(200);
}
