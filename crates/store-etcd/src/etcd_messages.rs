//! The messages of etcd's API, version 3, that this crate uses.
//!
//! They are written by hand: two dozen small structures need neither a compiler for `.proto` files nor a build
//! step. Fields that this crate does not use are left out, which the encoding allows.

use bytes::Bytes;
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseHeader {
    /// The revision of the store when the request was applied.
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    /// Number of writes since the key was created.
    #[prost(int64, tag = "4")]
    pub(crate) version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
}

/// Reads the keys from `key` (inclusive) to `range_end` (exclusive), or only `key` if `range_end` is empty. The
/// flag `serializable` is left out on purpose: every read asks the quorum.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
    /// The maximum number of keys; zero means no limit.
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
    /// The revision to read; zero means the newest.
    #[prost(int64, tag = "4")]
    pub(crate) revision: i64,
    #[prost(bool, tag = "9")]
    pub(crate) count_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
    /// Number of keys in the range, whatever the limit.
    #[prost(int64, tag = "4")]
    pub(crate) count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
    /// The lease of the key; zero means none.
    #[prost(int64, tag = "3")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3")]
    pub(crate) request: Option<Operation>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
}

/// The result of an operation of a transaction. Only results of ranges are read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub(crate) range: Option<RangeResponse>,
}

/// A condition that a property of a key equals a value. `result` is left out because zero means equal.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Compare {
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) key: Bytes,
    #[prost(oneof = "TargetUnion", tags = "4, 6")]
    pub(crate) target_union: Option<TargetUnion>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum TargetUnion {
    #[prost(int64, tag = "4")]
    Version(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

/// `Compare::target` for the number of writes since the key was created.
const TARGET_VERSION: i32 = 0;
/// `Compare::target` for the revision of the last write.
const TARGET_MOD: i32 = 2;

impl Compare {
    /// Requires that this revision wrote the key last; zero requires that the key does not exist.
    pub(crate) fn mod_revision_equals(key: Bytes, revision: i64) -> Self {
        let target_union = Some(TargetUnion::ModRevision(revision));
        Self { target: TARGET_MOD, key, target_union }
    }

    /// Requires this number of writes since the key was created; zero requires that the key does not exist.
    pub(crate) fn version_equals(key: Bytes, version: i64) -> Self {
        let target_union = Some(TargetUnion::Version(version));
        Self { target: TARGET_VERSION, key, target_union }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

impl TxnRequest {
    /// Makes a request that runs one operation if the condition holds, and reads the key otherwise.
    pub(crate) fn write(compare: Compare, operation: Operation) -> Self {
        let read = RangeRequest { key: compare.key.clone(), ..RangeRequest::default() };
        Self {
            compare: vec![compare],
            success: vec![RequestOp { request: Some(operation) }],
            failure: vec![RequestOp { request: Some(Operation::Range(read)) }],
        }
    }

    /// Adds a condition on another key, which is read as well if a condition fails.
    pub(crate) fn add_condition(mut self, compare: Compare) -> Self {
        let read = RangeRequest { key: compare.key.clone(), ..RangeRequest::default() };
        self.compare.push(compare);
        self.failure.push(RequestOp { request: Some(Operation::Range(read)) });
        self
    }

    /// Adds an operation in the same revision.
    pub(crate) fn add_operation(mut self, operation: Operation) -> Self {
        self.success.push(RequestOp { request: Some(operation) });
        self
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

impl TxnResponse {
    /// The current value of the key after a failed transaction.
    pub(crate) fn current_key_value(self) -> Option<KeyValue> {
        self.current_key_values().next()?
    }

    /// The current value of each compared key after a failed transaction.
    pub(crate) fn current_key_values(self) -> impl Iterator<Item = Option<KeyValue>> {
        let ranges = self.responses.into_iter().filter_map(|response| response.range);
        ranges.map(|range| range.kvs.into_iter().next())
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactionResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    pub(crate) ttl_seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(crate) id: i64,
    /// The granted time to live, which may exceed the requested one.
    #[prost(int64, tag = "3")]
    pub(crate) ttl_seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) create: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchCreateRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) start_revision: i64,
    #[prost(bool, tag = "6")]
    pub(crate) prev_kv: bool,
    /// Whether etcd may split a large watch response into several messages.
    #[prost(bool, tag = "8")]
    pub(crate) fragment: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchResponse {
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    /// Set when the watch was cancelled because its start is compacted.
    #[prost(int64, tag = "5")]
    pub(crate) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(crate) cancel_reason: String,
    /// Whether the next message continues this one.
    #[prost(bool, tag = "7")]
    pub(crate) fragment: bool,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<WatchEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchEvent {
    /// The kind of event: zero is a put, one is a delete.
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub(crate) prev_kv: Option<KeyValue>,
}

/// `WatchEvent::kind` of a delete.
pub(crate) const KIND_DELETE: i32 = 1;

#[cfg(test)]
mod tests {
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
        assert_eq!(txn.encode_to_vec(), want);
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
        assert_eq!(txn.encode_to_vec(), want);
    }

    /// Zero must be sent, since it says that the key is absent.
    #[test]
    fn an_absent_key_is_compared_with_zero() {
        let compare = Compare::mod_revision_equals(Bytes::from_static(b"k"), 0);
        assert_eq!(compare.encode_to_vec(), [0x10, 0x02, 0x1a, 0x01, b'k', 0x30, 0x00]);
    }
}
