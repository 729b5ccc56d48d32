//! Macros that iterate over a list or a map.

use std::sync::Arc;

use crate::ast::{Comprehension, ExprKind, Literal, NodeId};

use super::{ExpansionError, MacroExpander, macro_misuse_error};
use crate::parse::parse_issues::ParseAborted;

/// The accumulator variable of a comprehension. No source text can name it.
const ACCUMULATOR: &str = "@result";

/// The accumulator variable of older versions of cel-go. Source text could name it, so it is still
/// not allowed.
const LEGACY_ACCUMULATOR: &str = "__result__";

/// The range of a comprehension and the names of its variables.
pub(super) struct ComprehensionRangeAndVariables {
    range_node: NodeId,
    first_loop_variable: Arc<str>,
    /// The second of two variables: the element or value. The first one is then the index or key.
    second_loop_variable: Option<Arc<str>>,
}

impl MacroExpander<'_, '_> {
    /// Expands `range.all(x, test)`, `exists` and `exists_one`, with one or two variables.
    pub(super) fn expand_quantifier(
        &mut self,
        function: &str,
        range: NodeId,
        variables: &[NodeId],
        test: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let range =
            self.parse_loop_variables(range, variables, "argument must be a simple name")?;
        Ok(match function {
            "all" => self.expand_all_quantifier(range, test)?,
            "exists" => self.expand_exists(range, test)?,
            _ => self.expand_exists_one(range, test)?,
        })
    }

    fn expand_all_quantifier(
        &mut self,
        range: ComprehensionRangeAndVariables,
        test: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let init = self.push_literal(Literal::Bool(true))?;
        let so_far = self.push_accumulator_ident()?;
        let condition = self.push_global_call("@not_strictly_false", vec![so_far])?;
        let so_far = self.push_accumulator_ident()?;
        let step = self.push_global_call("_&&_", vec![so_far, test])?;
        let result = self.push_accumulator_ident()?;
        self.push_comprehension(range, init, condition, step, result)
    }

    fn expand_exists(
        &mut self,
        range: ComprehensionRangeAndVariables,
        test: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let init = self.push_literal(Literal::Bool(false))?;
        let so_far = self.push_accumulator_ident()?;
        let not_yet = self.push_global_call("!_", vec![so_far])?;
        let condition = self.push_global_call("@not_strictly_false", vec![not_yet])?;
        let so_far = self.push_accumulator_ident()?;
        let step = self.push_global_call("_||_", vec![so_far, test])?;
        let result = self.push_accumulator_ident()?;
        self.push_comprehension(range, init, condition, step, result)
    }

    fn expand_exists_one(
        &mut self,
        range: ComprehensionRangeAndVariables,
        test: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let init = self.push_literal(Literal::Int(0))?;
        let condition = self.push_literal(Literal::Bool(true))?;
        let (so_far, one) = (self.push_accumulator_ident()?, self.push_literal(Literal::Int(1))?);
        let more = self.push_global_call("_+_", vec![so_far, one])?;
        let step = self.push_conditional_step(Some(test), more)?;
        let (count, one) = (self.push_accumulator_ident()?, self.push_literal(Literal::Int(1))?);
        let result = self.push_global_call("_==_", vec![count, one])?;
        self.push_comprehension(range, init, condition, step, result)
    }

    /// Expands `range.map(x, transform)` and `range.map(x, filter, transform)`.
    pub(super) fn expand_map(
        &mut self,
        range: NodeId,
        first_loop_variable: NodeId,
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let range = self.parse_loop_variables(
            range,
            &[first_loop_variable],
            "argument is not an identifier",
        )?;
        Ok(self.expand_list_comprehension(range, filter, transform)?)
    }

    /// Expands the macro `range.filter(x, test)`.
    pub(super) fn expand_filter(
        &mut self,
        range: NodeId,
        first_loop_variable: NodeId,
        test: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        self.expand_map(range, first_loop_variable, Some(test), first_loop_variable)
    }

