//! Defaults of a CustomResourceDefinition.

use api_object::{Tree, object_member_mut};
use serde_json::{Value, json};

use crate::json_members::{
    bool_member, is_member_set, list_member, set_default_member, string_list_member, string_member,
    value_at_path,
};

pub(crate) fn prepare_definition_create(tree: &mut Tree) {
    set_definition_spec_defaults(tree);
    let status = json!({
        "conditions": [],
        "acceptedNames": { "plural": "", "kind": "" },
        "storedVersions": [],
    });
    tree.insert("status".to_owned(), status);
    add_stored_version(tree);
}

pub(crate) fn prepare_definition_update(tree: &mut Tree) {
    set_definition_spec_defaults(tree);
    add_stored_version(tree);
}

fn set_definition_spec_defaults(tree: &mut Tree) {
    let spec = object_member_mut(tree, "spec");
    let kind = string_member(value_at_path(spec, &["names"]), "kind").to_owned();
    if !kind.is_empty() {
        let names = object_member_mut(spec, "names");
        set_default_member(names, "singular", kind.to_lowercase());
        set_default_member(names, "listKind", format!("{kind}List"));
    }
    if !is_member_set(spec, "conversion") {
        spec.insert("conversion".to_owned(), json!({ "strategy": "None" }));
    }
}

/// Adds the storage version to `status.storedVersions`, which lists every version that objects were
/// ever stored in.
fn add_stored_version(tree: &mut Tree) {
    let mut versions = list_member(value_at_path(tree, &["spec"]), "versions").iter();
    let Some(storage) = versions.find(|it| bool_member(*it, "storage")) else { return };
    let name = string_member(storage, "name").to_owned();
    let status = object_member_mut(tree, "status");
    let mut stored = string_list_member(status, "storedVersions");
    if !stored.contains(&name) {
        stored.push(name);
        status.insert("storedVersions".to_owned(), Value::from(stored));
    }
}
