//! Macros that go through a list or a map.

use std::sync::Arc;

use crate::ast::{Comprehension, ExprKind, Literal, NodeId};

use super::{ExpansionError, MacroExpander, misuse};
use crate::parse::parse_issues::ParseAborted;

/// The variable in which a fold collects its result. No source text can name it.
const ACCUMULATOR: &str = "@result";

/// Its name in older versions of cel-go, which can be named and is still refused.
const ACCUMULATOR_BEFORE: &str = "__result__";

/// What a fold runs over, and the names of its variables.
pub(super) struct ComprehensionRange {
    range: NodeId,
    variable: Arc<str>,
    /// If there are two, the first is the index or key and this one the element or value.
    variable2: Option<Arc<str>>,
}

impl MacroExpander<'_, '_> {
    /// `range.all(x, test)` and the like, with one or two variables.
    pub(super) fn quantifier(
        &mut self,
        function: &str,
        range: NodeId,
        variables: &[NodeId],
        test: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let range = self.range(range, variables, "argument must be a simple name")?;
        Ok(match function {
            "all" => self.all(range, test)?,
            "exists" => self.exists(range, test)?,
            _ => self.exists_one(range, test)?,
        })
    }

    fn all(&mut self, range: ComprehensionRange, test: NodeId) -> Result<NodeId, ParseAborted> {
        let init = self.literal(Literal::Bool(true))?;
        let so_far = self.accumulator()?;
        let condition = self.call("@not_strictly_false", vec![so_far])?;
        let so_far = self.accumulator()?;
        let step = self.call("_&&_", vec![so_far, test])?;
        let result = self.accumulator()?;
        self.fold(range, init, condition, step, result)
    }

    fn exists(&mut self, range: ComprehensionRange, test: NodeId) -> Result<NodeId, ParseAborted> {
        let init = self.literal(Literal::Bool(false))?;
        let so_far = self.accumulator()?;
        let not_yet = self.call("!_", vec![so_far])?;
        let condition = self.call("@not_strictly_false", vec![not_yet])?;
        let so_far = self.accumulator()?;
        let step = self.call("_||_", vec![so_far, test])?;
        let result = self.accumulator()?;
        self.fold(range, init, condition, step, result)
    }

    fn exists_one(
        &mut self,
        range: ComprehensionRange,
        test: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let init = self.literal(Literal::Int(0))?;
        let condition = self.literal(Literal::Bool(true))?;
        let (so_far, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
        let more = self.call("_+_", vec![so_far, one])?;
        let step = self.keep_if(Some(test), more)?;
        let (count, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
        let result = self.call("_==_", vec![count, one])?;
        self.fold(range, init, condition, step, result)
    }

    /// `range.map(x, transform)` and `range.map(x, filter, transform)`.
    pub(super) fn map(
        &mut self,
        range: NodeId,
        variable: NodeId,
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let range = self.range(range, &[variable], "argument is not an identifier")?;
        Ok(self.collect(range, filter, transform)?)
    }

    /// `range.filter(x, test)`.
    pub(super) fn filter(
        &mut self,
        range: NodeId,
        variable: NodeId,
        test: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        self.map(range, variable, Some(test), variable)
    }

    /// `range.transformList(x, y, transform)` and its siblings, perhaps with a filter before the
    /// transform.
    pub(super) fn transform(
        &mut self,
        function: &str,
        range: NodeId,
        variables: &[NodeId],
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> Result<NodeId, ExpansionError> {
        let range = self.range(range, variables, "argument must be a simple name")?;
        if function == "transformList" {
            return Ok(self.collect(range, filter, transform)?);
        }
        let mut args = vec![self.accumulator()?];
        if function == "transformMap" {
            args.push(self.ident(&range.variable)?);
        }
        args.push(transform);
        let more = self.call("cel.@mapInsert", args)?;
        let init = self.push(ExprKind::Map { entries: Vec::new() })?;
        Ok(self.fold_all(range, init, filter, more)?)
    }

    /// A list of transformed elements.
    fn collect(
        &mut self,
        range: ComprehensionRange,
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let so_far = self.accumulator()?;
        let element = self.list(vec![transform])?;
        let more = self.call("_+_", vec![so_far, element])?;
        let init = self.list(Vec::new())?;
        self.fold_all(range, init, filter, more)
    }

    /// A fold that does not stop early and whose result is what it has collected.
    fn fold_all(
        &mut self,
        range: ComprehensionRange,
        init: NodeId,
        filter: Option<NodeId>,
        more: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        let condition = self.literal(Literal::Bool(true))?;
        let step = self.keep_if(filter, more)?;
        let result = self.accumulator()?;
        self.fold(range, init, condition, step, result)
    }

    /// `filter ? more : accumulator`.
    fn keep_if(&mut self, filter: Option<NodeId>, more: NodeId) -> Result<NodeId, ParseAborted> {
        let Some(filter) = filter else {
            return Ok(more);
        };
        let unchanged = self.accumulator()?;
        self.call("_?_:_", vec![filter, more, unchanged])
    }

    fn accumulator(&mut self) -> Result<NodeId, ParseAborted> {
        self.ident(ACCUMULATOR)
    }

    fn fold(
        &mut self,
        range: ComprehensionRange,
        accu_init: NodeId,
        loop_condition: NodeId,
        loop_step: NodeId,
        result: NodeId,
    ) -> Result<NodeId, ParseAborted> {
        self.push(ExprKind::Comprehension(Box::new(Comprehension {
            iter_range: range.range,
            iter_var: range.variable,
            iter_var2: range.variable2,
            accu_var: Arc::from(ACCUMULATOR),
            accu_init,
            loop_condition,
            loop_step,
            result,
        })))
    }

    /// One or two variables, which have to be plain names, different from each other and from the
    /// accumulator.
    fn range(
        &self,
        range: NodeId,
        variables: &[NodeId],
        not_a_name: &str,
    ) -> Result<ComprehensionRange, ExpansionError> {
        let mut names: Vec<Arc<str>> = Vec::with_capacity(variables.len());
        for &variable in variables {
            names.push(self.name_of(variable).ok_or_else(|| misuse(variable, not_a_name))?);
        }
        if let ([first, second], [_, node]) = (names.as_slice(), variables)
            && first == second
        {
            return Err(misuse(*node, &format!("duplicate variable name: {first}")));
        }
        for (name, &node) in names.iter().zip(variables) {
            if matches!(&**name, ACCUMULATOR | ACCUMULATOR_BEFORE) {
                return Err(misuse(node, "iteration variable overwrites accumulator variable"));
            }
        }
        let mut names = names.into_iter();
        let variable = names.next().unwrap_or_default();
        Ok(ComprehensionRange { range, variable, variable2: names.next() })
    }
}
