//! Patches of mutating hooks, and how they are applied.

use admission::{GroupVersionKind, Operation};
use admission_hooks::{HookRefusal, ObjectConversionError, ObjectConverter, UntypedConverter};
use api_object::Tree;
use serde_json::{Value, json};

use crate::fixture::{
    Scene, allow, annotations, answers, hook, label, label_of, patch, peer, review, says, widget,
    with,
};

const FAILED: &str = "Internal error occurred: failed calling webhook \"m.x.y\": ";

fn ignored(hook: Value) -> Value {
    with(hook, "failurePolicy", "Ignore")
}

#[tokio::test]
async fn a_patch_is_applied_and_told() {
    let peer = peer(says(label("a", "1")));
    let (object, notes) = Scene::new().mutating("c", vec![hook("m.x.y", &peer)]).allowed().await;
    assert_eq!(label_of(&object, "a"), Some("1"));
    let all = annotations(&notes);
    assert_eq!(
        all["mutation.webhook.admission.k8s.io/round_0_index_0"],
        "{\"configuration\":\"c\",\"webhook\":\"m.x.y\",\"mutated\":true}"
    );
    assert_eq!(
        all["patch.webhook.admission.k8s.io/round_0_index_0"],
        "{\"configuration\":\"c\",\"webhook\":\"m.x.y\",\"patch\":[{\"op\":\"add\",\"path\":\
         \"/metadata/labels/a\",\"value\":\"1\"}],\"patchType\":\"JSONPatch\"}"
    );
}

#[tokio::test]
async fn a_patch_that_can_not_be_read_is_a_failed_call() {
    use base64::Engine as _;
    let broken = base64::engine::general_purpose::STANDARD.encode("[{");
    let peer = peer(says(json!({"allowed": true, "patchType": "JSONPatch", "patch": broken})));
    let (object, _) =
        Scene::new().mutating("c", vec![ignored(hook("m.x.y", &peer))]).allowed().await;
    assert_eq!(object, widget());
    let complaint = Scene::new().mutating("c", vec![hook("m.x.y", &peer)]).complaint().await;
    let want = "received undecodable patch in webhook response: ";
    assert!(complaint.starts_with(&format!("{FAILED}{want}")), "{complaint}");
}

#[tokio::test]
async fn a_patch_of_another_type_is_a_failed_call() {
    let odd = with(patch(json!([{"op": "add", "path": "/a", "value": 1}])), "patchType", "Foo");
    let peer = peer(says(odd));
    let complaint = Scene::new().mutating("c", vec![hook("m.x.y", &peer)]).complaint().await;
    assert_eq!(complaint, format!("{FAILED}unsupported patch type \"Foo\""));
}

#[tokio::test]
async fn a_patch_that_does_not_apply_is_never_ignored() {
    for operation in [
        json!({"op": "remove", "path": "/spec/x"}),
        json!({"op": "test", "path": "/metadata/name", "value": "other"}),
        json!({"op": "replace", "path": "", "value": {}}),
    ] {
        let peer = peer(says(patch(json!([operation]))));
        let scene = Scene::new().mutating("c", vec![ignored(hook("m.x.y", &peer))]);
        let (refusal, notes) = scene.refused().await;
        assert!(matches!(refusal, HookRefusal::Internal(_)), "{refusal}");
        assert_eq!(scene.seen.calls.lock().unwrap()[0].2, Some("apiserver_internal_error"));
        assert!(!annotations(&notes).keys().any(|key| key.starts_with("patch.")));
    }
}

#[tokio::test]
async fn an_empty_patch_changes_nothing_and_a_deletion_can_not_be_changed() {
    let nothing = peer(says(patch(json!([]))));
    let (object, notes) = Scene::new().mutating("c", vec![hook("m.x.y", &nothing)]).allowed().await;
    assert_eq!(object, widget());
    assert_eq!(
        annotations(&notes).into_iter().collect::<Vec<_>>(),
        [(
            "mutation.webhook.admission.k8s.io/round_0_index_0",
            "{\"configuration\":\"c\",\"webhook\":\"m.x.y\",\"mutated\":false}"
        )]
    );
    for (response, is_allowed) in [(label("a", "1"), false), (patch(json!([])), true)] {
        let peer = peer(says(response));
        let mut scene = Scene::new().mutating("c", vec![ignored(hook("m.x.y", &peer))]);
        scene.operation = Operation::Delete;
        scene.old_object = scene.object.take();
        if is_allowed {
            scene.allowed().await;
        } else {
            assert_eq!(
                scene.complaint().await,
                "Internal error occurred: admission webhook \"m.x.y\" attempted to modify the \
                 object, which is not supported for this operation"
            );
        }
    }
}

#[tokio::test]
async fn the_patch_of_a_denial_is_not_looked_at() {
    let peer = peer(says(with(label("a", "1"), "allowed", false)));
    let (refusal, notes) = Scene::new().mutating("c", vec![hook("m.x.y", &peer)]).refused().await;
    assert!(matches!(refusal, HookRefusal::Denied(denial) if denial.code == 400));
    assert!(!annotations(&notes).keys().any(|key| key.starts_with("patch.")));
}

/// Gives every object a size.
struct Sized;

impl ObjectConverter for Sized {
    fn convert_to_kind(
        &self,
        tree: &Tree,
        to: &GroupVersionKind<'_>,
    ) -> Result<Tree, ObjectConversionError> {
        UntypedConverter.convert_to_kind(tree, to)
    }

    fn decode_and_default(
        &self,
        mut tree: Tree,
        _: &GroupVersionKind<'_>,
    ) -> Result<Tree, ObjectConversionError> {
        if tree.contains_key("broken") {
            return Err(ObjectConversionError("unknown field \"broken\"".to_owned()));
        }
        tree.entry("size").or_insert(3.into());
        Ok(tree)
    }
}

#[tokio::test]
async fn defaults_are_filled_in_before_the_next_hook() {
    let (first, second) = (peer(says(label("a", "1"))), peer(says(allow())));
    let hooks = vec![hook("m.x.y", &first), hook("n.x.y", &second)];
    let mut scene = Scene::new().mutating("c", hooks);
    scene.kinds = Box::new(Sized);
    let (object, _) = scene.allowed().await;
    assert_eq!(object["size"], 3);
    assert_eq!(review(&second.requests()[0])["request"]["object"]["size"], 3);

    let breaking = peer(says(patch(json!([{"op": "add", "path": "/broken", "value": 1}]))));
    let mut scene = Scene::new().mutating("c", vec![ignored(hook("m.x.y", &breaking))]);
    scene.kinds = Box::new(Sized);
    assert_eq!(scene.complaint().await, "Internal error occurred: unknown field \"broken\"");
}

#[tokio::test]
async fn selectors_see_the_object_as_patched_so_far() {
    let (first, second) = (peer(says(label("a", "1"))), peer(answers(vec![allow()])));
    let selecting =
        with(hook("n.x.y", &second), "objectSelector", json!({"matchLabels": {"a": "1"}}));
    let scene = Scene::new().mutating("c", vec![selecting.clone(), hook("m.x.y", &first)]);
    scene.allowed().await;
    assert_eq!(second.n_requests(), 0);
    let scene = Scene::new().mutating("c", vec![hook("m.x.y", &first), selecting]);
    scene.allowed().await;
    assert_eq!(second.n_requests(), 1);
}
