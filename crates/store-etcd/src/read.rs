//! Reads single keys and lists. Every read is linearizable.

use std::num::NonZeroUsize;
use std::ops::Bound;

use bytes::Bytes;
use store::{
    At, GetResult, Item, Key, ListPage, ListRequest, Prefix, ReadError, Revision, Unavailable,
};

use crate::call_error::CallError;
use crate::client::Client;
use crate::etcd_conversion;
use crate::etcd_messages::{KeyValue, RangeRequest, RangeResponse};
use crate::event_stream;
use crate::member::{EtcdMethod, GET, RANGE};

/// Number of keys in the first round of a list.
const FIRST_ROUND_KEYS: usize = 500;
/// Maximum number of keys in a later round.
const ROUND_KEYS_MAX: usize = 10_000;
/// Assumed size of a value in the first round of a list whose bytes are limited.
const FIRST_ROUND_VALUE_BYTES: usize = 32 * 1024;
/// Target size of later rounds in bytes, estimated from earlier rounds.
const ROUND_BYTES_TARGET: usize = 8 * 1024 * 1024;

/// A key to read when only the revision matters. It need not exist.
const ANY_KEY: &[u8] = b"\0";

/// Reads the newest revision of the cluster.
pub(crate) async fn read_current_revision(client: &Client) -> Result<Revision, ReadError> {
    let key = Bytes::from_static(ANY_KEY);
    let range = RangeRequest { key, count_only: true, ..RangeRequest::default() };
    let response = client.call(GET, &range).await.map_err(CallError::into_read_error)?;
    Ok(record_response_revision(client, &response))
}

pub(crate) async fn get(client: &Client, key: &Key, at: At) -> Result<GetResult, ReadError> {
    let range = RangeRequest { key: key_bytes(key), ..RangeRequest::default() };
    let (response, revision) = match read_range_at(client, GET, range, at).await {
        Ok(answer) => answer,
        Err(ListRoundError::TooLarge) => {
            return Err(CallError::ResponseTooLarge.into_read_error());
        }
        Err(ListRoundError::Read(error)) => return Err(error),
    };
    Ok(GetResult { entry: response.kvs.first().map(etcd_conversion::entry_from_etcd), revision })
}

/// Reads a list in rounds at one revision, so that neither side buffers a large list twice.
pub(crate) async fn list(
    client: &Client,
    prefix: &Prefix,
    request: ListRequest,
) -> Result<ListPage, ReadError> {
    let (start, range_end) = range_bounds(prefix, &request.from);
    let bytes_max = request.page_bytes_max.map_or(usize::MAX, NonZeroUsize::get);
    let n_keys = FIRST_ROUND_KEYS.min(bytes_max.div_ceil(FIRST_ROUND_VALUE_BYTES));
    let mut rounds = ListRounds { start, range_end, at: request.at, round_keys_max: n_keys };
    let mut items: Vec<Item> = Vec::new();
    // The counts include keys that are not valid keys of this store, which the page leaves out.
    let (mut n_read, mut bytes, mut bytes_left) = (0_usize, 0_usize, bytes_max);
    loop {
        let n_left = request.items_max.map(|limit| limit.get() - items.len());
        let (response, revision) = rounds.next(client, n_left.unwrap_or(usize::MAX)).await?;
        n_read += response.kvs.len();
        bytes += response.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum::<usize>();
        let n_added = add_items_up_to_bytes(&mut items, &mut bytes_left, &response.kvs);
        let is_full = request.items_max.is_some_and(|limit| items.len() >= limit.get());
        let n_more = u64::try_from(response.count).unwrap_or_default();
        let remaining = n_more.saturating_sub(n_added as u64);
        let last = response.kvs.last().filter(|_| response.more && !is_full && bytes_left > 0);
        let Some(last) = last else {
            return Ok(ListPage { items, n_remaining_items: remaining, revision });
        };
        let round_bytes = ROUND_BYTES_TARGET.min(bytes_left);
        rounds.continue_after_key(last, revision, bytes / n_read.max(1), round_bytes);
    }
}

/// Adds items until no bytes are left, and returns the number of key-values that it consumed. A key-value
/// that is not an item takes no bytes, because a page that ends early must end with an item.
fn add_items_up_to_bytes(items: &mut Vec<Item>, bytes_left: &mut usize, kvs: &[KeyValue]) -> usize {
    for (idx, kv) in kvs.iter().enumerate() {
        let Some(item) = etcd_conversion::item_from_etcd(kv) else { continue };
        *bytes_left = bytes_left.saturating_sub(item.entry.value.len());
        items.push(item);
        if *bytes_left == 0 {
            return idx + 1;
        }
    }
    kvs.len()
}

