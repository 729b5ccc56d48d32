//! What an update may not change.

use serde_json::{Value, json};

use crate::world::{resource, tree};

/// What is wrong with an update that merges this into the object.
fn faults(group: &str, plural: &str, old: &Value, change: &Value) -> String {
    let resource = resource(group, plural);
    let mut old = tree(old.clone());
    api_resources::prepare_create(&resource, &mut old).expect("the right types");
    let mut new = Value::Object(old.clone());
    merge(&mut new, change);
    let mut new = tree(new);
    api_resources::prepare_update(&resource, &mut new, &old, None).expect("the right types");
    api_resources::validate_update(&resource, &new, &old, None).to_string()
}

fn merge(value: &mut Value, change: &Value) {
    let Value::Object(members) = change else { return *value = change.clone() };
    for (key, change) in members {
        match change {
            Value::Null => drop(value.as_object_mut().map(|own| own.shift_remove(key))),
            change => merge(&mut value[key], change),
        }
    }
}

const UPDATABLE: &str = "spec: Forbidden: pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// The recorded scenarios ki-pods-imm, ki-pods-specupd and ki-pods-bind3, and both sides of each rule.
#[test]
fn the_spec_of_a_pod_is_fixed_but_for_a_few_members() {
    let container = |image: &str| json!([{ "name": "c", "image": image }]);
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": {
            "containers": container("i:1"),
            "initContainers": container("j:1"),
            "nodeName": "n1",
            "serviceAccountName": "sa",
            "volumes": [{ "name": "v", "secret": { "secretName": "s" } }],
            "activeDeadlineSeconds": 30,
            "tolerations": [{ "key": "a", "operator": "Exists", "tolerationSeconds": 5 }],
            "securityContext": { "runAsUser": 1000 },
        },
    });
    let tolerations = |key: &str, seconds: u8| {
        json!({ "tolerations": [
            { "key": key, "operator": "Exists", "tolerationSeconds": seconds },
            { "key": "b", "operator": "Exists" },
        ] })
    };
    let forbidden = |member: &str| format!("{UPDATABLE}\nchanged: `spec.{member}`");
    let with_pull_policy =
        |image: &str| json!([{ "name": "c", "image": image, "imagePullPolicy": "IfNotPresent" }]);
    for (change, want) in [
        (json!({}), String::new()),
        (json!({ "containers": with_pull_policy("i:2") }), String::new()),
        (json!({ "initContainers": with_pull_policy("j") }), String::new()),
        (json!({ "activeDeadlineSeconds": 29 }), String::new()),
        (tolerations("a", 9), String::new()),
        // Nothing is as good as nothing at all.
        (json!({ "hostNetwork": false, "hostname": "", "nodeSelector": {} }), String::new()),
        (json!({ "nodeName": "" }), forbidden("nodeName")),
        (json!({ "nodeName": null }), forbidden("nodeName")),
        (json!({ "nodeName": "n2" }), forbidden("nodeName")),
        (json!({ "volumes": [] }), forbidden("volumes")),
        (
            json!({ "volumes": [{ "name": "v", "secret": { "secretName": "t" } }] }),
            forbidden("volumes"),
        ),
        (json!({ "securityContext": { "runAsUser": 0 } }), forbidden("securityContext")),
        (json!({ "hostNetwork": true }), forbidden("hostNetwork")),
        (json!({ "imagePullSecrets": [{ "name": "s" }] }), forbidden("imagePullSecrets")),
        (json!({ "resourceClaims": [{ "name": "r" }] }), forbidden("resourceClaims")),
        (json!({ "ephemeralContainers": container("x") }), forbidden("ephemeralContainers")),
        (
            json!({ "serviceAccountName": "other", "serviceAccount": null }),
            forbidden("serviceAccount`, `spec.serviceAccountName"),
        ),
        (json!({ "terminationGracePeriodSeconds": 1 }), forbidden("terminationGracePeriodSeconds")),
        (
            json!({ "containers": [{ "name": "c", "image": "i:1" }, { "name": "d", "image": "i" }] }),
            "spec.containers: Forbidden: pod updates may not add or remove containers".to_owned(),
        ),
        (
            json!({ "activeDeadlineSeconds": 60 }),
            "spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous \
             value"
                .to_owned(),
        ),
        (
            json!({ "activeDeadlineSeconds": null }),
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive \
             integer to nil value"
                .to_owned(),
        ),
        (
            tolerations("c", 5),
            "spec.tolerations: Forbidden: existing toleration cannot be modified except its \
             tolerationSeconds"
                .to_owned(),
        ),
        (
            json!({ "schedulingGates": [{ "name": "g" }] }),
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new \
             scheduling gate 'g'"
                .to_owned(),
        ),
    ] {
        assert_eq!(faults("", "pods", &pod, &json!({ "spec": change })), want, "{change}");
    }
}

