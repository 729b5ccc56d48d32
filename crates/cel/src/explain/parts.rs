//! Which parts of an expression say something about its outcome.

use super::Verdict;
use crate::ast::{Kind, Literal, NodeId};
use crate::check::{Checked, Reference};

/// The parts of a node, in the order of the source. Each of them stands in the source and names no
/// variable of a macro.
pub(super) enum Parts {
    /// All of them are looked at.
    All(Vec<NodeId>),
    /// `&&` and `||`: those after the first with this verdict are not looked at.
    Until { verdict: Verdict, operands: Vec<NodeId> },
    /// `condition ? then : otherwise`
    Conditional { condition: NodeId, then: NodeId, otherwise: NodeId },
    /// `optional.or(otherwise)` and `optional.orValue(otherwise)`
    OrElse { optional: NodeId, otherwise: NodeId },
}

/// The parts of a node.
pub(super) fn of(checked: &Checked, id: NodeId) -> Parts {
    let mut parts = Vec::new();
    collect(checked, id, &mut parts);
    let Kind::Call { target, function, args } = checked.ast.kind(id) else {
        return Parts::All(parts);
    };
    let in_source = |id: &NodeId| checked.ast.span(*id).is_some();
    match (&**function, target, &args[..]) {
        ("_&&_", None, _) => Parts::Until { verdict: Verdict::False, operands: parts },
        ("_||_", None, _) => Parts::Until { verdict: Verdict::True, operands: parts },
        // Some macros become conditionals that the source does not have.
        ("_?_:_", None, [condition, then, otherwise]) if args.iter().all(in_source) => {
            Parts::Conditional { condition: *condition, then: *then, otherwise: *otherwise }
        }
        ("or" | "orValue", Some(optional), [otherwise])
            if in_source(optional) && in_source(otherwise) =>
        {
            Parts::OrElse { optional: *optional, otherwise: *otherwise }
        }
        _ => Parts::All(parts),
    }
}

/// What a node decides that is written as a constant; `None` for all others.
pub(super) fn literal(checked: &Checked, id: NodeId) -> Option<Verdict> {
    match checked.ast.kind(id) {
        Kind::Literal(Literal::Bool(true)) => Some(Verdict::True),
        Kind::Literal(Literal::Bool(false)) => Some(Verdict::False),
        Kind::Literal(_) => Some(Verdict::Other),
        _ => None,
    }
}

/// Adds the node if it stands in the source, or else the parts of it.
fn add(checked: &Checked, id: NodeId, parts: &mut Vec<NodeId>) {
    match checked.ast.span(id) {
        Some(_) => parts.push(id),
        None => collect(checked, id, parts),
    }
}

fn collect(checked: &Checked, id: NodeId, parts: &mut Vec<NodeId>) {
    match checked.ast.kind(id) {
        // The name of a function may look like a selection.
        Kind::Call { target: Some(_), args, .. } if is_namespaced(checked, id) => {
            args.iter().for_each(|&arg| add(checked, arg, parts));
        }
        // What a macro does for each element has no value of its own.
        Kind::Comprehension(fold) => {
            add(checked, fold.iter_range, parts);
            add(checked, fold.accu_init, parts);
        }
        _ => match step(checked, id) {
            Some(Step { from, index }) => {
                path(checked, from, parts);
                if let Some(index) = index {
                    add(checked, index, parts);
                }
            }
            None => checked.ast.kind(id).for_each_child(|child| add(checked, child, parts)),
        },
    }
}

/// Adds what a path goes through but its own beginnings: `a.b` says nothing about `a.b.c`.
fn path(checked: &Checked, id: NodeId, parts: &mut Vec<NodeId>) {
    match (checked.ast.kind(id), step(checked, id)) {
        (Kind::Ident(_), _) => {}
        (_, Some(_)) => collect(checked, id, parts),
        (_, None) => add(checked, id, parts),
    }
}

/// One step of a path: where it starts, and the index if that may be computed.
struct Step {
    from: NodeId,
    index: Option<NodeId>,
}

fn step(checked: &Checked, id: NodeId) -> Option<Step> {
    match checked.ast.kind(id) {
        Kind::Select { operand, .. } => Some(Step { from: *operand, index: None }),
        Kind::Call { target: None, function, args } => match (&**function, &args[..]) {
            ("_?._", [from, _]) => Some(Step { from: *from, index: None }),
            ("_[_]" | "_[?_]", [from, index]) => Some(Step { from: *from, index: Some(*index) }),
            _ => None,
        },
        _ => None,
    }
}

fn is_namespaced(checked: &Checked, id: NodeId) -> bool {
    matches!(checked.reference(id), Some(Reference::Function { namespaced: true, .. }))
}
