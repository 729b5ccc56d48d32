//! Everything that decides the requests of nodes.

use std::sync::Arc;

use crate::graph::Graph;
use crate::policy::{NodeFeatureGates, NodeRules};

/// Everything that decides the requests of nodes. A clone is cheap and does not see later changes.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The objects that are related to each node.
    pub graph: Graph,
    /// The rules that hold for every node, for requests that do not depend on the graph.
    pub node_rules: Arc<NodeRules>,
    /// The feature gates that are enabled.
    pub feature_gates: NodeFeatureGates,
}
