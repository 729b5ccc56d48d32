//! Data directories that earlier versions wrote. Every later version must serve them: no change may
//! strand data.
//!
//! Each folder below `tests/data` was written by [`write::data_directory`] of the version that it is
//! named after, and `objects.jsonl` in it tells what was stored. `cargo xtask fixture NAME` adds one.

mod serve;
mod write;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use server::ServerOptions;
use tempfile::TempDir;

/// Where the fixtures are.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
/// In a fixture: one stored object a line, with its path.
const OBJECTS: &str = "objects.jsonl";
/// Names the folder that a new fixture is written to.
const WRITE_VARIABLE: &str = "PORTCULLIS_FIXTURE";

/// An object that a fixture holds.
struct Stored {
    path: String,
    object: Value,
}

/// The options of servers that write or serve fixtures. Events of a fixture must outlive it.
fn change(options: &mut ServerOptions, _folder: &Path) {
    options.api_settings.service_ip_range = "10.0.0.0/24".parse().ok();
    options.api_settings.event_ttl = Duration::from_secs(100 * 365 * 24 * 3600);
}

/// Every version serves what earlier ones wrote.
#[tokio::test(flavor = "multi_thread")]
async fn data_of_every_version_is_served() {
    let folders = fs::read_dir(FIXTURES).expect("fixtures").map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    assert!(!folders.is_empty());
    for fixture in folders {
        println!("{}", fixture.display());
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture, folder.path());
        serve::everything(folder).await;
    }
}

/// What this version writes it serves too. With the variable set, what is written becomes a fixture.
#[tokio::test(flavor = "multi_thread")]
async fn data_of_this_version_is_served() {
    let folder = write::data_directory().await;
    if let Some(fixture) = std::env::var_os(WRITE_VARIABLE) {
        let fixture = Path::new(&fixture);
        assert!(!fixture.exists(), "{} exists: a fixture is never changed", fixture.display());
        copy(folder.path(), fixture);
    }
    serve::everything(folder).await;
}

/// Copies a folder with everything in it but locks.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_name() != "lock" {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The contents of a fixture.
fn stored(folder: &TempDir) -> Vec<Stored> {
    let text = fs::read_to_string(folder.path().join(OBJECTS)).expect("a list of objects");
    let read = |line: &str| {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        Stored {
            path: entry["path"].as_str().expect("a path").to_owned(),
            object: entry["object"].clone(),
        }
    };
    text.lines().map(read).collect()
}
