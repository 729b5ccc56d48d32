//! The table columns of the kinds that configure admission.

use api_object::Tree;
use jiff::Timestamp;
use serde_json::Value;

use super::render_selector::render_selector;
use super::{AGE, BuiltInTable, Column, NAME, age_cell, integer_column, name_cell, text_column};
use crate::json_members::{list_member, string_member, value_at_path};

pub(super) static WEBHOOKS: BuiltInTable = BuiltInTable {
    columns: &[NAME, integer_column("Webhooks", "How many webhooks there are."), AGE],
    make_cells: |tree, now| cells_with_count(tree, list_member(tree, "webhooks").len(), now),
};

pub(super) static INITIALIZERS: BuiltInTable = BuiltInTable {
    columns: &[NAME, integer_column("Initializers", "How many initializers there are."), AGE],
    make_cells: |tree, now| cells_with_count(tree, list_member(tree, "initializers").len(), now),
};

pub(super) static EXTERNAL_HOOKS: BuiltInTable = BuiltInTable {
    columns: &[NAME, integer_column("Hooks", "How many hooks there are."), AGE],
    make_cells: |tree, now| {
        cells_with_count(tree, list_member(tree, "externalAdmissionHooks").len(), now)
    },
};

const PARAM_KIND: Column =
    text_column("ParamKind", "The kind of object that configures the policy.");

pub(super) static VALIDATING_POLICY: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        integer_column("Validations", "How many validations there are."),
        PARAM_KIND,
        AGE,
    ],
    make_cells: |tree, now| admission_policy_cells(tree, "validations", now),
};

pub(super) static MUTATING_POLICY: BuiltInTable = BuiltInTable {
    columns: &[NAME, integer_column("Mutations", "How many mutations there are."), PARAM_KIND, AGE],
    make_cells: |tree, now| admission_policy_cells(tree, "mutations", now),
};

pub(super) static POLICY_BINDING: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("PolicyName", "The policy that is put into force."),
        text_column("ParamRef", "The objects that configure it."),
        AGE,
    ],
    make_cells: |tree, now| {
        let spec = value_at_path(tree, &["spec"]);
        let policy = string_member(spec, "policyName");
        vec![name_cell(tree), policy.into(), render_param_ref(spec).into(), age_cell(tree, now)]
    },
};

fn cells_with_count(tree: &Tree, n_items: usize, now: Timestamp) -> Vec<Value> {
    vec![name_cell(tree), n_items.into(), age_cell(tree, now)]
}

fn admission_policy_cells(tree: &Tree, steps: &str, now: Timestamp) -> Vec<Value> {
    let spec = value_at_path(tree, &["spec"]);
    let kind = match value_at_path(spec, &["paramKind"]) {
        Value::Null => "<unset>".to_owned(),
        kind => format!("{}/{}", string_member(kind, "apiVersion"), string_member(kind, "kind")),
    };
    vec![name_cell(tree), list_member(spec, steps).len().into(), kind.into(), age_cell(tree, now)]
}

fn render_param_ref(spec: &Value) -> String {
    let reference = value_at_path(spec, &["paramRef"]);
    match (string_member(reference, "name"), string_member(reference, "namespace")) {
        ("", _) => match value_at_path(reference, &["selector"]) {
            Value::Null => "<unset>".to_owned(),
            labels => render_selector(labels),
        },
        // It is not known here whether the objects are namespaced.
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}
