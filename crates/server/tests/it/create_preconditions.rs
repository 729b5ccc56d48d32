//! No object outlives its namespace or its definition, however a create races with their deletion.
//!
//! A create is for the namespace that exists in the snapshot by which the request is authorized. The tests
//! send the head of a create and wait until the server asks for the body: the request is authorized then,
//! and whatever happens to the namespace afterwards, the object must not appear in the next one.

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use fake_http::Script;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::admission_hooks::{
    HookAuthority, VALIDATING, answer, register_with, webhook_configuration,
};
use crate::client::{Answer, Client};
use crate::cluster::Cluster;
use crate::three_servers::Station;

const NAMESPACES: &str = "/api/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const INITIALIZERS: &str = "/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations";
const PATIENCE: Duration = Duration::from_secs(20);
/// How many rounds run at one time.
const N_CONCURRENT: usize = 6;

/// The ways to create an object in a namespace: a create, an update that creates, an object that waits for
/// an initializer, and an object of a definition.
const WAYS: [&str; 4] = ["create", "update", "initialize", "custom"];

/// When a round sends the body of its create, which is authorized before.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BodySent {
    /// Together with the request that deletes the namespace.
    WithDeletion,
    /// When the namespace is marked as terminating.
    WhileTerminating,
    /// When the next namespace of the name exists.
    AfterReplacement,
}

const MOMENTS: [BodySent; 3] =
    [BodySent::WithDeletion, BodySent::WhileTerminating, BodySent::AfterReplacement];

fn request(way: &str, namespace: &str) -> (Method, String, Value) {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    let binding = json!({"metadata": {"name": "keep"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    let map = json!({"metadata": {"name": "keep"}});
    match way {
        "create" => (Method::POST, rbac, binding),
        "update" => (Method::PUT, format!("{rbac}/keep"), binding),
        "initialize" => (Method::POST, path_of_maps(namespace), map),
        _ => {
            let path = format!("/apis/example.com/v1/namespaces/{namespace}/widgets");
            (Method::POST, path, widget("widgets"))
        }
    }
}

fn path_of_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps?includeUninitialized=true")
}

fn widget(plural: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": format!("Kind-{plural}").replace('-', ""),
        "metadata": {"name": "keep"}})
}

fn definition(plural: &str) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": widget(plural)["kind"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

async fn until(client: &Client, path: &str, is_wanted: impl Fn(u16, &Value) -> bool) {
    let patience = Instant::now() + PATIENCE;
    loop {
        let answer = client.get(path).await;
        if is_wanted(answer.code, &serde_json::from_slice(&answer.bytes).unwrap_or_default()) {
            return;
        }
        assert!(Instant::now() < patience, "{path}: {}", answer.text());
        crate::polling::pause().await;
    }
}

/// Makes a definition and waits until all servers serve it.
async fn define(servers: &[Client], plural: &str) {
    servers[0].post(DEFINITIONS, &definition(plural)).await.expect(201);
    let path = format!("/apis/example.com/v1/{plural}");
    for server in servers {
        until(server, &path, |code, _| code == 200).await;
    }
}

/// A hook that reports each call and answers it when the test says so. It serves one call at a time.
struct HeldHook {
    // Dropped before the peer, whose thread ends only when it waits for nothing.
    release: mpsc::Sender<()>,
    called: tokio::sync::mpsc::UnboundedReceiver<()>,
    _peer: fake_http::Peer,
}

impl HeldHook {
    /// Starts the hook and registers it for creates of what the tests create.
    async fn register(client: &Client) -> Self {
        let (release, released) = mpsc::channel();
        let (call, called) = tokio::sync::mpsc::unbounded_channel();
        let released = Mutex::new(released);
        let authority = HookAuthority::new();
        let peer = authority.hook(Script::rule(move |request| {
            call.send(()).ok();
            // The channel is closed if the test has failed.
            released.lock().unwrap().recv().ok();
            answer(request, &json!({"allowed": true}))
        }));
        let rules = json!([{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"],
            "resources": ["rolebindings", "configmaps", "widgets", "things"]}]);
        let changes = json!({"rules": rules, "timeoutSeconds": 15});
        let webhook = authority.webhook("held.x.y", &peer, changes);
        let configuration = webhook_configuration(VALIDATING, "held", &[webhook]);
        register_with(client, VALIDATING, &configuration).await;
        Self { release, called, _peer: peer }
    }

