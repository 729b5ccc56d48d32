//! Addresses of hooks: URLs, services, endpoints, credentials.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admission_hooks::{
    ClusterServices, HookConnections, HookEnvironment, HookRefusal, ServiceCredentials,
    ServiceCredentialsTable,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fake_http::{Answer, Leaf, Peer, Script, ServerTls};
use https_client::{Credentials, HostPort, ResolveError, Secret, ServiceName, ServiceResolver};
use serde_json::{Value, json};

use crate::fixture::{AUTHORITY, Scene, allow, answer_to, hook, peer, says, until, with};

/// Services by name: their ports, and the one endpoint that is ready.
#[derive(Default)]
pub(crate) struct Table(Mutex<HashMap<String, Service>>);

type Service = (Vec<u16>, Option<SocketAddr>);

impl Table {
    pub(crate) fn put(&self, name: &str, ports: &[u16], at: Option<SocketAddr>) {
        self.0.lock().unwrap().insert(name.to_owned(), (ports.to_vec(), at));
    }
}

impl ServiceResolver for Table {
    /// Every host is this machine.
    fn override_address(&self, _: &str, port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        assert_ne!(service.name, "panics", "the resolver has a fault");
        let name = &service.name;
        let (ports, at) = self.0.lock().unwrap().get(name).cloned().ok_or_else(|| missing(name))?;
        let port = service.port.unwrap_or(443);
        if !ports.contains(&port) {
            return Err(ResolveError(format!(
                "no service port {port} found for service \"{name}\""
            )));
        }
        let none = || ResolveError(format!("no endpoints available for service \"{name}\""));
        let at = at.ok_or_else(none)?;
        Ok(HostPort { host: at.ip().to_string(), port: at.port() })
    }
}

