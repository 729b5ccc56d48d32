//! The table columns of PersistentVolumeClaims and ResourceQuotas.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    AGE, BuiltInTable, NAME, age_cell, name_cell, text_column, text_or_placeholder, wide_column,
};
use crate::json_members::{member_entries, string_list_member, string_member, value_at_path};

/// The access modes and their abbreviations, in the order of the output.
const ACCESS_MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) static PERSISTENT_VOLUME_CLAIM: BuiltInTable = BuiltInTable {
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
    make_cells: |tree, now| {
        let (metadata, spec) = (value_at_path(tree, &["metadata"]), value_at_path(tree, &["spec"]));
        let status = value_at_path(tree, &["status"]);
        let phase = match metadata.get("deletionTimestamp").and_then(Value::as_str) {
            Some(_) => "Terminating",
            None => string_member(status, "phase"),
        };
        let (capacity, modes) = match string_member(spec, "volumeName") {
            "" => ("", String::new()),
            _ => (
                string_member(value_at_path(status, &["capacity"]), "storage"),
                render_access_modes(status),
            ),
        };
        let class = match string_member(value_at_path(metadata, &["annotations"]), CLASS_ANNOTATION)
        {
            "" => string_member(spec, "storageClassName"),
            class => class,
        };
        vec![
            name_cell(tree),
            phase.into(),
            string_member(spec, "volumeName").into(),
            capacity.into(),
            modes.into(),
            class.into(),
            text_or_placeholder(string_member(spec, "volumeAttributesClassName"), "<unset>").into(),
            age_cell(tree, now),
            text_or_placeholder(string_member(spec, "volumeMode"), "<unset>").into(),
        ]
    },
};

fn render_access_modes(status: &Value) -> String {
    let modes = string_list_member(status, "accessModes");
    let has = |name: &str| modes.iter().any(|mode| mode == name);
    let short = ACCESS_MODES.iter().filter(|(name, _)| has(name)).map(|(_, short)| *short);
    short.collect::<Vec<_>>().join(",")
}

pub(super) static RESOURCE_QUOTA: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("Request", "What is used of what can be asked for."),
        text_column("Limit", "What is used of what can be had at most."),
        AGE,
    ],
    make_cells: |tree, now| {
        let status = value_at_path(tree, &["status"]);
        let hard: BTreeMap<&String, &Value> = member_entries(status, "hard").collect();
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, hard) in hard {
            let used =
                text_or_placeholder(string_member(value_at_path(status, &["used"]), name), "0");
            let shown = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
            let list = if name.starts_with("limits.") { &mut limits } else { &mut requests };
            list.push(shown);
        }
        let (requests, limits) = (requests.join(", "), limits.join(", "));
        vec![name_cell(tree), requests.into(), limits.into(), age_cell(tree, now)]
    },
};
