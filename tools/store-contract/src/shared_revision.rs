//! Checks of shared revisions: keys whose revision a write of another key bumps.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use store::{
    At, Change, Delete, Entry, ExpectedKeyState, Key, KeyGroupRevisionAction, Prefix, Put,
    Revision, Store, WriteError,
};

use crate::Harness;
use crate::shorthand::{create, events, get, history, key, list_all, next, things, update, value};

/// The key of the shared revision, which is outside of the prefix of the objects.
fn shared_revision_key() -> Key {
    Key::new("/registry/shared/things").unwrap()
}

fn bump(expect: Option<ExpectedKeyState>) -> Option<KeyGroupRevisionAction> {
    Some(KeyGroupRevisionAction::Bump { key: shared_revision_key(), expect })
}

fn put(
    name: &str,
    text: &str,
    expect: ExpectedKeyState,
    shared_revision: Option<KeyGroupRevisionAction>,
) -> Put {
    Put {
        key: key(name),
        value: value(text),
        expected_state: expect,
        ttl: None,
        key_group_revision_action: shared_revision,
    }
}

fn delete(name: &str, at: Revision, shared_revision: Option<KeyGroupRevisionAction>) -> Delete {
    Delete {
        key: key(name),
        expected_state: ExpectedKeyState::At(at),
        key_group_revision_action: shared_revision,
    }
}

fn shared_revision_conflict(current: Option<Entry>) -> WriteError {
    WriteError::ConditionFailed { key: shared_revision_key(), current }
}

async fn shared_revision_entry(store: &dyn Store, at: At) -> Option<Entry> {
    store.get(&shared_revision_key(), at).await.unwrap().entry
}

/// A write that names the shared revision bumps it in the same revision, and no other write does.
pub async fn only_writes_that_name_a_shared_revision_bump_it(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = create(&store, "other", "1").await;
    assert_eq!(shared_revision_entry(&store, At::Newest).await, None);
    let made = store.put(put("a", "1", ExpectedKeyState::Absent, bump(None))).await.unwrap();
    assert_eq!(made, start.next(), "one revision for both");
    let first = Entry { value: value(""), mod_rev: made, create_rev: made };
    assert_eq!(shared_revision_entry(&store, At::Newest).await, Some(first.clone()));
    let other = update(&store, "other", "2", start).await;
    assert_eq!(shared_revision_entry(&store, At::Newest).await, Some(first.clone()));
    let updated = store.put(put("a", "2", ExpectedKeyState::At(made), bump(None))).await.unwrap();
    assert_eq!(updated, other.next());
    let second = Entry { mod_rev: updated, ..first.clone() };
    assert_eq!(shared_revision_entry(&store, At::Newest).await, Some(second.clone()));
    let gone = store.delete(delete("a", updated, bump(None))).await.unwrap();
    assert_eq!(gone, updated.next());
    let third = Entry { mod_rev: gone, ..first.clone() };
    assert_eq!(shared_revision_entry(&store, At::Newest).await, Some(third.clone()));
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, None);
    assert_eq!(store.current_rev().await, Ok(gone));
    // In older states the shared revision has its older value.
    for (at, want) in
        [(start, None), (made, Some(&first)), (other, Some(&first)), (updated, Some(&second))]
    {
        assert_eq!(shared_revision_entry(&store, At::Exactly(at)).await.as_ref(), want, "at {at}");
    }
    store.compact(gone).await.unwrap();
    assert_eq!(shared_revision_entry(&store, At::Newest).await, Some(third));
}

