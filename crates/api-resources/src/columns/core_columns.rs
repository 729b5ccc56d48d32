//! The table columns of simple kinds, and of kinds without columns of their own.

use serde_json::Value;

use super::{
    AGE, BuiltInTable, CREATED_AT, NAME, age_cell, creation_timestamp, name_cell, text_column,
};
use crate::json_members::{n_member_entries, string_member, value_at_path};

pub(super) static ANY: BuiltInTable = BuiltInTable {
    columns: &[NAME, CREATED_AT],
    make_cells: |tree, _| {
        vec![name_cell(tree), creation_timestamp(tree).map_or(Value::Null, Value::from)]
    },
};

pub(super) static SERVICE_ACCOUNT: BuiltInTable = BuiltInTable {
    columns: &[NAME, AGE],
    make_cells: |tree, now| vec![name_cell(tree), age_cell(tree, now)],
};

pub(super) static NAMESPACE: BuiltInTable = BuiltInTable {
    columns: &[NAME, text_column("Status", "Active, or Terminating while it is emptied."), AGE],
    make_cells: |tree, now| {
        let phase = string_member(value_at_path(tree, &["status"]), "phase");
        vec![name_cell(tree), phase.into(), age_cell(tree, now)]
    },
};

pub(super) static CONFIG_MAP: BuiltInTable = BuiltInTable {
    columns: &[NAME, text_column("Data", "How many values there are."), AGE],
    make_cells: |tree, now| {
        let n_values = n_member_entries(tree, "data") + n_member_entries(tree, "binaryData");
        vec![name_cell(tree), n_values.into(), age_cell(tree, now)]
    },
};

pub(super) static SECRET: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("Type", "What the values are for."),
        text_column("Data", "How many values there are."),
        AGE,
    ],
    make_cells: |tree, now| {
        let n_values = n_member_entries(tree, "data");
        vec![
            name_cell(tree),
            string_member(tree, "type").into(),
            n_values.into(),
            age_cell(tree, now),
        ]
    },
};

pub(super) static LEASE: BuiltInTable = BuiltInTable {
    columns: &[NAME, text_column("Holder", "Who holds the lease."), AGE],
    make_cells: |tree, now| {
        let holder = string_member(value_at_path(tree, &["spec"]), "holderIdentity");
        vec![name_cell(tree), holder.into(), age_cell(tree, now)]
    },
};
