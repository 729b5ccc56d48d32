//! Evaluates comprehensions: the general fold, `exists` and `all`, and in-place accumulation.

use std::sync::Arc;

use super::{Evaluator, LocalSlot};
use crate::function::{EvalError, EvalResult};
use crate::ir::{CompiledExpr, FoldExpr, QuantifierExpr};
use crate::library::map_insert;
use crate::value::{List, Map, OwnedMap, Value};

/// The range that a loop iterates over.
enum LoopRange<'a> {
    List(List<'a>),
    Map(Vec<(Value<'a>, Value<'a>)>),
    /// A map that the evaluation created. It is not copied, because a loop may end after one iteration.
    OwnedMap(Arc<OwnedMap<'a>>),
}

impl<'a> LoopRange<'a> {
    fn new(value: Value<'a>, two_variables: bool) -> Result<Self, EvalError> {
        match value {
            Value::List(list) => Ok(Self::List(list)),
            Value::Map(Map::Owned(map)) => Ok(Self::OwnedMap(map)),
            Value::Map(map) => Ok(Self::Map(map.iter().collect())),
            other if two_variables => Err(EvalError::new(format!(
                "unsupported comprehension range type: {}",
                other.go_type_name()
            ))),
            other => Err(EvalError::new(format!(
                "got '{}', expected iterable type",
                other.go_type_name()
            ))),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Map(entries) => entries.len(),
            Self::OwnedMap(map) => map.map_entries().len(),
        }
    }

    /// The value of the only loop variable at a position: the element or the key.
    #[inline]
    fn loop_variable_at(&self, position: usize) -> Value<'a> {
        match self {
            Self::List(list) => list.get(position).unwrap_or(Value::Null),
            Self::Map(entries) => map_key_at(entries, position),
            Self::OwnedMap(map) => map_key_at(map.map_entries(), position),
        }
    }

    /// The two loop variables at a position: index and element, or key and value.
    fn loop_variable_pair_at(&self, position: usize) -> (Value<'a>, Value<'a>) {
        match self {
            Self::List(list) => {
                (Value::Int(position as i64), list.get(position).unwrap_or(Value::Null))
            }
            Self::Map(entries) => map_entry_at(entries, position),
            Self::OwnedMap(map) => map_entry_at(map.map_entries(), position),
        }
    }
}

/// The key of the entry at a position before the end.
fn map_key_at<'a>(entries: &[(Value<'a>, Value<'a>)], position: usize) -> Value<'a> {
    entries.get(position).map_or(Value::Null, |(key, _)| key.clone())
}

/// The key and the value of the entry at a position before the end.
fn map_entry_at<'a>(entries: &[(Value<'a>, Value<'a>)], position: usize) -> (Value<'a>, Value<'a>) {
    entries.get(position).cloned().unwrap_or((Value::Null, Value::Null))
}

