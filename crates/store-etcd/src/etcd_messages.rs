//! The messages of etcd's API, version 3, that this crate uses.
//!
//! They are written by hand: two dozen small structures need neither a compiler for `.proto` files nor a build
//! step. Fields that this crate does not use are left out, which the encoding allows.

use bytes::Bytes;

use crate::protobuf::{DecodeError, DecodeMessage, EncodeMessage, FieldValue, MessageWriter};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ResponseHeader {
    /// The revision of the store when the request was applied.
    pub(crate) revision: i64,
}

impl DecodeMessage for ResponseHeader {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        if number == 3 {
            self.revision = value.into_int64()?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct KeyValue {
    pub(crate) key: Bytes,
    pub(crate) create_revision: i64,
    pub(crate) mod_revision: i64,
    /// Number of writes since the key was created.
    pub(crate) version: i64,
    pub(crate) value: Bytes,
}

impl DecodeMessage for KeyValue {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        match number {
            1 => self.key = value.into_bytes()?,
            2 => self.create_revision = value.into_int64()?,
            3 => self.mod_revision = value.into_int64()?,
            4 => self.version = value.into_int64()?,
            5 => self.value = value.into_bytes()?,
            _ => {}
        }
        Ok(())
    }
}

/// Reads the keys from `key` (inclusive) to `range_end` (exclusive), or only `key` if `range_end` is empty. The
/// flag `serializable` is left out on purpose: every read asks the quorum.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RangeRequest {
    pub(crate) key: Bytes,
    pub(crate) range_end: Bytes,
    /// The maximum number of keys; zero means no limit.
    pub(crate) limit: i64,
    /// The revision to read; zero means the newest.
    pub(crate) revision: i64,
    pub(crate) count_only: bool,
}

impl EncodeMessage for RangeRequest {
    fn encode_fields(&self, out: &mut MessageWriter) {
        out.write_bytes(1, &self.key);
        out.write_bytes(2, &self.range_end);
        out.write_int64(3, self.limit);
        out.write_int64(4, self.revision);
        out.write_bool(9, self.count_only);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RangeResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) kvs: Vec<KeyValue>,
    pub(crate) more: bool,
    /// Number of keys in the range, whatever the limit.
    pub(crate) count: i64,
}

