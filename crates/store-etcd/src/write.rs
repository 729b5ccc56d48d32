//! Writes: one etcd transaction each. It writes if all conditions hold, and reads the keys of the
//! conditions otherwise.

use bytes::Bytes;
use store::{
    AdditionalWrite, Entry, ExpectedKeyState, Key, Revision, Transaction, Unavailable,
    VALUE_BYTES_MAX, WriteError,
};

use crate::call_error::CallError;
use crate::client::Client;
use crate::etcd_conversion;
use crate::etcd_messages::{
    Compare, DeleteRangeRequest, KeyValue, Operation, PutRequest, TxnRequest, TxnResponse,
};
use crate::lease_pool::LeasePool;
use crate::member::TXN;
use crate::read;

/// A mod revision that neither an existing nor an absent key has.
const UNSATISFIABLE_MOD_REVISION: i64 = -1;

pub(crate) async fn write(
    client: &Client,
    leases: &LeasePool,
    transaction: Transaction,
) -> Result<Revision, WriteError> {
    let bytes = transaction.largest_value_bytes();
    if bytes > VALUE_BYTES_MAX {
        return Err(WriteError::ValueTooLarge { bytes });
    }
    let ttl = transaction.new_content().and_then(|content| content.ttl);
    let mut is_second = false;
    loop {
        let lease = match ttl {
            Some(ttl) => {
                let lease = leases.lease_for_ttl(client, ttl).await;
                lease.map_err(|error| to_write_error(error, bytes))?
            }
            None => 0,
        };
        match write_once(client, &transaction, lease).await {
            // The lease was gone and nothing was written, so a retry is safe.
            Err(WriteRefusal::Call(CallError::NoLease)) if !is_second => {
                leases.forget_lease(lease);
                is_second = true;
            }
            result => return result.map_err(|refusal| refusal.into_write_error(bytes)),
        }
    }
}

/// The expected mod revision of a key; zero if it must not exist.
fn expected_mod_revision(expect: ExpectedKeyState) -> i64 {
    match expect {
        ExpectedKeyState::Absent => 0,
        ExpectedKeyState::At(Revision::ZERO) => UNSATISFIABLE_MOD_REVISION,
        ExpectedKeyState::At(revision) => {
            etcd_conversion::to_etcd_revision(revision).unwrap_or(UNSATISFIABLE_MOD_REVISION)
        }
    }
}

/// The expected mod revision of the main key.
fn expected_mod_revision_of_write(transaction: &Transaction) -> i64 {
    match transaction.expected_state() {
        // etcd would report success for deleting nothing.
        ExpectedKeyState::Absent if transaction.new_content().is_none() => {
            UNSATISFIABLE_MOD_REVISION
        }
        expect => expected_mod_revision(expect),
    }
}

enum WriteRefusal {
    Conflict(Option<Entry>),
    ConditionFailed(Key, Option<Entry>),
    Call(CallError),
}

impl WriteRefusal {
    fn into_write_error(self, bytes: usize) -> WriteError {
        match self {
            Self::Conflict(current) => WriteError::Conflict { current },
            Self::ConditionFailed(key, current) => WriteError::ConditionFailed { key, current },
            Self::Call(error) => to_write_error(error, bytes),
        }
    }
}

fn to_write_error(error: CallError, bytes: usize) -> WriteError {
    match error {
        CallError::Timeout => WriteError::Timeout,
        CallError::Unavailable(error) => error.into(),
        // etcd's own limit may be lower than ours.
        CallError::RequestTooLarge => WriteError::ValueTooLarge { bytes },
        CallError::NoSpace => WriteError::NoSpace { tenant: None },
        CallError::Compacted
        | CallError::Future
        | CallError::ResponseTooLarge
        | CallError::NoLease => {
            Unavailable { reason: error.into_read_error().to_string().into() }.into()
        }
    }
}

async fn write_once(
    client: &Client,
    transaction: &Transaction,
    lease: i64,
) -> Result<Revision, WriteRefusal> {
    let request = build_txn_request(transaction, lease);
    let response: TxnResponse = client.call(TXN, &request).await.map_err(WriteRefusal::Call)?;
    let revision = etcd_conversion::revision_from_etcd(
        response.header.as_ref().map_or(0, |header| header.revision),
    );
    client.record_revision(revision);
    if response.succeeded {
        return Ok(revision);
    }
    let mut currents = response.current_key_values();
    let current = currents.next().flatten();
    if !has_mod_revision(current.as_ref(), expected_mod_revision_of_write(transaction)) {
        return Err(WriteRefusal::Conflict(current.as_ref().map(etcd_conversion::entry_from_etcd)));
    }
    for (condition, current) in transaction.conditions().iter().zip(currents) {
        if !has_mod_revision(current.as_ref(), expected_mod_revision(condition.expected_state)) {
            let current = current.as_ref().map(etcd_conversion::entry_from_etcd);
            return Err(WriteRefusal::ConditionFailed(condition.key.clone(), current));
        }
    }
    let reason = "etcd refuses a transaction whose conditions hold".into();
    Err(WriteRefusal::Call(CallError::Unavailable(Unavailable { reason })))
}

fn has_mod_revision(current: Option<&KeyValue>, expected: i64) -> bool {
    current.map_or(0, |kv| kv.mod_revision) == expected
}

/// Builds the etcd transaction. The operations are in the order in which watches deliver them. etcd refuses to
/// write a key twice in one transaction, and a [`Transaction`] never does.
fn build_txn_request(transaction: &Transaction, lease: i64) -> TxnRequest {
    let key = read::key_bytes(transaction.key());
    let compare =
        Compare::mod_revision_equals(key.clone(), expected_mod_revision_of_write(transaction));
    let content = transaction.new_content().map(|content| &content.value);
    let mut txn = TxnRequest::write(compare, put_or_delete_operation(key, content, lease));
    for condition in transaction.conditions() {
        let key = read::key_bytes(&condition.key);
        txn = txn.add_condition(Compare::mod_revision_equals(
            key,
            expected_mod_revision(condition.expected_state),
        ));
    }
    for AdditionalWrite { key, value } in transaction.additional_writes() {
        txn = txn.add_operation(put_or_delete_operation(read::key_bytes(key), value.as_ref(), 0));
    }
    txn
}

/// Makes a put, or a delete if there is no value.
fn put_or_delete_operation(key: Bytes, value: Option<&Bytes>, lease: i64) -> Operation {
    match value {
        Some(value) => Operation::Put(PutRequest { key, value: value.clone(), lease }),
        None => Operation::DeleteRange(DeleteRangeRequest { key }),
    }
}
