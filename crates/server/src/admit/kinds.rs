//! What hooks have to know of kinds.

use admission::{GroupVersionKind, Operation};
use admission_hooks::{Kinds, Untyped};
use object::{GroupVersion, Tree};
use resources::Registry;
use wire::Expected;

/// The kinds that are served.
pub(super) struct Served<'a> {
    pub(super) registry: &'a Registry,
    pub(super) operation: Operation,
}

impl Kinds for Served<'_> {
    /// Versions differ in their name only.
    fn convert(&self, tree: &Tree, to: &GroupVersionKind<'_>) -> Result<Tree, String> {
        Untyped.convert(tree, to)
    }

    fn settle(&self, tree: Tree, kind: &GroupVersionKind<'_>) -> Result<Tree, String> {
        let mut tree = Untyped.settle(tree, kind)?;
        check_type(&mut tree, kind)?;
        let resource = self.registry.resource_of_kind(kind.group, kind.version, kind.kind);
        let expected = Expected {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            is_custom: resource.is_some_and(|own| own.is_custom()),
        };
        // Unknown members are dropped here as they are for any client that does not insist.
        wire::conform_object(&mut tree, &expected).map_err(|error| error.to_string())?;
        object::shape_metadata(&mut tree).map_err(|error| error.to_string())?;
        if let Some(resource) = resource
            && self.operation == Operation::Create
        {
            // Defaults that depend on the stored object come with it, later.
            if resource.has_status() {
                tree.shift_remove("status");
            }
            resources::prepare_create(resource, &mut tree).map_err(|status| status.message)?;
        }
        Ok(tree)
    }
}

/// An object stays what it is: what is stored as one kind must not call itself another. One that says
/// nothing of its version has the one that is expected.
fn check_type(tree: &mut Tree, kind: &GroupVersionKind<'_>) -> Result<(), String> {
    let wanted = GroupVersion::new(kind.group, kind.version).to_string();
    if object::text(tree, "apiVersion").is_empty() {
        tree.insert("apiVersion".to_owned(), wanted.as_str().into());
    }
    let (own_version, own_kind) = (object::text(tree, "apiVersion"), object::text(tree, "kind"));
    if (own_version, own_kind) == (wanted.as_str(), kind.kind) {
        return Ok(());
    }
    let wanted_kind = kind.kind;
    Err(format!("{own_kind} of {own_version} can not stand for {wanted_kind} of {wanted}"))
}
