//! No object outlives its namespace or its definition, however a create races with their end.

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
/// Longer than it takes to end a namespace and to make another one of its name.
const HOOK_DELAY: Duration = Duration::from_millis(1500);
const N_ROUNDS: usize = 20;
/// A create that comes later than the next namespace of the name is one for that.
const HEAD_START: Duration = Duration::from_millis(10);
/// How many rounds run at one time.
const N_ABREAST: usize = 5;

/// The ways to create an object in a namespace: a create, an update that creates, an object that waits for
/// an initializer, and an object of a definition.
const WAYS: [&str; 4] = ["create", "update", "initialize", "custom"];

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
        tokio::time::sleep(Duration::from_millis(5)).await;
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

/// A hook that takes its time with everything that the rounds create.
fn slow_hook(authority: &HookAuthority) -> fake_http::Peer {
    authority
        .hook(Script::rule(|request| answer(request, &json!({"allowed": true})).delay(HOOK_DELAY)))
}

async fn register_slow_hook(client: &Client, authority: &HookAuthority, hook: &fake_http::Peer) {
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["rolebindings", "configmaps", "widgets", "things0", "things1", "things2",
            "things3", "things4"]}]);
    let webhook =
        authority.webhook("slow.x.y", hook, json!({"rules": rules, "timeoutSeconds": 15}));
    register_with(client, VALIDATING, &webhook_configuration(VALIDATING, "slow", &[webhook])).await;
}

/// What the rounds of both tests need, on any number of servers.
async fn prepare(servers: &[Client]) {
    define(servers, "widgets").await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]);
    let initializers = json!([{"name": "late.example.com", "rules": rules}]);
    let configuration = json!({"metadata": {"name": "late"}, "initializers": initializers});
    servers[0].post(INITIALIZERS, &configuration).await.expect(201);
}

async fn send(client: &Client, (method, path, body): (Method, String, Value)) -> Answer {
    client.send(method, &path, &[], body.to_string()).await
}

