//! Hooks behind services of the cluster, and the hooks of v1alpha1.

use fake_http::{Answer, Leaf, Peer, Script};
use serde_json::{Value, json};

use super::{EXTERNAL, MAPS, NAMESPACES, PODS, Scene, map, message, pod, told};
use crate::admission_hooks::{MUTATING, VALIDATING, allow};

const SERVICES: &str = "/api/v1/namespaces/hooks/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/hooks/endpointslices";
const NAME: &str = "hook.hooks.svc";

/// A server with a namespace for services.
async fn start() -> Scene {
    let scene = Scene::start().await;
    scene.admin.post(NAMESPACES, &json!({"metadata": {"name": "hooks"}})).await.expect(201);
    scene
}

impl Scene {
    fn service_hook(&self, script: impl Into<Script>) -> Peer {
        self.authority.service(&Leaf::server(&[NAME]), script)
    }

    /// Creates the service with these ports; the peer serves all of them.
    async fn serve(&self, ports: &[u16], peer: Option<&Peer>) {
        self.admin.delete(&format!("{SERVICES}/hook")).await;
        self.admin.delete(&format!("{SLICES}/hook-1")).await;
        let named = |port: &u16| json!({"name": format!("p{port}"), "port": port});
        let service = json!({"metadata": {"name": "hook"},
            "spec": {"ports": ports.iter().map(named).collect::<Value>()}});
        self.admin.post(SERVICES, &service).await.expect(201);
        self.admin.post(SLICES, &slice(ports, peer)).await.expect(201);
    }

    /// Makes a hook of v1alpha1 the only hook, with failure policy Fail.
    async fn ask_external(&self, changes: Value) {
        let mut hook = json!({
            "name": "e.x.y",
            "clientConfig": {
                "service": {"namespace": "hooks", "name": "hook"},
                "caBundle": self.authority.bundle(),
            },
            "rules": [{"verbs": ["*"], "apiGroups": [""], "apiVersions": ["*"],
                "resources": ["configmaps"]}],
        });
        hook.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        self.admin.delete(&format!("{EXTERNAL}/c")).await;
        let body = json!({"metadata": {"name": "c"}, "externalAdmissionHooks": [hook]});
        self.admin.post(EXTERNAL, &body).await.expect(201);
        let insist = json!([{"op": "add", "path": "/externalAdmissionHooks/0/failurePolicy",
            "value": "Fail"}]);
        self.admin.patch(&format!("{EXTERNAL}/c"), "json-patch", &insist).await.expect(200);
    }
}

fn slice(ports: &[u16], peer: Option<&Peer>) -> Value {
    let port = peer.map_or(1, |peer| peer.address().port());
    let named = |own: &u16| json!({"name": format!("p{own}"), "port": port});
    let endpoint = json!({"addresses": ["127.0.0.1"], "conditions": {"ready": peer.is_some()}});
    json!({
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "endpoints": [endpoint],
        "ports": ports.iter().map(named).collect::<Value>(),
    })
}

/// The response of a hook of v1alpha1.
fn status(status: Value) -> Answer {
    Answer::json(
        json!({"apiVersion": "admission.k8s.io/v1alpha1", "kind": "AdmissionReview",
        "status": status})
        .to_string(),
    )
}

