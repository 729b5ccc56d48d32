//! Requests of the server to itself affect only the intended object, whatever its name is.

use serde_json::{Value, json};

use crate::client::Client;
use crate::cluster::Cluster;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// Names that mean something else when they are written into a path.
const NAMES: [(&str, &str); 5] = [
    ("victim?x", "victim%3Fx"),
    ("victim?dryRun=x", "victim%3FdryRun%3Dx"),
    ("victim#x", "victim%23x"),
    ("cluster-admin?x", "cluster-admin%3Fx"),
    ("victim;x", "victim%3Bx"),
];

/// Somebody who may create and escalate roles, but not change `victim`, makes an aggregated role whose
/// name turns into the victim's if it is read as a URL. The server fills in the rules of that role.
#[tokio::test(flavor = "multi_thread")]
async fn an_aggregated_role_fills_itself_and_no_other() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let source = json!({"metadata": {"name": "source", "labels": {"to": "evil"}},
        "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]});
    admin.post(ROLES, &source).await.expect(201);
    let victim = json!({"metadata": {"name": "victim"},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
    admin.post(ROLES, &victim).await.expect(201);
    let before = [rules(&admin, "victim").await, rules(&admin, "cluster-admin").await];
    for (name, path) in NAMES {
        let evil = json!({"metadata": {"name": name}, "rules": null,
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "evil"}}]}});
        admin.post(ROLES, &evil).await.expect(201);
        let want = source["rules"].clone();
        for n_tries in 0.. {
            if rules(&admin, path).await == want {
                break;
            }
            assert!(n_tries < 500, "`{name}` never gets its rules");
            crate::polling::pause().await;
        }
    }
    let after = [rules(&admin, "victim").await, rules(&admin, "cluster-admin").await];
    assert_eq!(before, after);
}

/// The garbage collector and the loops over namespaces and definitions delete only the intended
/// objects.
#[tokio::test(flavor = "multi_thread")]
async fn loops_delete_objects_of_any_name() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let namespace = json!({"metadata": {"name": "going"}});
    admin.post("/api/v1/namespaces", &namespace).await.expect(201);
    let kept = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let going = "/apis/rbac.authorization.k8s.io/v1/namespaces/going/roles";
    let owner = json!({"metadata": {"name": "owner"}});
    let owner = admin.post("/api/v1/namespaces/default/configmaps", &owner).await.expect(201);
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"]}]);
    for name in ["victim", "victim?x", "victim#x"] {
        let mut role = json!({"metadata": {"name": name}, "rules": []});
        admin.post(going, &role).await.expect(201);
        if name != "victim" {
            role["metadata"]["ownerReferences"] = reference.clone();
        }
        admin.post(kept, &role).await.expect(201);
    }
    admin.delete("/api/v1/namespaces/default/configmaps/owner").await.expect(200);
    admin.delete("/api/v1/namespaces/going").await.expect(200);
    for (path, want) in [(kept, vec!["victim"]), (going, vec![])] {
        for n_tries in 0.. {
            if names(&admin, path).await == want {
                break;
            }
            assert!(n_tries < 1000, "{path}: {:?}", names(&admin, path).await);
            crate::polling::pause().await;
        }
    }
}

/// Deleting an owner in the foreground deletes what only it owns. An object with another owner stays, and
/// objects that merely name the owner's uid, in another namespace or under another name, neither go nor
/// keep the owner from going.
#[tokio::test(flavor = "multi_thread")]
async fn foreground_deletion_takes_what_the_owner_alone_owns() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "other"}})).await.expect(201);
    let maps = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
    let mut uids = Vec::new();
    for name in ["owner", "second"] {
        let made = admin.post(&maps("default"), &json!({"metadata": {"name": name}})).await;
        uids.push(made.expect(201)["metadata"]["uid"].clone());
    }
    let reference = |name: &str, uid: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid,
            "blockOwnerDeletion": true})
    };
    let (owner, second) = (reference("owner", &uids[0]), reference("second", &uids[1]));
    // A finalizer keeps an object, so that a deletion would leave its mark.
    for (namespace, name, owners) in [
        ("default", "alone", json!([owner])),
        ("default", "shared", json!([owner, second])),
        ("other", "foreign", json!([owner, reference("elsewhere", &json!("no-such-uid"))])),
    ] {
        let map = json!({"metadata": {"name": name, "ownerReferences": owners,
            "finalizers": if namespace == "other" { json!(["example.com/stay"]) } else { json!([]) }}});
        admin.post(&maps(namespace), &map).await.expect(201);
    }
    // An object of the cluster is not collected for an owner that nobody can look for.
    let volume = json!({"metadata": {"name": "volume", "ownerReferences": [owner]},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"}}});
    admin.post("/api/v1/persistentvolumes", &volume).await.expect(201);
    let path = format!("{}/owner?propagationPolicy=Foreground", maps("default"));
    admin.delete(&path).await;
    for n_tries in 0.. {
        if names(&admin, &maps("default")).await == ["second", "shared"] {
            break;
        }
        assert!(n_tries < 500, "{:?}", names(&admin, &maps("default")).await);
        crate::polling::pause().await;
    }
    let shared = admin.get(&format!("{}/shared", maps("default"))).await.expect(200);
    assert_eq!(shared["metadata"]["ownerReferences"], json!([second]));
    assert_eq!(shared["metadata"].get("deletionTimestamp"), None);
    let volume = admin.get("/api/v1/persistentvolumes/volume").await.expect(200);
    assert_eq!(volume["metadata"].get("deletionTimestamp"), None);
}

async fn rules(admin: &Client, name: &str) -> Value {
    admin.get(&format!("{ROLES}/{name}")).await.expect(200)["rules"].clone()
}

async fn names(admin: &Client, path: &str) -> Vec<String> {
    let list = admin.get(path).await.expect(200);
    let items = list["items"].as_array().expect("items").iter();
    items.map(|own| own["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}
