//! Periodic compaction. All servers of a cluster run it, and in each round one of them compacts:
//!
//! 1. Each server remembers the version of `compact_rev_key` and the newest revision.
//! 2. After the interval it writes the key if the version is unchanged.
//! 3. The server whose write succeeds compacts to the revision that it remembers; the others do nothing.

use std::time::Duration;

use bytes::Bytes;
use store::{ReadError, Revision};
use tokio::time::{MissedTickBehavior, interval};

use crate::call_error::CallError;
use crate::client::Client;
use crate::etcd_conversion;
use crate::etcd_messages::{
    CompactionRequest, CompactionResponse, Compare, Operation, PutRequest, TxnRequest, TxnResponse,
};
use crate::event_stream;
use crate::member::{COMPACT, TXN};
use crate::read;
use crate::shared_watch::SharedWatch;

/// The key that kube-apiserver uses for the same purpose.
const COMPACTION_KEY: &[u8] = b"compact_rev_key";

/// The state that one compaction round leaves for the next one.
#[derive(Debug, Clone, Copy, Default)]
struct CompactionRound {
    version: i64,
    /// The newest revision of the previous round; zero before the first round.
    newest_revision: Revision,
}

/// Compacts until the task is stopped.
pub(crate) async fn compact_periodically(
    client: &Client,
    shared_watch: &SharedWatch,
    every: Duration,
) {
    let mut round = CompactionRound::default();
    let mut clock = interval(every);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        // After a failed round the next one compacts to the same revision.
        if let Ok(next) = run_compaction_round(client, shared_watch, round).await {
            round = next;
        }
    }
}

async fn run_compaction_round(
    client: &Client,
    shared_watch: &SharedWatch,
    round: CompactionRound,
) -> Result<CompactionRound, ReadError> {
    let key = Bytes::from_static(COMPACTION_KEY);
    let value = Bytes::from(round.newest_revision.to_string());
    let put = Operation::Put(PutRequest { key: key.clone(), value, lease: 0 });
    let txn = TxnRequest::write(Compare::version_equals(key, round.version), put);
    let response: TxnResponse = client.call(TXN, &txn).await.map_err(CallError::into_read_error)?;
    let revision = etcd_conversion::revision_from_etcd(
        response.header.as_ref().map_or(0, |header| header.revision),
    );
    client.record_revision(revision);
    if !response.succeeded {
        let version = response.current_key_value().map_or(0, |kv| kv.version);
        return Ok(CompactionRound { version, newest_revision: revision });
    }
    if round.newest_revision > Revision::ZERO {
        compact(client, shared_watch, round.newest_revision).await?;
    }
    Ok(CompactionRound { version: round.version.saturating_add(1), newest_revision: revision })
}

/// Compacts to a revision and returns the compaction floor.
pub(crate) async fn compact(
    client: &Client,
    shared_watch: &SharedWatch,
    revision: Revision,
) -> Result<Revision, ReadError> {
    if revision == Revision::ZERO {
        return event_stream::find_compaction_floor(client).await;
    }
    let request = CompactionRequest {
        revision: etcd_conversion::to_etcd_revision(revision).unwrap_or(i64::MAX),
    };
    let floor = match client.call::<_, CompactionResponse>(COMPACT, &request).await {
        Ok(_) => revision,
        Err(CallError::Compacted) => event_stream::find_compaction_floor(client).await?,
        Err(CallError::Future) => return Err(read::future_revision_error(client, revision).await),
        Err(error) => return Err(error.into_read_error()),
    };
    shared_watch.drop_events_up_to(floor);
    Ok(floor)
}
