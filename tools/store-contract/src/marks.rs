//! Checks of marks: keys that are written together with a write of another key.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use store::{
    At, Change, Delete, Entry, Expect, Key, Prefix, Put, Revision, SharedRevision, Store,
    WriteError,
};

use crate::Harness;
use crate::shorthand::{create, events, get, history, key, list_all, next, things, update, value};

/// The key of the mark, which is outside of the prefix of the objects.
fn mark_key() -> Key {
    Key::new("/registry/marks/things").unwrap()
}

fn mark(expect: Option<Expect>) -> Option<SharedRevision> {
    Some(SharedRevision::Bump { key: mark_key(), expect })
}

fn put(name: &str, text: &str, expect: Expect, mark: Option<SharedRevision>) -> Put {
    Put { key: key(name), value: value(text), expect, ttl: None, shared_revision: mark }
}

fn delete(name: &str, at: Revision, mark: Option<SharedRevision>) -> Delete {
    Delete { key: key(name), expect: Expect::At(at), shared_revision: mark }
}

fn moved_mark(current: Option<Entry>) -> WriteError {
    WriteError::ConditionFailed { key: mark_key(), current }
}

async fn marked(store: &dyn Store, at: At) -> Option<Entry> {
    store.get(&mark_key(), at).await.unwrap().entry
}

/// Each write that names the mark writes it in the same revision, and no other write does.
pub async fn a_mark_moves_with_its_writes_only(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = create(&store, "unmarked", "1").await;
    assert_eq!(marked(&store, At::Newest).await, None);
    let made = store.put(put("a", "1", Expect::Absent, mark(None))).await.unwrap();
    assert_eq!(made, start.next(), "one revision for both");
    let first = Entry { value: value(""), mod_rev: made, create_rev: made };
    assert_eq!(marked(&store, At::Newest).await, Some(first.clone()));
    let other = update(&store, "unmarked", "2", start).await;
    assert_eq!(marked(&store, At::Newest).await, Some(first.clone()));
    let updated = store.put(put("a", "2", Expect::At(made), mark(None))).await.unwrap();
    assert_eq!(updated, other.next());
    let second = Entry { mod_rev: updated, ..first.clone() };
    assert_eq!(marked(&store, At::Newest).await, Some(second.clone()));
    let gone = store.delete(delete("a", updated, mark(None))).await.unwrap();
    assert_eq!(gone, updated.next());
    let third = Entry { mod_rev: gone, ..first.clone() };
    assert_eq!(marked(&store, At::Newest).await, Some(third.clone()));
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, None);
    assert_eq!(store.current_rev().await, Ok(gone));
    // Older states have the mark at its older revision.
    for (at, want) in
        [(start, None), (made, Some(&first)), (other, Some(&first)), (updated, Some(&second))]
    {
        assert_eq!(marked(&store, At::Exactly(at)).await.as_ref(), want, "at {at}");
    }
    store.compact(gone).await.unwrap();
    assert_eq!(marked(&store, At::Newest).await, Some(third));
}

/// A write that expects the mark at another revision is refused with its own error, and changes nothing.
pub async fn a_moved_mark_refuses_writes(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let expecting = |at: Revision| mark(Some(Expect::At(at)));
    let unmoved = store.put(put("a", "1", Expect::Absent, expecting(start))).await;
    assert_eq!(unmoved, Err(moved_mark(None)));
    let absent = mark(Some(Expect::Absent));
    let made = store.put(put("a", "1", Expect::Absent, absent.clone())).await.unwrap();
    let moved = store.put(put("a", "2", Expect::At(made), expecting(made))).await.unwrap();

    let current = Some(Entry { value: value(""), mod_rev: moved, create_rev: made });
    let refused = Err(moved_mark(current.clone()));
    let wrong = [Revision::ZERO, made, moved.next(), Revision::new(u64::MAX)];
    for mark in wrong.map(expecting).into_iter().chain([absent]) {
        let create = put("b", "1", Expect::Absent, mark.clone());
        assert_eq!(store.put(create).await, refused, "{mark:?}");
        let update = put("a", "3", Expect::At(moved), mark.clone());
        assert_eq!(store.put(update).await, refused, "{mark:?}");
        assert_eq!(store.delete(delete("a", moved, mark.clone())).await, refused, "{mark:?}");
    }
    assert_eq!(marked(&store, At::Newest).await, current);
    assert_eq!(store.current_rev().await, Ok(moved));
    assert_eq!(history(&store, start).await.len(), 2);
    store.delete(delete("a", moved, expecting(moved))).await.unwrap();
}

