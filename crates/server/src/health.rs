//! `/healthz`, `/livez`, `/readyz`, and the checks behind them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::Store;

use crate::rest::Query;
use crate::server_state::ServerState;

/// How long the store gets to say that it is well.
const STORE_WAIT: Duration = Duration::from_secs(2);

/// What the server knows of its own state beside what it can look up.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    /// What has to happen once after the start has happened.
    pub(crate) is_bootstrapped: AtomicBool,
    /// The server was told to stop.
    pub(crate) is_stopping: AtomicBool,
}

/// The endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

/// A check that was made.
struct Checked {
    name: &'static str,
    outcome: Outcome,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Well,
    /// The check alone fails, and its endpoint passes: a server that can still be read, and that takes
    /// the deletes which make room, must not be taken out of service.
    Degraded,
    Failed,
}

impl Checked {
    fn new(name: &'static str, is_well: bool) -> Self {
        Self { name, outcome: if is_well { Outcome::Well } else { Outcome::Failed } }
    }

    fn degradable(name: &'static str, is_well: bool) -> Self {
        Self { name, outcome: if is_well { Outcome::Well } else { Outcome::Degraded } }
    }
}

/// An answer in plain text.
pub(crate) struct Text {
    pub(crate) code: u16,
    pub(crate) text: String,
}

const READY_HOOK: &str = "poststarthook/rbac/bootstrap-roles";

impl Endpoint {
    const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// The answer to a health path; `None` if the path is none.
pub(crate) async fn health<S: Store>(
    server: &ServerState<S>,
    path: &str,
    query: &Query,
) -> Option<Text> {
    let path = path.trim_matches('/');
    let (first, check) = path.split_once('/').map_or((path, None), |(a, b)| (a, Some(b)));
    let endpoint = Endpoint::ALL.into_iter().find(|endpoint| endpoint.name() == first)?;
    let checks = checks(server, endpoint).await;
    match check {
        None => Some(all(endpoint, &checks, query)),
        Some(name) => {
            let name = if name == "etcd" { "storage" } else { name };
            let check = checks.iter().find(|check| check.name == name)?;
            let failed = |how: &str| Text {
                code: 500,
                text: format!("internal server error: {name} {how}: reason withheld\n"),
            };
            Some(match check.outcome {
                Outcome::Well => Text { code: 200, text: "ok".to_owned() },
                Outcome::Degraded => failed("degraded"),
                Outcome::Failed => failed("failed"),
            })
        }
    }
}

async fn checks<S: Store>(server: &ServerState<S>, endpoint: Endpoint) -> Vec<Checked> {
    let is_stored = match endpoint {
        // A restart does not help against a disk that takes no writes, so being read is enough to live.
        Endpoint::Livez => {
            let read = tokio::time::timeout(STORE_WAIT, server.store.current_rev()).await;
            matches!(read, Ok(Ok(_)))
        }
        Endpoint::Healthz | Endpoint::Readyz => {
            let store = tokio::time::timeout(STORE_WAIT, server.store.health()).await;
            matches!(store, Ok(Ok(())))
        }
    };
    let mut checks = vec![
        Checked::new("ping", true),
        Checked::new("log", true),
        Checked::new("storage", is_stored),
    ];
    if endpoint == Endpoint::Readyz {
        let status = server.store.status();
        let readiness = &server.readiness;
        let is_bootstrapped = readiness.is_bootstrapped.load(Ordering::Acquire);
        checks.extend([
            Checked::new("storage-readiness", is_stored),
            Checked::degradable("storage-space", status.alarms.is_empty()),
            Checked::degradable("storage-upkeep", status.degraded.is_none()),
            Checked::new("admission-config", !server.barrier.confirmation_age().is_stale),
            Checked::new("informer-sync", server.snapshot_cache.is_synced()),
            Checked::new(READY_HOOK, is_bootstrapped),
            Checked::new("shutdown", !readiness.is_stopping.load(Ordering::Acquire)),
        ]);
    }
    checks
}

fn all(endpoint: Endpoint, checks: &[Checked], query: &Query) -> Text {
    let mut excluded: Vec<&str> = query.all("exclude").filter(|name| !name.is_empty()).collect();
    let mut lines = String::new();
    let mut is_well = true;
    for check in checks {
        let name = check.name;
        let is_named = |own: &&str| *own == name || (*own == "etcd" && name == "storage");
        // A String takes whatever is written to it.
        let _ = if excluded.iter().any(is_named) {
            excluded.retain(|own| !is_named(own));
            writeln!(lines, "[+]{name} excluded: ok")
        } else {
            match check.outcome {
                Outcome::Well => writeln!(lines, "[+]{name} ok"),
                Outcome::Degraded => writeln!(lines, "[-]{name} degraded: reason withheld"),
                Outcome::Failed => {
                    is_well = false;
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
    match (is_well, query.flag("verbose")) {
        (true, false) => Text { code: 200, text: "ok".to_owned() },
        (true, true) => Text { code: 200, text: format!("{lines}{name} check passed\n") },
        (false, _) => Text { code: 500, text: format!("{lines}{name} check failed\n") },
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
            Checked::new("ping", true),
            Checked::new("storage", is_stored),
            Checked::degradable("storage-space", is_roomy),
        ];
        let text = all(Endpoint::Readyz, &checks, &Query::parse(&format!("/readyz?{query}")));
        (text.code, text.text)
    }

    /// api-server H-011, H-012, §2.5.
    #[test]
    fn the_forms_of_the_answer() {
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
