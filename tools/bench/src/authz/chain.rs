//! The benchmark of the whole chain: superusers, then Node, then RBAC.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::authz::{Attributes, Decision, TraceRecorder, User, Verdict};
use anyhow::anyhow;
use authz_chain::{Chain, ChainMember};
use authz_reference::ReferenceRbac;

use crate::authz::agreement::Depth;
use crate::authz::comparison::{Comparison, Row};
use crate::authz::measure::Effort;
use crate::authz::node::{self, Cluster as Nodes};
use crate::authz::random::Random;
use crate::authz::rbac::{self, Cluster, Counts, GROUP_COUNTS};
use crate::authz::request_pool::RequestPool;
use crate::authz::upstream::Files;

const SUPERUSERS: &str = "system:masters";

/// Measures the decisions of the chain. Of twenty requests one is of a superuser, seven are of nodes, and
/// the rest are of users in one and in fifty groups.
pub(crate) fn run(
    nodes: &Nodes,
    n_bindings: usize,
    effort: Effort,
    files: &mut Files,
) -> anyhow::Result<Row> {
    let mut random = Random::new(n_bindings as u64);
    let counts = Counts::new(n_bindings);
    let cluster = Cluster::generate(counts, &mut random)?;
    let reference = ReferenceRbac::new(cluster.roles.clone(), cluster.bindings.clone());
    let snapshot = Arc::new(cluster.clone().snapshot());
    let members = vec![
        ChainMember::Node(Arc::new(nodes.policy.clone())),
        ChainMember::Rbac(Arc::clone(&snapshot)),
    ];
    let chain = Chain::new(members).map_err(|error| anyhow!("{error}"))?;

    let twentieth = effort.n_requests / 20;
    let mut pool = nodes.pool(7 * twentieth)?;
    for n_groups in GROUP_COUNTS {
        let users = rbac::pool(counts, &cluster, &snapshot, n_groups, 6 * twentieth, &mut random)?;
        pool.add_from(users, 6 * twentieth);
    }
    pool.add_from(superusers(counts, &cluster, &snapshot, twentieth, &mut random)?, twentieth);
    random.shuffle(&mut pool.requests);

    let comparison = Comparison {
        authorizer: "chain",
        size: n_bindings,
        unit: "bindings",
        n_groups: None,
        // The chain joins the reasons of all authorizers without an opinion; other tests compare reasons.
        depth: Depth::Verdict,
    };
    let row = comparison.run(
        &pool,
        effort,
        |attributes| decide(&chain, attributes),
        |attributes| naive(nodes, &reference, attributes),
    );
    files.ask(
        "chain",
        &comparison.name(),
        &[&format!("rbac-{n_bindings}"), node::FOLDER],
        &pool,
    )?;
    Ok(row)
}

/// Requests of superusers that no other user would be allowed.
fn superusers(
    counts: Counts,
    cluster: &Cluster,
    snapshot: &authz_rbac::Snapshot,
    n_requests: usize,
    random: &mut Random,
) -> anyhow::Result<RequestPool> {
    let mut pool = rbac::pool(counts, cluster, snapshot, 1, n_requests, random)?;
    let groups =
        vec![SUPERUSERS.to_owned(), crate::authz::request_pool::ALL_USERS_GROUP.to_owned()];
    pool.users = vec![User { name: "root".to_owned(), groups, ..User::default() }];
    for request in &mut pool.requests {
        request.user_idx = 0;
        request.is_allowed = true;
    }
    Ok(pool)
}

/// Polls the future once, because built-in authorizers never wait.
fn decide(chain: &Chain, attributes: &Attributes<'_>) -> Decision {
    let mut answer =
        std::pin::pin!(chain.authorize(attributes, TraceRecorder::disabled_recorder()));
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome.decision,
        Poll::Pending => Decision::default(),
    }
}

fn naive(nodes: &Nodes, rbac: &ReferenceRbac, attributes: &Attributes<'_>) -> Decision {
    if attributes.user.is_some_and(|user| user.groups.iter().any(|group| group == SUPERUSERS)) {
        return Decision::allow("");
    }
    match nodes.reference.authorize(attributes) {
        Decision { verdict: Verdict::NoOpinion, .. } => rbac.authorize(attributes),
        decided => decided,
    }
}
