//! Checks of literals beyond their types: durations, timestamps, regex patterns, format strings and
//! lists of mixed types.

use super::{CheckIssues, CheckedAst};
use crate::ast::{ExprKind, Literal, MapLiteralEntry, NodeId};
use crate::compile_budget::CompileBudget;
use crate::library::regex::PatternError;
use crate::library::{string_format, timestamps_and_durations};
use crate::static_type::Type;
use crate::value::Timestamp;

/// The function whose argument may be a list of mixed types.
const MIXED_LISTS_ALLOWED_IN: &str = "format";

pub(super) fn validate_literals(
    checked: &CheckedAst,
    compile_budget: &mut CompileBudget,
) -> CheckIssues {
    let mut validator = LiteralValidator {
        checked_ast: checked,
        issues: Vec::new(),
        compile_budget,
        has_reported_pattern_budget_exhaustion: false,
    };
    validator.validate_literals_in_node(checked.ast.root_node, false);
    validator.issues
}

struct LiteralValidator<'c> {
    checked_ast: &'c CheckedAst,
    issues: CheckIssues,
    compile_budget: &'c mut CompileBudget,
    /// Whether an exhausted pattern budget was reported. It is reported once, since it concerns the
    /// whole group of expressions.
    has_reported_pattern_budget_exhaustion: bool,
}

impl LiteralValidator<'_> {
    fn report_issue(&mut self, id: NodeId, message: String) {
        self.issues.push((self.checked_ast.ast.source_offset(id), message));
    }

    /// Walks the tree; `mixed` says whether lists of mixed types are allowed here.
    fn validate_literals_in_node(&mut self, id: NodeId, mixed: bool) {
        let checked = self.checked_ast;
        match checked.ast.kind(id) {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select { operand, .. } => self.validate_literals_in_node(*operand, mixed),
            ExprKind::Call { target, function, args } => {
                self.validate_literals_of_call(id, *target, function, args);
                let mixed = mixed || **function == *MIXED_LISTS_ALLOWED_IN;
                for &child in target.iter().chain(args) {
                    self.validate_literals_in_node(child, mixed);
                }
            }
            ExprKind::List { elements, optional_indices } => {
                if !mixed {
                    self.validate_list_literal(elements, optional_indices);
                }
                for &element in elements {
                    self.validate_literals_in_node(element, mixed);
                }
            }
            ExprKind::Map { entries } => {
                if !mixed {
                    self.validate_map_literal(entries);
                }
                for entry in entries {
                    self.validate_literals_in_node(entry.key, mixed);
                    self.validate_literals_in_node(entry.value, mixed);
                }
            }
            ExprKind::Struct { fields, .. } => {
                for field in fields {
                    self.validate_literals_in_node(field.value, mixed);
                }
            }
            ExprKind::Comprehension(fold) => {
                for child in [
                    fold.iter_range,
                    fold.accu_init,
                    fold.loop_condition,
                    fold.loop_step,
                    fold.result_expr,
                ] {
                    self.validate_literals_in_node(child, mixed);
                }
            }
        }
    }

    fn validate_literals_of_call(
        &mut self,
        id: NodeId,
        target: Option<NodeId>,
        function: &str,
        args: &[NodeId],
    ) {
        let Some(&first) = args.first() else { return };
        if function == MIXED_LISTS_ALLOWED_IN {
            return self.validate_format_call(id, target, first, args.len());
        }
        let ExprKind::Literal(literal) = self.checked_ast.ast.kind(first) else { return };
        let valid = match (function, literal) {
            ("duration", Literal::String(text)) => {
                timestamps_and_durations::parse_duration(text).is_ok()
            }
            ("timestamp", Literal::String(text)) => {
                timestamps_and_durations::parse_timestamp(text).is_ok()
            }
            ("timestamp", Literal::Int(seconds)) => {
                Timestamp::from_unix_seconds(*seconds).is_some()
            }
            ("duration" | "timestamp", Literal::Null) => false,
            ("matches", Literal::String(text)) => match self.compile_budget.compile_pattern(text) {
                Ok(_) => true,
                Err(PatternError::Invalid(_)) => false,
                Err(error @ PatternError::Exhausted) => {
                    if !std::mem::replace(&mut self.has_reported_pattern_budget_exhaustion, true) {
                        self.report_issue(first, error.to_string());
                    }
                    true
                }
            },
            _ => true,
        };
        if !valid {
            self.report_issue(first, format!("invalid {function} argument"));
        }
    }

    /// Checks the clauses of `'literal'.format([elements])` against the types of the elements.
    fn validate_format_call(
        &mut self,
        id: NodeId,
        target: Option<NodeId>,
        list: NodeId,
        n_args: usize,
    ) {
        let checked = self.checked_ast;
        let (Some(target), 1) = (target, n_args) else { return };
        let ExprKind::Literal(Literal::String(format)) = checked.ast.kind(target) else { return };
        let ExprKind::List { elements, .. } = checked.ast.kind(list) else { return };
        let look = string_format::LiteralNodeAccess {
            type_of_node: &|node| checked.type_of_node(node),
            nested_literal_nodes: &|node| match checked.ast.kind(node) {
                ExprKind::List { elements, .. } => elements.clone(),
                ExprKind::Map { entries } => {
                    entries.iter().flat_map(|entry| [entry.key, entry.value]).collect()
                }
                _ => Vec::new(),
            },
        };
        if let Some(fault) = string_format::validate_format_literal(format, elements, look) {
            self.report_issue(fault.faulty_node.unwrap_or(id), fault.message);
        }
    }

    fn validate_list_literal(&mut self, elements: &[NodeId], optional_indices: &[usize]) {
        let mut first: Option<Type> = None;
        for (index, &element) in elements.iter().enumerate() {
            let ty = self.element_type(element, optional_indices.contains(&index));
            match &first {
                None => first = Some(ty),
                Some(expected) if *expected == ty => {}
                Some(expected) => {
                    let message = format!("expected type '{expected}' but found '{ty}'");
                    return self.report_issue(element, message);
                }
            }
        }
    }

    fn validate_map_literal(&mut self, entries: &[MapLiteralEntry]) {
        let mut first: Option<(Type, Type)> = None;
        for entry in entries {
            let key = self.checked_ast.type_of_node(entry.key).clone();
            let value = self.element_type(entry.value, entry.is_optional_entry);
            let Some((keys, values)) = &first else {
                first = Some((key, value));
                continue;
            };
            let wrong_key =
                (*keys != key).then(|| format!("expected type '{keys}' but found '{key}'"));
            let wrong_value =
                (*values != value).then(|| format!("expected type '{values}' but found '{value}'"));
            if let Some(message) = wrong_key {
                self.report_issue(entry.key, message);
            }
            if let Some(message) = wrong_value {
                self.report_issue(entry.value, message);
            }
        }
    }

    fn element_type(&self, element: NodeId, optional: bool) -> Type {
        match (self.checked_ast.type_of_node(element), optional) {
            (Type::Optional(inner), true) => (**inner).clone(),
            (ty, _) => ty.clone(),
        }
    }
}
