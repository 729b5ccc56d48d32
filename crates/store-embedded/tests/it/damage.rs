//! Truncates the files at every byte, and changes every byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::{any, prop_assert};
use proptest::test_runner::{Config, TestRunner};
use store::{At, Revision, Store};
use store_contract::block_on;
use store_embedded::{EmbeddedStore, OpenError, Options};
use tempfile::TempDir;

use crate::scratch::{
    WriteContent, content, open, set, set_marked, set_with_ttl, states, tight, unset, unset_marked,
};

/// A directory with one log, the end of each frame, and the state after each frame.
struct Recorded {
    directory: TempDir,
    ends: Vec<usize>,
    states: Vec<(Revision, WriteContent)>,
}

const HEADER_BYTES: usize = 32;

fn record() -> Recorded {
    let directory = TempDir::new().unwrap();
    let mut ends = vec![HEADER_BYTES];
    let mut states = vec![(Revision::FIRST, Vec::new())];
    block_on(async {
        let store = open(directory.path());
        for step in 0..8 {
            match step {
                0 => drop(set(&store, "a", "1").await),
                1 => drop(set(&store, "b", "12345").await),
                2 => drop(set(&store, "a", "").await),
                3 => drop(unset(&store, "b").await),
                4 => drop(store.compact(Revision::new(3)).await),
                // A write and its shared revision are both present or both absent.
                5 => drop(set_marked(&store, "b", "123").await),
                6 => drop(unset_marked(&store, "b").await),
                _ => drop(set_with_ttl(&store, "b", "x", Some(Duration::from_secs(3600))).await),
            }
            ends.push(fs::metadata(log(directory.path(), 1)).unwrap().len() as usize);
            let revision = store.current_rev().await.unwrap();
            states.push((revision, content(&store, At::Newest).await));
        }
    });
    assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "each step is a frame: {ends:?}");
    Recorded { directory, ends, states }
}

fn log(directory: &Path, sequence: u64) -> PathBuf {
    directory.join(format!("log-{sequence:020}"))
}

/// Opens a directory whose only log has these bytes.
fn open_with(bytes: &[u8]) -> (TempDir, Result<EmbeddedStore, OpenError>) {
    let directory = TempDir::new().unwrap();
    fs::write(log(directory.path(), 1), bytes).unwrap();
    let opened = EmbeddedStore::open(directory.path(), Options::default());
    (directory, opened)
}

/// Checks that a store has this state, accepts writes, and has the same state after a restart.
fn check_state(
    directory: &Path,
    store: EmbeddedStore,
    (revision, want): &(Revision, WriteContent),
) {
    block_on(async {
        assert_eq!(store.current_rev().await, Ok(*revision));
        assert_eq!(content(&store, At::Newest).await, *want);
        assert_eq!(set(&store, "new", "1").await, revision.next());
        drop(store);
        let store = open(directory);
        assert_eq!(store.current_rev().await, Ok(revision.next()));
        assert_eq!(content(&store, At::Newest).await.len(), want.len() + 1);
    });
}

#[test]
fn a_log_cut_at_any_byte_has_the_frames_before_the_cut() {
    let recorded = record();
    let bytes = fs::read(log(recorded.directory.path(), 1)).unwrap();
    for len in 0..=bytes.len() {
        let (directory, opened) = open_with(&bytes[..len]);
        if len < HEADER_BYTES {
            // The store writes the header before it names the file, so a short header is damage.
            assert!(matches!(opened, Err(OpenError::Damaged { offset: 0, .. })), "cut at {len}");
            continue;
        }
        let n_frames = recorded.ends.iter().filter(|end| **end <= len).count() - 1;
        check_state(directory.path(), opened.unwrap(), &recorded.states[n_frames]);
    }
}

#[test]
fn a_log_with_any_byte_changed_is_refused_unless_it_is_the_last_frame() {
    let recorded = record();
    let bytes = fs::read(log(recorded.directory.path(), 1)).unwrap();
    let last = recorded.ends[recorded.ends.len() - 2];
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x40;
        let (directory, opened) = open_with(&bytes);
        if at >= last {
            let state = &recorded.states[recorded.states.len() - 2];
            check_state(directory.path(), opened.unwrap(), state);
            continue;
        }
        let begin = recorded.ends.iter().rfind(|end| **end <= at).copied().unwrap_or(0);
        match opened {
            Err(OpenError::Damaged { file, offset, .. }) => {
                assert_eq!((file, offset), (log(directory.path(), 1), begin as u64), "byte {at}");
            }
            Err(error) => panic!("byte {at}: {error}"),
            Ok(_) => panic!("byte {at}: damage goes unnoticed"),
        }
        // The failed open has not changed the files.
        assert_eq!(fs::read(log(directory.path(), 1)).unwrap(), bytes);
    }
}

