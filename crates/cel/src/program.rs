//! Compiled expressions.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::ast::{Ast, ExprKind, Literal, NodeId};
use crate::check::{CheckedAst, ResolvedReference, check};
use crate::compile_budget::CompileBudget;
use crate::environment::Environment;
use crate::eval::{Evaluator, LocalSlot, borrow_constant};
use crate::function::{EvalError, EvalResult};
use crate::ir::CompiledExpr;
use crate::issues::Issues;
use crate::parse::parse;
use crate::plan::{Plan, plan_expression};
use crate::static_type::Type;
use crate::value::{RecordSource, Value};

/// The limit on the cost of one evaluation that Kubernetes sets.
pub const COST_LIMIT: u64 = 1_000_000;

/// Local variables up to this number need no allocation.
const INLINE_SLOTS: usize = 4;

/// A compiled expression: immutable, and shared freely between threads.
#[derive(Debug)]
pub struct Program {
    expr: CompiledExpr,
    n_slots: usize,
    output_type: Type,
    selected_fields: BTreeSet<Arc<str>>,
    used_variables: BTreeSet<usize>,
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
    pub result: Result<Value<'a>, EvalError>,
    /// The cost in units, counted until the end or until the limit was passed.
    pub cost: u64,
}

/// A checked expression of which no program has been made yet.
#[derive(Debug)]
pub struct CheckedExpression<'e> {
    environment: &'e Environment,
    checked: CheckedAst,
    budget: CompileBudgetRef<'e>,
}

/// The budget that an expression is compiled within.
#[derive(Debug)]
enum CompileBudgetRef<'e> {
    Own(CompileBudget),
    Shared(&'e mut CompileBudget),
}

impl CompileBudgetRef<'_> {
    fn get(&mut self) -> &mut CompileBudget {
        match self {
            Self::Own(budget) => budget,
            Self::Shared(budget) => budget,
        }
    }
}

impl CheckedExpression<'_> {
    /// The type of the whole expression.
    pub fn output_type(&self) -> &Type {
        self.checked.type_of_node(self.checked.ast.root)
    }

    #[cfg(test)]
    pub(crate) fn checked_ast(&self) -> &CheckedAst {
        &self.checked
    }

    /// Makes the program; fails when a constant part of the expression fails.
    pub fn into_program(mut self) -> Result<Program, String> {
        let root = self.checked.ast.root;
        let program =
            Program::compile_node(&self.checked, root, self.environment, self.budget.get())?;
        let selected_fields = collect_selected_fields(&self.checked.ast);
        Ok(Program { selected_fields, used_variables: collect_variables(&self.checked), ..program })
    }
}

impl Environment {
    /// Parses and checks an expression by itself.
    pub fn check(&self, source: &str) -> Result<CheckedExpression<'_>, Issues> {
        self.check_with_budget(source, CompileBudgetRef::Own(CompileBudget::default()))
    }

    /// Parses and checks one of several expressions, within what is left for them.
    pub fn check_within_budget<'e>(
        &'e self,
        source: &str,
        budget: &'e mut CompileBudget,
    ) -> Result<CheckedExpression<'e>, Issues> {
        self.check_with_budget(source, CompileBudgetRef::Shared(budget))
    }

    fn check_with_budget<'e>(
        &'e self,
        source: &str,
        mut budget: CompileBudgetRef<'e>,
    ) -> Result<CheckedExpression<'e>, Issues> {
        let ast = parse(source, budget.get())?;
        let checked = check(ast, self, budget.get()).map_err(|found| Issues::new(source, found))?;
        Ok(CheckedExpression { environment: self, checked, budget })
    }

    /// Parses, checks and compiles an expression.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        self.check(source)
            .map_err(CompileError::Issues)?
            .into_program()
            .map_err(CompileError::Program)
    }
}