/// The start and the size of the next round.
struct ListRounds {
    start: Bytes,
    range_end: Bytes,
    at: At,
    round_keys_max: usize,
}

impl ListRounds {
    /// Reads the next keys, at most `n_max`. If the answer is too large, it reads half as many.
    async fn next(
        &mut self,
        client: &Client,
        n_max: usize,
    ) -> Result<(RangeResponse, Revision), ReadError> {
        loop {
            let n_keys = self.round_keys_max.min(n_max);
            let range = RangeRequest {
                key: self.start.clone(),
                range_end: self.range_end.clone(),
                limit: i64::try_from(n_keys).unwrap_or(i64::MAX),
                ..RangeRequest::default()
            };
            match read_range_at(client, RANGE, range, self.at).await {
                Ok(answer) => return Ok(answer),
                Err(ListRoundError::Read(error)) => return Err(error),
                Err(ListRoundError::TooLarge) if n_keys > 1 => self.round_keys_max = n_keys / 2,
                Err(ListRoundError::TooLarge) => {
                    return Err(CallError::ResponseTooLarge.into_read_error());
                }
            }
        }
    }

    /// Continues after a key, at the revision that was read.
    fn continue_after_key(
        &mut self,
        last: &KeyValue,
        revision: Revision,
        bytes_per_key: usize,
        round_bytes: usize,
    ) {
        self.start = first_key_after(&last.key);
        self.at = At::Exactly(revision);
        self.round_keys_max = (round_bytes / bytes_per_key.max(1)).clamp(1, ROUND_KEYS_MAX);
    }
}

enum ListRoundError {
    TooLarge,
    Read(ReadError),
}

impl From<ReadError> for ListRoundError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Reads a range at the requested state, and returns its revision.
async fn read_range_at(
    client: &Client,
    method: EtcdMethod,
    range: RangeRequest,
    at: At,
) -> Result<(RangeResponse, Revision), ListRoundError> {
    let exact = match at {
        At::Newest | At::NotOlderThan(_) => 0,
        // etcd would treat revision 0 as the newest.
        At::Exactly(requested @ Revision::ZERO) => {
            let floor = event_stream::find_compaction_floor(client).await?;
            return Err(ReadError::Compacted { requested, floor }.into());
        }
        At::Exactly(revision) => etcd_conversion::to_etcd_revision(revision).unwrap_or(i64::MAX),
    };
    let range = RangeRequest { revision: exact, ..range };
    let response: RangeResponse = match (client.call(method, &range).await, at) {
        (Ok(response), _) => response,
        (Err(CallError::ResponseTooLarge), _) => return Err(ListRoundError::TooLarge),
        (Err(CallError::Compacted), At::Exactly(requested)) => {
            let floor = event_stream::find_compaction_floor(client).await?;
            return Err(ReadError::Compacted { requested, floor }.into());
        }
        (Err(CallError::Future), At::Exactly(requested)) => {
            return Err(future_revision_error(client, requested).await.into());
        }
        (Err(error), _) => return Err(error.into_read_error().into()),
    };
    let current = record_response_revision(client, &response);
    match at {
        At::NotOlderThan(requested) if current < requested => {
            Err(ReadError::Future { requested, current }.into())
        }
        At::Newest | At::NotOlderThan(_) => Ok((response, current)),
        At::Exactly(requested) => Ok((response, requested)),
    }
}

/// Makes the error of a request for a revision that did not exist when etcd answered.
pub(crate) async fn future_revision_error(client: &Client, requested: Revision) -> ReadError {
    match read_current_revision(client).await {
        // The revision exists now, but did not when etcd answered.
        Ok(current) if current >= requested => {
            let current = Revision::new(requested.as_u64().saturating_sub(1));
            ReadError::Future { requested, current }
        }
        Ok(current) => ReadError::Future { requested, current },
        Err(error) => error,
    }
}

fn record_response_revision(client: &Client, response: &RangeResponse) -> Revision {
    let revision = etcd_conversion::revision_from_etcd(
        response.header.as_ref().map_or(0, |header| header.revision),
    );
    client.record_revision(revision);
    revision
}

/// Returns the first key of a list and the exclusive end of its range.
fn range_bounds(prefix: &Prefix, from: &Bound<Key>) -> (Bytes, Bytes) {
    let first = Bytes::copy_from_slice(prefix.as_str().as_bytes());
    let end = Bytes::from(prefix.range_end());
    let start = match from {
        Bound::Unbounded => first.clone(),
        Bound::Included(key) => key_bytes(key),
        Bound::Excluded(key) => first_key_after(key.as_bytes()),
    };
    (start.max(first).min(end.clone()), end)
}

/// Returns the first possible key after a key.
fn first_key_after(key: &[u8]) -> Bytes {
    [key, b"\0"].concat().into()
}

