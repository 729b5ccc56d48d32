//! What the parts of an expression gave: why an evaluation came out as it did.
//!
//! Each part is compiled by itself from the same checked tree and evaluated by the same evaluator,
//! so a part that is shown has the value that it had in the whole. Variables of macros have values
//! only while the macro runs; of a macro, the list that it ran over and its result are shown.

mod parts;
mod show;

use crate::ast::NodeId;
use crate::budget::{Budget, Exhausted};
use crate::check::{Checked, check};
use crate::environment::Environment;
use crate::function::Failure;
use crate::issue::Issues;
use crate::parse::parse;
use crate::program::{CompileError, Program};
use crate::value::Value;
use parts::Parts;
use show::{abbreviated, shown};

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
    pub parts: Vec<Part>,
    /// How many parts were left out because there were too many, or they take too much to evaluate.
    pub n_left_out: usize,
}

/// One part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The number of parts around this one.
    pub depth: usize,
    /// The source text, cut at [`SHOWN_BYTES_MAX`].
    pub text: String,
    /// What it gave.
    pub outcome: PartOutcome,
}

/// What a part gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartOutcome {
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
        let mut budget = Budget::default();
        let ast = parse(source, &mut budget).map_err(CompileError::Issues)?;
        let checked = check(ast, self, &mut budget)
            .map_err(|found| CompileError::Issues(Issues::new(source, found)))?;
        let root = checked.ast.root;
        let program =
            program_of(&checked, root, self, &mut budget).map_err(CompileError::Program)?;
        let mut walk = Walk {
            environment: self,
            source,
            checked: &checked,
            variables,
            cost_limit,
            cost_left: cost_limit.saturating_mul(EVALUATIONS_MAX),
            budget,
            explanation: Explanation { parts: Vec::new(), n_left_out: 0 },
        };
        walk.evaluate(root, 0, source.trim(), &program);
        Ok(walk.explanation)
    }
}

/// What decides about the operands after a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    True,
    False,
    /// `optional.none()`
    Absent,
    /// Any other value, and any error.
    Other,
}

impl Verdict {
    fn of(result: &Result<Value<'_>, Failure>) -> Self {
        match result {
            Ok(Value::Bool(true)) => Self::True,
            Ok(Value::Bool(false)) => Self::False,
            Ok(Value::Optional(None)) => Self::Absent,
            _ => Self::Other,
        }
    }
}

struct Walk<'w> {
    environment: &'w Environment,
    source: &'w str,
    checked: &'w Checked,
    variables: &'w [Value<'w>],
    cost_limit: u64,
    cost_left: u64,
    budget: Budget,
    explanation: Explanation,
}

impl<'w> Walk<'w> {
    /// Shows a part that stands in the source, and the parts of it.
    fn part(&mut self, id: NodeId, depth: usize) -> Verdict {
        // A constant explains nothing, but it decides as any other operand.
        if let Some(verdict) = parts::literal(self.checked, id) {
            return verdict;
        }
        let text = self.text(id);
        match self.program(id) {
            Ok(program) => match program.constant() {
                Some(value) => Verdict::of(&Ok(value)),
                None => self.evaluate(id, depth, text, &program),
            },
            Err(_) => {
                self.explanation.n_left_out += 1;
                Verdict::Other
            }
        }
    }

    /// The program of a part, if there is room for it.
    fn program(&mut self, id: NodeId) -> Result<Program, String> {
        if self.cost_left == 0 || self.explanation.parts.len() >= PARTS_MAX {
            return Err(Exhausted.to_string());
        }
        program_of(self.checked, id, self.environment, &mut self.budget)
    }

    fn evaluate(&mut self, id: NodeId, depth: usize, text: &str, program: &Program) -> Verdict {
        let (result, effort) = program.evaluate_metered(self.variables, self.cost_limit);
        self.cost_left = self.cost_left.saturating_sub(effort);
        let verdict = Verdict::of(&result);
        let outcome = match &result {
            Ok(value) => PartOutcome::Value(shown(value)),
            Err(failure) => PartOutcome::Error(abbreviated(&failure.to_string())),
        };
        self.push(depth, text, outcome);
        self.parts_of(id, depth + 1);
        verdict
    }

    fn parts_of(&mut self, id: NodeId, depth: usize) {
        match parts::of(self.checked, id) {
            Parts::All(parts) => {
                for part in parts {
                    self.part(part, depth);
                }
            }
            Parts::Until { verdict, operands } => self.chain(&operands, verdict, depth),
            Parts::Conditional { condition, then, otherwise } => {
                let verdict = self.part(condition, depth);
                self.part_if(verdict == Verdict::True, then, depth);
                self.part_if(verdict == Verdict::False, otherwise, depth);
            }
            Parts::OrElse { optional, otherwise } => {
                let verdict = self.part(optional, depth);
                self.part_if(verdict == Verdict::Absent, otherwise, depth);
            }
        }
    }

    /// The operands of `&&` or `||`, up to the one that decides.
    fn chain(&mut self, operands: &[NodeId], decides: Verdict, depth: usize) {
        let mut is_open = true;
        for &operand in operands {
            is_open &= self.part_if(is_open, operand, depth) != decides;
        }
    }

    /// A part that is looked at under a condition only.
    fn part_if(&mut self, condition: bool, id: NodeId, depth: usize) -> Verdict {
        if condition {
            return self.part(id, depth);
        }
        if parts::literal(self.checked, id).is_none() {
            let text = self.text(id);
            self.push(depth, text, PartOutcome::Skipped);
        }
        Verdict::Other
    }

    fn push(&mut self, depth: usize, text: &str, outcome: PartOutcome) {
        if self.explanation.parts.len() < PARTS_MAX {
            self.explanation.parts.push(Part { depth, text: abbreviated(text), outcome });
        } else {
            self.explanation.n_left_out += 1;
        }
    }

    /// What stands for a node in the source.
    fn text(&self, id: NodeId) -> &'w str {
        let span = self.checked.ast.span(id).unwrap_or_default();
        self.source.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

/// Compiles a part by itself. It is paid for as if it had been parsed.
fn program_of(
    checked: &Checked,
    id: NodeId,
    environment: &Environment,
    budget: &mut Budget,
) -> Result<Program, String> {
    spend_on_tree(checked, id, budget).map_err(|exhausted| exhausted.to_string())?;
    Program::of_node(checked, id, environment, budget)
}

fn spend_on_tree(checked: &Checked, id: NodeId, budget: &mut Budget) -> Result<(), Exhausted> {
    budget.spend_on_node()?;
    let mut outcome = Ok(());
    checked.ast.kind(id).for_each_child(|child| {
        if outcome.is_ok() {
            outcome = spend_on_tree(checked, child, budget);
        }
    });
    outcome
}

#[cfg(test)]
mod tests;
