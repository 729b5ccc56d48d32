//! Evaluation: a walk over the compiled form that borrows the variables and the program.
//!
//! Every step charges what the same step costs in Kubernetes. Errors travel as `Err`; the places
//! that absorb them (`&&`, `||`, conditions of loops) are the only ones that look inside.

mod attribute;
mod call;
mod comprehension;

use crate::cost;
use crate::function::{Failure, Outcome, Work};
use crate::ir::{ConstantSet, Entry, Expr, MessageExpr};
use crate::value::{Equality, List, Map, OwnedMap, Record, Str, Value};

/// The state of one evaluation.
pub(crate) struct Evaluator<'s, 'a> {
    /// The values of the environment's variables, in its order.
    variables: &'a [Value<'a>],
    /// The values of local variables.
    slots: &'s mut [Slot<'a>],
    cost: u64,
    limit: u64,
    work: Work,
}

/// A local variable.
#[derive(Debug, Clone)]
pub(crate) enum Slot<'a> {
    /// Its value; an accumulator may hold an error.
    Known(Outcome<'a>),
    /// The start of an accumulator, evaluated when it is first read.
    Pending(&'a Expr),
}

impl Slot<'_> {
    /// What a slot holds before its loop begins.
    pub(crate) const EMPTY: Self = Self::Known(Ok(Value::Null));
}

