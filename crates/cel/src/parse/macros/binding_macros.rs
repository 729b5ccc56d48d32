//! Macros that give a value a name.

use std::sync::Arc;

use crate::ast::{Comprehension, ExprKind, Literal, NodeId};

use super::{ExpansionError, MacroExpander, misuse};
use crate::parse::parse_issues::ParseAborted;

/// The name of the list while it is sorted.
const SORT_BY_INPUT: &str = "@__sortBy_input__";

impl MacroExpander<'_, '_> {
    /// `target.optMap(x, value)`: the value if the target has one, as an optional.
    pub(super) fn opt_map(
        &mut self,
        target: NodeId,
        variable: NodeId,
        value: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let bound = self.bind_value_of(target, variable, value, "optMap")?;
        let present = self.call("optional.of", vec![bound])?;
        Ok(self.if_present(target, present)?)
    }

    /// `target.optFlatMap(x, value)`: the value, itself an optional, if the target has one.
    pub(super) fn opt_flat_map(
        &mut self,
        target: NodeId,
        variable: NodeId,
        value: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let present = self.bind_value_of(target, variable, value, "optFlatMap")?;
        Ok(self.if_present(target, present)?)
    }

    fn bind_value_of(
        &mut self,
        target: NodeId,
        variable: NodeId,
        body: NodeId,
        function: &str,
    ) -> Result<NodeId, ExpansionError> {
        let Some(name) = self.name_of(variable) else {
            let message = format!("{function}() variable name must be a simple identifier");
            return Err(misuse(variable, &message));
        };
        let copy = self.copy(target)?;
        let value = self.member_call(copy, "value", Vec::new())?;
        Ok(self.bind(name, value, body)?)
    }

    /// `target.hasValue() ? present : optional.none()`.
    fn if_present(&mut self, target: NodeId, present: NodeId) -> Result<NodeId, ParseAborted> {
        let condition = self.member_call(target, "hasValue", Vec::new())?;
        let absent = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![condition, present, absent])
    }

    /// `target.sortBy(x, key)`: the list in the order of the keys of its elements.
    pub(super) fn sort_by(
        &mut self,
        target: NodeId,
        variable: NodeId,
        key: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        match self.kind(target) {
            Some(
                ExprKind::List { .. }
                | ExprKind::Select { .. }
                | ExprKind::Ident(_)
                | ExprKind::Comprehension(_)
                | ExprKind::Call { .. },
            ) => {}
            _ => {
                return Err(misuse(
                    target,
                    "sortBy can only be applied to a list, identifier, comprehension, call or \
                     select expression",
                ));
            }
        }
        let range = self.ident(SORT_BY_INPUT)?;
        let keys = self.map(range, variable, None, key)?;
        let list = self.ident(SORT_BY_INPUT)?;
        let sorted = self.member_call(list, "@sortByAssociatedKeys", vec![keys])?;
        Ok(self.bind(Arc::from(SORT_BY_INPUT), target, sorted)?)
    }

    /// A variable that has a value in `body` and is not visible elsewhere: the accumulator of a
    /// fold over nothing.
    fn bind(
        &mut self,
        name: Arc<str>,
        value: NodeId,
        body: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let iter_range = self.list(Vec::new())?;
        let loop_condition = self.literal(Literal::Bool(false))?;
        let loop_step = self.ident(&name)?;
        self.push(ExprKind::Comprehension(Box::new(Comprehension {
            iter_range,
            iter_var: Arc::from("#unused"),
            iter_var2: None,
            accu_var: name,
            accu_init: value,
            loop_condition,
            loop_step,
            result: body,
        })))
    }
}
