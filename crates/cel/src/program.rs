//! Compiling expressions to programs, and evaluating programs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::ast::{Ast, ExprKind, Literal, NodeId};
use crate::compile_budget::CompileBudget;
use crate::environment::Environment;
use crate::eval::{Evaluator, LocalSlot, borrow_constant};
use crate::function::{EvalError, EvalResult};
use crate::ir::CompiledExpr;
use crate::issues::Issues;
use crate::parse::parse;
use crate::plan::{Plan, plan_expression};
use crate::static_type::Type;
use crate::type_check::{CheckedAst, ResolvedReference, check};
use crate::value::{RecordSource, Value};

/// Kubernetes' limit on the cost of one evaluation.
pub const COST_LIMIT: u64 = 1_000_000;

/// The maximum number of local variables that are kept on the stack.
const INLINE_SLOTS: usize = 4;

/// A compiled expression: immutable, and shared freely between threads.
#[derive(Debug)]
pub struct Program {
    compiled_expr: CompiledExpr,
    n_local_slots: usize,
    output_type: Type,
    selected_fields: BTreeSet<Arc<str>>,
    used_variables: BTreeSet<usize>,
    /// The result of a loop that reads no variable, and its cost. It is always the same, so it is computed once.
    cached_constant_result: Option<OnceLock<(Result<bool, EvalError>, u64)>>,
}

/// The reason why a source text does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileError {
    /// The text has syntax or type errors.
    Issues(Issues),
    /// The text has no such errors, but folding a constant fails.
    Program(ProgramError),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issues(issues) => issues.fmt(f),
            Self::Program(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CompileError {}

/// The reason why a checked expression has no program: a constant cannot be folded, a constant pattern is
/// invalid, or the compile budget is used up. Displays as Kubernetes' message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramError(Box<str>);

impl From<String> for ProgramError {
    fn from(message: String) -> Self {
        Self(message.into_boxed_str())
    }
}

impl From<&str> for ProgramError {
    fn from(message: &str) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProgramError {}

/// The result of an evaluation and its cost.
#[derive(Debug, Clone)]
pub struct Evaluation<'a> {
    /// The value or the error.
    pub result: Result<Value<'a>, EvalError>,
    /// The cost in units. If the evaluation exceeds the limit, this is the cost up to that point.
    pub cost: u64,
}

/// A type-checked expression that is not yet compiled to a program.
#[derive(Debug)]
pub struct CheckedExpression<'e> {
    environment: &'e Environment,
    checked_ast: CheckedAst,
    compile_budget: OwnedOrSharedBudget<'e>,
}

/// The compile budget of one expression: its own, or one that it shares.
#[derive(Debug)]
enum OwnedOrSharedBudget<'e> {
    Own(CompileBudget),
    Shared(&'e mut CompileBudget),
}

impl OwnedOrSharedBudget<'_> {
    fn get(&mut self) -> &mut CompileBudget {
        match self {
            Self::Own(compile_budget) => compile_budget,
            Self::Shared(compile_budget) => compile_budget,
        }
    }
}

impl CheckedExpression<'_> {
    /// The type of the whole expression.
    pub fn output_type(&self) -> &Type {
        self.checked_ast.type_of_node(self.checked_ast.ast.root_node)
    }

    #[cfg(test)]
    pub(crate) fn checked_ast(&self) -> &CheckedAst {
        &self.checked_ast
    }

    /// Compiles the program; fails if folding a constant fails.
    pub fn into_program(mut self) -> Result<Program, ProgramError> {
        let root = self.checked_ast.ast.root_node;
        let program = Program::compile_ast_node(
            &self.checked_ast,
            root,
            self.environment,
            self.compile_budget.get(),
        )?;
        let selected_fields = collect_selected_fields(&self.checked_ast.ast);
        let used_variables = collect_used_variables(&self.checked_ast);
        let is_closed_loop = used_variables.is_empty() && program.n_local_slots > 0;
        let cached_constant_result = is_closed_loop.then(OnceLock::new);
        Ok(Program { selected_fields, used_variables, cached_constant_result, ..program })
    }
}

