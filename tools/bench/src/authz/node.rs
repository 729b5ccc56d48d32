//! The benchmark of the Node authorizer.

mod generate;

use std::sync::Arc;

use ::authz::{NonResourceRule, ResourceRule, TraceRecorder};
use anyhow::Context;
use authz_node::{GraphObject, NodeRules, Snapshot};
use authz_reference::ReferenceNode;

use crate::authz::agreement::Depth;
use crate::authz::comparison::{Comparison, Row};
use crate::authz::measure::{Effort, bytes_of, time_build, time_changes};
use crate::authz::random::Random;
use crate::authz::report::IndexRow;
use crate::authz::request_pool::RequestPool;
use crate::authz::upstream::Files;

use generate::{PODS_OF_A_NODE, RequestGenerator};

/// The folder for the files with the objects.
pub(crate) const FOLDER: &str = "node";

/// A cluster of nodes and pods, with an index and without one.
pub(crate) struct Cluster {
    n_nodes: usize,
    objects: Vec<GraphObject>,
    pub(crate) policy: Snapshot,
    pub(crate) reference: ReferenceNode,
}

impl Cluster {
    /// Generates a cluster with this number of nodes, and writes its objects to the files.
    pub(crate) fn generate(n_nodes: usize, files: &Files) -> anyhow::Result<Self> {
        let mut random = Random::new(n_nodes as u64);
        let documents = generate::objects(n_nodes, &mut random);
        let objects: Option<Vec<GraphObject>> =
            documents.iter().map(manifests::parse_node_authorizer_object).collect();
        let objects = objects.context("an object of a kind that relates nothing")?;
        files.write(FOLDER, "objects", documents)?;
        let rules = rules()?;
        let policy = Snapshot { node_rules: Arc::new(rules.clone()), ..graph(&objects) };
        let reference = ReferenceNode::new(objects.clone(), rules, policy.feature_gates);
        Ok(Self { n_nodes, objects, policy, reference })
    }

    /// Generates requests of the nodes.
    pub(crate) fn pool(&self, n_requests: usize) -> anyhow::Result<RequestPool> {
        let requests = RequestGenerator::new(&self.objects);
        RequestPool::generate_balanced(
            generate::node_users(self.n_nodes),
            n_requests,
            &mut Random::new(1),
            |random, user, is_allowed| requests.propose(random, user, is_allowed),
            |attributes| {
                crate::authz::is_allowed(
                    &self.policy.authorize(attributes, TraceRecorder::disabled_recorder()),
                )
            },
        )
    }

    /// Measures the decisions and the cost of the index.
    pub(crate) fn run(&self, effort: Effort, files: &mut Files) -> anyhow::Result<(Row, IndexRow)> {
        let n_pods = self.n_nodes * PODS_OF_A_NODE;
        let comparison = Comparison {
            authorizer: "Node",
            size: n_pods,
            unit: "pods",
            n_groups: None,
            depth: Depth::VerdictAndReason,
        };
        let pool = self.pool(effort.n_requests)?;
        let row = comparison.run(
            &pool,
            effort,
            |attributes| self.policy.authorize(attributes, TraceRecorder::disabled_recorder()),
            |attributes| self.reference.authorize(attributes),
        );
        files.ask("node", &comparison.name(), &[FOLDER], &pool)?;
        let changes =
            RequestGenerator::new(&self.objects).changes(&mut Random::new(2), effort.n_updates);
        let mut policy = self.policy.clone();
        let index = IndexRow {
            authorizer: "Node",
            size: n_pods,
            unit: "pods",
            build: time_build(&(), |()| graph(&self.objects)),
            bytes_each: bytes_of(|| graph(&self.objects)) / n_pods.max(1) as f64,
            // The graph keeps names, not objects.
            object_bytes_each: None,
            who_can: None,
            update: Some(time_changes(changes, |(old, new)| {
                let mut next = policy.clone();
                next.graph.update_object(&old, &new);
                policy = next;
            })),
        };
        Ok((row, index))
    }
}

fn graph(objects: &[GraphObject]) -> Snapshot {
    let mut policy = Snapshot::default();
    objects.iter().for_each(|object| policy.graph.add_object(object));
    policy
}

/// The rules of the cluster role `system:node`.
fn rules() -> anyhow::Result<NodeRules> {
    let policy = manifests::rbac::bootstrap_policy()?;
    let role = policy.roles.into_iter().find(|role| role.name() == "system:node");
    let mut rules = NodeRules::default();
    for rule in role.context("no role `system:node`")?.rules {
        if rule.non_resource_urls.is_empty() {
            rules.resource_rules.push(ResourceRule {
                verbs: rule.verbs,
                api_groups: rule.api_groups,
                resources: rule.resources,
                resource_names: rule.resource_names,
            });
        } else {
            let (verbs, non_resource_urls) = (rule.verbs, rule.non_resource_urls);
            rules.non_resource_rules.push(NonResourceRule { verbs, non_resource_urls });
        }
    }
    Ok(rules)
}
