//! The reservations of addresses match the services in every state of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use server::ServerOptions;
use store::{At, Delete, ExpectedKeyState, Key, ListRequest, Prefix, Put, Revision, Store};
use tokio::task::JoinSet;

use crate::admission_hooks::{HookAuthority, VALIDATING, answering, register, rule};
use crate::client::Client;
use crate::cluster::Cluster;
use crate::three_servers::Station;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const PATIENCE: Duration = Duration::from_secs(20);

fn range(options: &mut ServerOptions, text: &str) {
    options.api_settings.service_ip_range = text.parse().ok();
}

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})
}

fn address(service: &Value) -> String {
    service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned()
}

/// The objects under a path in a state, by the rest of their keys.
async fn stored(store: &dyn Store, path: &str, at: At) -> BTreeMap<String, Value> {
    let prefix = Prefix::new(&format!("/registry/{path}/")).unwrap();
    let request = ListRequest { at, ..ListRequest::default() };
    let items = store.list(&prefix, request).await.unwrap().items;
    let rest = |key: &Key| key.strip_prefix(prefix.as_str()).unwrap().to_owned();
    let read = |value: &[u8]| serde_json::from_slice(value).unwrap();
    items.iter().map(|item| (rest(&item.key), read(&item.entry.value))).collect()
}

/// Returns the address of each service, and the service of each reservation.
async fn both(
    store: &dyn Store,
    at: Revision,
) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let at = At::Exactly(at);
    let services = stored(store, "services/specs", at).await;
    let has_address = |address: &String| !matches!(address.as_str(), "" | "None");
    let services = services.iter().map(|(name, service)| (address(service), name.clone()));
    let reserved = stored(store, "ranges/serviceips", at).await.into_iter();
    let reserved = reserved
        .map(|(address, own)| (address, own["service"].as_str().unwrap_or_default().to_owned()));
    (services.filter(|(address, _)| has_address(address)).collect(), reserved.collect())
}

/// Checks that reservations match services in every state after a revision.
async fn assert_fit(store: &dyn Store, after: Revision) {
    let newest = store.current_rev().await.unwrap();
    let mut states = 0;
    for number in after.as_u64() + 1..=newest.as_u64() {
        let (services, reserved) = both(store, Revision::new(number)).await;
        assert_eq!(services, reserved, "in state {number}");
        states += 1;
    }
    assert!(states > 0, "nothing was written");
}

async fn wait_until_quiet(store: &dyn Store) {
    let patience = Instant::now() + PATIENCE;
    let mut seen = store.current_rev().await.unwrap();
    loop {
        // The test waits for a real process: aborted requests still run in the server.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let current = store.current_rev().await.unwrap();
        if current == seen {
            return;
        }
        seen = current;
        assert!(Instant::now() < patience, "writes go on");
    }
}

/// Begins a create and hangs up before the answer.
async fn abort(client: Client, n: u64) {
    let body = service(&format!("s{n}")).to_string();
    let creating = client.send(Method::POST, SERVICES, &[], body);
    let _ = tokio::time::timeout(Duration::from_millis(3 + n % 7), creating).await;
}

/// Clients hang up while their services are created, and a hook refuses others: whatever was stored has an
/// address, and no other address is taken, in any state.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_that_come_to_nothing_take_no_address() {
    const N_ABORTED: u64 = 600;
    let cluster = Cluster::start_with(|options, _| range(options, "10.0.0.0/24")).await;
    let authority = HookAuthority::new();
    let hook = authority.hook(answering(json!({"allowed": false})));
    let mut webhook = authority.webhook("no.x.y", &hook, json!({}));
    webhook["rules"] = json!([rule(&["CREATE"], "", "services")]);
    webhook["objectSelector"] = json!({"matchLabels": {"refuse": "me"}});
    register(&cluster, VALIDATING, "no", &[webhook]).await;
    let begun = cluster.store.current_rev().await.unwrap();
    let mut aborted = JoinSet::new();
    for n in 0..N_ABORTED {
        aborted.spawn(abort(cluster.admin(), n));
        if n % 30 == 29 {
            while aborted.join_next().await.is_some() {}
            let mut refused = service("refused");
            refused["metadata"]["labels"] = json!({"refuse": "me"});
            cluster.admin().post(SERVICES, &refused).await.expect(400);
            // Make room for more.
            let made =
                cluster.admin().delete(&format!("{SERVICES}?labelSelector=!component")).await;
            assert_eq!(made.code, 200, "{}", made.text());
        }
    }
    wait_until_quiet(&*cluster.store).await;
    assert_fit(&*cluster.store, begun).await;
}

