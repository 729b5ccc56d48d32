//! Admission webhooks at addresses that only the server can reach (attack A19).

use fake_http::Peer;
use http::Method;
use https_client::AddressPolicy;
use serde_json::{Value, json};

use crate::admission_hooks::{
    HookAuthority, VALIDATING, answering, warnings, webhook_configuration,
};
use crate::client::Client;
use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/tenant";

/// A server as one that listens on more than loopback: addresses that tenants write lead to none.
async fn public_server() -> Cluster {
    Cluster::start_with(|options, _| {
        options.admission_options.hook_address_policy = AddressPolicy { allows_loopback: false };
    })
    .await
}

/// Has a tenant's hook called with each failure policy. Neither lets the request pass, and nobody is
/// connected to.
async fn check_refused(admin: &Client, hooks: &HookAuthority, client: &Value, kind: &str) {
    for policy in ["Fail", "Ignore"] {
        let changes = json!({"failurePolicy": policy});
        let webhook = hooks.webhook_at("tenant.example.com", client, changes);
        let configuration = webhook_configuration(VALIDATING, "tenant", &[webhook]);
        admin.post(VALIDATING, &configuration).await.expect(201);
        let map = json!({"metadata": {"generateName": "m-"}});
        let answer = admin.post(MAPS, &map).await;
        let text = answer.text();
        assert_eq!(answer.code, 503, "{client} {policy}: {text}");
        assert!(!answer.headers.contains_key("retry-after"), "{client}: a retry does not help");
        let want = format!(": webhooks may not be at a {kind} address");
        let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.starts_with("failed calling webhook \"tenant.example.com\": "), "{text}");
        assert!(message.ends_with(&want), "{client} {policy}: {text}");
        admin.delete(CONFIGURATION).await.expect(200);
    }
}

fn hook_on_loopback(hooks: &HookAuthority) -> (Peer, u16) {
    let peer = hooks.hook(answering(json!({"allowed": true})));
    let port = peer.address().port();
    (peer, port)
}

/// A19, L5: a tenant who may write webhook configurations reaches neither what listens on loopback, such as
/// etcd, nor link-local and metadata addresses, in whichever form or by whichever name.
#[tokio::test(flavor = "multi_thread")]
async fn a19_urls_to_addresses_of_the_host_are_not_called() {
    let cluster = public_server().await;
    let admin = cluster.admin();
    let hooks = HookAuthority::new();
    let (peer, port) = hook_on_loopback(&hooks);
    for (host, kind) in [
        ("127.0.0.1", "loopback"),
        ("localhost", "loopback"),
        ("[::1]", "loopback"),
        ("[::ffff:127.0.0.1]", "loopback"),
        ("[::7f00:1]", "loopback"),
        ("[64:ff9b::7f00:1]", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("[::]", "unspecified"),
        ("169.254.169.254", "link-local"),
        ("[::ffff:a9fe:a9fe]", "link-local"),
        ("[2002:a9fe:a9fe::]", "link-local"),
        ("[fe80::1]", "link-local"),
        ("[fd00:ec2::254]", "metadata service"),
        ("100.100.100.200", "metadata service"),
        ("224.0.0.1", "multicast or broadcast"),
    ] {
        let client =
            json!({"url": format!("https://{host}:{port}/admit"), "caBundle": hooks.bundle()});
        check_refused(&admin, &hooks, &client, kind).await;
    }
    assert_eq!(peer.n_accepted(), 0);
}

/// A19: the endpoints of a Service are written by a tenant, too.
#[tokio::test(flavor = "multi_thread")]
async fn a19_endpoints_at_addresses_of_the_host_are_not_called() {
    let cluster = public_server().await;
    let admin = cluster.admin();
    let hooks = HookAuthority::new();
    let (peer, port) = hook_on_loopback(&hooks);
    let service = json!({"metadata": {"name": "hook"},
        "spec": {"clusterIP": "None", "ports": [{"name": "https", "port": 443}]}});
    admin.post("/api/v1/namespaces/default/services", &service).await.expect(201);
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let client = json!({"service": {"namespace": "default", "name": "hook", "path": "/admit"},
        "caBundle": hooks.bundle()});
    // Kubernetes refuses slices with loopback and link-local addresses, but not those with names.
    let mut n_checked = 0;
    for (family, address, kind) in [
        ("IPv4", "127.0.0.1", "loopback"),
        ("IPv4", "169.254.169.254", "link-local"),
        ("IPv6", "::ffff:127.0.0.1", "loopback"),
        ("IPv6", "fe80::1", "link-local"),
        ("FQDN", "localhost", "loopback"),
    ] {
        let slice = json!({
            "metadata": {"name": "hook", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": family, "endpoints": [{"addresses": [address]}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        });
        let answer = admin.post(slices, &slice).await;
        if answer.code == 422 {
            continue;
        }
        answer.expect(201);
        n_checked += 1;
        check_refused(&admin, &hooks, &client, kind).await;
        admin.delete(&format!("{slices}/hook")).await.expect(200);
    }
    assert!(n_checked > 0);
    assert_eq!(peer.n_accepted(), 0);
}

/// A19: whoever writes such an address is told, and a server on loopback calls hooks beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a19_refused_addresses_are_warned_about() {
    let (public, private) = (public_server().await, Cluster::start().await);
    let hooks = HookAuthority::new();
    let (peer, port) = hook_on_loopback(&hooks);
    for (cluster, host, kind) in [
        (&public, "127.0.0.1", Some("loopback")),
        (&public, "[::ffff:169.254.169.254]", Some("link-local")),
        (&public, "10.0.0.1", None),
        (&public, "hook.example.com", None),
        (&private, "169.254.169.254", Some("link-local")),
        (&private, "127.0.0.1", None),
    ] {
        let client =
            json!({"url": format!("https://{host}:{port}/admit"), "caBundle": hooks.bundle()});
        let webhook = hooks.webhook_at("tenant.example.com", &client, json!({}));
        let configuration = webhook_configuration(VALIDATING, "tenant", &[webhook]);
        let path = format!("{VALIDATING}?dryRun=All");
        let answer = cluster.admin().post(&path, &configuration).await;
        assert_eq!(answer.code, 201, "{host}: {}", answer.text());
        let want = kind.map(|kind| {
            format!(
                "webhooks[0].clientConfig.url: webhooks may not be at a {kind} address; the server \
                 refuses every request that this webhook matches"
            )
        });
        assert_eq!(warnings(&answer), want.into_iter().collect::<Vec<_>>(), "{host}");
    }
    let webhook = hooks.webhook("tenant.example.com", &peer, json!({}));
    let configuration = webhook_configuration(VALIDATING, "tenant", &[webhook]);
    private.admin().post(VALIDATING, &configuration).await.expect(201);
    let map = json!({"metadata": {"name": "m"}}).to_string();
    private.admin().send(Method::POST, MAPS, &[], map).await.expect(201);
    assert_eq!(peer.n_requests(), 1);
}