/// A write that only requires the mark is refused like one that writes it, and leaves the mark unchanged.
pub async fn a_mark_is_kept_by_who_writes_something_else(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let kept = |expect| Some(SharedRevision::Unchanged { key: mark_key(), expect });
    let made = store.put(put("a", "1", Expect::Absent, kept(Expect::Absent))).await.unwrap();
    assert_eq!(made, start.next());
    assert_eq!(marked(&store, At::Newest).await, None);
    let moved = store.put(put("b", "1", Expect::Absent, mark(None))).await.unwrap();
    let current = Some(Entry { value: value(""), mod_rev: moved, create_rev: moved });
    let refused = Err(moved_mark(current.clone()));
    for expect in [Expect::Absent, Expect::At(made), Expect::At(moved.next())] {
        let create = put("c", "1", Expect::Absent, kept(expect));
        assert_eq!(store.put(create).await, refused, "{expect:?}");
        let update = put("a", "2", Expect::At(made), kept(expect));
        assert_eq!(store.put(update).await, refused, "{expect:?}");
        assert_eq!(store.delete(delete("a", made, kept(expect))).await, refused, "{expect:?}");
    }
    assert_eq!(store.current_rev().await, Ok(moved));
    let right = kept(Expect::At(moved));
    let updated = store.put(put("a", "2", Expect::At(made), right.clone())).await.unwrap();
    assert_eq!(marked(&store, At::Newest).await, current);
    let gone = store.delete(delete("a", updated, right)).await.unwrap();
    assert_eq!(marked(&store, At::Newest).await, current);
    let told: Vec<_> = history(&store, start).await;
    let revisions: Vec<Revision> = told.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [made, moved, updated, gone]);
}

/// A conflict of the key is reported before a conflict of the mark, so that a writer learns which race it
/// lost.
pub async fn a_conflict_goes_before_a_moved_mark(harness: &impl Harness) {
    let store = harness.fresh().await;
    let made = store.put(put("a", "1", Expect::Absent, mark(None))).await.unwrap();
    let current = Some(Entry { value: value("1"), mod_rev: made, create_rev: made });
    let conflict = Err(WriteError::Conflict { current });
    for mark in [None, mark(None), mark(Some(Expect::Absent)), mark(Some(Expect::At(made)))] {
        let again = put("a", "2", Expect::Absent, mark.clone());
        assert_eq!(store.put(again).await, conflict, "{mark:?}");
        let never = Delete { key: key("a"), expect: Expect::Absent, shared_revision: mark.clone() };
        assert_eq!(store.delete(never).await, conflict, "{mark:?}");
        let nothing =
            Delete { key: key("b"), expect: Expect::Absent, shared_revision: mark.clone() };
        let absent = Err(WriteError::Conflict { current: None });
        assert_eq!(store.delete(nothing).await, absent, "{mark:?}");
    }
    assert_eq!(marked(&store, At::Newest).await.map(|entry| entry.mod_rev), Some(made));
    assert_eq!(store.current_rev().await, Ok(made));
}

/// A write of the mark itself changes its revision.
pub async fn a_mark_may_be_the_key_that_is_written(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let own = |expect| Some(SharedRevision::Bump { key: key("a"), expect });
    let made = store.put(put("a", "1", Expect::Absent, own(None))).await.unwrap();
    let entry = Entry { value: value("1"), mod_rev: made, create_rev: made };
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, Some(entry.clone()));
    let mistaken = put("a", "2", Expect::At(made), own(Some(Expect::Absent)));
    let moved = Err(WriteError::ConditionFailed { key: key("a"), current: Some(entry) });
    assert_eq!(store.put(mistaken).await, moved);
    let right = put("a", "2", Expect::At(made), own(Some(Expect::At(made))));
    let updated = store.put(right).await.unwrap();
    let gone = store.delete(delete("a", updated, own(None))).await.unwrap();
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, None);
    let told = history(&store, start).await;
    let revisions: Vec<Revision> = told.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [made, updated, gone]);
}

/// Both events have the revision of the write and come in one batch, the write first. A watch of one of the
/// two keys gets only its event.
pub async fn a_mark_is_told_with_its_write(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let all = Prefix::new("/registry/").unwrap();
    let marks = Prefix::new("/registry/marks/").unwrap();
    let mut watch = store.watch(all.clone(), start).await.unwrap();
    let made = store.put(put("a", "1", Expect::Absent, mark(None))).await.unwrap();
    // The watch yields as soon as there is an event, so the first batch is this write.
    let batch = next(&mut *watch).await.unwrap();
    let first = Entry { value: value(""), mod_rev: made, create_rev: made };
    let told: Vec<_> = batch.events.iter().map(|event| (&event.key, event.revision)).collect();
    assert_eq!(told, [(&key("a"), made), (&mark_key(), made)]);
    assert_eq!(batch.events[1].change, Change::Create(first.clone()));

    let gone = store.delete(delete("a", made, mark(None))).await.unwrap();
    let second = Entry { mod_rev: gone, ..first.clone() };
    let told = events(&mut *watch, made, gone).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!((&told[0].key, told[0].revision), (&key("a"), gone));
    assert!(matches!(told[0].change, Change::Delete { .. }), "{told:?}");
    assert_eq!((&told[1].key, told[1].revision), (&mark_key(), gone));
    assert_eq!(told[1].change, Change::Update { entry: second, prev: first });

    for (prefix, want) in [(things(), key("a")), (marks, mark_key())] {
        let mut watch = store.watch(prefix, start).await.unwrap();
        let told = events(&mut *watch, start, gone).await;
        let told: Vec<_> = told.into_iter().map(|event| (event.key, event.revision)).collect();
        assert_eq!(told, [(want.clone(), made), (want, gone)]);
    }
}