/// A write that expects another shared revision is refused with its own error, and changes nothing.
pub async fn a_changed_shared_revision_refuses_writes(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let expecting = |at: Revision| bump(Some(ExpectedKeyState::At(at)));
    let unmoved = store.put(put("a", "1", ExpectedKeyState::Absent, expecting(start))).await;
    assert_eq!(unmoved, Err(shared_revision_conflict(None)));
    let absent = bump(Some(ExpectedKeyState::Absent));
    let made = store.put(put("a", "1", ExpectedKeyState::Absent, absent.clone())).await.unwrap();
    let moved =
        store.put(put("a", "2", ExpectedKeyState::At(made), expecting(made))).await.unwrap();

    let current = Some(Entry { value: value(""), mod_rev: moved, create_rev: made });
    let refused = Err(shared_revision_conflict(current.clone()));
    let wrong = [Revision::ZERO, made, moved.next(), Revision::new(u64::MAX)];
    for shared_revision in wrong.map(expecting).into_iter().chain([absent]) {
        let create = put("b", "1", ExpectedKeyState::Absent, shared_revision.clone());
        assert_eq!(store.put(create).await, refused, "{shared_revision:?}");
        let update = put("a", "3", ExpectedKeyState::At(moved), shared_revision.clone());
        assert_eq!(store.put(update).await, refused, "{shared_revision:?}");
        assert_eq!(
            store.delete(delete("a", moved, shared_revision.clone())).await,
            refused,
            "{shared_revision:?}"
        );
    }
    assert_eq!(shared_revision_entry(&store, At::Newest).await, current);
    assert_eq!(store.current_rev().await, Ok(moved));
    assert_eq!(history(&store, start).await.len(), 2);
    store.delete(delete("a", moved, expecting(moved))).await.unwrap();
}

/// A write that only requires a shared revision is refused like a write that bumps it, and leaves it unchanged.
pub async fn requiring_a_shared_revision_does_not_bump_it(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let kept =
        |expect| Some(KeyGroupRevisionAction::Unchanged { key: shared_revision_key(), expect });
    let made = store
        .put(put("a", "1", ExpectedKeyState::Absent, kept(ExpectedKeyState::Absent)))
        .await
        .unwrap();
    assert_eq!(made, start.next());
    assert_eq!(shared_revision_entry(&store, At::Newest).await, None);
    let moved = store.put(put("b", "1", ExpectedKeyState::Absent, bump(None))).await.unwrap();
    let current = Some(Entry { value: value(""), mod_rev: moved, create_rev: moved });
    let refused = Err(shared_revision_conflict(current.clone()));
    for expect in
        [ExpectedKeyState::Absent, ExpectedKeyState::At(made), ExpectedKeyState::At(moved.next())]
    {
        let create = put("c", "1", ExpectedKeyState::Absent, kept(expect));
        assert_eq!(store.put(create).await, refused, "{expect:?}");
        let update = put("a", "2", ExpectedKeyState::At(made), kept(expect));
        assert_eq!(store.put(update).await, refused, "{expect:?}");
        assert_eq!(store.delete(delete("a", made, kept(expect))).await, refused, "{expect:?}");
    }
    assert_eq!(store.current_rev().await, Ok(moved));
    let right = kept(ExpectedKeyState::At(moved));
    let updated =
        store.put(put("a", "2", ExpectedKeyState::At(made), right.clone())).await.unwrap();
    assert_eq!(shared_revision_entry(&store, At::Newest).await, current);
    let gone = store.delete(delete("a", updated, right)).await.unwrap();
    assert_eq!(shared_revision_entry(&store, At::Newest).await, current);
    let delivered: Vec<_> = history(&store, start).await;
    let revisions: Vec<Revision> = delivered.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [made, moved, updated, gone]);
}

/// A conflict of the key is reported before a conflict of the shared revision, so that a writer learns which race
/// it lost.
pub async fn a_key_conflict_is_reported_before_a_changed_shared_revision(harness: &impl Harness) {
    let store = harness.fresh().await;
    let made = store.put(put("a", "1", ExpectedKeyState::Absent, bump(None))).await.unwrap();
    let current = Some(Entry { value: value("1"), mod_rev: made, create_rev: made });
    let conflict = Err(WriteError::Conflict { current });
    for shared_revision in [
        None,
        bump(None),
        bump(Some(ExpectedKeyState::Absent)),
        bump(Some(ExpectedKeyState::At(made))),
    ] {
        let again = put("a", "2", ExpectedKeyState::Absent, shared_revision.clone());
        assert_eq!(store.put(again).await, conflict, "{shared_revision:?}");
        let never = Delete {
            key: key("a"),
            expected_state: ExpectedKeyState::Absent,
            key_group_revision_action: shared_revision.clone(),
        };
        assert_eq!(store.delete(never).await, conflict, "{shared_revision:?}");
        let nothing = Delete {
            key: key("b"),
            expected_state: ExpectedKeyState::Absent,
            key_group_revision_action: shared_revision.clone(),
        };
        let absent = Err(WriteError::Conflict { current: None });
        assert_eq!(store.delete(nothing).await, absent, "{shared_revision:?}");
    }
    assert_eq!(
        shared_revision_entry(&store, At::Newest).await.map(|entry| entry.mod_rev),
        Some(made)
    );
    assert_eq!(store.current_rev().await, Ok(made));
}

