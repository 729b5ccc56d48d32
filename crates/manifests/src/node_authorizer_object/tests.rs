use authz_node::{PersistentVolume, PersistentVolumeClaimReference, VolumeSecretReference};
use serde_json::json;

use super::*;

fn pod(spec: Value, status: Value) -> authz_node::Pod {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": spec, "status": status,
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
    });
    match parse_node_authorizer_object(&object) {
        Some(GraphObject::Pod(pod)) => *pod,
        other => panic!("{other:?}"),
    }
}

/// L11, L12: a pod refers to objects in every list of containers, through `envFrom` as well as `env`.
#[test]
fn containers_of_every_sort_refer_to_secrets_and_config_maps() {
    let container = |n: u8| {
        json!({
            "envFrom": [{"secretRef": {"name": format!("s{n}")}},
                        {"configMapRef": {"name": format!("c{n}")}}],
            "env": [{"valueFrom": {"secretKeyRef": {"name": format!("sk{n}")}}},
                    {"valueFrom": {"configMapKeyRef": {"name": format!("ck{n}")}}},
                    {"value": "x"}],
        })
    };
    let spec = json!({
        "nodeName": "n", "serviceAccountName": "sa", "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [container(1)], "containers": [container(2)],
        "ephemeralContainers": [container(3)],
    });
    let pod = pod(spec, Value::Null);
    assert_eq!(pod.secret_names, ["pull", "s1", "sk1", "s2", "sk2", "s3", "sk3"]);
    assert_eq!(pod.config_map_names, ["c1", "ck1", "c2", "ck2", "c3", "ck3"]);
    assert_eq!((pod.node_name.as_str(), pod.service_account_name.as_str()), ("n", "sa"));
    assert!(!pod.is_mirror_pod);
}

#[test]
fn references_of_each_volume_type() {
    let secret = json!({"secretRef": {"name": "s"}});
    for (volume, secrets, config_maps, claims) in [
        (json!({"azureFile": {"secretName": "s"}}), &["s"][..], &[][..], &[][..]),
        (json!({"cephfs": secret}), &["s"], &[], &[]),
        (json!({"cinder": secret}), &["s"], &[], &[]),
        (json!({"flexVolume": secret}), &["s"], &[], &[]),
        (json!({"rbd": secret}), &["s"], &[], &[]),
        (json!({"scaleIO": secret}), &["s"], &[], &[]),
        (json!({"iscsi": secret}), &["s"], &[], &[]),
        (json!({"storageos": secret}), &["s"], &[], &[]),
        (json!({"secret": {"secretName": "s"}}), &["s"], &[], &[]),
        (json!({"csi": {"nodePublishSecretRef": {"name": "s"}}}), &["s"], &[], &[]),
        (json!({"csi": {"driver": "d"}}), &[], &[], &[]),
        (json!({"configMap": {"name": "c"}}), &[], &["c"], &[]),
        (
            json!({"projected": {"sources": [
                {"secret": {"name": "s"}}, {"configMap": {"name": "c"}}, {"downwardAPI": {}}
            ]}}),
            &["s"],
            &["c"],
            &[],
        ),
        (json!({"persistentVolumeClaim": {"claimName": "v"}}), &[], &[], &["v"]),
        (json!({"name": "data", "ephemeral": {}}), &[], &[], &["p-data"]),
        (json!({"emptyDir": {}}), &[], &[], &[]),
        // Of several kinds of volumes, Kubernetes uses the first one in its own order.
        (json!({"secret": {"secretName": "t"}, "rbd": secret}), &["s"], &[], &[]),
    ] {
        let pod = pod(json!({"volumes": [volume]}), Value::Null);
        assert_eq!(pod.secret_names, secrets, "{volume}");
        assert_eq!(pod.config_map_names, config_maps, "{volume}");
        assert_eq!(pod.persistent_volume_claim_names, claims, "{volume}");
    }
}

