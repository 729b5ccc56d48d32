//! Checks of gets, and of waiting for a revision.

use std::time::Duration;

use store::{At, Entry, GetResult, ReadError, Revision, Store};

use crate::Harness;
use crate::shorthand::{create, delete, get, update, value};

/// A key that was never written or was deleted has no entry; the answer has a revision anyway.
pub async fn absent_keys_have_no_entry(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    assert!(start >= Revision::FIRST);
    let absent = |revision| Ok(GetResult { entry: None, revision });
    assert_eq!(get(&store, "a", At::Newest).await, absent(start));
    let made = create(&store, "a", "1").await;
    let gone = delete(&store, "a", made).await;
    assert_eq!(get(&store, "a", At::Newest).await, absent(gone));
    // A key is different from another one that it is a prefix of.
    create(&store, "ab", "1").await;
    assert_eq!(get(&store, "a", At::Newest).await.unwrap().entry, None);
}

/// Every state since the floor can be read again.
pub async fn gets_at_a_revision_show_that_state(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let first = create(&store, "a", "1").await;
    let other = create(&store, "b", "x").await;
    let second = update(&store, "a", "2", first).await;
    let gone = delete(&store, "a", second).await;
    let version = |text, mod_rev| Entry { value: value(text), mod_rev, create_rev: first };
    for (at, want) in [
        (start, None),
        (first, Some(version("1", first))),
        (other, Some(version("1", first))),
        (second, Some(version("2", second))),
        (gone, None),
    ] {
        let got = get(&store, "a", At::Exactly(at)).await.unwrap();
        assert_eq!(got.entry, want, "at {at}");
    }
    let beyond = get(&store, "a", At::Exactly(gone.next())).await;
    assert_eq!(beyond, Err(ReadError::Future { requested: gone.next(), current: gone }));
}

/// A read can require a state that is at least as new as a revision.
pub async fn gets_not_older_than_a_revision_refuse_the_future(harness: &impl Harness) {
    let store = harness.fresh().await;
    let made = create(&store, "a", "1").await;
    for at in [Revision::ZERO, made] {
        let got = get(&store, "a", At::NotOlderThan(at)).await.unwrap();
        assert!(got.revision >= at);
    }
    let own = get(&store, "a", At::NotOlderThan(made)).await.unwrap();
    assert_eq!(own.entry.map(|entry| entry.mod_rev), Some(made));
    let beyond = get(&store, "a", At::NotOlderThan(made.next())).await;
    assert_eq!(beyond, Err(ReadError::Future { requested: made.next(), current: made }));
}

/// A caller can wait for a revision that it knows from elsewhere.
pub async fn waiting_for_a_revision_ends_at_that_revision(harness: &impl Harness) {
    let store = harness.fresh().await;
    let current = store.current_rev().await.unwrap();
    assert_eq!(store.wait_for_revision(Revision::ZERO).await, Ok(current));
    assert_eq!(store.wait_for_revision(current).await, Ok(current));
    let early =
        tokio::time::timeout(Duration::from_millis(20), store.wait_for_revision(current.next()));
    assert!(early.await.is_err(), "nothing was written");
    let write = async {
        tokio::task::yield_now().await;
        create(&store, "a", "1").await
    };
    let (reached, made) = tokio::join!(store.wait_for_revision(current.next()), write);
    assert_eq!(reached, Ok(made));
}
