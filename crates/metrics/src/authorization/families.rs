//! The metric families of authorization: name, help text, type and labels.
//!
//! Labels are sorted, as Kubernetes exposes them.

use prometheus::core::Desc;
use prometheus::proto::MetricType;

/// A metric family of authorization.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) metric_type: MetricType,
    pub(crate) labels: &'static [&'static str],
}

impl Family {
    /// Whether Kubernetes has no such family.
    pub(crate) fn is_portcullis_only(&self) -> bool {
        self.name.starts_with("portcullis_")
    }

    /// Makes the descriptor by which a registry distinguishes families. It fails if a name is malformed, which a test
    /// excludes for the families below.
    pub(crate) fn to_descriptor(&self) -> Result<Desc, prometheus::Error> {
        let labels = self.labels.iter().map(|label| (*label).to_owned()).collect();
        Desc::new(self.name.to_owned(), self.help.to_owned(), labels, Default::default())
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, help, metric_type: MetricType::COUNTER, labels }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Family {
    Family { name, help, metric_type: MetricType::GAUGE, labels }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, help, metric_type: MetricType::HISTOGRAM, labels }
}

pub(crate) static AUTHORIZER_DECISIONS: Family = counter(
    "apiserver_authorization_decisions_total",
    &["decision", "name", "type"],
    "[ALPHA] Requests that an authorizer allowed or denied, by its type and name.",
);
pub(crate) static NO_OPINIONS: Family = counter(
    "portcullis_authorization_no_opinions_total",
    &["name", "type"],
    "[ALPHA] Requests that an authorizer left to the next one, by its type and name.",
);
pub(crate) static AUTHORIZER_DURATION: Family = histogram(
    "portcullis_authorization_authorizer_duration_seconds",
    &["name", "type"],
    "[ALPHA] Time until an authorizer answered, whatever it answered, by its type and name.",
);

pub(crate) static CHAIN_DECISIONS: Family = counter(
    "authorization_attempts_total",
    &["result"],
    "[ALPHA] Requests that the whole chain was asked about, by result.",
);
pub(crate) static CHAIN_DURATION: Family = histogram(
    "authorization_duration_seconds",
    &["result"],
    "[ALPHA] Time until the whole chain answered about a request, by result.",
);

pub(crate) static WEBHOOK_EVALUATIONS: Family = counter(
    "apiserver_authorization_webhook_evaluations_total",
    &["name", "result"],
    "[ALPHA] Attempts to ask an authorization webhook, by its name and by result.",
);
pub(crate) static WEBHOOK_DURATION: Family = histogram(
    "apiserver_authorization_webhook_duration_seconds",
    &["name", "result"],
    "[ALPHA] Time of one attempt to ask an authorization webhook, by its name and by result.",
);
pub(crate) static FAIL_OPEN: Family = counter(
    "apiserver_authorization_webhook_evaluations_fail_open_total",
    &["name", "result"],
    "[ALPHA] Failures of an authorization webhook that its failure policy turned into no opinion.",
);
pub(crate) static FAIL_OPEN_BY_CAUSE: Family = counter(
    "portcullis_authorization_webhook_failed_open_total",
    &["cause", "name"],
    "[ALPHA] Requests that the failure policy of a webhook passed to the next authorizer, by what the \
     webhook did wrong.",
);
pub(crate) static MATCH_CONDITION_ERRORS: Family = counter(
    "apiserver_authorization_match_condition_evaluation_errors_total",
    &["name", "type"],
    "[ALPHA] Requests for which a match condition of an authorizer could not be evaluated.",
);
pub(crate) static MATCH_CONDITION_EXCLUSIONS: Family = counter(
    "apiserver_authorization_match_condition_exclusions_total",
    &["name", "type"],
    "[ALPHA] Requests that an authorizer was not asked about because a match condition is false.",
);
pub(crate) static MATCH_CONDITION_DURATION: Family = histogram(
    "apiserver_authorization_match_condition_evaluation_seconds",
    &["name", "type"],
    "[ALPHA] Time to evaluate all match conditions of an authorizer for one request.",
);

