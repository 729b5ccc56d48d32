//! Initializers that do not act in time.

use std::time::Duration;

use http::Method;
use serde_json::json;
use server::{AdmissionConfigSyncMode, AdmissionConfigSyncOptions};

use super::scene::{MAPS, Scene, entry, map, map_with, next, pending, seen};
use crate::initializers::scene::{INITIALIZERS, configuration};

#[tokio::test(flavor = "multi_thread")]
async fn dead_ones_are_taken_out_after_their_time() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore"), ("b.x.y", "Ignore")]).await;
    let (mut all, mut default) =
        (scene.watch("includeUninitialized=1").await, scene.watch("").await);
    let creator = scene.create("m");
    assert_eq!(next(&mut all).await, seen("ADDED", "m", &["a.x.y", "b.x.y"]));
    scene.asleep(5.0, 1).await;
    scene.pass(4.0);
    let patch = json!({"data": {"c": "d"}});
    scene.admin.patch(&format!("{MAPS}/m"), "merge-patch", &patch).await.expect(200);
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &["a.x.y", "b.x.y"]));
    scene.pass(1.0);
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &["b.x.y"]));
    assert!(!creator.is_finished());
    scene.asleep(10.0, 1).await;
    scene.pass(4.0);
    assert_eq!(pending(&scene.get("m").await), Some(vec!["b.x.y"]));
    scene.pass(1.0);
    let made = creator.await.unwrap().expect(201);
    assert_eq!(pending(&made), None);
    assert_eq!(made["data"], json!({"a": "b", "c": "d"}));
    assert_eq!(next(&mut default).await, seen("ADDED", "m", &[]));
    let removed = "portcullis_initializer_timeouts_total{action=\"removed\",name=\"b.x.y\"}";
    assert_eq!(scene.metric(removed).await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_must_not_be_skipped_keep_the_object() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore"), ("b.x.y", "Fail")]).await;
    let (mut all, mut default) =
        (scene.watch("includeUninitialized=1").await, scene.watch("").await);
    let creator = scene.create("m");
    assert_eq!(next(&mut all).await, seen("ADDED", "m", &["a.x.y", "b.x.y"]));
    scene.asleep(5.0, 1).await;
    scene.pass(5.0);
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &["b.x.y"]));
    scene.asleep(10.0, 1).await;
    scene.pass(5.0);
    let told = creator.await.unwrap().expect(504);
    assert_eq!(
        told["message"],
        "Timeout: server has timed out waiting for the initialization of configmaps m",
        "the message of the timeout"
    );
    let left = scene.get("m").await;
    assert_eq!(pending(&left), Some(vec!["b.x.y"]));
    let details = json!({"name": "m", "kind": "configmaps", "uid": left["metadata"]["uid"], "causes": [
        {"reason": "InitializationTimeout", "message": "b.x.y",
         "field": "metadata.initializers.pending[0]"},
        {"reason": "ResourceVersion", "message": left["metadata"]["resourceVersion"]},
    ]});
    assert_eq!((&told["reason"], &told["details"]), (&json!("Timeout"), &details));
    scene.act("m", "b.x.y").await;
    assert_eq!(next(&mut default).await, seen("ADDED", "m", &[]));
    let failed = "portcullis_initializer_timeouts_total{action=\"failed\",name=\"b.x.y\"}";
    assert_eq!(scene.metric(failed).await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_impatience_nor_absence_stops_the_timer() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let mut all = scene.watch("includeUninitialized=1").await;
    let told = scene.admin.post(&format!("{MAPS}?timeout=300ms"), &map("m")).await.expect(504);
    assert_eq!(told["message"], "Timeout: request did not complete within requested timeout");
    assert_eq!(told["details"]["causes"][0]["message"], "a.x.y");
    assert_eq!(next(&mut all).await, seen("ADDED", "m", &["a.x.y"]));
    let admin = scene.admin.clone();
    let gone =
        tokio::spawn(
            async move { admin.begin(Method::POST, MAPS, &[], map("n").to_string()).await },
        );
    assert_eq!(next(&mut all).await, seen("ADDED", "n", &["a.x.y"]));
    gone.abort();
    let _ = gone.await;
    scene.asleep(5.0, 2).await;
    scene.pass(5.0);
    let mut done = [next(&mut all).await, next(&mut all).await];
    done.sort_unstable();
    assert_eq!(done, [seen("MODIFIED", "m", &[]), seen("MODIFIED", "n", &[])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_of_the_moment_counts() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let mut all = scene.watch("includeUninitialized=1").await;
    let raised = scene.create("raised");
    assert_eq!(next(&mut all).await.1, "raised");
    scene.asleep(5.0, 1).await;
    scene.pass(3.0);
    scene.set_policy("a.x.y", "Fail").await;
    scene.pass(2.0);
    raised.await.unwrap().expect(504);
    assert_eq!(pending(&scene.get("raised").await), Some(vec!["a.x.y"]));
    scene.asleep(10.0, 1).await;
    scene.set_policy("a.x.y", "Ignore").await;
    scene.pass(5.0);
    assert_eq!(next(&mut all).await, seen("MODIFIED", "raised", &[]));

    let own = map_with("own", json!({"pending": [{"name": "x.y.z"}]}));
    let own = scene.create_at(MAPS, own);
    let deleted = scene.create("deleted");
    scene.asleep(15.0, 2).await;
    scene.admin.delete(&format!("{INITIALIZERS}/a")).await.expect(200);
    scene.pass(5.0);
    assert_eq!(pending(&deleted.await.unwrap().expect(201)), None);
    own.await.unwrap().expect(504);
    assert_eq!(pending(&scene.get("own").await), Some(vec!["x.y.z"]));
    let other = "portcullis_initializer_timeouts_total{action=\"failed\",name=\"other\"}";
    assert_eq!(scene.metric(other).await, Some(1.0), "clients do not make labels");
}

#[tokio::test(flavor = "multi_thread")]
async fn some_expire_at_once() {
    let scene = Scene::start().await;
    let graph = |after: &[&str]| json!({"orderingMode": "Graph", "after": after});
    let entries = json!([
        entry("a.x.y", graph(&[])),
        entry("b.x.y", graph(&["a.x.y"])),
        entry("c.x.y", graph(&[]))
    ]);
    scene.admin.post(INITIALIZERS, &configuration("a", entries)).await.expect(201);
    let mut all = scene.watch("includeUninitialized=1").await;
    let creator = scene.create("m");
    let event = all.next().await.unwrap();
    let want = json!([{"name": "a.x.y", "after": []}, {"name": "b.x.y", "after": ["a.x.y"]},
        {"name": "c.x.y", "after": []}]);
    assert_eq!(event["object"]["metadata"]["initializers"]["pending"], want);
    scene.asleep(5.0, 1).await;
    scene.pass(5.0);
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &["b.x.y", "c.x.y"]));
    assert_eq!(next(&mut all).await, seen("MODIFIED", "m", &["b.x.y"]));
    assert!(!creator.is_finished());
    scene.asleep(10.0, 1).await;
    scene.pass(4.0);
    assert_eq!(pending(&scene.get("m").await), Some(vec!["b.x.y"]));
    scene.pass(1.0);
    assert_eq!(pending(&creator.await.unwrap().expect(201)), None);

    let creator = scene.create("n");
    while next(&mut all).await.1 != "n" {}
    scene.act("n", "c.x.y").await;
    let left = scene.get("n").await;
    let want = json!([{"name": "a.x.y", "after": []}, {"name": "b.x.y", "after": ["a.x.y"]}]);
    assert_eq!(left["metadata"]["initializers"]["pending"], want);
    for name in ["a.x.y", "b.x.y"] {
        assert_eq!(pending(&scene.get("n").await).unwrap()[0], name);
        scene.act("n", name).await;
    }
    creator.await.unwrap().expect(201);
}

