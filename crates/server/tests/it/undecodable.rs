//! Objects that are stored and cannot be decoded: another program wrote to the store, or a disk is damaged.

mod deep;
mod grants;

use serde_json::{Value, json};
use store::{At, ExpectedKeyState, Key, Put, Store};

use crate::admission_hooks::{
    HookAuthority, VALIDATING, allow, asked, deny, register, rule, warnings,
};
use crate::client::Client;
use crate::cluster::Cluster;

const NAMESPACES: &str = "/api/v1/namespaces";
const MAPS: &str = "/api/v1/namespaces/tenant/configmaps";
const ANNOTATION: &str = "portcullis.io/undecodable";

/// Bytes that are no object for one reason each.
fn damaged(name: &str) -> [(&'static str, Vec<u8>); 4] {
    let head = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"tenant","uid":"u-1","labels":{{"app":"x"}},"finalizers":["example.com/never"]}},"data":"#
    );
    let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    [
        ("garbage", b"{garbage".to_vec()),
        ("cut", format!("{head}{{\"k\":\"").into_bytes()),
        ("too deep", format!("{head}{}}}", nested(600)).into_bytes()),
        ("not UTF-8", [head.as_bytes(), b"{\"k\":\"\xff\"}}"].concat()),
    ]
}

/// Writes bytes to the store directly, without the server, and returns the revision.
async fn damage(cluster: &Cluster, path: &str, bytes: impl Into<Vec<u8>>) -> u64 {
    let key = Key::new(&format!("/registry/{path}")).expect("a key");
    let current = cluster.store.get(&key, At::Newest).await.expect("a read").entry;
    let expect =
        current.map_or(ExpectedKeyState::Absent, |entry| ExpectedKeyState::At(entry.mod_rev));
    let put = Put {
        key,
        value: bytes.into().into(),
        expected_state: expect,
        ttl: None,
        key_group_revision_action: None,
    };
    cluster.store.put(put).await.expect("a write").as_u64()
}

async fn tenant(cluster: &Cluster) -> Client {
    let admin = cluster.admin();
    admin.post(NAMESPACES, &json!({"metadata": {"name": "tenant"}})).await.expect(201);
    admin
}

