//! No user's traffic changes what another user is answered.
//!
//! `docs/security.md` has a table of everything that requests of several users share. Each row names the
//! test that holds it. Most are rows of the table here: an attacker exhausts what is shared, and
//! meanwhile a victim asks a fixed list of questions. Each answer must be that of an idle server, or one
//! of the codes that the row gives for "full". It never is the opposite decision.

mod attacks;
mod scene;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use self::attacks::ROWS;
use self::scene::Scene;

/// The page with the table.
const PAGE: &str = include_str!("../../../../docs/security.md");

/// The last column of rows that are tested in this file.
const HERE: &str = "`shared_state`";

#[tokio::test(flavor = "multi_thread")]
async fn the_answers_of_a_victim_are_those_of_an_idle_server() {
    for row in ROWS {
        let scene = Scene::start(row.change).await;
        let idle = scene.decisions("idle").await;
        assert_eq!(idle, scene.decisions("again").await, "{}: the questions are steady", row.name);
        let attack = (row.attack)(&scene).await;
        for round in ["meanwhile-1", "meanwhile-2"] {
            row.compare(round, &idle, &scene.decisions(round).await);
        }
        attack.finish().await;
        row.compare("after", &idle, &scene.decisions("after").await);
        println!("{}: held", row.name);
    }
}

/// Every row of the page has its test, and every test here stands on the page.
#[test]
fn every_shared_thing_has_its_test() {
    let mut here = BTreeSet::new();
    let sources = sources();
    for (name, test) in table() {
        if test == HERE {
            here.insert(name);
            continue;
        }
        let function = test.trim_matches('`').rsplit("::").next().unwrap_or_default();
        let is_there = sources.iter().any(|text| text.contains(&format!("fn {function}(")));
        assert!(is_there && !function.is_empty(), "{name}: there is no test {test}");
    }
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(here, rows);
}

/// The first and the last cell of each row of the table of shared state.
fn table() -> Vec<(String, String)> {
    let section = PAGE.split("## Shared state").nth(1).expect("a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let rows = rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 5, "{line}");
        (cells[0].to_owned(), cells[4].to_owned())
    });
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 20, "{} rows", rows.len());
    rows
}

/// The texts of all sources of the workspace.
fn sources() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = vec![crates];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == "rs") {
                texts.push(std::fs::read_to_string(path).expect("a file"));
            }
        }
    }
    texts
}
