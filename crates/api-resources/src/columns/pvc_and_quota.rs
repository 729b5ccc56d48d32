//! Columns of claims on storage and of quotas.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{AGE, NAME, Table, age_of, name_of, or_placeholder, text_column, wide_column};
use crate::tree::{at, entries, text, texts};

/// The modes, in the order in which they are shown.
const ACCESS_MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) static PERSISTENT_VOLUME_CLAIM: Table = Table {
    columns: &[
        NAME,
        text_column("Status", "Whether a volume has been found."),
        text_column("Volume", "The volume."),
        text_column("Capacity", "How large the volume is."),
        text_column("Access Modes", "How the volume can be used."),
        text_column("StorageClass", "The class of storage that is wanted."),
        text_column("VolumeAttributesClass", "The class of volume that is wanted."),
        AGE,
        wide_column("VolumeMode", "Whether a file system or a device is wanted."),
    ],
    cells: |tree, now| {
        let (metadata, spec) = (at(tree, &["metadata"]), at(tree, &["spec"]));
        let status = at(tree, &["status"]);
        let phase = match metadata.get("deletionTimestamp").and_then(Value::as_str) {
            Some(_) => "Terminating",
            None => text(status, "phase"),
        };
        let (capacity, modes) = match text(spec, "volumeName") {
            "" => ("", String::new()),
            _ => (text(at(status, &["capacity"]), "storage"), access_modes(status)),
        };
        let class = match text(at(metadata, &["annotations"]), CLASS_ANNOTATION) {
            "" => text(spec, "storageClassName"),
            class => class,
        };
        vec![
            name_of(tree),
            phase.into(),
            text(spec, "volumeName").into(),
            capacity.into(),
            modes.into(),
            class.into(),
            or_placeholder(text(spec, "volumeAttributesClassName"), "<unset>").into(),
            age_of(tree, now),
            or_placeholder(text(spec, "volumeMode"), "<unset>").into(),
        ]
    },
};

fn access_modes(status: &Value) -> String {
    let modes = texts(status, "accessModes");
    let has = |name: &str| modes.iter().any(|mode| mode == name);
    let short = ACCESS_MODES.iter().filter(|(name, _)| has(name)).map(|(_, short)| *short);
    short.collect::<Vec<_>>().join(",")
}

pub(super) static RESOURCE_QUOTA: Table = Table {
    columns: &[
        NAME,
        text_column("Request", "What is used of what can be asked for."),
        text_column("Limit", "What is used of what can be had at most."),
        AGE,
    ],
    cells: |tree, now| {
        let status = at(tree, &["status"]);
        let hard: BTreeMap<&String, &Value> = entries(status, "hard").collect();
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, hard) in hard {
            let used = or_placeholder(text(at(status, &["used"]), name), "0");
            let shown = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
            let list = if name.starts_with("limits.") { &mut limits } else { &mut requests };
            list.push(shown);
        }
        let (requests, limits) = (requests.join(", "), limits.join(", "));
        vec![name_of(tree), requests.into(), limits.into(), age_of(tree, now)]
    },
};
