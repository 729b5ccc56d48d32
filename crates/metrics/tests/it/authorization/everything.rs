//! A server to which everything has happened once, so that every series exists.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authz::{Decision, EvaluationErrors, Verdict};
use authz_chain::AuthorizerType;
use authz_reload::{AppliedConfig, AuthorizationObserverFactory, ReloadStatus, sha256_hash};
use authz_webhook::{
    AbsolutePath, AttemptResult, CacheEvent, CacheSettings, CallRejection, ConnectionInfo,
    FailOpenCause, FailurePolicy, MatchConditions, MatchResultKind, ResponseFuture, ReviewVersion,
    Timeout, Transport, TransportError, TransportErrorKind, Webhook, WebhookLimits,
    WebhookSettings,
};
use bytes::Bytes;
use metrics::AuthorizationMetrics;
use prometheus::Registry;

/// Keeps series alive, as a chain does.
pub(crate) struct Kept {
    _members: Vec<Option<authz_chain::DecisionObserver>>,
    _webhook: Arc<dyn authz_webhook::WebhookObserver>,
    _serving: Arc<Webhook>,
}

/// A connector that reaches no server.
struct Nowhere;

impl Transport for Nowhere {
    fn send(&self, _body: Bytes, _limit: Duration) -> ResponseFuture<'_> {
        Box::pin(async { Err(TransportError::new(TransportErrorKind::Other, "nowhere")) })
    }
}

/// A webhook that nobody answers for.
pub(crate) fn webhook(
    name: &str,
    observe: Arc<dyn authz_webhook::WebhookObserver>,
) -> Arc<Webhook> {
    let settings = WebhookSettings {
        timeout: Timeout::new(Duration::from_secs(3)).unwrap(),
        authorized_cache_settings: CacheSettings::new(Duration::from_secs(300), true),
        unauthorized_cache_settings: CacheSettings::new(Duration::from_secs(30), true),
        subject_access_review_version: ReviewVersion::V1,
        failure_policy: FailurePolicy::NoOpinion,
        connection_info: ConnectionInfo::KubeConfigFile(AbsolutePath::new("/hook.yaml").unwrap()),
        match_conditions: MatchConditions::V1(Vec::new()),
    };
    let transport = Arc::new(Nowhere);
    Arc::new(Webhook::new(name, settings, transport, WebhookLimits::default(), observe))
}

/// Numbers of a server in file mode, after everything has happened.
pub(crate) fn happened() -> (Registry, Arc<AuthorizationMetrics>, Kept) {
    let registry = Registry::new();
    let metrics = AuthorizationMetrics::new(&registry, "testAPIServerID", true).unwrap();
    let took = Duration::from_micros(30);

    let members = AuthorizerType::BUILT_IN.map(|kind| {
        let member =
            metrics.create_decision_observer(kind, kind.fixed_authorizer_name().unwrap_or("guard"));
        for verdict in [Verdict::Allow, Verdict::Deny, Verdict::NoOpinion] {
            member.as_ref().unwrap()(verdict, took);
        }
        member
    });
    let failed =
        Decision { error: Some(EvaluationErrors::message("broken")), ..Decision::no_opinion("") };
    for decision in [Decision::allow(""), Decision::deny(""), Decision::no_opinion(""), failed] {
        metrics.record_chain_decision(&decision, took);
    }

    let observe = metrics.create_webhook_observer("guard");
    for result in AttemptResult::ALL {
        observe.on_attempt_end(result, Duration::from_millis(7));
    }
    for cause in FailOpenCause::ALL {
        let result = match cause {
            FailOpenCause::MatchCondition => None,
            FailOpenCause::Timeout => Some(AttemptResult::Timeout),
            _ => Some(AttemptResult::Error),
        };
        observe.on_fail_open(cause, result);
    }
    for outcome in [
        MatchResultKind::Matched,
        MatchResultKind::Excluded,
        MatchResultKind::ExcludedAfterError,
        MatchResultKind::Failed,
    ] {
        observe.on_conditions_evaluated(took, outcome);
    }
    CacheEvent::ALL.into_iter().for_each(|event| observe.on_cache_event(event));
    observe.on_shared_call();
    CallRejection::ALL.into_iter().for_each(|why| observe.on_call_rejected(why));
    let serving = webhook("guard", Arc::clone(&observe));
    metrics.set_active_webhooks([&serving]);

    metrics.connection_observer().on_missing_san();
    metrics.connection_observer().on_sha1_signature();

    let hash = sha256_hash(b"config2");
    metrics.on_config_applied(&AppliedConfig {
        hash: Some(&hash),
        generation: 2,
        authorizer_types_and_names: &[],
    });
    for (status, second) in [(ReloadStatus::Failure, 1_000), (ReloadStatus::Success, 2_000)] {
        metrics.on_reload(status, SystemTime::UNIX_EPOCH + Duration::from_secs(second));
    }
    (registry, metrics, Kept { _members: members.into(), _webhook: observe, _serving: serving })
}
