//! Files of later versions: the store refuses them with a message and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::{At, Store};
use store_contract::block_on;
use store_embedded::{EmbeddedStore, OpenError, Options};
use tempfile::TempDir;

use crate::scratch::{content, open, set, tight};

/// The offset of the version in a file.
const VERSION_AT: usize = 7;

/// Lists the files of a directory without the lock.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let others = paths.filter(|path| path.file_name().unwrap() != "lock");
    others.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// A directory with a snapshot, logs, and unfinished files of a killed process.
fn directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    let options = Options { limits: tight(), ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    let begun = Instant::now();
    let is_snapshot = |path: &PathBuf| path.to_str().unwrap().contains("snapshot-");
    block_on(async {
        while !files(directory.path()).keys().any(is_snapshot) {
            assert!(begun.elapsed() < Duration::from_secs(30), "no snapshot");
            let revision = set(&store, "a", &"x".repeat(500)).await;
            store.compact(revision).await.unwrap();
        }
        set(&store, "b", "last").await;
        store.close().await;
    });
    fs::write(directory.path().join("snapshot-00000000000000009999.tmp"), "left").unwrap();
    fs::write(directory.path().join("page-1-1"), "left").unwrap();
    directory
}

#[test]
fn a_later_version_of_any_file_is_refused_and_nothing_is_changed() {
    let directory = directory();
    let before = files(directory.path());
    let mut n_versioned = 0;
    for (path, bytes) in before.iter().filter(|(_, bytes)| bytes.starts_with(b"PCUL")) {
        // A later version may change everything but the first bytes.
        let mut later = bytes.clone();
        later[VERSION_AT] = b'3';
        later.truncate(later.len() / 2);
        later[VERSION_AT + 1..].reverse();
        fs::write(path, &later).unwrap();
        let error = EmbeddedStore::open(directory.path(), Options::default()).unwrap_err();
        let words = format!(
            "`{}` has format version 3, and this program reads versions up to 2: start the program \
             that wrote it or a later one; nothing was changed",
            path.display()
        );
        assert_eq!(error.to_string(), words);
        let mut want = before.clone();
        want.insert(path.clone(), later);
        assert_eq!(files(directory.path()), want, "{}", path.display());
        fs::write(path, bytes).unwrap();
        n_versioned += 1;
    }
    assert!(n_versioned >= 2, "a snapshot and a log");
    let store = open(directory.path());
    block_on(async {
        let found = content(&store, At::Newest).await;
        assert!(found.iter().any(|item| format!("{item:?}").contains("last")), "{found:?}");
    });
}

/// A version digit with one flipped bit is damage, not a later version.
#[test]
fn a_damaged_version_is_told_as_damage() {
    let directory = directory();
    let log = files(directory.path()).into_iter().rfind(|(_, bytes)| bytes.starts_with(b"PCULLOG"));
    let (path, mut bytes) = log.unwrap();
    bytes[VERSION_AT] = b'6';
    fs::write(&path, bytes).unwrap();
    let error = EmbeddedStore::open(directory.path(), Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { offset: 0, .. }), "{error}");
}
