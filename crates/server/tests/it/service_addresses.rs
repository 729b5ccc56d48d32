//! Ownership of cluster IPs: a service neither releases nor takes the address of another one.

use http::Method;
use serde_json::{Value, json};
use store::{ExpectedKeyState, Key, Put, Store};
use tokio::task::JoinSet;

use crate::client::{Answer, Client};
use crate::cluster::Cluster;

const OWN: &str = "/api/v1/namespaces/t1/services";
const OTHERS: &str = "/api/v1/namespaces/default/services";
const TAKEN: &str = "provided IP is already allocated";

async fn cluster() -> Cluster {
    let cluster = Cluster::start_with(|options, _| {
        options.api_settings.service_ip_range = "10.0.0.0/28".parse().ok();
    })
    .await;
    let admin = cluster.admin();
    admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "t1"}})).await.expect(201);
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/t1";
    let role = json!({"metadata": {"name": "services"},
        "rules": [{"apiGroups": [""], "resources": ["services"], "verbs": ["*"]}]});
    admin.post(&format!("{rbac}/roles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "services"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    admin.post(&format!("{rbac}/rolebindings"), &binding).await.expect(201);
    cluster
}

fn service(name: &str, spec: Value) -> Value {
    let mut service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    for (key, value) in spec.as_object().expect("members") {
        service["spec"][key] = value.clone();
    }
    service
}

fn external(name: &str) -> Value {
    service(name, json!({"type": "ExternalName", "externalName": "a.example"}))
}

#[track_caller]
fn refused(answer: Answer, why: &str) {
    let status = answer.expect(422);
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains(why), "{message}");
}

/// No other service gets the address, so its reservation still exists.
async fn assert_held(cluster: &Cluster, address: &str) {
    let wanted = service("probe", json!({"clusterIP": address}));
    refused(cluster.admin().post(OTHERS, &wanted).await, TAKEN);
}

