//! Prepares an object as a server does before it calls hooks.

use admission::Operation;
use api_object::{Status, Tree};
use api_resources::Resource;
use server::IntoStatus;

/// Prepares an object as a server does before it calls hooks: it checks the metadata, sets the namespace
/// and applies defaults. An update without a stored object leaves the object unchanged.
///
/// # Errors
/// The status with which a server rejects the object.
pub(super) fn prepare_for_admission(
    resource: &Resource,
    operation: Operation,
    subresource: &str,
    namespace: &str,
    mut tree: Tree,
    stored: Option<&Tree>,
) -> Result<Tree, Status> {
    let bad = |why: String| {
        let (kind, version) = (&resource.kind, &resource.version);
        Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        ))
    };
    api_object::normalize_metadata(&mut tree).map_err(|error| bad(error.to_string()))?;
    admission::normalize_initializers(&mut tree).map_err(|error| bad(error.to_string()))?;
    api_object::check_and_set_namespace(&mut tree, namespace)?;
    match (operation, stored) {
        (Operation::Create, _) if subresource.is_empty() => {
            if resource.has_status_subresource() {
                tree.shift_remove("status");
            }
            api_resources::prepare_create(resource, &mut tree).map_err(IntoStatus::into_status)?;
        }
        (Operation::Update, Some(stored)) => {
            let subresource = Some(subresource).filter(|own| !own.is_empty());
            api_resources::complete_updated_object(resource, &mut tree, stored, subresource)
                .map_err(IntoStatus::into_status)?;
        }
        (_, _) => {}
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use api_resources::Registry;
    use serde_json::{Value, json};

    use super::*;

    fn tree(value: Value) -> Tree {
        let Value::Object(tree) = value else { panic!("no object: {value}") };
        tree
    }

    /// Omitted labels and defaults are set offline as on a server.
    #[test]
    fn the_next_state_is_that_which_would_be_stored() {
        let registry = Registry::with_built_in_resources();
        for (plural, old, new, at, want) in [
            (
                "namespaces",
                json!({"metadata": {"name": "n"}}),
                json!({"metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "x"}}}),
                "/metadata/labels/kubernetes.io~1metadata.name",
                "n",
            ),
            (
                "pods",
                json!({"metadata": {"name": "p"}, "status": {"phase": "Running"}}),
                json!({"metadata": {"name": "p"}, "status": {"phase": "Failed"}}),
                "/status/phase",
                "Running",
            ),
            (
                "secrets",
                json!({"metadata": {"name": "s"}}),
                json!({"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
                "/data/a",
                "Yg==",
            ),
        ] {
            let resource = registry.resource("", "v1", plural).unwrap();
            let prepared = |value: Value, stored: Option<&Tree>| {
                prepare_for_admission(resource, Operation::Update, "", "", tree(value), stored)
                    .unwrap()
            };
            let old = prepared(old, None);
            let seen = Value::Object(prepared(new, Some(&old)));
            assert_eq!(seen.pointer(at), Some(&json!(want)), "{plural}: {seen}");
        }
    }
}
