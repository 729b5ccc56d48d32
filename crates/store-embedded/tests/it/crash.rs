//! Kills a process repeatedly while it writes, and checks what it left.
//!
//! The test starts itself as a child. The child prints each acknowledged write to its standard output. After
//! some writes the parent kills it, reads the rest of the pipe, opens the directory and checks it.
//! `STORE_CRASH_ROUNDS` sets the number of kills, for a longer run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use store::{At, Change, ExpectedKeyState, Put, Revision, Store};
use store_contract::block_on;
use store_embedded::{EmbeddedStore, Limits, Options};
use tempfile::TempDir;

use crate::scratch::{content, events, key, mark};

const TEST: &str = "crash::acknowledged_writes_survive_kills";
const DIRECTORY: &str = "STORE_CRASH_DIRECTORY";
const ROUNDS: &str = "STORE_CRASH_ROUNDS";
const ROUNDS_SHORT: u64 = 10;
const N_WRITERS: u64 = 8;
const N_KEYS: u64 = 5;

fn options() -> Options {
    let limits = Limits {
        log_file_bytes_max: 20_000,
        checkpoint_bytes_min: 50_000,
        history_memory_bytes_max: 100_000,
        ..Limits::default()
    };
    Options { limits, ..Options::default() }
}

#[test]
fn acknowledged_writes_survive_kills() {
    if let Ok(directory) = std::env::var(DIRECTORY) {
        block_on(write_until_killed(Path::new(&directory)));
        return;
    }
    let rounds = std::env::var(ROUNDS).map_or(ROUNDS_SHORT, |rounds| rounds.parse().unwrap());
    let directory = TempDir::new().unwrap();
    let mut known = BTreeMap::new();
    for round in 0..rounds {
        // The numbers vary, so that kills hit early and late in a batch, a file or a snapshot.
        let n_acks = 1 + (round * 7919) % 2500;
        let acks = run_and_kill(directory.path(), n_acks as usize);
        let newest = known.last_key_value().map_or(1, |(revision, _)| *revision);
        for (revision, write) in acks {
            assert!(revision > newest, "revision {revision} was used before {newest}");
            let before = known.insert(revision, write);
            assert_eq!(before, None, "revision {revision} was acknowledged twice");
        }
        block_on(check(directory.path(), &mut known));
    }
}

/// Runs a child until it has acknowledged this many writes. Returns all of them by revision.
fn run_and_kill(directory: &Path, n_acks: usize) -> Vec<(u64, (String, String))> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acks = Vec::new();
    while acks.len() < n_acks {
        let line = lines.next().expect("the child goes on until it is killed").unwrap();
        acks.extend(parse(&line));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The last line may be incomplete; then its write does not count as acknowledged.
    acks.extend(lines.map_while(Result::ok).filter_map(|line| parse(&line)));
    acks
}

/// Parses a line `ack <revision> <name> <text> .`
fn parse(line: &str) -> Option<(u64, (String, String))> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["ack", revision, name, text, "."] = words.as_slice() else { return None };
    Some((revision.parse().ok()?, ((*name).to_owned(), (*text).to_owned())))
}

/// Checks the directory of a killed process. All events must agree with what earlier rounds have seen.
async fn check(directory: &Path, known: &mut BTreeMap<u64, (String, String)>) {
    let store = EmbeddedStore::open(directory, options()).unwrap();
    let current = store.current_rev().await.unwrap().as_u64();
    let floor = store.compaction_floor().await.unwrap();
    let newest_known = known.last_key_value().map_or(1, |(revision, _)| *revision);
    assert!(current >= newest_known, "revision {newest_known} is lost, {current} is the newest");
    let mut next = floor.next().as_u64();
    let mut told = events(&store, floor).await.into_iter().peekable();
    while let Some(event) = told.next() {
        assert_eq!(event.revision.as_u64(), next, "revisions are without gaps");
        next += 1;
        let (Change::Create(entry) | Change::Update { entry, .. }) = event.change else {
            panic!("nobody deletes");
        };
        let name = event.key.rsplit('/').next().unwrap().to_owned();
        let text = String::from_utf8(entry.value.to_vec()).unwrap();
        let moved = told.next_if(|mark| mark.revision == event.revision);
        let moved = moved.map(|mark| (mark.key, mark.change.entry().map(|entry| entry.mod_rev)));
        let want = is_marked(&name).then(|| (key("mark"), Some(event.revision)));
        assert_eq!(moved, want, "a write and its mark are torn apart");
        // A write that was not acknowledged may have happened; from now on it must stay.
        let write = known.entry(event.revision.as_u64()).or_insert((name.clone(), text.clone()));
        assert_eq!(*write, (name, text), "revision {}", event.revision);
    }
    assert_eq!(next, current + 1);
    let mut newest: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for (revision, (name, text)) in known.iter() {
        newest.insert(name, (*revision, text));
    }
    let last_marked = known.iter().rev().find(|(_, (name, _))| is_marked(name));
    let mut content = content(&store, At::Newest).await;
    let mark = content.pop_if(|(name, ..)| name == "mark");
    assert_eq!(mark.map(|(.., mod_rev, _)| mod_rev), last_marked.map(|(revision, _)| *revision));
    let found: BTreeMap<&str, (u64, &str)> = content
        .iter()
        .map(|(name, text, mod_rev, _)| (name.as_str(), (*mod_rev, text.as_str())))
        .collect();
    assert!(newest == found, "the newest versions differ");
}

async fn write_until_killed(directory: &Path) {
    let store = Arc::new(EmbeddedStore::open(directory, options()).unwrap());
    let mut writers = Vec::new();
    for writer in 0..N_WRITERS {
        writers.push(tokio::spawn(write(store.clone(), writer)));
    }
    let compactor = async {
        loop {
            let current = store.current_rev().await.unwrap().as_u64();
            store.compact(Revision::new(current.saturating_sub(300))).await.unwrap();
            store.wait_for_revision(Revision::new(current + 100)).await.unwrap();
        }
    };
    tokio::select! {
        () = compactor => {}
        result = &mut writers[0] => result.unwrap(),
    }
}

/// Every other writer bumps the shared revision with each write.
fn is_marked(name: &str) -> bool {
    name.as_bytes().first().is_some_and(|writer| writer % 2 == 0)
}

async fn write(store: Arc<EmbeddedStore>, writer: u64) {
    for n in 0.. {
        let name = format!("{writer}-{}", n % N_KEYS);
        let got = store.get(&key(&name), At::Newest).await.unwrap();
        let expect =
            got.entry.map_or(ExpectedKeyState::Absent, |entry| ExpectedKeyState::At(entry.mod_rev));
        let text = format!("{writer}/{n}/{}", "x".repeat((n as usize * 37) % 700));
        let value = Bytes::copy_from_slice(text.as_bytes());
        let mark = mark().filter(|_| is_marked(&name));
        let put = Put {
            key: key(&name),
            value,
            expected_state: expect,
            ttl: None,
            key_group_revision_action: mark,
        };
        let revision = store.put(put).await.unwrap();
        // One call, so that a line reaches the pipe completely unless the kill interrupts it.
        let line = format!("ack {revision} {name} {text} .\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
}
