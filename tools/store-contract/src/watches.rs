//! Checks of watches, their events and their progress.

use std::time::Duration;

use store::{Change, Entry, Event, PROGRESS_SECONDS_MAX, Prefix, Revision, Store, WakeOrder};

use crate::Harness;
use crate::shorthand::{create, delete, events, history, key, next, text, things, update, value};

/// A watch from any revision yields exactly the later part of the log.
pub async fn a_watch_delivers_all_events_after_its_revision(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let a = create(&store, "a", "1").await;
    let b = create(&store, "b", "1").await;
    let a2 = update(&store, "a", "2", a).await;
    delete(&store, "b", b).await;
    create(&store, "b", "2").await;
    let end = delete(&store, "a", a2).await;
    let log = history(&store, start).await;
    assert_eq!(log.len(), 6);
    for (skipped, after) in (start.as_u64()..=end.as_u64()).map(Revision::new).enumerate() {
        assert_eq!(history(&store, after).await, log[skipped..], "after {after}");
    }
}

/// Each event has the version before and the version after.
pub async fn events_carry_both_versions(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let made = create(&store, "a", "1").await;
    let updated = update(&store, "a", "2", made).await;
    let gone = delete(&store, "a", updated).await;
    let first = Entry { value: value("1"), mod_rev: made, create_rev: made };
    let second = Entry { value: value("2"), mod_rev: updated, create_rev: made };
    let event = |revision, change| Event { key: key("a"), revision, change };
    assert_eq!(
        history(&store, start).await,
        [
            event(made, Change::Create(first.clone())),
            event(updated, Change::Update { entry: second.clone(), prev: first }),
            event(gone, Change::Delete { prev: second }),
        ]
    );
}

/// A watch does not yield events of other prefixes, but they count as progress.
pub async fn a_watch_delivers_only_its_prefix(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    create(&store, "team-a/x", "1").await;
    create(&store, "team-b/x", "1").await;
    create(&store, "team-ab", "1").await;
    create(&store, "team-a/y", "1").await;
    let end = create(&store, "team-b/y", "1").await;
    let prefix = Prefix::new("/registry/things/team-a/").unwrap();
    let mut watch = store.watch(prefix, start).await.unwrap();
    harness.pass(&store, Duration::from_secs(PROGRESS_SECONDS_MAX)).await;
    let delivered = events(&mut *watch, start, end).await;
    let keys: Vec<&str> = delivered.iter().map(|event| event.key.as_str()).collect();
    assert_eq!(keys, ["/registry/things/team-a/x", "/registry/things/team-a/y"]);
}

/// A write wakes each of several waiting watches.
pub async fn watches_wake_for_new_writes(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let mut watches = Vec::new();
    let (at_once, in_group) = (WakeOrder::AtOnce, WakeOrder::InGroup);
    for order in [at_once, in_group, at_once, in_group] {
        let mut watch = store.watch_with_wake_order(things(), start, order).await.unwrap();
        watches.push(tokio::spawn(async move {
            events(&mut *watch, start, Revision::new(start.as_u64() + 2)).await
        }));
    }
    tokio::task::yield_now().await;
    let made = create(&store, "a", "1").await;
    update(&store, "a", "2", made).await;
    let log = history(&store, start).await;
    for watch in watches {
        assert_eq!(watch.await.unwrap(), log);
    }
}

/// A watch from a future revision yields nothing until then.
pub async fn a_watch_from_a_future_revision_waits(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let after = Revision::new(start.as_u64() + 2);
    let mut watch = store.watch(things(), after).await.unwrap();
    for name in ["a", "b", "c", "d"] {
        create(&store, name, "1").await;
    }
    let end = Revision::new(start.as_u64() + 4);
    let delivered = events(&mut *watch, after, end).await;
    let keys: Vec<&str> = delivered.iter().map(|event| event.key.as_str()).collect();
    assert_eq!(keys, ["/registry/things/c", "/registry/things/d"]);
}

/// A watch without events still yields the revision of the store, for bookmarks.
pub async fn an_idle_watch_reports_progress(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let elsewhere = Prefix::new("/registry/other/").unwrap();
    let mut watch = store.watch(elsewhere, start).await.unwrap();
    let end = create(&store, "a", "1").await;
    harness.pass(&store, Duration::from_secs(PROGRESS_SECONDS_MAX)).await;
    let mut complete_through = start;
    while complete_through < end {
        let batch = next(&mut *watch).await.unwrap();
        assert_eq!(batch.events, []);
        assert!(batch.complete_through_revision > complete_through, "a batch without news");
        complete_through = batch.complete_through_revision;
    }
    assert_eq!(complete_through, end);
}

/// A wait with a time limit, as servers use it, neither loses nor repeats an event.
pub async fn dropping_a_wait_loses_no_event(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let mut watch = store.watch(things(), start).await.unwrap();
    let mut delivered = Vec::new();
    for n in 0..20_u32 {
        // Some of these waits are dropped while the write is in progress.
        let wait = tokio::time::timeout(Duration::from_micros(u64::from(n) * 50), watch.next());
        let name = n.to_string();
        let (batch, _) = tokio::join!(wait, create(&store, &name, &name));
        if let Ok(batch) = batch {
            delivered.extend(batch.unwrap().events);
        }
    }
    let end = store.current_rev().await.unwrap();
    let after = delivered.last().map_or(start, |event: &Event| event.revision);
    if after < end {
        delivered.extend(events(&mut *watch, after, end).await);
    }
    assert_eq!(delivered, history(&store, start).await);
    assert_eq!(text(&store, "19").await.as_deref(), Some("19"));
}
