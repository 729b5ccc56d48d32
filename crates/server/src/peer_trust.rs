//! Compares the authorities, keys and issuers that the servers of one store trust.
//!
//! Servers that trust other authorities or keys give one user different answers: a token that one of them
//! issued is refused by the next. Each server publishes the fingerprints of what it trusts in its heartbeat and
//! compares those of the others with its own. The result is a message: nothing that another server publishes
//! changes what this server trusts. Only servers write heartbeats; no object of the API is stored at their
//! keys.

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
pub(crate) struct TrustRecord {
    client_authorities: Vec<String>,
    front_proxy_authorities: Vec<String>,
    service_account_keys: Vec<String>,
    service_account_issuers: Vec<String>,
}

/// The content of the heartbeat of one server, which may be this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerRecord {
    pub(crate) server_id: String,
    /// The revision at which the server wrote its first heartbeat: an order of starts that needs no clock.
    pub(crate) first_revision: u64,
    pub(crate) trust: TrustRecord,
}

/// A peer whose authorities, keys or issuers differ from those of this server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerDifference {
    server_id: String,
    /// The kinds of fingerprints that differ.
    kinds: Vec<&'static str>,
}

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TrustComparison {
    differences: BTreeSet<PeerDifference>,
    is_outvoted: bool,
}

impl TrustRecord {
    pub(crate) fn new(fingerprints: TrustFingerprints) -> Self {
        Self {
            client_authorities: bound_list(fingerprints.client_authorities),
            front_proxy_authorities: bound_list(fingerprints.front_proxy_authorities),
            service_account_keys: bound_list(fingerprints.service_account_keys),
            service_account_issuers: bound_list(fingerprints.service_account_issuers),
        }
    }

    /// The kinds of fingerprints in which two servers differ, with the names of the fields in the status.
    fn different_kinds(&self, other: &Self) -> Vec<&'static str> {
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
fn bound_list(list: Vec<String>) -> Vec<String> {
    if list.len() <= FINGERPRINTS_MAX {
        return list;
    }
    let hash = digest::digest(&digest::SHA256, list.join("\n").as_bytes());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    vec![format!("{} items with the hash {hex}", list.len())]
}

/// Compares what a server trusts with what its peers trust.
///
/// Servers that trust the same form a group. A server is outvoted if another group is larger, or as large and
/// has the server that started first. So a server that joins with other files than the rest is outvoted, and
/// never the rest; while files are replaced one server after the other, most servers stay in service.
pub(crate) fn compare_trust(
    server_id: &str,
    own: &TrustRecord,
    records: &[PeerRecord],
) -> TrustComparison {
    let first_of = |trust: &TrustRecord| {
        let group = records.iter().filter(|record| record.trust == *trust);
        group.map(|record| record.first_revision).min().unwrap_or(u64::MAX)
    };
    let peers_like = |trust: &TrustRecord| {
        let peers = records.iter().filter(|record| record.server_id != server_id);
        peers.filter(|record| record.trust == *trust).count()
    };
    let own_size = peers_like(own) + 1;
    let mut comparison = TrustComparison::default();
    for peer in records.iter().filter(|peer| peer.server_id != server_id).take(PEERS_MAX) {
        let kinds = own.different_kinds(&peer.trust);
        if kinds.is_empty() {
            continue;
        }
        let size = peers_like(&peer.trust);
        let is_older = first_of(&peer.trust) < first_of(own);
        comparison.is_outvoted |= size > own_size || (size == own_size && is_older);
        comparison.differences.insert(PeerDifference { server_id: peer.server_id.clone(), kinds });
    }
    comparison
}

impl TrustComparison {
    /// Whether all servers trust the same.
    pub(crate) fn is_same(&self) -> bool {
        self.differences.is_empty()
    }

    /// Whether this server has to change rather than its peers.
    pub(crate) fn is_outvoted(&self) -> bool {
        self.is_outvoted
    }
}

impl ServerState {
    /// The fingerprints that this server publishes.
    pub(crate) fn trust_record(&self) -> TrustRecord {
        TrustRecord::new(self.authenticator.trust_fingerprints())
    }

