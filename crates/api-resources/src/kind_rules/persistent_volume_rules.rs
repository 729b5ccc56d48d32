//! PersistentVolumes: the volume source is immutable, including the secrets for mounting.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::semantic_equality::remove_empty_members;
use crate::json_members::value_at_path;

/// The members of the spec that are volume sources.
const SOURCES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Reports the faults of an update of a persistent volume.
pub(super) fn validate_persistent_volume_update(new: &Tree, old: &Tree, errors: &mut FieldErrors) {
    let (new, old) = (
        remove_empty_members(value_at_path(new, &["spec"])),
        remove_empty_members(value_at_path(old, &["spec"])),
    );
    let is_changed = |source: &&str| {
        let (mut new, old) = (new.get(source).cloned(), old.get(source));
        // This secret may be set later, because nodes do not use it.
        let late = "controllerExpandSecretRef";
        if *source == "csi" && old.is_some_and(|old| old.get(late).is_none()) {
            new.as_mut().and_then(Value::as_object_mut).map(|own| own.shift_remove(late));
        }
        new.as_ref() != old
    };
    if SOURCES.iter().any(is_changed) {
        let spec = FieldPath::root("spec");
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.push(spec.child("persistentvolumesource").forbidden(detail));
    }
}
