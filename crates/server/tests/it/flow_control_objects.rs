//! Flow schemas and priority levels as objects of the API: their operations, the default ones, and their
//! conditions.

use etcd_testing::Member;
use http::Method;
use serde_json::{Value, json};
use store::{At, ExpectedKeyState, Key, Put, Store};

use crate::admission_hooks::warnings;
use crate::client::Client;
use crate::cluster::Cluster;
use crate::polling::pause;
use crate::three_servers::Station;

const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
const MERGE: &str = "merge-patch";

const NEVER: &[&str] = &[];

fn schema(name: &str, level: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 7000,
            "priorityLevelConfiguration": {"name": level},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "nobody"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    })
}

fn level(name: &str, shares: u32) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": shares,
            "limitResponse": {"type": "Reject"},
        }},
    })
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().expect("text").parse().expect("a number")
}

/// The condition `Dangling` of a schema, after the server has written a status.
async fn dangling(client: &Client, name: &str, status: &str) -> Value {
    let path = format!("{SCHEMAS}/{name}");
    for _ in 0..1_000 {
        let object = client.get(&path).await.expect(200);
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let own = conditions.into_iter().find(|own| own["type"] == "Dangling");
        if let Some(own) = own.filter(|own| own["status"] == status) {
            return own;
        }
        pause().await;
    }
    panic!("{}", client.get(&path).await.text());
}

/// Updates an object until nobody else has written it in between.
async fn update(
    client: &Client,
    path: &str,
    subresource: &str,
    change: impl Fn(&mut Value),
) -> Value {
    loop {
        let mut object = client.get(path).await.expect(200);
        change(&mut object);
        let answer = client.put(&format!("{path}{subresource}"), &object).await;
        if answer.code != 409 {
            return answer.expect(200);
        }
    }
}

