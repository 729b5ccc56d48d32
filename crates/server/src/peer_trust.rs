//! Compares the authorities, keys and issuers that the servers of one store trust.
//!
//! Servers that trust other authorities or keys give one user different answers: a token that one of them issued is
//! refused by the next. Each server publishes the fingerprints of what it trusts in its heartbeat and compares
//! those of the others with its own. The result is only reported: no fingerprint of another server changes what
//! this server trusts. Only servers write heartbeats; no object of the API is stored at their keys.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use authn::TrustFingerprints;
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::server_state::ServerState;

/// The interval at which a server compares its fingerprints with those of its peers.
const COMPARISON_INTERVAL: Duration = Duration::from_secs(2);

/// The maximum number of fingerprints of one kind in a heartbeat. A longer list is published as one hash.
const FINGERPRINTS_MAX: usize = 32;

/// The maximum number of peers that are compared.
const PEERS_MAX: usize = 256;

/// The fingerprints in a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeartbeatTrustFingerprints {
    client_authorities: Vec<String>,
    front_proxy_authorities: Vec<String>,
    service_account_keys: Vec<String>,
    service_account_issuers: Vec<String>,
}

/// The fingerprints of one server of the store, which may be this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerTrustFingerprints {
    pub(crate) server_id: String,
    /// The revision of the server's first heartbeat. It orders the starts of servers without a clock.
    pub(crate) first_server_heartbeat_revision: u64,
    pub(crate) trust_fingerprints: HeartbeatTrustFingerprints,
}

/// A peer whose authorities, keys or issuers differ from those of this server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerTrustDifference {
    server_id: String,
    /// The kinds of fingerprints that differ.
    differing_fingerprint_kinds: Vec<&'static str>,
}

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PeerTrustComparison {
    peer_differences: BTreeSet<PeerTrustDifference>,
    is_outvoted_by_peers: bool,
}

impl HeartbeatTrustFingerprints {
    pub(crate) fn new(fingerprints: TrustFingerprints) -> Self {
        Self {
            client_authorities: hash_if_too_long(fingerprints.client_authority_fingerprints),
            front_proxy_authorities: hash_if_too_long(
                fingerprints.front_proxy_authority_fingerprints,
            ),
            service_account_keys: hash_if_too_long(fingerprints.service_account_key_ids),
            service_account_issuers: hash_if_too_long(fingerprints.service_account_issuers),
        }
    }

    /// The kinds of fingerprints in which two servers differ, with the names of the fields in the status.
    fn differing_fingerprint_kinds(&self, other: &Self) -> Vec<&'static str> {
        let kinds = [
            ("clientAuthorities", &self.client_authorities, &other.client_authorities),
            (
                "frontProxyAuthorities",
                &self.front_proxy_authorities,
                &other.front_proxy_authorities,
            ),
            ("serviceAccountKeys", &self.service_account_keys, &other.service_account_keys),
            (
                "serviceAccountIssuers",
                &self.service_account_issuers,
                &other.service_account_issuers,
            ),
        ];
        kinds.into_iter().filter(|(_, own, other)| own != other).map(|(kind, _, _)| kind).collect()
    }
}

/// Replaces a long list by one hash of all its items, so that heartbeats stay small.
fn hash_if_too_long(list: Vec<String>) -> Vec<String> {
    if list.len() <= FINGERPRINTS_MAX {
        return list;
    }
    let hash = digest::digest(&digest::SHA256, list.join("\n").as_bytes());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    vec![format!("{} items with the hash {hex}", list.len())]
}