impl Program {
    /// The program of a part that names no variable of a macro around it.
    pub(crate) fn compile_node(
        checked: &CheckedAst,
        id: NodeId,
        environment: &Environment,
        budget: &mut CompileBudget,
    ) -> Result<Self, String> {
        let Plan { expr, n_slots } = plan_expression(checked, id, environment, budget)?;
        let output_type = checked.type_of_node(id).clone();
        let (selected_fields, used_variables) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { expr, n_slots, output_type, selected_fields, used_variables })
    }

    /// The value, if it is the same in every evaluation.
    pub(crate) fn constant_value(&self) -> Option<Value<'_>> {
        match &self.expr {
            CompiledExpr::Const(value) => Some(borrow_constant(value)),
            _ => None,
        }
    }

    /// Evaluates, and returns how much of the limits it took, in units of cost.
    pub(crate) fn evaluate_with_effort<'a>(
        &'a self,
        variables: &'a [Value<'a>],
        cost_limit: u64,
    ) -> (EvalResult<'a>, u64) {
        self.with_slots(|n_slots: &mut [LocalSlot<'a>]| {
            let mut evaluator = Evaluator::new(variables, n_slots, cost_limit);
            let result = evaluator.evaluate(&self.expr);
            (result, evaluator.cost_and_work())
        })
    }

    /// The type of the expression.
    pub fn output_type(&self) -> &Type {
        &self.output_type
    }

    /// Whether the expression selects a field of this name anywhere, by `.f`, `.?f` or `has(x.f)`.
    pub fn selects_field(&self, field: &str) -> bool {
        self.selected_fields.contains(field)
    }

    /// Whether the expression names the variable of this number in the environment, so that it is
    /// worth making a value for it.
    pub fn reads_variable(&self, variable: usize) -> bool {
        self.used_variables.contains(&variable)
    }

    /// Evaluates with values for the environment's variables, in its order, up to a cost.
    pub fn evaluate<'a>(&'a self, variables: &'a [Value<'a>], cost_limit: u64) -> Evaluation<'a> {
        let evaluate = |n_slots: &mut [LocalSlot<'a>]| {
            let mut evaluator = Evaluator::new(variables, n_slots, cost_limit);
            let result = evaluator.evaluate(&self.expr);
            Evaluation { result, cost: evaluator.cost() }
        };
        self.with_slots(evaluate)
    }

    /// Evaluates an expression that must yield a bool; returns it with the cost.
    #[inline]
    pub fn evaluate_bool<'a>(
        &'a self,
        variables: &'a [Value<'a>],
        cost_limit: u64,
    ) -> (Result<bool, EvalError>, u64) {
        let evaluate = |n_slots: &mut [LocalSlot<'a>]| {
            let mut evaluator = Evaluator::new(variables, n_slots, cost_limit);
            let result = evaluator.evaluate_bool(&self.expr);
            (result, evaluator.cost())
        };
        // Most conditions have no loops.
        if self.n_slots == 0 { evaluate(&mut []) } else { self.with_slots(evaluate) }
    }

    /// Evaluates with records for all variables, making no values: answers for most expressions
    /// that yield a bool, with the cost, and otherwise declines. Then
    /// [`evaluate_bool`](Self::evaluate_bool) says what is the case.
    #[inline]
    pub fn evaluate_bool_fast<'a>(
        &'a self,
        variables: &[&'a dyn RecordSource],
        cost_limit: u64,
    ) -> Option<(bool, u64)> {
        let CompiledExpr::Quick(quick) = &self.expr else { return None };
        let answer = quick.try_evaluate(|index| variables.get(index).copied(), &[])?;
        (answer.1 <= cost_limit).then_some(answer)
    }

    /// Runs with room for the local variables, on the stack if they are few.
    fn with_slots<'a, T>(&self, run: impl FnOnce(&mut [LocalSlot<'a>]) -> T) -> T {
        if self.n_slots <= INLINE_SLOTS {
            run(&mut [const { LocalSlot::EMPTY }; INLINE_SLOTS])
        } else {
            run(&mut vec![LocalSlot::EMPTY; self.n_slots])
        }
    }
}

fn collect_variables(checked: &CheckedAst) -> BTreeSet<usize> {
    let references = checked.references();
    let variables = references.filter_map(|reference| match reference {
        ResolvedReference::Variable(index) => Some(*index),
        ResolvedReference::Local(_)
        | ResolvedReference::Type(_)
        | ResolvedReference::Constant(_)
        | ResolvedReference::Function { .. } => None,
    });
    variables.collect()
}

fn collect_selected_fields(ast: &Ast) -> BTreeSet<Arc<str>> {
    let mut fields = BTreeSet::new();
    for node in &ast.nodes {
        match &node.kind {
            ExprKind::Select { field, .. } => {
                fields.insert(Arc::clone(field));
            }
            ExprKind::Call { function, args, .. } if **function == *"_?._" => {
                if let Some(&field) = args.get(1)
                    && let ExprKind::Literal(Literal::String(name)) = ast.kind(field)
                {
                    fields.insert(Arc::clone(name));
                }
            }
            _ => {}
        }
    }
    fields
}
