//! Evaluation: a walk over the compiled form that borrows the variables and the program.
//!
//! Every step charges what the same step costs in Kubernetes. Errors are returned as `Err`; only
//! `&&`, `||` and loop conditions inspect and absorb them.

mod attribute_evaluation;
mod call_evaluation;
mod comprehension_evaluation;

use crate::cost;
use crate::function::{EvalError, EvalResult, StepBudget};
use crate::ir::{Attribute, AttributeRoot, CompiledExpr, ConstantSet, MapEntryExpr, MessageExpr};
use crate::value::{EqualityResult, List, Map, OwnedMap, RecordSource, Str, Value};

/// The state of one evaluation.
pub(crate) struct Evaluator<'s, 'a> {
    /// The values of the environment's variables, in its order.
    variables: &'a [Value<'a>],
    /// The values of local variables.
    local_slots: &'s mut [LocalSlot<'a>],
    charged_cost: u64,
    cost_limit: u64,
    step_budget: StepBudget,
}

/// The content of a local variable of a comprehension.
#[derive(Debug, Clone)]
pub(crate) enum LocalSlot<'a> {
    /// The value of the variable. An accumulator may hold an error.
    Known(EvalResult<'a>),
    /// The initial value of an accumulator, evaluated on the first read.
    Pending(&'a CompiledExpr),
}

impl LocalSlot<'_> {
    /// The content of a slot before its loop begins.
    pub(crate) const EMPTY: Self = Self::Known(Ok(Value::Null));
}

