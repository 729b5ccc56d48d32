//! Columns of the simple kinds, and of those that have none of their own.

use serde_json::Value;

use super::{AGE, CREATED_AT, NAME, Table, age_of, creation, name_of, text_column};
use crate::tree::{at, n_entries, text};

pub(super) static ANY: Table = Table {
    columns: &[NAME, CREATED_AT],
    cells: |tree, _| vec![name_of(tree), creation(tree).map_or(Value::Null, Value::from)],
};

pub(super) static SERVICE_ACCOUNT: Table =
    Table { columns: &[NAME, AGE], cells: |tree, now| vec![name_of(tree), age_of(tree, now)] };

pub(super) static NAMESPACE: Table = Table {
    columns: &[NAME, text_column("Status", "Active, or Terminating while it is emptied."), AGE],
    cells: |tree, now| {
        let phase = text(at(tree, &["status"]), "phase");
        vec![name_of(tree), phase.into(), age_of(tree, now)]
    },
};

pub(super) static CONFIG_MAP: Table = Table {
    columns: &[NAME, text_column("Data", "How many values there are."), AGE],
    cells: |tree, now| {
        let n_values = n_entries(tree, "data") + n_entries(tree, "binaryData");
        vec![name_of(tree), n_values.into(), age_of(tree, now)]
    },
};

pub(super) static SECRET: Table = Table {
    columns: &[
        NAME,
        text_column("Type", "What the values are for."),
        text_column("Data", "How many values there are."),
        AGE,
    ],
    cells: |tree, now| {
        let n_values = n_entries(tree, "data");
        vec![name_of(tree), text(tree, "type").into(), n_values.into(), age_of(tree, now)]
    },
};

pub(super) static LEASE: Table = Table {
    columns: &[NAME, text_column("Holder", "Who holds the lease."), AGE],
    cells: |tree, now| {
        let holder = text(at(tree, &["spec"]), "holderIdentity");
        vec![name_of(tree), holder.into(), age_of(tree, now)]
    },
};
