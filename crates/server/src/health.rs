//! `/healthz`, `/livez`, `/readyz`, and the checks behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use component_base::{
    HealthCheckResult, HealthEndpoint, HealthQuery, TextResponse, render_health_response,
};

use crate::rest::Query;
use crate::server_state::ServerState;
use crate::store_check::CoalescedStoreCheck;

/// The state that the readiness check reads.
#[derive(Debug, Default)]
pub(crate) struct ReadinessState {
    /// Whether the server has written the default objects since its start.
    pub(crate) is_bootstrapped: AtomicBool,
    /// Whether the server is shutting down.
    pub(crate) is_stopping: AtomicBool,
    /// Whether the store can be read.
    store_read_check: CoalescedStoreCheck,
    /// Whether the store is healthy, with its disk.
    store_health_check: CoalescedStoreCheck,
}

const BOOTSTRAP_CHECK: &str = "poststarthook/rbac/bootstrap-roles";

/// The response to a path of a health endpoint; `None` for other paths.
pub(crate) async fn health_response(
    server: &ServerState,
    path: &str,
    query: &Query,
) -> Option<TextResponse> {
    let (endpoint, single_check) = HealthEndpoint::from_path(path)?;
    let checks = run_health_checks(server, endpoint).await;
    let excluded_checks =
        query.all_parameter_values("exclude").filter(|name| !name.is_empty()).collect();
    let query = HealthQuery { excluded_checks, is_verbose: query.is_parameter_true("verbose") };
    render_health_response(endpoint, single_check, &checks, query)
}

async fn run_health_checks(
    server: &ServerState,
    endpoint: HealthEndpoint,
) -> Vec<HealthCheckResult> {
    let status = server.store.status();
    let store = Arc::clone(&server.store);
    let requires_reads_only = match endpoint {
        // A restart does not repair a disk that accepts no writes, so liveness requires reads only. While the
        // store is read-only, the server is as ready as any other on the same data.
        HealthEndpoint::Livez => true,
        HealthEndpoint::Readyz => status.is_read_only,
        HealthEndpoint::Healthz => false,
    };
    let is_stored = match requires_reads_only {
        true => {
            server
                .readiness
                .store_read_check
                .passes_store_check(async move { store.current_rev().await })
                .await
        }
        false => {
            server
                .readiness
                .store_health_check
                .passes_store_check(async move { store.check_health().await })
                .await
        }
    };
    let mut checks = vec![
        HealthCheckResult::new("ping", true),
        HealthCheckResult::new("log", true),
        HealthCheckResult::new("storage", is_stored),
    ];
    if endpoint == HealthEndpoint::Readyz {
        let readiness = &server.readiness;
        let is_bootstrapped = readiness.is_bootstrapped.load(Ordering::Acquire);
        checks.extend([
            HealthCheckResult::new("storage-readiness", is_stored),
            HealthCheckResult::new_degradable_check("storage-writes", !status.is_read_only),
            HealthCheckResult::new_degradable_check("storage-space", status.alarms.is_empty()),
            HealthCheckResult::new_degradable_check(
                "storage-upkeep",
                status.maintenance_failure_text.is_none(),
            ),
            HealthCheckResult::new(
                "admission-config",
                !server.admission_freshness_barrier.config_confirmation_age().is_confirmation_stale,
            ),
            HealthCheckResult::new("informer-sync", server.snapshot_cache.is_synced()),
            check_trust_matches_peers(server),
            HealthCheckResult::new(BOOTSTRAP_CHECK, is_bootstrapped),
            HealthCheckResult::new("shutdown", !readiness.is_stopping.load(Ordering::Acquire)),
        ]);
    }
    checks
}

/// Fails if this server, and not its peers, has the deviating authorities or keys: it would refuse users that its
/// peers accept.
fn check_trust_matches_peers(server: &ServerState) -> HealthCheckResult {
    let comparison = server.trust_comparison.load();
    match comparison.is_outvoted_by_peers() {
        true => HealthCheckResult::new("peer-trust", false),
        false => HealthCheckResult::new_degradable_check(
            "peer-trust",
            comparison.has_no_trust_differences(),
        ),
    }
}