    /// Compares the fingerprints of all servers until the task is dropped.
    pub(crate) async fn compare_trust_periodically(self: Arc<Self>) {
        if self.barrier.options.is_only_server {
            return;
        }
        loop {
            tokio::time::sleep(COMPARISON_INTERVAL).await;
            self.compare_trust_with_peers().await;
        }
    }

    /// Compares the fingerprints of all servers once, and logs a result that differs from the last one. If the
    /// heartbeats can not be read, the last result stays.
    pub(crate) async fn compare_trust_with_peers(&self) {
        if self.barrier.options.is_only_server {
            return;
        }
        let Some(records) = self.read_trust_records().await else { return };
        let next = compare_trust(&self.server_id, &self.trust_record(), &records);
        let last = self.trust_comparison.load();
        if **last == next {
            return;
        }
        for difference in next.differences.difference(&last.differences) {
            let kinds = difference.kinds.join(", ");
            self.log.warn(
                "another server on this store trusts other authorities or keys; users that one server knows, the \
                 other refuses",
                &[("server", &difference.server_id), ("differs", &kinds)],
            );
        }
        match (next.is_outvoted, next.is_same()) {
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
    pub(crate) fn trust_status(&self) -> Value {
        let comparison = self.trust_comparison.load();
        let state = match (comparison.is_same(), comparison.is_outvoted) {
            (true, _) => "same",
            (false, false) => "peersDiffer",
            (false, true) => "differsFromPeers",
        };
        let differences: Vec<Value> = comparison
            .differences
            .iter()
            .map(|own| json!({"id": own.server_id, "kinds": own.kinds}))
            .collect();
        json!({"state": state, "fingerprints": self.trust_record(), "differences": differences})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(authority: &str, key: &str) -> TrustRecord {
        let list = |text: &str| vec![text.to_owned()];
        TrustRecord {
            client_authorities: list(authority),
            service_account_keys: list(key),
            ..TrustRecord::default()
        }
    }

    /// The servers `a` to `e` have these authorities, and started in that order.
    fn outvoted(authorities: &[&str]) -> Vec<bool> {
        let ids = ["a", "b", "c", "d", "e"];
        let records: Vec<PeerRecord> = ids
            .iter()
            .zip(authorities)
            .zip(1..)
            .map(|((id, authority), first_revision)| PeerRecord {
                server_id: (*id).to_owned(),
                first_revision,
                trust: trust(authority, "k"),
            })
            .collect();
        let compare = |own: &PeerRecord| compare_trust(&own.server_id, &own.trust, &records);
        records.iter().map(|own| compare(own).is_outvoted()).collect()
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
        let first =
            PeerRecord { server_id: "a".to_owned(), first_revision: 7, trust: trust("x", "k") };
        let records = [first];
        let same = compare_trust("new", &trust("x", "k"), &records);
        assert!(same.is_same() && !same.is_outvoted());
        let other = compare_trust("new", &trust("x", "other"), &records);
        assert!(!other.is_same() && other.is_outvoted());
        let difference =
            PeerDifference { server_id: "a".to_owned(), kinds: vec!["serviceAccountKeys"] };
        assert_eq!(other.differences, BTreeSet::from([difference]));
    }

    #[test]
    fn long_lists_are_published_as_one_hash() {
        let list = |n: usize| -> Vec<String> { (0..n).map(|own| own.to_string()).collect() };
        assert_eq!(bound_list(list(FINGERPRINTS_MAX)).len(), FINGERPRINTS_MAX);
        let long = bound_list(list(FINGERPRINTS_MAX + 1));
        assert_eq!(long.len(), 1);
        assert_ne!(long, bound_list(list(FINGERPRINTS_MAX + 2)));
        let mut other = list(FINGERPRINTS_MAX + 1);
        other[0] = "x".to_owned();
        assert_ne!(long, bound_list(other));
    }
}