/// The first pass of the repair is part of the start.
#[tokio::test(flavor = "multi_thread")]
async fn what_earlier_versions_left_is_repaired_at_the_start() {
    let cluster = Cluster::start_with(|options, _| range(options, "10.0.0.0/28")).await;
    let admin = cluster.admin();
    let kept = address(&admin.post(SERVICES, &service("kept")).await.expect(201));
    let bare = address(&admin.post(SERVICES, &service("bare")).await.expect(201));
    let own = |address: &str| Key::new(&format!("/registry/ranges/serviceips/{address}")).unwrap();
    let mut lost = Vec::new();
    for number in 2..=14 {
        let address = format!("10.0.0.{number}");
        if address != kept && address != bare {
            let value = json!({"service": "default/gone", "uid": "gone"}).to_string().into();
            let (key, expected_state) = (own(&address), ExpectedKeyState::Absent);
            cluster
                .store
                .put(Put { key, value, expected_state, ttl: None, key_group_revision_action: None })
                .await
                .unwrap();
            lost.push(address);
        }
    }
    let full = admin.post(SERVICES, &service("more")).await.expect(500);
    assert!(full["message"].as_str().unwrap().ends_with("range is full"), "{full}");
    let key = own(&bare);
    let entry = cluster.store.get(&key, At::Newest).await.unwrap().entry.expect("a reservation");
    let expected_state = ExpectedKeyState::At(entry.mod_rev);
    cluster
        .store
        .delete(Delete { key, expected_state, key_group_revision_action: None })
        .await
        .unwrap();
    let cluster = cluster.restart().await;
    let admin = cluster.admin();
    let (services, reserved) =
        both(&*cluster.store, cluster.store.current_rev().await.unwrap()).await;
    assert_eq!(services, reserved);
    assert_eq!(services.len(), 3);
    for n in 0..lost.len() {
        admin.post(SERVICES, &service(&format!("s{n}"))).await.expect(201);
    }
    admin.post(SERVICES, &service("more")).await.expect(500);
}

/// Services that share an address, and one that cannot be read, do not keep the server from its start, nor
/// are their addresses given away.
#[tokio::test(flavor = "multi_thread")]
async fn services_that_nobody_understands_keep_their_addresses() {
    let cluster = Cluster::start_with(|options, _| range(options, "10.0.0.0/28")).await;
    let admin = cluster.admin();
    let made = admin.post(SERVICES, &service("broken")).await.expect(201);
    let shared = admin.post(SERVICES, &service("shared")).await.expect(201);
    let key = Key::new("/registry/services/specs/default/broken").unwrap();
    let at = made["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let expected_state = ExpectedKeyState::At(Revision::new(at));
    let value = "{broken".into();
    cluster
        .store
        .put(Put { key, value, expected_state, ttl: None, key_group_revision_action: None })
        .await
        .unwrap();
    let key = Key::new("/registry/services/specs/default/twin").unwrap();
    let mut twin = shared.clone();
    twin["metadata"] = json!({"name": "twin", "namespace": "default", "uid": "twin"});
    let value = twin.to_string().into();
    let put = Put {
        key,
        value,
        expected_state: ExpectedKeyState::Absent,
        ttl: None,
        key_group_revision_action: None,
    };
    cluster.store.put(put).await.unwrap();
    let cluster = cluster.restart().await;
    for address in [address(&made), address(&shared)] {
        let mut wanted = service("wanted");
        wanted["spec"]["clusterIP"] = address.into();
        let refused = cluster.admin().post(SERVICES, &wanted).await.expect(422);
        let why = refused["message"].as_str().unwrap();
        assert!(why.contains("provided IP is already allocated"), "{why}");
    }
}

/// Another service has the address of the deleted service `default/kubernetes`.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_when_its_address_is_taken() {
    let cluster = Cluster::start_with(|options, _| range(options, "10.0.0.0/28")).await;
    let admin = cluster.admin();
    admin.delete(&format!("{SERVICES}/kubernetes")).await.expect(200);
    let mut thief = service("thief");
    thief["spec"]["clusterIP"] = json!("10.0.0.1");
    admin.post(SERVICES, &thief).await.expect(201);
    let cluster = cluster.restart().await;
    assert_eq!(cluster.admin().get(&format!("{SERVICES}/kubernetes")).await.code, 404);
    cluster.admin().delete(&format!("{SERVICES}/thief")).await.expect(200);
    let cluster = cluster.restart().await;
    let own = cluster.admin().get(&format!("{SERVICES}/kubernetes")).await.expect(200);
    assert_eq!(address(&own), "10.0.0.1");
    // A server with another range leaves the addresses of existing services unchanged.
    let folder = cluster.stop(Duration::ZERO).await;
    let cluster = Cluster::start_in(folder, |options, _| range(options, "10.7.0.0/28")).await;
    let own = cluster.admin().get(&format!("{SERVICES}/kubernetes")).await.expect(200);
    assert_eq!(address(&own), "10.0.0.1");
}

