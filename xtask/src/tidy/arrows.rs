//! Checks the dependencies between the crates of the workspace.
//!
//! Dependencies point inward: from crates that know files and users to crates that know only rules. A new
//! dependency is a design change, so it needs a line here that a reviewer sees.

use super::Finding;
use super::packages::Package;
use super::tree::File;

/// The crates of the workspace that one crate may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    from: &'static str,
    to: &'static [&'static str],
    /// The crates that only its tests, examples and benches may use.
    dev: &'static [&'static str],
}

const fn row(from: &'static str, to: &'static [&'static str]) -> Row {
    Row { from, to, dev: &[] }
}

/// The allowed arrows, innermost crate first.
pub(super) const TABLE: &[Row] = &[
    row("allocator", &[]),
    row("concurrency-limit", &[]),
    row("flow-control", &[]),
    row("go-compat", &[]),
    row("field-errors", &["go-compat"]),
    row("persistent", &[]),
    row("authz", &["field-errors", "go-compat"]),
    row("cel", &["field-errors", "go-compat"]),
    // The reference implementation uses the objects of the three authorizers, and their integration tests
    // use the reference implementation.
    Row { from: "authz-abac", to: &["authz", "go-compat"], dev: &["authz-reference"] },
    Row {
        from: "authz-node",
        to: &["authz", "go-compat", "persistent"],
        dev: &["authz-reference"],
    },
    Row {
        from: "authz-rbac",
        to: &["authz", "field-errors", "go-compat", "persistent"],
        dev: &["authz-reference"],
    },
    row("authz-reference", &["authz", "authz-abac", "authz-node", "authz-rbac", "go-compat"]),
    row("authz-webhook", &["authz", "concurrency-limit", "cel", "field-errors", "go-compat"]),
    row(
        "authz-chain",
        &[
            "authz",
            "authz-abac",
            "authz-node",
            "authz-rbac",
            "authz-webhook",
            "field-errors",
            "go-compat",
        ],
    ),
    row("document", &["field-errors", "go-compat"]),
    row(
        "manifests",
        &[
            "authz",
            "authz-abac",
            "authz-node",
            "authz-rbac",
            "document",
            "field-errors",
            "flow-control",
            "go-compat",
        ],
    ),
    row(
        "config",
        &["authz-chain", "authz-webhook", "document", "field-errors", "go-compat", "manifests"],
    ),
    row("monitoring-lint", &["document"]),
    row("x509-verify", &[]),
    row("store", &[]),
    row("store-contract", &["store"]),
    Row { from: "store-embedded", to: &["store"], dev: &["store-contract"] },
    row("etcd-testing", &[]),
    Row {
        from: "store-etcd",
        to: &["store", "x509-verify"],
        dev: &["etcd-testing", "store-contract"],
    },
    row("api-object", &["authz", "field-errors", "go-compat"]),
    row("object-patch", &["api-object"]),
    row("codec", &["document", "field-errors", "go-compat", "api-object"]),
    row("fake-http", &[]),
    Row { from: "https-client", to: &["concurrency-limit", "x509-verify"], dev: &["fake-http"] },
    row("admission", &["authz", "cel", "field-errors", "go-compat", "api-object", "x509-verify"]),
    row(
        "api-resources",
        &[
            "admission",
            "manifests",
            "authz",
            "authz-rbac",
            "field-errors",
            "go-compat",
            "api-object",
            "persistent",
            "x509-verify",
        ],
    ),
    Row {
        from: "access-reviews",
        to: &["document", "authz", "authz-chain", "field-errors", "go-compat", "api-object"],
        dev: &["authz-node", "authz-rbac", "manifests"],
    },
    row("authn", &["authz", "field-errors", "go-compat", "api-object", "x509-verify"]),
    row("audit", &["document", "authz", "field-errors"]),
    row("https-server", &["x509-verify"]),
    Row {
        from: "kubeconfig",
        to: &["config", "document", "field-errors", "go-compat", "https-client"],
        dev: &["fake-http"],
    },
    Row { from: "cluster-client", to: &["https-client", "kubeconfig"], dev: &["fake-http"] },
    Row {
        from: "authz-reload",
        to: &[
            "config",
            "document",
            "manifests",
            "authz",
            "authz-abac",
            "authz-chain",
            "authz-webhook",
            "field-errors",
            "go-compat",
            "kubeconfig",
            "https-client",
        ],
        dev: &["fake-http"],
    },
    Row {
        from: "admission-hooks",
        to: &[
            "admission",
            "authz",
            "concurrency-limit",
            "document",
            "field-errors",
            "go-compat",
            "api-object",
            "object-patch",
            "https-client",
        ],
        dev: &["fake-http"],
    },
    Row {
        from: "metrics",
        to: &[
            "admission",
            "admission-hooks",
            "authz",
            "authz-chain",
            "authz-reload",
            "authz-webhook",
            "https-client",
        ],
        dev: &["monitoring-lint"],
    },
    row(
        "component-base",
        &["api-object", "audit", "authn", "go-compat", "https-client", "https-server"],
    ),
    row(
        "authz-webhook-server",
        &[
            "access-reviews",
            "api-object",
            "audit",
            "authn",
            "authz",
            "authz-chain",
            "authz-rbac",
            "authz-webhook",
            "cluster-client",
            "component-base",
            "concurrency-limit",
            "https-server",
            "manifests",
            "metrics",
        ],
    ),
    Row {
        from: "server",
        to: &[
            "component-base",
            "admission",
            "admission-hooks",
            "manifests",
            "audit",
            "authn",
            "authz",
            "authz-chain",
            "authz-reload",
            "metrics",
            "authz-node",
            "authz-rbac",
            "concurrency-limit",
            "field-errors",
            "flow-control",
            "go-compat",
            "api-object",
            "object-patch",
            "https-client",
            "api-resources",
            "access-reviews",
            "https-server",
            "persistent",
            "store",
            "codec",
        ],
        dev: &["authz-webhook", "etcd-testing", "fake-http", "store-embedded", "store-etcd"],
    },
    Row {
        from: "cli",
        to: &[
            "allocator",
            "admission",
            "admission-hooks",
            "config",
            "document",
            "manifests",
            "audit",
            "authn",
            "authz",
            "authz-chain",
            "authz-reload",
            "metrics",
            "authz-node",
            "authz-rbac",
            "authz-webhook",
            "authz-webhook-server",
            "cel",
            "cluster-client",
            "component-base",
            "field-errors",
            "go-compat",
            "kubeconfig",
            "api-object",
            "https-client",
            "api-resources",
            "access-reviews",
            "server",
            "https-server",
            "store",
            "store-embedded",
            "store-etcd",
        ],
        // The tests replay recorded scenarios against the program, compare its answers with those of the reference
        // authorizer, and start it on real etcd members.
        dev: &["authz-reference", "conformance", "etcd-testing", "fake-http"],
    },
    row(
        "conformance",
        &[
            "admission",
            "admission-hooks",
            "config",
            "document",
            "manifests",
            "authn",
            "authz",
            "authz-chain",
            "authz-reload",
            "authz-node",
            "authz-rbac",
            "authz-webhook",
            "field-errors",
            "api-object",
            "https-client",
            "access-reviews",
            "server",
            "fake-http",
        ],
    ),
    // The benchmarks use the server and the webhooks as clients, and the authorizers as callers.
    row(
        "bench",
        &[
            "admission",
            "document",
            "manifests",
            "api-object",
            "authz",
            "authz-abac",
            "authz-chain",
            "metrics",
            "authz-node",
            "authz-rbac",
            "authz-reference",
            "authz-reload",
            "authz-webhook",
            "etcd-testing",
            "fake-http",
            "https-server",
        ],
    ),
    // The attacks use the server as clients, and have webhooks of their own.
    row("attack", &["fake-http"]),
    Row { from: "freeze-authorizer", to: &["authz", "cli"], dev: &["authz-chain"] },
    row("stories", &[]),
    row("admission-webhook", &[]),
    row("xtask", &[]),
];

/// Every dependency must be in the table, and every entry of the table must be a dependency that exists.
pub(super) fn check(packages: &[Package], table: &[Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(row) = table.iter().find(|row| row.from == package.name) else {
            findings.push(Finding::error(&package.folder, "has no row in the table of arrows"));
            continue;
        };
        let mut report = |to: &str, kind: &str| {
            let message = format!("{kind} on `{to}` is not in the table of arrows");
            findings.push(Finding::error(&package.folder, message));
        };
        for to in &package.uses {
            if !row.to.contains(&to.as_str()) {
                report(to, "dependency");
            }
        }
        for to in &package.dev_uses {
            if !row.to.contains(&to.as_str()) && !row.dev.contains(&to.as_str()) {
                report(to, "dev-dependency");
            }
        }
    }
    let mut report = |message: String| findings.push(Finding::error("table of arrows", message));
    for Row { from, to, dev } in table {
        let Some(package) = packages.iter().find(|package| package.name == *from) else {
            report(format!("there is no crate `{from}`"));
            continue;
        };
        // A dependency of tests alone belongs in the other list.
        for unused in to.iter().filter(|name| !package.uses.iter().any(|used| used == *name)) {
            report(format!("`{from}` does not depend on `{unused}`"));
        }
        for unused in dev.iter().filter(|name| !package.dev_uses.iter().any(|used| used == *name)) {
            report(format!("the tests of `{from}` do not depend on `{unused}`"));
        }
    }
    findings
}

/// A dependency in the manifest must be used in the code.
pub(super) fn check_used(files: &[File], packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let folder = format!("{}/", package.folder);
        let sources: Vec<&File> =
            files.iter().filter(|file| file.is_rust() && file.path.starts_with(&folder)).collect();
        for name in package.uses.iter().chain(&package.dev_uses) {
            let identifier = name.replace('-', "_");
            if !sources.iter().any(|file| has_word(&file.text, &identifier)) {
                let message = format!("depends on `{name}` and never names it");
                findings.push(Finding::error(&package.folder, message));
            }
        }
    }
    findings
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &[Row] =
        &[row("a", &[]), row("b", &["a"]), Row { from: "c", to: &["b"], dev: &["a"] }];

    fn messages(packages: &[Package], table: &[Row]) -> Vec<String> {
        check(packages, table).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn arrows_of_the_table_pass() {
        let packages = [
            Package::new("a", &[], &[]),
            Package::new("b", &["a"], &["a"]),
            Package::new("c", &["b"], &["a"]),
        ];
        assert!(messages(&packages, SMALL).is_empty());
    }

    #[test]
    fn arrows_outside_the_table_are_found() {
        let packages = [
            Package::new("a", &["b"], &[]),
            Package::new("b", &["a"], &["c"]),
            Package::new("c", &["a", "b"], &["a"]),
        ];
        assert_eq!(
            messages(&packages, SMALL),
            [
                "error: crates/a: dependency on `b` is not in the table of arrows",
                "error: crates/b: dev-dependency on `c` is not in the table of arrows",
                "error: crates/c: dependency on `a` is not in the table of arrows",
            ]
        );
    }

    #[test]
    fn crates_without_row_and_rows_without_crate_are_found() {
        let packages = [Package::new("a", &[], &[]), Package::new("new", &[], &[])];
        let table = [row("a", &[]), row("old", &["a"])];
        assert_eq!(
            messages(&packages, &table),
            [
                "error: crates/new: has no row in the table of arrows",
                "error: table of arrows: there is no crate `old`",
            ]
        );
    }

    #[test]
    fn unused_arrows_are_found() {
        let packages = [
            Package::new("a", &[], &[]),
            Package::new("b", &[], &["a"]),
            Package::new("c", &["b"], &[]),
        ];
        assert_eq!(
            messages(&packages, SMALL),
            [
                "error: table of arrows: `b` does not depend on `a`",
                "error: table of arrows: the tests of `c` do not depend on `a`",
            ]
        );
    }

    #[test]
    fn a_dependency_that_no_code_names_is_found() {
        let packages = [Package::new("b", &["a-x"], &["c"])];
        let found = |text: &str| {
            let files = [File::new("crates/b/src/lib.rs", text), File::new("crates/a.rs", "a_x c")];
            check_used(&files, &packages).iter().map(Finding::to_string).collect::<Vec<_>>()
        };
        assert!(found("use a_x::Y;\nc::call();\n").is_empty());
        assert_eq!(
            found("use a_xy::Y;\nself.c\n"),
            ["error: crates/b: depends on `a-x` and never names it"]
        );
    }

    /// Cargo refuses a cycle of normal dependencies, but a cycle in the table would allow a new dependency
    /// that points outward.
    #[test]
    fn the_table_only_points_to_rows_above() {
        for (idx, row) in TABLE.iter().enumerate() {
            for to in row.to {
                assert!(
                    TABLE[..idx].iter().any(|above| above.from == *to),
                    "{} points to {to}, which is not above it",
                    row.from
                );
            }
        }
    }
}
