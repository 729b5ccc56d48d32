//! Which parts of an expression say something about its outcome.

use super::ShortCircuitValue;
use crate::ast::{ExprKind, Literal, NodeId};
use crate::check::{CheckedAst, ResolvedReference};

/// The parts of a node, in the order of the source. Each of them stands in the source and names no
/// variable of a macro.
pub(super) enum Subexpressions {
    /// All of them are looked at.
    All(Vec<NodeId>),
    /// `&&` and `||`: those after the first with this verdict are not looked at.
    Until { verdict: ShortCircuitValue, operands: Vec<NodeId> },
    /// `condition ? then : otherwise`
    Conditional { condition: NodeId, then: NodeId, otherwise: NodeId },
    /// `optional.or(otherwise)` and `optional.orValue(otherwise)`
    OrElse { optional: NodeId, otherwise: NodeId },
}

/// The parts of a node.
pub(super) fn find_subexpressions(checked: &CheckedAst, id: NodeId) -> Subexpressions {
    let mut parts = Vec::new();
    collect_parts(checked, id, &mut parts);
    let ExprKind::Call { target, function, args } = checked.ast.kind(id) else {
        return Subexpressions::All(parts);
    };
    let in_source = |id: &NodeId| checked.ast.span(*id).is_some();
    match (&**function, target, &args[..]) {
        ("_&&_", None, _) => {
            Subexpressions::Until { verdict: ShortCircuitValue::False, operands: parts }
        }
        ("_||_", None, _) => {
            Subexpressions::Until { verdict: ShortCircuitValue::True, operands: parts }
        }
        // Some macros become conditionals that the source does not have.
        ("_?_:_", None, [condition, then, otherwise]) if args.iter().all(in_source) => {
            Subexpressions::Conditional {
                condition: *condition,
                then: *then,
                otherwise: *otherwise,
            }
        }
        ("or" | "orValue", Some(optional), [otherwise])
            if in_source(optional) && in_source(otherwise) =>
        {
            Subexpressions::OrElse { optional: *optional, otherwise: *otherwise }
        }
        _ => Subexpressions::All(parts),
    }
}

/// What a node decides that is written as a constant; `None` for all others.
pub(super) fn literal_value(checked: &CheckedAst, id: NodeId) -> Option<ShortCircuitValue> {
    match checked.ast.kind(id) {
        ExprKind::Literal(Literal::Bool(true)) => Some(ShortCircuitValue::True),
        ExprKind::Literal(Literal::Bool(false)) => Some(ShortCircuitValue::False),
        ExprKind::Literal(_) => Some(ShortCircuitValue::Other),
        _ => None,
    }
}

/// Adds the node if it stands in the source, or else the parts of it.
fn add_source_node(checked: &CheckedAst, id: NodeId, parts: &mut Vec<NodeId>) {
    match checked.ast.span(id) {
        Some(_) => parts.push(id),
        None => collect_parts(checked, id, parts),
    }
}

fn collect_parts(checked: &CheckedAst, id: NodeId, parts: &mut Vec<NodeId>) {
    match checked.ast.kind(id) {
        // The name of a function may look like a selection.
        ExprKind::Call { target: Some(_), args, .. } if is_namespaced_call(checked, id) => {
            args.iter().for_each(|&arg| add_source_node(checked, arg, parts));
        }
        // What a macro does for each element has no value of its own.
        ExprKind::Comprehension(fold) => {
            add_source_node(checked, fold.iter_range, parts);
            add_source_node(checked, fold.accu_init, parts);
        }
        _ => match split_path_step(checked, id) {
            Some(PathStep { operand: from, index }) => {
                collect_path_parts(checked, from, parts);
                if let Some(index) = index {
                    add_source_node(checked, index, parts);
                }
            }
            None => {
                checked.ast.kind(id).for_each_child(|child| add_source_node(checked, child, parts))
            }
        },
    }
}

/// Adds what a path goes through but its own beginnings: `a.b` says nothing about `a.b.c`.
fn collect_path_parts(checked: &CheckedAst, id: NodeId, parts: &mut Vec<NodeId>) {
    match (checked.ast.kind(id), split_path_step(checked, id)) {
        (ExprKind::Ident(_), _) => {}
        (_, Some(_)) => collect_parts(checked, id, parts),
        (_, None) => add_source_node(checked, id, parts),
    }
}

/// One step of a path: where it starts, and the index if that may be computed.
struct PathStep {
    operand: NodeId,
    index: Option<NodeId>,
}

fn split_path_step(checked: &CheckedAst, id: NodeId) -> Option<PathStep> {
    match checked.ast.kind(id) {
        ExprKind::Select { operand, .. } => Some(PathStep { operand: *operand, index: None }),
        ExprKind::Call { target: None, function, args } => match (&**function, &args[..]) {
            ("_?._", [from, _]) => Some(PathStep { operand: *from, index: None }),
            ("_[_]" | "_[?_]", [from, index]) => {
                Some(PathStep { operand: *from, index: Some(*index) })
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_namespaced_call(checked: &CheckedAst, id: NodeId) -> bool {
    matches!(
        checked.reference_of_node(id),
        Some(ResolvedReference::Function { namespaced: true, .. })
    )
}
