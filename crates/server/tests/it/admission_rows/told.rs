//! The fields of an admission review.

use serde_json::{Value, json};

use super::{MAPS, NAMESPACES, Scene, everything, map, pod, told, told_once};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, rule};

/// The review that both hooks receive, which must be equal except for the name of a new object.
struct Pair {
    mutating: fake_http::Peer,
    validating: fake_http::Peer,
}

impl Pair {
    async fn of(scene: &Scene, rules: Value) -> Self {
        let pair = Self { mutating: scene.hook(allow()), validating: scene.hook(allow()) };
        let changes = json!({"rules": rules});
        scene.ask(MUTATING, &pair.mutating, changes.clone()).await;
        scene.ask(VALIDATING, &pair.validating, changes).await;
        pair
    }

    #[track_caller]
    fn told(&self) -> [Value; 2] {
        [told_once(&self.mutating), told_once(&self.validating)]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_with_its_objects_and_options() {
    let scene = Scene::start().await;
    let pair = Pair::of(&scene, json!([rule(&["*"], "", "configmaps")])).await;
    let admin = &scene.admin;
    let path = format!("{MAPS}/m");

    let made = admin.post(&format!("{MAPS}?fieldManager=me"), &map("m")).await.expect(201);
    for told in pair.told() {
        assert_eq!(told["operation"], "CREATE");
        assert_eq!((&told["name"], &told["namespace"]), (&json!("m"), &json!("default")));
        assert_eq!(told["object"]["data"], made["data"]);
        assert_eq!(told["oldObject"], Value::Null);
        assert_eq!(told["dryRun"], false);
        let want = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me"});
        assert_eq!(told["options"], want);
        let want = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
        assert_eq!((&told["kind"], &told["requestKind"]), (&want, &want));
        let want = json!({"group": "", "version": "v1", "resource": "configmaps"});
        assert_eq!((&told["resource"], &told["requestResource"]), (&want, &want));
        assert_eq!((told.get("subResource"), told.get("requestSubResource")), (None, None));
        assert_eq!(told["userInfo"]["username"], "admin");
        assert_eq!(told["userInfo"]["uid"], "1");
        assert_eq!(told["userInfo"]["groups"][0], "system:masters");
        assert!(told["uid"].as_str().is_some_and(|uid| uid.len() == 36), "{told}");
    }

    let mut next = made.clone();
    next["data"]["a"] = "c".into();
    let changed = admin.put(&path, &next).await.expect(200);
    for told in pair.told() {
        assert_eq!(told["operation"], "UPDATE");
        assert_eq!(told["object"]["data"]["a"], "c");
        assert_eq!(told["oldObject"], made, "as it is read");
        assert_eq!(told["options"]["kind"], "UpdateOptions");
        assert_eq!(told["dryRun"], false);
    }

    let patch = json!({"data": {"a": "d"}});
    let patched = admin.patch(&path, "merge-patch", &patch).await.expect(200);
    for told in pair.told() {
        assert_eq!(told["operation"], "UPDATE");
        assert_eq!(told["options"]["kind"], "UpdateOptions");
        assert_eq!(told["object"]["data"]["a"], "d", "the object, not the patch");
        assert_eq!(told["oldObject"], changed);
    }

    admin.delete(&format!("{path}?gracePeriodSeconds=0&propagationPolicy=Orphan&dryRun=All")).await;
    for told in pair.told() {
        let want = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1",
            "gracePeriodSeconds": 0, "propagationPolicy": "Orphan", "dryRun": ["All"]});
        assert_eq!((&told["options"], &told["dryRun"]), (&want, &json!(true)));
    }
    admin.delete(&path).await.expect(200);
    for told in pair.told() {
        assert_eq!(told["operation"], "DELETE");
        assert_eq!(told["name"], "m");
        assert_eq!(told["object"], Value::Null);
        assert_eq!(told["oldObject"], patched);
        assert_eq!(told["options"]["kind"], "DeleteOptions");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_object_of_a_collection() {
    let scene = Scene::start().await;
    let mut made: Vec<Value> = Vec::new();
    for name in ["a", "b", "c"] {
        made.push(scene.admin.post(MAPS, &map(name)).await.expect(201));
    }
    let pair = Pair::of(&scene, json!([rule(&["DELETE"], "", "configmaps")])).await;
    scene.admin.delete(&format!("{MAPS}?labelSelector=none%3Dsuch")).await.expect(200);
    assert_eq!(told(&pair.validating), Vec::<Value>::new());
    scene.admin.delete(MAPS).await.expect(200);
    for peer in [&pair.mutating, &pair.validating] {
        let told = told(peer);
        assert_eq!(told.iter().map(|told| told["oldObject"].clone()).collect::<Vec<_>>(), made);
        for told in told {
            assert_eq!(told["operation"], "DELETE");
            assert_eq!((told.get("name"), &told["namespace"]), (None, &json!("default")));
            assert_eq!(told["object"], Value::Null);
            assert_eq!(told["options"]["kind"], "DeleteOptions");
        }
    }
}

/// One denial ends a deletecollection. The objects before it are deleted, and those after it stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_denial_within_a_collection() {
    let scene = Scene::start().await;
    for name in ["a", "b", "c"] {
        scene.admin.post(MAPS, &map(name)).await.expect(201);
    }
    let hook = scene.hook(fake_http::Script::rule(|request| {
        let name = &crate::admission_hooks::asked(request)["oldObject"]["metadata"]["name"];
        crate::admission_hooks::answer(request, &json!({"allowed": name != "b"}))
    }));
    scene.ask(VALIDATING, &hook, json!({})).await;
    scene.admin.delete(&format!("{MAPS}?dryRun=All")).await.expect(400);
    let dry: Vec<Value> = told(&hook).iter().map(|told| told["dryRun"].clone()).collect();
    assert_eq!(dry, [true, true]);
    scene.admin.delete(MAPS).await.expect(400);
    let left = scene.admin.get(MAPS).await.expect(200);
    let left: Vec<&Value> =
        left["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(left, ["b", "c"]);
}

/// Hooks receive the impersonated user.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_told_of_the_user_who_counts() {
    let scene = Scene::start().await;
    scene.grant_alice(&["create"], "", &["configmaps"]).await;
    let pair = Pair::of(&scene, everything()).await;
    let headers = [
        ("impersonate-user", "alice"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "crew"),
        ("impersonate-extra-Scopes", "view"),
    ];
    let body = map("m").to_string();
    scene.admin.send(http::Method::POST, MAPS, &headers, body).await.expect(201);
    for told in pair.told() {
        let want = json!({"username": "alice", "uid": "7",
            "groups": ["crew", "system:authenticated"], "extra": {"scopes": ["view"]}});
        assert_eq!(told["userInfo"], want);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_told_when_there_is_one() {
    let scene = Scene::start().await;
    let pair = Pair::of(&scene, json!([rule(&["*"], "", "configmaps")])).await;
    let body = json!({"metadata": {"generateName": "g-"}});
    let made = scene.admin.post(MAPS, &body).await.expect(201);
    let [mutating, validating] = pair.told();
    assert_eq!(mutating.get("name"), None);
    assert_eq!(mutating["object"]["metadata"]["generateName"], "g-");
    assert_eq!(validating["name"], made["metadata"]["name"]);
    assert_eq!(validating["object"]["metadata"]["name"], made["metadata"]["name"]);
    assert!(made["metadata"]["name"].as_str().unwrap().starts_with("g-"));
}

/// The namespace in a review of a Namespace is its own name, and a review names the subresource.
#[tokio::test(flavor = "multi_thread")]
async fn namespaces_and_subresources() {
    let scene = Scene::start().await;
    let admin = &scene.admin;
    let pair = Pair::of(&scene, everything()).await;
    let made = admin.post(NAMESPACES, &json!({"metadata": {"name": "n"}})).await.expect(201);
    for told in pair.told() {
        assert_eq!((&told["name"], &told["namespace"]), (&json!("n"), &json!("n")));
        assert_eq!(told["operation"], "CREATE");
    }
    admin.put(&format!("{NAMESPACES}/n/finalize"), &made).await.expect(200);
    for told in pair.told() {
        assert_eq!((&told["name"], &told["namespace"]), (&json!("n"), &json!("n")));
        assert_eq!(
            (&told["operation"], &told["subResource"]),
            (&json!("UPDATE"), &json!("finalize"))
        );
        assert_eq!(told["requestSubResource"], "finalize");
    }

    let pods = format!("{NAMESPACES}/n/pods");
    admin.post(&pods, &pod("p")).await.expect(201);
    pair.told();
    let patch = json!({"status": {"phase": "Running"}});
    admin.patch(&format!("{pods}/p/status"), "merge-patch", &patch).await.expect(200);
    for told in pair.told() {
        assert_eq!(
            (&told["operation"], &told["subResource"]),
            (&json!("UPDATE"), &json!("status"))
        );
        assert_eq!((&told["name"], &told["namespace"]), (&json!("p"), &json!("n")));
        assert_eq!(told["kind"]["kind"], "Pod");
        assert_eq!(told["object"]["status"]["phase"], "Running");
        assert_eq!(told["oldObject"]["status"]["phase"], "Pending");
        assert_eq!(told["options"]["kind"], "UpdateOptions");
    }

    let accounts = format!("{NAMESPACES}/n/serviceaccounts");
    admin.post(&accounts, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    pair.told();
    let body = json!({"spec": {"audiences": ["x"], "expirationSeconds": 600}});
    admin.post(&format!("{accounts}/robot/token"), &body).await.expect(201);
    for told in pair.told() {
        assert_eq!((&told["operation"], &told["subResource"]), (&json!("CREATE"), &json!("token")));
        assert_eq!((&told["name"], &told["namespace"]), (&json!("robot"), &json!("n")));
        let kind =
            json!({"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"});
        assert_eq!(told["kind"], kind);
        assert_eq!(told["resource"]["resource"], "serviceaccounts");
        assert_eq!(told["object"]["spec"]["audiences"], json!(["x"]));
        assert_eq!(
            (&told["oldObject"], &told["options"]["kind"]),
            (&Value::Null, &json!("CreateOptions"))
        );
    }
}

/// An update that creates an object is a create, and hooks are called again when a write has lost
/// a race.
#[tokio::test(flavor = "multi_thread")]
async fn replacements_that_create_and_patches_that_lose_a_race() {
    let scene = Scene::start().await;
    let admin = &scene.admin;
    let pair = Pair::of(&scene, everything()).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    admin.put(&format!("{leases}/l"), &lease).await.expect(201);
    for told in pair.told() {
        assert_eq!((&told["operation"], &told["name"]), (&json!("CREATE"), &json!("l")));
        assert_eq!(told["options"]["kind"], "CreateOptions");
        assert_eq!(told["oldObject"], Value::Null);
    }

    admin.post(MAPS, &map("m")).await.expect(201);
    pair.told();
    let slow = scene.hook(fake_http::Script::rule(|request| {
        let answer = crate::admission_hooks::answer(request, &json!({"allowed": true}));
        let is_slow = String::from_utf8_lossy(&request.body).contains("\"slow\":\"1\"");
        if is_slow { answer.delay(std::time::Duration::from_millis(700)) } else { answer }
    }));
    scene.ask(MUTATING, &slow, json!({})).await;
    let path = format!("{MAPS}/m");
    let loser = {
        let (admin, path) = (admin.clone(), path.clone());
        let patch = json!({"data": {"slow": "1"}});
        tokio::spawn(async move { admin.patch(&path, "merge-patch", &patch).await })
    };
    while slow.n_requests() == 0 {
        crate::polling::pause().await;
    }
    admin.patch(&path, "merge-patch", &json!({"data": {"quick": "1"}})).await.expect(200);
    let both = loser.await.unwrap().expect(200);
    assert_eq!(both["data"], json!({"a": "b", "quick": "1", "slow": "1"}));
    let seen: Vec<Value> = told(&slow).iter().map(|told| told["object"]["data"].clone()).collect();
    let (first, second) = (json!({"a": "b", "slow": "1"}), json!({"a": "b", "quick": "1"}));
    assert_eq!(seen, [first, second, both["data"].clone()]);
}

/// Requests for resources that are not served do not reach hooks.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_served_reaches_no_hook() {
    let scene = Scene::start().await;
    scene.admin.post(super::PODS, &pod("p")).await.expect(201);
    let pair = Pair::of(&scene, everything()).await;
    for part in ["log", "shell", "exec/more"] {
        let path = format!("{}/p/{part}", super::PODS);
        scene.admin.get(&path).await.expect(404);
        scene.admin.post(&path, &json!({})).await.expect(404);
    }
    assert_eq!((told(&pair.mutating), told(&pair.validating)), (vec![], vec![]));
}
