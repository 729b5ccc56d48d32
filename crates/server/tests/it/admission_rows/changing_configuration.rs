//! The state of the configuration that a request is admitted by, on one server.

use std::time::Duration;

use fake_http::Script;
use serde_json::{Value, json};
use server::{AdmissionConfigSyncMode, AdmissionConfigSyncOptions};
use store::{ExpectedKeyState, Key, Put, Store};
use store_embedded::EmbeddedStore;

use super::{EXTERNAL, INITIALIZERS, MAPS, NAMESPACES, Scene, map, message};
use crate::admission_hooks::{
    HookAuthority, MUTATING, VALIDATING, allow, answer, deny, plant, register,
    webhook_configuration,
};
use crate::client::Answer;
use crate::cluster::Cluster;

const STATUS: &str = "/portcullis/admission/status";

fn admission_config_revision(answer: &Answer) -> Option<u64> {
    let value = answer.headers.get("portcullis-admission-revision")?;
    Some(value.to_str().unwrap().parse().unwrap())
}

/// A configuration that was written while the server was down applies to the first request.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_sees_what_was_written_meanwhile() {
    let authority = HookAuthority::new();
    let hook = authority.hook(deny("written meanwhile"));
    let cluster = Cluster::start().await;
    cluster.admin().post(MAPS, &map("before")).await.expect(201);
    let folder = cluster.stop(Duration::ZERO).await;
    let store =
        EmbeddedStore::open(&folder.path().join("store"), store_embedded::Options::default());
    let store = store.unwrap();
    let object =
        webhook_configuration(VALIDATING, "v", &[authority.webhook("v.x.y", &hook, json!({}))]);
    let put = Put {
        key: Key::new("/registry/validatingwebhookconfigurations/v").unwrap(),
        value: object.to_string().into_bytes().into(),
        expected_state: ExpectedKeyState::Absent,
        ttl: None,
        key_group_revision_action: None,
    };
    let revision = store.put(put).await.unwrap().as_u64();
    store.close().await;
    drop(store);
    let cluster = Cluster::start_in(folder, |_, _| {}).await;
    let answer = cluster.admin().post(MAPS, &map("after")).await;
    assert!(admission_config_revision(&answer) >= Some(revision));
    assert_eq!(
        message(answer, 403),
        "admission webhook \"v.x.y\" denied the request: written meanwhile"
    );
}

/// One state of the configuration applies to all phases of a request.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_keeps_its_configuration() {
    let scene = Scene::start().await;
    let slow = Script::rule(|request| {
        answer(request, &json!({"allowed": true})).delay(Duration::from_secs(2))
    });
    let (mutating, old, new) = (scene.hook(slow), scene.hook(allow()), scene.hook(deny("new")));
    let webhooks = [scene.webhook("m.x.y", &mutating, json!({}))];
    register(&scene.cluster, MUTATING, "m", &webhooks).await;
    register(&scene.cluster, VALIDATING, "old", &[scene.webhook("old.x.y", &old, json!({}))]).await;
    let creating = {
        let admin = scene.admin.clone();
        tokio::spawn(async move { admin.post(MAPS, &map("m")).await })
    };
    while mutating.n_requests() == 0 {
        crate::polling::pause().await;
    }
    let changed = scene.admin.delete(&format!("{VALIDATING}/old")).await;
    changed.expect(200);
    register(&scene.cluster, VALIDATING, "new", &[scene.webhook("new.x.y", &new, json!({}))]).await;
    creating.await.unwrap().expect(201);
    assert_eq!((old.n_requests(), new.n_requests()), (1, 0));
    // The next one is admitted by the next state.
    scene.admin.post(MAPS, &map("n")).await.expect(403);
    assert_eq!((old.n_requests(), new.n_requests()), (1, 1));
}

/// An object that cannot be decoded does not affect the others, and the status page lists it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_object_that_can_not_be_read() {
    let scene = Scene::start().await;
    let hook = scene.hook(deny("no"));
    scene.ask(VALIDATING, &hook, json!({})).await;
    let garbage = [
        "admissionregistration.k8s.io/externaladmissionhookconfigurations/garbage",
        "admissionregistration.k8s.io/initializerconfigurations/garbage",
        "mutatingwebhookconfigurations/garbage",
        "validatingwebhookconfigurations/garbage",
    ];
    for path in garbage {
        plant(&scene.cluster, path, "{garbage").await;
    }
    let status = loop {
        let status = scene.admin.get(STATUS).await.expect(200);
        if status["invalidObjects"].as_array().is_some_and(|list| list.len() == garbage.len()) {
            break status;
        }
        crate::polling::pause().await;
    };
    let paths: Vec<&Value> =
        status["invalidObjects"].as_array().unwrap().iter().map(|own| &own["path"]).collect();
    assert_eq!(paths, garbage);
    assert_eq!(status["state"], "ready");
    assert!(status["invalidObjects"][0]["error"].is_string());
    scene.create("").await.expect(403);
    assert_eq!(hook.n_requests(), 1, "the others are effective");
    scene.admin.delete(&format!("{VALIDATING}/c")).await.expect(200);
    scene.create("").await.expect(201);
}

