//! Which servers share the store, and how much of the configuration of admission each has seen.
//!
//! Each server says so once a second, under a key that goes when it does not. Who writes a
//! configuration may wait for all of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_object::Status;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Expect, Key, ListRequest, Prefix, Put, Revision, Store, WriteError};
use tokio::time::Instant;

use crate::confirm::SyncMode;
use crate::rest::Query;
use crate::server_state::ServerState;

/// Tells how new the configuration of admission is, here and elsewhere.
pub(crate) const ADMISSION_STATUS: &str = "/portcullis/admission/status";

/// Where servers say how far they are, below the prefix.
const SERVERS_PATH: &str = "portcullis/servers";
/// How often they do.
const BEAT: Duration = Duration::from_secs(1);
/// A server that has not said so for this long counts no more: it admits nothing either.
const LIFETIME: Duration = Duration::from_secs(5);
/// How often a writer that waits looks again.
const LOOK: Duration = Duration::from_millis(50);
/// The longest that a writer may wait for others.
const ACK_MAX: Duration = Duration::from_secs(30);
/// What is left of the time of a request for its answer when waiting for others must end.
const ANSWER_TIME: Duration = Duration::from_millis(200);

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Beat {
    id: String,
    observed: u64,
    /// In milliseconds since 1970.
    at: i64,
}

/// How long a writer wants to wait until all servers have seen what it wrote.
///
/// # Errors
/// 400 if that is no time, or too long.
pub(crate) fn ack_timeout(query: &Query) -> Result<Option<Duration>, Status> {
    let Some(text) = query.get("ackTimeout") else { return Ok(None) };
    let bad = |why: &str| Status::bad_request(format!("invalid ackTimeout: {why}"));
    let nanos = go_compat::parse_duration(text).map_err(|error| bad(&error.to_string()))?;
    let wanted = u64::try_from(nanos).map_err(|_| bad("must not be negative"))?;
    let wanted = Duration::from_nanos(wanted);
    if wanted > ACK_MAX {
        return Err(bad("must be at most 30s"));
    }
    Ok(Some(wanted))
}

impl<S: Store> ServerState<S> {
    /// How much of the configuration requests are admitted by.
    pub(crate) fn observed(&self) -> Revision {
        match self.barrier.options.mode {
            SyncMode::Barrier => self.snapshot_cache.snapshot().revision,
            SyncMode::Poll => self.polled.load().revision(),
        }
    }

