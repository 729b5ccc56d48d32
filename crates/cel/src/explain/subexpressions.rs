//! Finds the subexpressions that explain the result of an expression.

use super::ShortCircuitValue;
use crate::ast::{ExprKind, Literal, NodeId};
use crate::type_check::{CheckedAst, ResolvedReference};

/// The subexpressions of a node in source order. Each has a source span and refers to no variable
/// of an enclosing macro.
pub(super) enum Subexpressions {
    /// All of them are evaluated.
    All(Vec<NodeId>),
    /// `&&` and `||`: operands after the first one with this value are not evaluated.
    Until { stopping_value: ShortCircuitValue, operands: Vec<NodeId> },
    /// `condition ? then : otherwise`
    Conditional { condition: NodeId, then: NodeId, otherwise: NodeId },
    /// The calls `optional.or(otherwise)` and `optional.orValue(otherwise)`.
    OrElse { optional: NodeId, otherwise: NodeId },
}

/// Finds the subexpressions of a node.
pub(super) fn find_subexpressions(checked: &CheckedAst, id: NodeId) -> Subexpressions {
    let mut parts = Vec::new();
    collect_subexpressions(checked, id, &mut parts);
    let ExprKind::Call { target, function, args } = checked.ast.kind(id) else {
        return Subexpressions::All(parts);
    };
    let in_source = |id: &NodeId| checked.ast.source_span(*id).is_some();
    match (&**function, target, &args[..]) {
        ("_&&_", None, _) => {
            Subexpressions::Until { stopping_value: ShortCircuitValue::False, operands: parts }
        }
        ("_||_", None, _) => {
            Subexpressions::Until { stopping_value: ShortCircuitValue::True, operands: parts }
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

/// The value of a literal node; `None` for all other nodes.
pub(super) fn literal_short_circuit_value(
    checked: &CheckedAst,
    id: NodeId,
) -> Option<ShortCircuitValue> {
    match checked.ast.kind(id) {
        ExprKind::Literal(Literal::Bool(true)) => Some(ShortCircuitValue::True),
        ExprKind::Literal(Literal::Bool(false)) => Some(ShortCircuitValue::False),
        ExprKind::Literal(_) => Some(ShortCircuitValue::Other),
        _ => None,
    }
}

/// Adds the node if it has a source span, otherwise its subexpressions.
fn push_nodes_with_source(checked: &CheckedAst, id: NodeId, parts: &mut Vec<NodeId>) {
    match checked.ast.source_span(id) {
        Some(_) => parts.push(id),
        None => collect_subexpressions(checked, id, parts),
    }
}

fn collect_subexpressions(checked: &CheckedAst, id: NodeId, parts: &mut Vec<NodeId>) {
    match checked.ast.kind(id) {
        // The qualified name of a function parses as a selection.
        ExprKind::Call { target: Some(_), args, .. } if is_namespaced_call(checked, id) => {
            args.iter().for_each(|&arg| push_nodes_with_source(checked, arg, parts));
        }
        // The loop body of a macro has no single value.
        ExprKind::Comprehension(fold) => {
            push_nodes_with_source(checked, fold.iter_range, parts);
            push_nodes_with_source(checked, fold.accu_init, parts);
        }
        _ => match split_selection(checked, id) {
            Some(SelectionOrIndexOperands { operand: from, index }) => {
                collect_path_operands(checked, from, parts);
                if let Some(index) = index {
                    push_nodes_with_source(checked, index, parts);
                }
            }
            None => checked
                .ast
                .kind(id)
                .for_each_child(|child| push_nodes_with_source(checked, child, parts)),
        },
    }
}

/// Adds the operands of a path, but not its prefixes: `a.b` explains nothing about `a.b.c`.
fn collect_path_operands(checked: &CheckedAst, id: NodeId, parts: &mut Vec<NodeId>) {
    match (checked.ast.kind(id), split_selection(checked, id)) {
        (ExprKind::Ident(_), _) => {}
        (_, Some(_)) => collect_subexpressions(checked, id, parts),
        (_, None) => push_nodes_with_source(checked, id, parts),
    }
}

/// The operand of a selection `operand.field`, or the operand and the index of `operand[index]`.
struct SelectionOrIndexOperands {
    operand: NodeId,
    index: Option<NodeId>,
}

fn split_selection(checked: &CheckedAst, id: NodeId) -> Option<SelectionOrIndexOperands> {
    match checked.ast.kind(id) {
        ExprKind::Select { operand, .. } => {
            Some(SelectionOrIndexOperands { operand: *operand, index: None })
        }
        ExprKind::Call { target: None, function, args } => match (&**function, &args[..]) {
            ("_?._", [from, _]) => Some(SelectionOrIndexOperands { operand: *from, index: None }),
            ("_[_]" | "_[?_]", [from, index]) => {
                Some(SelectionOrIndexOperands { operand: *from, index: Some(*index) })
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