impl Environment {
    /// Parses and type-checks a single expression.
    pub fn check(&self, source: &str) -> Result<CheckedExpression<'_>, Issues> {
        self.parse_and_check_source(source, OwnedOrSharedBudget::Own(CompileBudget::default()))
    }

    /// Parses and type-checks one of several expressions that share a compile budget.
    pub fn parse_and_check_within_budget<'e>(
        &'e self,
        source: &str,
        compile_budget: &'e mut CompileBudget,
    ) -> Result<CheckedExpression<'e>, Issues> {
        self.parse_and_check_source(source, OwnedOrSharedBudget::Shared(compile_budget))
    }

    fn parse_and_check_source<'e>(
        &'e self,
        source: &str,
        mut compile_budget: OwnedOrSharedBudget<'e>,
    ) -> Result<CheckedExpression<'e>, Issues> {
        let ast = parse(source, compile_budget.get())?;
        let checked =
            check(ast, self, compile_budget.get()).map_err(|found| Issues::new(source, found))?;
        Ok(CheckedExpression { environment: self, checked_ast: checked, compile_budget })
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
    /// Compiles a subexpression that refers to no variable of an enclosing macro.
    pub(crate) fn compile_ast_node(
        checked: &CheckedAst,
        id: NodeId,
        environment: &Environment,
        compile_budget: &mut CompileBudget,
    ) -> Result<Self, ProgramError> {
        let Plan { compiled_expr: expr, n_local_slots } =
            plan_expression(checked, id, environment, compile_budget)?;
        let output_type = checked.type_of_node(id).clone();
        let (selected_fields, used_variables) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self {
            compiled_expr: expr,
            n_local_slots,
            output_type,
            selected_fields,
            used_variables,
            cached_constant_result: None,
        })
    }

    /// The value, if the program is a constant.
    pub(crate) fn constant_value(&self) -> Option<Value<'_>> {
        match &self.compiled_expr {
            CompiledExpr::Const(value) => Some(borrow_constant(value)),
            _ => None,
        }
    }

    /// Evaluates, and returns the spent cost and steps in units of cost.
    pub(crate) fn evaluate_with_total_cost<'a>(
        &'a self,
        variables: &'a [Value<'a>],
        cost_limit: u64,
    ) -> (EvalResult<'a>, u64) {
        self.with_local_slots(|local_slots: &mut [LocalSlot<'a>]| {
            let mut evaluator = Evaluator::new(variables, local_slots, cost_limit);
            let result = evaluator.evaluate_expression(&self.compiled_expr);
            (result, evaluator.total_cost())
        })
    }

    /// The type of the expression.
    pub fn output_type(&self) -> &Type {
        &self.output_type
    }

    /// Reports whether the expression selects a field of this name anywhere, by `.f`, `.?f` or `has(x.f)`.
    pub fn selects_field(&self, field: &str) -> bool {
        self.selected_fields.contains(field)
    }

    /// Reports whether the expression refers to the variable with this index in the environment. The host need not
    /// build values for other variables.
    pub fn reads_variable(&self, variable: usize) -> bool {
        self.used_variables.contains(&variable)
    }

    /// Evaluates with the values of the environment's variables, in its order, up to a cost limit.
    pub fn evaluate<'a>(&'a self, variables: &'a [Value<'a>], cost_limit: u64) -> Evaluation<'a> {
        let evaluate = |local_slots: &mut [LocalSlot<'a>]| {
            let mut evaluator = Evaluator::new(variables, local_slots, cost_limit);
            let result = evaluator.evaluate_expression(&self.compiled_expr);
            Evaluation { result, cost: evaluator.charged_cost() }
        };
        self.with_local_slots(evaluate)
    }

    /// Evaluates an expression that must yield a bool. Returns the bool and the cost.
    #[inline]
    pub fn evaluate_bool<'a>(
        &'a self,
        variables: &'a [Value<'a>],
        cost_limit: u64,
    ) -> (Result<bool, EvalError>, u64) {
        let evaluate = |local_slots: &mut [LocalSlot<'a>]| {
            let mut evaluator = Evaluator::new(variables, local_slots, cost_limit);
            let result = evaluator.evaluate_bool(&self.compiled_expr);
            (result, evaluator.charged_cost())
        };
        // Most conditions have no loops, and therefore no local variables.
        if self.n_local_slots == 0 {
            return evaluate(&mut []);
        }
        match &self.cached_constant_result {
            Some(cached_constant_result) if cost_limit <= COST_LIMIT => {
                let (result, cost) =
                    cached_constant_result.get_or_init(|| self.evaluate_without_variables());
                match *cost <= cost_limit {
                    true => (result.clone(), *cost),
                    false => (Err(EvalError::CostLimit), *cost),
                }
            }
            _ => self.with_local_slots(evaluate),
        }
    }

    /// Evaluates an expression that reads no variable.
    fn evaluate_without_variables(&self) -> (Result<bool, EvalError>, u64) {
        self.with_local_slots(|local_slots| {
            let mut evaluator = Evaluator::new(&[], local_slots, COST_LIMIT);
            let result = evaluator.evaluate_bool(&self.compiled_expr);
            (result, evaluator.charged_cost())
        })
    }

    /// Evaluates a bool expression through its fast path, which needs only records and builds no
    /// values. Returns the result and the cost, or `None` if the expression has no fast path or the
    /// fast path does not apply; the caller then uses [`evaluate_bool`](Self::evaluate_bool).
    #[inline]
    pub fn try_evaluate_bool_fast<'a>(
        &'a self,
        variables: &[&'a dyn RecordSource],
        cost_limit: u64,
    ) -> Option<(bool, u64)> {
        let CompiledExpr::FastPath(fast_path) = &self.compiled_expr else { return None };
        let answer =
            fast_path.try_evaluate_fast_path(|index| variables.get(index).copied(), &[])?;
        (answer.1 <= cost_limit).then_some(answer)
    }

    /// Calls `run` with slots for the local variables. Up to [`INLINE_SLOTS`] slots are on the
    /// stack.
    fn with_local_slots<'a, T>(&self, run: impl FnOnce(&mut [LocalSlot<'a>]) -> T) -> T {
        if self.n_local_slots <= INLINE_SLOTS {
            run(&mut [const { LocalSlot::EMPTY }; INLINE_SLOTS])
        } else {
            run(&mut vec![LocalSlot::EMPTY; self.n_local_slots])
        }
    }
}

fn collect_used_variables(checked: &CheckedAst) -> BTreeSet<usize> {
    let references = checked.resolved_references();
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
    for node in ast.nodes.iter() {
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