/// Compares what a server trusts with what its peers trust.
///
/// Servers with equal fingerprints form a group. A server is outvoted if another group is larger, or is as large
/// and contains the server that started first. So a server that joins with other files than its peers is outvoted,
/// and its peers are not. During a rolling replacement of files most servers stay in service.
pub(crate) fn compare_trust_fingerprints(
    server_id: &str,
    own: &HeartbeatTrustFingerprints,
    records: &[ServerTrustFingerprints],
) -> PeerTrustComparison {
    let first_of = |trust: &HeartbeatTrustFingerprints| {
        let group = records.iter().filter(|record| record.trust_fingerprints == *trust);
        group.map(|record| record.first_server_heartbeat_revision).min().unwrap_or(u64::MAX)
    };
    let peers_like = |trust: &HeartbeatTrustFingerprints| {
        let peers = records.iter().filter(|record| record.server_id != server_id);
        peers.filter(|record| record.trust_fingerprints == *trust).count()
    };
    let own_size = peers_like(own) + 1;
    let mut comparison = PeerTrustComparison::default();
    for peer in records.iter().filter(|peer| peer.server_id != server_id).take(PEERS_MAX) {
        let kinds = own.differing_fingerprint_kinds(&peer.trust_fingerprints);
        if kinds.is_empty() {
            continue;
        }
        let size = peers_like(&peer.trust_fingerprints);
        let is_older = first_of(&peer.trust_fingerprints) < first_of(own);
        comparison.is_outvoted_by_peers |= size > own_size || (size == own_size && is_older);
        comparison.peer_differences.insert(PeerTrustDifference {
            server_id: peer.server_id.clone(),
            differing_fingerprint_kinds: kinds,
        });
    }
    comparison
}

impl PeerTrustComparison {
    /// Whether all servers trust the same authorities, keys and issuers.
    pub(crate) fn has_no_trust_differences(&self) -> bool {
        self.peer_differences.is_empty()
    }

    /// Whether the files of this server have to change, and not those of its peers.
    pub(crate) fn is_outvoted_by_peers(&self) -> bool {
        self.is_outvoted_by_peers
    }
}

impl ServerState {
    /// The fingerprints that this server publishes.
    pub(crate) fn own_trust_fingerprints(&self) -> HeartbeatTrustFingerprints {
        HeartbeatTrustFingerprints::new(self.authenticator.trust_fingerprints())
    }

    /// Compares the fingerprints of all servers until the task is dropped.
    pub(crate) async fn compare_trust_with_peers_periodically(self: Arc<Self>) {
        if self.admission_freshness_barrier.options.is_only_server {
            return;
        }
        loop {
            tokio::time::sleep(COMPARISON_INTERVAL).await;
            self.compare_trust_with_peers().await;
        }
    }

    /// Compares the fingerprints of all servers once, and logs a result that differs from the last one. If the
    /// heartbeats cannot be read, the last result stays.
    pub(crate) async fn compare_trust_with_peers(&self) {
        if self.admission_freshness_barrier.options.is_only_server {
            return;
        }
        let Some(records) = self.read_trust_fingerprints().await else { return };
        let next =
            compare_trust_fingerprints(&self.server_id, &self.own_trust_fingerprints(), &records);
        let last = self.trust_comparison.load();
        if **last == next {
            return;
        }
        for difference in next.peer_differences.difference(&last.peer_differences) {
            let kinds = difference.differing_fingerprint_kinds.join(", ");
            self.log.warn(
                "another server on this store trusts other authorities or keys; users that one server knows, the \
                 other refuses",
                &[("server", &difference.server_id), ("differs", &kinds)],
            );
        }
        match (next.is_outvoted_by_peers, next.has_no_trust_differences()) {
            (true, _) => self.log.error(
                "this server is not ready, because it trusts other authorities or keys than its peers",
                &[],
            ),
            (false, true) => self.log.notice("all servers trust the same authorities and keys", &[]),
            (false, false) => {}
        }
        self.trust_comparison.store(Arc::new(next));
    }