/// One tenant's namespace ends while an object is on its way into it, and the next tenant gets a namespace of
/// that name. Returns the answer to the create.
async fn race(servers: Vec<Client>, round: usize, pause: Duration) -> (String, Answer) {
    let (near, far) = (&servers[0], &servers[servers.len() - 1]);
    let namespace = format!("t{round}");
    let own = format!("{NAMESPACES}/{namespace}");
    near.post(NAMESPACES, &json!({"metadata": {"name": namespace}})).await.expect(201);
    until(far, &own, |code, _| code == 200).await;
    let way = WAYS[round % WAYS.len()];
    let creating = tokio::spawn({
        let (far, request) = (far.clone(), request(way, &namespace));
        async move { send(&far, request).await }
    });
    tokio::time::sleep(pause).await;
    near.delete(&own).await.expect(200);
    let patience = Instant::now() + PATIENCE;
    // The next tenant waits until the name is free.
    while near.post(NAMESPACES, &json!({"metadata": {"name": namespace}})).await.code != 201 {
        assert!(Instant::now() < patience, "{namespace} does not end");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let answer = creating.await.unwrap();
    for server in [near, far] {
        until(server, &own, |code, _| code == 200).await;
        for path in [
            path_of_maps(&namespace),
            format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"),
            format!("/apis/example.com/v1/namespaces/{namespace}/widgets"),
        ] {
            let found = server.get(&path).await.expect(200);
            assert_eq!(found["items"], json!([]), "{way} in {namespace}: {}", answer.text());
        }
    }
    (way.to_owned(), answer)
}

/// Runs all rounds and returns how each create was answered.
async fn races(servers: &[Client], pause: Duration) -> Vec<(String, Answer)> {
    let mut answers = Vec::new();
    for first in (0..N_ROUNDS).step_by(N_ABREAST) {
        let mut rounds = JoinSet::new();
        for round in first..first + N_ABREAST {
            rounds.spawn(race(servers.to_vec(), round, pause));
        }
        answers.extend(rounds.join_all().await);
    }
    answers
}

/// The create began in a namespace that is gone when the hook has answered.
fn assert_all_refused(answers: &[(String, Answer)]) {
    for (way, answer) in answers {
        let status = answer.json();
        let why = status["message"].as_str().unwrap_or_default();
        match answer.code {
            403 => assert!(why.contains("because it is being terminated"), "{way}: {why}"),
            404 => assert!(why.starts_with("namespaces \"t"), "{way}: {why}"),
            409 => assert!(why.contains("was deleted and created again"), "{way}: {why}"),
            code => panic!("{way}: {code} {why}"),
        }
    }
    assert!(answers.iter().any(|(_, answer)| answer.code == 409), "no round was late enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_comes_back_in_the_next_namespace_of_a_name() {
    let cluster = Cluster::start().await;
    let servers = [cluster.admin()];
    prepare(&servers).await;
    races(&servers, HEAD_START).await;
    let authority = HookAuthority::new();
    let hook = slow_hook(&authority);
    register_slow_hook(&servers[0], &authority, &hook).await;
    for round in 0..N_ROUNDS {
        let path = format!("{NAMESPACES}/t{round}");
        servers[0].delete(&path).await.expect(200);
        until(&servers[0], &path, |code, _| code == 404).await;
    }
    assert_all_refused(&races(&servers, Duration::from_millis(100)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_comes_back_in_the_next_namespace_at_another_server() {
    let members = [etcd_testing::Member::alone()];
    members.iter().for_each(etcd_testing::Member::wait_until_healthy);
    let near = Station::start(&members, |_| {}).await;
    let far = Station::start(&members, |_| {}).await;
    let servers = [near.admin(), far.admin()];
    prepare(&servers).await;
    races(&servers, HEAD_START).await;
    let authority = HookAuthority::new();
    let hook = slow_hook(&authority);
    register_slow_hook(&servers[0], &authority, &hook).await;
    for round in 0..N_ROUNDS {
        let path = format!("{NAMESPACES}/t{round}");
        servers[0].delete(&path).await.expect(200);
        until(&servers[0], &path, |code, _| code == 404).await;
    }
    assert_all_refused(&races(&servers, Duration::from_millis(100)).await);
    far.stop().await;
    near.stop().await;
}

/// A server that has not heard of the deletion yet refuses all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lags_creates_nothing_in_a_namespace_that_is_gone() {
    const LAG: Duration = Duration::from_millis(400);
    let members = [etcd_testing::Member::alone()];
    members.iter().for_each(etcd_testing::Member::wait_until_healthy);
    let near = Station::start(&members, |_| {}).await;
    let far = Station::start(&members, |_| {}).await;
    let (near_admin, far_admin) = (near.admin(), far.admin());
    let maps = "/api/v1/namespaces/t/configmaps";
    for is_made_again in [false, true] {
        near_admin.post(NAMESPACES, &json!({"metadata": {"name": "t"}})).await.expect(201);
        until(&far_admin, &format!("{NAMESPACES}/t"), |code, _| code == 200).await;
        far.lag(LAG);
        near_admin.delete(&format!("{NAMESPACES}/t")).await.expect(200);
        until(&near_admin, &format!("{NAMESPACES}/t"), |code, _| code == 404).await;
        if is_made_again {
            near_admin.post(NAMESPACES, &json!({"metadata": {"name": "t"}})).await.expect(201);
        }
        let made = far_admin.post(maps, &json!({"metadata": {"name": "ghost"}})).await;
        far.lag(Duration::ZERO);
        // The server may have heard of the next namespace before the request came, which is then for that.
        if is_made_again && made.code == 201 {
            continue;
        }
        // A line that is slow for everything the server does may also time out, which stores nothing.
        assert!(matches!(made.code, 403 | 404 | 409 | 504), "{}", made.text());
        let found = near_admin.get("/api/v1/configmaps").await.expect(200);
        let in_t = |map: &&Value| map["metadata"]["namespace"] == "t";
        let found = found["items"].as_array().map(|all| all.iter().filter(in_t).count());
        assert_eq!(found, Some(0));
    }
    far.stop().await;
    near.stop().await;
}

/// A definition is deleted and made again while one of its objects waits for a slow hook.
async fn redefine(servers: Vec<Client>, round: usize, n_rounds: usize) {
    let (near, far) = (&servers[0], &servers[servers.len() - 1]);
    let plural = format!("things{round}");
    let objects = format!("/apis/example.com/v1/namespaces/default/{plural}");
    let own = format!("{DEFINITIONS}/{plural}.example.com");
    define(&servers, &plural).await;
    for n in 0..n_rounds {
        let creating = tokio::spawn({
            let (far, objects, widget) = (far.clone(), objects.clone(), widget(&plural));
            async move { far.post(&objects, &widget).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        near.delete(&own).await.expect(200);
        until(near, &own, |code, _| code == 404).await;
        define(&servers, &plural).await;
        let made = creating.await.unwrap();
        // A second server may begin when it does not serve the definition, which is another answer.
        let status = made.json();
        let why = status["message"].as_str().unwrap_or_default();
        let is_expected = match made.code {
            403 => why.contains("while custom resource definition is terminating"),
            404 => true,
            _ => false,
        };
        assert!(is_expected, "{plural} {n}: {}", made.text());
        for server in [near, far] {
            let found = server.get(&objects).await.expect(200);
            assert_eq!(found["items"], json!([]), "{plural} {n}");
        }
    }
}

async fn redefinitions(servers: &[Client]) {
    let authority = HookAuthority::new();
    let hook = slow_hook(&authority);
    register_slow_hook(&servers[0], &authority, &hook).await;
    let mut rounds = JoinSet::new();
    for round in 0..N_ABREAST {
        rounds.spawn(redefine(servers.to_vec(), round, N_ROUNDS / N_ABREAST));
    }
    rounds.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_comes_back_in_the_next_definition_of_a_name() {
    let cluster = Cluster::start().await;
    redefinitions(&[cluster.admin()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_comes_back_in_the_next_definition_at_another_server() {
    let members = [etcd_testing::Member::alone()];
    members.iter().for_each(etcd_testing::Member::wait_until_healthy);
    let near = Station::start(&members, |_| {}).await;
    let far = Station::start(&members, |_| {}).await;
    redefinitions(&[near.admin(), far.admin()]).await;
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
