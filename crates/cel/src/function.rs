//! Function declarations: the overloads that the type checker matches and the evaluator calls.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::authorizer_check::AuthorizerCheck;
use crate::program::COST_LIMIT;
use crate::static_type::Type;
use crate::value::{EqualityResult, List, Value};

/// The result of a function call or of an expression.
pub(crate) type EvalResult<'a> = Result<Value<'a>, EvalError>;

/// The reason why an evaluation yields no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvalError {
    /// An error of the expression language. `&&`, `||` and `? :` may absorb it.
    Error(Box<str>),
    /// A map has no such key, or a record no such field. This is the most common error, so it is
    /// constructed without formatting a message.
    NoSuchKey(Arc<str>),
    /// The cost limit is exceeded. Nothing absorbs it.
    CostLimit,
    /// The evaluation needs a decision of the authorizer. Nothing absorbs it: the host adds the
    /// decision to the [`KnownDecisions`](crate::KnownDecisions) and evaluates again. It occurs
    /// only if the host passes an authorizer.
    NeedsDecision(Box<AuthorizerCheck>),
}

impl EvalError {
    /// An error with this message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Error(message.into().into_boxed_str())
    }

    /// The error for arguments that match no overload.
    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    /// Reports whether no operator absorbs the error, so that it ends the whole evaluation.
    #[inline]
    pub(crate) fn ends_evaluation(&self) -> bool {
        match self {
            Self::CostLimit | Self::NeedsDecision(_) => true,
            Self::Error(_) | Self::NoSuchKey(_) => false,
        }
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(message) => f.write_str(message),
            Self::NoSuchKey(key) => write!(f, "no such key: {key}"),
            Self::CostLimit => f.write_str("operation cancelled: actual cost limit exceeded"),
            Self::NeedsDecision(_) => f.write_str("the authorizer has not been asked"),
        }
    }
}

impl std::error::Error for EvalError {}

/// An implementation of an overload. It takes the receiver first, then the arguments. The evaluator
/// has matched their run-time types against the parameters: `dyn` and type parameters match
/// anything, and only the first element of a list is checked.
pub(crate) type FunctionImpl = for<'a> fn(&[Value<'a>]) -> EvalResult<'a>;

/// An implementation whose work is not bounded by its cost, so that it charges a step budget.
pub(crate) type MeteredFunctionImpl = for<'a> fn(&[Value<'a>], &mut StepBudget) -> EvalResult<'a>;

/// The maximum number of steps of one evaluation. Kubernetes' cost does not bound all work: it concatenates lists of
/// any length for one unit. One step copies or compares one value, or reads [`TEXT_BYTES_PER_STEP`] bytes of text, and
/// takes well below a microsecond. Typical expressions need a few hundred steps.
const STEPS_MAX: u64 = 4_000_000;

/// The bytes of text that are charged as one step.
const TEXT_BYTES_PER_STEP: usize = 32;

/// The remaining steps of an evaluation, which bound the work that its cost does not bound. When
/// they are used up, the evaluation fails as if it had exceeded the cost limit.
#[derive(Debug)]
pub(crate) struct StepBudget {
    steps_left: u64,
}

impl Default for StepBudget {
    fn default() -> Self {
        Self::new(STEPS_MAX)
    }
}

impl StepBudget {
    /// A budget of this many steps.
    pub(crate) fn new(steps_max: u64) -> Self {
        Self { steps_left: steps_max }
    }

    /// The steps spent so far, scaled so that all of them equal the cost limit.
    pub(crate) fn steps_spent_as_cost(&self) -> u64 {
        STEPS_MAX.saturating_sub(self.steps_left) / (STEPS_MAX / COST_LIMIT)
    }

    /// Spends steps. If too few are left, it spends none and fails.
    #[inline]
    pub(crate) fn spend_steps(&mut self, steps: usize) -> Result<(), EvalError> {
        let left = u64::try_from(steps).ok().and_then(|steps| self.steps_left.checked_sub(steps));
        self.steps_left = left.ok_or(EvalError::CostLimit)?;
        Ok(())
    }

