//! Heartbeats of the servers that share a store, and the status of admission.
//!
//! Each server writes a heartbeat every second under a key with a TTL. The heartbeat contains the revision of
//! its admission configuration, so that the writer of a configuration can wait for all servers, and the
//! fingerprints of what it trusts, see [`crate::peer_trust`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_object::Status;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{
    At, Delete, ExpectedKeyState, Key, KeyError, ListRequest, Prefix, Put, ReadError, Revision,
    WriteError,
};
use tokio::time::Instant;

use super::freshness_barrier::AdmissionConfigSyncMode;
use crate::peer_trust::{HeartbeatTrustFingerprints, ServerTrustFingerprints};
use crate::rest::Query;
use crate::server_state::ServerState;

/// The path of the status of admission on all servers.
pub(crate) const ADMISSION_STATUS_PATH: &str = "/portcullis/admission/status";

/// The path of the heartbeats, below the prefix of the store.
const SERVERS_PATH: &str = "portcullis/servers";
/// The interval of heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// The time to live of a heartbeat. A server without one admits no writes either, because its
/// configuration is stale.
const HEARTBEAT_TTL: Duration = Duration::from_secs(5);
/// The interval at which a waiting writer reads the heartbeats.
const ACK_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The longest `ackTimeout` of a writer.
const ACK_TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// The wait ends this long before the deadline of the request, so that the server can still send the response.
const RESPONSE_TIME: Duration = Duration::from_millis(200);

/// The heartbeat of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ServerHeartbeat {
    id: String,
    /// The revision of its admission configuration.
    observed: u64,
    /// In milliseconds since 1970.
    at: i64,
    /// The fingerprints of what the server trusts. Servers of older versions publish none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trust: Option<HeartbeatTrustFingerprints>,
}

/// Parses how long a writer waits until all servers observe the configuration that it wrote.
///
/// # Errors
/// 400 if the parameter is no duration, or too long.
pub(crate) fn parse_config_ack_timeout(query: &Query) -> Result<Option<Duration>, Status> {
    let Some(text) = query.get("ackTimeout") else { return Ok(None) };
    let bad = |why: &str| Status::bad_request(format!("invalid ackTimeout: {why}"));
    let nanos = go_compat::parse_duration(text).map_err(|error| bad(&error.to_string()))?;
    let wanted = u64::try_from(nanos).map_err(|_| bad("must not be negative"))?;
    let wanted = Duration::from_nanos(wanted);
    if wanted > ACK_TIMEOUT_MAX {
        return Err(bad("must be at most 30s"));
    }
    Ok(Some(wanted))
}

