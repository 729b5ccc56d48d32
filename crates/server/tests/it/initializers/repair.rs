//! Objects whose server is gone.

use std::time::Duration;

use http::Method;

use super::scene::{MAPS, Scene, map, next, pending, seen};

const MINUTE: Duration = Duration::from_secs(60);

/// Starts a server this much later than the server that created an object with two initializers.
async fn left_behind(policies: &[(&str, &str)], later: Duration) -> Scene {
    let scene = Scene::start().await;
    scene.register(policies).await;
    let path = format!("{MAPS}?includeUninitialized=1");
    scene.admin.post(&path, &map("m")).await.expect(202);
    scene.crash(later).await
}

const DEAD: [(&str, &str); 2] = [("a.x.y", "Ignore"), ("b.x.y", "Ignore")];

#[tokio::test(flavor = "multi_thread")]
async fn reading_takes_out_one_at_a_time() {
    let scene = left_behind(&DEAD, 9 * MINUTE).await;
    let path = format!("{MAPS}/m");
    assert_eq!(pending(&scene.get("m").await), Some(vec!["a.x.y", "b.x.y"]));
    scene.pass(70.0);
    assert_eq!(pending(&scene.get("m").await), Some(vec!["a.x.y", "b.x.y"]));
    scene.pass(50.0);
    // The API serves no HEAD for an object.
    assert_eq!(scene.admin.send(Method::HEAD, &path, &[], "").await.code, 405);
    let list = scene.admin.get(&format!("{MAPS}?includeUninitialized=1")).await.expect(200);
    let items = list["items"].as_array().unwrap().iter();
    let own = items.filter(|item| item["metadata"]["name"] == "m").map(pending).next();
    assert_eq!(own, Some(Some(vec!["a.x.y", "b.x.y"])), "lists do not repair");

    let alice = scene.grant_alice(&[]).await;
    let mut default = scene.watch("").await;
    let first = alice.get(&path).await.expect(200);
    assert_eq!(pending(&first), Some(vec!["b.x.y"]), "one read repairs one step");
    assert_eq!(pending(&alice.get(&path).await.expect(200)), None);
    assert_eq!(next(&mut default).await, seen("ADDED", "m", &[]));
    let repaired = "portcullis_initializer_read_repairs_total{name=\"a.x.y\"}";
    assert_eq!(scene.metric(repaired).await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn some_are_left_as_they_are() {
    let scene = left_behind(&[("a.x.y", "Fail")], 11 * MINUTE).await;
    assert_eq!(pending(&scene.get("m").await), Some(vec!["a.x.y"]));
    scene
        .admin
        .delete("/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations/a")
        .await
        .expect(200);
    assert_eq!(pending(&scene.get("m").await), None, "now nobody knows it");

    let scene = Scene::start().await;
    scene.register(&DEAD).await;
    let path = format!("{MAPS}?includeUninitialized=1");
    scene.admin.post(&path, &map("m")).await.expect(202);
    let folder = scene.cluster.stop(Duration::ZERO).await;
    let behind = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(5);
    let scene = Scene::start_in(folder, behind, |_| {}).await;
    assert_eq!(pending(&scene.get("m").await).map(|own| own.len()), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_do_not_repair_twice() {
    let names: Vec<String> = (0..30).map(|idx| format!("n{idx}.x.y")).collect();
    let policies: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "Ignore")).collect();
    let scene = left_behind(&policies, 11 * MINUTE).await;
    let mut all = scene.watch("includeUninitialized=1").await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let admin = scene.admin.clone();
        readers.spawn(async move { admin.get(&format!("{MAPS}/m")).await.expect(200) });
    }
    let mut least = names.len();
    while let Some(read) = readers.join_next().await {
        least = least.min(pending(&read.unwrap()).unwrap().len());
    }
    assert!((names.len() - 8..names.len()).contains(&least));
    let mut expected = names.len();
    while expected > least {
        expected -= 1;
        let (kind, name, waiting) = next(&mut all).await;
        assert_eq!(
            (kind.as_str(), name.as_str(), waiting.len()),
            ("MODIFIED", "m", expected),
            "each repair is one event"
        );
    }
}

/// As long as the server that created the object tracks it, no other server acts.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_followed_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let later = jiff::Timestamp::now() + 11 * MINUTE;
    let scene = Scene::start_in(folder, later, |_| {}).await;
    scene.register(&[("a.x.y", "Ignore")]).await;
    let path = format!("{MAPS}?includeUninitialized=1");
    scene.admin.post(&path, &map("m")).await.expect(202);
    assert_eq!(pending(&scene.get("m").await), Some(vec!["a.x.y"]));
    scene.asleep(5.0, 1).await;
    // The time of the task is over, whatever the policy was.
    scene.set_policy("a.x.y", "Fail").await;
    scene.pass(600.0);
    assert_eq!(pending(&scene.get("m").await), Some(vec!["a.x.y"]));
    scene.set_policy("a.x.y", "Ignore").await;
    while pending(&scene.get("m").await).is_some() {}
}
