//! Any patch of the three types changes an object or is refused. No directive of a strategic merge patch
//! stays in the object.

#![no_main]

use libfuzzer_sys::fuzz_target;
use object_patch::StrategicMergeSchema;
use serde_json::Value;

const KINDS: [(&str, &str); 4] =
    [("", "Pod"), ("", "Service"), ("", "ConfigMap"), ("rbac.authorization.k8s.io", "Role")];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, texts)) = bytes.split_first() else { return };
    let at = texts.iter().position(|byte| *byte == b'\n').unwrap_or(texts.len());
    let (document, change) = texts.split_at(at);
    let Ok(document) = codec::parse_json(document) else { return };
    let Ok(change) = codec::parse_json(change) else { return };
    let Value::Object(tree) = document.value else { return };
    let _ = object_patch::apply_json_patch(tree.clone(), change.value.clone());
    let _ = object_patch::apply_merge_patch(tree.clone(), change.value.clone());
    let (group, kind) = KINDS[usize::from(choice) % KINDS.len()];
    let has_directive = tree_has_directive(&Value::Object(tree.clone()));
    let patched = object_patch::apply_strategic_merge_patch(
        tree,
        change.value,
        &StrategicMergeSchema::of(group, kind),
    );
    if let (Ok(patched), false) = (patched, has_directive) {
        assert!(!tree_has_directive(&Value::Object(patched)));
    }
});

fn tree_has_directive(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            key == "$patch" || key == "$retainKeys" || tree_has_directive(value)
        }),
        Value::Array(items) => items.iter().any(tree_has_directive),
        _ => false,
    }
}