impl<'s, 'a> Evaluator<'s, 'a> {
    #[inline]
    pub(crate) fn new(
        variables: &'a [Value<'a>],
        slots: &'s mut [LocalSlot<'a>],
        cost_limit: u64,
    ) -> Self {
        Self {
            variables,
            local_slots: slots,
            charged_cost: 0,
            cost_limit,
            step_budget: StepBudget::default(),
        }
    }

    /// The cost charged so far.
    pub(crate) fn charged_cost(&self) -> u64 {
        self.charged_cost
    }

    /// The cost charged so far plus the steps spent, both in units of cost.
    pub(crate) fn total_cost(&self) -> u64 {
        self.charged_cost.saturating_add(self.step_budget.steps_spent_as_cost())
    }

    /// The value of a local variable.
    #[inline]
    fn read_local_variable(&mut self, slot: usize) -> EvalResult<'a> {
        match self.local_slots.get(slot) {
            Some(LocalSlot::Known(outcome)) => outcome.clone(),
            Some(LocalSlot::Pending(init)) => {
                let outcome = self.evaluate_expression(init);
                self.set_local_variable(slot, LocalSlot::Known(outcome.clone()));
                outcome
            }
            None => Err(missing_slot_error()),
        }
    }

    /// The value of an attribute that is a local variable with an integer.
    #[inline]
    fn read_local_int(&self, attr: &Attribute) -> Option<i64> {
        let AttributeRoot::Slot(slot) = attr.attribute_root else { return None };
        match self.local_slots.get(slot) {
            Some(LocalSlot::Known(Ok(Value::Int(number)))) if attr.qualifiers.is_empty() => {
                Some(*number)
            }
            _ => None,
        }
    }

    /// Sets a local variable. The planner counts the slots, so each one exists.
    #[inline]
    fn set_local_variable(&mut self, slot: usize, content: LocalSlot<'a>) {
        if let Some(place) = self.local_slots.get_mut(slot) {
            *place = content;
        }
    }

    /// Moves the value out of an accumulator that is about to be replaced.
    fn take_accumulator(&mut self, slot: usize) -> EvalResult<'a> {
        match self.local_slots.get_mut(slot).map(|place| std::mem::replace(place, LocalSlot::EMPTY))
        {
            Some(LocalSlot::Known(outcome)) => outcome,
            Some(LocalSlot::Pending(init)) => self.evaluate_expression(init),
            None => Err(missing_slot_error()),
        }
    }

    #[inline]
    fn charge_cost(&mut self, cost: u64) -> Result<(), EvalError> {
        self.charged_cost = self.charged_cost.saturating_add(cost);
        if self.charged_cost > self.cost_limit { Err(EvalError::CostLimit) } else { Ok(()) }
    }

    /// The value of an expression.
    pub(crate) fn evaluate_expression(&mut self, expr: &'a CompiledExpr) -> EvalResult<'a> {
        match expr {
            CompiledExpr::Const(value) => Ok(borrow_constant(value)),
            CompiledExpr::Attr(attr) => match self.read_local_int(attr) {
                Some(number) => self.charge_cost(1).map(|()| Value::Int(number)),
                None => self.evaluate_attribute(attr),
            },
            CompiledExpr::Call(call) => self.evaluate_call(call).and_then(check_value_depth),
            CompiledExpr::Regex(call) => self.evaluate_regex(call),
            CompiledExpr::OptionalOr { sides, unwrap } => self.evaluate_optional_or(sides, *unwrap),
            CompiledExpr::List { elements, is_optional } => {
                self.evaluate_list_literal(elements, is_optional).and_then(check_value_depth)
            }
            CompiledExpr::Map(entries) => {
                self.evaluate_map_literal(entries).and_then(check_value_depth)
            }
            CompiledExpr::Message(message) => self.evaluate_message_literal(message),
            CompiledExpr::Fold(fold) => self.evaluate_fold(fold),
            CompiledExpr::Append { slot, element, list_cost } => {
                self.append_to_accumulator(*slot, element, *list_cost).and_then(check_value_depth)
            }
            CompiledExpr::Insert { slot, args } => {
                self.insert_into_accumulator(*slot, args).and_then(check_value_depth)
            }
            CompiledExpr::FastPath(_)
            | CompiledExpr::Has(_)
            | CompiledExpr::And(_)
            | CompiledExpr::Or(_)
            | CompiledExpr::Not(_)
            | CompiledExpr::Equal { .. }
            | CompiledExpr::Member { .. }
            | CompiledExpr::Quantifier(_) => self.evaluate_bool(expr).map(Value::Bool),
        }
    }

    /// Evaluates an expression that must yield a bool.
    pub(crate) fn evaluate_bool(&mut self, expr: &'a CompiledExpr) -> Result<bool, EvalError> {
        match expr {
            CompiledExpr::FastPath(fast_path) => {
                let variables = self.variables;
                let resolve_containing_record = |index| find_record_variable(variables, index);
                match fast_path.try_evaluate_fast_path(resolve_containing_record, self.local_slots)
                {
                    Some((outcome, cost)) => self.charge_cost(cost).map(|()| outcome),
                    None => self.evaluate_bool(&fast_path.fallback_expr),
                }
            }
            CompiledExpr::Has(attr) => self.evaluate_has(attr),
            CompiledExpr::And(terms) => self.evaluate_and(terms),
            CompiledExpr::Or(terms) => self.evaluate_or(terms),
            CompiledExpr::Not(operand) => {
                let operand = self.evaluate_bool(operand);
                if !operand.as_ref().is_err_and(EvalError::ends_evaluation) {
                    self.charge_cost(1)?;
                }
                operand.map(|b| !b)
            }
            CompiledExpr::Equal { sides, negated } => {
                let [left, right] = &**sides;
                self.evaluate_equality(left, right, *negated)
            }
            CompiledExpr::Member { item, set } => {
                Ok(set.contains(&self.evaluate_expression(item)?))
            }
            CompiledExpr::Quantifier(quantifier) => self.evaluate_quantifier(quantifier),
            // A call with a fast path gets here if the fast path does not apply.
            other => match self.evaluate_expression(other)? {
                Value::Bool(b) => Ok(b),
                _ => Err(EvalError::no_such_overload()),
            },
        }
    }

    fn evaluate_and(&mut self, terms: &'a [CompiledExpr]) -> Result<bool, EvalError> {
        let mut failure = None;
        for term in terms {
            match self.evaluate_bool(term) {
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(end) if end.ends_evaluation() => return Err(end),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(true), Err)
    }

    fn evaluate_or(&mut self, terms: &'a [CompiledExpr]) -> Result<bool, EvalError> {
        let mut failure = None;
        for term in terms {
            match self.evaluate_bool(term) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(end) if end.ends_evaluation() => return Err(end),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(false), Err)
    }

    /// Evaluates `left == right`, or `left != right` if `negated`. Both sides are evaluated even if the first one
    /// fails.
    fn evaluate_equality(
        &mut self,
        left: &'a CompiledExpr,
        right: &'a CompiledExpr,
        negated: bool,
    ) -> Result<bool, EvalError> {
        let left = self.evaluate_argument(left)?;
        let right = self.evaluate_argument(right)?;
        self.charge_cost(cost::equality_cost(left.as_ref().ok(), right.as_ref().ok(), negated))?;
        // The cost covers the outermost list only, and a value can contain the same element many
        // times over.
        match self.step_budget.compare_equality_metered(&left?, &right?)? {
            EqualityResult::Equal => Ok(!negated),
            EqualityResult::Unequal => Ok(negated),
            // Values of the Kubernetes libraries cannot be compared with other types.
            EqualityResult::Incomparable if negated => Ok(true),
            EqualityResult::Incomparable => Err(EvalError::no_such_overload()),
        }
    }

    /// Evaluates an argument whose error must not prevent the evaluation of later arguments. The
    /// outer error ends the evaluation.
    #[inline]
    fn evaluate_argument(&mut self, expr: &'a CompiledExpr) -> Result<EvalResult<'a>, EvalError> {
        match self.evaluate_expression(expr) {
            Err(end) if end.ends_evaluation() => Err(end),
            outcome => Ok(outcome),
        }
    }

    fn evaluate_optional_or(
        &mut self,
        sides: &'a [CompiledExpr; 2],
        unwrap: bool,
    ) -> EvalResult<'a> {
        let [optional, otherwise] = sides;
        match self.evaluate_expression(optional)? {
            Value::Optional(Some(inner)) if unwrap => Ok((*inner).clone()),
            Value::Optional(None) => self.evaluate_expression(otherwise),
            optional @ Value::Optional(Some(_)) => Ok(optional),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    fn evaluate_list_literal(
        &mut self,
        elements: &'a [CompiledExpr],
        is_optional: &[bool],
    ) -> EvalResult<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let value = match self.evaluate_argument(element)? {
                Ok(value) => value,
                Err(error) => return self.charge_failed_literal(cost::LIST_CREATION, error),
            };
            if !is_optional.get(index).copied().unwrap_or(false) {
                values.push(value);
                continue;
            }
            match value {
                Value::Optional(None) => {}
                Value::Optional(Some(inner)) => values.push((*inner).clone()),
                other => {
                    let error = EvalError::new(format!(
                        "cannot initialize optional list element from non-optional value {other}"
                    ));
                    return self.charge_failed_literal(cost::LIST_CREATION, error);
                }
            }
        }
        self.charge_cost(cost::LIST_CREATION)?;
        Ok(Value::owned_list_value(values))
    }

    fn evaluate_map_literal(&mut self, entries: &'a [MapEntryExpr]) -> EvalResult<'a> {
        let mut map = OwnedMap::new();
        for entry in entries {
            let key = match self.evaluate_argument(&entry.key)? {
                Ok(key) => key,
                Err(error) => return self.charge_failed_literal(cost::MAP_CREATION, error),
            };
            self.step_budget.spend_for_value(&key)?;
            let value = match self.evaluate_argument(&entry.value)? {
                Ok(value) => value,
                Err(error) => return self.charge_failed_literal(cost::MAP_CREATION, error),
            };
            match (value, entry.is_optional_entry) {
                (value, false) => map.set(key, value),
                (Value::Optional(None), true) => map.remove(&key),
                (Value::Optional(Some(inner)), true) => map.set(key, (*inner).clone()),
                (other, true) => {
                    let error = EvalError::new(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {other}"
                    ));
                    return self.charge_failed_literal(cost::MAP_CREATION, error);
                }
            }
        }
        self.charge_cost(cost::MAP_CREATION)?;
        Ok(Value::Map(Map::from_owned_map(map)))
    }

    fn evaluate_message_literal(&mut self, message: &'a MessageExpr) -> EvalResult<'a> {
        let mut fields: Vec<(&str, Value<'a>)> = Vec::with_capacity(message.field_exprs.len());
        for (name, expr, optional) in &message.field_exprs {
            let value = match self.evaluate_argument(expr)? {
                Ok(value) => value,
                Err(error) => return self.charge_failed_literal(cost::MESSAGE_CREATION, error),
            };
            match (value, optional) {
                (value, false) => fields.push((name, value)),
                (Value::Optional(None), true) => fields.retain(|(field, _)| *field != &**name),
                (Value::Optional(Some(inner)), true) => fields.push((name, (*inner).clone())),
                (other, true) => {
                    let error = EvalError::new(format!(
                        "cannot initialize optional entry '{name}' from non-optional value {other}"
                    ));
                    return self.charge_failed_literal(cost::MESSAGE_CREATION, error);
                }
            }
        }
        self.charge_cost(cost::MESSAGE_CREATION)?;
        match message.message {
            Some(kind) => kind.build_message_value(&fields),
            None => Err(EvalError::new(format!("unknown type '{}'", message.name))),
        }
    }

    /// Charges a literal whose construction failed. It costs as much as a literal whose construction succeeds.
    fn charge_failed_literal(&mut self, cost: u64, error: EvalError) -> EvalResult<'a> {
        self.charge_cost(cost)?;
        Err(error)
    }
}

/// The error for a local variable without a slot, which the planner rules out.
#[cold]
fn missing_slot_error() -> EvalError {
    EvalError::new("no such attribute(s)")
}

/// The deepest nesting of values. Functions over values recurse, and loops can nest values deeper
/// than any source text.
const VALUE_DEPTH_MAX: u32 = 1_000;

/// Returns an error for a value that is nested too deep.
#[inline]
fn check_value_depth(value: Value<'_>) -> EvalResult<'_> {
    if value.nesting_depth() > VALUE_DEPTH_MAX {
        return Err(EvalError::new(format!("value nesting limit exceeded: {VALUE_DEPTH_MAX}")));
    }
    Ok(value)
}

/// Returns the variable at an index if it is a record.
#[inline]
fn find_record_variable<'a>(
    variables: &'a [Value<'a>],
    index: usize,
) -> Option<&'a dyn RecordSource> {
    match variables.get(index) {
        Some(Value::Map(Map::Record(record))) => Some(*record),
        _ => None,
    }
}

/// A constant of the program as a value that borrows it.
#[inline]
pub(crate) fn borrow_constant<'a>(constant: &'a Value<'static>) -> Value<'a> {
    match constant {
        Value::String(text) => Value::String(Str::Borrowed(text.as_str())),
        Value::List(List::Owned(list)) => Value::List(List::Constant(list)),
        other => other.clone(),
    }
}

impl ConstantSet {
    fn contains(&self, item: &Value<'_>) -> bool {
        match (self, item) {
            (Self::Values(values), item) => values.iter().any(|value| item.equals(value)),
            (_, Value::String(item)) => self.contains_str(item.as_str()),
            (Self::FewStrings(_) | Self::ManyStrings(_), _) => false,
        }
    }

    #[inline]
    pub(crate) fn contains_str(&self, item: &str) -> bool {
        match self {
            Self::FewStrings(texts) => texts.iter().any(|text| **text == *item),
            Self::ManyStrings(texts) => texts.contains(item),
            Self::Values(values) => values
                .iter()
                .any(|value| matches!(value, Value::String(text) if text.as_str() == item)),
        }
    }
}