async fn delete_options(client: &Client, path: &str, options: &str) -> Answer {
    client.send(Method::DELETE, &format!("{path}{options}"), &[], "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_frees_or_takes_the_address_of_another_service() {
    let cluster = cluster().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let victim = admin.post(OTHERS, &service("victim", json!({}))).await.expect(201);
    let victim = victim["spec"]["clusterIP"].as_str().expect("an address").to_owned();
    alice.post(OWN, &external("name")).await.expect(201);
    alice.post(OWN, &service("own", json!({}))).await.expect(201);
    alice.post(OWN, &service("headless", json!({"clusterIP": "None"}))).await.expect(201);
    let no_address = "spec.clusterIPs: Forbidden: may not be set for ExternalName services";
    for address in ["10.0.0.1", victim.as_str()] {
        let named = json!({"type": "ExternalName", "externalName": "a.example"});
        let with = |mut spec: Value, members: Value| {
            for (key, value) in members.as_object().expect("members") {
                spec[key] = value.clone();
            }
            spec
        };
        let (ip, ips) = (json!({"clusterIP": address}), json!({"clusterIPs": [address]}));
        // New services.
        for (spec, why) in [
            (with(named.clone(), ip.clone()), no_address),
            (with(named.clone(), ips.clone()), no_address),
            (ip.clone(), TAKEN),
            (ips.clone(), "must be empty when `clusterIP` is not specified"),
            (json!({"clusterIP": "10.0.0.9", "clusterIPs": [address]}), "first value must match"),
            (json!({"clusterIP": "None", "clusterIPs": [address]}), "first value must match"),
            (
                json!({"clusterIP": "10.0.0.9",
                    "clusterIPs": ["10.0.0.9", format!("::ffff:{address}")]}),
                "may specify no more than one IP for each IP family",
            ),
            (
                json!({"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9", "fd00::9"]}),
                "spec.clusterIPs[1]: Invalid value: \"fd00::9\": not configured on this cluster",
            ),
        ] {
            refused(alice.post(OWN, &service("new", spec.clone())).await, why);
            refused(alice.put(&format!("{OWN}/new"), &service("new", spec)).await, why);
        }
        // Changes of services that exist.
        for (name, spec, why) in [
            ("name", with(named.clone(), ip.clone()), no_address),
            ("name", json!({"type": "ClusterIP", "clusterIP": address}), TAKEN),
            ("name", json!({"type": "NodePort", "clusterIP": address}), TAKEN),
            ("own", ip.clone(), "first value must match"),
            (
                "own",
                json!({"clusterIP": address, "clusterIPs": [address]}),
                "may not change once set",
            ),
            (
                "own",
                with(named.clone(), json!({"clusterIP": address, "clusterIPs": [address]})),
                no_address,
            ),
            (
                "headless",
                json!({"clusterIP": address, "clusterIPs": [address]}),
                "may not change once set",
            ),
        ] {
            let path = format!("{OWN}/{name}");
            refused(alice.put(&path, &service(name, spec.clone())).await, why);
            refused(
                alice.put(&format!("{path}?dryRun=All"), &service(name, spec.clone())).await,
                match why {
                    // A dry run does not ask whether an address is free, as in Kubernetes.
                    TAKEN => continue,
                    why => why,
                },
            );
        }
        for kind in ["merge-patch", "strategic-merge-patch"] {
            let patch = json!({"spec": {"type": "ClusterIP", "externalName": null,
                "clusterIP": address, "clusterIPs": [address]}});
            refused(alice.patch(&format!("{OWN}/name"), kind, &patch).await, TAKEN);
        }
        let patch = json!([{"op": "add", "path": "/spec/clusterIP", "value": address}]);
        refused(alice.patch(&format!("{OWN}/name"), "json-patch", &patch).await, no_address);
        // A dry run reserves nothing.
        let dry = format!("{OWN}?dryRun=All");
        alice.post(&dry, &service("dry", ip.clone())).await.expect(201);
        let dry = format!("{OWN}/name?dryRun=All");
        let to_address = json!({"type": "ClusterIP", "clusterIP": address});
        alice.put(&dry, &service("name", to_address)).await.expect(200);
        delete_options(&alice, &format!("{OWN}/own"), "?dryRun=All").await.expect(200);
        assert_held(&cluster, address).await;
    }
    // The deletion of a service does not release the addresses of others.
    alice.delete(&format!("{OWN}/name")).await.expect(200);
    alice.post(OWN, &external("name")).await.expect(201);
    alice.delete(OWN).await.expect(200);
    alice.post(OWN, &external("name")).await.expect(201);
    admin.delete("/api/v1/namespaces/t1").await.expect(200);
    while admin.get("/api/v1/namespaces/t1").await.code != 404 {}
    for address in ["10.0.0.1", victim.as_str()] {
        assert_held(&cluster, address).await;
    }
    // The services of the namespace gave back theirs: all but the two are free.
    for number in 0..12 {
        admin.post(OTHERS, &service(&format!("s{number}"), json!({}))).await.expect(201);
    }
    admin.post(OTHERS, &service("more", json!({}))).await.expect(500);
}

/// Data of the first versions: services with addresses of others, and reservations without a uid.
#[tokio::test(flavor = "multi_thread")]
async fn what_earlier_versions_stored_frees_only_its_own() {
    let cluster = cluster().await;
    let (admin, alice) = (cluster.admin(), cluster.alice());
    let put = async |path: &str, value: &Value| {
        let key = Key::new(&format!("/registry/{path}")).unwrap();
        let value = value.to_string().into();
        cluster
            .store
            .put(Put {
                key,
                value,
                expected_state: ExpectedKeyState::Absent,
                ttl: None,
                key_group_revision_action: None,
            })
            .await
            .unwrap();
    };
    let stored = |name: &str, spec: Value| {
        let mut service = service(name, spec);
        service["metadata"]["namespace"] = json!("t1");
        service["metadata"]["uid"] = json!(format!("uid-of-{name}"));
        service
    };
    let spec =
        json!({"type": "ExternalName", "externalName": "a.example", "clusterIP": "10.0.0.1"});
    put("services/specs/t1/name", &stored("name", spec.clone())).await;
    let spec = json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]});
    put("services/specs/t1/thief", &stored("thief", spec)).await;
    let spec = json!({"type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"]});
    put("services/specs/t1/old", &stored("old", spec)).await;
    put("ranges/serviceips/10.0.0.7", &json!({"service": "t1/old"})).await;
    put("ranges/serviceips/10.0.0.8", &json!({"service": "t1/name", "uid": "another"})).await;

    let taking = service("name", json!({"type": "ClusterIP", "clusterIP": "10.0.0.1"}));
    refused(alice.put(&format!("{OWN}/name"), &taking).await, TAKEN);
    // It can be read, changed and deleted: what it says of an address is given up.
    let kept = alice.get(&format!("{OWN}/old")).await.expect(200);
    alice.put(&format!("{OWN}/old"), &kept).await.expect(200);
    let kept = alice.get(&format!("{OWN}/name")).await.expect(200);
    let kept = alice.put(&format!("{OWN}/name"), &kept).await.expect(200);
    assert_eq!(kept["spec"]["clusterIP"], Value::Null);
    for name in ["name", "thief", "old"] {
        alice.delete(&format!("{OWN}/{name}")).await.expect(200);
    }
    assert_held(&cluster, "10.0.0.1").await;
    assert_held(&cluster, "10.0.0.8").await;
    let free = service("free", json!({"clusterIP": "10.0.0.7"}));
    admin.post(OTHERS, &free).await.expect(201);
}