    async fn wait_until_called(&mut self) {
        let called = tokio::time::timeout(PATIENCE, self.called.recv()).await;
        called.expect("a call in time").expect("a call");
    }

    fn answer(&self) {
        self.release.send(()).unwrap();
    }
}

/// Creates the definition and the initializer that the rounds need.
async fn prepare(servers: &[Client]) {
    define(servers, "widgets").await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]);
    let initializers = json!([{"name": "late.example.com", "rules": rules}]);
    let configuration = json!({"metadata": {"name": "late"}, "initializers": initializers});
    servers[0].post(INITIALIZERS, &configuration).await.expect(201);
}

/// Creates a namespace and returns when the snapshot of `far` has it: only then does that server create
/// something in it.
async fn make_namespace(near: &Client, far: &Client, namespace: &str) {
    near.post(NAMESPACES, &json!({"metadata": {"name": namespace}})).await.expect(201);
    let path = format!("{NAMESPACES}/{namespace}/serviceaccounts");
    far.post(&path, &json!({"metadata": {"name": "first"}})).await.expect(201);
}

/// Waits until a terminating namespace is gone, and creates the next one of its name.
async fn make_again(client: &Client, namespace: &str) {
    let patience = Instant::now() + PATIENCE;
    while client.post(NAMESPACES, &json!({"metadata": {"name": namespace}})).await.code != 201 {
        assert!(Instant::now() < patience, "{namespace} is not removed");
        crate::polling::pause().await;
    }
}

async fn assert_is_empty(server: &Client, namespace: &str, what: &str) {
    until(server, &format!("{NAMESPACES}/{namespace}"), |code, _| code == 200).await;
    for path in [
        path_of_maps(namespace),
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"),
        format!("/apis/example.com/v1/namespaces/{namespace}/widgets"),
    ] {
        let found = server.get(&path).await.expect(200);
        assert_eq!(found["items"], json!([]), "{what}");
    }
}

/// A namespace is deleted while an authorized create is under way, and another one of its name is created.
async fn race(servers: Vec<Client>, namespace: String, way: &str, sent: BodySent) {
    let (near, far) = (&servers[0], &servers[servers.len() - 1]);
    make_namespace(near, far, &namespace).await;
    let (method, path, body) = request(way, &namespace);
    let create = far.send_head(method, &path, &body).await;
    let own = format!("{NAMESPACES}/{namespace}");
    let answer = match sent {
        BodySent::WithDeletion => {
            let (deleted, answer) = tokio::join!(near.delete(&own), create.send_body());
            deleted.expect(200);
            make_again(near, &namespace).await;
            answer
        }
        BodySent::WhileTerminating => {
            near.delete(&own).await.expect(200);
            let ((), answer) = tokio::join!(make_again(near, &namespace), create.send_body());
            answer
        }
        BodySent::AfterReplacement => {
            near.delete(&own).await.expect(200);
            make_again(near, &namespace).await;
            create.send_body().await
        }
    };
    // A create that reached the store before the deletion is deleted with its namespace.
    let was_in_time = sent == BodySent::WithDeletion && matches!(answer.code, 200..=202);
    let what = format!("{way} in {namespace}, body sent {sent:?}: {}", answer.text());
    match sent {
        _ if was_in_time => {}
        // Another server may not have heard of the replacement yet and refuses by what it knows.
        BodySent::AfterReplacement if servers.len() == 1 => {
            assert_is_for_another_namespace(&answer, &what);
        }
        BodySent::WithDeletion | BodySent::WhileTerminating | BodySent::AfterReplacement => {
            assert_is_refusal(&answer, &what);
        }
    }
    for server in [near, far] {
        assert_is_empty(server, &namespace, &what).await;
    }
}

fn assert_is_refusal(answer: &Answer, what: &str) {
    let status = answer.json();
    let why = status["message"].as_str().unwrap_or_default();
    match answer.code {
        403 => assert!(why.contains("because it is being terminated"), "{what}"),
        404 => assert!(why.starts_with("namespaces \""), "{what}"),
        _ => assert_is_for_another_namespace(answer, what),
    }
}

