//! Failures of one of three members.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use etcd_testing::{Member, leader};
use store::{At, ExpectedKeyState, ListRequest, Revision, Store, WatchError};
use store_etcd::{EtcdStore, Options};

use crate::member::{open, open_with, options};
use crate::shorthand::{create, events, is_unsure, key, put, text, things};

const N_WRITERS: usize = 6;
/// The number of writes that must succeed before the leader is killed, and again afterwards.
const N_WRITES: usize = 100;

/// Creates keys until `stop` is set. Returns the acknowledged ones in order.
async fn write(
    store: Arc<EtcdStore>,
    writer: usize,
    n_done: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
) -> Vec<(String, Revision)> {
    let mut acknowledged = Vec::new();
    let mut n = 0;
    while !stop.load(Ordering::SeqCst) {
        let name = format!("{writer}-{n}");
        n += 1;
        match store.put(put(&name, &name, ExpectedKeyState::Absent)).await {
            Ok(revision) => {
                acknowledged.push((name, revision));
                n_done.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) => {
                assert!(is_unsure(&error), "{error}");
                // waits for a real process: etcd, which elects a new leader
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    acknowledged
}

async fn until(n_done: &AtomicUsize, n_wanted: usize) {
    let wait = async {
        while n_done.load(Ordering::SeqCst) < n_wanted {
            // waits for a real process: etcd, which accepts the writes of other tasks
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("writes do not resume");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_resume_and_none_is_lost_when_the_leader_is_killed() {
    let mut members = Member::three();
    let store = Arc::new(open(&members.iter().collect::<Vec<_>>()).await);
    let start = store.current_rev().await.unwrap();
    let mut watch = store.watch(things(), start).await.unwrap();
    let (n_done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..N_WRITERS {
        writers.spawn(write(store.clone(), writer, n_done.clone(), stop.clone()));
    }
    until(&n_done, N_WRITES).await;
    let leader = leader(&members);
    members[leader].kill();
    let n_before = n_done.load(Ordering::SeqCst);
    until(&n_done, n_before + N_WRITES).await;
    stop.store(true, Ordering::SeqCst);
    let acknowledged = writers.join_all().await;

    for of_one in &acknowledged {
        assert!(of_one.is_sorted_by(|(_, a), (_, b)| a < b), "revisions of a writer rise");
    }
    let page = store.list(&things(), ListRequest::default()).await.unwrap();
    let stored: BTreeMap<&str, Revision> =
        page.items.iter().map(|item| (item.key.as_str(), item.entry.mod_rev)).collect();
    for (name, revision) in acknowledged.iter().flatten() {
        assert_eq!(stored.get(key(name).as_str()), Some(revision), "{name}");
    }
    // The watch survived the change of leaders: it delivered every key once, at its revision.
    let told = events(&mut *watch, start, page.revision).await;
    let told: Vec<(&str, Revision)> =
        told.iter().map(|event| (event.key.as_str(), event.revision)).collect();
    let mut stored: Vec<(&str, Revision)> = stored.into_iter().collect();
    stored.sort_by_key(|(_, revision)| *revision);
    assert_eq!(told, stored);
}

/// One member is unreachable, the leader or another: the others continue, and the member returns no stale
/// state when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconnected_member_is_never_stale() {
    let members = Member::three();
    let all: Vec<&Member> = members.iter().collect();
    let store =
        open_with(Options { request_timeout: Duration::from_secs(3), ..options(&all) }).await;
    let mut revision = create(&store, "a", "0").await;
    let mut watch = store.watch(things(), revision).await.unwrap();
    let first = leader(&members);
    for (round, cut_off) in [(first + 1) % 3, (first + 2) % 3, first].into_iter().enumerate() {
        let direct = open(&[&members[cut_off]]).await;
        assert!(text(&direct, "a").await.is_some());
        members[cut_off].freeze();
        let written = format!("{}", round + 1);
        revision = insist(&store, &written, revision).await;
        let got = store.get(&key("a"), At::Newest).await.unwrap();
        assert_eq!(got.entry.unwrap().mod_rev, revision);
        // In one of the rounds this member serves the watch of the store.
        let told = events(&mut *watch, Revision::new(revision.as_u64() - 1), revision).await;
        assert_eq!(told.last().map(|event| event.revision), Some(revision));
        // The read arrives when the member resumes with its old state.
        let asked = key("a");
        let read = direct.get(&asked, At::Newest);
        let (read, ()) = tokio::join!(read, async { members[cut_off].thaw() });
        // The first reads may fail, but none may be stale, and finally one succeeds.
        if let Ok(got) = read {
            assert_eq!(got.entry.unwrap().mod_rev, revision, "a stale read");
        }
        let back = open(&[&members[cut_off]]).await;
        assert_eq!(text(&back, "a").await, Some(written), "a stale read");
    }
}

/// While a member hangs, the others write and compact. A watch on that member then delivers every event or
/// reports a compaction, and the store continues in both cases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_behind_compaction_misses_no_event() {
    let members = Member::three();
    let others = open(&members.iter().collect::<Vec<_>>()).await;
    let start = create(&others, "a", "0").await;
    let cut_off = (leader(&members) + 1) % 3;
    let store = open(&[&members[cut_off]]).await;
    let mut watch = store.watch(things(), start).await.unwrap();
    members[cut_off].freeze();
    let remaining: Vec<&Member> =
        members.iter().enumerate().filter(|(n, _)| *n != cut_off).map(|(_, m)| m).collect();
    let others = open(&remaining).await;
    let mut end = start;
    for n in 1..=20 {
        end = insist(&others, &n.to_string(), end).await;
    }
    others.compact(end).await.unwrap();
    members[cut_off].thaw();

    let mut complete_through = start;
    while complete_through < end {
        match tokio::time::timeout(Duration::from_secs(30), watch.next()).await.unwrap() {
            Ok(batch) => {
                for event in batch.events {
                    assert_eq!(event.revision, complete_through.next(), "an event is left out");
                    complete_through = event.revision;
                }
                assert_eq!(
                    batch.complete_through_revision, complete_through,
                    "progress without its events"
                );
            }
            Err(WatchError::Compacted { after, floor }) => {
                assert_eq!((after, floor), (complete_through, end));
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let mut watch = store.watch(things(), end).await.unwrap();
    let last = create(&others, "b", "1").await;
    let told = events(&mut *watch, end, last).await;
    assert_eq!(told.iter().map(|event| event.revision).collect::<Vec<_>>(), [last]);
}

/// Retries a write until it succeeds, and returns the revision of the key.
async fn insist(store: &EtcdStore, text: &str, mut expect: Revision) -> Revision {
    let began = std::time::Instant::now();
    loop {
        match store.put(put("a", text, ExpectedKeyState::At(expect))).await {
            Ok(revision) => return revision,
            Err(store::WriteError::Conflict { current }) => {
                // An earlier attempt was applied without being acknowledged.
                let current = current.unwrap();
                if current.value == text.as_bytes() {
                    return current.mod_rev;
                }
                expect = current.mod_rev;
            }
            Err(error) => assert!(is_unsure(&error), "{error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(30), "writes do not resume");
        // waits for a real process: etcd, which accepts writes again
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