/// The operations of the e2e specs "should support FlowSchema API operations" and "should support
/// PriorityLevelConfiguration API operations".
#[tokio::test(flavor = "multi_thread")]
async fn all_operations_of_the_api_are_supported() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let groups = admin.get("/apis").await.expect(200);
    let is_group = |group: &Value| group["name"] == "flowcontrol.apiserver.k8s.io";
    assert!(groups["groups"].as_array().expect("groups").iter().any(is_group));
    let group = admin.get("/apis/flowcontrol.apiserver.k8s.io").await.expect(200);
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let resources = admin.get(GROUP).await.expect(200);
    let resources: Vec<&Value> =
        resources["resources"].as_array().expect("a list").iter().collect();
    let verbs =
        json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]);
    for (plural, singular) in [
        ("flowschemas", "flowschema"),
        ("prioritylevelconfigurations", "prioritylevelconfiguration"),
    ] {
        let own = resources.iter().find(|own| own["name"] == plural).expect(plural);
        assert_eq!((&own["verbs"], &own["singularName"]), (&verbs, &json!(singular)));
        assert_eq!((&own["shortNames"], &own["categories"]), (&Value::Null, &Value::Null));
        let status = format!("{plural}/status");
        let own = resources.iter().find(|own| own["name"] == status.as_str()).expect(plural);
        assert_eq!(own["verbs"], json!(["get", "patch", "update"]));
    }

    let shares = "/spec/limited/nominalConcurrencyShares";
    for (collection, kind, mut template, field, patched, updated) in [
        (
            SCHEMAS,
            "FlowSchema",
            schema("", "global-default"),
            "/spec/matchingPrecedence",
            9999,
            9000,
        ),
        (LEVELS, "PriorityLevelConfiguration", level("", 2), shares, 4, 6),
    ] {
        template["metadata"] = json!({"generateName": "e2e-example-", "labels": {"e2e": "x"}});
        let selected = format!("{collection}?labelSelector=e2e%3Dx");
        let mut created = Value::Null;
        for _ in 0..3 {
            created = admin.post(collection, &template).await.expect(201);
        }
        assert_eq!((&created["kind"], &created["status"]), (&json!(kind), &json!({})));
        assert_eq!(created["metadata"]["generation"], 1);
        let path =
            format!("{collection}/{}", created["metadata"]["name"].as_str().expect("a name"));
        let read = admin.get(&path).await.expect(200);
        assert_eq!(read["metadata"]["uid"], created["metadata"]["uid"]);
        let list = admin.get(&selected).await.expect(200);
        assert_eq!(names(&list).len(), 3);
        let revision = list["metadata"]["resourceVersion"].as_str().expect("a revision");
        let mut events =
            admin.watch(&format!("{selected}&watch=1&resourceVersion={revision}")).await;

        let mut patch = json!({"metadata": {"annotations": {"patched": "true"}}});
        patch["spec"] = match kind {
            "FlowSchema" => json!({"matchingPrecedence": patched}),
            _ => json!({"limited": {"nominalConcurrencyShares": patched}}),
        };
        let answer = admin.patch(&path, MERGE, &patch).await.expect(200);
        assert_eq!(answer.pointer(field), Some(&json!(patched)));
        assert_eq!(answer["metadata"]["generation"], 2);
        assert!(version(&answer) > version(&created));
        let answer = update(&admin, &path, "", |object| {
            object["metadata"]["annotations"]["updated"] = "true".into();
            *object.pointer_mut(field).expect("the field") = json!(updated);
        })
        .await;
        assert_eq!(answer.pointer(field), Some(&json!(updated)));
        assert_eq!(answer["metadata"]["annotations"]["updated"], "true");
        loop {
            let event = events.next().await.expect("an event");
            assert_eq!(event["type"], "MODIFIED");
            if event["object"]["metadata"]["annotations"]["patched"] == "true" {
                break;
            }
        }
        drop(events);

        let status = format!("{path}/status");
        let read = admin.get(&status).await.expect(200);
        assert_eq!(
            (&read["kind"], &read["metadata"]["uid"]),
            (&json!(kind), &created["metadata"]["uid"])
        );
        let patch = json!({
            "metadata": {"labels": {"other": "x"}},
            "status": {"conditions": [{"type": "PatchStatusFailed", "status": "False", "reason": "e2e"}]},
        });
        let answer = admin.patch(&status, MERGE, &patch).await.expect(200);
        let has = |object: &Value, condition: &str| {
            let conditions = object["status"]["conditions"].as_array().expect("conditions");
            conditions.iter().any(|own| own["type"] == condition)
        };
        assert!(has(&answer, "PatchStatusFailed"));
        // A write to the status changes no metadata.
        assert_eq!(answer["metadata"]["labels"], json!({"e2e": "x"}));
        let answer = update(&admin, &path, "/status", |object| {
            let own = json!({"type": "StatusUpdateFailed", "status": "False", "reason": "E2E"});
            object["status"]["conditions"].as_array_mut().expect("a list").push(own);
            *object.pointer_mut(field).expect("the field") = json!(1);
        })
        .await;
        assert!(has(&answer, "StatusUpdateFailed"));
        assert_eq!(answer.pointer(field), Some(&json!(updated)));
        let double = json!({"status": {"conditions": [{"type": "A"}, {"type": "A"}]}});
        assert_eq!(
            admin.patch(&status, MERGE, &double).await.expect(422)["details"]["causes"][0]["field"],
            "status.conditions[1].type"
        );

        assert_eq!(admin.delete(&path).await.expect(200)["kind"], "Status");
        admin.get(&path).await.expect(404);
        assert_eq!(names(&admin.get(&selected).await.expect(200)).len(), 2);
        admin.delete(&selected).await.expect(200);
        assert_eq!(names(&admin.get(&selected).await.expect(200)), NEVER);
        // The group is created by POST only.
        template["metadata"]["name"] = "none".into();
        admin.put(&format!("{collection}/none"), &template).await.expect(404);
    }
}

