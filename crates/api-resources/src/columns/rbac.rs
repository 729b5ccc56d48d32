//! Columns of the bindings of roles.

use api_object::Tree;
use serde_json::Value;

use super::{AGE, NAME, Table, age_of, name_of, text_column, wide_column};
use crate::tree::{at, items, text};

pub(super) static BINDING: Table = Table {
    columns: &[
        NAME,
        text_column("Role", "The role that is granted."),
        AGE,
        wide_column("Users", "Users who hold the role."),
        wide_column("Groups", "Groups whose members hold the role."),
        wide_column("ServiceAccounts", "Service accounts that hold the role."),
    ],
    cells: |tree, now| {
        let role = at(tree, &["roleRef"]);
        vec![
            name_of(tree),
            format!("{}/{}", text(role, "kind"), text(role, "name")).into(),
            age_of(tree, now),
            subjects(tree, "User"),
            subjects(tree, "Group"),
            subjects(tree, "ServiceAccount"),
        ]
    },
};

fn subjects(tree: &Tree, kind: &str) -> Value {
    let of_kind = items(tree, "subjects").iter().filter(|it| text(*it, "kind") == kind);
    let shown = |subject: &Value| match kind {
        "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
        _ => text(subject, "name").to_owned(),
    };
    of_kind.map(shown).collect::<Vec<_>>().join(", ").into()
}
