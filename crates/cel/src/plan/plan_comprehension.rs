//! Plans comprehensions: the general fold, and the expansions of macros that have a faster form.

use std::sync::Arc;

use super::Planner;
use crate::ast::{Comprehension, ExprKind, Literal, NodeId};
use crate::cost;
use crate::ir::{Attribute, AttributeRoot, CompiledExpr, FoldExpr, QuantifierExpr};
use crate::program::ProgramError;
use crate::string_predicate_fast_path::with_fast_path;
use crate::value::{List, Value};

impl Planner<'_> {
    pub(super) fn plan_comprehension(
        &mut self,
        fold: &Comprehension,
    ) -> Result<CompiledExpr, ProgramError> {
        let init = self.plan_node(fold.accu_init)?;
        let range = self.plan_node(fold.iter_range)?;
        let depth = self.local_slots.len();
        let accumulator = self.allocate_local_slot(&fold.accu_var);
        let first = self.allocate_local_slot(&fold.iter_var);
        let second = fold.iter_var2.as_ref().map(|name| self.allocate_local_slot(name));
        let condition = self.plan_node(fold.loop_condition)?;
        let step = self.plan_node(fold.loop_step)?;
        self.local_slots.truncate(depth + 1);
        let result = self.plan_node(fold.result_expr)?;
        self.local_slots.truncate(depth);

        let loop_step = match self.quantifier_stopping_value(fold) {
            None => step,
            Some(stopping_value) => match quantifier_predicate_from_step(step, accumulator) {
                Ok(predicate) => {
                    let quantifier = QuantifierExpr {
                        iter_range: range,
                        first_variable_slot: first,
                        second_variable_slot: second,
                        predicate,
                        stopping_value,
                    };
                    return Ok(with_fast_path(CompiledExpr::Quantifier(Box::new(quantifier))));
                }
                Err(step) => step,
            },
        };
        Ok(CompiledExpr::Fold(Box::new(FoldExpr {
            iter_range: range,
            accumulator_init: init,
            accumulator_slot: accumulator,
            first_variable_slot: first,
            second_variable_slot: second,
            loop_condition: condition,
            loop_step,
            result_expr: result,
        })))
    }

    /// Recognizes the expansion of `exists` (returns `true`) and of `all` (returns `false`).
    fn quantifier_stopping_value(&self, fold: &Comprehension) -> Option<bool> {
        let ExprKind::Literal(Literal::Bool(init)) = self.ast().kind(fold.accu_init) else {
            return None;
        };
        let stops_at = !init;
        let not_false =
            self.find_argument_of_unary_call(fold.loop_condition, "@not_strictly_false")?;
        let tested =
            if stops_at { self.find_argument_of_unary_call(not_false, "!_")? } else { not_false };
        let is_accumulator = |id: NodeId| matches!(self.ast().kind(id), ExprKind::Ident(name) if *name == fold.accu_var);
        let operator = if stops_at { "_||_" } else { "_&&_" };
        let ExprKind::Call { target: None, function, args } = self.ast().kind(fold.loop_step)
        else {
            return None;
        };
        let [first, _] = args[..] else { return None };
        let shape = **function == *operator
            && is_accumulator(first)
            && is_accumulator(tested)
            && is_accumulator(fold.result_expr);
        shape.then_some(stops_at)
    }

    fn find_argument_of_unary_call(&self, id: NodeId, name: &str) -> Option<NodeId> {
        match self.ast().kind(id) {
            ExprKind::Call { target: None, function, args } if **function == *name => {
                match &args[..] {
                    [only] => Some(*only),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn allocate_local_slot(&mut self, name: &Arc<str>) -> usize {
        let slot = self.n_local_slots;
        self.n_local_slots += 1;
        self.local_slots.push((Arc::clone(name), slot));
        slot
    }

    /// Compiles `accumulator + [element]` to an append, or returns the arguments unchanged.
    pub(super) fn specialize_append(
        &mut self,
        args: Vec<CompiledExpr>,
    ) -> Result<CompiledExpr, Vec<CompiledExpr>> {
        let Some(slot) = args.first().and_then(|arg| self.find_accumulator_slot(arg)) else {
            return Err(args);
        };
        let mut args = args.into_iter();
        match (args.next(), args.next()) {
            (Some(_), Some(CompiledExpr::List { elements, is_optional }))
                if elements.len() == 1 && is_optional.is_empty() =>
            {
                match elements.into_iter().next() {
                    Some(element) => {
                        let element = Box::new(element);
                        Ok(CompiledExpr::Append { slot, element, list_cost: cost::LIST_CREATION })
                    }
                    None => Err(Vec::new()),
                }
            }
            (Some(_), Some(CompiledExpr::Const(Value::List(List::Owned(list)))))
                if list.as_slice().len() == 1 =>
            {
                let element = list.as_slice().first().cloned().unwrap_or(Value::Null);
                Ok(CompiledExpr::Append {
                    slot,
                    element: Box::new(CompiledExpr::Const(element)),
                    list_cost: 0,
                })
            }
            (first, second) => Err(first.into_iter().chain(second).collect()),
        }
    }

    /// Compiles `cel.@mapInsert(accumulator, ...)` to an insertion in place, or returns the
    /// arguments unchanged.
    pub(super) fn specialize_map_insert(
        &mut self,
        args: Vec<CompiledExpr>,
    ) -> Result<CompiledExpr, Vec<CompiledExpr>> {
        let Some(slot) = args.first().and_then(|arg| self.find_accumulator_slot(arg)) else {
            return Err(args);
        };
        Ok(CompiledExpr::Insert { slot, args: args.into_iter().skip(1).collect() })
    }

    /// The slot of a plain reference to a hidden accumulator, which no source text can name.
    fn find_accumulator_slot(&self, expr: &CompiledExpr) -> Option<usize> {
        let CompiledExpr::Attr(Attribute { attribute_root: AttributeRoot::Slot(slot), qualifiers }) =
            expr
        else {
            return None;
        };
        let hidden = self.local_slots.iter().any(|(name, s)| s == slot && name.starts_with('@'));
        (qualifiers.is_empty() && hidden).then_some(*slot)
    }
}

/// The second operand of `accumulator || predicate`. Operands that were flattened into the same
/// operator are combined again.
fn quantifier_predicate_from_step(
    loop_step: CompiledExpr,
    accumulator_slot: usize,
) -> Result<CompiledExpr, CompiledExpr> {
    let is_accumulator = |expr: &CompiledExpr| {
        matches!(expr, CompiledExpr::Attr(Attribute { attribute_root: AttributeRoot::Slot(slot), qualifiers })
            if *slot == accumulator_slot && qualifiers.is_empty())
    };
    let rest = |terms: Box<[CompiledExpr]>, join: fn(Box<[CompiledExpr]>) -> CompiledExpr| {
        let mut rest: Vec<CompiledExpr> = terms.into_iter().skip(1).collect();
        if rest.len() == 1
            && let Some(only) = rest.pop()
        {
            return only;
        }
        join(rest.into())
    };
    match loop_step {
        CompiledExpr::Or(terms) if terms.first().is_some_and(is_accumulator) => {
            Ok(rest(terms, CompiledExpr::Or))
        }
        CompiledExpr::And(terms) if terms.first().is_some_and(is_accumulator) => {
            Ok(rest(terms, CompiledExpr::And))
        }
        other => Err(other),
    }
}
