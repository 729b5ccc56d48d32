//! ABAC.

mod generate;

use std::time::Duration;

use ::authz::Recorder;
use anyhow::anyhow;
use authz_abac::{Policy, Snapshot};
use authz_reference::ReferenceAbac;
use document::Source;
use manifests::abac::{LoadOptions, load};
use serde_json::Value;

use crate::authz::agreement::{Agreement, Depth, SMALL_QUESTIONS, compare};
use crate::authz::contest::{Contest, Row};
use crate::authz::measure::{Effort, bytes_of, time_build};
use crate::authz::question::{Pool, askers};
use crate::authz::random::Random;
use crate::authz::rbac::GROUP_COUNTS;
use crate::authz::report::IndexRow;
use crate::authz::upstream::Files;

use generate::{Counts, Questions};

/// How many different users ask, at most.
const ASKERS_MAX: usize = 16_384;

/// All about a file of so many lines: how it is decided, and what the index costs.
pub(crate) fn run(
    n_lines: usize,
    effort: Effort,
    files: &mut Files,
) -> anyhow::Result<(Vec<Row>, IndexRow)> {
    let mut random = Random::new(n_lines as u64);
    let counts = Counts::new(n_lines);
    let lines: Vec<Value> = (0..n_lines).map(|_| counts.line(&mut random)).collect();
    let loaded = read(&lines)?;
    let oracle = ReferenceAbac::new(loaded.clone());
    let policies = index(loaded.clone())?;
    let folder = format!("abac-{n_lines}");
    files.write(&folder, "policy", lines)?;
    let mut rows = Vec::new();
    for n_groups in GROUP_COUNTS {
        let pool = pool(counts, &policies, n_groups, effort.n_questions, &mut random)?;
        let contest = Contest {
            authorizer: "ABAC",
            size: n_lines,
            unit: "lines",
            n_groups: Some(n_groups),
            depth: Depth::VerdictAndReason,
        };
        rows.push(contest.run(
            &pool,
            effort,
            |attributes| policies.authorize(attributes, Recorder::disabled()),
            |attributes| oracle.authorize(attributes),
        ));
        files.ask("abac", &contest.name(), &[&folder], &pool)?;
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

/// Compares index and oracle on a small file of this number, where most lines matter.
pub(crate) fn compare_small(number: usize) -> anyhow::Result<Agreement> {
    let mut random = Random::new(number as u64);
    let n_lines = 20 + random.below(100);
    let counts = Counts::new(n_lines);
    let lines: Vec<Value> = (0..n_lines).map(|_| counts.line(&mut random)).collect();
    let loaded = read(&lines)?;
    let oracle = ReferenceAbac::new(loaded.clone());
    let policies = index(loaded)?;
    let pool = pool(counts, &policies, 5, SMALL_QUESTIONS, &mut random)?;
    let (agreement, _) = compare(
        &pool,
        Duration::MAX,
        Depth::VerdictAndReason,
        |attributes| policies.authorize(attributes, Recorder::disabled()),
        |attributes| oracle.authorize(attributes),
    );
    Ok(agreement)
}

/// The lines as the server reads them.
fn read(lines: &[Value]) -> anyhow::Result<Vec<Policy>> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let source = Source { name: "policy.jsonl", bytes: text.as_bytes() };
    let loaded = load(&source, &LoadOptions::default()).map_err(|error| anyhow!("{error}"))?;
    Ok(loaded.snapshot.policies().to_vec())
}

fn index(policies: Vec<Policy>) -> anyhow::Result<Snapshot> {
    Ok(Snapshot::new(policies)?)
}

fn pool(
    counts: Counts,
    policies: &Snapshot,
    n_groups: usize,
    n_questions: usize,
    random: &mut Random,
) -> anyhow::Result<Pool> {
    let n_askers = ASKERS_MAX.min(n_questions);
    let names: Vec<String> = (0..n_askers)
        .map(|_| crate::authz::vocabulary::user(random.below(counts.n_users)))
        .collect();
    let askers = askers(names.into_iter(), n_groups, counts.n_users, random);
    let questions = Questions::new(counts, policies.policies());
    Pool::balanced(
        askers,
        n_questions,
        random,
        |random, user, is_allowed| questions.propose(random, user, is_allowed),
        |attributes| {
            crate::authz::is_allowed(&policies.authorize(attributes, Recorder::disabled()))
        },
    )
}
