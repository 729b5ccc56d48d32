//! Explains an evaluation by the values of the subexpressions.
//!
//! Each subexpression is compiled separately from the same checked AST and evaluated by the same
//! evaluator, so it has the value that it has in the whole expression. Variables of macros have
//! values only inside the macro; for a macro call, the range and the result are shown.

mod subexpressions;
mod value_excerpt;

use crate::ast::NodeId;
use crate::compile_budget::{BudgetExhausted, CompileBudget};
use crate::environment::Environment;
use crate::function::EvalError;
use crate::issues::Issues;
use crate::parse::parse;
use crate::program::{CompileError, Program, ProgramError};
use crate::type_check::{CheckedAst, check};
use crate::value::Value;
use subexpressions::Subexpressions;
use value_excerpt::{abbreviate_text, abbreviate_value};

/// The maximum number of subexpressions that one explanation shows.
pub const SUBEXPRESSIONS_MAX: usize = 200;

/// The maximum number of bytes that an explanation shows of the source text, and of the value, of
/// one subexpression.
pub const SHOWN_BYTES_MAX: usize = 256;

/// The cost of all subexpressions together is limited to this multiple of the cost limit of one
/// evaluation. A nested subexpression is evaluated again for each enclosing one, but nesting is
/// shallow in practice.
const EVALUATIONS_MAX: u64 = 4;

/// The subexpressions of an expression and their results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The whole expression first, then its subexpressions in source order, each before its own
    /// subexpressions.
    pub subexpressions: Vec<ExplainedSubexpression>,
    /// The number of subexpressions that are not shown, because there are too many or because they
    /// cost too much.
    pub n_omitted_subexpressions: usize,
}

/// A subexpression and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedSubexpression {
    /// The number of subexpressions that enclose this one.
    pub nesting_depth: usize,
    /// The source text, cut at [`SHOWN_BYTES_MAX`].
    pub source_excerpt: String,
    /// The result of its evaluation.
    pub result: SubexpressionResult,
}

/// The result of evaluating a subexpression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubexpressionResult {
    /// A value, written as in an expression, cut at [`SHOWN_BYTES_MAX`].
    Value(String),
    /// An error, cut at [`SHOWN_BYTES_MAX`].
    Error(String),
    /// The subexpression was not evaluated, because an earlier operand decided the result (short
    /// circuit).
    Skipped,
}

impl Environment {
    /// Evaluates an expression and its subexpressions. `variables` are in the order of the
    /// environment. The cost limit applies to each subexpression. Constants are not shown.
    pub fn explain(
        &self,
        source: &str,
        variables: &[Value<'_>],
        cost_limit: u64,
    ) -> Result<Explanation, CompileError> {
        let mut compile_budget = CompileBudget::default();
        let ast = parse(source, &mut compile_budget).map_err(CompileError::Issues)?;
        let checked = check(ast, self, &mut compile_budget)
            .map_err(|found| CompileError::Issues(Issues::new(source, found)))?;
        let root = checked.ast.root_node;
        let program = compile_subexpression(&checked, root, self, &mut compile_budget)
            .map_err(CompileError::Program)?;
        let mut walk = ExplanationBuilder {
            environment: self,
            source,
            checked_ast: &checked,
            variables,
            cost_limit,
            cost_left: cost_limit.saturating_mul(EVALUATIONS_MAX),
            compile_budget,
            explanation: Explanation { subexpressions: Vec::new(), n_omitted_subexpressions: 0 },
        };
        walk.evaluate_and_explain(root, 0, source.trim(), &program);
        Ok(walk.explanation)
    }
}

/// The property of an operand's result that decides whether later operands are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShortCircuitValue {
    True,
    False,
    /// The value is `optional.none()`.
    Absent,
    /// Any other value, and any error.
    Other,
}

impl ShortCircuitValue {
    fn from_operand_result(result: &Result<Value<'_>, EvalError>) -> Self {
        match result {
            Ok(Value::Bool(true)) => Self::True,
            Ok(Value::Bool(false)) => Self::False,
            Ok(Value::Optional(None)) => Self::Absent,
            _ => Self::Other,
        }
    }
}

struct ExplanationBuilder<'w> {
    environment: &'w Environment,
    source: &'w str,
    checked_ast: &'w CheckedAst,
    variables: &'w [Value<'w>],
    cost_limit: u64,
    cost_left: u64,
    compile_budget: CompileBudget,
    explanation: Explanation,
}

impl<'w> ExplanationBuilder<'w> {
    /// Adds a subexpression that has a source span, and the subexpressions inside it.
    fn explain_subexpression(&mut self, id: NodeId, depth: usize) -> ShortCircuitValue {
        // A constant is not shown, but it can short-circuit like any other operand.
        if let Some(value) = subexpressions::literal_short_circuit_value(self.checked_ast, id) {
            return value;
        }
        let text = self.source_text(id);
        match self.compile_within_limits(id) {
            Ok(program) => match program.constant_value() {
                Some(value) => ShortCircuitValue::from_operand_result(&Ok(value)),
                None => self.evaluate_and_explain(id, depth, text, &program),
            },
            Err(_) => {
                self.explanation.n_omitted_subexpressions += 1;
                ShortCircuitValue::Other
            }
        }
    }