/// A write wakes a watch of the mark alone, which does not wait for the next progress.
pub async fn a_watch_of_the_mark_wakes_for_its_writes(harness: &impl Harness) {
    /// Waiting for progress each time would take twice the allowed time.
    const N_WRITES: u32 = 20;
    let store = harness.fresh().await;
    let mut last = store.current_rev().await.unwrap();
    let marks = Prefix::new("/registry/marks/").unwrap();
    let mut watch = store.watch(marks, last).await.unwrap();
    let rounds = async {
        for n in 0..N_WRITES {
            let write = put(&n.to_string(), "1", Expect::Absent, mark(None));
            let (made, told) = tokio::join!(store.put(write), watch.next());
            last = made.unwrap();
            let told = told.unwrap().events;
            assert_eq!(told.iter().map(|event| event.revision).collect::<Vec<_>>(), [last]);
        }
    };
    let time_max = Duration::from_millis(500) * N_WRITES;
    tokio::time::timeout(time_max, rounds).await.expect("the watch sleeps on");
}

/// A batch never ends between a write and its mark.
pub async fn many_marks_are_told_in_whole_revisions(harness: &impl Harness) {
    /// More events than a batch of either engine holds, and an odd number before the marks.
    const N_WRITES: u64 = 300;
    let store = Arc::new(harness.fresh().await);
    let start = create(&*store, "odd", "1").await;
    let mut writers = Vec::new();
    for writer in 0..10 {
        let store = store.clone();
        writers.push(tokio::spawn(async move {
            for n in 0..N_WRITES / 10 {
                let name = format!("{writer}-{n}");
                store.put(put(&name, "1", Expect::Absent, mark(None))).await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let end = Revision::new(start.number() + N_WRITES);
    assert_eq!(store.current_rev().await, Ok(end));
    for back in [0, 1] {
        let after = Revision::new(start.number() - back);
        let all = Prefix::new("/registry/").unwrap();
        let mut watch = store.watch(all, after).await.unwrap();
        let told = events(&mut *watch, after, end).await;
        let n_marks = told.iter().filter(|event| event.key == mark_key()).count() as u64;
        assert_eq!((told.len() as u64, n_marks), (2 * N_WRITES + back, N_WRITES));
        for pair in told[back as usize..].chunks(2) {
            assert_eq!(pair[0].revision, pair[1].revision);
            assert_eq!(pair[1].key, mark_key());
        }
    }
}

/// The purpose of a mark: writers that read all keys before they write one. The state that each read must be
/// the one just before its write.
pub async fn writes_on_an_expected_mark_are_serial(harness: &impl Harness) {
    const N_WRITERS: usize = 6;
    const N_WRITES: usize = 8;
    let store = Arc::new(harness.fresh().await);
    let mut writers = Vec::new();
    for writer in 0..N_WRITERS {
        let store = store.clone();
        writers.push(tokio::spawn(async move {
            let mut n_moved = 0;
            for n in 0..N_WRITES {
                n_moved += number_next(&*store, &format!("{writer}-{n}")).await;
            }
            n_moved
        }));
    }
    let mut n_moved = 0;
    for writer in writers {
        n_moved += writer.await.unwrap();
    }
    assert!(n_moved > 0, "nobody was in anybody's way");
    let page = list_all(&*store, At::Newest).await;
    let numbers: BTreeSet<usize> = page
        .items
        .iter()
        .map(|item| String::from_utf8(item.entry.value.to_vec()).unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, (0..N_WRITERS * N_WRITES).collect(), "a number is given twice");
}

/// Writes a key whose value is the number of keys, and returns how often another writer was faster.
async fn number_next(store: &dyn Store, name: &str) -> usize {
    for n_moved in 0.. {
        let expect = marked(store, At::Newest).await.map(|entry| Expect::At(entry.mod_rev));
        let n_keys = list_all(store, At::Newest).await.items.len().to_string();
        let mark = mark(Some(expect.unwrap_or(Expect::Absent)));
        match store.put(put(name, &n_keys, Expect::Absent, mark)).await {
            Ok(_) => return n_moved,
            Err(WriteError::ConditionFailed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the loop ends with a write")
}

/// A mark has no time to live, whatever the write has and whatever the key had before. Expiry does not write
/// a mark.
pub async fn a_mark_neither_expires_nor_moves_by_expiry(harness: &impl Harness) {
    let store = harness.fresh().await;
    let ttl = Some(Duration::from_secs(2));
    // The mark is at first a key with a time to live.
    let short = Put { key: mark_key(), ttl, ..put("a", "1", Expect::Absent, None) };
    store.put(short).await.unwrap();
    let made = store.put(Put { ttl, ..put("a", "1", Expect::Absent, mark(None)) }).await.unwrap();
    harness.pass(&store, Duration::from_secs(12)).await;
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, None);
    assert_eq!(marked(&store, At::Newest).await.map(|entry| entry.mod_rev), Some(made));
    assert_eq!(store.current_rev().await, Ok(made.next()));
}
