//! Checks of keys with a time to live.

use std::time::Duration;

use store::{Change, ExpectedKeyState, Put, Revision, Store};

use crate::Harness;
use crate::shorthand::{create, delete, events, key, text, things, value};

/// The longest time between the end of a time to live and the deletion of the key. Engines may round up and be
/// late.
const EXPIRY_DELAY_MAX: Duration = Duration::from_secs(10);

fn with_ttl(name: &str, seconds: u64, expect: ExpectedKeyState) -> Put {
    let ttl = Some(Duration::from_secs(seconds));
    Put {
        key: key(name),
        value: value("1"),
        expected_state: expect,
        ttl,
        key_group_revision_action: None,
    }
}

/// Expiry is an ordinary delete: it has a revision and an event with the last version, and it does not come
/// too early.
pub async fn a_key_expires_with_an_event(harness: &impl Harness) {
    let store = harness.fresh().await;
    let made = store.put(with_ttl("short", 5, ExpectedKeyState::Absent)).await.unwrap();
    let kept = create(&store, "kept", "1").await;
    let mut watch = store.watch(things(), kept).await.unwrap();
    harness.pass(&store, Duration::from_secs(3)).await;
    assert_eq!(text(&store, "short").await.as_deref(), Some("1"));
    harness.pass(&store, Duration::from_secs(2) + EXPIRY_DELAY_MAX).await;
    assert_eq!(text(&store, "short").await, None);
    assert_eq!(text(&store, "kept").await.as_deref(), Some("1"));
    let delivered = events(&mut *watch, kept, kept.next()).await;
    assert_eq!(delivered.len(), 1);
    assert_eq!((&delivered[0].key, delivered[0].revision), (&key("short"), kept.next()));
    let Change::Delete { prev } = &delivered[0].change else { panic!("{delivered:?}") };
    assert_eq!((prev.mod_rev, &prev.value), (made, &value("1")));
}

/// Each write starts the time to live again. Heartbeats rely on this.
pub async fn renewing_a_key_restarts_its_ttl(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let mut expect = ExpectedKeyState::Absent;
    let mut last = start;
    for _ in 0..5 {
        last = store.put(with_ttl("a", 3, expect)).await.unwrap();
        expect = ExpectedKeyState::At(last);
        harness.pass(&store, Duration::from_secs(2)).await;
    }
    assert_eq!(last.as_u64(), start.as_u64() + 5, "the key was there all the time");
    harness.pass(&store, Duration::from_secs(1) + EXPIRY_DELAY_MAX).await;
    assert_eq!(text(&store, "a").await, None);
    assert_eq!(store.current_rev().await, Ok(last.next()));
}

/// The time to live belongs to a version, not to the key.
pub async fn a_write_without_ttl_removes_the_ttl(harness: &impl Harness) {
    let store = harness.fresh().await;
    let made = store.put(with_ttl("a", 2, ExpectedKeyState::Absent)).await.unwrap();
    let updated = crate::shorthand::update(&store, "a", "2", made).await;
    let other = store.put(with_ttl("b", 2, ExpectedKeyState::Absent)).await.unwrap();
    delete(&store, "b", other).await;
    create(&store, "b", "2").await;
    harness.pass(&store, Duration::from_secs(2) + EXPIRY_DELAY_MAX).await;
    assert_eq!(text(&store, "a").await.as_deref(), Some("2"));
    assert_eq!(text(&store, "b").await.as_deref(), Some("2"));
    assert_eq!(store.current_rev().await, Ok(Revision::new(updated.as_u64() + 3)));
}
