//! Checks with many concurrent writers.
//!
//! The check of linearizability needs no search, because every answer names the revision at which it took
//! effect: it must agree with the log, and the revisions must agree with the order in real time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use store::{At, Entry, Event, ExpectedKeyState, Revision, Store, WriteError};

use crate::Harness;
use crate::shorthand::{get, history, put, try_delete};

const N_WRITERS: u64 = 8;
const N_ROUNDS: u64 = 40;
const N_KEYS: u64 = 3;

/// One finished operation. One counter numbers all begins and ends, so they are ordered in real time.
struct FinishedOperation {
    name: String,
    began: u64,
    ended: u64,
    outcome: Outcome,
}

enum Outcome {
    Wrote { revision: Revision, text: Option<String> },
    Read { revision: Revision, entry: Option<Entry> },
    Refused { current: Option<Entry> },
}

/// Concurrent read-modify-write loops over few keys are linearizable.
pub async fn concurrent_writes_are_linearizable(harness: &impl Harness) {
    let store = Arc::new(harness.fresh().await);
    let start = store.current_rev().await.unwrap();
    let clock = Arc::new(AtomicU64::new(0));
    let mut writers = Vec::new();
    for writer in 0..N_WRITERS {
        writers.push(tokio::spawn(write(store.clone(), clock.clone(), writer)));
    }
    let mut done = Vec::new();
    for writer in writers {
        done.extend(writer.await.unwrap());
    }
    check(start, &history(&*store, start).await, &done);
}

async fn write(
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
    writer: u64,
) -> Vec<FinishedOperation> {
    let stamp = || clock.fetch_add(1, Ordering::SeqCst);
    let mut done = Vec::new();
    for round in 0..N_ROUNDS {
        let name = ((writer + round) % N_KEYS).to_string();
        let began = stamp();
        let got = get(&*store, &name, At::Newest).await.unwrap();
        let expect = got
            .entry
            .as_ref()
            .map_or(ExpectedKeyState::Absent, |entry| ExpectedKeyState::At(entry.mod_rev));
        let outcome = Outcome::Read { revision: got.revision, entry: got.entry };
        done.push(FinishedOperation { name: name.clone(), began, ended: stamp(), outcome });

        let began = stamp();
        let (text, wrote) = if round % 5 == 4 {
            (None, try_delete(&*store, &name, expect).await)
        } else {
            let text = format!("{writer}/{round}");
            (Some(text.clone()), put(&*store, &name, &text, expect).await)
        };
        let outcome = match wrote {
            Ok(revision) => Outcome::Wrote { revision, text },
            Err(WriteError::Conflict { current }) => Outcome::Refused { current },
            Err(error) => panic!("{error}"),
        };
        done.push(FinishedOperation { name, began, ended: stamp(), outcome });
    }
    done
}

fn check(start: Revision, log: &[Event], done: &[FinishedOperation]) {
    let wrote: Vec<(&FinishedOperation, Revision)> = done
        .iter()
        .filter_map(|done| match done.outcome {
            Outcome::Wrote { revision, .. } => Some((done, revision)),
            Outcome::Read { .. } | Outcome::Refused { .. } => None,
        })
        .collect();
    assert_eq!(wrote.len(), log.len(), "each acknowledged write is one event");
    assert!(log.len() as u64 >= N_ROUNDS, "somebody gets through in every round");
    let states = states(log);
    for one in done {
        let seen = wrote.iter().filter(|(other, _)| other.ended < one.began).map(|(_, at)| *at);
        let oldest = seen.max().unwrap_or(start);
        let unseen = wrote.iter().filter(|(other, _)| other.began > one.ended).map(|(_, at)| *at);
        let newest = unseen.min().unwrap_or(Revision::new(u64::MAX));
        let name = &one.name;
        let state = |at| states.get(name).and_then(|states| state_at(states, at));
        match &one.outcome {
            Outcome::Wrote { revision, text } => {
                assert!(*revision > oldest && *revision < newest, "{name}: {revision}");
                let written = state(*revision).map(|entry| entry.value.to_vec());
                assert_eq!(written, text.clone().map(String::into_bytes), "{name} at {revision}");
            }
            Outcome::Read { revision, entry } => {
                assert!(*revision >= oldest && *revision < newest, "{name}: {revision}");
                assert_eq!(state(*revision), entry.as_ref(), "{name} at {revision}");
            }
            Outcome::Refused { current } => {
                let between = log.iter().map(|event| event.revision);
                let mut between =
                    between.filter(|at| *at >= oldest && *at < newest).chain([oldest]);
                assert!(between.any(|at| state(at) == current.as_ref()), "{name}: {current:?}");
            }
        }
    }
}

/// The versions of each name, by revision.
fn states(log: &[Event]) -> BTreeMap<String, Vec<(Revision, Option<Entry>)>> {
    let mut states: BTreeMap<String, Vec<(Revision, Option<Entry>)>> = BTreeMap::new();
    for event in log {
        let name = event.key.rsplit('/').next().unwrap_or_default().to_owned();
        let versions = states.entry(name).or_default();
        let before = versions.last().and_then(|(_, entry)| entry.clone());
        assert_eq!(
            event.change.previous_entry(),
            before.as_ref(),
            "events of a key follow each other"
        );
        versions.push((event.revision, event.change.entry().cloned()));
    }
    states
}

fn state_at(versions: &[(Revision, Option<Entry>)], at: Revision) -> Option<&Entry> {
    versions
        .iter()
        .rev()
        .find(|(revision, _)| *revision <= at)
        .and_then(|(_, entry)| entry.as_ref())
}

/// Exactly one of many concurrent creates succeeds. Leader election and generated names rely on this.
pub async fn exactly_one_concurrent_create_succeeds(harness: &impl Harness) {
    let store = Arc::new(harness.fresh().await);
    let mut creators = Vec::new();
    for n in 0..32 {
        let store = store.clone();
        creators.push(tokio::spawn(async move {
            put(&*store, "a", &n.to_string(), ExpectedKeyState::Absent).await
        }));
    }
    let mut won = Vec::new();
    let mut lost = Vec::new();
    for creator in creators {
        match creator.await.unwrap() {
            Ok(revision) => won.push(revision),
            Err(error) => lost.push(error),
        }
    }
    assert_eq!((won.len(), lost.len()), (1, 31));
    let winner = get(&*store, "a", At::Newest).await.unwrap().entry;
    assert_eq!(winner.as_ref().map(|entry| entry.mod_rev), won.first().copied());
    for error in lost {
        assert_eq!(error, WriteError::Conflict { current: winner.clone() });
    }
}
