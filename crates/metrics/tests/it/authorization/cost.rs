//! What counting costs on the path of every decision.

use std::time::Duration;

use authz::Verdict;
use authz_chain::AuthorizerType;
use authz_reload::AuthorizationObserverFactory;
use authz_webhook::{CacheEvent, MatchResultKind};
use metrics::AuthorizationMetrics;
use prometheus::Registry;

#[test]
fn counting_a_decision_does_not_allocate() {
    let metrics = AuthorizationMetrics::new(&Registry::new(), "a", false).unwrap();
    let member = metrics.create_decision_observer(AuthorizerType::Webhook, "guard").unwrap();
    let webhook = metrics.create_webhook_observer("guard");
    let decision = authz::Decision::allow("");
    let took = Duration::from_nanos(300);
    let counted = allocation_counter::measure(|| {
        webhook.on_conditions_evaluated(took, MatchResultKind::Matched);
        webhook.on_cache_event(CacheEvent::Hit);
        member(Verdict::Allow, took);
        metrics.record_chain_decision(&decision, took);
    });
    assert_eq!(counted.count_total, 0);
}