pub(crate) async fn wait_gone(admin: &Client, path: &str) {
    for _ in 0..1_000 {
        if admin.get(path).await.code == 404 {
            return;
        }
        crate::polling::pause().await;
    }
    panic!("{path} stays: {}", admin.get(path).await.text());
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_listed_watched_and_deleted() {
    let cluster = Cluster::start().await;
    let admin = tenant(&cluster).await;
    admin.post(MAPS, &json!({"metadata": {"name": "sound"}})).await.expect(201);
    for (why, bytes) in damaged("broken") {
        let (key, path) = ("configmaps/tenant/broken", format!("{MAPS}/broken"));
        let is_known = why != "garbage";
        let mut events = admin.watch(&format!("{MAPS}?watch=1&resourceVersion=0")).await;
        let revision = damage(&cluster, key, bytes).await.to_string();

        let answer = admin.get(MAPS).await;
        let told = warnings(&answer).join("\n");
        assert!(told.contains("cannot be decoded") && told.contains("broken"), "{why}: {told}");
        let list = answer.expect(200);
        assert_eq!(names(&list), ["broken", "sound"], "{why}");
        let shown = &list["items"][0]["metadata"];
        assert!(shown["annotations"][ANNOTATION].is_string(), "{why}: {shown}");
        assert_eq!(shown["resourceVersion"], revision.as_str(), "{why}");
        assert_eq!(shown["labels"]["app"].is_string(), is_known, "{why}: {shown}");
        assert_eq!(list["items"][1]["metadata"]["annotations"], Value::Null);
        for accept in ["application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"] {
            let headers = [("accept", accept)];
            let list = admin.send(http::Method::GET, MAPS, &headers, "").await;
            assert!(list.text().contains("broken") && list.text().contains("sound"), "{why}");
        }
        let selected = admin.get(&format!("{MAPS}?labelSelector=app%3Dx")).await.expect(200);
        assert_eq!(names(&selected).len(), usize::from(is_known), "{why}");
        while events.next().await.expect("an event")["object"]["metadata"]["name"] != "broken" {}

        let failed = admin.get(&path).await.expect(500);
        assert_eq!(failed["details"]["causes"][0]["reason"], "UndecodableObject", "{why}");
        let patch = json!({"data": {"a": "b"}});
        assert_eq!(admin.patch(&path, "merge-patch", &patch).await.code, 500, "{why}");
        let dry = admin.delete(&format!("{path}?dryRun=All")).await;
        assert_eq!((dry.code, admin.get(&path).await.code), (200, 500), "{why}");
        admin.delete(&path).await.expect(200);
        admin.get(&path).await.expect(404);
        let deleted = loop {
            let event = events.next().await.expect("an event");
            if event["type"] == "DELETED" {
                break event;
            }
        };
        assert_eq!(deleted["object"]["metadata"]["name"], "broken", "{why}");
    }
}

/// A configuration that cannot be decoded does not keep anybody from deleting it.
#[tokio::test(flavor = "multi_thread")]
async fn configurations_of_admission_are_deleted_through_the_api() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let group = "/apis/admissionregistration.k8s.io";
    for (path, key) in [
        ("v1/validatingwebhookconfigurations", "validatingwebhookconfigurations"),
        ("v1/mutatingwebhookconfigurations", "mutatingwebhookconfigurations"),
        (
            "v1alpha1/initializerconfigurations",
            "admissionregistration.k8s.io/initializerconfigurations",
        ),
        (
            "v1alpha1/externaladmissionhookconfigurations",
            "admissionregistration.k8s.io/externaladmissionhookconfigurations",
        ),
    ] {
        for (why, bytes) in damaged("broken") {
            let collection = format!("{group}/{path}");
            let list = admin.get(&collection).await;
            assert_eq!(list.code, 200, "{collection}: {}", list.text());
            damage(&cluster, &format!("{key}/broken"), bytes).await;
            let path = format!("{collection}/broken");
            let read = admin.get(&path).await;
            assert_eq!(read.code, 500, "{why} {path}: {}", read.text());
            let deleted = admin.delete(&path).await;
            assert_eq!(deleted.code, 200, "{why} {path}: {}", deleted.text());
            admin.get(&path).await.expect(404);
        }
    }
    admin
        .post("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "a"}}))
        .await
        .expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_with_their_collection_and_their_namespace() {
    let cluster = Cluster::start().await;
    for (why, bytes) in damaged("broken") {
        let admin = tenant(&cluster).await;
        let key = "configmaps/tenant/broken";
        admin.post(MAPS, &json!({"metadata": {"name": "sound"}})).await.expect(201);
        damage(&cluster, key, bytes.clone()).await;
        // Its readable metadata does not prove that it is the requested object.
        admin.delete(&format!("{MAPS}?fieldSelector=metadata.name%3Dother")).await.expect(200);
        assert_eq!(admin.get(&format!("{MAPS}/broken")).await.code, 500, "{why}");
        admin.delete(MAPS).await.expect(200);
        assert_eq!(names(&admin.get(MAPS).await.expect(200)), Vec::<&str>::new(), "{why}");
        damage(&cluster, key, bytes).await;
        admin.delete(&format!("{NAMESPACES}/tenant")).await.expect(200);
        wait_gone(&admin, &format!("{NAMESPACES}/tenant")).await;
        admin.get(&format!("{MAPS}/broken")).await.expect(404);
    }
}

/// A valid object under the key of another object is not served, and can be deleted.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_under_the_key_of_another_can_be_deleted() {
    let cluster = Cluster::start().await;
    let admin = tenant(&cluster).await;
    let stray = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"kube-system"}}"#;
    let path = format!("{MAPS}/stray");
    for _ in 0..2 {
        damage(&cluster, "configmaps/tenant/stray", stray).await;
        assert_eq!(admin.get(&path).await.code, 500);
        let gone = admin.delete(&path).await.expect(200);
        assert_eq!(gone["details"]["name"], "stray");
    }
    damage(&cluster, "configmaps/tenant/stray", stray).await;
    admin.delete(&format!("{NAMESPACES}/tenant")).await.expect(200);
    wait_gone(&admin, &format!("{NAMESPACES}/tenant")).await;
}

