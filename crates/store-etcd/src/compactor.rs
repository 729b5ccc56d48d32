//! Compaction by age.
//!
//! All servers of a cluster run this, and in each round one of them compacts:
//! 1. Each remembers how often `compact_rev_key` was written and which revision was the newest.
//! 2. After the interval it writes the key, provided that nobody has done so since.
//! 3. Who succeeds compacts to the revision that it remembers; who does not has nothing to do.

use std::time::Duration;

use bytes::Bytes;
use store::{ReadError, Revision};
use tokio::time::{MissedTickBehavior, interval};

use crate::client::Client;
use crate::entries;
use crate::failure::CallError;
use crate::history;
use crate::hub::Hub;
use crate::member::{COMPACT, TXN};
use crate::messages::{
    CompactionRequest, CompactionResponse, Compare, Operation, PutRequest, TxnRequest, TxnResponse,
};
use crate::read;

/// The same key as Kubernetes has, since it says the same thing about the same cluster.
const KEY: &[u8] = b"compact_rev_key";

/// What is remembered from one round to the next.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    version: i64,
    /// Zero before the first.
    revision: Revision,
}

/// Compacts until the task is stopped.
pub(crate) async fn run(client: &Client, hub: &Hub, every: Duration) {
    let mut round = Round::default();
    let mut clock = interval(every);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        // A round that fails is made up for by the next, which compacts to the same revision.
        if let Ok(next) = advance(client, hub, round).await {
            round = next;
        }
    }
}

async fn advance(client: &Client, hub: &Hub, round: Round) -> Result<Round, ReadError> {
    let key = Bytes::from_static(KEY);
    let value = Bytes::from(round.revision.to_string());
    let put = Operation::Put(PutRequest { key: key.clone(), value, lease: 0 });
    let txn = TxnRequest::write(Compare::version(key, round.version), put);
    let response: TxnResponse = client.call(TXN, &txn).await.map_err(CallError::unexpected)?;
    let revision = entries::revision(response.header.as_ref().map_or(0, |header| header.revision));
    client.has_reached(revision);
    if !response.succeeded {
        let version = response.current().map_or(0, |kv| kv.version);
        return Ok(Round { version, revision });
    }
    if round.revision > Revision::ZERO {
        compact(client, hub, round.revision).await?;
    }
    Ok(Round { version: round.version.saturating_add(1), revision })
}

/// Forgets the states before a revision and returns the floor.
pub(crate) async fn compact(
    client: &Client,
    hub: &Hub,
    revision: Revision,
) -> Result<Revision, ReadError> {
    if revision == Revision::ZERO {
        return history::floor(client).await;
    }
    let request = CompactionRequest { revision: entries::number(revision).unwrap_or(i64::MAX) };
    let floor = match client.call::<_, CompactionResponse>(COMPACT, &request).await {
        Ok(_) => revision,
        Err(CallError::Compacted) => history::floor(client).await?,
        Err(CallError::Future) => return Err(read::future(client, revision).await),
        Err(error) => return Err(error.unexpected()),
    };
    hub.forget(floor);
    Ok(floor)
}
