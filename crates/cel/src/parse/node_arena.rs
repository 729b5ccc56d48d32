//! The arena of AST nodes during parsing, with its limits.

use crate::ast::{Ast, AstNode, NodeId, NodeMap, SourceSpan};
use crate::compile_budget::{BudgetExhausted, CompileBudget};

use super::{DEPTH_MAX, NODES_MAX};

/// The AST nodes that are built so far.
///
/// INVARIANT: children come before their parents.
#[derive(Debug)]
pub(super) struct NodeArena<'b> {
    compile_budget: &'b mut CompileBudget,
    nodes: Vec<AstNode>,
    /// For each node, the number of nodes on the longest path from it to a leaf, itself included.
    node_heights: Vec<u32>,
}

impl<'b> NodeArena<'b> {
    pub(super) fn new(compile_budget: &'b mut CompileBudget) -> Self {
        Self { compile_budget, nodes: Vec::new(), node_heights: Vec::new() }
    }

    /// Adds a node. Its children are already in the arena.
    pub(super) fn push(&mut self, node: AstNode) -> Result<NodeId, NodeLimitError> {
        if self.nodes.len() >= NODES_MAX {
            return Err(NodeLimitError::Nodes);
        }
        self.compile_budget.spend_for_ast_node().map_err(NodeLimitError::Budget)?;
        let mut height = 1;
        node.kind.for_each_child(|child| {
            let below = self.node_heights.get(child.index()).copied().unwrap_or(0);
            height = height.max(below + 1);
        });
        if height > DEPTH_MAX {
            return Err(NodeLimitError::Depth);
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.node_heights.push(height);
        Ok(id)
    }

    /// Sets the span of a node that has no span yet. Some grammar rules return the node of another
    /// rule.
    pub(super) fn set_node_span(&mut self, id: NodeId, span: SourceSpan) {
        if let Some(node) = self.nodes.get_mut(id.index()) {
            node.source_span.get_or_insert(span);
        }
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&AstNode> {
        self.nodes.get(id.index())
    }

    pub(super) fn into_ast(self, root: NodeId) -> Ast {
        Ast { nodes: NodeMap::new(self.nodes), root_node: root }
    }
}

/// The limit that an expression exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NodeLimitError {
    /// The AST has too many nodes.
    #[error("expression node limit exceeded: {NODES_MAX}")]
    Nodes,
    /// A path from the root of the AST to a leaf is too long.
    #[error("expression depth limit exceeded: {DEPTH_MAX}")]
    Depth,
    /// The group of expressions has used up its compile budget.
    #[error("{0}")]
    Budget(BudgetExhausted),
}
