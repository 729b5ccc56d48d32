//! Parses binary operators and prefix operators.

use super::token_sets::{AFTER_OPERAND, EXPRESSION, PRIMARY};
use super::{Parser, no_viable_alternative_fault};
use crate::parse::concrete_syntax_tree::{SyntaxNode, SyntaxNodeId};
use crate::parse::error_recovery::{GrammarPosition, ParseFault};
use crate::parse::parse_issues::ParseAborted;
use crate::parse::token::{Token, TokenKind as T, TokenSet};

impl Parser<'_> {
    /// Parses the rules `conditionalOr`, `conditionalAnd`, `relation` and `calc`: operands and
    /// binary operators.
    ///
    /// Each level of precedence has at most one pending operator, which waits for its right
    /// operand. After an operand, the pending operators that bind at least as tightly as the next
    /// operator are completed. Then the next operator becomes pending.
    pub(super) fn parse_binary_operators(
        &mut self,
        follow_set: TokenSet,
    ) -> Result<SyntaxNodeId, ParseAborted> {
        self.tokens.enter_grammar_rule(follow_set);
        self.tokens.enter_grammar_rule(AFTER_OPERAND);
        let mut factor: Option<PendingOperator> = None;
        let mut term: Option<PendingOperator> = None;
        let mut relation: Option<PendingOperator> = None;
        let mut and = LogicalOperatorRun::new("_&&_");
        let mut or = LogicalOperatorRun::new("_||_");
        let result = loop {
            let start = self.tokens.current_token()?.start;
            let n_relations = 1 + u32::from(relation.is_some());
            let n_arithmetics = 1 + u32::from(term.is_some()) + u32::from(factor.is_some());
            let operand = self.parse_operand(n_relations, n_arithmetics)?;

            let next = self.tokens.current_token()?;
            let operand = self.complete_pending_operator(
                factor.take(),
                ParsedOperand { start, syntax_node_id: operand },
            );
            if let Some(function) = factor_operator_function(next.kind) {
                factor = Some(self.take_operator_token(function, operand)?);
                continue;
            }
            let operand = self.complete_pending_operator(term.take(), operand);
            if let Some(function) = term_operator_function(next.kind) {
                term = Some(self.take_operator_token(function, operand)?);
                continue;
            }
            let operand = self.complete_pending_operator(relation.take(), operand);
            if let Some(function) = relation_operator_function(next.kind) {
                relation = Some(self.take_operator_token(function, operand)?);
                continue;
            }
            if next.kind == T::LogicalAnd {
                and.push(operand, self.tokens.take_token()?.source_offset);
                continue;
            }
            let operand = self.finish_logical_run(&mut and, operand);
            if next.kind == T::LogicalOr {
                or.push(operand, self.tokens.take_token()?.source_offset);
                continue;
            }
            break self.finish_logical_run(&mut or, operand).syntax_node_id;
        };
        self.tokens.leave_grammar_rule();
        self.tokens.leave_grammar_rule();
        Ok(result)
    }

    /// Parses one operand. Counts the calls of the rules `relation` and `calc` that lead to it.
    fn parse_operand(
        &mut self,
        n_relations: u32,
        n_arithmetics: u32,
    ) -> Result<SyntaxNodeId, ParseAborted> {
        self.tokens.current_token()?;
        self.grammar_rule_depths.relation_depth += n_relations;
        self.grammar_rule_depths.arithmetic_depth += n_arithmetics;
        self.check_grammar_rule_depth()?;
        let operand = self.parse_unary()?;
        self.grammar_rule_depths.relation_depth -= n_relations;
        self.grammar_rule_depths.arithmetic_depth -= n_arithmetics;
        Ok(operand)
    }

    fn take_operator_token(
        &mut self,
        operator_function: &'static str,
        left_operand: ParsedOperand,
    ) -> Result<PendingOperator, ParseAborted> {
        let operator_offset = self.tokens.take_token()?.source_offset;
        Ok(PendingOperator { operator_function, operator_offset, left_operand })
    }

    fn complete_pending_operator(
        &mut self,
        waiting: Option<PendingOperator>,
        right: ParsedOperand,
    ) -> ParsedOperand {
        let Some(PendingOperator {
            operator_function: function,
            operator_offset: operator,
            left_operand: ParsedOperand { start, syntax_node_id: left },
        }) = waiting
        else {
            return right;
        };
        let right = right.syntax_node_id;
        let node = self.push(start, SyntaxNode::Binary { function, operator, left, right });
        ParsedOperand { start, syntax_node_id: node }
    }

    /// Adds a node for a run with its last operand, and begins a new run.
    fn finish_logical_run(
        &mut self,
        run: &mut LogicalOperatorRun,
        last: ParsedOperand,
    ) -> ParsedOperand {
        let Some(start) = run.start.take() else {
            return last;
        };
        run.operands.push(last.syntax_node_id);
        let operands = std::mem::take(&mut run.operands);
        let operators = std::mem::take(&mut run.operator_offsets);
        let function = run.run_operator_function;
        let node = self.push(start, SyntaxNode::Logical { function, operands, operators });
        ParsedOperand { start, syntax_node_id: node }
    }

    /// Parses the rule `member | '!'+ member | '-'+ member`.
    fn parse_unary(&mut self) -> Result<SyntaxNodeId, ParseAborted> {
        let Token { source_offset: offset, start, .. } = self.tokens.current_token()?;
        let mut result = None;
        let outcome = self.parse_unary_alternatives(&mut result);
        self.tokens.finish_grammar_rule(outcome)?;
        Ok(result.unwrap_or_else(|| self.push(start, SyntaxNode::MissingOperand(offset))))
    }

    fn parse_unary_alternatives(
        &mut self,
        result: &mut Option<SyntaxNodeId>,
    ) -> Result<(), ParseFault> {
        self.tokens.sync_to_expected_token(GrammarPosition::UnaryStart, EXPRESSION)?;
        let first = self.tokens.current_token()?;
        let mut last = first;
        if first.kind == T::Minus {
            last = self.tokens.peek_token(1)?;
        }
        match (first.kind, last.kind) {
            (T::Exclamation, _) => *result = Some(self.parse_logical_not()?),
            // The minus sign is part of the number.
            (T::Minus, T::Int | T::Float) => *result = Some(self.parse_member_expression()?),
            (T::Minus, kind) if PRIMARY.contains(kind) => return self.parse_negation(result),
            (T::Minus, _) => {
                return Err(no_viable_alternative_fault(GrammarPosition::UnaryStart, first, last));
            }
            (kind, _) if PRIMARY.contains(kind) => *result = Some(self.parse_member_expression()?),
            _ => return Err(no_viable_alternative_fault(GrammarPosition::UnaryStart, first, last)),
        }
        Ok(())
    }

    fn parse_logical_not(&mut self) -> Result<SyntaxNodeId, ParseAborted> {
        let Token { source_offset: first, start, .. } = self.tokens.current_token()?;
        let mut n_operators = 0;
        while n_operators == 0 || self.tokens.current_token_kind()? == T::Exclamation {
            self.tokens.take_token()?;
            n_operators += 1;
            self.tokens.sync_after_loop_iteration(EXPRESSION)?;
        }
        let operand = self.parse_member_expression()?;
        Ok(self.push(start, SyntaxNode::Prefix { function: "!_", n_operators, first, operand }))
    }

    fn parse_negation(&mut self, result: &mut Option<SyntaxNodeId>) -> Result<(), ParseFault> {
        let Token { source_offset: first, start, .. } = self.tokens.current_token()?;
        let mut n_operators = 0;
        let outcome = self.parse_minuses(&mut n_operators);
        let operand = match outcome {
            Ok(()) => self.parse_member_expression()?,
            Err(_) => SyntaxNodeId::MISSING,
        };
        let negation = SyntaxNode::Prefix { function: "-_", n_operators, first, operand };
        *result = Some(self.push(start, negation));
        outcome
    }

    /// Parses all minus signs. A single minus sign before a number is part of the number and does
    /// not get here.
    fn parse_minuses(&mut self, n_operators: &mut usize) -> Result<(), ParseFault> {
        loop {
            self.tokens.take_token()?;
            *n_operators += 1;
            self.tokens.sync_after_loop_iteration(PRIMARY)?;
            let first = self.tokens.current_token()?;
            if first.kind == T::Minus {
                let second = self.tokens.peek_token(1)?;
                if !PRIMARY.contains(second.kind) {
                    return Err(no_viable_alternative_fault(
                        GrammarPosition::NegationLoop,
                        first,
                        second,
                    ));
                }
            } else if PRIMARY.contains(first.kind) {
                return Ok(());
            } else {
                return Err(no_viable_alternative_fault(
                    GrammarPosition::NegationLoop,
                    first,
                    first,
                ));
            }
        }
    }
}