#[test]
fn a_pod_that_waits_for_its_gates_may_be_placed_more_closely() {
    let required = |terms: Value| {
        json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms },
        } })
    };
    let term = |keys: &[&str]| {
        let keys = keys.iter().map(|key| json!({ "key": key, "operator": "Exists" }));
        json!({ "matchExpressions": keys.collect::<Vec<_>>() })
    };
    let pod = json!({ "metadata": { "name": "p" }, "spec": {
        "containers": [{ "name": "c", "image": "i:1" }],
        "schedulingGates": [{ "name": "g" }, { "name": "h" }],
        "nodeSelector": { "a": "b" },
        "affinity": required(json!([term(&["x"])])),
    } });
    let terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
        nodeSelectorTerms";
    for (change, want) in [
        (json!({ "schedulingGates": [{ "name": "h" }] }), String::new()),
        (json!({ "nodeSelector": { "c": "d" } }), String::new()),
        (json!({ "affinity": required(json!([term(&["x", "y"])])) }), String::new()),
        (
            json!({ "nodeSelector": { "a": "c" } }),
            "spec.nodeSelector: Invalid value: {\"a\":\"c\"}: only additions to spec.nodeSelector \
             are allowed (no mutations or deletions)"
                .to_owned(),
        ),
        (
            json!({ "affinity": required(json!([])) }),
            format!(
                "{terms}: Invalid value: []: no additions/deletions to non-empty NodeSelectorTerms \
                 list are allowed"
            ),
        ),
        (
            json!({ "affinity": required(json!([term(&["y"])])) }),
            format!(
                "{terms}[0]: Invalid value: {}: only additions are allowed (no mutations or \
                 deletions)",
                term(&["y"])
            ),
        ),
        (
            json!({ "affinity": { "podAffinity": { "a": 1 } } }),
            format!("{UPDATABLE}\nchanged: `spec.affinity`"),
        ),
    ] {
        assert_eq!(faults("", "pods", &pod, &json!({ "spec": change })), want, "{change}");
    }
}

/// What a mirror pod names is not for its node, so that it stays one, by whichever path.
#[test]
fn a_pod_neither_becomes_nor_stops_being_a_mirror_pod() {
    let pods = resource("", "pods");
    let pod = |annotations: Value| {
        // A mirror pod gets no service account by default.
        json!({ "metadata": { "name": "p", "annotations": annotations },
                "spec": { "serviceAccountName": "a", "containers": [{ "name": "c", "image": "i" }] } })
    };
    let mirror = json!({ "kubernetes.io/config.mirror": "x" });
    let path = "metadata.annotations[kubernetes.io/config.mirror]";
    for (old, new, want) in [
        (json!({}), mirror.clone(), "may not add mirror pod annotation"),
        (mirror.clone(), json!({}), "may not remove or update mirror pod annotation"),
        (
            mirror.clone(),
            json!({ "kubernetes.io/config.mirror": "y" }),
            "may not remove or update mirror pod annotation",
        ),
        (mirror.clone(), mirror, ""),
    ] {
        let want =
            if want.is_empty() { String::new() } else { format!("{path}: Forbidden: {want}") };
        for subresource in [None, Some("status")] {
            let (mut old, mut new) = (tree(pod(old.clone())), tree(pod(new.clone())));
            api_resources::prepare_create(&pods, &mut old).expect("types");
            api_resources::prepare_create(&pods, &mut new).expect("types");
            let faults = api_resources::validate_update(&pods, &new, &old, subresource);
            assert_eq!(faults.to_string(), want, "{subresource:?}");
        }
    }
}

