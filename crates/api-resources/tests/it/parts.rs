//! What a write to each path of each kind may change.

use api_resources::{Registry, Resource, Verb};
use serde_json::{Value, json};

use crate::world::{tree, with_widgets};

/// What writes to the status of Kubernetes' kinds keep of metadata, read from Kubernetes v1.37.
const FACTS: &str = include_str!("status_writes.jsonl");
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// An object in which every member says which state it is of.
fn object(state: &str) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": state, "uid": state});
    json!({
        "metadata": {
            "name": "n",
            "labels": {"state": state},
            "annotations": {"state": state},
            "finalizers": [format!("example.com/{state}")],
            "ownerReferences": [owner],
        },
        "spec": {"finalizers": [format!("example.com/{state}")]},
        "status": {"state": state},
    })
}

/// The members that a write to a path changes.
fn changed(resource: &Resource, subresource: Option<&str>) -> Vec<&'static str> {
    let (old, mut new) = (tree(object("old")), tree(object("new")));
    api_resources::reset_unwritable_fields(resource, &mut new, &old, subresource);
    // The rule about the finalizers of namespaces is one of their own.
    if subresource == Some("finalize") {
        api_resources::prepare_update(resource, &mut new, &old, subresource)
            .expect("the right types");
    }
    let (old, new) = (Value::Object(old), Value::Object(new));
    let state = |member: &str| match member {
        "labels" | "annotations" => format!("/metadata/{member}/state"),
        "finalizers" | "ownerReferences" => format!("/metadata/{member}"),
        "status" => "/status/state".to_owned(),
        member => format!("/{member}"),
    };
    let members = METADATA.into_iter().chain(["spec", "status"]);
    members.filter(|member| old.pointer(&state(member)) != new.pointer(&state(member))).collect()
}

/// The members of metadata that a write to the status of a kind keeps, as Kubernetes does.
fn kept_by_status(resource: &Resource) -> Vec<String> {
    if resource.is_custom_resource() {
        return METADATA.map(str::to_owned).to_vec();
    }
    let facts = FACTS.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let is_own =
        |fact: &Value| fact["group"] == resource.group && fact["resource"] == resource.plural;
    let fact = facts.into_iter().find(is_own);
    let fact = fact.unwrap_or_else(|| panic!("no fact about {}", resource.plural));
    let kept = fact["statusKeeps"].as_array().expect("a list").iter();
    kept.map(|member| member.as_str().expect("a member").to_owned()).collect()
}

#[test]
fn each_path_of_each_kind_changes_what_it_does_in_kubernetes() {
    let registry = with_widgets();
    let mut n_paths = 0;
    for resource in registry.resources().filter(|resource| resource.is_stored()) {
        let paths = resource.subresources.iter().filter(|part| part.verbs.contains(Verb::Update));
        for subresource in paths.map(|part| Some(part.name)).chain([None]) {
            n_paths += 1;
            let want: Vec<&str> = match subresource {
                None if resource.has_status_subresource() => {
                    METADATA.into_iter().chain(["spec"]).collect()
                }
                None => METADATA.into_iter().chain(["spec", "status"]).collect(),
                Some("status" | "approval") => {
                    let kept = kept_by_status(resource);
                    let taken = METADATA.into_iter().filter(|own| !kept.iter().any(|it| it == own));
                    taken.chain(["status"]).collect()
                }
                Some("finalize") => vec!["spec"],
                // A connection changes nothing, and a Scale nothing of an object but its replicas.
                Some("proxy" | "scale") => Vec::new(),
                Some(other) => panic!("{} has {other}: say what it changes", resource.plural),
            };
            assert_eq!(changed(resource, subresource), want, "{} {subresource:?}", resource.plural);
        }
    }
    assert!(n_paths > 60, "{n_paths}");
}

/// A path that nobody has described changes nothing.
#[test]
fn an_unknown_subresource_changes_nothing() {
    for resource in
        Registry::with_built_in_resources().resources().filter(|resource| resource.is_stored())
    {
        assert_eq!(changed(resource, Some("odd")), [""; 0], "{}", resource.plural);
    }
}