/// Default objects exist from the start, with a condition, and a restart writes none of them again.
#[tokio::test(flavor = "multi_thread")]
async fn default_objects_are_written_once() {
    let cluster = Cluster::start().await;
    let schemas = cluster.admin().get(SCHEMAS).await.expect(200);
    let levels = cluster.admin().get(LEVELS).await.expect(200);
    let want = [
        "catch-all",
        "exempt",
        "global-default",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-system-service-accounts",
        "portcullis-access-reviews",
        "portcullis-leases",
        "portcullis-repair",
        "probes",
        "service-accounts",
        "system-leader-election",
        "system-node-high",
        "system-nodes",
    ];
    assert_eq!(names(&schemas), want);
    let want = [
        "catch-all",
        "exempt",
        "global-default",
        "leader-election",
        "node-high",
        "portcullis-access-reviews",
        "portcullis-leases",
        "portcullis-repair",
        "system",
        "workload-high",
        "workload-low",
    ];
    assert_eq!(names(&levels), want);
    for object in [&schemas, &levels].into_iter().flat_map(|list| list["items"].as_array().unwrap())
    {
        assert_eq!(object["metadata"]["annotations"][AUTO_UPDATE], "true", "{object}");
        assert_eq!(object["metadata"]["generation"], 1, "{object}");
    }
    for object in schemas["items"].as_array().unwrap() {
        assert_eq!(object["status"]["conditions"][0]["reason"], "Found", "{object}");
    }
    let cluster = cluster.restart().await;
    assert_eq!(cluster.admin().get(SCHEMAS).await.expect(200)["items"], schemas["items"]);
    assert_eq!(cluster.admin().get(LEVELS).await.expect(200)["items"], levels["items"]);
}

/// Replaces a stored object without the server.
async fn store_directly(cluster: &Cluster, path: &str, object: &Value) {
    let key = Key::new(&format!("/registry/{path}")).expect("a key");
    let current = cluster.store.get(&key, At::Newest).await.expect("a read").entry;
    let expect =
        current.map_or(ExpectedKeyState::Absent, |entry| ExpectedKeyState::At(entry.mod_rev));
    let value = object.to_string().into_bytes().into();
    let put =
        Put { key, value, expected_state: expect, ttl: None, key_group_revision_action: None };
    cluster.store.put(put).await.expect("a write");
}

/// Default objects follow their annotation, and mandatory ones always have their spec.
#[tokio::test(flavor = "multi_thread")]
async fn default_objects_come_back_unless_their_annotation_says_otherwise() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let shares = |shares: u32| json!({"spec": {"limited": {"nominalConcurrencyShares": shares}}});
    let own = json!({"metadata": {"annotations": {AUTO_UPDATE: "false"}}});
    // A suggested object is changed and kept, changed and reset, or deleted and created again.
    let kept = format!("{LEVELS}/workload-low");
    admin.patch(&kept, MERGE, &own).await.expect(200);
    admin.patch(&kept, MERGE, &shares(7)).await.expect(200);
    let reset = format!("{LEVELS}/workload-high");
    admin.patch(&reset, MERGE, &shares(7)).await.expect(200);
    admin.delete(&format!("{SCHEMAS}/probes")).await.expect(200);
    admin.delete(&format!("{LEVELS}/exempt")).await.expect(200);
    // Without the annotation, a change of the spec counts as one that the administrator wants to keep.
    let unannotated = format!("{LEVELS}/system");
    let nothing = json!({"metadata": {"annotations": {AUTO_UPDATE: null}}});
    admin.patch(&unannotated, MERGE, &nothing).await.expect(200);
    admin.patch(&unannotated, MERGE, &shares(8)).await.expect(200);
    // An object that only claims to be a default one is removed; others stay.
    let mut claimed = schema("claimed", "system");
    claimed["metadata"]["annotations"] = json!({AUTO_UPDATE: "true"});
    admin.post(SCHEMAS, &claimed).await.expect(201);
    admin.post(SCHEMAS, &schema("unclaimed", "system")).await.expect(201);
    // The API refuses another spec of a mandatory object, but another program may store one.
    let catch_all = format!("{SCHEMAS}/catch-all");
    let refused = admin.patch(&catch_all, MERGE, &json!({"spec": {"matchingPrecedence": 9}})).await;
    let message = refused.expect(422)["message"].as_str().expect("a message").to_owned();
    assert!(message.ends_with("spec of 'catch-all' must equal the fixed value"), "{message}");
    let mut stored = admin.get(&catch_all).await.expect(200);
    stored["spec"]["matchingPrecedence"] = json!(9);
    stored["metadata"]["annotations"][AUTO_UPDATE] = "false".into();
    store_directly(&cluster, "flowschemas/catch-all", &stored).await;

    let cluster = cluster.restart().await;
    let admin = cluster.admin();
    let shares_of = |object: &Value| object["spec"]["limited"]["nominalConcurrencyShares"].clone();
    assert_eq!(shares_of(&admin.get(&kept).await.expect(200)), 7);
    assert_eq!(shares_of(&admin.get(&reset).await.expect(200)), 40);
    let object = admin.get(&unannotated).await.expect(200);
    assert_eq!(shares_of(&object), 8);
    assert_eq!(object["metadata"]["annotations"][AUTO_UPDATE], "false");
    assert_eq!(admin.get(&format!("{SCHEMAS}/probes")).await.code, 200);
    assert_eq!(admin.get(&format!("{LEVELS}/exempt")).await.code, 200);
    assert_eq!(admin.get(&format!("{SCHEMAS}/claimed")).await.code, 404);
    assert_eq!(admin.get(&format!("{SCHEMAS}/unclaimed")).await.code, 200);
    let object = admin.get(&catch_all).await.expect(200);
    assert_eq!(object["spec"]["matchingPrecedence"], 10_000);
    assert_eq!(object["metadata"]["annotations"][AUTO_UPDATE], "true");
}

