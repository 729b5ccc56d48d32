//! Columns of what intercepts requests.

use api_object::Tree;
use jiff::Timestamp;
use serde_json::Value;

use super::selector::selector;
use super::{AGE, Column, NAME, Table, age_of, integer_column, name_of, text_column};
use crate::tree::{at, items, text};

pub(super) static WEBHOOKS: Table = Table {
    columns: &[NAME, integer_column("Webhooks", "How many webhooks there are."), AGE],
    cells: |tree, now| cells_with_count(tree, items(tree, "webhooks").len(), now),
};

pub(super) static INITIALIZERS: Table = Table {
    columns: &[NAME, integer_column("Initializers", "How many initializers there are."), AGE],
    cells: |tree, now| cells_with_count(tree, items(tree, "initializers").len(), now),
};

pub(super) static EXTERNAL_HOOKS: Table = Table {
    columns: &[NAME, integer_column("Hooks", "How many hooks there are."), AGE],
    cells: |tree, now| cells_with_count(tree, items(tree, "externalAdmissionHooks").len(), now),
};

const PARAM_KIND: Column =
    text_column("ParamKind", "The kind of object that configures the policy.");

pub(super) static VALIDATING_POLICY: Table = Table {
    columns: &[
        NAME,
        integer_column("Validations", "How many validations there are."),
        PARAM_KIND,
        AGE,
    ],
    cells: |tree, now| policy(tree, "validations", now),
};

pub(super) static MUTATING_POLICY: Table = Table {
    columns: &[NAME, integer_column("Mutations", "How many mutations there are."), PARAM_KIND, AGE],
    cells: |tree, now| policy(tree, "mutations", now),
};

pub(super) static POLICY_BINDING: Table = Table {
    columns: &[
        NAME,
        text_column("PolicyName", "The policy that is put into force."),
        text_column("ParamRef", "The objects that configure it."),
        AGE,
    ],
    cells: |tree, now| {
        let spec = at(tree, &["spec"]);
        let policy = text(spec, "policyName");
        vec![name_of(tree), policy.into(), param_ref(spec).into(), age_of(tree, now)]
    },
};

fn cells_with_count(tree: &Tree, n_items: usize, now: Timestamp) -> Vec<Value> {
    vec![name_of(tree), n_items.into(), age_of(tree, now)]
}

fn policy(tree: &Tree, steps: &str, now: Timestamp) -> Vec<Value> {
    let spec = at(tree, &["spec"]);
    let kind = match at(spec, &["paramKind"]) {
        Value::Null => "<unset>".to_owned(),
        kind => format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
    };
    vec![name_of(tree), items(spec, steps).len().into(), kind.into(), age_of(tree, now)]
}

fn param_ref(spec: &Value) -> String {
    let reference = at(spec, &["paramRef"]);
    match (text(reference, "name"), text(reference, "namespace")) {
        ("", _) => match at(reference, &["selector"]) {
            Value::Null => "<unset>".to_owned(),
            labels => selector(labels),
        },
        // Whether the objects live in namespaces is not known here.
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}
