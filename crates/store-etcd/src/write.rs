//! Puts and deletes: one transaction each, which writes if the key is as expected and reads it if not.

use bytes::Bytes;
use store::{At, Expect, Key, Put, ReadError, Revision, Unavailable, VALUE_BYTES_MAX, WriteError};

use crate::client::{Client, TXN};
use crate::entries;
use crate::failure::CallError;
use crate::lease::Leases;
use crate::messages::{
    Compare, DeleteRangeRequest, Operation, PutRequest, TxnRequest, TxnResponse,
};
use crate::read;

pub(crate) async fn put(
    client: &Client,
    leases: &Leases,
    put: Put,
) -> Result<Revision, WriteError> {
    let Put { key, value, expect, ttl } = put;
    let bytes = value.len();
    if bytes > VALUE_BYTES_MAX {
        return Err(WriteError::ValueTooLarge { bytes });
    }
    let Some(expected) = expected(expect) else { return Err(conflict(client, &key).await) };
    let mut is_second = false;
    loop {
        let lease = match ttl {
            Some(ttl) => {
                let lease = leases.lease(client, ttl).await;
                lease.map_err(|error| write_error(error, bytes))?
            }
            None => 0,
        };
        let key = read::bytes_of(&key);
        let put = PutRequest { key: key.clone(), value: value.clone(), lease };
        match write(client, key, expected, Operation::Put(put)).await {
            // Nothing was written, so a second attempt is a first one.
            Err(Refusal::Call(CallError::NoLease)) if !is_second => {
                leases.forget(lease);
                is_second = true;
            }
            result => return result.map_err(|refusal| refusal.into_error(bytes)),
        }
    }
}

pub(crate) async fn delete(
    client: &Client,
    key: &Key,
    expect: Expect,
) -> Result<Revision, WriteError> {
    let expected = match expect {
        Expect::Absent => None,
        Expect::At(_) => expected(expect),
    };
    let Some(expected) = expected else { return Err(conflict(client, key).await) };
    let bytes = read::bytes_of(key);
    let delete = Operation::DeleteRange(DeleteRangeRequest { key: bytes.clone() });
    let result = write(client, bytes, expected, delete).await;
    result.map_err(|refusal| refusal.into_error(0))
}

/// The revision that must have written the key, zero for none; absent when there can be no such key.
fn expected(expect: Expect) -> Option<i64> {
    match expect {
        Expect::Absent => Some(0),
        Expect::At(Revision::ZERO) => None,
        Expect::At(revision) => entries::number(revision),
    }
}

/// The answer to a writer whose expectation can not hold.
async fn conflict(client: &Client, key: &Key) -> WriteError {
    match read::get(client, key, At::Newest).await {
        Ok(got) => WriteError::Conflict { current: got.entry },
        Err(ReadError::Timeout) => WriteError::Timeout,
        Err(ReadError::Unavailable(error)) => error.into(),
        Err(error @ (ReadError::Compacted { .. } | ReadError::Future { .. })) => {
            Unavailable { reason: error.to_string().into() }.into()
        }
    }
}

enum Refusal {
    Conflict(Option<store::Entry>),
    Call(CallError),
}

impl Refusal {
    fn into_error(self, bytes: usize) -> WriteError {
        match self {
            Self::Conflict(current) => WriteError::Conflict { current },
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
    key: Bytes,
    expected: i64,
    operation: Operation,
) -> Result<Revision, Refusal> {
    let txn = TxnRequest::write(Compare::mod_revision(key, expected), operation);
    let response: TxnResponse = client.call(TXN, &txn).await.map_err(Refusal::Call)?;
    let revision = entries::revision(response.header.as_ref().map_or(0, |header| header.revision));
    client.has_reached(revision);
    if response.succeeded {
        return Ok(revision);
    }
    Err(Refusal::Conflict(response.current().as_ref().map(entries::entry)))
}
