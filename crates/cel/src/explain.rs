//! What the parts of an expression gave: why an evaluation came out as it did.
//!
//! Each part is compiled by itself from the same checked tree and evaluated by the same evaluator,
//! so a part that is shown has the value that it had in the whole. Variables of macros have values
//! only while the macro runs; of a macro, the list that it ran over and its result are shown.

mod subexpressions;
mod value_excerpt;

use crate::ast::NodeId;
use crate::check::{CheckedAst, check};
use crate::compile_budget::{BudgetExhausted, CompileBudget};
use crate::environment::Environment;
use crate::function::EvalError;
use crate::issues::Issues;
use crate::parse::parse;
use crate::program::{CompileError, Program};
use crate::value::Value;
use subexpressions::Subexpressions;
use value_excerpt::{abbreviate_text, abbreviate_value};

/// The most parts of an expression that are shown.
pub const PARTS_MAX: usize = 200;

/// How much of the text or the value of a part is shown, in bytes.
pub const SHOWN_BYTES_MAX: usize = 256;

/// How often the limit of one evaluation all parts together may use up. Parts of parts are
/// evaluated again, but there are few of them in each other.
const EVALUATIONS_MAX: u64 = 4;

/// The parts of an expression and what they gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The whole expression, then its parts in the order of the source, each before its own parts.
    pub parts: Vec<ExplainedPart>,
    /// How many parts were left out because there were too many, or they take too much to evaluate.
    pub n_omitted_parts: usize,
}

/// One part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedPart {
    /// The number of parts around this one.
    pub depth: usize,
    /// The source text, cut at [`SHOWN_BYTES_MAX`].
    pub text: String,
    /// What it gave.
    pub result: PartResult,
}

/// What a part gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartResult {
    /// A value, written as in an expression, cut at [`SHOWN_BYTES_MAX`].
    Value(String),
    /// An error, cut at [`SHOWN_BYTES_MAX`].
    Error(String),
    /// Nothing: the operand before it had decided.
    Skipped,
}

impl Environment {
    /// Evaluates an expression and its parts, with values for the variables in their order. The
    /// cost limit holds for each part. Constant parts are left out.
    pub fn explain(
        &self,
        source: &str,
        variables: &[Value<'_>],
        cost_limit: u64,
    ) -> Result<Explanation, CompileError> {
        let mut budget = CompileBudget::default();
        let ast = parse(source, &mut budget).map_err(CompileError::Issues)?;
        let checked = check(ast, self, &mut budget)
            .map_err(|found| CompileError::Issues(Issues::new(source, found)))?;
        let root = checked.ast.root;
        let program = compile_subexpression(&checked, root, self, &mut budget)
            .map_err(CompileError::Program)?;
        let mut walk = ExplanationBuilder {
            environment: self,
            source,
            checked: &checked,
            variables,
            cost_limit,
            cost_left: cost_limit.saturating_mul(EVALUATIONS_MAX),
            budget,
            explanation: Explanation { parts: Vec::new(), n_omitted_parts: 0 },
        };
        walk.evaluate_part(root, 0, source.trim(), &program);
        Ok(walk.explanation)
    }
}

/// What decides about the operands after a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShortCircuitValue {
    True,
    False,
    /// `optional.none()`
    Absent,
    /// Any other value, and any error.
    Other,
}

impl ShortCircuitValue {
    fn from_result(result: &Result<Value<'_>, EvalError>) -> Self {
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
    checked: &'w CheckedAst,
    variables: &'w [Value<'w>],
    cost_limit: u64,
    cost_left: u64,
    budget: CompileBudget,
    explanation: Explanation,
}

impl<'w> ExplanationBuilder<'w> {
    /// Shows a part that stands in the source, and the parts of it.
    fn explain_part(&mut self, id: NodeId, depth: usize) -> ShortCircuitValue {
        // A constant explains nothing, but it decides as any other operand.
        if let Some(verdict) = subexpressions::literal_value(self.checked, id) {
            return verdict;
        }
        let text = self.source_text(id);
        match self.compile_part(id) {
            Ok(program) => match program.constant_value() {
                Some(value) => ShortCircuitValue::from_result(&Ok(value)),
                None => self.evaluate_part(id, depth, text, &program),
            },
            Err(_) => {
                self.explanation.n_omitted_parts += 1;
                ShortCircuitValue::Other
            }
        }
    }

