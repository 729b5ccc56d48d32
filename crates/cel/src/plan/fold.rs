//! Comprehensions: the general form, and the shapes that have a faster one.

use std::sync::Arc;

use super::Planner;
use crate::ast::{Comprehension, Kind, Literal, NodeId};
use crate::cost;
use crate::ir::{Attr, Expr, Fold, Quantifier, Root};
use crate::quick::quick;
use crate::value::{List, Value};

impl Planner<'_> {
    pub(super) fn comprehension(&mut self, fold: &Comprehension) -> Result<Expr, String> {
        let init = self.expr(fold.accu_init)?;
        let range = self.expr(fold.iter_range)?;
        let depth = self.locals.len();
        let accumulator = self.local(&fold.accu_var);
        let first = self.local(&fold.iter_var);
        let second = fold.iter_var2.as_ref().map(|name| self.local(name));
        let condition = self.expr(fold.loop_condition)?;
        let step = self.expr(fold.loop_step)?;
        self.locals.truncate(depth + 1);
        let result = self.expr(fold.result)?;
        self.locals.truncate(depth);

        let fold = match self.quantifier(fold) {
            Some(stops_at) => match second_term(step, accumulator) {
                Ok(predicate) => {
                    return Ok(quick(Expr::Quantifier(Box::new(Quantifier {
                        range,
                        slot: first,
                        second,
                        predicate,
                        stops_at,
                    }))));
                }
                Err(step) => {
                    Fold { range, init, accumulator, first, second, condition, step, result }
                }
            },
            None => Fold { range, init, accumulator, first, second, condition, step, result },
        };
        Ok(Expr::Fold(Box::new(fold)))
    }

    /// Whether the fold is what `exists` (true) or `all` (false) expand to.
    fn quantifier(&self, fold: &Comprehension) -> Option<bool> {
        let Kind::Literal(Literal::Bool(init)) = self.ast().kind(fold.accu_init) else {
            return None;
        };
        let stops_at = !init;
        let not_false = self.only_argument(fold.loop_condition, "@not_strictly_false")?;
        let tested = if stops_at { self.only_argument(not_false, "!_")? } else { not_false };
        let is_accumulator =
            |id: NodeId| matches!(self.ast().kind(id), Kind::Ident(name) if *name == fold.accu_var);
        let operator = if stops_at { "_||_" } else { "_&&_" };
        let Kind::Call { target: None, function, args } = self.ast().kind(fold.loop_step) else {
            return None;
        };
        let shape = **function == *operator
            && args.len() == 2
            && is_accumulator(args[0])
            && is_accumulator(tested)
            && is_accumulator(fold.result);
        shape.then_some(stops_at)
    }

    fn only_argument(&self, id: NodeId, name: &str) -> Option<NodeId> {
        match self.ast().kind(id) {
            Kind::Call { target: None, function, args } if **function == *name => match &args[..] {
                [only] => Some(*only),
                _ => None,
            },
            _ => None,
        }
    }

    fn local(&mut self, name: &Arc<str>) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.locals.push((Arc::clone(name), slot));
        slot
    }

    /// `accumulator + [element]`
    pub(super) fn append(&mut self, args: Vec<Expr>) -> Result<Expr, Vec<Expr>> {
        let Some(slot) = args.first().and_then(|arg| self.accumulator_slot(arg)) else {
            return Err(args);
        };
        let mut args = args.into_iter();
        match (args.next(), args.next()) {
            (Some(_), Some(Expr::List { elements, optional }))
                if elements.len() == 1 && optional.is_empty() =>
            {
                match elements.into_iter().next() {
                    Some(element) => {
                        let element = Box::new(element);
                        Ok(Expr::Append { slot, element, list_cost: cost::LIST })
                    }
                    None => Err(Vec::new()),
                }
            }
            (Some(_), Some(Expr::Const(Value::List(List::Owned(list)))))
                if list.as_slice().len() == 1 =>
            {
                let element = list.as_slice().first().cloned().unwrap_or(Value::Null);
                Ok(Expr::Append { slot, element: Box::new(Expr::Const(element)), list_cost: 0 })
            }
            (first, second) => Err(first.into_iter().chain(second).collect()),
        }
    }

    /// `cel.@mapInsert(accumulator, key, value)` or `cel.@mapInsert(accumulator, map)`
    pub(super) fn insert(&mut self, args: Vec<Expr>) -> Result<Expr, Vec<Expr>> {
        let Some(slot) = args.first().and_then(|arg| self.accumulator_slot(arg)) else {
            return Err(args);
        };
        Ok(Expr::Insert { slot, args: args.into_iter().skip(1).collect() })
    }

    /// The slot of a plain reference to a hidden accumulator, which no source text can name.
    fn accumulator_slot(&self, expr: &Expr) -> Option<usize> {
        let Expr::Attr(Attr { root: Root::Slot(slot), qualifiers }) = expr else { return None };
        let hidden = self.locals.iter().any(|(name, s)| s == slot && name.starts_with('@'));
        (qualifiers.is_empty() && hidden).then_some(*slot)
    }
}

/// The second term of `accumulator || predicate`. Terms that were flattened into the same operator
/// are put together again.
fn second_term(step: Expr, accumulator: usize) -> Result<Expr, Expr> {
    let is_accumulator = |expr: &Expr| {
        matches!(expr, Expr::Attr(Attr { root: Root::Slot(slot), qualifiers })
            if *slot == accumulator && qualifiers.is_empty())
    };
    let rest = |terms: Box<[Expr]>, join: fn(Box<[Expr]>) -> Expr| {
        let mut rest: Vec<Expr> = terms.into_iter().skip(1).collect();
        if rest.len() == 1
            && let Some(only) = rest.pop()
        {
            return only;
        }
        join(rest.into())
    };
    match step {
        Expr::Or(terms) if terms.first().is_some_and(is_accumulator) => Ok(rest(terms, Expr::Or)),
        Expr::And(terms) if terms.first().is_some_and(is_accumulator) => Ok(rest(terms, Expr::And)),
        other => Err(other),
    }
}