/// A mirror pod is the image of one that runs on a node already.
#[test]
fn a_new_mirror_pod_names_its_node() {
    let pods = resource("", "pods");
    let faults = |spec: Value| {
        let annotations = json!({ "kubernetes.io/config.mirror": "x" });
        let mut pod = tree(json!({ "metadata": { "name": "p", "annotations": annotations },
            "spec": spec }));
        api_resources::prepare_create(&pods, &mut pod).expect("types");
        api_resources::validate_create(&pods, &pod).to_string()
    };
    let containers = json!([{ "name": "c", "image": "i" }]);
    assert_eq!(faults(json!({ "containers": containers, "nodeName": "n1" })), "");
    assert_eq!(
        faults(json!({ "containers": containers })),
        "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set \
         spec.nodeName if mirror pod annotation is set"
    );
}

/// The recorded scenarios ki-resourceslices-imm and ki-volumeattachments-imm.
#[test]
fn what_binds_an_object_to_a_node_is_fixed() {
    let slice =
        json!({ "driver": "d", "nodeName": "n1", "pool": { "name": "p", "generation": 1 } });
    let request = json!({ "nodeName": "n1", "podName": "p" });
    let attachment = json!({ "attacher": "a", "nodeName": "n1", "source": {} });
    let volume = json!({ "csi": { "driver": "d", "nodePublishSecretRef": { "name": "s" } } });
    let volume_fixed = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is \
        immutable after creation";
    for (group, plural, spec, change, want) in [
        ("resource.k8s.io", "resourceslices", &slice, json!({ "pool": { "generation": 2 } }), ""),
        (
            "resource.k8s.io",
            "resourceslices",
            &slice,
            json!({ "nodeName": "n2" }),
            "spec.nodeName: Invalid value: \"n2\": field is immutable",
        ),
        (
            "resource.k8s.io",
            "resourceslices",
            &slice,
            json!({ "nodeName": null }),
            "spec.nodeName: Invalid value: null: field is immutable",
        ),
        (
            "resource.k8s.io",
            "resourceslices",
            &slice,
            json!({ "driver": "e", "pool": { "name": "q" } }),
            "[spec.pool.name: Invalid value: \"q\": field is immutable, \
             spec.driver: Invalid value: \"e\": field is immutable]",
        ),
        ("certificates.k8s.io", "podcertificaterequests", &request, json!({ "extra": "" }), ""),
        (
            "certificates.k8s.io",
            "podcertificaterequests",
            &request,
            json!({ "nodeName": "n2" }),
            "spec: Invalid value: {\"nodeName\":\"n2\",\"podName\":\"p\"}: field is immutable",
        ),
        (
            "storage.k8s.io",
            "volumeattachments",
            &attachment,
            json!({ "nodeName": "n2" }),
            "spec: Invalid value: null: field is immutable",
        ),
        ("", "persistentvolumes", &volume, json!({ "claimRef": { "name": "c" } }), ""),
        (
            "",
            "persistentvolumes",
            &volume,
            json!({ "csi": { "controllerExpandSecretRef": { "name": "s" } } }),
            "",
        ),
        (
            "",
            "persistentvolumes",
            &volume,
            json!({ "csi": { "nodePublishSecretRef": { "name": "t" } } }),
            volume_fixed,
        ),
        (
            "",
            "persistentvolumes",
            &volume,
            json!({ "csi": null, "nfs": {"path": "/"} }),
            volume_fixed,
        ),
    ] {
        let old = json!({ "metadata": { "name": "x" }, "spec": spec });
        let got = faults(group, plural, &old, &json!({ "spec": change }));
        assert_eq!(got, want, "{plural} {change}");
    }
}
