//! The whole chain: superusers, then Node, then RBAC.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::authz::{Attributes, Decision, Recorder, User, Verdict};
use anyhow::anyhow;
use authz_chain::{Chain, Member};
use authz_reference::ReferenceRbac;

use crate::authz::agreement::Depth;
use crate::authz::contest::{Contest, Row};
use crate::authz::measure::Effort;
use crate::authz::node::{self, Cluster as Nodes};
use crate::authz::question::Pool;
use crate::authz::random::Random;
use crate::authz::rbac::{self, Cluster, Counts, GROUP_COUNTS};
use crate::authz::upstream::Files;

const SUPERUSERS: &str = "system:masters";

/// How the chain decides: of twenty questions one is a superuser's, seven are nodes', the rest users'
/// in one and in fifty groups.
pub(crate) fn run(
    nodes: &Nodes,
    n_bindings: usize,
    effort: Effort,
    files: &mut Files,
) -> anyhow::Result<Row> {
    let mut random = Random::new(n_bindings as u64);
    let counts = Counts::new(n_bindings);
    let cluster = Cluster::generate(counts, &mut random)?;
    let oracle = ReferenceRbac::new(cluster.roles.clone(), cluster.bindings.clone());
    let snapshot = Arc::new(cluster.clone().snapshot());
    let members =
        vec![Member::Node(Arc::new(nodes.policy.clone())), Member::Rbac(Arc::clone(&snapshot))];
    let chain = Chain::new(members).map_err(|error| anyhow!("{error}"))?;

    let twentieth = effort.n_questions / 20;
    let mut pool = nodes.pool(7 * twentieth)?;
    for n_groups in GROUP_COUNTS {
        let users = rbac::pool(counts, &cluster, &snapshot, n_groups, 6 * twentieth, &mut random)?;
        pool.absorb(users, 6 * twentieth);
    }
    pool.absorb(superusers(counts, &cluster, &snapshot, twentieth, &mut random)?, twentieth);
    random.shuffle(&mut pool.questions);

    let contest = Contest {
        authorizer: "chain",
        size: n_bindings,
        unit: "bindings",
        n_groups: None,
        // The chain joins the reasons of all who abstain, which is tested elsewhere.
        depth: Depth::Verdict,
    };
    let row = contest.run(
        &pool,
        effort,
        |attributes| decide(&chain, attributes),
        |attributes| naive(nodes, &oracle, attributes),
    );
    files.ask("chain", &contest.name(), &[&format!("rbac-{n_bindings}"), node::FOLDER], &pool)?;
    Ok(row)
}

/// Questions that nobody else would be allowed.
fn superusers(
    counts: Counts,
    cluster: &Cluster,
    snapshot: &authz_rbac::Snapshot,
    n_questions: usize,
    random: &mut Random,
) -> anyhow::Result<Pool> {
    let mut pool = rbac::pool(counts, cluster, snapshot, 1, n_questions, random)?;
    let groups = vec![SUPERUSERS.to_owned(), crate::authz::question::EVERYBODY.to_owned()];
    pool.askers = vec![User { name: "root".to_owned(), groups, ..User::default() }];
    for question in &mut pool.questions {
        question.asker = 0;
        question.is_allowed = true;
    }
    Ok(pool)
}

/// Built-in authorizers answer at once.
fn decide(chain: &Chain, attributes: &Attributes<'_>) -> Decision {
    let mut answer = std::pin::pin!(chain.authorize(attributes, Recorder::disabled()));
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome.decision,
        Poll::Pending => Decision::default(),
    }
}

fn naive(nodes: &Nodes, rbac: &ReferenceRbac, attributes: &Attributes<'_>) -> Decision {
    if attributes.user.is_some_and(|user| user.groups.iter().any(|group| group == SUPERUSERS)) {
        return Decision::allow("");
    }
    match nodes.oracle.authorize(attributes) {
        Decision { verdict: Verdict::NoOpinion, .. } => rbac.authorize(attributes),
        decided => decided,
    }
}