    /// The fingerprints of this server and the peers that differ, as the status shows them.
    pub(crate) fn trust_status_json(&self) -> Value {
        let comparison = self.trust_comparison.load();
        let state = match (comparison.has_no_trust_differences(), comparison.is_outvoted_by_peers) {
            (true, _) => "same",
            (false, false) => "peersDiffer",
            (false, true) => "differsFromPeers",
        };
        let differences: Vec<Value> = comparison
            .peer_differences
            .iter()
            .map(|own| json!({"id": own.server_id, "kinds": own.differing_fingerprint_kinds}))
            .collect();
        json!({"state": state, "fingerprints": self.own_trust_fingerprints(), "differences": differences})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(authority: &str, key: &str) -> HeartbeatTrustFingerprints {
        let list = |text: &str| vec![text.to_owned()];
        HeartbeatTrustFingerprints {
            client_authorities: list(authority),
            service_account_keys: list(key),
            ..HeartbeatTrustFingerprints::default()
        }
    }

    /// The servers `a` to `e` have these authorities, and started in that order.
    fn outvoted(authorities: &[&str]) -> Vec<bool> {
        let ids = ["a", "b", "c", "d", "e"];
        let records: Vec<ServerTrustFingerprints> = ids
            .iter()
            .zip(authorities)
            .zip(1..)
            .map(|((id, authority), first_server_heartbeat_revision)| ServerTrustFingerprints {
                server_id: (*id).to_owned(),
                first_server_heartbeat_revision,
                trust_fingerprints: trust(authority, "k"),
            })
            .collect();
        let compare = |own: &ServerTrustFingerprints| {
            compare_trust_fingerprints(&own.server_id, &own.trust_fingerprints, &records)
        };
        records.iter().map(|own| compare(own).is_outvoted_by_peers()).collect()
    }

    #[test]
    fn a_server_that_differs_from_the_others_is_outvoted() {
        for (authorities, want) in [
            (&["x"][..], &[false][..]),
            (&["x", "x", "x"], &[false, false, false]),
            (&["x", "x", "y"], &[false, false, true]),
            (&["y", "x", "x"], &[true, false, false]),
            (&["x", "y"], &[false, true]),
            (&["y", "x", "y", "x"], &[false, true, false, true]),
            (&["x", "y", "z"], &[false, true, true]),
            (&["x", "y", "y", "z", "z"], &[true, false, false, true, true]),
        ] {
            assert_eq!(outvoted(authorities), want, "{authorities:?}");
            assert!(want.contains(&false), "some server stays in service");
        }
    }

    #[test]
    fn a_server_that_starts_counts_as_the_last() {
        let first = ServerTrustFingerprints {
            server_id: "a".to_owned(),
            first_server_heartbeat_revision: 7,
            trust_fingerprints: trust("x", "k"),
        };
        let records = [first];
        let same = compare_trust_fingerprints("new", &trust("x", "k"), &records);
        assert!(same.has_no_trust_differences() && !same.is_outvoted_by_peers());
        let other = compare_trust_fingerprints("new", &trust("x", "other"), &records);
        assert!(!other.has_no_trust_differences() && other.is_outvoted_by_peers());
        let difference = PeerTrustDifference {
            server_id: "a".to_owned(),
            differing_fingerprint_kinds: vec!["serviceAccountKeys"],
        };
        assert_eq!(other.peer_differences, BTreeSet::from([difference]));
    }

    #[test]
    fn long_lists_are_published_as_one_hash() {
        let list = |n: usize| -> Vec<String> { (0..n).map(|own| own.to_string()).collect() };
        assert_eq!(hash_if_too_long(list(FINGERPRINTS_MAX)).len(), FINGERPRINTS_MAX);
        let long = hash_if_too_long(list(FINGERPRINTS_MAX + 1));
        assert_eq!(long.len(), 1);
        assert_ne!(long, hash_if_too_long(list(FINGERPRINTS_MAX + 2)));
        let mut other = list(FINGERPRINTS_MAX + 1);
        other[0] = "x".to_owned();
        assert_ne!(long, hash_if_too_long(other));
    }
}