    /// Spends the steps for reading a text of this length. Short texts such as names are free.
    #[inline]
    pub(crate) fn spend_for_text(&mut self, bytes: usize) -> Result<(), EvalError> {
        if bytes < TEXT_BYTES_PER_STEP {
            Ok(())
        } else {
            self.spend_steps(bytes / TEXT_BYTES_PER_STEP)
        }
    }

    /// Spends the steps for reading a value as far as the cost does not cover them: some functions
    /// read a whole text, or build a long text from short ones, for one unit of cost.
    #[inline]
    pub(crate) fn spend_for_value(&mut self, value: &Value<'_>) -> Result<(), EvalError> {
        match value {
            Value::String(text) => self.spend_for_text(text.as_str().len()),
            Value::Bytes(bytes) => self.spend_for_text(bytes.as_slice().len()),
            Value::Opaque(opaque) => self.spend_for_text(opaque.approx_text_len()),
            _ => Ok(()),
        }
    }

    /// Reports whether two values are equal; spends a step for each of their parts. Values that cannot be
    /// compared are unequal.
    pub(crate) fn equals_metered<'a>(
        &mut self,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<bool, EvalError> {
        self.compare_equality_metered(a, b).map(|equality| equality == EqualityResult::Equal)
    }

    /// Compares two values; spends a step for each of their parts.
    pub(crate) fn compare_equality_metered<'a>(
        &mut self,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<EqualityResult, EvalError> {
        a.equals_within_steps(b, &mut self.steps_left).ok_or(EvalError::CostLimit)
    }

    /// The index of the first element that equals a value.
    pub(crate) fn find_element_index_metered<'a>(
        &mut self,
        list: &List<'a>,
        sought: &Value<'a>,
    ) -> Result<Option<usize>, EvalError> {
        for (index, item) in list.iter().enumerate() {
            if self.equals_metered(sought, &item)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

/// All functions of an environment.
#[derive(Debug, Default)]
pub(crate) struct FunctionRegistry {
    functions_by_name: HashMap<&'static str, Function>,
}

/// A function and its overloads, in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
}

/// One signature of a function with its cost and implementation.
#[derive(Debug)]
pub(crate) struct Overload {
    /// cel-go's id, stable across implementations.
    pub(crate) id: &'static str,
    /// Whether the overload is called as `receiver.function(...)`, where the receiver is the first parameter.
    pub(crate) is_receiver_style: bool,
    pub(crate) param_types: Vec<Type>,
    pub(crate) result_type: Type,
    pub(crate) cost_formula: CostFormula,
    pub(crate) implementation: FunctionImpl,
    /// The implementation that replaces `implementation` during an evaluation. Constant folding has no step budget
    /// and uses `implementation`.
    pub(crate) metered_implementation: Option<MeteredFunctionImpl>,
}

/// The formula for the cost of a call, given arguments and result. Sizes are [`Value::size`], or 1
/// for values without a size. The factors are Kubernetes': a tenth per code point traversed, a
/// quarter per code point of a pattern, rounded up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CostFormula {
    /// Every call costs 1.
    Unit,
    /// ceil(size of argument n / 10)
    Scan(usize),
    /// ceil(2 × size of argument n / 10)
    ScanTwice(usize),
    /// ceil(2 × size of result / 10)
    ScanResultTwice,
    /// 11 + the size of the result, a new list.
    NewList,
    /// ceil(min(size of argument 0, size of argument 1) / 10)
    ScanShorter,
    /// ceil((size of argument 0 + size of argument 1) / 10)
    ScanBoth,
    /// ceil(size of argument 0 / 10) × ceil(size of argument 1 / 10)
    ScanProduct,
    /// The size of argument 1.
    SizeOfSecond,
    /// ceil((1 + size of argument 0) / 10) × ceil(size of argument 1 / 4)
    Regex,
    /// A deep traversal of argument 0: a tenth per byte of text rounded down, 1 per other leaf.
    Traverse,
    /// A function of the arguments.
    Custom(for<'a> fn(&[Value<'a>]) -> u64),
}

