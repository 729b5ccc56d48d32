//! Binary operators and prefixes.

use super::sets::{AFTER_OPERAND, EXPRESSION, PRIMARY};
use super::{Parser, no_viable_alternative};
use crate::parse::recover::{Fault, Site};
use crate::parse::report::Abort;
use crate::parse::syntax::{Syntax, SyntaxId, SyntaxTree};
use crate::parse::token::{TokenKind as T, TokenSet};

impl Parser<'_> {
    /// `conditionalOr`, `conditionalAnd`, `relation` and `calc`: operands and binary operators.
    ///
    /// While an operand is read, each level of precedence has at most one operator that waits for
    /// it. Those that bind at least as tightly as the operator after the operand get it; then that
    /// operator waits.
    pub(super) fn operators(&mut self, follow: TokenSet) -> Result<SyntaxId, Abort> {
        self.input.enter(follow);
        self.input.enter(AFTER_OPERAND);
        let mut factor: Option<Waiting> = None;
        let mut term: Option<Waiting> = None;
        let mut relation: Option<Waiting> = None;
        let mut and = Chain::new("_&&_");
        let mut or = Chain::new("_||_");
        let result = loop {
            let n_relations = 1 + u32::from(relation.is_some());
            let n_arithmetics = 1 + u32::from(term.is_some()) + u32::from(factor.is_some());
            let operand = self.operand(n_relations, n_arithmetics)?;

            let next = self.input.token()?;
            let operand = self.combine(factor.take(), operand);
            if let Some(function) = factor_function(next.kind) {
                factor = Some(self.wait(function, operand)?);
                continue;
            }
            let operand = self.combine(term.take(), operand);
            if let Some(function) = term_function(next.kind) {
                term = Some(self.wait(function, operand)?);
                continue;
            }
            let operand = self.combine(relation.take(), operand);
            if let Some(function) = relation_function(next.kind) {
                relation = Some(self.wait(function, operand)?);
                continue;
            }
            if next.kind == T::LogicalAnd {
                and.push(operand, self.input.take()?.offset);
                continue;
            }
            let operand = and.finish(operand, &mut self.tree);
            if next.kind == T::LogicalOr {
                or.push(operand, self.input.take()?.offset);
                continue;
            }
            break or.finish(operand, &mut self.tree);
        };
        self.input.leave();
        self.input.leave();
        Ok(result)
    }

    /// One operand, with the calls of `relation` and `calc` counted that lead to it.
    fn operand(&mut self, n_relations: u32, n_arithmetics: u32) -> Result<SyntaxId, Abort> {
        self.input.token()?;
        self.depth.relation += n_relations;
        self.depth.arithmetic += n_arithmetics;
        self.check_depth()?;
        let operand = self.unary()?;
        self.depth.relation -= n_relations;
        self.depth.arithmetic -= n_arithmetics;
        Ok(operand)
    }

    fn wait(&mut self, function: &'static str, left: SyntaxId) -> Result<Waiting, Abort> {
        let operator = self.input.take()?.offset;
        Ok(Waiting { function, operator, left })
    }

    fn combine(&mut self, waiting: Option<Waiting>, right: SyntaxId) -> SyntaxId {
        let Some(Waiting { function, operator, left }) = waiting else {
            return right;
        };
        self.tree.push(Syntax::Binary { function, operator, left, right })
    }

    /// `member | '!'+ member | '-'+ member`.
    fn unary(&mut self) -> Result<SyntaxId, Abort> {
        let offset = self.input.token()?.offset;
        let mut result = None;
        let outcome = self.unary_alternatives(&mut result);
        self.input.absorb(outcome)?;
        Ok(result.unwrap_or_else(|| self.tree.push(Syntax::MissingOperand(offset))))
    }

    fn unary_alternatives(&mut self, result: &mut Option<SyntaxId>) -> Result<(), Fault> {
        self.input.sync(Site::UnaryStart, EXPRESSION)?;
        let first = self.input.token()?;
        let mut last = first;
        if first.kind == T::Minus {
            last = self.input.peek(1)?;
        }
        match (first.kind, last.kind) {
            (T::Exclamation, _) => *result = Some(self.logical_not()?),
            // The sign of a number belongs to the number.
            (T::Minus, T::Int | T::Float) => *result = Some(self.member()?),
            (T::Minus, kind) if PRIMARY.contains(kind) => return self.negation(result),
            (T::Minus, _) => return Err(no_viable_alternative(Site::UnaryStart, first, last)),
            (kind, _) if PRIMARY.contains(kind) => *result = Some(self.member()?),
            _ => return Err(no_viable_alternative(Site::UnaryStart, first, last)),
        }
        Ok(())
    }

    fn logical_not(&mut self) -> Result<SyntaxId, Abort> {
        let first = self.input.token()?.offset;
        let mut n_operators = 0;
        while n_operators == 0 || self.input.kind()? == T::Exclamation {
            self.input.take()?;
            n_operators += 1;
            self.input.sync_loop(EXPRESSION)?;
        }
        let operand = self.member()?;
        Ok(self.tree.push(Syntax::Prefix { function: "!_", n_operators, first, operand }))
    }

    fn negation(&mut self, result: &mut Option<SyntaxId>) -> Result<(), Fault> {
        let first = self.input.token()?.offset;
        let mut n_operators = 0;
        let outcome = self.minuses(&mut n_operators);
        let operand = match outcome {
            Ok(()) => self.member()?,
            Err(_) => SyntaxId::MISSING,
        };
        let negation = Syntax::Prefix { function: "-_", n_operators, first, operand };
        *result = Some(self.tree.push(negation));
        outcome
    }

    /// All minuses, the last one too: only if there is no other does it belong to a number.
    fn minuses(&mut self, n_operators: &mut usize) -> Result<(), Fault> {
        loop {
            self.input.take()?;
            *n_operators += 1;
            self.input.sync_loop(PRIMARY)?;
            let first = self.input.token()?;
            if first.kind == T::Minus {
                let second = self.input.peek(1)?;
                if !PRIMARY.contains(second.kind) {
                    return Err(no_viable_alternative(Site::NegationLoop, first, second));
                }
            } else if PRIMARY.contains(first.kind) {
                return Ok(());
            } else {
                return Err(no_viable_alternative(Site::NegationLoop, first, first));
            }
        }
    }
}

