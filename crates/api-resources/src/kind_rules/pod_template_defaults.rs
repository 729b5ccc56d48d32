//! Defaults of pod templates. Kubernetes applies them to every kind that contains a template.

use api_object::{Tree, object_member_mut};
use serde_json::{Value, json};

use super::pod_rules::default_pull_policy;
use crate::json_members::{object_items_mut, set_default_member, string_member};

/// The permissions of the files of a volume: 0644.
const VOLUME_FILE_MODE: i64 = 0o644;
/// The time for which a projected token is valid, in seconds.
const PROJECTED_TOKEN_SECONDS: i64 = 3600;

/// Sets the defaults of a template, which consists of metadata and the spec of a pod.
pub(super) fn set_template_defaults(template: &mut Tree) {
    object_member_mut(template, "metadata");
    let spec = object_member_mut(template, "spec");
    sync_service_account_names(spec);
    set_default_member(spec, "restartPolicy", "Always");
    set_default_member(spec, "terminationGracePeriodSeconds", 30);
    set_default_member(spec, "dnsPolicy", "ClusterFirst");
    set_default_member(spec, "securityContext", json!({}));
    set_default_member(spec, "schedulerName", "default-scheduler");
    for volume in object_items_mut(spec, "volumes") {
        set_volume_defaults(volume);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in object_items_mut(spec, list) {
            set_container_defaults(container);
        }
    }
}

/// Copies the name of the service account: `serviceAccount` is the deprecated name of `serviceAccountName`, which takes
/// precedence.
pub(super) fn sync_service_account_names(spec: &mut Tree) {
    let account =
        match (string_member(spec, "serviceAccount"), string_member(spec, "serviceAccountName")) {
            (former, "") => former.to_owned(),
            (_, name) => name.to_owned(),
        };
    if !account.is_empty() {
        spec.insert("serviceAccountName".to_owned(), account.as_str().into());
        spec.insert("serviceAccount".to_owned(), account.into());
    }
}

fn set_volume_defaults(volume: &mut Tree) {
    if volume.iter().all(|(member, value)| member == "name" || value.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = object_member(volume, source) {
            set_default_member(source, "defaultMode", VOLUME_FILE_MODE);
        }
    }
    if let Some(source) = object_member(volume, "hostPath") {
        source.entry("type").or_insert_with(|| "".into());
    }
    if let Some(source) = object_member(volume, "downwardAPI") {
        set_downward_api_defaults(source);
    }
    if let Some(source) = object_member(volume, "projected") {
        for projection in object_items_mut(source, "sources") {
            if let Some(source) = object_member(projection, "downwardAPI") {
                set_downward_api_defaults(source);
            }
            if let Some(token) = object_member(projection, "serviceAccountToken") {
                set_default_member(token, "expirationSeconds", PROJECTED_TOKEN_SECONDS);
            }
        }
    }
    if let Some(source) = object_member(volume, "image") {
        let policy = default_pull_policy(string_member(source, "reference"));
        set_default_member(source, "pullPolicy", policy);
    }
    let claim = object_member(volume, "ephemeral")
        .and_then(|source| object_member(source, "volumeClaimTemplate"));
    if let Some(claim) = claim {
        object_member_mut(claim, "metadata");
        set_claim_spec_defaults(claim);
    }
    for (source, member, value) in [
        ("iscsi", "iscsiInterface", json!("default")),
        ("rbd", "pool", json!("rbd")),
        ("rbd", "user", json!("admin")),
        ("rbd", "keyring", json!("/etc/ceph/keyring")),
        ("azureDisk", "cachingMode", json!("ReadWrite")),
        ("azureDisk", "fsType", json!("ext4")),
        ("azureDisk", "readOnly", json!(false)),
        ("azureDisk", "kind", json!("Shared")),
        ("scaleIO", "storageMode", json!("ThinProvisioned")),
        ("scaleIO", "fsType", json!("xfs")),
    ] {
        if let Some(source) = object_member(volume, source) {
            set_default_member(source, member, value);
        }
    }
}

/// Sets the defaults of the spec of a claim.
pub(super) fn set_claim_spec_defaults(claim: &mut Tree) {
    let spec = object_member_mut(claim, "spec");
    set_default_member(spec, "resources", json!({}));
    set_default_member(spec, "volumeMode", "Filesystem");
}

