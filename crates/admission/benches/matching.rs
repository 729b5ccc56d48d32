//! How long it takes to find the hooks of a request among ten and among a thousand.
//!
//! `cargo bench -p admission` prints nanoseconds a request. When tests run it, it goes round a few
//! times only.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use admission::{
    Attributes, Configuration, ConfigurationKind, Equivalent, GroupVersionKind,
    GroupVersionResource, Operation, Snapshot,
};
use serde_json::{Value, json};

/// Rounds that are measured; the median of several is shown.
const ROUNDS: usize = 100_000;
const REPEATS: usize = 9;

/// What hooks are about, and the request is for: deployments in two groups.
const VERSIONS: [(&str, &str); 3] =
    [("apps", "v1"), ("apps", "v1beta1"), ("extensions", "v1beta1")];

fn main() -> std::io::Result<()> {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let rounds = if is_measured { ROUNDS } else { 10 };
    let equivalents = VERSIONS.map(|(group, version)| Equivalent {
        resource: GroupVersionResource { group, version, resource: "deployments" },
        kind: Some(GroupVersionKind { group, version, kind: "Deployment" }),
    });
    let [first, ..] = equivalents;
    let attributes = Attributes {
        operation: Operation::Create,
        kind: first.kind.unwrap_or_default(),
        resource: first.resource,
        subresource: "",
        name: "web",
        namespace: "team-a",
        object: None,
        old_object: None,
        options: None,
        is_dry_run: false,
        user: None,
        equivalents: &equivalents,
    };
    let mut out = std::io::stdout().lock();
    for n_hooks in [10, 100, 1_000] {
        let snapshot = snapshot_of(n_hooks);
        let n_matching = snapshot.validating().matching(&attributes).len();
        if n_matching != N_MATCHING {
            return Err(std::io::Error::other(format!("{n_matching} hooks match")));
        }
        let mut times: Vec<f64> = (0..REPEATS)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..rounds {
                    black_box(snapshot.validating().matching(black_box(&attributes)));
                }
                start.elapsed().as_secs_f64() * 1e9 / rounds as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        if is_measured {
            let median = times[REPEATS / 2];
            writeln!(out, "{n_hooks} hooks, {n_matching} match: {median:.0} ns a request")?;
        }
    }
    Ok(())
}

/// How many hooks are about deployments, however many there are.
const N_MATCHING: usize = 3;

/// A snapshot of so many hooks: each is about a resource of its own, but for the few that match.
fn snapshot_of(n_hooks: usize) -> Snapshot {
    let configurations = (0..n_hooks).map(|idx| {
        let resource = match idx {
            0..N_MATCHING => "deployments".to_owned(),
            _ => format!("resources{idx}"),
        };
        let rule = json!({
            "operations": ["CREATE", "UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
            "resources": [resource, format!("{resource}/scale")],
        });
        let object = json!({
            "metadata": {"name": format!("c{idx}")},
            "webhooks": [{"name": format!("h{idx}.example.com"), "rules": [rule]}],
        });
        let tree = match object {
            Value::Object(tree) => tree,
            _ => object::Tree::new(),
        };
        Arc::new(Configuration::compile(ConfigurationKind::Validating, &tree))
    });
    Snapshot::new(&configurations.collect::<Vec<_>>())
}
