//! Flow schemas and priority levels. They are validated by the conversion that the flow controller uses.

use api_object::Tree;
use field_errors::FieldErrors;
use manifests::flow_control::Kind;
use serde_json::json;

/// Sets the defaults of a new object, whose status is empty until the server writes it.
pub(super) fn prepare_flow_control_create(kind: Kind, tree: &mut Tree) {
    manifests::flow_control::set_flow_control_defaults(kind, tree);
    tree.insert("status".to_owned(), json!({}));
}

pub(super) fn prepare_flow_control_update(kind: Kind, tree: &mut Tree) {
    manifests::flow_control::set_flow_control_defaults(kind, tree);
}

pub(super) fn validate(kind: Kind, tree: &Tree, errors: &mut FieldErrors) {
    errors.append(match kind {
        Kind::FlowSchema => manifests::flow_control::validate_flow_schema(tree),
        Kind::PriorityLevelConfiguration => manifests::flow_control::validate_priority_level(tree),
    });
}

pub(super) fn validate_flow_control_status(kind: Kind, tree: &Tree, errors: &mut FieldErrors) {
    errors.append(match kind {
        Kind::FlowSchema => manifests::flow_control::validate_flow_schema_status(tree),
        Kind::PriorityLevelConfiguration => {
            manifests::flow_control::validate_priority_level_status(tree)
        }
    });
}
