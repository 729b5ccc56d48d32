//! The validation rules of Events.

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath};

use crate::json_members::{string_member, value_at_path};

/// An event is in the namespace of its object; an event about a cluster-scoped object is in `default`.
pub(super) fn validate(tree: &Tree, errors: &mut FieldErrors) {
    let own = api_object::namespace(tree);
    let involved = string_member(value_at_path(tree, &["involvedObject"]), "namespace");
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