/// The server says whether the level of a schema exists, as soon as either changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_without_a_level_dangles() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let found = "This FlowSchema references the PriorityLevelConfiguration object named \"own\" and it exists";
    let missing = "This FlowSchema references the PriorityLevelConfiguration object named \"own\" but there is no \
                   such object";
    admin.post(SCHEMAS, &schema("own", "own")).await.expect(201);
    let condition = dangling(&admin, "own", "True").await;
    assert_eq!(
        (&condition["reason"], &condition["message"]),
        (&json!("NotFound"), &json!(missing))
    );
    assert!(condition["lastTransitionTime"].is_string());
    admin.post(LEVELS, &level("own", 3)).await.expect(201);
    let condition = dangling(&admin, "own", "False").await;
    assert_eq!((&condition["reason"], &condition["message"]), (&json!("Found"), &json!(found)));
    admin.delete(&format!("{LEVELS}/own")).await.expect(200);
    dangling(&admin, "own", "True").await;
    // Other conditions stay.
    let other = json!({"status": {"conditions": [{"type": "Other", "status": "True"}]}});
    admin.patch(&format!("{SCHEMAS}/own/status"), MERGE, &other).await.expect(200);
    dangling(&admin, "own", "True").await;
    let object = admin.get(&format!("{SCHEMAS}/own")).await.expect(200);
    assert_eq!(object["status"]["conditions"][0]["type"], "Other");
}

/// Levels lend each other no seats, and authors who ask for that are told.
#[tokio::test(flavor = "multi_thread")]
async fn authors_of_levels_that_lend_seats_are_warned() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let told = |answer: crate::client::Answer, code: u16| {
        let told = warnings(&answer).join("\n");
        answer.expect(code);
        told
    };
    assert_eq!(told(admin.post(LEVELS, &level("plain", 3)).await, 201), "");
    let mut borrowing = level("borrowing", 3);
    borrowing["spec"]["limited"]["borrowingLimitPercent"] = json!(50);
    assert_eq!(
        told(admin.post(LEVELS, &borrowing).await, 201),
        "not enforced by this server: spec.limited.borrowingLimitPercent: levels lend each other no seats"
    );
    let lendable = json!({"spec": {"limited": {"lendablePercent": 10}}});
    assert_eq!(
        told(admin.patch(&format!("{LEVELS}/plain"), MERGE, &lendable).await, 200),
        "not enforced by this server: spec.limited.lendablePercent: levels lend each other no seats"
    );
    let exempt = json!({"spec": {"exempt": {"nominalConcurrencyShares": 10}}});
    assert_eq!(
        told(admin.patch(&format!("{LEVELS}/exempt"), MERGE, &exempt).await, 200),
        "not enforced by this server: spec.exempt.nominalConcurrencyShares: levels lend each other no seats"
    );
    assert_eq!(told(admin.post(SCHEMAS, &schema("own", "plain")).await, 201), "");
}