/// An operator that waits for its right operand.
struct Waiting {
    function: &'static str,
    operator: u32,
    left: SyntaxId,
}

/// The operands of a run of `&&` or `||` so far, and the operator after each.
struct Chain {
    function: &'static str,
    operands: Vec<SyntaxId>,
    operators: Vec<u32>,
}

impl Chain {
    fn new(function: &'static str) -> Self {
        Self { function, operands: Vec::new(), operators: Vec::new() }
    }

    fn push(&mut self, operand: SyntaxId, operator: u32) {
        self.operands.push(operand);
        self.operators.push(operator);
    }

    /// Makes a node of the chain and its last operand, and begins another chain.
    fn finish(&mut self, last: SyntaxId, tree: &mut SyntaxTree) -> SyntaxId {
        if self.operands.is_empty() {
            return last;
        }
        self.operands.push(last);
        let operands = std::mem::take(&mut self.operands);
        let operators = std::mem::take(&mut self.operators);
        tree.push(Syntax::Logical { function: self.function, operands, operators })
    }
}

fn factor_function(kind: T) -> Option<&'static str> {
    match kind {
        T::Star => Some("_*_"),
        T::Slash => Some("_/_"),
        T::Percent => Some("_%_"),
        _ => None,
    }
}

fn term_function(kind: T) -> Option<&'static str> {
    match kind {
        T::Plus => Some("_+_"),
        T::Minus => Some("_-_"),
        _ => None,
    }
}

fn relation_function(kind: T) -> Option<&'static str> {
    match kind {
        T::Equals => Some("_==_"),
        T::NotEquals => Some("_!=_"),
        T::In => Some("@in"),
        T::Less => Some("_<_"),
        T::LessEquals => Some("_<=_"),
        T::GreaterEquals => Some("_>=_"),
        T::Greater => Some("_>_"),
        _ => None,
    }
}