/// A write of the key of the shared revision is itself the bump.
pub async fn a_write_may_bump_its_own_key(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let own = |expect| Some(KeyGroupRevisionAction::Bump { key: key("a"), expect });
    let made = store.put(put("a", "1", ExpectedKeyState::Absent, own(None))).await.unwrap();
    let entry = Entry { value: value("1"), mod_rev: made, create_rev: made };
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, Some(entry.clone()));
    let mistaken = put("a", "2", ExpectedKeyState::At(made), own(Some(ExpectedKeyState::Absent)));
    let moved = Err(WriteError::ConditionFailed { key: key("a"), current: Some(entry) });
    assert_eq!(store.put(mistaken).await, moved);
    let right = put("a", "2", ExpectedKeyState::At(made), own(Some(ExpectedKeyState::At(made))));
    let updated = store.put(right).await.unwrap();
    let gone = store.delete(delete("a", updated, own(None))).await.unwrap();
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, None);
    let delivered = history(&store, start).await;
    let revisions: Vec<Revision> = delivered.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [made, updated, gone]);
}

/// Both events have the revision of the write and come in one batch, the write first. A watch of one of the
/// two keys gets only its event.
pub async fn a_bump_and_its_write_are_one_batch(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let all = Prefix::new("/registry/").unwrap();
    let shared_revisions = Prefix::new("/registry/shared/").unwrap();
    let mut watch = store.watch(all.clone(), start).await.unwrap();
    let made = store.put(put("a", "1", ExpectedKeyState::Absent, bump(None))).await.unwrap();
    // The watch yields as soon as there is an event, so the first batch is this write.
    let batch = next(&mut *watch).await.unwrap();
    let first = Entry { value: value(""), mod_rev: made, create_rev: made };
    let delivered: Vec<_> = batch.events.iter().map(|event| (&event.key, event.revision)).collect();
    assert_eq!(delivered, [(&key("a"), made), (&shared_revision_key(), made)]);
    assert_eq!(batch.events[1].change, Change::Create(first.clone()));

    let gone = store.delete(delete("a", made, bump(None))).await.unwrap();
    let second = Entry { mod_rev: gone, ..first.clone() };
    let delivered = events(&mut *watch, made, gone).await;
    assert_eq!(delivered.len(), 2, "{delivered:?}");
    assert_eq!((&delivered[0].key, delivered[0].revision), (&key("a"), gone));
    assert!(matches!(delivered[0].change, Change::Delete { .. }), "{delivered:?}");
    assert_eq!((&delivered[1].key, delivered[1].revision), (&shared_revision_key(), gone));
    assert_eq!(delivered[1].change, Change::Update { entry: second, prev: first });

    for (prefix, want) in [(things(), key("a")), (shared_revisions, shared_revision_key())] {
        let mut watch = store.watch(prefix, start).await.unwrap();
        let delivered = events(&mut *watch, start, gone).await;
        let delivered: Vec<_> =
            delivered.into_iter().map(|event| (event.key, event.revision)).collect();
        assert_eq!(delivered, [(want.clone(), made), (want, gone)]);
    }
}