fn set_downward_api_defaults(source: &mut Tree) {
    for item in object_items_mut(source, "items") {
        set_field_ref_default(item);
    }
}

fn set_field_ref_default(object: &mut Tree) {
    if let Some(field) = object_member(object, "fieldRef") {
        set_default_member(field, "apiVersion", "v1");
    }
}

fn set_container_defaults(container: &mut Tree) {
    let policy = default_pull_policy(string_member(container, "image"));
    set_default_member(container, "imagePullPolicy", policy);
    set_default_member(container, "terminationMessagePath", "/dev/termination-log");
    set_default_member(container, "terminationMessagePolicy", "File");
    set_default_member(container, "resources", json!({}));
    for port in object_items_mut(container, "ports") {
        set_default_member(port, "protocol", "TCP");
    }
    for variable in object_items_mut(container, "env") {
        let Some(source) = object_member(variable, "valueFrom") else { continue };
        set_field_ref_default(source);
        if let Some(key) = object_member(source, "fileKeyRef") {
            set_default_member(key, "optional", false);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = object_member(container, probe) {
            set_probe_defaults(probe);
        }
    }
    let Some(lifecycle) = object_member(container, "lifecycle") else { return };
    for handler in ["postStart", "preStop"] {
        if let Some(handler) = object_member(lifecycle, handler) {
            set_http_get_defaults(handler);
        }
    }
}

fn set_probe_defaults(probe: &mut Tree) {
    for (member, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        let own = probe.entry(member).or_insert(Value::Null);
        if own.is_null() || own.as_i64() == Some(0) {
            *own = value.into();
        }
    }
    set_http_get_defaults(probe);
    if let Some(call) = object_member(probe, "grpc") {
        call.entry("service").or_insert_with(|| "".into());
    }
}

fn set_http_get_defaults(handler: &mut Tree) {
    if let Some(request) = object_member(handler, "httpGet") {
        set_default_member(request, "path", "/");
        set_default_member(request, "scheme", "HTTP");
    }
}

/// A member that is an object; `None` if it is absent or has another type.
pub(super) fn object_member<'t>(tree: &'t mut Tree, member: &str) -> Option<&'t mut Tree> {
    tree.get_mut(member).and_then(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_volumes_containers_and_probes() {
        let mut template = json!({"spec": {
            "serviceAccount": "robot",
            "volumes": [
                {"name": "scratch"},
                {"name": "files", "secret": {"secretName": "s"}},
                {"name": "host", "hostPath": {"path": "/x"}},
                {"name": "all", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "t"}},
                    {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                ]}},
                {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            ],
            "containers": [{
                "name": "c", "image": "i:1",
                "ports": [{"containerPort": 80}],
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "livenessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 0, "periodSeconds": 7},
                "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
            }],
        }});
        set_template_defaults(template.as_object_mut().unwrap());
        let want = json!({"metadata": {}, "spec": {
            "serviceAccount": "robot", "serviceAccountName": "robot",
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "securityContext": {}, "schedulerName": "default-scheduler",
            "volumes": [
                {"name": "scratch", "emptyDir": {}},
                {"name": "files", "secret": {"secretName": "s", "defaultMode": 420}},
                {"name": "host", "hostPath": {"path": "/x", "type": ""}},
                {"name": "all", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                    {"downwardAPI": {"items": [
                        {"path": "n", "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}},
                    ]}},
                ]}},
                {"name": "claim", "ephemeral": {"volumeClaimTemplate": {
                    "metadata": {}, "spec": {"resources": {}, "volumeMode": "Filesystem"},
                }}},
            ],
            "containers": [{
                "name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent", "resources": {},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "N", "valueFrom": {
                    "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"},
                }}],
                "livenessProbe": {
                    "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                    "periodSeconds": 7, "successThreshold": 1, "failureThreshold": 3,
                },
                "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}},
            }],
        }});
        assert_eq!(template, want);
        let once = template.clone();
        set_template_defaults(template.as_object_mut().unwrap());
        assert_eq!(template, once, "defaults are idempotent");
    }
}
