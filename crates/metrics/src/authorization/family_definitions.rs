//! The metric families of authorization: name, help text, type and labels.
//!
//! Labels are sorted, as Kubernetes exposes them.

use prometheus::core::Desc;
use prometheus::proto::MetricType;

/// A metric family of authorization.
#[derive(Debug)]
pub(crate) struct FamilyDefinition {
    pub(crate) name: &'static str,
    pub(crate) help_text: &'static str,
    pub(crate) metric_type: MetricType,
    pub(crate) labels: &'static [&'static str],
}

impl FamilyDefinition {
    /// Reports whether only Portcullis has this family, and Kubernetes does not.
    pub(crate) fn is_portcullis_only(&self) -> bool {
        self.name.starts_with("portcullis_")
    }

    /// Creates the descriptor by which a registry distinguishes families. It fails if a name is malformed; a test
    /// ensures that the names of the families below are well-formed.
    pub(crate) fn to_descriptor(&self) -> Result<Desc, prometheus::Error> {
        let labels = self.labels.iter().map(|label| (*label).to_owned()).collect();
        Desc::new(self.name.to_owned(), self.help_text.to_owned(), labels, Default::default())
    }
}

const fn define_counter_family(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> FamilyDefinition {
    FamilyDefinition { name, help_text: help, metric_type: MetricType::COUNTER, labels }
}

const fn define_gauge_family(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> FamilyDefinition {
    FamilyDefinition { name, help_text: help, metric_type: MetricType::GAUGE, labels }
}

const fn define_histogram_family(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> FamilyDefinition {
    FamilyDefinition { name, help_text: help, metric_type: MetricType::HISTOGRAM, labels }
}

pub(crate) static AUTHORIZER_DECISIONS: FamilyDefinition = define_counter_family(
    "apiserver_authorization_decisions_total",
    &["decision", "name", "type"],
    "[ALPHA] Requests that an authorizer allowed or denied, by its type and name.",
);
pub(crate) static NO_OPINIONS: FamilyDefinition = define_counter_family(
    "portcullis_authorization_no_opinions_total",
    &["name", "type"],
    "[ALPHA] Requests about which an authorizer had no opinion, by its type and name.",
);
pub(crate) static AUTHORIZER_DURATION: FamilyDefinition = define_histogram_family(
    "portcullis_authorization_authorizer_duration_seconds",
    &["name", "type"],
    "[ALPHA] Time that an authorizer took for one request, by its type and name.",
);

pub(crate) static CHAIN_DECISIONS: FamilyDefinition = define_counter_family(
    "authorization_attempts_total",
    &["result"],
    "[ALPHA] Requests that the authorizer chain decided, by result.",
);
pub(crate) static CHAIN_DURATION: FamilyDefinition = define_histogram_family(
    "authorization_duration_seconds",
    &["result"],
    "[ALPHA] Time that the authorizer chain took for one request, by result.",
);

pub(crate) static WEBHOOK_EVALUATIONS: FamilyDefinition = define_counter_family(
    "apiserver_authorization_webhook_evaluations_total",
    &["name", "result"],
    "[ALPHA] Call attempts of an authorization webhook, by its name and by result.",
);
pub(crate) static WEBHOOK_DURATION: FamilyDefinition = define_histogram_family(
    "apiserver_authorization_webhook_duration_seconds",
    &["name", "result"],
    "[ALPHA] Duration of one call attempt of an authorization webhook, by its name and by result.",
);
pub(crate) static FAIL_OPEN: FamilyDefinition = define_counter_family(
    "apiserver_authorization_webhook_evaluations_fail_open_total",
    &["name", "result"],
    "[ALPHA] Failed calls of an authorization webhook whose failure policy is NoOpinion.",
);
pub(crate) static FAIL_OPEN_BY_CAUSE: FamilyDefinition = define_counter_family(
    "portcullis_authorization_webhook_failed_open_total",
    &["cause", "name"],
    "[ALPHA] Requests that the failure policy of a webhook passed to the next authorizer, by the cause of \
     the failure.",
);
pub(crate) static MATCH_CONDITION_ERRORS: FamilyDefinition = define_counter_family(
    "apiserver_authorization_match_condition_evaluation_errors_total",
    &["name", "type"],
    "[ALPHA] Requests for which a match condition of an authorizer could not be evaluated.",
);
pub(crate) static MATCH_CONDITION_EXCLUSIONS: FamilyDefinition = define_counter_family(
    "apiserver_authorization_match_condition_exclusions_total",
    &["name", "type"],
    "[ALPHA] Requests for which an authorizer was skipped because a match condition is false.",
);
pub(crate) static MATCH_CONDITION_DURATION: FamilyDefinition = define_histogram_family(
    "apiserver_authorization_match_condition_evaluation_seconds",
    &["name", "type"],
    "[ALPHA] Time to evaluate all match conditions of an authorizer for one request.",
);

pub(crate) static LAST_RELOAD_TIME: FamilyDefinition = define_gauge_family(
    "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
    &["apiserver_id_hash", "status"],
    "[BETA] Time of the last reload of the authorization configuration, by its status.",
);
pub(crate) static RELOADS: FamilyDefinition = define_counter_family(
    "apiserver_authorization_config_controller_automatic_reloads_total",
    &["apiserver_id_hash", "status"],
    "[BETA] Reloads of the authorization configuration, by their status.",
);
pub(crate) static CONFIG_INFO: FamilyDefinition = define_gauge_family(
    "apiserver_authorization_config_controller_last_config_info",
    &["apiserver_id_hash", "hash"],
    "[ALPHA] The authorization configuration in effect: the value is always 1, the label is the hash of the file.",
);
pub(crate) static CONFIG_GENERATION: FamilyDefinition = define_gauge_family(
    "portcullis_authorization_config_generation",
    &[],
    "[ALPHA] Number of the authorization configuration in effect, counted from 1 since the start of the server.",
);

pub(crate) static MISSING_SAN: FamilyDefinition = define_counter_family(
    "apiserver_webhooks_x509_missing_san_total",
    &[],
    "[BETA] Webhook certificates that the server refused because they have no subject alternative name.",
);
pub(crate) static SHA1_SIGNATURES: FamilyDefinition = define_counter_family(
    "apiserver_webhooks_x509_insecure_sha1_total",
    &[],
    "[BETA] Webhook certificates that the server refused because they have a SHA-1 signature.",
);

pub(crate) static CACHE_LOOKUPS: FamilyDefinition = define_counter_family(
    "portcullis_authorization_webhook_cache_lookups_total",
    &["name", "result"],
    "[ALPHA] Lookups in the decision cache of a webhook, by result.",
);
pub(crate) static CACHE_EVENTS: FamilyDefinition = define_counter_family(
    "portcullis_authorization_webhook_cache_events_total",
    &["event", "name"],
    "[ALPHA] Entries of the decision cache of a webhook that were stored, that expired, that were evicted, or \
     that were too large to store.",
);
pub(crate) static CACHE_ENTRIES: FamilyDefinition = define_gauge_family(
    "portcullis_authorization_webhook_cache_entries",
    &["name"],
    "[ALPHA] Entries in the decision cache of a webhook.",
);
pub(crate) static CACHE_BYTES: FamilyDefinition = define_gauge_family(
    "portcullis_authorization_webhook_cache_bytes",
    &["name"],
    "[ALPHA] Memory of the decision cache of a webhook, in bytes.",
);
pub(crate) static JOINED_CALLS: FamilyDefinition = define_counter_family(
    "portcullis_authorization_webhook_joined_calls_total",
    &["name"],
    "[ALPHA] Requests that waited for the webhook call of an equal request instead of making their own.",
);
pub(crate) static CALLS_IN_FLIGHT: FamilyDefinition = define_gauge_family(
    "portcullis_authorization_webhook_in_flight",
    &["name"],
    "[ALPHA] Calls of a webhook in flight.",
);
pub(crate) static REJECTIONS: FamilyDefinition = define_counter_family(
    "portcullis_authorization_webhook_rejections_total",
    &["name", "reason"],
    "[ALPHA] Requests that got 429 because a limit of concurrent calls to a webhook was reached, by the limit.",
);
/// The families that every server exposes.
pub(crate) static COMMON: [&FamilyDefinition; 22] = [
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
pub(crate) static CONFIG_FILE: [&FamilyDefinition; 3] = [&LAST_RELOAD_TIME, &RELOADS, &CONFIG_INFO];

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
            let stability = family.help_text.split(' ').next().unwrap_or_default();
            assert!(["[ALPHA]", "[BETA]"].contains(&stability), "{}", family.help_text);
        }
    }
}
