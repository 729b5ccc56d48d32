use proptest::prelude::*;

use super::*;

/// The bytes are those that `protoc` makes of etcd's own definitions.
#[test]
fn a_transaction_has_the_bytes_of_the_definition() {
    let compare = Compare::mod_revision_equals(Bytes::from_static(b"k"), 7);
    let put = PutRequest { key: "k".into(), value: "v".into(), lease: 0 };
    let txn = TxnRequest::write(compare, Operation::Put(put));
    let want: &[u8] = &[
        0x0a, 0x07, 0x10, 0x02, 0x1a, 0x01, b'k', 0x30, 0x07, // compare: MOD, key, 7
        0x12, 0x08, 0x12, 0x06, 0x0a, 0x01, b'k', 0x12, 0x01, b'v', // success: put
        0x1a, 0x05, 0x0a, 0x03, 0x0a, 0x01, b'k', // failure: range
    ];
    assert_eq!(txn.encode(), want);
}

#[test]
fn a_marked_transaction_has_the_bytes_of_the_definition() {
    let delete = Operation::DeleteRange(DeleteRangeRequest { key: "k".into() });
    let put = PutRequest { key: "m".into(), value: Bytes::new(), lease: 0 };
    let txn = TxnRequest::write(Compare::mod_revision_equals("k".into(), 7), delete)
        .add_condition(Compare::mod_revision_equals("m".into(), 0))
        .add_operation(Operation::Put(put));
    let want: &[u8] = &[
        0x0a, 0x07, 0x10, 0x02, 0x1a, 0x01, b'k', 0x30, 0x07, // compare: MOD, key, 7
        0x0a, 0x07, 0x10, 0x02, 0x1a, 0x01, b'm', 0x30, 0x00, // compare: MOD, mark, 0
        0x12, 0x05, 0x1a, 0x03, 0x0a, 0x01, b'k', // success: delete
        0x12, 0x05, 0x12, 0x03, 0x0a, 0x01, b'm', // success: put
        0x1a, 0x05, 0x0a, 0x03, 0x0a, 0x01, b'k', // failure: range
        0x1a, 0x05, 0x0a, 0x03, 0x0a, 0x01, b'm', // failure: range
    ];
    assert_eq!(txn.encode(), want);
}

/// Zero must be sent, since it says that the key is absent.
#[test]
fn an_absent_key_is_compared_with_zero() {
    let compare = Compare::mod_revision_equals(Bytes::from_static(b"k"), 0);
    assert_eq!(compare.encode(), [0x10, 0x02, 0x1a, 0x01, b'k', 0x30, 0x00]);
}
/// The bytes are those that `protoc` makes of etcd's own definitions, with fields that this crate ignores.
#[test]
fn a_response_of_a_range_is_read() {
    let bytes: &[u8] = &[
        0x0a, 0x06, 0x08, 0x05, 0x18, 0x09, 0x20,
        0x02, // header: cluster 5, revision 9, term 2
        0x12, 0x0d, 0x0a, 0x01, b'k', 0x10, 0x07, 0x18, 0x08, 0x20, 0x02, 0x2a, 0x02, b'v',
        b'w', //
        0x18, 0x01, // more
        0x20, 0xac, 0x02, // count: 300
    ];
    let kv = KeyValue {
        key: "k".into(),
        create_revision: 7,
        mod_revision: 8,
        version: 2,
        value: "vw".into(),
    };
    let want = RangeResponse {
        header: Some(ResponseHeader { revision: 9 }),
        kvs: vec![kv],
        more: true,
        count: 300,
    };
    assert_eq!(RangeResponse::decode(Bytes::from_static(bytes)), Ok(want));
}

#[test]
fn a_response_of_a_watch_is_read() {
    let bytes: &[u8] = &[
        0x20, 0x01, // canceled
        0x28, 0x04, // compact_revision: 4
        0x32, 0x03, b'w', b'h', b'y', // cancel_reason
        0x38, 0x01, // fragment
        0x5a, 0x09, 0x08, 0x01, 0x12, 0x03, 0x0a, 0x01, b'k', 0x1a, 0x01, // a delete, cut off
    ];
    assert_eq!(WatchResponse::decode(Bytes::from_static(bytes)), Err(DecodeError));
    let bytes = [&bytes[..bytes.len() - 2], &[0x1a, 0x00]].concat();
    let message = WatchResponse::decode(bytes.into());
    let event = WatchEvent {
        kind: KIND_DELETE,
        kv: Some(KeyValue { key: "k".into(), ..KeyValue::default() }),
        prev_kv: Some(KeyValue::default()),
    };
    let want = WatchResponse {
        canceled: true,
        compact_revision: 4,
        cancel_reason: "why".to_owned(),
        fragment: true,
        events: vec![event],
    };
    assert_eq!(message, Ok(want));
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes: Vec<u8>) {
        let bytes = Bytes::from(bytes);
        let _ = RangeResponse::decode(bytes.clone());
        let _ = TxnResponse::decode(bytes.clone());
        let _ = WatchResponse::decode(bytes.clone());
        let _ = (CompactionResponse::decode(bytes.clone()), LeaseGrantResponse::decode(bytes));
    }
}
