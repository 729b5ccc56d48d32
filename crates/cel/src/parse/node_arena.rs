//! The arena of AST nodes during parsing, with its limits.

use crate::ast::{Ast, AstNode, NodeId, Span};
use crate::compile_budget::CompileBudget;

use super::{DEPTH_MAX, NODES_MAX};

/// The nodes so far.
///
/// INVARIANT: children come before their parents.
#[derive(Debug)]
pub(super) struct NodeArena<'b> {
    compile_budget: &'b mut CompileBudget,
    nodes: Vec<AstNode>,
    /// For each node, how many nodes are on the longest way down from it, itself included.
    node_heights: Vec<u32>,
}

impl<'b> NodeArena<'b> {
    pub(super) fn new(compile_budget: &'b mut CompileBudget) -> Self {
        Self { compile_budget, nodes: Vec::new(), node_heights: Vec::new() }
    }

    /// Adds a node whose children are there already, or says which limit it passes.
    pub(super) fn push(&mut self, node: AstNode) -> Result<NodeId, String> {
        if self.nodes.len() >= NODES_MAX {
            return Err(format!("expression node limit exceeded: {NODES_MAX}"));
        }
        self.compile_budget.spend_for_ast_node().map_err(|exhausted| exhausted.to_string())?;
        let mut height = 1;
        node.kind.for_each_child(|child| {
            let below = self.node_heights.get(child.index()).copied().unwrap_or(0);
            height = height.max(below + 1);
        });
        if height > DEPTH_MAX {
            return Err(depth_exceeded_message());
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.node_heights.push(height);
        Ok(id)
    }

    /// Sets the span of a node that has none yet: some rules return the node of another rule.
    pub(super) fn set_span(&mut self, id: NodeId, span: Span) {
        if let Some(node) = self.nodes.get_mut(id.index()) {
            node.span.get_or_insert(span);
        }
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&AstNode> {
        self.nodes.get(id.index())
    }

    pub(super) fn into_ast(self, root: NodeId) -> Ast {
        Ast { nodes: self.nodes, root }
    }
}

/// The message for a tree that is too deep.
pub(super) fn depth_exceeded_message() -> String {
    format!("expression depth limit exceeded: {DEPTH_MAX}")
}
