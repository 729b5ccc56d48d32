//! The rows of docs/attacks.md that this program runs, by family.

mod authorization;
mod bodies;
mod configuration;
mod connections;
mod definitions;
mod lists;
mod logging;
mod nodes;
mod storage;
mod watches;
mod webhooks;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::hook_service::HookService;
use crate::scene::Step;
use crate::server_process::StartOptions;

/// The usual duration of an attack.
const DURATION: Duration = Duration::from_secs(5);

/// One row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) by: &'static str,
    pub(crate) kind: RowKind,
}

/// How a row is checked.
pub(crate) enum RowKind {
    /// The row is about decisions alone. The tests that docs/attacks.md names are run.
    Tests,
    /// The row is about load.
    Load(Load),
}

/// An attack under load.
pub(crate) struct Load {
    /// How the server is started. It may write files into the directory of the server.
    pub(crate) start: StartFn,
    /// Creates what the attack needs, before memory and latencies are measured.
    pub(crate) prepare: Step,
    pub(crate) attack: Step,
    /// Removes what the attack left, before the memory of the server is measured again.
    pub(crate) clean: Step,
    pub(crate) duration: Duration,
}

/// Makes the options of the server: of the program, in a directory, with the webhooks.
pub(crate) type StartFn = fn(&Path, &Path, &HookService) -> anyhow::Result<StartOptions>;

/// An attack on a server with default flags that needs no preparation.
fn load(attack: Step) -> Load {
    Load {
        start: |_, _, _| Ok(StartOptions::default()),
        prepare: |_, _| Box::pin(async { Ok(()) }),
        attack,
        clean: |_, _| Box::pin(async { Ok(()) }),
        duration: DURATION,
    }
}

/// All rows in order.
pub(crate) fn rows() -> Vec<Row> {
    let row = |name, by, title, kind| Row { name, title, by, kind };
    vec![
        row("A1", "reader", "every method on every form of path", RowKind::Tests),
        row(
            "A2",
            "namespace admin",
            "roles of millions of permissions",
            RowKind::Load(authorization::a2()),
        ),
        row(
            "A3",
            "reader",
            "1,100 requests at a slow authorization webhook",
            RowKind::Load(authorization::a3()),
        ),
        row("A4", "writer", "failures of webhooks", RowKind::Tests),
        row("A5", "writer", "deadlines of milliseconds", RowKind::Tests),
        row("A6", "writer", "three hanging hooks before one that denies", RowKind::Tests),
        row("A7", "writer", "300 creates at a hook of 12 s", RowKind::Load(webhooks::a7())),
        row(
            "A8",
            "anonymous, reader",
            "slow, missing and unwanted bodies",
            RowKind::Load(bodies::a8()),
        ),
        row("A9", "reader", "40 lists of 50 MB that are not read", RowKind::Load(lists::a9())),
        row("A10", "reader", "5,000 watches, some never read", RowKind::Load(watches::a10())),
        row(
            "A11",
            "reader",
            "lists of 50,000 objects, long selectors",
            RowKind::Load(lists::a11()),
        ),
        row(
            "A12",
            "anonymous",
            "20,000 connections, floods of HTTP/2",
            RowKind::Load(connections::a12()),
        ),
        row(
            "A13",
            "anonymous, writer",
            "descriptors used up; a full disk",
            RowKind::Load(storage::a13()),
        ),
        row("A14", "writer", "objects of great depth", RowKind::Tests),
        row("A15", "writer", "large patches", RowKind::Load(bodies::a15())),
        row("A16", "writer", "bombs in YAML and JSON", RowKind::Load(bodies::a16())),
        row("A17", "tenant admin", "conditions at the cost limit", RowKind::Load(webhooks::a17())),
        row(
            "A18",
            "tenant admin",
            "10,000 definitions, schemas of 1 MB",
            RowKind::Load(definitions::a18()),
        ),
        row("A19", "tenant admin", "webhooks at addresses of the host", RowKind::Tests),
        row("A20", "tenant admin", "webhooks that answer too much", RowKind::Load(webhooks::a20())),
        row(
            "A21",
            "writer",
            "10,000 objects that wait for initializers",
            RowKind::Load(storage::a21()),
        ),
        row("A22", "reader", "identity headers", RowKind::Tests),
        row("A23", "node", "what a node may not do", RowKind::Load(nodes::a23())),
        row("A24", "anonymous", "stalled logs and audit", RowKind::Load(logging::a24())),
        row("A25", "administrator", "a storm of reloads", RowKind::Load(configuration::a25())),
    ]
}

/// Writes a file into the directory of the server and returns its path as text.
fn write_file(directory: &Path, name: &str, content: &str) -> anyhow::Result<String> {
    let path = directory.join(name);
    std::fs::write(&path, content).with_context(|| path.display().to_string())?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_document_is_run() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/attacks.md");
        let document = std::fs::read_to_string(document).unwrap();
        let documented: Vec<&str> = document
            .lines()
            .filter_map(|line| line.strip_prefix("| A")?.split(' ').next())
            // The rows of the measured run have a colon or a star after the number.
            .filter(|row| row.bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        let rows: Vec<&str> = rows().iter().map(|row| &row.name[1..]).collect();
        assert_eq!(rows, documented);
    }
}