    /// Compiles a subexpression, unless the explanation has reached a limit.
    fn compile_within_limits(&mut self, id: NodeId) -> Result<Program, ProgramError> {
        if self.cost_left == 0 || self.explanation.subexpressions.len() >= SUBEXPRESSIONS_MAX {
            return Err(BudgetExhausted.to_string().into());
        }
        compile_subexpression(self.checked_ast, id, self.environment, &mut self.compile_budget)
    }

    fn evaluate_and_explain(
        &mut self,
        id: NodeId,
        depth: usize,
        text: &str,
        program: &Program,
    ) -> ShortCircuitValue {
        let (result, effort) = program.evaluate_with_total_cost(self.variables, self.cost_limit);
        self.cost_left = self.cost_left.saturating_sub(effort);
        let value = ShortCircuitValue::from_operand_result(&result);
        let shown_result = match &result {
            Ok(value) => SubexpressionResult::Value(abbreviate_value(value)),
            Err(failure) => SubexpressionResult::Error(abbreviate_text(&failure.to_string())),
        };
        self.push(depth, text, shown_result);
        self.explain_subexpressions(id, depth + 1);
        value
    }

    fn explain_subexpressions(&mut self, id: NodeId, depth: usize) {
        match subexpressions::find_subexpressions(self.checked_ast, id) {
            Subexpressions::All(parts) => {
                for part in parts {
                    self.explain_subexpression(part, depth);
                }
            }
            Subexpressions::Until { stopping_value, operands } => {
                self.explain_logical_operands(&operands, stopping_value, depth)
            }
            Subexpressions::Conditional { condition, then, otherwise } => {
                let value = self.explain_subexpression(condition, depth);
                self.explain_or_skip(value == ShortCircuitValue::True, then, depth);
                self.explain_or_skip(value == ShortCircuitValue::False, otherwise, depth);
            }
            Subexpressions::OrElse { optional, otherwise } => {
                let value = self.explain_subexpression(optional, depth);
                self.explain_or_skip(value == ShortCircuitValue::Absent, otherwise, depth);
            }
        }
    }

    /// Explains the operands of `&&` or `||`. Operands after the deciding one are skipped.
    fn explain_logical_operands(
        &mut self,
        operands: &[NodeId],
        stopping_value: ShortCircuitValue,
        depth: usize,
    ) {
        let mut is_open = true;
        for &operand in operands {
            is_open &= self.explain_or_skip(is_open, operand, depth) != stopping_value;
        }
    }

    /// Explains a subexpression, or marks it as skipped if the condition is false.
    fn explain_or_skip(&mut self, condition: bool, id: NodeId, depth: usize) -> ShortCircuitValue {
        if condition {
            return self.explain_subexpression(id, depth);
        }
        if subexpressions::literal_short_circuit_value(self.checked_ast, id).is_none() {
            let text = self.source_text(id);
            self.push(depth, text, SubexpressionResult::Skipped);
        }
        ShortCircuitValue::Other
    }

    fn push(&mut self, depth: usize, text: &str, result: SubexpressionResult) {
        if self.explanation.subexpressions.len() < SUBEXPRESSIONS_MAX {
            self.explanation.subexpressions.push(ExplainedSubexpression {
                nesting_depth: depth,
                source_excerpt: abbreviate_text(text),
                result,
            });
        } else {
            self.explanation.n_omitted_subexpressions += 1;
        }
    }

    /// The source text of a node.
    fn source_text(&self, id: NodeId) -> &'w str {
        let span = self.checked_ast.ast.source_span(id).unwrap_or_default();
        self.source.get(span.start as usize..span.span_end_byte as usize).unwrap_or_default()
    }
}

/// Compiles a subexpression separately. The budget is charged as if it had been parsed.
fn compile_subexpression(
    checked_ast: &CheckedAst,
    id: NodeId,
    environment: &Environment,
    compile_budget: &mut CompileBudget,
) -> Result<Program, ProgramError> {
    charge_nodes_of_tree(checked_ast, id, compile_budget)
        .map_err(|exhausted| exhausted.to_string())?;
    Program::compile_ast_node(checked_ast, id, environment, compile_budget)
}

fn charge_nodes_of_tree(
    checked_ast: &CheckedAst,
    id: NodeId,
    compile_budget: &mut CompileBudget,
) -> Result<(), BudgetExhausted> {
    compile_budget.spend_for_ast_node()?;
    let mut outcome = Ok(());
    checked_ast.ast.kind(id).for_each_child(|child| {
        if outcome.is_ok() {
            outcome = charge_nodes_of_tree(checked_ast, child, compile_budget);
        }
    });
    outcome
}

#[cfg(test)]
mod tests;