    /// The program of a part, if there is room for it.
    fn compile_part(&mut self, id: NodeId) -> Result<Program, String> {
        if self.cost_left == 0 || self.explanation.parts.len() >= PARTS_MAX {
            return Err(BudgetExhausted.to_string());
        }
        compile_subexpression(self.checked, id, self.environment, &mut self.budget)
    }

    fn evaluate_part(
        &mut self,
        id: NodeId,
        depth: usize,
        text: &str,
        program: &Program,
    ) -> ShortCircuitValue {
        let (result, effort) = program.evaluate_with_effort(self.variables, self.cost_limit);
        self.cost_left = self.cost_left.saturating_sub(effort);
        let verdict = ShortCircuitValue::from_result(&result);
        let outcome = match &result {
            Ok(value) => PartResult::Value(abbreviate_value(value)),
            Err(failure) => PartResult::Error(abbreviate_text(&failure.to_string())),
        };
        self.push(depth, text, outcome);
        self.explain_subexpressions(id, depth + 1);
        verdict
    }

    fn explain_subexpressions(&mut self, id: NodeId, depth: usize) {
        match subexpressions::find_subexpressions(self.checked, id) {
            Subexpressions::All(parts) => {
                for part in parts {
                    self.explain_part(part, depth);
                }
            }
            Subexpressions::Until { verdict, operands } => {
                self.explain_logical_operands(&operands, verdict, depth)
            }
            Subexpressions::Conditional { condition, then, otherwise } => {
                let verdict = self.explain_part(condition, depth);
                self.explain_part_if(verdict == ShortCircuitValue::True, then, depth);
                self.explain_part_if(verdict == ShortCircuitValue::False, otherwise, depth);
            }
            Subexpressions::OrElse { optional, otherwise } => {
                let verdict = self.explain_part(optional, depth);
                self.explain_part_if(verdict == ShortCircuitValue::Absent, otherwise, depth);
            }
        }
    }

    /// The operands of `&&` or `||`, up to the one that decides.
    fn explain_logical_operands(
        &mut self,
        operands: &[NodeId],
        decides: ShortCircuitValue,
        depth: usize,
    ) {
        let mut is_open = true;
        for &operand in operands {
            is_open &= self.explain_part_if(is_open, operand, depth) != decides;
        }
    }

    /// A part that is looked at under a condition only.
    fn explain_part_if(&mut self, condition: bool, id: NodeId, depth: usize) -> ShortCircuitValue {
        if condition {
            return self.explain_part(id, depth);
        }
        if subexpressions::literal_value(self.checked, id).is_none() {
            let text = self.source_text(id);
            self.push(depth, text, PartResult::Skipped);
        }
        ShortCircuitValue::Other
    }

    fn push(&mut self, depth: usize, text: &str, result: PartResult) {
        if self.explanation.parts.len() < PARTS_MAX {
            self.explanation.parts.push(ExplainedPart {
                depth,
                text: abbreviate_text(text),
                result,
            });
        } else {
            self.explanation.n_omitted_parts += 1;
        }
    }

    /// What stands for a node in the source.
    fn source_text(&self, id: NodeId) -> &'w str {
        let span = self.checked.ast.span(id).unwrap_or_default();
        self.source.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

/// Compiles a part by itself. It is paid for as if it had been parsed.
fn compile_subexpression(
    checked: &CheckedAst,
    id: NodeId,
    environment: &Environment,
    budget: &mut CompileBudget,
) -> Result<Program, String> {
    charge_nodes_of_tree(checked, id, budget).map_err(|exhausted| exhausted.to_string())?;
    Program::compile_node(checked, id, environment, budget)
}

fn charge_nodes_of_tree(
    checked: &CheckedAst,
    id: NodeId,
    budget: &mut CompileBudget,
) -> Result<(), BudgetExhausted> {
    budget.spend_on_node()?;
    let mut outcome = Ok(());
    checked.ast.kind(id).for_each_child(|child| {
        if outcome.is_ok() {
            outcome = charge_nodes_of_tree(checked, child, budget);
        }
    });
    outcome
}

#[cfg(test)]
mod tests;
