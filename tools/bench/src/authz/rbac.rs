//! The benchmark of the RBAC authorizer.

mod generate;

use std::hint::black_box;
use std::time::Duration;

use ::authz::{Attributes, TraceRecorder};
use authz_rbac::{Binding, Snapshot};
use authz_reference::ReferenceRbac;
use serde_json::Value;

use crate::authz::agreement::{Agreement, Depth, N_SMALL_REQUESTS, compare};
use crate::authz::comparison::{Comparison, Row};
use crate::authz::measure::{Effort, bytes_of, time_build, time_changes, time_least};
use crate::authz::random::Random;
use crate::authz::report::IndexRow;
use crate::authz::request_pool::{RequestPool, generate_users};
use crate::authz::upstream::Files;

use generate::RequestGenerator;
pub(crate) use generate::{Cluster, Counts};

/// The largest number of different users.
const USERS_MAX: usize = 16_384;

/// The numbers of groups that the users are in.
pub(crate) const GROUP_COUNTS: [usize; 2] = [1, 50];

/// Measures the decisions on a cluster with this number of bindings, and the cost of its index.
pub(crate) fn run(
    n_bindings: usize,
    effort: Effort,
    files: &mut Files,
) -> anyhow::Result<(Vec<Row>, IndexRow)> {
    let mut random = Random::new(n_bindings as u64);
    let counts = Counts::new(n_bindings);
    let cluster = Cluster::generate(counts, &mut random)?;
    let snapshot = cluster.clone().snapshot();
    let reference = ReferenceRbac::new(cluster.roles.clone(), cluster.bindings.clone());
    let folder = format!("rbac-{n_bindings}");
    files.write(&folder, "roles", roles_json(&cluster)?)?;
    files.write(&folder, "bindings", bindings_json(&cluster)?)?;
    let mut rows = Vec::new();
    let mut asked = None;
    for n_groups in GROUP_COUNTS {
        let pool = pool(counts, &cluster, &snapshot, n_groups, effort.n_requests, &mut random)?;
        let comparison = Comparison {
            authorizer: "RBAC",
            size: n_bindings,
            unit: "bindings",
            n_groups: Some(n_groups),
            depth: Depth::VerdictAndReason,
        };
        rows.push(comparison.run(
            &pool,
            effort,
            |attributes| snapshot.authorize(attributes, TraceRecorder::disabled_recorder()),
            |attributes| reference.authorize(attributes),
        ));
        files.ask("rbac", &comparison.name(), &[&folder], &pool)?;
        asked = Some(pool);
    }
    let index = index_row(counts, &cluster, snapshot, effort, asked.as_ref(), &mut random);
    Ok((rows, index))
}

/// Compares the index with the reference implementation on a small cluster, where most bindings matter.
/// `number` is the seed.
pub(crate) fn compare_small(number: usize) -> anyhow::Result<Agreement> {
    let mut random = Random::new(number as u64);
    let counts = Counts::new(20 + random.below(100));
    let cluster = Cluster::generate(counts, &mut random)?;
    let snapshot = cluster.clone().snapshot();
    let reference = ReferenceRbac::new(cluster.roles.clone(), cluster.bindings.clone());
    let pool = pool(counts, &cluster, &snapshot, 5, N_SMALL_REQUESTS, &mut random)?;
    let (agreement, _) = compare(
        &pool,
        Duration::MAX,
        Depth::VerdictAndReason,
        |attributes| snapshot.authorize(attributes, TraceRecorder::disabled_recorder()),
        |attributes| reference.authorize(attributes),
    );
    Ok(agreement)
}

/// Generates requests of users in this number of groups.
pub(crate) fn pool(
    counts: Counts,
    cluster: &Cluster,
    snapshot: &Snapshot,
    n_groups: usize,
    n_requests: usize,
    random: &mut Random,
) -> anyhow::Result<RequestPool> {
    let n_users = USERS_MAX.min(n_requests);
    let names: Vec<String> = (0..n_users).map(|_| counts.random_user_name(random)).collect();
    let users = generate_users(names.into_iter(), n_groups, counts.n_users, random);
    let requests = RequestGenerator::new(counts, cluster);
    RequestPool::generate_balanced(
        users,
        n_requests,
        random,
        |random, user, is_allowed| requests.propose(random, user, is_allowed),
        |attributes| {
            crate::authz::is_allowed(
                &snapshot.authorize(attributes, TraceRecorder::disabled_recorder()),
            )
        },
    )
}

fn index_row(
    counts: Counts,
    cluster: &Cluster,
    mut snapshot: Snapshot,
    effort: Effort,
    asked: Option<&RequestPool>,
    random: &mut Random,
) -> IndexRow {
    let n_bindings = cluster.bindings.len();
    let per_binding = |bytes: f64| bytes / n_bindings.max(1) as f64;
    let asked: Vec<Attributes<'_>> = (asked.into_iter())
        .flat_map(RequestPool::iter)
        .map(|(attributes, _)| Attributes { user: None, ..attributes })
        .take(effort.n_who_can)
        .collect();
    let who_can = time_least(&asked, 3, |attributes| {
        black_box(snapshot.allowed_subjects(attributes));
    });
    let changes = RequestGenerator::new(counts, cluster).changes(random, effort.n_updates);
    IndexRow {
        authorizer: "RBAC",
        size: n_bindings,
        unit: "bindings",
        build: time_build(cluster, Cluster::snapshot),
        bytes_each: per_binding(bytes_of(|| cluster.clone().snapshot())),
        object_bytes_each: Some(per_binding(bytes_of(|| cluster.clone()))),
        who_can: Some(who_can),
        update: Some(time_changes(changes, |binding: Binding| {
            // A writer changes a copy, publishes it and drops the old snapshot.
            let mut next = snapshot.clone();
            next.put_binding(binding);
            snapshot = next;
        })),
    }
}

/// The roles in the form of the API.
fn roles_json(cluster: &Cluster) -> anyhow::Result<Vec<Value>> {
    let roles = cluster.roles.iter().cloned();
    let encoded = roles
        .map(|role| manifests::rbac::encode_rbac_object(&manifests::rbac::RbacObject::Role(role)));
    Ok(encoded.collect::<Result<_, _>>()?)
}

fn bindings_json(cluster: &Cluster) -> anyhow::Result<Vec<Value>> {
    let bindings = cluster.bindings.iter().cloned();
    let encoded = bindings.map(|binding| {
        manifests::rbac::encode_rbac_object(&manifests::rbac::RbacObject::Binding(binding))
    });
    Ok(encoded.collect::<Result<_, _>>()?)
}