/// The response of every admitted write has the header, and no other response has it.
#[tokio::test(flavor = "multi_thread")]
async fn writes_tell_by_which_state_they_were_admitted() {
    let scene = Scene::start().await;
    let hook = scene.hook(allow());
    let mut last = 0;
    for round in 0..5 {
        let name = format!("v{round}");
        let body =
            webhook_configuration(VALIDATING, &name, &[scene.webhook("v.x.y", &hook, json!({}))]);
        let answer = scene.admin.post(VALIDATING, &body).await;
        assert_eq!(
            admission_config_revision(&answer),
            None,
            "E1 is not admitted by the configuration"
        );
        let made = answer.expect(201);
        let written: u64 = made["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        let admin = &scene.admin;
        let patch = json!({"data": {"round": name}});
        let path = format!("{MAPS}/m");
        for answer in [
            admin.post(MAPS, &map("m")).await,
            admin.patch(&path, "merge-patch", &patch).await,
            admin.delete(&path).await,
            admin.delete(MAPS).await,
        ] {
            let revision = admission_config_revision(&answer).unwrap_or_default();
            assert!(revision >= written && revision >= last, "{revision} {written} {last}");
            last = revision;
        }
        assert_eq!(admission_config_revision(&admin.get(MAPS).await), None);
    }
    // The response to a denied request has the header as well.
    hook.replace(deny("no")).unwrap();
    assert!(admission_config_revision(&scene.create("").await) >= Some(last));
}

/// The time to wait for other servers must be a duration.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_to_wait_that_is_none() {
    let scene = Scene::start().await;
    for (kind, list) in [
        (VALIDATING, "webhooks"),
        (EXTERNAL, "externalAdmissionHooks"),
        (INITIALIZERS, "initializers"),
    ] {
        let body = json!({"metadata": {"name": "x"}, list: []});
        for bad in ["soon", "", "-1s", "31s", "5"] {
            let answer = scene.admin.post(&format!("{kind}?ackTimeout={bad}"), &body).await;
            let text = message(answer, 400);
            assert!(text.contains("ackTimeout"), "{bad}: {text}");
            scene.admin.get(&format!("{kind}/x")).await.expect(404);
        }
        let answer = scene.admin.post(&format!("{kind}?ackTimeout=5s"), &body).await;
        assert!(answer.headers.get("warning").is_none(), "the only server has seen it");
        answer.expect(201);
    }
    // For other resources the parameter has no effect.
    scene.create("ackTimeout=soon").await.expect(201);
}

/// A server whose configuration is too old refuses writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_configuration() {
    let scene = Scene::start_with(|options| {
        // It is read once, and is too old soon after.
        options.admission_options.admission_config_sync = AdmissionConfigSyncOptions {
            admission_config_sync_mode: AdmissionConfigSyncMode::Poll,
            admission_config_poll_interval: Duration::from_secs(3600),
            admission_config_staleness_max: Duration::from_millis(300),
            ..AdmissionConfigSyncOptions::default()
        };
    })
    .await;
    let admin = &scene.admin;
    while admin.get(STATUS).await.expect(200)["state"] != "stale" {
        crate::polling::pause().await;
    }
    let ready = admin.get("/readyz").await;
    assert_eq!(ready.code, 500);
    assert!(ready.text().contains("[-]admission-config failed"), "{}", ready.text());
    assert_eq!(admin.get("/livez").await.code, 200);

    let hooks_row = (
        "Unable to refresh the ExternalAdmissionHook configuration: ",
        "ExternalAdmissionHookConfigurationFailure",
    );
    let initializers_row =
        ("Unable to refresh the initializer configuration: ", "InitializerConfigurationFailure");
    let default = format!("{NAMESPACES}/default");
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    for (operation, kind, answer, (message, cause)) in [
        ("CREATE", "configmaps", admin.post(MAPS, &map("m")).await, initializers_row),
        ("UPDATE", "namespaces", admin.patch(&default, "merge-patch", &patch).await, hooks_row),
        (
            "DELETE",
            "namespaces",
            admin.delete(&format!("{NAMESPACES}/kube-public")).await,
            hooks_row,
        ),
        ("DELETE", "configmaps", admin.delete(MAPS).await, hooks_row),
    ] {
        assert_eq!(answer.headers["retry-after"], "1");
        let status = answer.expect(500);
        assert_eq!(status["reason"], "LoadingConfiguration");
        let text = status["message"].as_str().unwrap();
        assert!(text.starts_with(message), "{text}");
        let details = &status["details"];
        assert_eq!(
            (&details["name"], &details["kind"]),
            (&json!(operation), &json!(kind)),
            "details of the refusal"
        );
        assert_eq!(details["retryAfterSeconds"], 1);
        assert_eq!(details["causes"][0]["reason"], cause);
    }

    admin.get(MAPS).await.expect(200);
    admin.get(&default).await.expect(200);
    admin.watch(&format!("{MAPS}?watch=1&timeoutSeconds=1")).await;
    let review = json!({"spec": {"user": "bob",
        "resourceAttributes": {"verb": "get", "resource": "pods"}}});
    admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.expect(201);
    for (kind, list) in [
        (VALIDATING, "webhooks"),
        (EXTERNAL, "externalAdmissionHooks"),
        (INITIALIZERS, "initializers"),
    ] {
        let made =
            admin.post(kind, &json!({"metadata": {"name": "x"}, list: []})).await.expect(201);
        admin.put(&format!("{kind}/x"), &made).await.expect(200);
        admin.delete(&format!("{kind}/x")).await.expect(200);
    }
}