impl ClusterServices for Table {
    fn tcp_ports(&self, _: &str, name: &str) -> Result<Vec<u16>, ResolveError> {
        let found = self.0.lock().unwrap().get(name).map(|(ports, _)| ports.clone());
        found.ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> ResolveError {
    ResolveError(format!("services \"{name}\" not found"))
}

fn surroundings_of(table: &Arc<Table>) -> Arc<HookEnvironment> {
    let services = Some(Arc::clone(table) as Arc<dyn ClusterServices>);
    Arc::new(HookEnvironment { cluster_services: services, ..HookEnvironment::default() })
}

pub(crate) fn environment(services: &[(&str, &[u16], SocketAddr)]) -> Arc<HookEnvironment> {
    let table = Arc::new(Table::default());
    for (name, ports, at) in services {
        table.put(name, ports, Some(*at));
    }
    surroundings_of(&table)
}

/// A service with this name in its certificate, that always answers this.
pub(crate) fn service_peer(name: &str, body: &[u8]) -> Peer {
    service(name, Answer::json(Bytes::copy_from_slice(body)).into())
}

fn service(name: &str, script: Script) -> Peer {
    let leaf = AUTHORITY.issue(&Leaf::server(&[name])).unwrap();
    Peer::start_tls(script, &ServerTls::new(leaf)).unwrap()
}

fn service_hook(service: Value) -> Value {
    let mut hook = crate::fixture::hook_at("v.x.y", "");
    let bundle = hook["clientConfig"]["caBundle"].clone();
    hook["clientConfig"] = json!({ "service": service, "caBundle": bundle });
    hook
}

fn external_hook() -> Value {
    json!({
        "name": "v.x.y", "failurePolicy": "Fail", "rules": [{
            "verbs": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
        }],
        "clientConfig": {
            "service": {"namespace": "ns", "name": "hook"}, "urlPath": "",
            "caBundle": STANDARD.encode(AUTHORITY.pem()),
        },
    })
}

#[tokio::test]
async fn hooks_of_v1alpha1_take_the_only_port_or_443() {
    let peer = service_peer("hook.ns.svc", br#"{"status": {"allowed": true}}"#);
    for (ports, want) in
        [(&[8443][..], Some("8443")), (&[80, 443], Some("443")), (&[80, 8080], None)]
    {
        let mut scene = Scene::new().external("c", vec![external_hook()]);
        scene.environment = environment(&[("hook", ports, peer.address())]);
        match want {
            Some(port) => {
                scene.allowed().await;
                let asked = peer.take_requests().remove(0);
                assert_eq!(asked.header("host").unwrap(), format!("hook.ns.svc:{port}"));
                assert_eq!(asked.tls.unwrap().server_name.as_deref(), Some("hook.ns.svc"));
            }
            None => {
                let complaint = scene.complaint().await;
                let want = "service \"ns/hook\" exposes several ports and none of them is 443";
                assert!(complaint.ends_with(want), "{complaint}");
            }
        }
    }
}

#[tokio::test]
async fn services_that_can_not_be_called() {
    let table = Arc::new(Table::default());
    let address = "127.0.0.1:1".parse().unwrap();
    table.put("elsewhere", &[1234], Some(address));
    table.put("idle", &[443], None);
    for (name, want) in [
        ("elsewhere", "no service port 443 found for service \"elsewhere\""),
        ("idle", "no endpoints available for service \"idle\""),
        ("missing", "services \"missing\" not found"),
    ] {
        let hook = service_hook(json!({"namespace": "ns", "name": name, "path": "/p"}));
        let mut scene = Scene::new().validating("c", vec![hook]);
        scene.environment = surroundings_of(&table);
        let want = format!(
            "Internal error occurred: failed calling webhook \"v.x.y\": failed to call webhook: \
             Post \"https://{name}.ns.svc:443/p?timeout=10s\": {want}"
        );
        assert_eq!(scene.complaint().await, want);
    }
}

#[tokio::test]
async fn the_certificate_must_name_the_service() {
    let peer = service("other.ns.svc", says(allow()));
    let hook = service_hook(json!({"namespace": "ns", "name": "hook"}));
    let mut scene = Scene::new().validating("c", vec![hook]);
    scene.environment = environment(&[("hook", &[443], peer.address())]);
    let complaint = scene.complaint().await;
    assert!(complaint.contains("tls: failed to verify certificate: x509: "), "{complaint}");
}

#[tokio::test]
async fn the_endpoint_is_chosen_for_each_call() {
    let (old, new) = (service("hook.ns.svc", says(allow())), service("hook.ns.svc", says(allow())));
    let table = Arc::new(Table::default());
    table.put("hook", &[443], Some(old.address()));
    let hook = service_hook(json!({"namespace": "ns", "name": "hook"}));
    let mut scene = Scene::new().validating("c", vec![hook]);
    scene.environment = surroundings_of(&table);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    scene.session().validate(&asking).await.unwrap();
    table.put("hook", &[443], Some(new.address()));
    scene.session().validate(&asking).await.unwrap();
    assert_eq!((old.n_requests(), new.n_requests()), (1, 1));
    // The second call of a hook uses the open connection.
    table.put("hook", &[443], Some(old.address()));
    scene.session().validate(&asking).await.unwrap();
    assert_eq!((old.n_requests(), old.n_accepted()), (2, 1));
}

#[tokio::test]
async fn a_service_that_comes_up_is_called_at_once() {
    let peer = service("hook.ns.svc", says(allow()));
    let table = Arc::new(Table::default());
    table.put("hook", &[443], None);
    let hook = service_hook(json!({"namespace": "ns", "name": "hook"}));
    let mut scene = Scene::new().validating("c", vec![hook]);
    scene.environment = surroundings_of(&table);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    for _ in 0..20 {
        scene.session().validate(&asking).await.unwrap_err();
    }
    table.put("hook", &[443], Some(peer.address()));
    scene.session().validate(&asking).await.unwrap();
    assert_eq!(peer.n_requests(), 1);
}

#[tokio::test]
async fn concurrent_requests_take_connections_of_their_own_and_then_use_them_again() {
    let script =
        Script::rule(|request| answer_to(request, allow()).delay(Duration::from_millis(300)));
    let peer = service("hook.ns.svc", script);
    let hook = service_hook(json!({"namespace": "ns", "name": "hook"}));
    let mut scene = Scene::new().validating("c", vec![hook]);
    scene.environment = environment(&[("hook", &[443], peer.address())]);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    for _ in 0..2 {
        let mut passages: Vec<_> = (0..10).map(|_| scene.session()).collect();
        let [a, b, c, d, e, f, g, h, i, j] = &mut passages[..] else { panic!() };
        let _all = tokio::join!(
            a.validate(&asking),
            b.validate(&asking),
            c.validate(&asking),
            d.validate(&asking),
            e.validate(&asking),
            f.validate(&asking),
            g.validate(&asking),
            h.validate(&asking),
            i.validate(&asking),
            j.validate(&asking),
        );
    }
    assert_eq!((peer.n_requests(), peer.n_accepted()), (20, 10));
}

#[tokio::test]
async fn hooks_at_one_place_share_its_connections_from_snapshot_to_snapshot() {
    let peer = peer(says(allow()));
    let scene = Scene::new().mutating("a", vec![hook("a.x.y", &peer), hook("b.x.y", &peer)]);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    scene.session().call_mutating_hooks(&asking, scene.object.clone()).await.unwrap();
    let scene = scene.validating("b", vec![hook("c.x.y", &peer)]);
    let snapshot = scene.snapshot();
    let next = HookConnections::new(&snapshot, &scene.environment, &connections);
    let asking = scene.asking(&snapshot, &next);
    scene.session().validate(&asking).await.unwrap();
    assert_eq!((peer.n_requests(), peer.n_accepted()), (3, 1));
}

#[tokio::test]
async fn what_a_call_looks_like() {
    let peer = peer(says(allow()));
    Scene::new().validating("c", vec![hook("v.x.y", &peer)]).allowed().await;
    let call = peer.take_requests().remove(0);
    assert_eq!((&*call.method, &*call.target), ("POST", "/admit?timeout=10s"));
    assert_eq!(call.header("content-type"), Some("application/json"));
    assert_eq!(call.header("accept"), Some("application/json, */*"));
    assert_eq!(call.header("user-agent"), Some("portcullis-admission"));
}

/// Calls at once must not share a connection, lest they all go to one backend, or one
/// waits for another.
#[tokio::test]
async fn http1_is_spoken_to_hooks_that_offer_http2() {
    let leaf = Leaf::server(&["127.0.0.1", "localhost", "hook.example.test", "hook.ns.svc"]);
    let tls = ServerTls::new(AUTHORITY.issue(&leaf).unwrap()).offer_http2();
    let peer = Peer::start_tls(says(allow()), &tls).unwrap();
    let port = peer.address().port();
    let at = |url: String| crate::fixture::hook_at("v.x.y", &url);
    for hook in [
        at(format!("https://127.0.0.1:{port}/")),
        at(format!("https://localhost:{port}/")),
        at(format!("https://hook.example.test:{port}/")),
        service_hook(json!({"namespace": "ns", "name": "hook"})),
    ] {
        let mut scene = Scene::new().validating("c", vec![hook.clone()]);
        scene.environment = environment(&[("hook", &[443], peer.address())]);
        scene.allowed().await;
        assert_eq!(peer.take_requests()[0].http_version, 1, "{}", hook["clientConfig"]);
    }
}

/// Clients are kept for a limited number of services: those that were called last.
#[tokio::test]
async fn connections_are_kept_to_as_many_places_as_permitted() {
    const PLACES_MAX: usize = 200;
    let peer = peer(says(allow()));
    let url = |n: usize| format!("https://{}/{n}", peer.address());
    let hooks: Vec<Value> = (0..=PLACES_MAX)
        .map(|n| crate::fixture::hook_at(&format!("h{n:03}.x.y"), &url(n)))
        .collect();
    let mut scene = Scene::new().mutating("a", hooks);
    scene.limit = Duration::from_secs(600);
    let environment = Arc::clone(&scene.environment);
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    scene.session().call_mutating_hooks(&asking, scene.object.clone()).await.unwrap();
    assert_eq!((peer.n_requests(), peer.n_accepted()), (PLACES_MAX + 1, PLACES_MAX + 1));
    until(|| peer.n_open() <= PLACES_MAX).await;

    // The last ones are still there, the first is not.
    let scene = Scene::new().mutating(
        "a",
        vec![
            crate::fixture::hook_at("last.x.y", &url(PLACES_MAX)),
            crate::fixture::hook_at("second.x.y", &url(1)),
            crate::fixture::hook_at("first.x.y", &url(0)),
        ],
    );
    let snapshot = scene.snapshot();
    let shrunk = HookConnections::new(&snapshot, &environment, &connections);
    let asking = scene.asking(&snapshot, &shrunk);
    scene.session().call_mutating_hooks(&asking, scene.object.clone()).await.unwrap();
    assert_eq!(peer.n_accepted(), PLACES_MAX + 2);

    // Nobody can call the others any more, so that their connections are closed.
    drop(connections);
    until(|| peer.n_open() <= 3).await;
}

/// A hook sees whom the table has for its place, and no other hook does.
#[tokio::test]
async fn hooks_are_told_who_we_are_to_them() {
    let (known, other) = (peer(says(allow())), peer(says(allow())));
    let token = Credentials::Token(Secret::new("hunter2"));
    let access = ServiceCredentials { header_credentials: token, ..ServiceCredentials::ANONYMOUS };
    let users = HashMap::from([(known.address().to_string(), access)]);
    let access = ServiceCredentialsTable {
        credentials_by_target_name: users,
        ..ServiceCredentialsTable::default()
    };
    let hooks = vec![hook("known.x.y", &known), hook("other.x.y", &other)];
    let mut scene = Scene::new().validating("c", hooks);
    scene.environment =
        Arc::new(HookEnvironment { service_credentials: access, ..HookEnvironment::default() });
    scene.allowed().await;
    let authorization =
        |peer: &Peer| peer.take_requests()[0].header("authorization").map(str::to_owned);
    assert_eq!(authorization(&known).as_deref(), Some("Bearer hunter2"));
    assert_eq!(authorization(&other), None);
}

/// The files that a client is built from may appear later.
#[tokio::test]
async fn a_client_that_could_not_be_made_is_made_when_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let identity = https_client::ClientCertificate {
        certificate_location: https_client::PemLocation::File(certificate.clone()),
        key: https_client::PemLocation::File(key.clone()),
    };
    let current =
        ServiceCredentials { client_certificate: Some(identity), ..ServiceCredentials::ANONYMOUS };
    let access = ServiceCredentialsTable {
        current_context_credentials: Some(current),
        ..ServiceCredentialsTable::default()
    };
    let peer = peer(says(allow()));
    let mut scene = Scene::new().validating("c", vec![hook("v.x.y", &peer)]);
    scene.environment =
        Arc::new(HookEnvironment { service_credentials: access, ..HookEnvironment::default() });
    let snapshot = scene.snapshot();
    let connections = scene.connections(&snapshot);
    let asking = scene.asking(&snapshot, &connections);
    let refusal = scene.session().validate(&asking).await.unwrap_err();
    let want = format!(
        "failed calling webhook \"v.x.y\": could not get REST client: open {}: no such file or \
         directory",
        certificate.display()
    );
    assert!(matches!(refusal, HookRefusal::CallUnavailable { is_temporary: true, .. }));
    assert_eq!(refusal.to_string(), want);
    let issued = AUTHORITY.issue(&Leaf::client("portcullis")).unwrap();
    std::fs::write(certificate, issued.certificate_pem).unwrap();
    std::fs::write(key, issued.key_pem).unwrap();
    scene.session().validate(&asking).await.unwrap();
}

#[tokio::test]
async fn a_panic_in_a_call_refuses_the_request() {
    // A panic is a fault of this server, so the failure policy `Ignore` does not apply.
    for policy in ["Fail", "Ignore"] {
        let hook = service_hook(json!({"namespace": "ns", "name": "panics"}));
        let hook = with(hook, "failurePolicy", policy);
        for (plugin, mut scene) in [
            ("ValidatingAdmissionWebhook", Scene::new().validating("c", vec![hook.clone()])),
            ("MutatingAdmissionWebhook", Scene::new().mutating("c", vec![hook])),
        ] {
            scene.environment = environment(&[]);
            let (refusal, _) = scene.refused().await;
            let want = format!("Internal error occurred: {plugin}/v.x.y has panicked: ");
            assert!(refusal.to_string().starts_with(&want), "{refusal}");
            assert!(matches!(refusal, HookRefusal::Internal(_)));
            let call = ("v.x.y".to_owned(), 0, Some("apiserver_internal_error"));
            assert_eq!(*scene.seen.calls.lock().unwrap(), [call]);
        }
    }
}
