//! The key that holds the format version of the stored objects.

use bytes::Bytes;
use etcd_testing::Member;
use store::{At, ExpectedKeyState, Key, Put, Store};
use store_etcd::FormatVersionError;

use crate::member::open;
use crate::shorthand::{create, key};

const FORMAT_KEY: &str = "/registry/portcullis/format";

#[tokio::test]
async fn servers_of_one_version_share_a_cluster_and_later_versions_are_refused() {
    let member = Member::alone();
    let (store, other) = (open(&[&member]).await, open(&[&member]).await);
    // The cluster has data of servers that did not write a version.
    create(&store, "a", "{}").await;
    let (first, second) = tokio::join!(store.check_format_version(), other.check_format_version());
    assert_eq!((first, second), (Ok(()), Ok(())));
    let format_key = Key::new(FORMAT_KEY).unwrap();
    let entry = store.get(&format_key, At::Newest).await.unwrap().entry.unwrap();
    assert_eq!(entry.value, "1");
    assert_eq!(other.check_format_version().await, Ok(()));

    let expected_state = ExpectedKeyState::At(entry.mod_rev);
    let value = Bytes::from_static(b"2");
    let put = Put {
        key: format_key.clone(),
        value,
        expected_state,
        ttl: None,
        key_group_revision_action: None,
    };
    store.put(put).await.unwrap();
    let before = store.current_rev().await.unwrap();
    let refused = FormatVersionError::Newer { key: format_key, version: 2 };
    assert_eq!(store.check_format_version().await, Err(refused));
    assert_eq!(store.current_rev().await.unwrap(), before, "nothing is written");
    let kept = store.get(&key("a"), At::Newest).await.unwrap().entry.unwrap();
    assert_eq!(kept.value, "{}");
}