fn service_client(scene: &Scene, changes: Value) -> Value {
    let mut service = json!({"namespace": "hooks", "name": "hook", "path": "/p"});
    service.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    json!({"clientConfig": {"service": service, "caBundle": scene.authority.bundle()}})
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_of_the_proposal_take_the_only_port_or_443() {
    let scene = start().await;
    let hook = scene.service_hook(status(json!({"allowed": true})));
    for (ports, want) in [(&[8443][..], Some(8443)), (&[80, 443], Some(443)), (&[80, 8080], None)] {
        scene.serve(ports, Some(&hook)).await;
        scene.ask_external(json!({})).await;
        let answer = scene.admin.post(MAPS, &map("m")).await;
        match want {
            Some(port) => {
                answer.expect(201);
                let request = hook.take_requests().remove(0);
                assert_eq!(request.header("host"), Some(&*format!("{NAME}:{port}")));
                assert_eq!(request.tls.unwrap().server_name.as_deref(), Some(NAME));
                scene.admin.delete(&format!("{MAPS}/m")).await.expect(200);
                hook.take_requests();
            }
            None => {
                let text = message(answer, 500);
                let want = "service \"hooks/hook\" exposes several ports and none of them is 443";
                assert!(text.ends_with(want), "{text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_that_can_not_be_called() {
    let scene = start().await;
    let hook = scene.service_hook(allow());
    let rows: [(&[u16], Option<&Peer>, Value, &str); 4] = [
        (&[1234], Some(&hook), json!({}), "no service port 443 found for service \"hook\""),
        (&[443], None, json!({}), "no endpoints available for service \"hook\""),
        (&[443], Some(&hook), json!({"name": "missing"}), "services \"missing\" not found"),
        (
            &[443],
            Some(&hook),
            json!({"port": 8443}),
            "no service port 8443 found for service \"hook\"",
        ),
    ];
    for kind in [MUTATING, VALIDATING] {
        for (ports, peer, changes, want) in &rows {
            scene.serve(ports, *peer).await;
            scene
                .configure(
                    kind,
                    &[scene.webhook("h.x.y", &hook, service_client(&scene, changes.clone()))],
                )
                .await;
            let text = message(scene.create("").await, 500);
            let start = "Internal error occurred: failed calling webhook \"h.x.y\": failed to call \
                         webhook: Post \"https://";
            assert!(text.starts_with(start) && text.ends_with(want), "{text}");
        }
        scene.admin.delete(&format!("{kind}/c")).await.expect(200);
    }
    assert_eq!(hook.n_requests(), 0);
}

/// The name in the certificate must be that of the service.
#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_is_chosen_for_each_call() {
    let scene = start().await;
    let first = scene.service_hook(allow());
    let second = scene.service_hook(allow());
    scene.serve(&[443], Some(&first)).await;
    let client = service_client(&scene, json!({}));
    scene.configure(VALIDATING, &[scene.webhook("h.x.y", &first, client)]).await;
    scene.create("dryRun=All").await.expect(201);
    let request = first.take_requests().remove(0);
    assert_eq!(request.target, "/p?timeout=5s");
    assert_eq!(request.header("host"), Some(&*format!("{NAME}:443")));
    assert_eq!(request.tls.unwrap().server_name.as_deref(), Some(NAME));

    let path = format!("{SLICES}/hook-1");
    scene.admin.put(&path, &slice(&[443], Some(&second))).await.expect(200);
    scene.create("dryRun=All").await.expect(201);
    assert_eq!((first.take_requests().len(), second.take_requests().len()), (0, 1));

    let other = scene.authority.service(&Leaf::server(&["other.hooks.svc"]), allow());
    scene.admin.put(&path, &slice(&[443], Some(&other))).await.expect(200);
    let text = message(scene.create("dryRun=All").await, 500);
    assert!(text.contains("tls: failed to verify certificate: x509: "), "{text}");
    assert_eq!(other.n_requests(), 0);
}

/// The hooks of v1alpha1.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_of_the_proposal() {
    let scene = start().await;
    let hook = scene.service_hook(status(json!({"allowed": true})));
    scene.serve(&[443], Some(&hook)).await;
    let bundle = scene.authority.bundle();
    let service = json!({"namespace": "hooks", "name": "hook"});
    let client = json!({"service": service, "caBundle": bundle, "urlPath": "/some/where"});
    scene.ask_external(json!({"clientConfig": client})).await;
    let made = scene.admin.post(MAPS, &map("m")).await.expect(201);
    let request = hook.take_requests().remove(0);
    assert_eq!(request.target, "/some/where?timeout=30s");
    let review: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1alpha1");
    assert_eq!(review["status"], json!({"allowed": false}));
    let spec = &review["spec"];
    assert_eq!(spec["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!(spec["resource"], resource);
    assert_eq!(
        (&spec["operation"], &spec["name"], &spec["namespace"]),
        (&json!("CREATE"), &json!("m"), &json!("default"))
    );
    assert_eq!(spec["object"]["data"], made["data"]);
    assert_eq!(spec["userInfo"]["username"], "admin");
    for member in ["uid", "dryRun", "options", "requestKind"] {
        assert_eq!(spec.get(member), None, "{member}");
    }

    let refused = scene.create("dryRun=All").await.expect(400);
    assert_eq!(refused["message"], "admission webhook \"e.x.y\" does not support dry run");

    hook.replace(Answer::json(r#"{"allowed":true}"#)).unwrap();
    let text = message(scene.admin.post(MAPS, &map("n")).await, 500);
    assert!(text.contains("failed calling webhook \"e.x.y\""), "{text}");
    assert!(text.ends_with("webhook response was absent"), "{text}");

    hook.replace(status(json!({"allowed": false, "status": {"message": "no"}}))).unwrap();
    let text = message(scene.admin.post(MAPS, &map("n")).await, 400);
    assert_eq!(text, "admission webhook \"e.x.y\" denied the request: no");

    hook.replace(status(json!({"allowed": true}))).unwrap();
    hook.take_requests();
    let rules = json!([{"verbs": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods/*"]}]);
    scene.ask_external(json!({"rules": rules})).await;
    scene.admin.post(PODS, &pod("p")).await.expect(201);
    assert_eq!(hook.take_requests().len(), 0, "subresources only");
    let patch = json!({"status": {"phase": "Running"}});
    scene.admin.patch(&format!("{PODS}/p/status"), "merge-patch", &patch).await.expect(200);
    assert_eq!(hook.take_requests().len(), 1);
}

/// Hooks of v1alpha1 come before those of v1 in the list, so their denial is reported.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_of_the_proposal_come_first() {
    let scene = start().await;
    let old = scene.service_hook(status(json!({"allowed": false, "status": {"message": "old"}})));
    scene.serve(&[443], Some(&old)).await;
    scene.ask_external(json!({})).await;
    let new = scene.hook(crate::admission_hooks::deny("new"));
    scene.ask(VALIDATING, &new, json!({})).await;
    let text = message(scene.create("").await, 400);
    assert_eq!(text, "admission webhook \"e.x.y\" denied the request: old");
    assert_eq!((old.n_requests(), told(&new).len()), (1, 1), "both were asked");
}