fn assert_is_for_another_namespace(answer: &Answer, what: &str) {
    assert_eq!(answer.code, 409, "{what}");
    assert!(answer.text().contains("was deleted and created again"), "{what}");
}

/// Runs a round for each way to create an object and each moment.
async fn races(servers: &[Client]) {
    let all = WAYS.into_iter().flat_map(|way| MOMENTS.map(|sent| (way, sent)));
    let all: Vec<_> = all.enumerate().collect();
    for some in all.chunks(N_CONCURRENT) {
        let mut rounds = JoinSet::new();
        for &(n, (way, sent)) in some {
            rounds.spawn(race(servers.to_vec(), format!("t{n}"), way, sent));
        }
        rounds.join_all().await;
    }
}

/// The namespace is replaced after admission has checked it and before the object is stored.
async fn races_during_admission(servers: &[Client]) {
    let (near, far) = (&servers[0], &servers[servers.len() - 1]);
    let mut hook = HeldHook::register(near).await;
    for way in WAYS {
        let namespace = format!("h-{way}");
        make_namespace(near, far, &namespace).await;
        let (method, path, body) = request(way, &namespace);
        let creating = tokio::spawn(far.send_head(method, &path, &body).await.send_body());
        hook.wait_until_called().await;
        near.delete(&format!("{NAMESPACES}/{namespace}")).await.expect(200);
        make_again(near, &namespace).await;
        hook.answer();
        let answer = creating.await.unwrap();
        let what = format!("{way}: {}", answer.text());
        assert_is_for_another_namespace(&answer, &what);
        for server in [near, far] {
            assert_is_empty(server, &namespace, &what).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_comes_back_in_the_next_namespace_of_a_name() {
    let cluster = Cluster::start().await;
    let servers = [cluster.admin()];
    prepare(&servers).await;
    races(&servers).await;
    races_during_admission(&servers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_comes_back_in_the_next_namespace_at_another_server() {
    let members = [etcd_testing::Member::alone()];
    members.iter().for_each(etcd_testing::Member::wait_until_healthy);
    let near = Station::start(&members, |_| {}).await;
    let far = Station::start(&members, |_| {}).await;
    let servers = [near.admin(), far.admin()];
    prepare(&servers).await;
    races(&servers).await;
    races_during_admission(&servers).await;
    far.stop().await;
    near.stop().await;
}

/// A create that was authorized when no namespace of the name existed is for the one that exists when the
/// object is admitted: no earlier namespace is involved.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_authorized_before_its_namespace_exists_is_for_the_next_one() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    make_namespace(&admin, &admin, "t").await;
    let own = format!("{NAMESPACES}/t");
    admin.delete(&own).await.expect(200);
    until(&admin, &own, |code, _| code == 404).await;
    let maps = format!("{NAMESPACES}/t/configmaps");
    let create = admin.send_head(Method::POST, &maps, &json!({"metadata": {"name": "m"}})).await;
    make_again(&admin, "t").await;
    create.send_body().await.expect(201);
    admin.get(&format!("{maps}/m")).await.expect(200);
}

/// A server that has not heard of the deletion yet refuses all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lags_creates_nothing_in_a_namespace_that_is_gone() {
    const LAG: Duration = Duration::from_millis(400);
    /// The lag delays all that the store says, so that a request may time out.
    const N_TRIES_MAX: usize = 5;
    let members = [etcd_testing::Member::alone()];
    members.iter().for_each(etcd_testing::Member::wait_until_healthy);
    let near = Station::start(&members, |_| {}).await;
    let far = Station::start(&members, |_| {}).await;
    let (near_admin, far_admin) = (near.admin(), far.admin());
    for is_made_again in [false, true] {
        let mut is_refused = false;
        for n in 0..N_TRIES_MAX {
            let namespace = format!("t{n}-{is_made_again}");
            let own = format!("{NAMESPACES}/{namespace}");
            let maps = format!("{own}/configmaps");
            make_namespace(&near_admin, &far_admin, &namespace).await;
            let ghost = json!({"metadata": {"name": "ghost"}});
            let create = far_admin.send_head(Method::POST, &maps, &ghost).await;
            far.lag(LAG);
            near_admin.delete(&own).await.expect(200);
            until(&near_admin, &own, |code, _| code == 404).await;
            if is_made_again {
                make_again(&near_admin, &namespace).await;
            }
            let answer = create.send_body().await;
            far.lag(Duration::ZERO);
            let found = near_admin.get(&maps).await.expect(200);
            assert_eq!(found["items"], json!([]), "{}", answer.text());
            is_refused = answer.code != 504;
            if is_refused {
                assert_is_refusal(&answer, &answer.text());
                break;
            }
        }
        assert!(is_refused, "each of {N_TRIES_MAX} requests timed out");
    }
    far.stop().await;
    near.stop().await;
}

/// A definition is deleted and created again while a create of one of its objects waits for a hook.
async fn redefine(servers: &[Client]) {
    let (near, far) = (&servers[0], &servers[servers.len() - 1]);
    let objects = "/apis/example.com/v1/namespaces/default/things";
    let own = format!("{DEFINITIONS}/things.example.com");
    let mut hook = HeldHook::register(near).await;
    define(servers, "things").await;
    for n in 0..4 {
        let create = far.send_head(Method::POST, objects, &widget("things")).await;
        let creating = tokio::spawn(create.send_body());
        hook.wait_until_called().await;
        near.delete(&own).await.expect(200);
        until(near, &own, |code, _| code == 404).await;
        define(servers, "things").await;
        hook.answer();
        let answer = creating.await.unwrap();
        assert_eq!(answer.code, 403, "{n}: {}", answer.text());
        let why = "while custom resource definition is terminating";
        assert!(answer.text().contains(why), "{n}: {}", answer.text());
        for server in [near, far] {
            let found = server.get(objects).await.expect(200);
            assert_eq!(found["items"], json!([]), "{n}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_comes_back_in_the_next_definition_of_a_name() {
    let cluster = Cluster::start().await;
    redefine(&[cluster.admin()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_comes_back_in_the_next_definition_at_another_server() {
    let members = [etcd_testing::Member::alone()];
    members.iter().for_each(etcd_testing::Member::wait_until_healthy);
    let near = Station::start(&members, |_| {}).await;
    let far = Station::start(&members, |_| {}).await;
    redefine(&[near.admin(), far.admin()]).await;
    far.stop().await;
    near.stop().await;
}

/// A namespace that others change all the time takes content, and an object in one that ends can be changed.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_end_of_a_namespace_is_in_the_way() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(NAMESPACES, &json!({"metadata": {"name": "busy"}})).await.expect(201);
    let changing = tokio::spawn({
        let admin = cluster.admin();
        async move {
            for n in 0..150 {
                let patch = json!({"metadata": {"labels": {"n": n.to_string()}}});
                let path = format!("{NAMESPACES}/busy");
                admin.patch(&path, "merge-patch", &patch).await.expect(200);
            }
        }
    });
    let maps = format!("{NAMESPACES}/busy/configmaps");
    let mut n_made = 0;
    while !changing.is_finished() {
        let map = json!({"metadata": {"name": format!("m{n_made}"), "finalizers": ["x.y/hold"]}});
        admin.post(&maps, &map).await.expect(201);
        n_made += 1;
    }
    changing.await.unwrap();
    assert!(n_made > 0);
    admin.delete(&format!("{NAMESPACES}/busy")).await.expect(200);
    let refused = admin.post(&maps, &json!({"metadata": {"name": "late"}})).await.expect(403);
    assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let data = json!({"data": {"a": "b"}});
    admin.patch(&format!("{maps}/m0"), "merge-patch", &data).await.expect(200);
    for n in 0..n_made {
        let unheld = json!({"metadata": {"finalizers": null}});
        let answer = admin.patch(&format!("{maps}/m{n}"), "merge-patch", &unheld).await;
        assert!(matches!(answer.code, 200 | 404), "{}", answer.text());
    }
    until(&admin, &format!("{NAMESPACES}/busy"), |code, _| code == 404).await;
}