    /// Expands `range.transformList(x, y, transform)`, `transformMap` and `transformMapEntry`. A
    /// filter may stand before the transform.
    pub(super) fn expand_transform(
        &mut self,
        function: &str,
        range: NodeId,
        variables: &[NodeId],
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let range =
            self.parse_loop_variables(range, variables, "argument must be a simple name")?;
        if function == "transformList" {
            return Ok(self.expand_list_comprehension(range, filter, transform)?);
        }
        let mut args = vec![self.push_accumulator_ident()?];
        if function == "transformMap" {
            args.push(self.push_ident(&range.first_loop_variable)?);
        }
        args.push(transform);
        let more = self.push_global_call("cel.@mapInsert", args)?;
        let init = self.push(ExprKind::Map { entries: Vec::new() })?;
        Ok(self.push_exhaustive_comprehension(range, init, filter, more)?)
    }

    /// Adds a comprehension that collects transformed elements in a list.
    fn expand_list_comprehension(
        &mut self,
        range: ComprehensionRangeAndVariables,
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let so_far = self.push_accumulator_ident()?;
        let element = self.push_list(vec![transform])?;
        let more = self.push_global_call("_+_", vec![so_far, element])?;
        let init = self.push_list(Vec::new())?;
        self.push_exhaustive_comprehension(range, init, filter, more)
    }

    /// Adds a comprehension that visits all elements and returns its accumulator.
    fn push_exhaustive_comprehension(
        &mut self,
        range: ComprehensionRangeAndVariables,
        init: NodeId,
        filter: Option<NodeId>,
        more: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let condition = self.push_literal(Literal::Bool(true))?;
        let step = self.push_conditional_step(filter, more)?;
        let result = self.push_accumulator_ident()?;
        self.push_comprehension(range, init, condition, step, result)
    }

    /// Adds `filter ? more : accumulator`, or returns `more` if there is no filter.
    fn push_conditional_step(
        &mut self,
        filter: Option<NodeId>,
        more: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let Some(filter) = filter else {
            return Ok(more);
        };
        let unchanged = self.push_accumulator_ident()?;
        self.push_global_call("_?_:_", vec![filter, more, unchanged])
    }

    fn push_accumulator_ident(&mut self) -> Result<NodeId, ParseAborted> {
        self.push_ident(ACCUMULATOR)
    }

    fn push_comprehension(
        &mut self,
        range: ComprehensionRangeAndVariables,
        accu_init: NodeId,
        loop_condition: NodeId,
        loop_step: NodeId,
        result: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        self.push(ExprKind::Comprehension(Box::new(Comprehension {
            iter_range: range.range_node,
            iter_var: range.first_loop_variable,
            iter_var2: range.second_loop_variable,
            accu_var: Arc::from(ACCUMULATOR),
            accu_init,
            loop_condition,
            loop_step,
            result_expr: result,
        })))
    }

    /// Reads one or two loop variables. They must be identifiers that differ from each other and
    /// from the accumulator.
    fn parse_loop_variables(
        &self,
        range: NodeId,
        variables: &[NodeId],
        not_a_name: &str,
    ) -> Result<ComprehensionRangeAndVariables, ExpansionError> {
        let mut names: Vec<Arc<str>> = Vec::with_capacity(variables.len());
        for &variable in variables {
            names.push(
                self.ident_name(variable)
                    .ok_or_else(|| macro_misuse_error(variable, not_a_name))?,
            );
        }
        if let ([first, second], [_, node]) = (names.as_slice(), variables)
            && first == second
        {
            return Err(macro_misuse_error(*node, &format!("duplicate variable name: {first}")));
        }
        for (name, &node) in names.iter().zip(variables) {
            if matches!(&**name, ACCUMULATOR | LEGACY_ACCUMULATOR) {
                return Err(macro_misuse_error(
                    node,
                    "iteration variable overwrites accumulator variable",
                ));
            }
        }
        let mut names = names.into_iter();
        let variable = names.next().unwrap_or_default();
        Ok(ComprehensionRangeAndVariables {
            range_node: range,
            first_loop_variable: variable,
            second_loop_variable: names.next(),
        })
    }
}
