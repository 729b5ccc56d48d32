//! Compiled expressions.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::ast::{Ast, Kind, Literal};
use crate::check::check;
use crate::environment::Environment;
use crate::eval::{Evaluator, Slot};
use crate::function::Failure;
use crate::ir::Expr;
use crate::issue::Issues;
use crate::parse::parse;
use crate::plan::plan;
use crate::ty::Type;
use crate::value::Value;

/// The limit on the cost of one evaluation that Kubernetes sets.
pub const COST_LIMIT: u64 = 1_000_000;

/// Local variables up to this number need no allocation.
const INLINE_SLOTS: usize = 8;

/// A compiled expression: immutable, and shared freely between threads.
#[derive(Debug)]
pub struct Program {
    expr: Expr,
    slots: usize,
    output_type: Type,
    selected_fields: BTreeSet<Arc<str>>,
}

/// Why a text is not a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileError {
    /// The text does not parse or does not check.
    Issues(Issues),
    /// It checks, but a constant part of it fails.
    Program(String),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issues(issues) => issues.fmt(f),
            Self::Program(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for CompileError {}

/// What an evaluation gave and what it cost.
#[derive(Debug, Clone)]
pub struct Evaluation<'a> {
    /// The value, or why there is none.
    pub result: Result<Value<'a>, Failure>,
    /// The cost in units, counted until the end or until the limit was passed.
    pub cost: u64,
}

/// A checked expression of which no program has been made yet.
#[derive(Debug)]
pub struct CheckedExpression<'e> {
    environment: &'e Environment,
    checked: crate::check::Checked,
}

impl CheckedExpression<'_> {
    /// The type of the whole expression.
    pub fn output_type(&self) -> &Type {
        self.checked.ty(self.checked.ast.root)
    }

    /// Makes the program; fails when a constant part of the expression fails.
    pub fn program(&self) -> Result<Program, String> {
        let plan = plan(&self.checked, self.environment)?;
        Ok(Program {
            expr: plan.expr,
            slots: plan.slots,
            output_type: self.output_type().clone(),
            selected_fields: selected_fields(&self.checked.ast),
        })
    }
}

impl Environment {
    /// Parses and checks an expression.
    pub fn check(&self, source: &str) -> Result<CheckedExpression<'_>, Issues> {
        let ast = parse(source)?;
        let checked = check(ast, self).map_err(|found| Issues::new(source, found))?;
        Ok(CheckedExpression { environment: self, checked })
    }

    /// Parses, checks and compiles an expression.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        self.check(source)
            .map_err(CompileError::Issues)?
            .program()
            .map_err(CompileError::Program)
    }
}

impl Program {
    /// The type of the expression.
    pub fn output_type(&self) -> &Type {
        &self.output_type
    }

    /// Whether the expression selects a field of this name anywhere, by `.f`, `.?f` or `has(x.f)`.
    pub fn selects(&self, field: &str) -> bool {
        self.selected_fields.contains(field)
    }

    /// Evaluates with values for the environment's variables, in its order, up to a cost.
    pub fn evaluate<'a>(&'a self, variables: &'a [Value<'a>], cost_limit: u64) -> Evaluation<'a> {
        let (result, cost) =
            self.with_slots(variables, cost_limit, |evaluator, expr| evaluator.value(expr));
        Evaluation { result, cost }
    }

    /// Evaluates an expression that must yield a bool; returns it with the cost.
    pub fn evaluate_bool<'a>(
        &'a self,
        variables: &'a [Value<'a>],
        cost_limit: u64,
    ) -> (Result<bool, Failure>, u64) {
        self.with_slots(variables, cost_limit, |evaluator, expr| evaluator.bool(expr))
    }

    fn with_slots<'a, T>(
        &'a self,
        variables: &'a [Value<'a>],
        cost_limit: u64,
        evaluate: impl FnOnce(&mut Evaluator<'_, 'a>, &'a Expr) -> T,
    ) -> (T, u64) {
        if self.slots == 0 {
            return finish(Evaluator::new(variables, &mut [], cost_limit), &self.expr, evaluate);
        }
        if self.slots <= INLINE_SLOTS {
            let mut slots = [const { Slot::EMPTY }; INLINE_SLOTS];
            return finish(
                Evaluator::new(variables, &mut slots, cost_limit),
                &self.expr,
                evaluate,
            );
        }
        let mut slots = vec![Slot::EMPTY; self.slots];
        finish(Evaluator::new(variables, &mut slots, cost_limit), &self.expr, evaluate)
    }
}

fn finish<'a, T>(
    mut evaluator: Evaluator<'_, 'a>,
    expr: &'a Expr,
    evaluate: impl FnOnce(&mut Evaluator<'_, 'a>, &'a Expr) -> T,
) -> (T, u64) {
    let result = evaluate(&mut evaluator, expr);
    (result, evaluator.cost())
}

fn selected_fields(ast: &Ast) -> BTreeSet<Arc<str>> {
    let mut fields = BTreeSet::new();
    for node in &ast.nodes {
        match &node.kind {
            Kind::Select { field, .. } => {
                fields.insert(Arc::clone(field));
            }
            Kind::Call { function, args, .. } if **function == *"_?._" => {
                if let Some(&field) = args.get(1)
                    && let Kind::Literal(Literal::String(name)) = ast.kind(field)
                {
                    fields.insert(Arc::clone(name));
                }
            }
            _ => {}
        }
    }
    fields
}
