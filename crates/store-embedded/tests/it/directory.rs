//! Owner, mode and symbolic links of the data directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use store::Store;
use store_contract::block_on;
use store_embedded::{EmbeddedStore, LockedDirectory, Options};
use tempfile::TempDir;

use crate::scratch::{open, set};

fn refusal(directory: &Path) -> String {
    let error = EmbeddedStore::open(directory, Options::default()).unwrap_err();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

/// A user who may write to the directory could replace the log.
#[test]
fn a_directory_that_others_can_write_is_refused() {
    for (mode, is_refused) in [
        (0o700, false),
        (0o750, false),
        (0o755, false),
        (0o770, true),
        (0o720, true),
        (0o702, true),
        (0o1777, true),
    ] {
        let directory = TempDir::new().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        let opened = EmbeddedStore::open(directory.path(), Options::default());
        assert_eq!(opened.is_err(), is_refused, "{mode:o}");
        if let Err(error) = opened {
            let path = directory.path().display();
            let want = format!(
                "data directory `{path}` has mode {mode:04o}: users other than its owner can replace \
                 its files; run `chmod go-w {path}`"
            );
            assert_eq!(error.to_string(), want);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is written");
        }
    }
}

/// A symbolic link would make the store read or overwrite another file.
#[test]
fn links_in_it_are_not_followed() {
    let elsewhere = TempDir::new().unwrap();
    let target = elsewhere.path().join("precious");
    fs::write(&target, "precious").unwrap();
    let names = ["lock", "log-00000000000000000001.tmp", "log-00000000000000000001"];
    for name in names.into_iter().chain(["snapshot-00000000000000000007"]) {
        let directory = TempDir::new().unwrap();
        let link = directory.path().join(name);
        symlink(&target, &link).unwrap();
        if name.ends_with(".tmp") {
            // Opening removes unfinished files of another process: the link, not its target.
            open(directory.path());
            assert!(!fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink()));
        } else {
            let refusal = refusal(directory.path());
            assert!(refusal.contains("it is a symbolic link"), "{name}: {refusal}");
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious", "{name}");
    }
}

#[test]
fn files_are_for_their_owner_alone() {
    let directory = TempDir::new().unwrap();
    block_on(async {
        let store = open(directory.path());
        set(&store, "a", "1").await;
        store.close().await;
    });
    for entry in fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
    }
}

/// A process that closes the store may remove the lock file. A lock on a removed file protects nothing.
#[test]
fn a_lock_file_that_was_removed_does_not_count() {
    let directory = TempDir::new().unwrap();
    let first = LockedDirectory::lock(directory.path()).unwrap();
    assert!(LockedDirectory::lock(directory.path()).is_err());
    let path = directory.path().to_owned();
    let waiting = std::thread::spawn(move || LockedDirectory::lock(&path));
    fs::remove_file(directory.path().join("lock")).unwrap();
    drop(first);
    let second = waiting.join().unwrap().unwrap();
    assert!(LockedDirectory::lock(second.path()).is_err(), "the second has it");
}
