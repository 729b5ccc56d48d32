//! Events.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use crate::tree::{at, text};

/// An event lives where its object lives; one about the cluster lives in `default`.
pub(super) fn validate(tree: &Tree, errors: &mut FieldErrors) {
    let own = api_object::namespace(tree);
    let involved = text(at(tree, &["involvedObject"]), "namespace");
    let is_beside = match involved {
        "" => matches!(own, "" | "default"),
        involved => involved == own,
    };
    if !is_beside {
        let object = FieldPath::root("involvedObject");
        let path = object.child("namespace");
        errors.push(path.invalid(involved, "does not match event.namespace"));
    }
}
