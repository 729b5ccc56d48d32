//! What is counted, and when series come and go.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz::Verdict;
use authz_chain::AuthorizerType;
use authz_reload::{AppliedConfig, AuthorizationObserverFactory, ReloadStatus, sha256_hash};
use authz_webhook::{AttemptResult, CacheEvent, MatchResultKind};
use metrics::AuthorizationMetrics;
use prometheus::{IntCounter, Registry};

use super::everything;

const DECISIONS: &str = "apiserver_authorization_decisions_total";
const RELOADS: &str = "apiserver_authorization_config_controller_automatic_reloads_total";
const RELOAD_TIME: &str =
    "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds";
const INFO: &str = "apiserver_authorization_config_controller_last_config_info";
const TOOK: Duration = Duration::from_micros(3);

fn look(registry: &Registry) -> monitoring_lint::ExportedMetrics {
    monitoring_lint::gather_exported_metrics(registry).unwrap()
}

/// The samples of one family, as `labels value`, sorted.
fn samples(registry: &Registry, name: &str) -> Vec<String> {
    monitoring_lint::samples(registry, name).unwrap()
}

fn metrics(identity: &str, is_file_mode: bool) -> (Registry, Arc<AuthorizationMetrics>) {
    let registry = Registry::new();
    let metrics = AuthorizationMetrics::new(&registry, identity, is_file_mode).unwrap();
    (registry, metrics)
}

fn apply(metrics: &AuthorizationMetrics, config: &str, generation: u64) {
    let hash = sha256_hash(config.as_bytes());
    metrics.on_config_applied(&AppliedConfig {
        hash: Some(&hash),
        generation,
        authorizer_types_and_names: &[],
    });
}

/// The configuration of the start has a hash and is no reload.
#[test]
fn the_first_load_is_no_reload() {
    let (registry, metrics) = metrics("a", true);
    apply(&metrics, "config1", 1);
    assert_eq!(samples(&registry, INFO).len(), 1);
    for family in [RELOADS, RELOAD_TIME] {
        assert!(!look(&registry).contains_key(family), "{family}");
    }
}

/// The identity of the server is a hash in every series about its configuration.
#[test]
fn the_identity_is_shown_as_a_hash() {
    let (registry, metrics) = metrics("testAPIServerID", true);
    apply(&metrics, "config1", 1);
    metrics.on_reload(ReloadStatus::Failure, SystemTime::UNIX_EPOCH + Duration::from_millis(1_500));
    let id = "apiserver_id_hash=\
              sha256:14f9d63e669337ac6bfda2e2162915ee6a6067743eddd4e5c374b572f951ff37";
    assert_eq!(samples(&registry, RELOADS), [format!("{id},status=failure 1")]);
    assert_eq!(samples(&registry, RELOAD_TIME), [format!("{id},status=failure 1.5")]);
    let hash = sha256_hash(b"config1");
    assert_eq!(samples(&registry, INFO), [format!("{id},hash={hash} 1")]);
}

/// There is one series with the hash of the bytes that were applied last.
#[test]
fn one_series_tells_what_is_in_effect() {
    let (registry, metrics) = metrics("testAPIServerID", true);
    assert!(samples(&registry, INFO).is_empty());
    apply(&metrics, "config1", 1);
    apply(&metrics, "config2", 2);
    let info = samples(&registry, INFO);
    let hash = "hash=sha256:f309dd9c31fe24b3e594d2f9420419c48dfe954523245d5f35dc37739970d881 1";
    assert_eq!(info.len(), 1);
    assert!(info[0].ends_with(hash), "{info:?}");
    assert_eq!(samples(&registry, "portcullis_authorization_config_generation"), [" 2"]);
}

/// Terminal answers are counted, abstentions are not.
#[test]
fn terminal_answers_are_counted_by_authorizer() {
    for (verdicts, want) in [
        (&[Verdict::Allow][..], &["decision=allowed,name=guard,type=Webhook 1"][..]),
        (&[Verdict::Deny, Verdict::Deny], &["decision=denied,name=guard,type=Webhook 2"]),
        (&[Verdict::NoOpinion], &[]),
    ] {
        let (registry, metrics) = metrics("a", true);
        let member = metrics.create_decision_observer(AuthorizerType::Webhook, "guard").unwrap();
        verdicts.iter().for_each(|verdict| member(*verdict, TOOK));
        assert_eq!(samples(&registry, DECISIONS), want);
        let n_all = samples(&registry, "portcullis_authorization_authorizer_duration_seconds");
        assert_eq!(n_all, [format!("name=guard,type=Webhook {}", verdicts.len())]);
        let n_abstained = verdicts.iter().filter(|verdict| **verdict == Verdict::NoOpinion).count();
        let no_opinions = samples(&registry, "portcullis_authorization_no_opinions_total");
        assert_eq!(no_opinions, [format!("name=guard,type=Webhook {n_abstained}")]);
    }
}