impl DecodeMessage for RangeResponse {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        match number {
            1 => self.header = Some(value.into_message()?),
            2 => self.kvs.push(value.into_message()?),
            3 => self.more = value.into_bool()?,
            4 => self.count = value.into_int64()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PutRequest {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    /// The lease of the key; zero means none.
    pub(crate) lease: i64,
}

impl EncodeMessage for PutRequest {
    fn encode_fields(&self, out: &mut MessageWriter) {
        out.write_bytes(1, &self.key);
        out.write_bytes(2, &self.value);
        out.write_int64(3, self.lease);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DeleteRangeRequest {
    pub(crate) key: Bytes,
}

impl EncodeMessage for DeleteRangeRequest {
    fn encode_fields(&self, out: &mut MessageWriter) {
        out.write_bytes(1, &self.key);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RequestOp {
    pub(crate) request: Option<Operation>,
}

impl EncodeMessage for RequestOp {
    fn encode_fields(&self, out: &mut MessageWriter) {
        match &self.request {
            None => {}
            Some(Operation::Range(range)) => out.write_message(1, range),
            Some(Operation::Put(put)) => out.write_message(2, put),
            Some(Operation::DeleteRange(delete)) => out.write_message(3, delete),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operation {
    Range(RangeRequest),
    Put(PutRequest),
    DeleteRange(DeleteRangeRequest),
}

/// The result of an operation of a transaction. Only results of ranges are read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ResponseOp {
    pub(crate) range: Option<RangeResponse>,
}

impl DecodeMessage for ResponseOp {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        if number == 1 {
            self.range = Some(value.into_message()?);
        }
        Ok(())
    }
}

/// A condition that a property of a key equals a value. `result` is left out because zero means equal.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Compare {
    pub(crate) target: i64,
    pub(crate) key: Bytes,
    pub(crate) target_union: Option<TargetUnion>,
}

impl EncodeMessage for Compare {
    fn encode_fields(&self, out: &mut MessageWriter) {
        out.write_int64(2, self.target);
        out.write_bytes(3, &self.key);
        match self.target_union {
            None => {}
            Some(TargetUnion::Version(version)) => out.write_int64_or_zero(4, version),
            Some(TargetUnion::ModRevision(revision)) => out.write_int64_or_zero(6, revision),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TargetUnion {
    Version(i64),
    ModRevision(i64),
}

/// `Compare::target` for the number of writes since the key was created.
const TARGET_VERSION: i64 = 0;
/// `Compare::target` for the revision of the last write.
const TARGET_MOD: i64 = 2;

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

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TxnRequest {
    pub(crate) compare: Vec<Compare>,
    pub(crate) success: Vec<RequestOp>,
    pub(crate) failure: Vec<RequestOp>,
}

impl EncodeMessage for TxnRequest {
    fn encode_fields(&self, out: &mut MessageWriter) {
        for compare in &self.compare {
            out.write_message(1, compare);
        }
        for success in &self.success {
            out.write_message(2, success);
        }
        for failure in &self.failure {
            out.write_message(3, failure);
        }
    }
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

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TxnResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) succeeded: bool,
    pub(crate) responses: Vec<ResponseOp>,
}

impl DecodeMessage for TxnResponse {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        match number {
            1 => self.header = Some(value.into_message()?),
            2 => self.succeeded = value.into_bool()?,
            3 => self.responses.push(value.into_message()?),
            _ => {}
        }
        Ok(())
    }
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

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CompactionRequest {
    pub(crate) revision: i64,
}

impl EncodeMessage for CompactionRequest {
    fn encode_fields(&self, out: &mut MessageWriter) {
        out.write_int64(1, self.revision);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CompactionResponse {
    pub(crate) header: Option<ResponseHeader>,
}

impl DecodeMessage for CompactionResponse {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        if number == 1 {
            self.header = Some(value.into_message()?);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LeaseGrantRequest {
    pub(crate) ttl_seconds: i64,
}

impl EncodeMessage for LeaseGrantRequest {
    fn encode_fields(&self, out: &mut MessageWriter) {
        out.write_int64(1, self.ttl_seconds);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LeaseGrantResponse {
    pub(crate) id: i64,
    /// The granted time to live, which may exceed the requested one.
    pub(crate) ttl_seconds: i64,
}

impl DecodeMessage for LeaseGrantResponse {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        match number {
            2 => self.id = value.into_int64()?,
            3 => self.ttl_seconds = value.into_int64()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WatchRequest {
    pub(crate) create: Option<WatchCreateRequest>,
}

impl EncodeMessage for WatchRequest {
    fn encode_fields(&self, out: &mut MessageWriter) {
        if let Some(create) = &self.create {
            out.write_message(1, create);
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WatchCreateRequest {
    pub(crate) key: Bytes,
    pub(crate) range_end: Bytes,
    pub(crate) start_revision: i64,
    pub(crate) prev_kv: bool,
    /// Whether etcd may split a large watch response into several messages.
    pub(crate) fragment: bool,
}

impl EncodeMessage for WatchCreateRequest {
    fn encode_fields(&self, out: &mut MessageWriter) {
        out.write_bytes(1, &self.key);
        out.write_bytes(2, &self.range_end);
        out.write_int64(3, self.start_revision);
        out.write_bool(6, self.prev_kv);
        out.write_bool(8, self.fragment);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WatchResponse {
    pub(crate) canceled: bool,
    /// Set when the watch was cancelled because its start is compacted.
    pub(crate) compact_revision: i64,
    pub(crate) cancel_reason: String,
    /// Whether the next message continues this one.
    pub(crate) fragment: bool,
    pub(crate) events: Vec<WatchEvent>,
}

impl DecodeMessage for WatchResponse {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        match number {
            4 => self.canceled = value.into_bool()?,
            5 => self.compact_revision = value.into_int64()?,
            6 => self.cancel_reason = value.into_text()?,
            7 => self.fragment = value.into_bool()?,
            11 => self.events.push(value.into_message()?),
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WatchEvent {
    /// The kind of event: zero is a put, one is a delete.
    pub(crate) kind: i64,
    pub(crate) kv: Option<KeyValue>,
    pub(crate) prev_kv: Option<KeyValue>,
}

impl DecodeMessage for WatchEvent {
    fn set_field(&mut self, number: u32, value: FieldValue) -> Result<(), DecodeError> {
        match number {
            1 => self.kind = value.into_int64()?,
            2 => self.kv = Some(value.into_message()?),
            3 => self.prev_kv = Some(value.into_message()?),
            _ => {}
        }
        Ok(())
    }
}

/// `WatchEvent::kind` of a delete.
pub(crate) const KIND_DELETE: i64 = 1;

#[cfg(test)]
mod tests;