/// The address of a service is reserved exactly while the service has it.
#[tokio::test(flavor = "multi_thread")]
async fn reservations_follow_services_through_their_lives() {
    let cluster = Cluster::start_with(|options, _| range(options, "10.0.0.0/28")).await;
    let admin = cluster.admin();
    let begun = cluster.store.current_rev().await.unwrap();
    let path = format!("{SERVICES}/s");
    admin.post(SERVICES, &service("s")).await.expect(201);
    let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "a.example"}});
    admin.patch(&path, "merge-patch", &elsewhere).await.expect(200);
    let back = json!({"spec": {"type": "ClusterIP", "externalName": null}});
    admin.patch(&path, "merge-patch", &back).await.expect(200);
    admin.patch(&path, "merge-patch", &elsewhere).await.expect(200);
    let named = json!({"spec": {"type": "ClusterIP", "externalName": null,
        "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"]}});
    admin.patch(&path, "merge-patch", &named).await.expect(200);
    // A finalizer holds the service, and so its address, until it is removed.
    let held = json!({"metadata": {"finalizers": ["x.y/hold"]}});
    admin.patch(&path, "merge-patch", &held).await.expect(200);
    admin.delete(&path).await.expect(200);
    let mut wanted = service("wanted");
    wanted["spec"]["clusterIP"] = json!("10.0.0.9");
    admin.post(SERVICES, &wanted).await.expect(422);
    let unheld = json!({"metadata": {"finalizers": null}});
    admin.patch(&path, "merge-patch", &unheld).await.expect(200);
    assert_eq!(admin.get(&path).await.code, 404);
    admin.post(SERVICES, &wanted).await.expect(201);
    admin.delete(SERVICES).await.expect(200);
    assert_fit(&*cluster.store, begun).await;
}

/// Two servers start on one etcd, give out every address of a range once, and start again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_servers_share_a_range() {
    const N_CLIENTS: usize = 20;
    let members = [etcd_testing::Member::alone()];
    members.iter().for_each(etcd_testing::Member::wait_until_healthy);
    let change = |options: &mut ServerOptions| range(options, "10.0.0.0/28");
    let (near, far) =
        tokio::join!(Station::start(&members, change), Station::start(&members, change));
    let mut creating = JoinSet::new();
    for n in 0..N_CLIENTS {
        let client = if n % 2 == 0 { near.admin() } else { far.admin() };
        creating.spawn(async move { client.post(SERVICES, &service(&format!("s{n}"))).await });
    }
    let answers = creating.join_all().await;
    let mut addresses = BTreeSet::new();
    for answer in answers {
        match answer.code {
            201 => assert!(addresses.insert(address(&answer.json())), "{}", answer.text()),
            _ => assert!(answer.text().contains("range is full"), "{}", answer.text()),
        }
    }
    // Fourteen addresses, of which the server's own service has one.
    assert_eq!(addresses.len(), 13);
    assert!(!addresses.contains("10.0.0.1"));
    near.stop().await;
    far.stop().await;
    let (near, far) =
        tokio::join!(Station::start(&members, change), Station::start(&members, change));
    for station in [&near, &far] {
        let own = station.admin().get(&format!("{SERVICES}/kubernetes")).await.expect(200);
        assert_eq!(address(&own), "10.0.0.1");
    }
    far.admin().delete(&format!("{SERVICES}/s0")).await;
    far.stop().await;
    near.stop().await;
}