/// An operand, and the position at which it begins, including parentheses.
#[derive(Clone, Copy)]
struct ParsedOperand {
    start: u32,
    syntax_node_id: SyntaxNodeId,
}

/// An operator that waits for its right operand.
struct PendingOperator {
    operator_function: &'static str,
    operator_offset: u32,
    left_operand: ParsedOperand,
}

/// The operands of a run of `&&` or `||` so far, and the operator after each.
struct LogicalOperatorRun {
    run_operator_function: &'static str,
    /// The start of the first operand; `None` if there is no operand yet.
    start: Option<u32>,
    operands: Vec<SyntaxNodeId>,
    operator_offsets: Vec<u32>,
}

impl LogicalOperatorRun {
    fn new(function: &'static str) -> Self {
        Self {
            run_operator_function: function,
            start: None,
            operands: Vec::new(),
            operator_offsets: Vec::new(),
        }
    }

    fn push(&mut self, operand: ParsedOperand, operator: u32) {
        self.start.get_or_insert(operand.start);
        self.operands.push(operand.syntax_node_id);
        self.operator_offsets.push(operator);
    }
}

fn factor_operator_function(kind: T) -> Option<&'static str> {
    match kind {
        T::Star => Some("_*_"),
        T::Slash => Some("_/_"),
        T::Percent => Some("_%_"),
        _ => None,
    }
}

fn term_operator_function(kind: T) -> Option<&'static str> {
    match kind {
        T::Plus => Some("_+_"),
        T::Minus => Some("_-_"),
        _ => None,
    }
}

fn relation_operator_function(kind: T) -> Option<&'static str> {
    match kind {
        T::Equals => Some("_==_"),
        T::NotEquals => Some("_!=_"),
        T::In => Some("@in"),
        T::Less => Some("_<_"),
        T::LessEquals => Some("_<=_"),
        T::GreaterEquals => Some("_>=_"),
        T::Greater => Some("_>_"),
        _ => None,
    }
}