impl<'s, 'a> Evaluator<'s, 'a> {
    #[inline]
    pub(crate) fn new(variables: &'a [Value<'a>], slots: &'s mut [Slot<'a>], limit: u64) -> Self {
        Self { variables, slots, cost: 0, limit, work: Work::default() }
    }

    /// What has been charged so far.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// What has been charged so far and the other work, each in units of cost.
    pub(crate) fn effort(&self) -> u64 {
        self.cost.saturating_add(self.work.as_cost())
    }

    /// The value of a local variable.
    #[inline]
    fn local(&mut self, slot: usize) -> Outcome<'a> {
        match &self.slots[slot] {
            Slot::Known(outcome) => outcome.clone(),
            Slot::Pending(init) => {
                let outcome = self.value(init);
                self.slots[slot] = Slot::Known(outcome.clone());
                outcome
            }
        }
    }

    /// Takes the value of an accumulator, which is about to be replaced.
    fn take(&mut self, slot: usize) -> Outcome<'a> {
        match std::mem::replace(&mut self.slots[slot], Slot::EMPTY) {
            Slot::Known(outcome) => outcome,
            Slot::Pending(init) => self.value(init),
        }
    }

    #[inline]
    fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Failure::CostLimit) } else { Ok(()) }
    }

    /// The value of an expression.
    pub(crate) fn value(&mut self, expr: &'a Expr) -> Outcome<'a> {
        match expr {
            Expr::Const(value) => Ok(borrowed(value)),
            Expr::Attr(attr) => self.attribute(attr),
            Expr::Call(call) => self.call(call).and_then(bounded),
            Expr::Regex(call) => self.regex(call),
            Expr::OptionalOr { sides, unwrap } => self.optional_or(sides, *unwrap),
            Expr::List { elements, optional } => self.list(elements, optional).and_then(bounded),
            Expr::Map(entries) => self.map(entries).and_then(bounded),
            Expr::Message(message) => self.message(message),
            Expr::Fold(fold) => self.fold(fold),
            Expr::Append { slot, element, list_cost } => {
                self.append(*slot, element, *list_cost).and_then(bounded)
            }
            Expr::Insert { slot, args } => self.insert(*slot, args).and_then(bounded),
            Expr::Quick(_)
            | Expr::Has(_)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::Equal { .. }
            | Expr::Member { .. }
            | Expr::Quantifier(_) => self.bool(expr).map(Value::Bool),
        }
    }

    /// The value of an expression where only a bool will do.
    pub(crate) fn bool(&mut self, expr: &'a Expr) -> Result<bool, Failure> {
        match expr {
            Expr::Quick(quick) => match quick.answer(records(self.variables), self.slots) {
                Some((outcome, cost)) => self.charge(cost).map(|()| outcome),
                None => self.bool(&quick.general),
            },
            Expr::Has(attr) => self.has(attr),
            Expr::And(terms) => self.all_of(terms),
            Expr::Or(terms) => self.any_of(terms),
            Expr::Not(operand) => {
                let operand = self.bool(operand);
                if !operand.as_ref().is_err_and(Failure::is_final) {
                    self.charge(1)?;
                }
                operand.map(|b| !b)
            }
            Expr::Equal { sides, negated } => self.equal(&sides[0], &sides[1], *negated),
            Expr::Member { item, set } => Ok(set.contains(&self.value(item)?)),
            Expr::Quantifier(quantifier) => self.quantifier(quantifier),
            // A call that has a quick form comes here when that form declines.
            other => match self.value(other)? {
                Value::Bool(b) => Ok(b),
                _ => Err(Failure::no_such_overload()),
            },
        }
    }

    fn all_of(&mut self, terms: &'a [Expr]) -> Result<bool, Failure> {
        let mut failure = None;
        for term in terms {
            match self.bool(term) {
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(end) if end.is_final() => return Err(end),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(true), Err)
    }

    fn any_of(&mut self, terms: &'a [Expr]) -> Result<bool, Failure> {
        let mut failure = None;
        for term in terms {
            match self.bool(term) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(end) if end.is_final() => return Err(end),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(false), Err)
    }

    /// `left == right`, or `left != right` when `negated`: both sides are evaluated even when the
    /// first one fails.
    fn equal(&mut self, left: &'a Expr, right: &'a Expr, negated: bool) -> Result<bool, Failure> {
        let left = self.argument(left)?;
        let right = self.argument(right)?;
        self.charge(cost::equality(left.as_ref().ok(), right.as_ref().ok(), negated))?;
        // Cost counts the outermost list alone, and equal parts may be shared many times over.
        match self.work.compare(&left?, &right?)? {
            Equality::Yes => Ok(!negated),
            Equality::No => Ok(negated),
            // The types of the Kubernetes libraries refuse to be compared with other types.
            Equality::Refused if negated => Ok(true),
            Equality::Refused => Err(Failure::no_such_overload()),
        }
    }

    /// An argument whose error must not stop the evaluation of the arguments after it; only the
    /// end of the evaluation does.
    #[inline]
    fn argument(&mut self, expr: &'a Expr) -> Result<Outcome<'a>, Failure> {
        match self.value(expr) {
            Err(end) if end.is_final() => Err(end),
            outcome => Ok(outcome),
        }
    }

    fn optional_or(&mut self, sides: &'a [Expr; 2], unwrap: bool) -> Outcome<'a> {
        match self.value(&sides[0])? {
            Value::Optional(Some(inner)) if unwrap => Ok((*inner).clone()),
            Value::Optional(None) => self.value(&sides[1]),
            optional @ Value::Optional(Some(_)) => Ok(optional),
            _ => Err(Failure::no_such_overload()),
        }
    }

    fn list(&mut self, elements: &'a [Expr], optional: &[bool]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let value = match self.argument(element)? {
                Ok(value) => value,
                Err(error) => return self.failed_literal(cost::LIST, error),
            };
            if !optional.get(index).copied().unwrap_or(false) {
                values.push(value);
                continue;
            }
            match value {
                Value::Optional(None) => {}
                Value::Optional(Some(inner)) => values.push((*inner).clone()),
                other => {
                    let error = Failure::new(format!(
                        "cannot initialize optional list element from non-optional value {other}"
                    ));
                    return self.failed_literal(cost::LIST, error);
                }
            }
        }
        self.charge(cost::LIST)?;
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &'a [Entry]) -> Outcome<'a> {
        let mut map = OwnedMap::new();
        for entry in entries {
            let key = match self.argument(&entry.key)? {
                Ok(key) => key,
                Err(error) => return self.failed_literal(cost::MAP, error),
            };
            self.work.spend_on(&key)?;
            let value = match self.argument(&entry.value)? {
                Ok(value) => value,
                Err(error) => return self.failed_literal(cost::MAP, error),
            };
            match (value, entry.optional) {
                (value, false) => map.set(key, value),
                (Value::Optional(None), true) => map.remove(&key),
                (Value::Optional(Some(inner)), true) => map.set(key, (*inner).clone()),
                (other, true) => {
                    let error = Failure::new(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {other}"
                    ));
                    return self.failed_literal(cost::MAP, error);
                }
            }
        }
        self.charge(cost::MAP)?;
        Ok(Value::Map(Map::owned(map)))
    }

    fn message(&mut self, message: &'a MessageExpr) -> Outcome<'a> {
        let mut fields: Vec<(&str, Value<'a>)> = Vec::with_capacity(message.fields.len());
        for (name, expr, optional) in &message.fields {
            let value = match self.argument(expr)? {
                Ok(value) => value,
                Err(error) => return self.failed_literal(cost::MESSAGE, error),
            };
            match (value, optional) {
                (value, false) => fields.push((name, value)),
                (Value::Optional(None), true) => fields.retain(|(field, _)| *field != &**name),
                (Value::Optional(Some(inner)), true) => fields.push((name, (*inner).clone())),
                (other, true) => {
                    let error = Failure::new(format!(
                        "cannot initialize optional entry '{name}' from non-optional value {other}"
                    ));
                    return self.failed_literal(cost::MESSAGE, error);
                }
            }
        }
        self.charge(cost::MESSAGE)?;
        match message.message {
            Some(kind) => kind.make(&fields),
            None => Err(Failure::new(format!("unknown type '{}'", message.name))),
        }
    }

    /// A literal costs the same when making it fails.
    fn failed_literal(&mut self, cost: u64, error: Failure) -> Outcome<'a> {
        self.charge(cost)?;
        Err(error)
    }
}

/// How deep values may be nested in each other. Walks over values recurse, and loops can nest
/// values deeper than any text.
const VALUE_DEPTH_MAX: u32 = 1_000;

/// Refuses a value that is nested too deep.
#[inline]
fn bounded(value: Value<'_>) -> Outcome<'_> {
    if value.depth() > VALUE_DEPTH_MAX {
        return Err(Failure::new(format!("value nesting limit exceeded: {VALUE_DEPTH_MAX}")));
    }
    Ok(value)
}

/// The records among variables, by number.
fn records<'a>(variables: &'a [Value<'a>]) -> impl Fn(usize) -> Option<&'a dyn Record> {
    |index| match variables.get(index) {
        Some(Value::Map(Map::Record(record))) => Some(*record),
        _ => None,
    }
}

/// A constant of the program as a value that borrows it.
#[inline]
pub(crate) fn borrowed<'a>(constant: &'a Value<'static>) -> Value<'a> {
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
            (_, Value::String(item)) => self.contains_text(item.as_str()),
            (Self::FewStrings(_) | Self::ManyStrings(_), _) => false,
        }
    }

    #[inline]
    pub(crate) fn contains_text(&self, item: &str) -> bool {
        match self {
            Self::FewStrings(texts) => texts.iter().any(|text| **text == *item),
            Self::ManyStrings(texts) => texts.contains(item),
            Self::Values(values) => values
                .iter()
                .any(|value| matches!(value, Value::String(text) if text.as_str() == item)),
        }
    }
}
