//! Measures how long it takes to find the hooks that match a request, among ten to a thousand hooks.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use admission::{
    Attributes, Configuration, ConfigurationKind, EquivalentResource, GroupVersionKind,
    GroupVersionResource, Operation, Snapshot,
};
use anyhow::{Context, ensure};
use serde_json::{Value, json};

/// The numbers of registered hooks.
pub(super) const SIZES: [usize; 3] = [10, 100, 1_000];
/// The number of hooks that match deployments, in every size.
const N_MATCHING: usize = 3;
/// The number of matches in one measurement; the result is the median of [`REPEATS`] measurements.
const ROUNDS: u32 = 100_000;
const REPEATS: usize = 9;

/// The groups and versions of deployments, which the request and the matching hooks are for.
const VERSIONS: [(&str, &str); 3] =
    [("apps", "v1"), ("apps", "v1beta1"), ("extensions", "v1beta1")];

/// The time to match one request among this number of hooks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MatchingTime {
    pub(super) n_hooks: usize,
    pub(super) ours: Duration,
    /// The time of the matcher of Kubernetes; `None` without a Go toolchain.
    pub(super) upstream: Option<Duration>,
}

pub(super) fn run(is_quick: bool) -> anyhow::Result<Vec<MatchingTime>> {
    let rounds = if is_quick { 10 } else { ROUNDS };
    let equivalents = VERSIONS.map(|(group, version)| EquivalentResource {
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
        equivalent_resources: &equivalents,
    };
    let upstream = if is_quick {
        Vec::new()
    } else {
        upstream(rounds / 10).unwrap_or_else(|why| {
            eprintln!("without Kubernetes' own matching: {why:#}");
            Vec::new()
        })
    };
    let mut matched = Vec::new();
    for (idx, n_hooks) in SIZES.into_iter().enumerate() {
        let snapshot = snapshot_of(n_hooks);
        let n_matching = snapshot.validating_hooks().match_hooks(&attributes).len();
        ensure!(n_matching == N_MATCHING, "{n_matching} hooks match");
        let mut times: Vec<Duration> = (0..REPEATS)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..rounds {
                    black_box(snapshot.validating_hooks().match_hooks(black_box(&attributes)));
                }
                start.elapsed() / rounds
            })
            .collect();
        times.sort_unstable();
        let ours = times.get(REPEATS / 2).copied().unwrap_or_default();
        matched.push(MatchingTime { n_hooks, ours, upstream: upstream.get(idx).copied() });
    }
    Ok(matched)
}

/// A snapshot of this number of hooks. Each hook is for a resource of its own, except the few that match.
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
            _ => api_object::Tree::new(),
        };
        Arc::new(Configuration::compile_configuration(ConfigurationKind::Validating, &tree))
    });
    Snapshot::new(&configurations.collect::<Vec<_>>())
}

/// Measures the matcher of Kubernetes with the same hooks and the same request. Returns the time of one
/// request.
fn upstream(rounds: u32) -> anyhow::Result<Vec<Duration>> {
    let sizes: Vec<String> = SIZES.iter().map(ToString::to_string).collect();
    let output = Command::new("go")
        .args(["run", "./cmd/admissionbench", &rounds.to_string()])
        .args(&sizes)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers"))
        .stderr(Stdio::inherit())
        .output()
        .context("no Go toolchain")?;
    ensure!(output.status.success(), "the Go program failed ({})", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let read = |line: &str| line.trim().parse().map(Duration::from_nanos);
    let times: Result<Vec<Duration>, _> = text.lines().map(read).collect();
    let times = times.with_context(|| format!("the Go program says `{text}`"))?;
    ensure!(times.len() == SIZES.len(), "the Go program says `{text}`");
    Ok(times)
}