/// A file system may leave garbage or zeros after the last frame when the power fails.
#[test]
fn a_log_with_anything_after_its_last_frame_is_cut() {
    let recorded = record();
    let bytes = fs::read(log(recorded.directory.path(), 1)).unwrap();
    let state = recorded.states.last().unwrap();
    for tail in [vec![0; 5000], vec![0xff; 33], bytes.clone()] {
        let (directory, opened) = open_with(&[bytes.clone(), tail].concat());
        check_state(directory.path(), opened.unwrap(), state);
    }
}

/// For any bytes, opening ends with a store or an error.
#[test]
fn a_log_of_any_bytes_is_opened_or_refused() {
    let recorded = record();
    let bytes = fs::read(log(recorded.directory.path(), 1)).unwrap();
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let splice = (0..bytes.len(), 0..bytes.len(), proptest::collection::vec(any::<u8>(), 0..64));
    let run = |(from, len, with): (usize, usize, Vec<u8>)| {
        let mut bytes = bytes.clone();
        let end = bytes.len().min(from + len);
        bytes.splice(from..end, with);
        let (_directory, opened) = open_with(&bytes);
        if let Ok(store) = opened {
            let revision = block_on(store.current_rev()).unwrap();
            let known = recorded.states.iter().any(|(known, _)| *known == revision);
            prop_assert!(known, "revision {} was never made", revision);
        }
        Ok(())
    };
    TestRunner::new(config).run(&splice, run).unwrap();
}

/// A crash can tear only the last log.
#[test]
fn an_earlier_log_is_neither_cut_nor_missing() {
    let recorded = record();
    let directory = recorded.directory.path();
    block_on(async {
        set(&open(directory), "c", "1").await;
        set(&open(directory), "d", "1").await;
    });
    let second = log(directory, 2);
    let bytes = fs::read(&second).unwrap();
    for len in HEADER_BYTES + 1..bytes.len() {
        fs::write(&second, &bytes[..len]).unwrap();
        let opened = EmbeddedStore::open(directory, Options::default());
        let Err(OpenError::Damaged { file, offset, .. }) = opened else { panic!("cut at {len}") };
        assert_eq!((file, offset), (second.clone(), HEADER_BYTES as u64));
    }
    // A whole frame is missing. No checksum shows it, but the base revision of the next log does.
    fs::write(&second, &bytes[..HEADER_BYTES]).unwrap();
    let Err(OpenError::Damaged { file, .. }) = EmbeddedStore::open(directory, Options::default())
    else {
        panic!("a missing frame goes unnoticed");
    };
    assert_eq!(file, log(directory, 3));
    fs::remove_file(&second).unwrap();
    let Err(OpenError::Missing { file }) = EmbeddedStore::open(directory, Options::default())
    else {
        panic!("a missing log goes unnoticed");
    };
    assert_eq!(file, second);
}

#[test]
fn a_snapshot_with_any_byte_changed_or_cut_is_refused() {
    let directory = TempDir::new().unwrap();
    let options = Options { limits: tight(), ..Options::default() };
    block_on(async {
        let store = EmbeddedStore::open(directory.path(), options.clone()).unwrap();
        while snapshots(directory.path()).is_empty() {
            let revision = set(&store, "a", "1").await;
            store.compact(revision).await.unwrap();
            store.run_periodic_work().await;
        }
    });
    // An older snapshot may still exist, because its removal comes later.
    let snapshot = snapshots(directory.path()).into_iter().max().unwrap();
    let bytes = fs::read(&snapshot).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&snapshot, bytes).unwrap();
        let opened = EmbeddedStore::open(directory.path(), options.clone());
        matches!(opened, Err(OpenError::Damaged { file, .. }) if file == snapshot)
    };
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        assert!(refused(&changed), "byte {at}");
        assert!(refused(&bytes[..at]), "cut at {at}");
    }
    fs::write(&snapshot, &bytes).unwrap();
    let store = EmbeddedStore::open(directory.path(), options.clone()).unwrap();
    block_on(async {
        let floor = store.compaction_floor().await.unwrap();
        assert_eq!(states(&store, floor).await.last().unwrap().len(), 1);
    });
}

fn snapshots(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_snapshot = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("snapshot-") && !name.ends_with(".tmp")
    };
    paths.filter(is_snapshot).collect()
}