#[test]
fn resource_claims_are_named_or_made_from_templates() {
    let spec = json!({"resourceClaims": [
        {"name": "direct", "resourceClaimName": "rc"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "unneeded", "resourceClaimTemplateName": "t"},
        {"name": "pending", "resourceClaimTemplateName": "t"},
        {"name": "neither"},
    ]});
    let status = json!({
        "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "gen"},
                                  {"name": "unneeded"},
                                  {"name": "neither", "resourceClaimName": "x"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "ext"},
    });
    let pod = pod(spec, status);
    assert_eq!(pod.resource_claim_names, ["rc", "gen"]);
    assert_eq!(pod.extended_resource_claim_name.as_deref(), Some("ext"));
}

#[test]
fn the_annotation_marks_mirror_pods_whatever_its_value() {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"annotations": {"kubernetes.io/config.mirror": ""}},
    });
    assert!(
        matches!(parse_node_authorizer_object(&object), Some(GraphObject::Pod(pod)) if pod.is_mirror_pod)
    );
}

#[test]
fn secret_references_of_persistent_volumes() {
    let with_ns = json!({"secretRef": {"name": "s", "namespace": "x"}});
    let without = json!({"secretRef": {"name": "s"}});
    for (kind, source, want) in [
        ("azureFile", json!({"secretName": "s", "secretNamespace": "x"}), &[Some("x")][..]),
        ("azureFile", json!({"secretName": "s", "secretNamespace": ""}), &[None]),
        ("cephfs", with_ns.clone(), &[Some("x")]),
        ("cephfs", without.clone(), &[None]),
        ("flexVolume", without.clone(), &[None]),
        ("rbd", without.clone(), &[None]),
        ("scaleIO", without.clone(), &[None]),
        ("iscsi", without.clone(), &[None]),
        ("cinder", with_ns, &[Some("x")]),
        ("cinder", without.clone(), &[Some("")]),
        ("storageos", without, &[Some("")]),
        ("rbd", json!({"image": "i"}), &[]),
        ("nfs", json!({"secretRef": {"name": "s"}}), &[]),
        (
            "csi",
            json!({
                "nodePublishSecretRef": {"name": "s", "namespace": "a"},
                "nodeStageSecretRef": {"name": "s", "namespace": "b"},
                "nodeExpandSecretRef": {"name": "s"},
                "controllerPublishSecretRef": {"name": "s", "namespace": "c"},
                "controllerExpandSecretRef": {"name": "s", "namespace": "d"},
            }),
            &[Some("a"), Some("b"), Some("")],
        ),
    ] {
        let object = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
            "spec": {kind: source, "claimRef": {"namespace": "ns", "name": "v"}},
        });
        let secret = |namespace: &Option<&str>| VolumeSecretReference {
            namespace: namespace.map(str::to_owned),
            name: "s".to_owned(),
        };
        let want = PersistentVolume {
            name: "pv".to_owned(),
            claim_ref: Some(PersistentVolumeClaimReference {
                namespace: "ns".to_owned(),
                name: "v".to_owned(),
            }),
            secret_refs: want.iter().map(secret).collect(),
        };
        assert_eq!(
            parse_node_authorizer_object(&object),
            Some(GraphObject::PersistentVolume(want)),
            "{kind}"
        );
    }
}

#[test]
fn other_kinds_are_ignored() {
    for (api_version, kind) in
        [("v1", "Node"), ("v1", "Secret"), ("apps/v1", "Pod"), ("v1", "VolumeAttachment")]
    {
        assert_eq!(
            parse_node_authorizer_object(&json!({"apiVersion": api_version, "kind": kind})),
            None
        );
    }
    for object in [json!(null), json!([]), json!({"kind": "Pod"}), json!({"apiVersion": 1})] {
        assert_eq!(parse_node_authorizer_object(&object), None);
    }
    // Wrong types count as absent.
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": [], "spec": {
        "volumes": {"a": 1}, "containers": [1, {"env": "x", "envFrom": [null]}], "nodeName": 3,
    }});
    let empty = GraphObject::Pod(Box::default());
    assert_eq!(parse_node_authorizer_object(&object), Some(empty));
}
