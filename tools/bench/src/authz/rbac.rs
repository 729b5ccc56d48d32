//! RBAC.

mod generate;

use std::hint::black_box;
use std::time::Duration;

use ::authz::{Attributes, Recorder};
use authz_rbac::{Binding, Snapshot};
use authz_reference::ReferenceRbac;
use serde_json::Value;

use crate::authz::agreement::{Agreement, Depth, SMALL_QUESTIONS, compare};
use crate::authz::contest::{Contest, Row};
use crate::authz::measure::{Effort, bytes_of, time_build, time_changes, time_least};
use crate::authz::question::{Pool, askers};
use crate::authz::random::Random;
use crate::authz::report::IndexRow;
use crate::authz::upstream::Files;

use generate::Questions;
pub(crate) use generate::{Cluster, Counts};

/// How many different users ask, at most.
const ASKERS_MAX: usize = 16_384;

/// In how many groups those who ask are.
pub(crate) const GROUP_COUNTS: [usize; 2] = [1, 50];

/// All about a cluster of so many bindings: how it is decided, and what the index costs.
pub(crate) fn run(
    n_bindings: usize,
    effort: Effort,
    files: &mut Files,
) -> anyhow::Result<(Vec<Row>, IndexRow)> {
    let mut random = Random::new(n_bindings as u64);
    let counts = Counts::new(n_bindings);
    let cluster = Cluster::generate(counts, &mut random)?;
    let snapshot = cluster.clone().snapshot();
    let oracle = ReferenceRbac::new(cluster.roles.clone(), cluster.bindings.clone());
    let folder = format!("rbac-{n_bindings}");
    files.write(&folder, "roles", roles_json(&cluster)?)?;
    files.write(&folder, "bindings", bindings_json(&cluster)?)?;
    let mut rows = Vec::new();
    let mut asked = None;
    for n_groups in GROUP_COUNTS {
        let pool = pool(counts, &cluster, &snapshot, n_groups, effort.n_questions, &mut random)?;
        let contest = Contest {
            authorizer: "RBAC",
            size: n_bindings,
            unit: "bindings",
            n_groups: Some(n_groups),
            depth: Depth::VerdictAndReason,
        };
        rows.push(contest.run(
            &pool,
            effort,
            |attributes| snapshot.authorize(attributes, Recorder::disabled()),
            |attributes| oracle.authorize(attributes),
        ));
        files.ask("rbac", &contest.name(), &[&folder], &pool)?;
        asked = Some(pool);
    }
    let index = index_row(counts, &cluster, snapshot, effort, asked.as_ref(), &mut random);
    Ok((rows, index))
}

/// Compares index and oracle on a small cluster of this number, where most bindings matter.
pub(crate) fn compare_small(number: usize) -> anyhow::Result<Agreement> {
    let mut random = Random::new(number as u64);
    let counts = Counts::new(20 + random.below(100));
    let cluster = Cluster::generate(counts, &mut random)?;
    let snapshot = cluster.clone().snapshot();
    let oracle = ReferenceRbac::new(cluster.roles.clone(), cluster.bindings.clone());
    let pool = pool(counts, &cluster, &snapshot, 5, SMALL_QUESTIONS, &mut random)?;
    let (agreement, _) = compare(
        &pool,
        Duration::MAX,
        Depth::VerdictAndReason,
        |attributes| snapshot.authorize(attributes, Recorder::disabled()),
        |attributes| oracle.authorize(attributes),
    );
    Ok(agreement)
}

/// Questions of users in so many groups.
pub(crate) fn pool(
    counts: Counts,
    cluster: &Cluster,
    snapshot: &Snapshot,
    n_groups: usize,
    n_questions: usize,
    random: &mut Random,
) -> anyhow::Result<Pool> {
    let n_askers = ASKERS_MAX.min(n_questions);
    let names: Vec<String> = (0..n_askers).map(|_| counts.asker(random)).collect();
    let askers = askers(names.into_iter(), n_groups, counts.n_users, random);
    let questions = Questions::new(counts, cluster);
    Pool::balanced(
        askers,
        n_questions,
        random,
        |random, user, is_allowed| questions.propose(random, user, is_allowed),
        |attributes| {
            crate::authz::is_allowed(&snapshot.authorize(attributes, Recorder::disabled()))
        },
    )
}

fn index_row(
    counts: Counts,
    cluster: &Cluster,
    mut snapshot: Snapshot,
    effort: Effort,
    asked: Option<&Pool>,
    random: &mut Random,
) -> IndexRow {
    let n_bindings = cluster.bindings.len();
    let per_binding = |bytes: f64| bytes / n_bindings.max(1) as f64;
    let asked: Vec<Attributes<'_>> = (asked.into_iter())
        .flat_map(Pool::iter)
        .map(|(attributes, _)| Attributes { user: None, ..attributes })
        .take(effort.n_who_can)
        .collect();
    let who_can = time_least(&asked, 3, |attributes| {
        black_box(snapshot.allowed_subjects(attributes));
    });
    let changes = Questions::new(counts, cluster).changes(random, effort.n_updates);
    IndexRow {
        authorizer: "RBAC",
        size: n_bindings,
        unit: "bindings",
        build: time_build(cluster, Cluster::snapshot),
        bytes_each: per_binding(bytes_of(|| cluster.clone().snapshot())),
        object_bytes_each: Some(per_binding(bytes_of(|| cluster.clone()))),
        who_can: Some(who_can),
        update: Some(time_changes(changes, |binding: Binding| {
            // As a writer does it: change a copy, publish it, drop the old one.
            let mut next = snapshot.clone();
            next.put_binding(binding);
            snapshot = next;
        })),
    }
}

/// The roles as the API shows them.
fn roles_json(cluster: &Cluster) -> anyhow::Result<Vec<Value>> {
    let roles = cluster.roles.iter().cloned();
    let encoded = roles.map(|role| manifests::rbac::encode(&manifests::rbac::Object::Role(role)));
    Ok(encoded.collect::<Result<_, _>>()?)
}

fn bindings_json(cluster: &Cluster) -> anyhow::Result<Vec<Value>> {
    let bindings = cluster.bindings.iter().cloned();
    let encoded =
        bindings.map(|binding| manifests::rbac::encode(&manifests::rbac::Object::Binding(binding)));
    Ok(encoded.collect::<Result<_, _>>()?)
}
