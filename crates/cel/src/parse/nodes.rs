//! The nodes of a tree in the making, and the limits on them.

use crate::ast::{Ast, Kind, Node, NodeId};

use super::{DEPTH_MAX, NODES_MAX};

/// The nodes so far.
///
/// INVARIANT: children come before their parents.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// For each node, how many nodes are on the longest way down from it, itself included.
    heights: Vec<u32>,
}

impl Nodes {
    /// Adds a node whose children are there already, or says which limit it passes.
    pub(super) fn push(&mut self, node: Node) -> Result<NodeId, String> {
        if self.nodes.len() >= NODES_MAX {
            return Err(format!("expression node limit exceeded: {NODES_MAX}"));
        }
        let mut height = 1;
        for_each_child(&node.kind, |child| {
            let below = self.heights.get(child.index()).copied().unwrap_or(0);
            height = height.max(below + 1);
        });
        if height > DEPTH_MAX {
            return Err(depth_exceeded());
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.heights.push(height);
        Ok(id)
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    pub(super) fn into_ast(self, root: NodeId) -> Ast {
        Ast { nodes: self.nodes, root }
    }
}

/// What is said of a tree that is too deep.
pub(super) fn depth_exceeded() -> String {
    format!("expression depth limit exceeded: {DEPTH_MAX}")
}

fn for_each_child(kind: &Kind, mut visit: impl FnMut(NodeId)) {
    match kind {
        Kind::Literal(_) | Kind::Ident(_) => {}
        Kind::Select { operand, .. } => visit(*operand),
        Kind::Call { target, args, .. } => target.iter().chain(args).copied().for_each(visit),
        Kind::List { elements, .. } => elements.iter().copied().for_each(visit),
        Kind::Map { entries } => entries.iter().for_each(|entry| {
            visit(entry.key);
            visit(entry.value);
        }),
        Kind::Struct { fields, .. } => fields.iter().for_each(|field| visit(field.value)),
        Kind::Comprehension(fold) => {
            let parts =
                [fold.iter_range, fold.accu_init, fold.loop_condition, fold.loop_step, fold.result];
            parts.into_iter().for_each(visit);
        }
    }
}
