//! Checks of lists and their pages.

use std::num::NonZeroUsize;
use std::ops::Bound;

use store::{At, ExpectedKeyState, Key, ListRequest, Prefix, Put, ReadError, Store};

use crate::Harness;
use crate::shorthand::{create, delete, key, list, list_all, pairs, things, update, value, want};

/// Keys come in the order of their bytes, and keys outside of the prefix are not listed.
pub async fn lists_are_ordered_and_cover_their_prefix_only(harness: &impl Harness) {
    let store = harness.fresh().await;
    assert_eq!(pairs(&list_all(&store, At::Newest).await), want(&[]));
    for name in ["b", "a/b", "a-b", "a", "ä", "Z", "a/b/c"] {
        create(&store, name, name).await;
    }
    for beside in ["/registry/thing", "/registry/things", "/registry/things-2/a", "/registry/t/a"] {
        let key = Key::new(beside).unwrap();
        let (value, expect) = (value("x"), ExpectedKeyState::Absent);
        store
            .put(Put {
                key,
                value,
                expected_state: expect,
                ttl: None,
                key_group_revision_action: None,
            })
            .await
            .unwrap();
    }
    let page = list_all(&store, At::Newest).await;
    let names: Vec<String> = pairs(&page).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Z", "a", "a-b", "a/b", "a/b/c", "b", "ä"]);
    assert_eq!((page.n_remaining_items, Ok(page.revision)), (0, store.current_rev().await));
    let inner = Prefix::new("/registry/things/a/").unwrap();
    let page = store.list(&inner, ListRequest::default()).await.unwrap();
    let keys: Vec<&str> = page.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["/registry/things/a/b", "/registry/things/a/b/c"]);
}

/// Every state since the floor can be listed again, and the list has the requested revision.
pub async fn lists_at_a_revision_show_that_state(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let a = create(&store, "a", "1").await;
    let b = create(&store, "b", "1").await;
    let a2 = update(&store, "a", "2", a).await;
    let gone = delete(&store, "b", b).await;
    let again = create(&store, "b", "2").await;
    for (at, state) in [
        (start, want(&[])),
        (a, want(&[("a", "1")])),
        (b, want(&[("a", "1"), ("b", "1")])),
        (a2, want(&[("a", "2"), ("b", "1")])),
        (gone, want(&[("a", "2")])),
        (again, want(&[("a", "2"), ("b", "2")])),
    ] {
        let page = list_all(&store, At::Exactly(at)).await;
        assert_eq!(
            (pairs(&page), page.revision, page.n_remaining_items),
            (state, at, 0),
            "at {at}"
        );
    }
    let page = list_all(&store, At::NotOlderThan(a)).await;
    assert!(page.revision >= a);
}

/// A list at a revision that does not exist yet is refused.
pub async fn lists_of_the_future_are_refused(harness: &impl Harness) {
    let store = harness.fresh().await;
    let current = create(&store, "a", "1").await;
    let requested = current.next();
    for at in [At::Exactly(requested), At::NotOlderThan(requested)] {
        let page = list(&store, Bound::Unbounded, None, at).await;
        assert_eq!(page, Err(ReadError::Future { requested, current }), "{at:?}");
    }
}

/// A page begins at or after a key, whether the key exists or not, and counts the remaining items.
pub async fn pages_begin_at_the_requested_key(harness: &impl Harness) {
    let store = harness.fresh().await;
    for name in ["a", "b", "d", "e"] {
        create(&store, name, name).await;
    }
    let before = Key::new("/a").unwrap();
    let past = Key::new("/z").unwrap();
    for (from, limit, names, remaining) in [
        (Bound::Unbounded, None, "abde", 0),
        (Bound::Unbounded, Some(1), "a", 3),
        (Bound::Unbounded, Some(4), "abde", 0),
        (Bound::Unbounded, Some(9), "abde", 0),
        (Bound::Included(key("b")), Some(2), "bd", 1),
        (Bound::Excluded(key("b")), Some(2), "de", 0),
        (Bound::Included(key("c")), Some(1), "d", 1),
        (Bound::Excluded(key("c")), Some(1), "d", 1),
        (Bound::Excluded(key("e")), Some(1), "", 0),
        (Bound::Included(before), Some(3), "abd", 1),
        (Bound::Excluded(past), None, "", 0),
    ] {
        for at in [At::Newest, At::Exactly(store.current_rev().await.unwrap())] {
            let page = list(&store, from.clone(), limit, at).await.unwrap();
            let got: String = pairs(&page).into_iter().map(|(name, _)| name).collect();
            assert_eq!(
                (&*got, page.n_remaining_items),
                (names, remaining),
                "{from:?} {limit:?} {at:?}"
            );
        }
    }
}

/// A page ends with the item with which its values have the requested bytes, and the next one continues after it.
pub async fn pages_end_at_their_bytes(harness: &impl Harness) {
    let store = harness.fresh().await;
    let created = create(&store, "b", &"x".repeat(9)).await;
    for (name, n_bytes) in [("a", 3), ("c", 1), ("d", 1)] {
        create(&store, name, &"x".repeat(n_bytes)).await;
    }
    let at = At::Exactly(store.current_rev().await.unwrap());
    delete(&store, "b", created).await;
    for (after, limit, bytes_max, names, remaining) in [
        ("0", 0, 0, "abcd", 0),
        ("0", 0, 1, "a", 3),
        ("0", 0, 4, "ab", 2),
        ("0", 0, 13, "abc", 1),
        ("0", 0, 14, "abcd", 0),
        ("0", 1, 13, "a", 3),
        ("a", 0, 3, "b", 2),
        ("b", 0, 3, "cd", 0),
    ] {
        let (limit, bytes_max) = (NonZeroUsize::new(limit), NonZeroUsize::new(bytes_max));
        let request = ListRequest {
            from: Bound::Excluded(key(after)),
            items_max: limit,
            page_bytes_max: bytes_max,
            at,
        };
        let page = store.list(&things(), request.clone()).await.unwrap();
        let got: String = pairs(&page).into_iter().map(|(name, _)| name).collect();
        assert_eq!((&*got, page.n_remaining_items), (names, remaining), "{request:?}");
    }
}

/// All pages of a list show the state of the first page, whatever is written in between.
pub async fn pages_are_consistent_under_writes(harness: &impl Harness) {
    let store = harness.fresh().await;
    let mut revisions = Vec::new();
    for n in 0..20 {
        revisions.push(create(&store, &format!("{n:02}"), "old").await);
    }
    let whole = list_all(&store, At::Newest).await;
    let mut items = Vec::new();
    let mut from = Bound::Unbounded;
    let mut at = At::Newest;
    for round in 0..7 {
        let page = list(&store, from, Some(3), at).await.unwrap();
        assert_eq!(page.revision, whole.revision);
        items.extend(page.items);
        assert_eq!(page.n_remaining_items, 20 - items.len() as u64);
        from = items.last().map_or(Bound::Unbounded, |item| Bound::Excluded(item.key.clone()));
        at = At::Exactly(page.revision);
        // Before and after the cursor: a new key, a changed key and a deleted key.
        create(&store, &format!("{round:02}-new"), "new").await;
        create(&store, &format!("9{round}-new"), "new").await;
        update(&store, &format!("{:02}", 19 - round), "new", revisions[19 - round]).await;
        delete(&store, &format!("{round:02}"), revisions[round]).await;
    }
    assert_eq!(items, whole.items);
}