/// A bump wakes a watch of the shared revision alone, which does not wait for the next progress.
pub async fn a_bump_wakes_watches_of_the_shared_revision(harness: &impl Harness) {
    /// Waiting for progress each time would take twice the allowed time.
    const N_WRITES: u32 = 20;
    let store = harness.fresh().await;
    let mut last = store.current_rev().await.unwrap();
    let shared_revisions = Prefix::new("/registry/shared/").unwrap();
    let mut watch = store.watch(shared_revisions, last).await.unwrap();
    let rounds = async {
        for n in 0..N_WRITES {
            let write = put(&n.to_string(), "1", ExpectedKeyState::Absent, bump(None));
            let (made, delivered) = tokio::join!(store.put(write), watch.next());
            last = made.unwrap();
            let delivered = delivered.unwrap().events;
            assert_eq!(delivered.iter().map(|event| event.revision).collect::<Vec<_>>(), [last]);
        }
    };
    let time_max = Duration::from_millis(500) * N_WRITES;
    tokio::time::timeout(time_max, rounds).await.expect("the watch sleeps on");
}

/// A batch never ends between a write and its bump.
pub async fn batches_never_split_a_write_and_its_bump(harness: &impl Harness) {
    /// The number of events exceeds a batch of either engine, and an odd number of events precedes the bumps.
    const N_WRITES: u64 = 300;
    let store = Arc::new(harness.fresh().await);
    let start = create(&*store, "odd", "1").await;
    let mut writers = Vec::new();
    for writer in 0..10 {
        let store = store.clone();
        writers.push(tokio::spawn(async move {
            for n in 0..N_WRITES / 10 {
                let name = format!("{writer}-{n}");
                store.put(put(&name, "1", ExpectedKeyState::Absent, bump(None))).await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let end = Revision::new(start.as_u64() + N_WRITES);
    assert_eq!(store.current_rev().await, Ok(end));
    for back in [0, 1] {
        let after = Revision::new(start.as_u64() - back);
        let all = Prefix::new("/registry/").unwrap();
        let mut watch = store.watch(all, after).await.unwrap();
        let delivered = events(&mut *watch, after, end).await;
        let n_bumps =
            delivered.iter().filter(|event| event.key == shared_revision_key()).count() as u64;
        assert_eq!((delivered.len() as u64, n_bumps), (2 * N_WRITES + back, N_WRITES));
        for pair in delivered[back as usize..].chunks(2) {
            assert_eq!(pair[0].revision, pair[1].revision);
            assert_eq!(pair[1].key, shared_revision_key());
        }
    }
}

/// Writers that read all keys before they write one, which is the purpose of a shared revision. The state that
/// each writer read must be the one just before its write.
pub async fn writes_that_expect_a_shared_revision_are_serial(harness: &impl Harness) {
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
        let expect = shared_revision_entry(store, At::Newest)
            .await
            .map(|entry| ExpectedKeyState::At(entry.mod_rev));
        let n_keys = list_all(store, At::Newest).await.items.len().to_string();
        let shared_revision = bump(Some(expect.unwrap_or(ExpectedKeyState::Absent)));
        match store.put(put(name, &n_keys, ExpectedKeyState::Absent, shared_revision)).await {
            Ok(_) => return n_moved,
            Err(WriteError::ConditionFailed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the loop ends with a write")
}

/// A shared revision has no time to live, even if the write has one or the key had one before. Expiry does not
/// bump it.
pub async fn a_shared_revision_has_no_ttl_and_ignores_expiry(harness: &impl Harness) {
    let store = harness.fresh().await;
    let ttl = Some(Duration::from_secs(2));
    // The key of the shared revision first has a time to live.
    let short =
        Put { key: shared_revision_key(), ttl, ..put("a", "1", ExpectedKeyState::Absent, None) };
    store.put(short).await.unwrap();
    let made = store
        .put(Put { ttl, ..put("a", "1", ExpectedKeyState::Absent, bump(None)) })
        .await
        .unwrap();
    harness.pass(&store, Duration::from_secs(12)).await;
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, None);
    assert_eq!(
        shared_revision_entry(&store, At::Newest).await.map(|entry| entry.mod_rev),
        Some(made)
    );
    assert_eq!(store.current_rev().await, Ok(made.next()));
}
