//! Hooks and requests with `dryRun`.

use serde_json::json;

use super::{MAPS, Scene, map, told_once};
use crate::admission_hooks::{MUTATING, VALIDATING, allow, plant, rule, webhook_configuration};

#[tokio::test(flavor = "multi_thread")]
async fn hooks_without_side_effects_are_told() {
    let scene = Scene::start().await;
    for kind in [MUTATING, VALIDATING] {
        for effects in ["None", "NoneOnDryRun"] {
            let hook = scene.hook(allow());
            scene.ask(kind, &hook, json!({"sideEffects": effects})).await;
            scene.create("dryRun=All").await.expect(201);
            let told = told_once(&hook);
            assert_eq!(told["dryRun"], true, "{effects}");
            assert_eq!(told["options"]["dryRun"], json!(["All"]), "{effects}");
            scene.admin.get(&format!("{MAPS}/m")).await.expect(404);
        }
        scene.admin.delete(&format!("{kind}/c")).await.expect(200);
    }
}

/// Configurations that older servers have stored.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_with_side_effects_refuse() {
    for kind in [MUTATING, VALIDATING] {
        let scene = Scene::start().await;
        scene.admin.post(MAPS, &map("old")).await.expect(201);
        let hook = scene.hook(allow());
        for effects in ["Some", "Unknown"] {
            let changes = json!({"sideEffects": effects, "failurePolicy": "Ignore"});
            let webhook = scene.webhook("h.x.y", &hook, changes);
            let object = webhook_configuration(kind, "c", &[webhook]);
            let resource = kind.rsplit('/').next().unwrap();
            let revision =
                plant(&scene.cluster, &format!("{resource}/c"), object.to_string()).await;
            // A request without dryRun is admitted, and shows when the server knows the hook.
            loop {
                let answer = scene.create("").await;
                let known = answer.headers["portcullis-admission-revision"].to_str().unwrap();
                let is_known = known.parse::<u64>().unwrap() >= revision;
                answer.expect(201);
                scene.admin.delete(&format!("{MAPS}/m")).await.expect(200);
                if is_known {
                    break;
                }
            }
            hook.take_requests();
            let dry = format!("{MAPS}/old?dryRun=All");
            let patch = json!({"data": {"x": "y"}});
            for answer in [
                scene.create("dryRun=All").await,
                scene.admin.patch(&dry, "merge-patch", &patch).await,
                scene.admin.delete(&dry).await,
            ] {
                let status = answer.expect(400);
                assert_eq!(status["reason"], "BadRequest", "{effects}");
                let want = "admission webhook \"h.x.y\" does not support dry run";
                assert_eq!(status["message"], want, "{effects}");
            }
            assert_eq!(hook.take_requests().len(), 0, "{effects}");
            // A hook that does not match the request has no effect.
            let secrets = "/api/v1/namespaces/default/secrets?dryRun=All";
            scene.admin.post(secrets, &json!({"metadata": {"name": "s"}})).await.expect(201);
            scene.admin.delete(&format!("{kind}/c")).await.expect(200);
        }
        // A hook of another resource does not refuse the dry run.
        let rules = json!([rule(&["*"], "", "secrets")]);
        scene.ask(kind, &hook, json!({"rules": rules})).await;
        scene.create("dryRun=All").await.expect(201);
    }
}