/// A namespace that cannot be decoded takes no content, and is emptied before it goes: the next one of its
/// name gets nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_namespace_takes_its_content_along() {
    let cluster = Cluster::start().await;
    let admin = tenant(&cluster).await;
    admin.post(MAPS, &json!({"metadata": {"name": "old"}})).await.expect(201);
    damage(&cluster, "namespaces/tenant", "{garbage").await;
    admin.post(MAPS, &json!({"metadata": {"name": "new"}})).await.expect(404);
    let list = admin.get(NAMESPACES).await.expect(200);
    assert!(names(&list).contains(&"tenant"));
    admin.delete(&format!("{NAMESPACES}/tenant")).await.expect(200);
    wait_gone(&admin, &format!("{NAMESPACES}/tenant")).await;
    tenant(&cluster).await;
    assert_eq!(names(&admin.get(MAPS).await.expect(200)), Vec::<&str>::new());
}

/// The objects of a definition that cannot be decoded are not served again under the next one of its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_definition_can_be_deleted() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let cluster = Cluster::start().await;
    let admin = tenant(&cluster).await;
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let widgets = "/apis/example.com/v1/namespaces/tenant/widgets";
    let serve = async || {
        admin.post(DEFINITIONS, &definition).await.expect(201);
        while admin.get(widgets).await.code != 200 {
            crate::polling::pause().await;
        }
    };
    serve().await;
    admin
        .post(
            widgets,
            &json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}),
        )
        .await
        .expect(201);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    damage(&cluster, "apiextensions.k8s.io/customresourcedefinitions/widgets.example.com", "{")
        .await;
    while admin.get(widgets).await.code != 404 {
        crate::polling::pause().await;
    }
    admin.delete(&path).await.expect(200);
    wait_gone(&admin, &path).await;
    serve().await;
    assert_eq!(names(&admin.get(widgets).await.expect(200)), Vec::<&str>::new());
}

/// A hook is asked about the deletion of an object that cannot be decoded, and shown what is known of it.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_see_what_is_left() {
    let cluster = Cluster::start().await;
    let admin = tenant(&cluster).await;
    let authority = HookAuthority::new();
    let hook = authority.hook(deny("not this one"));
    let of_maps = json!({"rules": [rule(&["DELETE"], "", "configmaps")],
        "objectSelector": {"matchLabels": {"app": "x"}}});
    let webhook = authority.webhook("v.x.y", &hook, of_maps);
    register(&cluster, VALIDATING, "v", &[webhook]).await;
    let [_, (_, cut), ..] = damaged("broken");
    damage(&cluster, "configmaps/tenant/broken", cut).await;
    admin.delete(&format!("{MAPS}/broken")).await.expect(403);
    let told = asked(&hook.take_requests()[0]);
    assert_eq!(told["oldObject"]["metadata"]["name"], "broken");
    assert_eq!(told["oldObject"]["metadata"]["uid"], "u-1");
    admin.delete(&format!("{VALIDATING}/v")).await.expect(200);
    admin.delete(&format!("{MAPS}/broken")).await.expect(200);
}

/// A hook that this server knows stays in force when its configuration is damaged, until that is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_configuration_does_not_remove_its_hooks() {
    let cluster = Cluster::start().await;
    let admin = tenant(&cluster).await;
    let authority = HookAuthority::new();
    let (hook, other) = (authority.hook(deny("no")), authority.hook(allow()));
    let of_maps = json!({"rules": [rule(&["CREATE"], "", "configmaps")]});
    register(&cluster, VALIDATING, "a", &[authority.webhook("a.x.y", &hook, of_maps.clone())])
        .await;
    register(&cluster, VALIDATING, "b", &[authority.webhook("b.x.y", &other, of_maps)]).await;
    damage(&cluster, "validatingwebhookconfigurations/a", "{garbage").await;
    let status = "/portcullis/admission/status";
    while admin.get(status).await.expect(200)["invalidObjects"] == json!([]) {
        crate::polling::pause().await;
    }
    admin.post(MAPS, &json!({"metadata": {"name": "m"}})).await.expect(403);
    admin.delete(&format!("{VALIDATING}/a")).await.expect(200);
    admin.post(MAPS, &json!({"metadata": {"name": "m"}})).await.expect(201);
    assert_eq!(admin.get(status).await.expect(200)["invalidObjects"], json!([]));
}
