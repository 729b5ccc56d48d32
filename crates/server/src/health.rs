//! `/healthz`, `/livez`, `/readyz`, and the checks behind them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// The endpoints for health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HealthEndpoint {
    Healthz,
    Livez,
    Readyz,
}

/// The result of one check.
struct HealthCheckResult {
    name: &'static str,
    check_state: HealthCheckState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HealthCheckState {
    Ok,
    /// The check fails, but its endpoint passes: a server that still serves reads, and the deletes that
    /// free space, must not be taken out of service.
    Degraded,
    Failed,
}

impl HealthCheckResult {
    fn new(name: &'static str, is_ok: bool) -> Self {
        Self {
            name,
            check_state: if is_ok { HealthCheckState::Ok } else { HealthCheckState::Failed },
        }
    }

    fn new_degradable_check(name: &'static str, is_ok: bool) -> Self {
        Self {
            name,
            check_state: if is_ok { HealthCheckState::Ok } else { HealthCheckState::Degraded },
        }
    }
}

/// A response in plain text.
pub(crate) struct TextResponse {
    pub(crate) code: u16,
    pub(crate) body_text: String,
}

const BOOTSTRAP_CHECK: &str = "poststarthook/rbac/bootstrap-roles";

impl HealthEndpoint {
    const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// The response to a path of a health endpoint; `None` for other paths.
pub(crate) async fn health_response(
    server: &ServerState,
    path: &str,
    query: &Query,
) -> Option<TextResponse> {
    let path = path.trim_matches('/');
    let (first, check) = path.split_once('/').map_or((path, None), |(a, b)| (a, Some(b)));
    let endpoint = HealthEndpoint::ALL.into_iter().find(|endpoint| endpoint.name() == first)?;
    let checks = run_health_checks(server, endpoint).await;
    match check {
        None => Some(render_check_results(endpoint, &checks, query)),
        Some(name) => {
            let name = if name == "etcd" { "storage" } else { name };
            let check = checks.iter().find(|check| check.name == name)?;
            let failed = |how: &str| TextResponse {
                code: 500,
                body_text: format!("internal server error: {name} {how}: reason withheld\n"),
            };
            Some(match check.check_state {
                HealthCheckState::Ok => TextResponse { code: 200, body_text: "ok".to_owned() },
                HealthCheckState::Degraded => failed("degraded"),
                HealthCheckState::Failed => failed("failed"),
            })
        }
    }
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

fn render_check_results(
    endpoint: HealthEndpoint,
    checks: &[HealthCheckResult],
    query: &Query,
) -> TextResponse {
    let mut excluded: Vec<&str> =
        query.all_parameter_values("exclude").filter(|name| !name.is_empty()).collect();
    let mut lines = String::new();
    let mut is_passing = true;
    for check in checks {
        let name = check.name;
        let is_named = |other: &&str| *other == name || (*other == "etcd" && name == "storage");
        // Writing to a String does not fail.
        let _ = if excluded.iter().any(is_named) {
            excluded.retain(|other| !is_named(other));
            writeln!(lines, "[+]{name} excluded: ok")
        } else {
            match check.check_state {
                HealthCheckState::Ok => writeln!(lines, "[+]{name} ok"),
                HealthCheckState::Degraded => {
                    writeln!(lines, "[-]{name} degraded: reason withheld")
                }
                HealthCheckState::Failed => {
                    is_passing = false;
                    writeln!(lines, "[-]{name} failed: reason withheld")
                }
            }
        };
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| go_compat::quote(name)).collect();
        let names = names.join(",");
        let _ =
            writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
    }
    let name = endpoint.name();
    match (is_passing, query.is_parameter_true("verbose")) {
        (true, false) => TextResponse { code: 200, body_text: "ok".to_owned() },
        (true, true) => {
            TextResponse { code: 200, body_text: format!("{lines}{name} check passed\n") }
        }
        (false, _) => {
            TextResponse { code: 500, body_text: format!("{lines}{name} check failed\n") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(query: &str, is_stored: bool) -> (u16, String) {
        answer_with(query, is_stored, true)
    }

    fn answer_with(query: &str, is_stored: bool, is_roomy: bool) -> (u16, String) {
        let checks = [
            HealthCheckResult::new("ping", true),
            HealthCheckResult::new("storage", is_stored),
            HealthCheckResult::new_degradable_check("storage-space", is_roomy),
        ];
        let text = render_check_results(
            HealthEndpoint::Readyz,
            &checks,
            &Query::parse(&format!("/readyz?{query}")),
        );
        (text.code, text.body_text)
    }

    #[test]
    fn responses_list_failed_degraded_and_excluded_checks() {
        assert_eq!(answer("", true), (200, "ok".to_owned()));
        let want = "[+]ping ok\n[+]storage ok\n[+]storage-space ok\nreadyz check passed\n";
        assert_eq!(answer("verbose", true), (200, want.to_owned()));
        let want = "[+]ping ok\n[-]storage failed: reason withheld\n[+]storage-space ok\n\
                    readyz check failed\n";
        assert_eq!(answer("", false), (500, want.to_owned()));
        assert_eq!(answer("exclude=etcd", false), (200, "ok".to_owned()));
        assert_eq!(answer_with("", true, false), (200, "ok".to_owned()), "still ready");
        let (code, text) = answer_with("verbose", true, false);
        assert!(code == 200 && text.contains("[-]storage-space degraded: reason withheld\n"));
        let (code, text) = answer("exclude=x&verbose=1", true);
        assert_eq!(code, 200);
        assert!(text.contains("warn: some health checks cannot be excluded: no matches for \"x\""));
    }
}
