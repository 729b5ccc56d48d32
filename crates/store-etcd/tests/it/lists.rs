//! Lists of several rounds, and keys of other programs.

use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use etcd_testing::Member;
use store::{ExpectedKeyState, ListRequest, Put, Store, VALUE_BYTES_MAX, WriteError};
use store_etcd::PrefixInUse;

use crate::member::open;
use crate::shorthand::{create, key, put, things};

#[tokio::test]
async fn a_list_of_several_rounds_is_consistent() {
    let member = Member::alone();
    let store = Arc::new(open(&[&member]).await);
    // More keys than fit into the first round, and so large that the second round does not hold the rest.
    let (n_small, n_large) = (600_usize, 40_usize);
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..n_small + n_large {
        let store = store.clone();
        writers.spawn(async move {
            let bytes = if n < n_small { 30_000 } else { 400_000 };
            let value = Bytes::from(vec![b'x'; bytes]);
            let key = key(&format!("{n:04}"));
            let expected_state = ExpectedKeyState::Absent;
            store
                .put(Put { key, value, expected_state, ttl: None, key_group_revision_action: None })
                .await
                .unwrap()
        });
    }
    writers.join_all().await;
    let page = store.list(&things(), ListRequest::default()).await.unwrap();
    let names: Vec<&str> =
        page.items.iter().map(|item| item.key.rsplit('/').next().unwrap()).collect();
    let want: Vec<String> = (0..n_small + n_large).map(|n| format!("{n:04}")).collect();
    assert_eq!(names, want);
    assert_eq!((page.n_remaining_items, Ok(page.revision)), (0, store.current_rev().await));
    let limit = NonZeroUsize::new(550);
    let from = Bound::Included(key("0010"));
    let part = store
        .list(&things(), ListRequest { from, items_max: limit, ..ListRequest::default() })
        .await;
    let part = part.unwrap();
    assert_eq!((part.items.len(), part.n_remaining_items), (550, 80));
    assert_eq!(part.items, page.items[10..560]);
}

#[tokio::test]
async fn a_prefix_with_kubernetes_objects_is_refused() {
    let member = Member::alone();
    let store = open(&[&member]).await;
    assert_eq!(store.check_prefix_unused().await, Ok(()));
    create(&store, "a", "{}").await;
    create(&store, "b", "k8s").await;
    assert_eq!(store.check_prefix_unused().await, Ok(()));
    create(&store, "c", "k8s\0\n").await;
    let error = store.check_prefix_unused().await.unwrap_err();
    assert!(matches!(&error, PrefixInUse::Taken { .. }), "{error}");
    assert!(error.to_string().contains("`/registry/things/c`"), "{error}");
}

/// The default request limit of a member is below the size of the largest value.
#[tokio::test]
async fn a_request_above_the_member_limit_is_too_large() {
    let member = Member::alone_with("http", &[]);
    let store = open(&[&member]).await;
    let value = "x".repeat(VALUE_BYTES_MAX);
    let refused = store.put(put("a", &value, ExpectedKeyState::Absent)).await;
    assert_eq!(refused, Err(WriteError::ValueTooLarge { bytes: VALUE_BYTES_MAX }));
    create(&store, "a", &value[..VALUE_BYTES_MAX - 4096]).await;
}
