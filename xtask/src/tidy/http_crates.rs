//! Checks that few crates depend on hyper, directly or through other crates.

use super::Finding;
use super::packages::Package;

/// The packages that this rule covers.
const HTTP_PACKAGES: [&str; 3] = ["h2", "hyper", "hyper-util"];

/// The crates that may depend on hyper directly, and for what.
const DIRECT_USERS: &[(&str, &str)] = &[
    ("https-client", "calls webhooks and token services"),
    ("https-server", "accepts connections"),
    ("store-etcd", "calls etcd"),
    ("server", "turns requests into values and values into answers"),
    // The following crates replace clients, servers or webhooks in tests.
    ("admission-webhook", "an example of a webhook"),
    ("conformance", "replays recorded requests"),
    ("fake-http", "answers instead of a real server"),
    ("stories", "calls the server of a story"),
    ("bench", "answers as a webhook"),
    ("attack", "attacks as a client and as a webhook"),
];

/// The crates that depend on hyper through one of those.
const INDIRECT_USERS: &[&str] = &[
    "admission-hooks",
    "authz-reload",
    "authz-webhook-server",
    "cli",
    "cluster-client",
    "component-base",
    "freeze-authorizer",
    "kubeconfig",
    "metrics",
];

/// Checks both lists, which only shrink: an entry that is no longer needed is an error too.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let users: Vec<&str> = DIRECT_USERS.iter().map(|(name, _)| *name).collect();
    check_lists(packages, &users, INDIRECT_USERS)
}

fn check_lists(packages: &[Package], users: &[&str], reach: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        let (uses, reaches) = (uses_http(package), reaches_http(package, packages));
        let message = match (uses, reaches) {
            (true, _) if !users.contains(&name) => {
                "depends on hyper and is not in the list of its users"
            }
            (false, _) if users.contains(&name) => {
                "does not depend on hyper: remove it from the list of its users"
            }
            (false, true) if !reach.contains(&name) => {
                "reaches hyper through another crate and is not in the list"
            }
            (_, false) if reach.contains(&name) => "does not reach hyper: remove it from the list",
            _ => continue,
        };
        findings.push(Finding::error(&package.folder, message));
    }
    for name in users.iter().chain(reach) {
        if !packages.iter().any(|package| package.name == *name) {
            let message = format!("there is no crate `{name}`");
            findings.push(Finding::error("list of crates that reach hyper", message));
        }
    }
    findings
}

fn uses_http(package: &Package) -> bool {
    package.outside_uses.iter().any(|name| HTTP_PACKAGES.contains(&name.as_str()))
}

/// Reports whether a crate depends on hyper, directly or through crates of the workspace. Cargo refuses cycles of
/// these.
fn reaches_http(package: &Package, packages: &[Package]) -> bool {
    uses_http(package)
        || package.uses.iter().any(|name| {
            let used = packages.iter().find(|package| package.name == *name);
            used.is_some_and(|used| reaches_http(used, packages))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(packages: &[Package], users: &[&str], reach: &[&str]) -> Vec<String> {
        check_lists(packages, users, reach).iter().map(Finding::to_string).collect()
    }

    fn packages() -> [Package; 3] {
        let outside_uses = vec!["hyper".to_owned()];
        [
            Package { outside_uses, ..Package::new("client", &[], &[]) },
            Package::new("caller", &["client"], &[]),
            Package::new("rules", &[], &["client"]),
        ]
    }

    #[test]
    fn crates_of_the_lists_pass_and_tests_may_reach_anything() {
        assert!(messages(&packages(), &["client"], &["caller"]).is_empty());
    }

    #[test]
    fn unlisted_crates_and_unneeded_entries_are_found() {
        assert_eq!(
            messages(&packages(), &[], &[]),
            [
                "error: crates/client: depends on hyper and is not in the list of its users",
                "error: crates/caller: reaches hyper through another crate and is not in the list",
            ]
        );
        assert_eq!(
            messages(&packages(), &["client", "caller"], &["caller", "rules", "gone"]),
            [
                "error: crates/caller: does not depend on hyper: remove it from the list of its users",
                "error: crates/rules: does not reach hyper: remove it from the list",
                "error: list of crates that reach hyper: there is no crate `gone`",
            ]
        );
    }
}