impl FunctionRegistry {
    /// Appends overloads to a function, which is created if it does not exist.
    pub(crate) fn add_overloads(&mut self, name: &'static str, overloads: Vec<Overload>) {
        self.functions_by_name
            .entry(name)
            .or_insert_with(|| Function { name, overloads: Vec::new() })
            .overloads
            .extend(overloads);
    }

    /// The function of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.functions_by_name.get(name)
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Function)> {
        self.functions_by_name.iter().map(|(name, function)| (*name, function))
    }
}

impl Overload {
    /// `name(params...) -> result`, cost 1.
    pub(crate) fn new_global_overload(
        id: &'static str,
        params: Vec<Type>,
        result: Type,
        implementation: FunctionImpl,
    ) -> Self {
        let cost = CostFormula::Unit;
        Self {
            id,
            is_receiver_style: false,
            param_types: params,
            result_type: result,
            cost_formula: cost,
            implementation,
            metered_implementation: None,
        }
    }

    /// `params[0].name(params[1..]...) -> result`, cost 1.
    pub(crate) fn new_member_overload(
        id: &'static str,
        params: Vec<Type>,
        result: Type,
        implementation: FunctionImpl,
    ) -> Self {
        let cost = CostFormula::Unit;
        Self {
            id,
            is_receiver_style: true,
            param_types: params,
            result_type: result,
            cost_formula: cost,
            implementation,
            metered_implementation: None,
        }
    }

    /// The same overload with an implementation that charges a step budget.
    pub(crate) fn with_metered_implementation(
        mut self,
        implementation: MeteredFunctionImpl,
    ) -> Self {
        self.metered_implementation = Some(implementation);
        self
    }

    /// The same overload with another cost.
    pub(crate) fn with_cost_formula(mut self, cost: CostFormula) -> Self {
        self.cost_formula = cost;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_budget_ends_work() {
        let all = usize::try_from(STEPS_MAX).unwrap();
        assert_eq!(StepBudget::default().spend_steps(all), Ok(()));
        let mut step_budget = StepBudget::default();
        assert_eq!(step_budget.spend_steps(all + 1), Err(EvalError::CostLimit));
        // The failed call spent nothing.
        assert_eq!(step_budget.spend_steps(all), Ok(()));
        assert_eq!(step_budget.spend_steps(1), Err(EvalError::CostLimit));
    }

    #[test]
    fn text_is_charged_by_its_length_unless_it_is_short() {
        let mut step_budget = StepBudget { steps_left: 1 };
        assert_eq!(
            step_budget
                .spend_for_value(&Value::borrowed_string(&"x".repeat(TEXT_BYTES_PER_STEP - 1))),
            Ok(())
        );
        assert_eq!(
            step_budget.spend_for_value(&Value::borrowed_string(&"x".repeat(TEXT_BYTES_PER_STEP))),
            Ok(())
        );
        assert_eq!(step_budget.steps_left, 0);
        let long = "x".repeat(TEXT_BYTES_PER_STEP);
        assert_eq!(
            step_budget.spend_for_value(&Value::borrowed_string(&long)),
            Err(EvalError::CostLimit)
        );
    }

    #[test]
    fn comparison_charges_a_step_per_element() {
        let list = Value::owned_list_value(vec![Value::Int(1), Value::Int(2)]);
        let mut step_budget = StepBudget { steps_left: 3 };
        assert_eq!(step_budget.equals_metered(&list, &list), Ok(true));
        assert_eq!(step_budget.steps_left, 0);
        assert_eq!(step_budget.equals_metered(&list, &list), Err(EvalError::CostLimit));
    }
}