impl<'a> Evaluator<'_, 'a> {
    /// Sets the loop variables for a position.
    #[inline]
    fn bind_loop_variables(
        &mut self,
        range: &LoopRange<'a>,
        at: usize,
        first_variable_slot: usize,
        second_variable_slot: Option<usize>,
    ) {
        match second_variable_slot {
            None => {
                let value = range.loop_variable_at(at);
                self.set_local_variable(first_variable_slot, LocalSlot::Known(Ok(value)));
            }
            Some(second_variable_slot) => {
                let (first, second) = range.loop_variable_pair_at(at);
                self.set_local_variable(first_variable_slot, LocalSlot::Known(Ok(first)));
                self.set_local_variable(second_variable_slot, LocalSlot::Known(Ok(second)));
            }
        }
    }

    pub(super) fn evaluate_fold(&mut self, fold: &'a FoldExpr) -> EvalResult<'a> {
        let range = self.evaluate_expression(&fold.iter_range)?;
        let range = LoopRange::new(range, fold.second_variable_slot.is_some())?;
        self.set_local_variable(fold.accumulator_slot, LocalSlot::Pending(&fold.accumulator_init));
        for position in 0..range.len() {
            self.bind_loop_variables(
                &range,
                position,
                fold.first_variable_slot,
                fold.second_variable_slot,
            );
            if let Ok(Value::Bool(false)) = self.evaluate_argument(&fold.loop_condition)? {
                break;
            }
            let next = self.evaluate_argument(&fold.loop_step)?;
            self.set_local_variable(fold.accumulator_slot, LocalSlot::Known(next));
        }
        self.evaluate_expression(&fold.result_expr)
    }

    /// Evaluates `exists` and `all`. Each iteration costs as much as one of the macro expansion: 2
    /// for reading and testing the accumulator, 1 more for the negation in `exists`, and 1 for
    /// reading the accumulator again.
    pub(super) fn evaluate_quantifier(
        &mut self,
        quantifier: &'a QuantifierExpr,
    ) -> Result<bool, EvalError> {
        let stops_at = quantifier.stopping_value;
        let condition_cost = if stops_at { 3 } else { 2 };
        let range = self.evaluate_expression(&quantifier.iter_range)?;
        let range = LoopRange::new(range, quantifier.second_variable_slot.is_some())?;
        let mut outcome = Ok(!stops_at);
        for position in 0..range.len() {
            self.bind_loop_variables(
                &range,
                position,
                quantifier.first_variable_slot,
                quantifier.second_variable_slot,
            );
            self.charge_cost(condition_cost)?;
            if outcome == Ok(stops_at) {
                break;
            }
            self.charge_cost(1)?;
            match self.evaluate_bool(&quantifier.predicate) {
                Ok(found) if found == stops_at => outcome = Ok(stops_at),
                Ok(_) => {}
                Err(end) if end.ends_evaluation() => return Err(end),
                Err(error) => {
                    if outcome.is_ok() {
                        outcome = Err(error);
                    }
                }
            }
        }
        self.charge_cost(1)?;
        outcome
    }

    /// Evaluates `accumulator + [element]` in place. It costs as much as reading the accumulator,
    /// creating a list of one element, and adding the lists.
    pub(super) fn append_to_accumulator(
        &mut self,
        slot: usize,
        element: &'a CompiledExpr,
        list: u64,
    ) -> EvalResult<'a> {
        let element = self.evaluate_argument(element)?;
        self.charge_cost(1 + list + 1)?;
        match self.take_accumulator(slot) {
            Ok(Value::List(List::Owned(mut list))) => {
                Arc::make_mut(&mut list).push(element?);
                Ok(Value::List(List::Owned(list)))
            }
            Ok(Value::List(list)) => {
                let items: Vec<Value<'a>> = list.iter().chain([element?]).collect();
                Ok(Value::owned_list_value(items))
            }
            Ok(_) => Err(EvalError::no_such_overload()),
            Err(error) => Err(error),
        }
    }

    /// Evaluates `cel.@mapInsert(accumulator, key, value)` or `cel.@mapInsert(accumulator, map)` in
    /// place.
    pub(super) fn insert_into_accumulator(
        &mut self,
        slot: usize,
        args: &'a [CompiledExpr],
    ) -> EvalResult<'a> {
        self.charge_cost(1)?;
        let failed = match self.local_slots.get(slot) {
            Some(LocalSlot::Known(Err(error))) => Some(error.clone()),
            Some(LocalSlot::Known(Ok(_)) | LocalSlot::Pending(_)) | None => None,
        };
        // If the accumulator is an error, a call with two arguments still evaluates the second one,
        // but a call with three arguments does not evaluate the others.
        let entries = match (args, failed) {
            ([_, _], Some(error)) => return Err(error),
            ([key, value], None) => {
                let key = self.evaluate_expression(key)?;
                let value = self.evaluate_argument(value)?;
                self.charge_cost(1)?;
                vec![(key, value?)]
            }
            ([map], failed) => {
                let map = self.evaluate_argument(map)?;
                self.charge_cost(1)?;
                if let Some(error) = failed {
                    return Err(error);
                }
                match map? {
                    Value::Map(map) => map.iter().collect(),
                    _ => return Err(EvalError::no_such_overload()),
                }
            }
            _ => return Err(EvalError::no_such_overload()),
        };
        match self.take_accumulator(slot) {
            Ok(Value::Map(Map::Owned(mut map))) => {
                for (key, value) in entries {
                    map_insert::insert_new_key(Arc::make_mut(&mut map), key, value)?;
                }
                Ok(Value::Map(Map::Owned(map)))
            }
            Ok(_) => Err(EvalError::no_such_overload()),
            Err(error) => Err(error),
        }
    }
}
