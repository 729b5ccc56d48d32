//! The benchmark of the ABAC authorizer.

mod generate;

use std::time::Duration;

use ::authz::TraceRecorder;
use anyhow::anyhow;
use authz_abac::{Policy, Snapshot};
use authz_reference::ReferenceAbac;
use document::Source;
use manifests::abac::{AbacPolicyLoadOptions, load_abac_policies};
use serde_json::Value;

use crate::authz::agreement::{Agreement, Depth, N_SMALL_REQUESTS, compare};
use crate::authz::comparison::{Comparison, Row};
use crate::authz::measure::{Effort, bytes_of, time_build};
use crate::authz::random::Random;
use crate::authz::rbac::GROUP_COUNTS;
use crate::authz::report::IndexRow;
use crate::authz::request_pool::{RequestPool, generate_users};
use crate::authz::upstream::Files;

use generate::{Counts, RequestGenerator};

/// The largest number of different users.
const USERS_MAX: usize = 16_384;

/// Measures the decisions on a policy file of this many lines, and the cost of its index.
pub(crate) fn run(
    n_lines: usize,
    effort: Effort,
    files: &mut Files,
) -> anyhow::Result<(Vec<Row>, IndexRow)> {
    let mut random = Random::new(n_lines as u64);
    let counts = Counts::new(n_lines);
    let lines: Vec<Value> = (0..n_lines).map(|_| counts.line(&mut random)).collect();
    let loaded = read(&lines)?;
    let reference = ReferenceAbac::new(loaded.clone());
    let policies = index(loaded.clone())?;
    let folder = format!("abac-{n_lines}");
    files.write(&folder, "policy", lines)?;
    let mut rows = Vec::new();
    for n_groups in GROUP_COUNTS {
        let pool = pool(counts, &policies, n_groups, effort.n_requests, &mut random)?;
        let comparison = Comparison {
            authorizer: "ABAC",
            size: n_lines,
            unit: "lines",
            n_groups: Some(n_groups),
            depth: Depth::VerdictAndReason,
        };
        rows.push(comparison.run(
            &pool,
            effort,
            |attributes| policies.authorize(attributes, TraceRecorder::disabled_recorder()),
            |attributes| reference.authorize(attributes),
        ));
        files.ask("abac", &comparison.name(), &[&folder], &pool)?;
    }
    let per_line = |bytes: f64| bytes / n_lines.max(1) as f64;
    let index_row = IndexRow {
        authorizer: "ABAC",
        size: n_lines,
        unit: "lines",
        build: time_build(&loaded, index),
        bytes_each: per_line(bytes_of(|| index(loaded.clone()))),
        object_bytes_each: Some(per_line(bytes_of(|| loaded.clone()))),
        who_can: None,
        update: None,
    };
    Ok((rows, index_row))
}

/// Compares the index with the reference implementation on a small file, where most lines matter. `number`
/// is the seed.
pub(crate) fn compare_small(number: usize) -> anyhow::Result<Agreement> {
    let mut random = Random::new(number as u64);
    let n_lines = 20 + random.below(100);
    let counts = Counts::new(n_lines);
    let lines: Vec<Value> = (0..n_lines).map(|_| counts.line(&mut random)).collect();
    let loaded = read(&lines)?;
    let reference = ReferenceAbac::new(loaded.clone());
    let policies = index(loaded)?;
    let pool = pool(counts, &policies, 5, N_SMALL_REQUESTS, &mut random)?;
    let (agreement, _) = compare(
        &pool,
        Duration::MAX,
        Depth::VerdictAndReason,
        |attributes| policies.authorize(attributes, TraceRecorder::disabled_recorder()),
        |attributes| reference.authorize(attributes),
    );
    Ok(agreement)
}

/// Parses the lines as the server does.
fn read(lines: &[Value]) -> anyhow::Result<Vec<Policy>> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let source = Source { name: "policy.jsonl", file_bytes: text.as_bytes() };
    let loaded = load_abac_policies(&source, &AbacPolicyLoadOptions::default())
        .map_err(|error| anyhow!("{error}"))?;
    Ok(loaded.abac_policy_snapshot.policies().to_vec())
}

fn index(policies: Vec<Policy>) -> anyhow::Result<Snapshot> {
    Ok(Snapshot::new(policies)?)
}

fn pool(
    counts: Counts,
    policies: &Snapshot,
    n_groups: usize,
    n_requests: usize,
    random: &mut Random,
) -> anyhow::Result<RequestPool> {
    let n_users = USERS_MAX.min(n_requests);
    let names: Vec<String> = (0..n_users)
        .map(|_| crate::authz::vocabulary::user(random.below(counts.n_users)))
        .collect();
    let users = generate_users(names.into_iter(), n_groups, counts.n_users, random);
    let requests = RequestGenerator::new(counts, policies.policies());
    RequestPool::generate_balanced(
        users,
        n_requests,
        random,
        |random, user, is_allowed| requests.propose(random, user, is_allowed),
        |attributes| {
            crate::authz::is_allowed(
                &policies.authorize(attributes, TraceRecorder::disabled_recorder()),
            )
        },
    )
}
