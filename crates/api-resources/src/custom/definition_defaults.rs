//! Defaults of a CustomResourceDefinition.

use api_object::{Tree, object_mut};
use serde_json::{Value, json};

use crate::tree::{at, default, flag, is_set, items, text, texts};

pub(crate) fn prepare_create(tree: &mut Tree) {
    fill_in(tree);
    let status = json!({
        "conditions": [],
        "acceptedNames": { "plural": "", "kind": "" },
        "storedVersions": [],
    });
    tree.insert("status".to_owned(), status);
    add_stored_version(tree);
}

pub(crate) fn prepare_update(tree: &mut Tree) {
    fill_in(tree);
    add_stored_version(tree);
}

fn fill_in(tree: &mut Tree) {
    let spec = object_mut(tree, "spec");
    let kind = text(at(spec, &["names"]), "kind").to_owned();
    if !kind.is_empty() {
        let names = object_mut(spec, "names");
        default(names, "singular", kind.to_lowercase());
        default(names, "listKind", format!("{kind}List"));
    }
    if !is_set(spec, "conversion") {
        spec.insert("conversion".to_owned(), json!({ "strategy": "None" }));
    }
}

/// A version that objects were ever stored in is remembered.
fn add_stored_version(tree: &mut Tree) {
    let mut versions = items(at(tree, &["spec"]), "versions").iter();
    let Some(storage) = versions.find(|it| flag(*it, "storage")) else { return };
    let name = text(storage, "name").to_owned();
    let status = object_mut(tree, "status");
    let mut stored = texts(status, "storedVersions");
    if !stored.contains(&name) {
        stored.push(name);
        status.insert("storedVersions".to_owned(), Value::from(stored));
    }
}