pub(crate) fn key_bytes(key: &Key) -> Bytes {
    Bytes::copy_from_slice(key.as_bytes())
}

/// The reason why a prefix cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixInUse {
    /// A value begins like an object of kube-apiserver.
    #[error(
        "`{prefix}` belongs to another API server: `{key}` is not JSON but Kubernetes' own encoding"
    )]
    Taken {
        /// The prefix of this store.
        prefix: Prefix,
        /// The key of one such value.
        key: String,
    },
    /// The values under the prefix cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The first bytes of values that kube-apiserver has encoded.
const KUBERNETES_MAGIC: &[u8] = b"k8s\0";

/// Reads all values under a prefix and refuses those of kube-apiserver.
pub(crate) async fn check_prefix_unused(
    client: &Client,
    prefix: &Prefix,
) -> Result<(), PrefixInUse> {
    let (start, range_end) = range_bounds(prefix, &Bound::Unbounded);
    let mut rounds =
        ListRounds { start, range_end, at: At::Newest, round_keys_max: FIRST_ROUND_KEYS };
    loop {
        let (response, revision) = rounds.next(client, usize::MAX).await?;
        if let Some(kv) = response.kvs.iter().find(|kv| kv.value.starts_with(KUBERNETES_MAGIC)) {
            let key = String::from_utf8_lossy(&kv.key).into_owned();
            return Err(PrefixInUse::Taken { prefix: prefix.clone(), key });
        }
        let bytes = response.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum::<usize>();
        let last = response.kvs.last().filter(|_| response.more);
        let Some(last) = last else { return Ok(()) };
        rounds.continue_after_key(last, revision, bytes / response.kvs.len(), ROUND_BYTES_TARGET);
    }
}

/// Checks that the cluster answers a read in time.
pub(crate) async fn check_health(
    client: &Client,
    prefix: &Prefix,
    time: std::time::Duration,
) -> Result<(), Unavailable> {
    let key = Bytes::from(format!("{prefix}health"));
    let range = RangeRequest { key, ..RangeRequest::default() };
    match client.call_with_timeout::<_, RangeResponse>(time, RANGE, &range).await {
        Ok(_) => Ok(()),
        Err(CallError::Unavailable(error)) => Err(error),
        Err(error) => Err(Unavailable { reason: error.into_read_error().to_string().into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stays_within_its_prefix() {
        let prefix = Prefix::new("/a/").unwrap();
        let key = |text| Key::new(text).unwrap();
        for (from, start) in [
            (Bound::Unbounded, "/a/"),
            (Bound::Included(key("/a/b")), "/a/b"),
            (Bound::Excluded(key("/a/b")), "/a/b\0"),
            (Bound::Included(key("/0")), "/a/"),
            (Bound::Excluded(key("/b")), "/a0"),
        ] {
            let want = (Bytes::from(start), Bytes::from("/a0"));
            assert_eq!(range_bounds(&prefix, &from), want, "{from:?}");
        }
        assert_eq!(Prefix::new("/").unwrap().range_end(), "0");
    }

    #[test]
    fn items_are_added_up_to_the_one_that_leaves_no_bytes() {
        let kvs = [("/a", 3), ("foreign", 90), ("/b", 5), ("/c", 2)].map(|(key, n_bytes)| {
            KeyValue { key: key.into(), value: vec![0; n_bytes].into(), ..KeyValue::default() }
        });
        for (bytes_max, want) in
            [(1, (1, 1, 0)), (3, (1, 1, 0)), (4, (3, 2, 0)), (9, (4, 3, 0)), (11, (4, 3, 1))]
        {
            let (mut items, mut bytes_left) = (Vec::new(), bytes_max);
            let n_added = add_items_up_to_bytes(&mut items, &mut bytes_left, &kvs);
            assert_eq!((n_added, items.len(), bytes_left), want, "{bytes_max}");
        }
    }

    #[test]
    fn later_rounds_are_sized_by_what_was_read() {
        let mut rounds = ListRounds {
            start: Bytes::new(),
            range_end: Bytes::new(),
            at: At::Newest,
            round_keys_max: 1,
        };
        let last = KeyValue { key: "/a/b".into(), ..KeyValue::default() };
        for (bytes_per_key, n_keys) in
            [(0, ROUND_KEYS_MAX), (1024, 8192), (ROUND_BYTES_TARGET * 2, 1)]
        {
            rounds.continue_after_key(&last, Revision::new(7), bytes_per_key, ROUND_BYTES_TARGET);
            assert_eq!((rounds.round_keys_max, rounds.at), (n_keys, At::Exactly(Revision::new(7))));
        }
        assert_eq!(rounds.start, "/a/b\0");
    }
}
