//! Objects as they will be stored, before and after hooks change them.

use api_object::Tree;
use api_resources::{Resource, complete_new_object, complete_updated_object};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::columns::any_object;
use crate::world::{resource, tree, with_widgets};

fn created(resource: &Resource, value: Value) -> Tree {
    let mut tree = tree(value);
    let requester = self::tree(json!({ "username": "ana", "groups": ["crew"] }));
    complete_new_object(resource, &mut tree, &requester).expect("the right types");
    tree
}

fn updated(resource: &Resource, old: &Tree, value: Value, subresource: Option<&str>) -> Tree {
    let mut tree = tree(value);
    complete_updated_object(resource, &mut tree, old, subresource).expect("the right types");
    tree
}

/// Selectors find a namespace by this label, so that nobody but the server says it.
#[test]
fn a_namespace_has_no_name_but_its_own() {
    let namespaces = resource("", "namespaces");
    let label = "kubernetes.io/metadata.name";
    let labels = json!({ "a": "b", label: "kube-system" });
    let own = json!({ "a": "b", label: "n" });
    let named = json!({ "metadata": { "name": "n", "labels": labels } });
    let made = created(&namespaces, named.clone());
    assert_eq!(made["metadata"]["labels"], own);
    for subresource in [None, Some("status")] {
        let next = updated(&namespaces, &made, named.clone(), subresource);
        assert_eq!(next["metadata"]["labels"], own, "{subresource:?}");
    }
    let unnamed = json!({ "metadata": { "generateName": "n-", "labels": labels } });
    assert_eq!(created(&namespaces, unnamed)["metadata"]["labels"], json!({ "a": "b" }));
}

/// What the server sets is not what a client says, and what a path does not change stays.
#[test]
fn a_client_does_not_decide_for_the_server() {
    let stamps = json!({ "name": "o", "uid": "u", "generation": 7,
        "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 1 });
    let deployments = resource("apps", "deployments");
    let forged = json!({ "metadata": stamps, "spec": { "replicas": 1 }, "status": { "x": 1 } });
    let made = created(&deployments, forged);
    assert_eq!(made["metadata"], json!({ "name": "o" }));
    assert_eq!(made.get("status"), Some(&json!({})));

    let old = tree(json!({ "metadata": { "name": "o", "uid": "u", "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [{ "name": "w" }] },
        "spec": { "replicas": 1 }, "status": { "replicas": 1 } }));
    let next = json!({ "metadata": { "name": "o", "resourceVersion": "5", "generation": 9,
        "creationTimestamp": "2001-01-01T00:00:00Z" },
        "spec": { "replicas": 2 }, "status": { "replicas": 2 } });
    let seen = updated(&deployments, &old, next.clone(), None);
    let want = json!({ "name": "o", "uid": "u", "generation": 3, "resourceVersion": "5",
        "creationTimestamp": "2026-01-01T00:00:00Z" });
    assert_eq!(seen["metadata"], want);
    assert_eq!((&seen["spec"]["replicas"], &seen["status"]["replicas"]), (&json!(2), &json!(1)));
    let seen = updated(&deployments, &old, next, Some("status"));
    assert_eq!((&seen["spec"]["replicas"], &seen["status"]["replicas"]), (&json!(1), &json!(2)));
    assert_eq!(seen["metadata"]["generation"], 2);
    assert_eq!(seen["metadata"]["resourceVersion"], "5");

    let requests = resource("certificates.k8s.io", "certificatesigningrequests");
    let asked = created(&requests, json!({ "spec": { "username": "root", "uid": "0" } }));
    assert_eq!(asked["spec"], json!({ "username": "ana", "groups": ["crew"] }));
}

proptest! {
    /// An object is completed before the hooks and after the patch of each, so that doing it once more
    /// must change nothing: otherwise hooks would see another object than the one that is stored.
    #[test]
    fn what_is_complete_stays_as_it_is(object in any_object(), next in any_object()) {
        let requester = Tree::new();
        for resource in with_widgets().resources() {
            let mut old = object.clone();
            if complete_new_object(resource, &mut old, &requester).is_err() {
                continue;
            }
            let mut again = old.clone();
            prop_assert!(complete_new_object(resource, &mut again, &requester).is_ok());
            prop_assert_eq!(&again, &old, "{} {}", &resource.group, &resource.plural);
            for subresource in [None, Some("status"), Some("finalize")] {
                let mut new = next.clone();
                if complete_updated_object(resource, &mut new, &old, subresource).is_err() {
                    continue;
                }
                let mut again = new.clone();
                prop_assert!(complete_updated_object(resource, &mut again, &old, subresource).is_ok());
                prop_assert_eq!(&again, &new, "{} {:?}", &resource.plural, subresource);
            }
        }
    }
}
