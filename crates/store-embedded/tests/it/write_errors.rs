//! A disk that is full, and a process without descriptors.
//!
//! The tests start themselves as a child with limits, which the operating system enforces. A file that may not grow
//! is like a full disk: one write is short, and the next one fails.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use store::{At, ExpectedKeyState, Put, Revision, Store, WriteError};
use store_contract::block_on;
use store_embedded::{EmbeddedStore, Limits, Options};
use tempfile::TempDir;

use crate::scratch::{content, key, open, set, tight};

const DIRECTORY: &str = "STORE_FULL_DIRECTORY";

/// Runs a test of this file again in a child with limits, where the store is used. Then checks here that
/// everything is stored that the child was told so, and that the store takes further writes.
fn run_with_limits(test: &str, limits: &str, in_child: impl AsyncFnOnce(&Path)) {
    if let Ok(directory) = std::env::var(DIRECTORY) {
        return block_on(in_child(Path::new(&directory)));
    }
    let directory = TempDir::new().unwrap();
    let script = format!(r#"trap "" XFSZ; {limits}; exec "$0" "$@""#);
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args([&format!("write_errors::{test}"), "--exact", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}{stderr}");
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
        // Without the limits, writes succeed.
        let current = store.current_rev().await.unwrap();
        assert_eq!(set(&store, "after", "1").await, current.next());
        assert_eq!(store.check_health().await, Ok(()));
    });
}

/// Creates a key with a value of 1,000 bytes, and tells the parent if that is acknowledged.
async fn put(store: &EmbeddedStore, name: &str) -> Result<Revision, WriteError> {
    let (key, value) = (key(name), Bytes::from(vec![b'x'; 1000]));
    let put = Put {
        key,
        value,
        expected_state: ExpectedKeyState::Absent,
        ttl: None,
        key_group_revision_action: None,
    };
    let written = store.put(put).await?;
    writeln!(std::io::stdout().lock(), "ack {name}").unwrap();
    Ok(written)
}

/// Writes until the log may not grow any more. Returns the number of writes and the error.
async fn write_until_full(store: &EmbeddedStore) -> (u64, WriteError) {
    for n_written in 0..1000 {
        if let Err(error) = put(store, &format!("{n_written:04}")).await {
            return (n_written, error);
        }
    }
    panic!("the limit has no effect");
}

/// Opens files until the process may not open more, but for this number.
fn take_descriptors(n_left: usize) -> Vec<File> {
    let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!((10..100).contains(&files.len()), "{}", files.len());
    files.truncate(files.len() - n_left);
    files
}

/// A13: a disk that was full and is free again needs no restart, and nothing acknowledged is lost.
#[cfg(unix)]
#[test]
fn a_full_disk_is_survived_without_a_restart() {
    run_with_limits(
        "a_full_disk_is_survived_without_a_restart",
        "ulimit -f 64",
        async |directory| {
            let store = open(directory);
            assert_eq!(store.check_health().await, Ok(()));
            let (n_written, error) = write_until_full(&store).await;
            let WriteError::DiskFull { reason } = &error else { panic!("{error}") };
            assert!(reason.contains("only reads"), "{reason}");
            assert_eq!(&store.check_health().await.unwrap_err().reason, reason);
            assert!(store.status().is_read_only);
            // Acknowledged writes exist, and refused writes do not.
            let current = store.current_rev().await.unwrap();
            assert_eq!(current.as_u64(), n_written + 1);
            assert_eq!(content(&store, At::Newest).await.len() as u64, n_written);
            assert_eq!(put(&store, "again").await, Err(error));
            assert_eq!(store.current_rev().await, Ok(current));
            // The limit is per file, so the store recovers by starting a new log.
            store.run_periodic_work().await;
            assert_eq!(store.check_health().await, Ok(()));
            assert!(!store.status().is_read_only);
            assert_eq!(put(&store, "again").await, Ok(current.next()));
        },
    );
}

/// A13: without a descriptor the store begins no further log, and writes go on in the one that is open. With
/// descriptors it begins one by itself. With one descriptor it fails in the middle.
#[cfg(unix)]
#[test]
fn a13_a_log_that_can_not_be_rotated_takes_writes() {
    run_with_limits(
        "a13_a_log_that_can_not_be_rotated_takes_writes",
        "ulimit -n 64",
        async |directory| {
            for n_left in [0, 1] {
                let limits = Limits { disk_free_bytes_min: 0, ..tight() };
                let options = Options { limits, ..Options::default() };
                let store = EmbeddedStore::open(directory, options).unwrap();
                let n_logs = || {
                    let names = std::fs::read_dir(directory).unwrap();
                    let names = names.map(|entry| entry.unwrap().file_name());
                    names.filter(|name| name.to_string_lossy().starts_with("log-")).count()
                };
                let n_logs_before = n_logs();
                let files = take_descriptors(n_left);
                for n in 0..20 {
                    put(&store, &format!("{n_left}-short-of-files-{n}")).await.unwrap();
                }
                store.run_periodic_work().await;
                let status = store.status();
                let why = status.maintenance_failure_text.expect("a failed task");
                assert!(why.contains("it cannot begin another log file"), "{why}");
                assert!(why.contains("Too many open files"), "{why}");
                assert!(!status.is_read_only);
                assert_eq!(store.check_health().await, Ok(()));
                drop(files);
                store.run_periodic_work().await;
                assert_eq!(store.status().maintenance_failure_text, None);
                put(&store, &format!("{n_left}-with-files")).await.unwrap();
                assert!(n_logs() > n_logs_before, "{} logs", n_logs());
                store.close().await;
            }
        },
    );
}

/// A13: a store that only reads because of a full disk stays so while it also lacks descriptors, and no longer.
#[cfg(unix)]
#[test]
fn a13_a_full_disk_and_no_descriptors_need_no_restart() {
    run_with_limits(
        "a13_a_full_disk_and_no_descriptors_need_no_restart",
        "ulimit -f 64; ulimit -n 64",
        async |directory| {
            let store = open(directory);
            let (_, error) = write_until_full(&store).await;
            assert!(matches!(error, WriteError::DiskFull { .. }), "{error}");
            for n_left in [0, 1] {
                let files = take_descriptors(n_left);
                store.run_periodic_work().await;
                // The cause is now another one, and so is the error.
                let error = put(&store, "between").await.unwrap_err();
                assert!(matches!(error, WriteError::Unavailable(_)), "{error}");
                assert!(error.to_string().contains("Too many open files"), "{error}");
                assert!(store.status().is_read_only && store.check_health().await.is_err());
                assert!(!content(&store, At::Newest).await.is_empty(), "it reads");
                drop(files);
            }
            store.run_periodic_work().await;
            assert_eq!(store.check_health().await, Ok(()));
            put(&store, "at last").await.unwrap();
        },
    );
}