/// A write at the moment when a timer fires is not lost, and the timer removes its entry.
#[tokio::test(flavor = "multi_thread")]
async fn timers_and_writers_do_not_undo_each_other() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore"), ("b.x.y", "Ignore")]).await;
    let creator = scene.create("m");
    scene.asleep(5.0, 1).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let admin = scene.admin.clone();
        writers.spawn(async move {
            for n in 0..10 {
                let patch = json!({"data": {format!("k{writer}-{n}"): "v"}});
                let path = format!("{MAPS}/m");
                admin.patch(&path, "merge-patch", &patch).await.expect(200);
            }
        });
    }
    scene.pass(5.0);
    scene.asleep(10.0, 1).await;
    scene.pass(5.0);
    assert_eq!(pending(&creator.await.unwrap().expect(201)), None);
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    let kept = scene.get("m").await;
    assert_eq!(pending(&kept), None);
    assert_eq!(kept["data"].as_object().unwrap().len(), 41);
}

/// Each object has its own timers.
#[tokio::test(flavor = "multi_thread")]
async fn many_objects_wait_at_one_time() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let creators: Vec<_> = (0..40).map(|n| scene.create(&format!("m{n}"))).collect();
    scene.asleep(5.0, 40).await;
    assert!(scene.list("").await.iter().all(|name| !name.starts_with('m')));
    scene.pass(5.0);
    for creator in creators {
        assert_eq!(pending(&creator.await.unwrap().expect(201)), None);
    }
    let timeouts = "portcullis_initializer_timeouts_total{action=\"removed\",name=\"a.x.y\"}";
    assert_eq!(scene.metric(timeouts).await, Some(40.0));
}

/// Without a fresh configuration the server cannot know which initializers may be skipped.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_taken_out_by_stale_configuration() {
    let scene = Scene::start().await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let folder = scene.cluster.stop(Duration::ZERO).await;
    let scene = Scene::start_in(folder, jiff::Timestamp::now(), |options| {
        // The poll interval is so long that the server reads the configuration only once.
        options.admission_options.admission_config_sync = AdmissionConfigSyncOptions {
            admission_config_sync_mode: AdmissionConfigSyncMode::Poll,
            admission_config_poll_interval: Duration::from_secs(3600),
            admission_config_staleness_max: Duration::from_secs(2),
            ..AdmissionConfigSyncOptions::default()
        };
    })
    .await;
    let path = format!("{MAPS}?includeUninitialized=1");
    scene.admin.post(&path, &map("m")).await.expect(202);
    loop {
        let status = scene.admin.get("/portcullis/admission/status").await.expect(200);
        if status["state"] == "stale" {
            break;
        }
    }
    scene.asleep(5.0, 1).await;
    scene.pass(5.0);
    for again in [6.0, 7.0] {
        scene.asleep(again, 1).await;
        assert_eq!(pending(&scene.get("m").await), Some(vec!["a.x.y"]));
        scene.pass(1.0);
    }
}