/// An answer from the cache is a decision and no call.
#[test]
fn a_hit_is_a_decision_and_no_call() {
    let (registry, metrics) = metrics("a", true);
    let member = metrics.create_decision_observer(AuthorizerType::Webhook, "guard").unwrap();
    let webhook = metrics.create_webhook_observer("guard");
    webhook.on_cache_event(CacheEvent::Hit);
    member(Verdict::Allow, TOOK);
    assert_eq!(samples(&registry, DECISIONS), ["decision=allowed,name=guard,type=Webhook 1"]);
    for family in ["webhook_evaluations_total", "webhook_duration_seconds"] {
        assert!(!look(&registry).contains_key(&format!("apiserver_authorization_{family}")));
    }
    let lookups = samples(&registry, "portcullis_authorization_webhook_cache_lookups_total");
    assert_eq!(lookups, ["name=guard,result=hit 1", "name=guard,result=miss 0"]);
}

/// One time for each check; exclusions and errors at most once each, and both if a
/// condition failed before another one excluded the request.
#[test]
fn conditions_are_counted_once_a_check() {
    for (outcome, n_excluded, n_fail_open_errors) in [
        (MatchResultKind::Matched, 0, 0),
        (MatchResultKind::Excluded, 1, 0),
        (MatchResultKind::ExcludedAfterError, 1, 1),
        (MatchResultKind::Failed, 0, 1),
    ] {
        let (registry, metrics) = metrics("a", false);
        let webhook = metrics.create_webhook_observer("guard");
        webhook.on_conditions_evaluated(TOOK, outcome);
        let number = |family: &str| {
            let family = format!("apiserver_authorization_match_condition_{family}");
            let exposed = look(&registry);
            let family = exposed.get(&family);
            family.map_or(0.0, |family| family.samples["name=guard,type=Webhook"])
        };
        assert_eq!(number("evaluation_seconds"), 1.0, "{outcome:?}");
        assert_eq!(number("exclusions_total"), f64::from(n_excluded), "{outcome:?}");
        assert_eq!(number("evaluation_errors_total"), f64::from(n_fail_open_errors), "{outcome:?}");
    }
}

/// Without a file there is nothing to reload, and the names are free.
#[test]
fn only_a_file_has_families_about_reloads() {
    let (registry, metrics) = metrics("a", false);
    metrics.on_config_applied(&AppliedConfig {
        hash: None,
        generation: 1,
        authorizer_types_and_names: &[],
    });
    metrics.on_reload(ReloadStatus::Failure, SystemTime::UNIX_EPOCH);
    for family in [RELOADS, RELOAD_TIME, INFO] {
        assert!(!look(&registry).contains_key(family), "{family}");
        registry.register(Box::new(IntCounter::new(family, "free").unwrap())).unwrap();
    }
}

#[test]
fn series_of_a_webhook_live_as_long_as_somebody_may_report_to_them() {
    let (registry, metrics) = metrics("a", true);
    let old = (
        metrics.create_decision_observer(AuthorizerType::Webhook, "guard"),
        metrics.create_webhook_observer("guard"),
    );
    old.0.as_ref().unwrap()(Verdict::Allow, TOOK);
    old.1.on_attempt_end(AttemptResult::Success, TOOK);

    // A reload that changes the webhook: one series goes on.
    let new = (
        metrics.create_decision_observer(AuthorizerType::Webhook, "guard"),
        metrics.create_webhook_observer("guard"),
    );
    old.0.as_ref().unwrap()(Verdict::Allow, TOOK);
    drop(old);
    new.0.as_ref().unwrap()(Verdict::Allow, TOOK);
    assert_eq!(samples(&registry, DECISIONS), ["decision=allowed,name=guard,type=Webhook 3"]);

    // A reload that removes it.
    drop(new);
    for (name, family) in look(&registry) {
        assert!(!family.labels.contains_key("name"), "{name} is left: {family:?}");
    }

    // A reload that brings it back.
    let _again = (
        metrics.create_decision_observer(AuthorizerType::Webhook, "guard"),
        metrics.create_webhook_observer("guard"),
    );
    assert!(samples(&registry, DECISIONS).is_empty());
}

#[test]
fn a_webhook_tells_itself_how_it_is_doing_while_it_serves() {
    let (registry, metrics) = metrics("a", true);
    let gauges = || {
        let exposed = look(&registry);
        let is_gauge = |name: &str| exposed.get(name).is_some_and(|family| family.kind == "gauge");
        ["cache_entries", "cache_bytes", "in_flight"]
            .map(|name| is_gauge(&format!("portcullis_authorization_webhook_{name}")))
    };
    let webhook = everything::webhook("guard", metrics.create_webhook_observer("guard"));
    assert_eq!(gauges(), [false; 3]);
    metrics.set_active_webhooks([&webhook]);
    assert_eq!(gauges(), [true; 3]);
    drop(webhook);
    assert_eq!(gauges(), [false; 3]);
}

#[test]
fn a_registry_has_one_chain() {
    let (registry, _metrics) = metrics("a", true);
    assert!(AuthorizationMetrics::new(&registry, "b", false).is_err());
}