    /// Says once a second how far this server is, until the task is dropped.
    pub(crate) async fn beat(self: Arc<Self>) {
        if self.barrier.options.is_only_server {
            return;
        }
        let Ok(key) = Key::new(&format!("{}/{SERVERS_PATH}/{}", self.prefix, self.server_id))
        else {
            return;
        };
        let mut expect = Expect::Absent;
        let mut ticks = tokio::time::interval(BEAT);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let id = self.server_id.clone();
            let beat = Beat {
                id,
                observed: self.observed().number(),
                at: Timestamp::now().as_millisecond(),
            };
            let value = serde_json::to_vec(&beat).unwrap_or_default().into();
            let put =
                Put { key: key.clone(), value, expect, ttl: Some(LIFETIME), shared_revision: None };
            match tokio::time::timeout(LIFETIME, self.store.put(put)).await {
                Ok(Ok(revision)) => expect = Expect::At(revision),
                Ok(Err(WriteError::Conflict { current })) => {
                    expect = current.map_or(Expect::Absent, |entry| Expect::At(entry.mod_rev));
                }
                // Others find out by themselves, and so does this server.
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// All servers that are alive. The only one need not say so.
    async fn beats(&self) -> Result<Vec<Beat>, String> {
        if self.barrier.options.is_only_server {
            let (id, observed) = (self.server_id.clone(), self.observed().number());
            return Ok(vec![Beat { id, observed, at: Timestamp::now().as_millisecond() }]);
        }
        let prefix = Prefix::new(&format!("{}/{SERVERS_PATH}/", self.prefix));
        let prefix = prefix.map_err(|error| error.to_string())?;
        let page = self.store.list(&prefix, ListRequest::default()).await;
        let page = page.map_err(|error| error.to_string())?;
        let read = |item: &store::Item| serde_json::from_slice(&item.entry.value).ok();
        Ok(page.items.iter().filter_map(read).collect())
    }

    /// Waits until all servers have seen a configuration, and returns what to warn of if they have
    /// not.
    pub(crate) async fn wait_for_servers(
        &self,
        revision: Revision,
        timeout: Duration,
        deadline: Instant,
    ) -> Option<String> {
        let last = deadline.checked_sub(ANSWER_TIME).unwrap_or(deadline);
        let last = last.min(Instant::now() + timeout);
        // The last beat of each, and when it was seen first: clocks of other machines may be wrong.
        let mut seen: HashMap<String, (Beat, Instant)> = HashMap::new();
        // A look that fails takes nothing back of what the one before has shown.
        let mut behind = "servers that can not be asked".to_owned();
        loop {
            if let Ok(Ok(beats)) = tokio::time::timeout_at(last, self.beats()).await {
                let now = Instant::now();
                let mut names = Vec::new();
                for beat in beats {
                    let known = seen.entry(beat.id.clone()).or_insert((beat.clone(), now));
                    if known.0 != beat {
                        *known = (beat.clone(), now);
                    }
                    let is_alive = now.duration_since(known.1) < LIFETIME;
                    if is_alive && beat.observed < revision.number() {
                        names.push(beat.id);
                    }
                }
                if names.is_empty() {
                    return None;
                }
                behind = names.join(", ");
            }
            if Instant::now() + LOOK >= last {
                return Some(format!(
                    "configuration stored at revision {revision} but not yet observed by: {behind}"
                ));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How new the configuration of admission is, here and elsewhere.
    pub(crate) async fn admission_status(&self) -> Value {
        let freshness = self.barrier.freshness();
        let state = match (freshness.age, freshness.is_stale) {
            (None, _) => "bootstrapping",
            (Some(_), false) => "ready",
            (Some(_), true) => "stale",
        };
        let mode = match self.barrier.options.mode {
            SyncMode::Barrier => "barrier",
            SyncMode::Poll => "poll",
        };
        let now = Timestamp::now();
        let confirmed_at = freshness.age.and_then(|age| now.checked_sub(age).ok());
        let unreadable = match self.barrier.options.mode {
            SyncMode::Barrier => Arc::clone(&self.snapshot_cache.snapshot().hooks.unreadable),
            SyncMode::Poll => self.polled.load().unreadable(),
        };
        let invalid: Vec<Value> =
            unreadable.iter().map(|(path, why)| json!({"path": path, "error": why})).collect();
        let asked = tokio::time::timeout(LIFETIME, self.beats()).await;
        let servers: Vec<Value> = asked
            .ok()
            .and_then(Result::ok)
            .unwrap_or_default()
            .iter()
            .map(|own| {
                let age = (now.as_millisecond().saturating_sub(own.at)).max(0) as f64 / 1000.0;
                json!({"id": own.id, "observed": own.observed, "heartbeatAgeSeconds": age})
            })
            .collect();
        json!({
            "serverId": self.server_id,
            "mode": mode,
            "state": state,
            "revision": self.observed().number(),
            "confirmedAt": confirmed_at.map(api_object::rfc3339_micro),
            "ageSeconds": freshness.age.map(|age| age.as_secs_f64()),
            "lastError": freshness.last_error.as_deref(),
            "invalidObjects": invalid,
            "servers": servers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_writers_may_wait() {
        for (text, want) in [
            ("", Some(None)),
            ("ackTimeout=5s", Some(Some(Duration::from_secs(5)))),
            ("ackTimeout=30s", Some(Some(ACK_MAX))),
            ("ackTimeout=31s", None),
            ("ackTimeout=-1s", None),
            ("ackTimeout=soon", None),
            ("ackTimeout=", None),
        ] {
            let found = ack_timeout(&Query::parse(&format!("/x?{text}")));
            assert_eq!(found.clone().ok(), want, "{text}");
            assert!(found.is_ok() || found.is_err_and(|status| status.code == 400));
        }
    }
}