/// A stored object that is no valid schema counts as absent, and is reported; a later version takes effect again.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_stored_objects_count_as_absent() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    admin.post(LEVELS, &level("own", 3)).await.expect(201);
    admin.post(SCHEMAS, &schema("own", "own")).await.expect(201);
    dangling(&admin, "own", "False").await;
    let mut stored = admin.get(&format!("{LEVELS}/own")).await.expect(200);
    stored["spec"]["limited"] = Value::Null;
    store_directly(&cluster, "prioritylevelconfigurations/own", &stored).await;
    dangling(&admin, "own", "True").await;
    let status = admin.get("/portcullis/authorization/status").await.expect(200);
    let undecodable = &status["undecodableObjects"][0];
    assert_eq!(undecodable["path"], "prioritylevelconfigurations/own", "{status}");
    assert_eq!(undecodable["error"], "spec.limited: Required value", "{status}");
    admin.put(&format!("{LEVELS}/own"), &level("own", 4)).await.expect(200);
    dangling(&admin, "own", "False").await;
    let status = admin.get("/portcullis/authorization/status").await.expect(200);
    assert_eq!(status["undecodableObjects"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_have_the_columns_of_kubernetes() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    for (path, columns, cells) in [
        (
            format!("{SCHEMAS}/system-nodes"),
            json!([
                "Name",
                "PriorityLevel",
                "MatchingPrecedence",
                "DistinguisherMethod",
                "Age",
                "MissingPL"
            ]),
            json!(["system-nodes", "system", 500, "ByUser", null, "False"]),
        ),
        (
            format!("{SCHEMAS}/probes"),
            json!([
                "Name",
                "PriorityLevel",
                "MatchingPrecedence",
                "DistinguisherMethod",
                "Age",
                "MissingPL"
            ]),
            json!(["probes", "exempt", 2, "<none>", null, "False"]),
        ),
        (
            format!("{LEVELS}/system"),
            json!([
                "Name",
                "Type",
                "NominalConcurrencyShares",
                "Queues",
                "HandSize",
                "QueueLengthLimit",
                "Age"
            ]),
            json!(["system", "Limited", 30, 64, 6, 50, null]),
        ),
        (
            format!("{LEVELS}/catch-all"),
            json!([
                "Name",
                "Type",
                "NominalConcurrencyShares",
                "Queues",
                "HandSize",
                "QueueLengthLimit",
                "Age"
            ]),
            json!(["catch-all", "Limited", 5, "<none>", "<none>", "<none>", null]),
        ),
        (
            format!("{LEVELS}/exempt"),
            json!([
                "Name",
                "Type",
                "NominalConcurrencyShares",
                "Queues",
                "HandSize",
                "QueueLengthLimit",
                "Age"
            ]),
            json!(["exempt", "Exempt", "<none>", "<none>", "<none>", "<none>", null]),
        ),
    ] {
        let table = admin.send(Method::GET, &path, &accept, "").await.expect(200);
        let definitions = table["columnDefinitions"].as_array().expect("columns");
        let names: Vec<&Value> = definitions.iter().map(|own| &own["name"]).collect();
        assert_eq!(json!(names), columns, "{path}");
        let mut row = table["rows"][0]["cells"].clone();
        let age = names.iter().position(|name| *name == "Age").expect("an age");
        row[age] = Value::Null;
        assert_eq!(row, cells, "{path}");
    }
}

/// The UIDs of the schema and of the level by which a request was classified.
async fn classified(client: &Client) -> (String, String) {
    let answer = client.get("/version").await;
    let header = |name: &str| {
        let value =
            answer.headers.get(name).unwrap_or_else(|| panic!("no {name}: {}", answer.text()));
        value.to_str().expect("text").to_owned()
    };
    (header("x-kubernetes-pf-flowschema-uid"), header("x-kubernetes-pf-prioritylevel-uid"))
}

async fn uid(client: &Client, path: &str) -> String {
    let object = client.get(path).await.expect(200);
    object["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

/// The e2e spec "should ensure that requests can be classified by adding FlowSchema and
/// PriorityLevelConfiguration": a new schema classifies the next request, and a deleted one no further request.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_classified_by_added_objects_without_a_restart() {
    let cluster = Cluster::start().await;
    let (admin, alice, bob) = (cluster.admin(), cluster.alice(), cluster.bob());
    let default = (
        uid(&admin, &format!("{SCHEMAS}/global-default")).await,
        uid(&admin, &format!("{LEVELS}/global-default")).await,
    );
    let exempt = (
        uid(&admin, &format!("{SCHEMAS}/exempt")).await,
        uid(&admin, &format!("{LEVELS}/exempt")).await,
    );
    assert_eq!(classified(&admin).await, exempt);
    assert_eq!(classified(&alice).await, default);
    let mut own = schema("own", "own");
    own["spec"]["rules"][0]["subjects"] = json!([{"kind": "User", "user": {"name": "alice"}}]);
    let own = admin.post(SCHEMAS, &own).await.expect(201);
    assert_eq!(classified(&alice).await, default, "a schema without a level matches nothing");
    let level = admin.post(LEVELS, &level("own", 3)).await.expect(201);
    let want = (&own["metadata"]["uid"], &level["metadata"]["uid"]);
    let (schema_uid, level_uid) = classified(&alice).await;
    assert_eq!((&json!(schema_uid), &json!(level_uid)), want);
    assert_eq!(classified(&bob).await, default);
    // The order of schemas follows a change of their precedence.
    let last = json!({"spec": {"matchingPrecedence": 9950}});
    admin.patch(&format!("{SCHEMAS}/own"), MERGE, &last).await.expect(200);
    assert_eq!(classified(&alice).await, default);
    let first = json!({"spec": {"matchingPrecedence": 3}});
    admin.patch(&format!("{SCHEMAS}/own"), MERGE, &first).await.expect(200);
    assert_eq!(classified(&alice).await.0, schema_uid);
    admin.delete(&format!("{SCHEMAS}/own")).await.expect(200);
    assert_eq!(classified(&alice).await, default);
}

/// Several servers on one store agree: each object is written once, whichever server writes it.
#[tokio::test(flavor = "multi_thread")]
async fn servers_on_one_store_do_not_write_in_turn() {
    let members = [Member::alone()];
    members.iter().for_each(Member::wait_until_healthy);
    let first = Station::start(&members, |_| {}).await;
    let before = first.admin().get(SCHEMAS).await.expect(200);
    let second = Station::start(&members, |_| {}).await;
    assert_eq!(second.admin().get(SCHEMAS).await.expect(200)["items"], before["items"]);
    first.admin().post(SCHEMAS, &schema("own", "own")).await.expect(201);
    dangling(&second.admin(), "own", "True").await;
    second.admin().post(LEVELS, &level("own", 3)).await.expect(201);
    dangling(&first.admin(), "own", "False").await;
    // Of the two servers, one wrote each condition. The other one found it written, also if its snapshot was
    // older.
    let mut changes = Vec::new();
    let revision = before["metadata"]["resourceVersion"].as_str().expect("a revision");
    let path = format!("{SCHEMAS}?watch=1&resourceVersion={revision}");
    let mut events = first.admin().watch(&path).await;
    first.admin().delete(&format!("{SCHEMAS}/own")).await.expect(200);
    loop {
        let event = events.next().await.expect("an event");
        if event["object"]["metadata"]["name"] == "own" {
            changes.push(event["type"].as_str().expect("a type").to_owned());
            if event["type"] == "DELETED" {
                break;
            }
        }
    }
    assert_eq!(changes, ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]);
    first.stop().await;
    second.stop().await;
}
