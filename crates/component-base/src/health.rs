//! The texts of `/healthz`, `/livez` and `/readyz`, as Kubernetes writes them.

use std::fmt::Write as _;

/// The endpoints for health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthEndpoint {
    /// `/healthz`, which Kubernetes keeps for old clients.
    Healthz,
    /// `/livez`: the process does not need a restart.
    Livez,
    /// `/readyz`: the process can answer requests.
    Readyz,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheckResult {
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
    /// A check that fails its endpoint if it is not passed.
    pub fn new(name: &'static str, is_ok: bool) -> Self {
        Self {
            name,
            check_state: if is_ok { HealthCheckState::Ok } else { HealthCheckState::Failed },
        }
    }

    /// A check that is shown, and does not fail its endpoint.
    pub fn new_degradable_check(name: &'static str, is_ok: bool) -> Self {
        Self {
            name,
            check_state: if is_ok { HealthCheckState::Ok } else { HealthCheckState::Degraded },
        }
    }
}

/// A response in plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextResponse {
    /// The HTTP status code.
    pub code: u16,
    /// The text of the body.
    pub body_text: String,
}

/// The query of a request for a health endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthQuery<'q> {
    /// The checks to leave out: the values of `exclude`.
    pub excluded_checks: Vec<&'q str>,
    /// Whether all checks are shown: `verbose`.
    pub is_verbose: bool,
}

impl HealthEndpoint {
    const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    /// The last part of its path.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }

    /// The endpoint of a path, and the name of the single check that the path asks for.
    pub fn from_path(path: &str) -> Option<(Self, Option<&str>)> {
        let path = path.trim_matches('/');
        let (first, check) = path.split_once('/').map_or((path, None), |(a, b)| (a, Some(b)));
        let endpoint = Self::ALL.into_iter().find(|endpoint| endpoint.name() == first)?;
        Some((endpoint, check))
    }
}

/// The response of a health endpoint, or of the single check that a path asks for; `None` if there is no such check.
pub fn render_health_response(
    endpoint: HealthEndpoint,
    single_check: Option<&str>,
    checks: &[HealthCheckResult],
    query: HealthQuery<'_>,
) -> Option<TextResponse> {
    match single_check {
        None => Some(render_check_results(endpoint, checks, query)),
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

fn render_check_results(
    endpoint: HealthEndpoint,
    checks: &[HealthCheckResult],
    query: HealthQuery<'_>,
) -> TextResponse {
    let mut excluded = query.excluded_checks;
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
    match (is_passing, query.is_verbose) {
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

    fn answer(query: HealthQuery<'_>, is_stored: bool) -> (u16, String) {
        answer_with(query, is_stored, true)
    }

    fn answer_with(query: HealthQuery<'_>, is_stored: bool, is_roomy: bool) -> (u16, String) {
        let checks = [
            HealthCheckResult::new("ping", true),
            HealthCheckResult::new("storage", is_stored),
            HealthCheckResult::new_degradable_check("storage-space", is_roomy),
        ];
        let text = render_check_results(HealthEndpoint::Readyz, &checks, query);
        (text.code, text.body_text)
    }

    fn verbose<'q>(excluded: &[&'q str]) -> HealthQuery<'q> {
        HealthQuery { excluded_checks: excluded.to_vec(), is_verbose: true }
    }

    #[test]
    fn responses_list_failed_degraded_and_excluded_checks() {
        assert_eq!(answer(HealthQuery::default(), true), (200, "ok".to_owned()));
        let want = "[+]ping ok\n[+]storage ok\n[+]storage-space ok\nreadyz check passed\n";
        assert_eq!(answer(verbose(&[]), true), (200, want.to_owned()));
        let want = "[+]ping ok\n[-]storage failed: reason withheld\n[+]storage-space ok\n\
                    readyz check failed\n";
        assert_eq!(answer(HealthQuery::default(), false), (500, want.to_owned()));
        assert_eq!(
            answer(HealthQuery { excluded_checks: vec!["etcd"], is_verbose: false }, false),
            (200, "ok".to_owned())
        );
        assert_eq!(
            answer_with(HealthQuery::default(), true, false),
            (200, "ok".to_owned()),
            "still ready"
        );
        let (code, text) = answer_with(verbose(&[]), true, false);
        assert!(code == 200 && text.contains("[-]storage-space degraded: reason withheld\n"));
        let (code, text) = answer(verbose(&["x"]), true);
        assert_eq!(code, 200);
        assert!(text.contains("warn: some health checks cannot be excluded: no matches for \"x\""));
    }
}