/// A service that becomes an ExternalName releases its address, and gets one when it becomes a
/// ClusterIP service again.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_come_and_go_with_the_type() {
    let cluster = cluster().await;
    let alice = cluster.alice();
    let path = format!("{OWN}/s");
    let made = alice.post(OWN, &service("s", json!({"clusterIP": "10.0.0.9"}))).await.expect(201);
    assert_eq!(made["spec"]["clusterIPs"], json!(["10.0.0.9"]));
    // The same object sent again, and one without the address.
    alice.put(&path, &made).await.expect(200);
    let kept = alice.put(&path, &service("s", json!({}))).await.expect(200);
    assert_eq!(kept["spec"]["clusterIP"], "10.0.0.9");
    let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "a.example"}});
    let dry = format!("{path}?dryRun=All");
    alice.patch(&dry, "merge-patch", &elsewhere).await.expect(200);
    assert_held(&cluster, "10.0.0.9").await;
    let gone = alice.patch(&path, "merge-patch", &elsewhere).await.expect(200);
    assert_eq!(
        (&gone["spec"]["clusterIP"], &gone["spec"]["clusterIPs"]),
        (&Value::Null, &Value::Null)
    );
    let next = service("next", json!({"clusterIP": "10.0.0.9"}));
    alice.post(OWN, &next).await.expect(201);
    let back = json!({"spec": {"type": "ClusterIP", "externalName": null}});
    let shown = alice.patch(&dry, "merge-patch", &back).await.expect(200);
    assert!(shown["spec"]["clusterIP"].is_string(), "{shown}");
    let back = alice.patch(&path, "merge-patch", &back).await.expect(200);
    let address = back["spec"]["clusterIP"].as_str().expect("an address");
    assert_ne!(address, "10.0.0.9");
    assert_held(&cluster, address).await;
    alice.delete(&path).await.expect(200);
    alice.post(OWN, &service("t", json!({"clusterIP": address}))).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_want_one_address_one_gets_it() {
    let cluster = cluster().await;
    for round in 0..8 {
        let mut racing = JoinSet::new();
        for number in 0..8 {
            let alice = cluster.alice();
            racing.spawn(async move {
                let name = format!("s{number}");
                let wanted = json!({"type": "ClusterIP", "clusterIP": "10.0.0.9"});
                match number % 2 {
                    0 => alice.post(OWN, &service(&name, wanted)).await.code,
                    _ => {
                        alice.post(OWN, &external(&name)).await.expect(201);
                        match alice
                            .put(&format!("{OWN}/{name}"), &service(&name, wanted))
                            .await
                            .code
                        {
                            200 => 201,
                            code => code,
                        }
                    }
                }
            });
        }
        let mut codes = racing.join_all().await;
        codes.sort_unstable();
        assert_eq!(codes, [201, 422, 422, 422, 422, 422, 422, 422], "{round}");
        assert_held(&cluster, "10.0.0.9").await;
        cluster.alice().delete(OWN).await.expect(200);
    }
}

/// The service of the server itself is there already, with its address.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_range_starts_again() {
    let cluster = cluster().await.restart().await;
    let own = cluster.admin().get(&format!("{OTHERS}/kubernetes")).await.expect(200);
    assert_eq!(own["spec"]["clusterIP"], "10.0.0.1");
    assert_held(&cluster, "10.0.0.1").await;
}
