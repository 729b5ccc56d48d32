//! Checks of puts and deletes.

use bytes::Bytes;
use store::{
    At, Entry, ExpectedKeyState, Put, ReadError, Store, VALUE_BYTES_MAX, WatchError, WriteError,
};

use crate::Harness;
use crate::shorthand::{
    create, delete, get, history, key, next, put, text, things, try_delete, update, value,
};

/// All keys share one counter, which each write increments by one.
pub async fn each_write_makes_the_next_revision(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let first = create(&store, "a", "1").await;
    assert_eq!(first, start.next());
    let second = create(&store, "b", "1").await;
    assert_eq!(second, first.next());
    let third = update(&store, "a", "2", first).await;
    assert_eq!(third, second.next());
    let fourth = delete(&store, "b", second).await;
    assert_eq!(fourth, third.next());
    assert_eq!(store.current_rev().await, Ok(fourth));
    // A write of the same bytes is a write like any other.
    let fifth = update(&store, "a", "2", third).await;
    assert_eq!(fifth, fourth.next());
}

/// A create of an existing key fails with the existing entry.
pub async fn creating_an_existing_key_fails(harness: &impl Harness) {
    let store = harness.fresh().await;
    let made = create(&store, "a", "1").await;
    let current = Some(Entry { value: value("1"), mod_rev: made, create_rev: made });
    let again = put(&store, "a", "2", ExpectedKeyState::Absent).await;
    assert_eq!(again, Err(WriteError::Conflict { current }));
    assert_eq!(text(&store, "a").await.as_deref(), Some("1"));
}

/// An update that expects another version fails with the current one.
pub async fn updating_another_version_fails(harness: &impl Harness) {
    let store = harness.fresh().await;
    let absent =
        put(&store, "a", "1", ExpectedKeyState::At(store.current_rev().await.unwrap())).await;
    assert_eq!(absent, Err(WriteError::Conflict { current: None }));
    let first = create(&store, "a", "1").await;
    let second = update(&store, "a", "2", first).await;
    let current = Some(Entry { value: value("2"), mod_rev: second, create_rev: first });
    for wrong in [first, second.next()] {
        let stale = put(&store, "a", "3", ExpectedKeyState::At(wrong)).await;
        assert_eq!(stale, Err(WriteError::Conflict { current: current.clone() }), "at {wrong}");
    }
    assert_eq!(text(&store, "a").await.as_deref(), Some("2"));
}

/// A delete follows the same rule, and an absent key cannot be deleted.
pub async fn deleting_another_version_fails(harness: &impl Harness) {
    let store = harness.fresh().await;
    let first = create(&store, "a", "1").await;
    let second = update(&store, "a", "2", first).await;
    let current = Some(Entry { value: value("2"), mod_rev: second, create_rev: first });
    for wrong in [ExpectedKeyState::At(first), ExpectedKeyState::Absent] {
        let stale = try_delete(&store, "a", wrong).await;
        assert_eq!(stale, Err(WriteError::Conflict { current: current.clone() }), "{wrong:?}");
    }
    delete(&store, "a", second).await;
    for gone in [ExpectedKeyState::At(second), ExpectedKeyState::Absent] {
        let again = try_delete(&store, "a", gone).await;
        assert_eq!(again, Err(WriteError::Conflict { current: None }), "{gone:?}");
    }
}

/// A failed write makes no revision and no event.
pub async fn failed_writes_use_no_revision(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let made = create(&store, "a", "1").await;
    let big = Bytes::from(vec![b'x'; VALUE_BYTES_MAX + 1]);
    put(&store, "a", "2", ExpectedKeyState::Absent).await.unwrap_err();
    put(&store, "a", "2", ExpectedKeyState::At(made.next())).await.unwrap_err();
    put(&store, "b", "2", ExpectedKeyState::At(made)).await.unwrap_err();
    try_delete(&store, "b", ExpectedKeyState::At(made)).await.unwrap_err();
    try_delete(&store, "a", ExpectedKeyState::At(start)).await.unwrap_err();
    let (key, expect) = (key("c"), ExpectedKeyState::Absent);
    let too_big =
        Put { key, value: big, expected_state: expect, ttl: None, key_group_revision_action: None };
    store.put(too_big).await.unwrap_err();
    assert_eq!(store.current_rev().await, Ok(made));
    assert_eq!(create(&store, "b", "1").await, made.next());
    assert_eq!(history(&store, start).await.len(), 2);
}

/// A key that is created again after its deletion has a new `create_rev`.
pub async fn a_recreated_key_has_a_new_create_revision(harness: &impl Harness) {
    let store = harness.fresh().await;
    let first = create(&store, "a", "1").await;
    delete(&store, "a", first).await;
    let again = create(&store, "a", "1").await;
    let updated = update(&store, "a", "2", again).await;
    let entry = get(&store, "a", At::Newest).await.unwrap().entry.unwrap();
    assert_eq!((entry.create_rev, entry.mod_rev), (again, updated));
}

/// A value of the largest size is stored, one more byte is refused, and an empty value is valid.
pub async fn value_size_is_limited(harness: &impl Harness) {
    let store = harness.fresh().await;
    let of_size = |bytes: usize| Put {
        key: key(&bytes.to_string()),
        value: (0..bytes).map(|at| (at % 251) as u8).collect(),
        expected_state: ExpectedKeyState::Absent,
        ttl: None,
        key_group_revision_action: None,
    };
    for bytes in [0, 1, VALUE_BYTES_MAX] {
        let put = of_size(bytes);
        store.put(put.clone()).await.unwrap();
        let got = store.get(&put.key, At::Newest).await.unwrap();
        assert!(got.entry.unwrap().value == put.value, "{bytes} bytes");
    }
    let bytes = VALUE_BYTES_MAX + 1;
    assert_eq!(store.put(of_size(bytes)).await, Err(WriteError::ValueTooLarge { bytes }));
}

/// After closing, every operation fails and none hangs.
pub async fn a_closed_store_fails_every_operation(harness: &impl Harness) {
    let store = harness.fresh().await;
    let made = create(&store, "a", "1").await;
    let mut watch = store.watch(things(), made).await.unwrap();
    store.close().await;
    store.close().await;
    assert!(store.check_health().await.is_err());
    let write = put(&store, "b", "1", ExpectedKeyState::Absent).await;
    assert!(matches!(write, Err(WriteError::Unavailable(_))), "{write:?}");
    let read = get(&store, "a", At::Newest).await;
    assert!(matches!(read, Err(ReadError::Unavailable(_))), "{read:?}");
    for _ in 0..2 {
        let delivered = next(&mut *watch).await;
        assert!(matches!(delivered, Err(WatchError::Unavailable(_))), "{delivered:?}");
    }
}