/// Why heartbeats cannot be read.
#[derive(Debug, thiserror::Error)]
enum ReadHeartbeatsError {
    #[error(transparent)]
    Prefix(#[from] KeyError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl ServerState {
    /// The revision of the configuration that this server admits writes by.
    pub(crate) fn observed_config_revision(&self) -> Revision {
        match self.admission_freshness_barrier.options.admission_config_sync_mode {
            AdmissionConfigSyncMode::Barrier => self.snapshot_cache.snapshot().revision,
            AdmissionConfigSyncMode::Poll => self.polled_admission_config.load().revision(),
        }
    }

    /// Writes heartbeats until the task is dropped.
    pub(crate) async fn write_heartbeats(self: Arc<Self>) {
        if self.admission_freshness_barrier.options.is_only_server {
            return;
        }
        let Ok(key) =
            Key::new(&format!("{}/{SERVERS_PATH}/{}", self.store_key_prefix, self.server_id))
        else {
            return;
        };
        let mut expect = ExpectedKeyState::Absent;
        let mut ticks = tokio::time::interval(HEARTBEAT_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let id = self.server_id.clone();
            let heartbeat = ServerHeartbeat {
                id,
                observed: self.observed_config_revision().as_u64(),
                at: Timestamp::now().as_millisecond(),
                trust: Some(self.own_trust_fingerprints()),
            };
            let value = serde_json::to_vec(&heartbeat).unwrap_or_default().into();
            let put = Put {
                key: key.clone(),
                value,
                expected_state: expect,
                ttl: Some(HEARTBEAT_TTL),
                key_group_revision_action: None,
            };
            match tokio::time::timeout(HEARTBEAT_TTL, self.store.put(put)).await {
                Ok(Ok(revision)) => expect = ExpectedKeyState::At(revision),
                Ok(Err(WriteError::Conflict { current })) => {
                    expect = current.map_or(ExpectedKeyState::Absent, |entry| {
                        ExpectedKeyState::At(entry.mod_rev)
                    });
                }
                // The heartbeat expires then. This server also detects by itself that its configuration is stale.
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// Reads the heartbeats of all servers. The only server of a store writes none.
    async fn read_heartbeats(&self) -> Result<Vec<ServerHeartbeat>, ReadHeartbeatsError> {
        if self.admission_freshness_barrier.options.is_only_server {
            let (id, observed) = (self.server_id.clone(), self.observed_config_revision().as_u64());
            return Ok(vec![ServerHeartbeat {
                id,
                observed,
                at: Timestamp::now().as_millisecond(),
                trust: Some(self.own_trust_fingerprints()),
            }]);
        }
        let stored = self.read_stored_heartbeats().await?;
        Ok(stored.into_iter().map(|(heartbeat, _)| heartbeat).collect())
    }

    /// Reads the heartbeats in the store, each with the revision that created its key.
    async fn read_stored_heartbeats(
        &self,
    ) -> Result<Vec<(ServerHeartbeat, Revision)>, ReadHeartbeatsError> {
        let prefix = Prefix::new(&format!("{}/{SERVERS_PATH}/", self.store_key_prefix))?;
        let page = self.store.list(&prefix, ListRequest::default()).await?;
        let read = |item: &store::Item| {
            let heartbeat = serde_json::from_slice(&item.entry.value).ok()?;
            Some((heartbeat, item.entry.create_rev))
        };
        Ok(page.items.iter().filter_map(read).collect())
    }

    /// Reads the trust fingerprints of all servers of the store; `None` if the heartbeats cannot be read.
    pub(crate) async fn read_trust_fingerprints(&self) -> Option<Vec<ServerTrustFingerprints>> {
        let read = tokio::time::timeout(HEARTBEAT_TTL, self.read_stored_heartbeats()).await;
        let stored = read.ok().and_then(Result::ok)?;
        let record = |(heartbeat, first): (ServerHeartbeat, Revision)| {
            let trust = heartbeat.trust?;
            Some(ServerTrustFingerprints {
                server_id: heartbeat.id,
                first_server_heartbeat_revision: first.as_u64(),
                trust_fingerprints: trust,
            })
        };
        Some(stored.into_iter().filter_map(record).collect())
    }

    /// Removes the heartbeat of a server that stops, so that nobody waits for it. Otherwise it expires.
    pub(crate) async fn remove_heartbeat(&self) {
        if self.admission_freshness_barrier.options.is_only_server {
            return;
        }
        let Ok(key) =
            Key::new(&format!("{}/{SERVERS_PATH}/{}", self.store_key_prefix, self.server_id))
        else {
            return;
        };
        let remove = async {
            let found = self.store.get(&key, At::Newest).await.ok()?.entry?;
            let expect = ExpectedKeyState::At(found.mod_rev);
            let delete = Delete {
                key: key.clone(),
                expected_state: expect,
                key_group_revision_action: None,
            };
            self.store.delete(delete).await.ok()
        };
        // The server stops, whether it could remove the heartbeat or not.
        let _ = tokio::time::timeout(HEARTBEAT_INTERVAL, remove).await;
    }

    /// Waits until all servers observe a configuration, and returns a warning that names those that do not.
    pub(crate) async fn wait_until_servers_observe_config(
        &self,
        revision: Revision,
        timeout: Duration,
        deadline: Instant,
    ) -> Option<String> {
        let last = deadline.checked_sub(RESPONSE_TIME).unwrap_or(deadline);
        let last = last.min(Instant::now() + timeout);
        // The last heartbeat of each server and when this server first read it, because clocks of other
        // machines may be wrong.
        let mut last_heartbeats: HashMap<String, (ServerHeartbeat, Instant)> = HashMap::new();
        // A read that fails keeps the result of the last one.
        let mut behind = "servers that cannot be asked".to_owned();
        loop {
            if let Ok(Ok(heartbeats)) = tokio::time::timeout_at(last, self.read_heartbeats()).await
            {
                let now = Instant::now();
                let mut names = Vec::new();
                for heartbeat in heartbeats {
                    let known = last_heartbeats
                        .entry(heartbeat.id.clone())
                        .or_insert((heartbeat.clone(), now));
                    if known.0 != heartbeat {
                        *known = (heartbeat.clone(), now);
                    }
                    let is_alive = now.duration_since(known.1) < HEARTBEAT_TTL;
                    if is_alive && heartbeat.observed < revision.as_u64() {
                        names.push(heartbeat.id);
                    }
                }
                if names.is_empty() {
                    return None;
                }
                behind = names.join(", ");
            }
            if Instant::now() + ACK_POLL_INTERVAL >= last {
                return Some(format!(
                    "configuration stored at revision {revision} but not yet observed by: {behind}"
                ));
            }
            tokio::time::sleep(ACK_POLL_INTERVAL).await;
        }
    }

    /// The freshness of the admission configuration on this server, and the heartbeats of all servers.
    pub(crate) async fn admission_status_json(&self) -> Value {
        let confirmation = self.admission_freshness_barrier.config_confirmation_age();
        let state = match (confirmation.last_confirmation_age, confirmation.is_confirmation_stale) {
            (None, _) => "bootstrapping",
            (Some(_), false) => "ready",
            (Some(_), true) => "stale",
        };
        let mode = match self.admission_freshness_barrier.options.admission_config_sync_mode {
            AdmissionConfigSyncMode::Barrier => "barrier",
            AdmissionConfigSyncMode::Poll => "poll",
        };
        let now = Timestamp::now();
        let config_confirmed_at =
            confirmation.last_confirmation_age.and_then(|age| now.checked_sub(age).ok());
        let undecodable = match self.admission_freshness_barrier.options.admission_config_sync_mode
        {
            AdmissionConfigSyncMode::Barrier => Arc::clone(
                &self.snapshot_cache.snapshot().configured_hooks.undecodable_configurations,
            ),
            AdmissionConfigSyncMode::Poll => {
                self.polled_admission_config.load().undecodable_configurations()
            }
        };
        let invalid: Vec<Value> =
            undecodable.iter().map(|(path, why)| json!({"path": path, "error": why})).collect();
        let heartbeats = tokio::time::timeout(HEARTBEAT_TTL, self.read_heartbeats()).await;
        let servers: Vec<Value> = heartbeats
            .ok()
            .and_then(Result::ok)
            .unwrap_or_default()
            .iter()
            .map(|own| {
                let age = (now.as_millisecond().saturating_sub(own.at)).max(0) as f64 / 1000.0;
                let (id, observed, trust) = (&own.id, own.observed, &own.trust);
                json!({"id": id, "observed": observed, "heartbeatAgeSeconds": age, "trust": trust})
            })
            .collect();
        json!({
            "serverId": self.server_id,
            "mode": mode,
            "state": state,
            "revision": self.observed_config_revision().as_u64(),
            "confirmedAt": config_confirmed_at.map(api_object::format_rfc3339_micro),
            "ageSeconds": confirmation.last_confirmation_age.map(|age| age.as_secs_f64()),
            "lastError": confirmation.last_read_error.as_deref(),
            "invalidObjects": invalid,
            "servers": servers,
            "trust": self.trust_status_json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers of different versions run on one store during an upgrade.
    #[test]
    fn heartbeats_of_older_versions_are_read() {
        let old = r#"{"id": "a", "observed": 7, "at": 1}"#;
        let read: ServerHeartbeat = serde_json::from_str(old).unwrap();
        assert_eq!((read.id.as_str(), read.observed, read.trust), ("a", 7, None));
        let later = r#"{"id": "a", "observed": 7, "at": 1, "trust": {"clientAuthorities": [], "frontProxyAuthorities":
            [], "serviceAccountKeys": [], "serviceAccountIssuers": [], "more": 1}, "more": 1}"#;
        let read: ServerHeartbeat = serde_json::from_str(later).unwrap();
        assert_eq!(read.trust, Some(HeartbeatTrustFingerprints::default()));
    }

    #[test]
    fn how_long_writers_may_wait() {
        for (text, want) in [
            ("", Some(None)),
            ("ackTimeout=5s", Some(Some(Duration::from_secs(5)))),
            ("ackTimeout=30s", Some(Some(ACK_TIMEOUT_MAX))),
            ("ackTimeout=31s", None),
            ("ackTimeout=-1s", None),
            ("ackTimeout=soon", None),
            ("ackTimeout=", None),
        ] {
            let found = parse_config_ack_timeout(&Query::parse(&format!("/x?{text}")));
            assert_eq!(found.clone().ok(), want, "{text}");
            assert!(found.is_ok() || found.is_err_and(|status| status.code == 400));
        }
    }
}
