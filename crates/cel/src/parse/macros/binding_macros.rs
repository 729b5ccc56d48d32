//! Macros that bind a value to a name: `optMap`, `optFlatMap` and `sortBy`.

use std::sync::Arc;

use crate::ast::{Comprehension, ExprKind, Literal, NodeId};

use super::{ExpansionError, MacroExpander, macro_misuse_error};
use crate::parse::parse_issues::ParseAborted;

/// The variable that `sortBy` binds to the list.
const SORT_BY_LIST_VARIABLE: &str = "@__sortBy_input__";

impl MacroExpander<'_, '_> {
    /// Expands `target.optMap(x, value)`, an optional that has a value if the target has one.
    pub(super) fn expand_opt_map(
        &mut self,
        target: NodeId,
        first_loop_variable: NodeId,
        value: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let bound =
            self.push_optional_value_binding(target, first_loop_variable, value, "optMap")?;
        let present = self.push_global_call("optional.of", vec![bound])?;
        Ok(self.push_has_value_conditional(target, present)?)
    }

    /// Expands `target.optFlatMap(x, value)`. The value is itself an optional.
    pub(super) fn expand_opt_flat_map(
        &mut self,
        target: NodeId,
        first_loop_variable: NodeId,
        value: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let present =
            self.push_optional_value_binding(target, first_loop_variable, value, "optFlatMap")?;
        Ok(self.push_has_value_conditional(target, present)?)
    }

    fn push_optional_value_binding(
        &mut self,
        target: NodeId,
        first_loop_variable: NodeId,
        body: NodeId,
        function: &str,
    ) -> Result<NodeId, ExpansionError> {
        let Some(name) = self.ident_name(first_loop_variable) else {
            let message = format!("{function}() variable name must be a simple identifier");
            return Err(macro_misuse_error(first_loop_variable, &message));
        };
        let copy = self.copy_subtree(target)?;
        let value = self.push_member_call(copy, "value", Vec::new())?;
        Ok(self.push_variable_binding(name, value, body)?)
    }

    /// Adds `target.hasValue() ? present : optional.none()`.
    fn push_has_value_conditional(
        &mut self,
        target: NodeId,
        present: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let condition = self.push_member_call(target, "hasValue", Vec::new())?;
        let absent = self.push_global_call("optional.none", Vec::new())?;
        self.push_global_call("_?_:_", vec![condition, present, absent])
    }

    /// Expands `target.sortBy(x, key)`, the list in the order of the keys of its elements.
    pub(super) fn expand_sort_by(
        &mut self,
        target: NodeId,
        first_loop_variable: NodeId,
        key: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        match self.node_kind(target) {
            Some(
                ExprKind::List { .. }
                | ExprKind::Select { .. }
                | ExprKind::Ident(_)
                | ExprKind::Comprehension(_)
                | ExprKind::Call { .. },
            ) => {}
            _ => {
                return Err(macro_misuse_error(
                    target,
                    "sortBy can only be applied to a list, identifier, comprehension, call or \
                     select expression",
                ));
            }
        }
        let range = self.push_ident(SORT_BY_LIST_VARIABLE)?;
        let keys = self.expand_map(range, first_loop_variable, None, key)?;
        let list = self.push_ident(SORT_BY_LIST_VARIABLE)?;
        let sorted = self.push_member_call(list, "@sortByAssociatedKeys", vec![keys])?;
        Ok(self.push_variable_binding(Arc::from(SORT_BY_LIST_VARIABLE), target, sorted)?)
    }

    /// Adds a variable that has a value in `body` only. It is the accumulator of a comprehension
    /// over an empty list.
    fn push_variable_binding(
        &mut self,
        name: Arc<str>,
        value: NodeId,
        body: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let iter_range = self.push_list(Vec::new())?;
        let loop_condition = self.push_literal(Literal::Bool(false))?;
        let loop_step = self.push_ident(&name)?;
        self.push(ExprKind::Comprehension(Box::new(Comprehension {
            iter_range,
            iter_var: Arc::from("#unused"),
            iter_var2: None,
            accu_var: name,
            accu_init: value,
            loop_condition,
            loop_step,
            result_expr: body,
        })))
    }
}
