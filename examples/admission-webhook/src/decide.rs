//! Decides on a pod, by functions of the pod alone.

use serde_json::{Value, json};

/// The label that every pod gets.
const LABEL: &str = "team";
/// The value of the label for pods without one.
const NOBODY: &str = "unassigned";

/// The answer of the webhook to a review.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The reason of a denial; `None` allows the request.
    pub(crate) denial: Option<String>,
    /// The warnings for the user, whether the request is denied or not.
    pub(crate) warnings: Vec<String>,
    /// A JSON Patch; empty if the object stays unchanged.
    pub(crate) patch: Vec<Value>,
}

/// Adds the label to a pod that has none.
pub(crate) fn mutate(pod: &Value) -> Answer {
    let operation = match pod.pointer("/metadata/labels") {
        None | Some(Value::Null) => {
            json!({"op": "add", "path": "/metadata/labels", "value": {LABEL: NOBODY}})
        }
        Some(labels) if labels.get(LABEL).is_none() => {
            json!({"op": "add", "path": format!("/metadata/labels/{LABEL}"), "value": NOBODY})
        }
        Some(_) => return Answer::default(),
    };
    Answer { patch: vec![operation], ..Answer::default() }
}

/// Denies images that are not from the registry, and warns about images with a tag that may change.
pub(crate) fn validate(pod: &Value, registry: &str) -> Answer {
    let images: Vec<&str> = images(pod).collect();
    let is_from = |image: &&str| {
        image
            .strip_prefix(registry)
            .is_some_and(|rest| registry.ends_with('/') || rest.starts_with('/'))
    };
    let strangers: Vec<&str> = images.iter().copied().filter(|image| !is_from(image)).collect();
    let denial = (!strangers.is_empty())
        .then(|| format!("images must come from {registry}: {}", strangers.join(", ")));
    let moving = images.iter().filter(|image| is_latest(image));
    let warnings = moving.map(|image| format!("{image} may be another image tomorrow")).collect();
    Answer { denial, warnings, ..Answer::default() }
}

/// The images of all containers.
fn images(pod: &Value) -> impl Iterator<Item = &str> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let containers = lists.into_iter().filter_map(|list| pod["spec"][list].as_array()).flatten();
    containers.filter_map(|container| container["image"].as_str())
}

/// Whether an image has the tag `latest`, which is the default without tag and digest.
fn is_latest(image: &str) -> bool {
    // A colon before the last slash belongs to the port of the registry.
    let name = image.rsplit('/').next().unwrap_or_default();
    match name.split_once(':') {
        _ if name.contains('@') => false,
        Some((_, tag)) => tag == "latest",
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(images: &[&str]) -> Value {
        let containers: Vec<Value> = images.iter().map(|image| json!({"image": image})).collect();
        json!({"metadata": {"name": "web"}, "spec": {"containers": containers}})
    }

    #[test]
    fn only_a_pod_without_the_label_gets_it() {
        let whole =
            || json!({"op": "add", "path": "/metadata/labels", "value": {"team": "unassigned"}});
        let one = || json!({"op": "add", "path": "/metadata/labels/team", "value": "unassigned"});
        for (metadata, want) in [
            (json!({}), vec![whole()]),
            (json!({"labels": null}), vec![whole()]),
            (json!({"labels": {}}), vec![one()]),
            (json!({"labels": {"app": "web"}}), vec![one()]),
            (json!({"labels": {"team": "red"}}), vec![]),
        ] {
            assert_eq!(mutate(&json!({"metadata": metadata})).patch, want, "{metadata}");
        }
    }

    #[test]
    fn images_from_elsewhere_are_denied() {
        let denial = |images: &[&str]| validate(&pod(images), "registry.example.com/a").denial;
        assert_eq!(denial(&["registry.example.com/a/web:1"]), None);
        assert_eq!(
            denial(&["registry.example.com/a/web:1", "nginx:1", "registry.example.com/ab/web:1"]),
            Some(
                "images must come from registry.example.com/a: nginx:1, registry.example.com/ab/web:1"
                    .to_owned()
            )
        );
        let own = json!({"spec": {"initContainers": [{"image": "nginx:1"}], "containers": []}});
        assert!(validate(&own, "registry.example.com").denial.is_some());
        assert_eq!(
            validate(&pod(&["registry.example.com/web:1"]), "registry.example.com/").denial,
            None
        );
    }

    #[test]
    fn images_that_may_change_are_warned_of() {
        for (image, want) in [
            ("r/web:latest", true),
            ("r/web", true),
            ("r:5000/web", true),
            ("r/web:1", false),
            ("r:5000/web:latest-1", false),
            ("r/web@sha256:0123", false),
        ] {
            let answer = validate(&pod(&[image]), "");
            assert_eq!(!answer.warnings.is_empty(), want, "{image}");
        }
        let answer = validate(&pod(&["r/web"]), "r");
        assert_eq!(answer.warnings, ["r/web may be another image tomorrow"]);
    }

    #[test]
    fn what_is_no_pod_has_no_images() {
        for strange in [Value::Null, json!({"spec": {"containers": 1}}), json!({"spec": [1]})] {
            assert_eq!(validate(&strange, "r"), Answer::default(), "{strange}");
        }
    }
}
