//! The table columns of role bindings.

use api_object::Tree;
use serde_json::Value;

use super::{AGE, BuiltInTable, NAME, age_cell, name_cell, text_column, wide_column};
use crate::json_members::{list_member, string_member, value_at_path};

pub(super) static BINDING: BuiltInTable = BuiltInTable {
    columns: &[
        NAME,
        text_column("Role", "The role that is granted."),
        AGE,
        wide_column("Users", "Users who hold the role."),
        wide_column("Groups", "Groups whose members hold the role."),
        wide_column("ServiceAccounts", "Service accounts that hold the role."),
    ],
    make_cells: |tree, now| {
        let role = value_at_path(tree, &["roleRef"]);
        vec![
            name_cell(tree),
            format!("{}/{}", string_member(role, "kind"), string_member(role, "name")).into(),
            age_cell(tree, now),
            join_subject_names(tree, "User"),
            join_subject_names(tree, "Group"),
            join_subject_names(tree, "ServiceAccount"),
        ]
    },
};

fn join_subject_names(tree: &Tree, kind: &str) -> Value {
    let of_kind =
        list_member(tree, "subjects").iter().filter(|it| string_member(*it, "kind") == kind);
    let shown = |subject: &Value| match kind {
        "ServiceAccount" => {
            format!("{}/{}", string_member(subject, "namespace"), string_member(subject, "name"))
        }
        _ => string_member(subject, "name").to_owned(),
    };
    of_kind.map(shown).collect::<Vec<_>>().join(", ").into()
}
