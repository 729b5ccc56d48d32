//! Checks of compaction and its floor.

use store::{At, ReadError, Revision, Store, WatchError};

use crate::Harness;
use crate::shorthand::{create, delete, get, history, list_all, next, pairs, text, things, update};

/// States before the floor are gone. The floor, later states and the newest state are unchanged.
pub async fn compaction_removes_only_states_below_the_floor(harness: &impl Harness) {
    let store = harness.fresh().await;
    let a = create(&store, "a", "1").await;
    let b = create(&store, "b", "1").await;
    let a2 = update(&store, "a", "2", a).await;
    delete(&store, "b", b).await;
    let a3 = update(&store, "a", "3", a2).await;
    let end = create(&store, "c", "1").await;
    let newest = list_all(&store, At::Newest).await;
    let at_floor = list_all(&store, At::Exactly(a2)).await;
    let log = history(&store, a2).await;

    assert_eq!(store.compact(a2).await, Ok(a2));
    assert_eq!(store.compaction_floor().await, Ok(a2));
    assert_eq!(store.current_rev().await, Ok(end));
    assert_eq!(list_all(&store, At::Newest).await, newest);
    assert_eq!(list_all(&store, At::Exactly(a2)).await, at_floor);
    assert_eq!(history(&store, a2).await, log);
    let compacted = ReadError::Compacted { requested: b, floor: a2 };
    assert_eq!(get(&store, "a", At::Exactly(b)).await, Err(compacted.clone()));
    let page = crate::shorthand::list(&store, std::ops::Bound::Unbounded, None, At::Exactly(b));
    assert_eq!(page.await, Err(compacted));

    // After compaction up to the newest revision, only the newest state can be read.
    assert_eq!(store.compact(end).await, Ok(end));
    assert_eq!(list_all(&store, At::Newest).await, newest);
    assert_eq!(list_all(&store, At::Exactly(end)).await, newest);
    assert_eq!(text(&store, "a").await.as_deref(), Some("3"));
    let a4 = update(&store, "a", "4", a3).await;
    assert_eq!(a4, end.next());
    assert_eq!(pairs(&list_all(&store, At::Exactly(end)).await), pairs(&newest));
    assert_eq!(history(&store, end).await.len(), 1);
}

/// Compaction refuses a revision that does not exist yet.
pub async fn compacting_a_future_revision_is_refused(harness: &impl Harness) {
    let store = harness.fresh().await;
    let current = create(&store, "a", "1").await;
    let floor = store.compaction_floor().await.unwrap();
    assert!(floor <= current);
    let requested = current.next();
    assert_eq!(store.compact(requested).await, Err(ReadError::Future { requested, current }));
    assert_eq!(store.compaction_floor().await, Ok(floor));
}

/// A second compaction never lowers the floor.
pub async fn compaction_never_lowers_the_floor(harness: &impl Harness) {
    let store = harness.fresh().await;
    let first = create(&store, "a", "1").await;
    let second = update(&store, "a", "2", first).await;
    assert_eq!(store.compact(second).await, Ok(second));
    assert_eq!(store.compact(second).await, Ok(second));
    assert_eq!(store.compact(first).await, Ok(second));
    assert_eq!(store.compaction_floor().await, Ok(second));
}

/// A watch ends instead of leaving out events, whether it starts below the floor or fell behind.
pub async fn compacting_ends_watches_behind_the_floor(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    for name in ["a", "b", "c", "d"] {
        create(&store, name, "1").await;
    }
    let floor = store.current_rev().await.unwrap();
    store.compact(floor).await.unwrap();
    let error = match store.watch(things(), start).await {
        Ok(mut watch) => next(&mut *watch).await.map(|_| ()).unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error, WatchError::Compacted { after: start, floor });
    let two_below = Revision::new(floor.as_u64() - 2);
    let error = match store.watch(things(), two_below).await {
        Ok(mut watch) => next(&mut *watch).await.map(|_| ()).unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error, WatchError::Compacted { after: two_below, floor });
    // A watch from the floor itself misses nothing.
    create(&store, "e", "1").await;
    assert_eq!(history(&store, floor).await.len(), 1);
}
