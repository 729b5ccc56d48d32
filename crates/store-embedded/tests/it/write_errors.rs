//! A disk that is full.
//!
//! The test starts itself as a child that may not make files larger than a limit, which the operating
//! system enforces like a full disk: one write is short, and the next one fails.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use store::{At, Expect, Put, Store, WriteError};
use store_contract::block_on;
use store_embedded::EmbeddedStore;
use tempfile::TempDir;

use crate::scratch::{content, key, open, set};

const TEST: &str = "write_errors::a_full_disk_is_survived_without_a_restart";
const DIRECTORY: &str = "STORE_FULL_DIRECTORY";

/// A13: a disk that was full and is free again needs no restart, and nothing acknowledged is lost.
#[cfg(unix)]
#[test]
fn a_full_disk_is_survived_without_a_restart() {
    if let Ok(directory) = std::env::var(DIRECTORY) {
        block_on(write_until_full(&open(Path::new(&directory))));
        return;
    }
    let directory = TempDir::new().unwrap();
    let script = r#"trap "" XFSZ; ulimit -f 64; exec "$0" "$@""#;
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}");
    let acknowledged: Vec<&str> =
        stdout.lines().filter_map(|line| line.strip_prefix("ack ")).collect();
    assert!(acknowledged.len() > 10, "{stdout}");
    block_on(async {
        let store = open(directory.path());
        let names: Vec<String> =
            content(&store, At::Newest).await.into_iter().map(|(name, ..)| name).collect();
        for name in &acknowledged {
            assert!(names.iter().any(|other| other == name), "{name} is lost");
        }
        // With free space again, writes succeed.
        let current = store.current_rev().await.unwrap();
        assert_eq!(set(&store, "after", "1").await, current.next());
        assert_eq!(store.health().await, Ok(()));
    });
}

async fn write_until_full(store: &EmbeddedStore) {
    assert_eq!(store.health().await, Ok(()));
    let mut n_written = 0;
    let error = loop {
        let name = format!("{n_written:04}");
        let value = Bytes::from(vec![b'x'; 1000]);
        let (key, expect) = (key(&name), Expect::Absent);
        match store.put(Put { key, value, expect, ttl: None, shared_revision: None }).await {
            Ok(_) => n_written += 1,
            Err(error) => break error,
        }
        assert!(n_written < 1000, "the limit has no effect");
        writeln!(std::io::stdout().lock(), "ack {name}").unwrap();
    };
    let WriteError::Unavailable(unavailable) = error else { panic!("{error}") };
    assert!(unavailable.reason.contains("only reads"), "{unavailable}");
    assert_eq!(store.health().await, Err(unavailable.clone()));
    // Acknowledged writes exist, and refused writes do not.
    let current = store.current_rev().await.unwrap();
    assert_eq!(current.number(), n_written + 1);
    assert_eq!(content(store, At::Newest).await.len() as u64, n_written);
    let (key, value) = (key("again"), Bytes::new());
    let again = Put { key, value, expect: Expect::Absent, ttl: None, shared_revision: None };
    assert_eq!(store.put(again.clone()).await, Err(WriteError::Unavailable(unavailable)));
    assert_eq!(store.current_rev().await, Ok(current));
    // The limit is per file, so the store recovers by starting a new log.
    store.tick().await;
    assert_eq!(store.health().await, Ok(()));
    assert_eq!(store.put(again).await, Ok(current.next()));
    writeln!(std::io::stdout().lock(), "ack again").unwrap();
}
