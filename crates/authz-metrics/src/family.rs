//! The families: what each number is called, what it means and how it is told apart.
//!
//! Names, types, labels and classes of durations of the families that Kubernetes has too are those of
//! Kubernetes, so that dashboards and alerts made for it work here. Labels stand in the order of the
//! alphabet, as they do in what Kubernetes exposes. Ours begin with `portcullis_`.

use prometheus::core::Desc;
use prometheus::proto::MetricType;

/// One family of series.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: MetricType,
    pub(crate) labels: &'static [&'static str],
}

impl Family {
    /// Whether Kubernetes has no such family.
    pub(crate) fn is_ours(&self) -> bool {
        self.name.starts_with("portcullis_")
    }

    /// The description by which a registry tells families apart.
    ///
    /// # Errors
    /// A name is malformed, which a test would have found.
    pub(crate) fn describe(&self) -> Result<Desc, prometheus::Error> {
        let labels = self.labels.iter().map(|label| (*label).to_owned()).collect();
        Desc::new(self.name.to_owned(), self.help.to_owned(), labels, Default::default())
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, help, kind: MetricType::COUNTER, labels }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Family {
    Family { name, help, kind: MetricType::GAUGE, labels }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, help, kind: MetricType::HISTOGRAM, labels }
}

pub(crate) static DECISIONS: Family = counter(
    "apiserver_authorization_decisions_total",
    &["decision", "name", "type"],
    "[ALPHA] Requests that an authorizer allowed or denied, by its type and name.",
);
pub(crate) static NO_OPINIONS: Family = counter(
    "portcullis_authorization_no_opinions_total",
    &["name", "type"],
    "[ALPHA] Requests that an authorizer left to the next one, by its type and name.",
);
pub(crate) static AUTHORIZER_SECONDS: Family = histogram(
    "portcullis_authorization_authorizer_duration_seconds",
    &["name", "type"],
    "[ALPHA] Time until an authorizer answered, whatever it answered, by its type and name.",
);

pub(crate) static ATTEMPTS: Family = counter(
    "authorization_attempts_total",
    &["result"],
    "[ALPHA] Requests that the whole chain was asked about, by result.",
);
pub(crate) static ATTEMPT_SECONDS: Family = histogram(
    "authorization_duration_seconds",
    &["result"],
    "[ALPHA] Time until the whole chain answered about a request, by result.",
);

pub(crate) static WEBHOOK_EVALUATIONS: Family = counter(
    "apiserver_authorization_webhook_evaluations_total",
    &["name", "result"],
    "[ALPHA] Attempts to ask an authorization webhook, by its name and by result.",
);
pub(crate) static WEBHOOK_SECONDS: Family = histogram(
    "apiserver_authorization_webhook_duration_seconds",
    &["name", "result"],
    "[ALPHA] Time of one attempt to ask an authorization webhook, by its name and by result.",
);
pub(crate) static FAIL_OPEN: Family = counter(
    "apiserver_authorization_webhook_evaluations_fail_open_total",
    &["name", "result"],
    "[ALPHA] Failures of an authorization webhook that its failure policy turned into no opinion.",
);
pub(crate) static FAILED_OPEN_BY: Family = counter(
    "portcullis_authorization_webhook_failed_open_total",
    &["cause", "name"],
    "[ALPHA] Requests that the failure policy of a webhook passed to the next authorizer, by what the \
     webhook did wrong.",
);
pub(crate) static CONDITION_ERRORS: Family = counter(
    "apiserver_authorization_match_condition_evaluation_errors_total",
    &["name", "type"],
    "[ALPHA] Requests for which a match condition of an authorizer could not be evaluated.",
);
pub(crate) static CONDITION_EXCLUSIONS: Family = counter(
    "apiserver_authorization_match_condition_exclusions_total",
    &["name", "type"],
    "[ALPHA] Requests that an authorizer was not asked about because a match condition is false.",
);
pub(crate) static CONDITION_SECONDS: Family = histogram(
    "apiserver_authorization_match_condition_evaluation_seconds",
    &["name", "type"],
    "[ALPHA] Time to evaluate all match conditions of an authorizer for one request.",
);

pub(crate) static RELOAD_TIME: Family = gauge(
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
pub(crate) static GENERATION: Family = gauge(
    "portcullis_authorization_config_generation",
    &[],
    "[ALPHA] Which authorization configuration since the start of the server is in effect.",
);

pub(crate) static MISSING_SAN: Family = counter(
    "apiserver_webhooks_x509_missing_san_total",
    &[],
    "[BETA] Certificates of webhooks that were refused because they have no subject alternative name.",
);
pub(crate) static INSECURE_SHA1: Family = counter(
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
pub(crate) static JOINS: Family = counter(
    "portcullis_authorization_webhook_joined_calls_total",
    &["name"],
    "[ALPHA] Requests that waited for a call that an equal request had begun.",
);
pub(crate) static IN_FLIGHT: Family = gauge(
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
/// The families that every server has.
pub(crate) static ALWAYS: [&Family; 22] = [
    &DECISIONS,
    &NO_OPINIONS,
    &AUTHORIZER_SECONDS,
    &ATTEMPTS,
    &ATTEMPT_SECONDS,
    &WEBHOOK_EVALUATIONS,
    &WEBHOOK_SECONDS,
    &FAIL_OPEN,
    &FAILED_OPEN_BY,
    &CONDITION_ERRORS,
    &CONDITION_EXCLUSIONS,
    &CONDITION_SECONDS,
    &MISSING_SAN,
    &INSECURE_SHA1,
    &GENERATION,
    &CACHE_LOOKUPS,
    &CACHE_EVENTS,
    &CACHE_ENTRIES,
    &CACHE_BYTES,
    &JOINS,
    &IN_FLIGHT,
    &REJECTIONS,
];

/// The families of a server whose chain a file configures.
pub(crate) static FILE_MODE: [&Family; 3] = [&RELOAD_TIME, &RELOADS, &CONFIG_INFO];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_family_is_described_and_tells_how_stable_it_is() {
        let mut names = BTreeSet::new();
        for family in ALWAYS.into_iter().chain(FILE_MODE) {
            assert!(names.insert(family.name), "{} stands twice", family.name);
            family.describe().unwrap();
            assert!(family.labels.is_sorted(), "{}", family.name);
            let stability = family.help.split(' ').next().unwrap_or_default();
            assert!(["[ALPHA]", "[BETA]"].contains(&stability), "{}", family.help);
        }
    }
}
