//! The initializers of an object when several configurations apply.

use serde_json::json;

use super::scene::{MAPS, Scene, entry, map, pending};
use crate::initializers::scene::{INITIALIZERS, configuration};

#[tokio::test(flavor = "multi_thread")]
async fn one_order_holds_for_all_configurations() {
    let scene = Scene::start().await;
    let other = json!([{"apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["*"]}]);
    for (name, entries) in [
        ("b", json!([entry("x.b.c", json!({})), entry("y.b.c", json!({}))])),
        (
            "a",
            json!([
                entry("y.b.c", json!({})),
                entry("other.b.c", json!({"rules": other})),
                entry("z.b.c", json!({})),
            ]),
        ),
    ] {
        scene.admin.post(INITIALIZERS, &configuration(name, entries)).await.expect(201);
    }
    let path = format!("{MAPS}?includeUninitialized=1");
    let made = scene.admin.post(&path, &map("m")).await.expect(202);
    assert_eq!(pending(&made), Some(vec!["y.b.c", "z.b.c", "x.b.c"]));
    let entries = made["metadata"]["initializers"]["pending"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry.get("after").is_none()));
}