pub(crate) static LAST_RELOAD_TIME: Family = gauge(
    "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
    &["apiserver_id_hash", "status"],
    "[BETA] When the authorization configuration was last reloaded, by how that went.",
);
pub(crate) static RELOADS: Family = counter(
    "apiserver_authorization_config_controller_automatic_reloads_total",
    &["apiserver_id_hash", "status"],
    "[BETA] Reloads of the authorization configuration, by how they went.",
);
pub(crate) static CONFIG_INFO: Family = gauge(
    "apiserver_authorization_config_controller_last_config_info",
    &["apiserver_id_hash", "hash"],
    "[ALPHA] The authorization configuration in effect: always 1, and the hash of the file.",
);
pub(crate) static CONFIG_GENERATION: Family = gauge(
    "portcullis_authorization_config_generation",
    &[],
    "[ALPHA] Which authorization configuration since the start of the server is in effect.",
);

pub(crate) static MISSING_SAN: Family = counter(
    "apiserver_webhooks_x509_missing_san_total",
    &[],
    "[BETA] Certificates of webhooks that were refused because they have no subject alternative name.",
);
pub(crate) static SHA1_SIGNATURES: Family = counter(
    "apiserver_webhooks_x509_insecure_sha1_total",
    &[],
    "[BETA] Certificates of webhooks that were refused because SHA-1 signs them.",
);

pub(crate) static CACHE_LOOKUPS: Family = counter(
    "portcullis_authorization_webhook_cache_lookups_total",
    &["name", "result"],
    "[ALPHA] Requests for which a remembered answer of a webhook was looked for, by result.",
);
pub(crate) static CACHE_EVENTS: Family = counter(
    "portcullis_authorization_webhook_cache_events_total",
    &["event", "name"],
    "[ALPHA] Answers of a webhook that were stored, that were found too old, that gave way to newer \
     ones, or that were too large to be stored.",
);
pub(crate) static CACHE_ENTRIES: Family = gauge(
    "portcullis_authorization_webhook_cache_entries",
    &["name"],
    "[ALPHA] Answers of a webhook that are remembered.",
);
pub(crate) static CACHE_BYTES: Family = gauge(
    "portcullis_authorization_webhook_cache_bytes",
    &["name"],
    "[ALPHA] Memory that the remembered answers of a webhook take.",
);
pub(crate) static JOINED_CALLS: Family = counter(
    "portcullis_authorization_webhook_joined_calls_total",
    &["name"],
    "[ALPHA] Requests that waited for a call that an equal request had begun.",
);
pub(crate) static CALLS_IN_FLIGHT: Family = gauge(
    "portcullis_authorization_webhook_in_flight",
    &["name"],
    "[ALPHA] Calls of a webhook under way.",
);
pub(crate) static REJECTIONS: Family = counter(
    "portcullis_authorization_webhook_rejections_total",
    &["name", "reason"],
    "[ALPHA] Requests that were answered 429 because a limit of calls to a webhook was reached, by \
     which.",
);
/// The families that every server exposes.
pub(crate) static COMMON: [&Family; 22] = [
    &AUTHORIZER_DECISIONS,
    &NO_OPINIONS,
    &AUTHORIZER_DURATION,
    &CHAIN_DECISIONS,
    &CHAIN_DURATION,
    &WEBHOOK_EVALUATIONS,
    &WEBHOOK_DURATION,
    &FAIL_OPEN,
    &FAIL_OPEN_BY_CAUSE,
    &MATCH_CONDITION_ERRORS,
    &MATCH_CONDITION_EXCLUSIONS,
    &MATCH_CONDITION_DURATION,
    &MISSING_SAN,
    &SHA1_SIGNATURES,
    &CONFIG_GENERATION,
    &CACHE_LOOKUPS,
    &CACHE_EVENTS,
    &CACHE_ENTRIES,
    &CACHE_BYTES,
    &JOINED_CALLS,
    &CALLS_IN_FLIGHT,
    &REJECTIONS,
];

/// The families that a server exposes if a file configures its authorizers.
pub(crate) static CONFIG_FILE: [&Family; 3] = [&LAST_RELOAD_TIME, &RELOADS, &CONFIG_INFO];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_family_is_well_formed_and_states_its_stability() {
        let mut names = BTreeSet::new();
        for family in COMMON.into_iter().chain(CONFIG_FILE) {
            assert!(names.insert(family.name), "{} stands twice", family.name);
            family.to_descriptor().unwrap();
            assert!(family.labels.is_sorted(), "{}", family.name);
            let stability = family.help.split(' ').next().unwrap_or_default();
            assert!(["[ALPHA]", "[BETA]"].contains(&stability), "{}", family.help);
        }
    }
}
