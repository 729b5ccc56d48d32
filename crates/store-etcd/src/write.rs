//! Puts and deletes: one transaction each, which writes if the key and its mark are as expected, and
//! reads them if not.

use bytes::Bytes;
use store::{
    Delete, Entry, Expect, Key, Mark, Put, Revision, Unavailable, VALUE_BYTES_MAX, WriteError,
};

use crate::client::Client;
use crate::entries;
use crate::failure::CallError;
use crate::lease::Leases;
use crate::member::TXN;
use crate::messages::{
    Compare, DeleteRangeRequest, Operation, PutRequest, TxnRequest, TxnResponse,
};
use crate::read;

/// The revision of no key, neither one that exists nor one that does not.
const NEVER: i64 = -1;

pub(crate) async fn put(
    client: &Client,
    leases: &Leases,
    put: Put,
) -> Result<Revision, WriteError> {
    let Put { key, value, expect, ttl, mark } = put;
    let bytes = value.len();
    if bytes > VALUE_BYTES_MAX {
        return Err(WriteError::ValueTooLarge { bytes });
    }
    let mut is_second = false;
    loop {
        let lease = match ttl {
            Some(ttl) => {
                let lease = leases.lease(client, ttl).await;
                lease.map_err(|error| write_error(error, bytes))?
            }
            None => 0,
        };
        let put = PutRequest { key: read::bytes_of(&key), value: value.clone(), lease };
        let put = Operation::Put(put);
        match write(client, &key, expected(expect), mark.as_ref(), put).await {
            // Nothing was written, so a second attempt is a first one.
            Err(Refusal::Call(CallError::NoLease)) if !is_second => {
                leases.forget(lease);
                is_second = true;
            }
            result => return result.map_err(|refusal| refusal.into_error(bytes)),
        }
    }
}

pub(crate) async fn delete(client: &Client, delete: Delete) -> Result<Revision, WriteError> {
    let Delete { key, expect, mark } = delete;
    let expected = match expect {
        // etcd would delete nothing and call it a success.
        Expect::Absent => NEVER,
        Expect::At(_) => expected(expect),
    };
    let operation = Operation::DeleteRange(DeleteRangeRequest { key: read::bytes_of(&key) });
    let result = write(client, &key, expected, mark.as_ref(), operation).await;
    result.map_err(|refusal| refusal.into_error(0))
}

/// The revision that must have written the key, zero for none.
fn expected(expect: Expect) -> i64 {
    match expect {
        Expect::Absent => 0,
        Expect::At(Revision::ZERO) => NEVER,
        Expect::At(revision) => entries::number(revision).unwrap_or(NEVER),
    }
}

enum Refusal {
    Conflict(Option<Entry>),
    MarkMoved(Option<Entry>),
    Call(CallError),
}

impl Refusal {
    fn into_error(self, bytes: usize) -> WriteError {
        match self {
            Self::Conflict(current) => WriteError::Conflict { current },
            Self::MarkMoved(current) => WriteError::MarkMoved { current },
            Self::Call(error) => write_error(error, bytes),
        }
    }
}

fn write_error(error: CallError, bytes: usize) -> WriteError {
    match error {
        CallError::Timeout => WriteError::Timeout,
        CallError::Unavailable(error) => error.into(),
        // The member's own limit may be lower than ours.
        CallError::RequestTooLarge => WriteError::ValueTooLarge { bytes },
        CallError::NoSpace => WriteError::NoSpace { share: None },
        CallError::Compacted
        | CallError::Future
        | CallError::ResponseTooLarge
        | CallError::NoLease => {
            Unavailable { reason: error.unexpected().to_string().into() }.into()
        }
    }
}

async fn write(
    client: &Client,
    key: &Key,
    expected: i64,
    mark: Option<&Mark>,
    operation: Operation,
) -> Result<Revision, Refusal> {
    let compare = Compare::mod_revision(read::bytes_of(key), expected);
    let txn = with_mark(TxnRequest::write(compare, operation), key, mark);
    let response: TxnResponse = client.call(TXN, &txn).await.map_err(Refusal::Call)?;
    let revision = entries::revision(response.header.as_ref().map_or(0, |header| header.revision));
    client.has_reached(revision);
    if response.succeeded {
        return Ok(revision);
    }
    let mut currents = response.currents();
    let current = currents.next().flatten();
    if current.as_ref().map_or(0, |kv| kv.mod_revision) != expected {
        return Err(Refusal::Conflict(current.as_ref().map(entries::entry)));
    }
    let mark = currents.next().flatten();
    Err(Refusal::MarkMoved(mark.as_ref().map(entries::entry)))
}

/// Has the mark move with the write of a key, or be where it was. etcd refuses to write a key twice in one transaction, and
/// who marks the key that is written has it moved by that.
fn with_mark(mut txn: TxnRequest, key: &Key, mark: Option<&Mark>) -> TxnRequest {
    let Some(mark) = mark else { return txn };
    if let Some((key, expect)) = mark.expected() {
        txn = txn.only_if(Compare::mod_revision(read::bytes_of(key), expected(expect)));
    }
    let Some(moved) = mark.moved_beside(key) else { return txn };
    let put = PutRequest { key: read::bytes_of(moved), value: Bytes::new(), lease: 0 };
    txn.and(Operation::Put(put))
}
