//! Selections, calls and indices.

use super::sets::{AFTER_ITEM, AFTER_PRIMARY, EXPRESSION, FIELD_NAME, OPTIONAL_EXPRESSION};
use super::{Parser, no_viable_alternative};
use crate::parse::recover::{Fault, Site};
use crate::parse::report::Abort;
use crate::parse::syntax::{Element, FieldName, Syntax, SyntaxId};
use crate::parse::token::{TokenKind as T, TokenSet};

impl Parser<'_> {
    /// `primary` and any number of selections, calls and indices.
    pub(super) fn member(&mut self) -> Result<SyntaxId, Abort> {
        let start = self.input.token()?.start;
        let mut result = self.primary()?;
        loop {
            let outcome = match self.input.kind()? {
                T::Dot => self.dot_suffix(start, &mut result),
                T::LeftBracket => self.index(start, &mut result),
                _ => return Ok(result),
            };
            let failed = outcome.is_err();
            self.input.absorb(outcome)?;
            if failed {
                return Ok(result);
            }
        }
    }

    fn dot_suffix(&mut self, start: u32, result: &mut SyntaxId) -> Result<(), Fault> {
        let dot = self.input.token()?;
        let after = self.input.peek(1)?;
        match after.kind {
            T::Identifier if self.input.peek(2)?.kind == T::LeftParen => {
                self.member_call(start, result)
            }
            T::Identifier | T::EscapedIdentifier | T::Question => Ok(self.select(start, result)?),
            _ => Err(no_viable_alternative(Site::MemberSuffix, dot, after)),
        }
    }

    fn select(&mut self, start: u32, result: &mut SyntaxId) -> Result<(), Abort> {
        let operand = *result;
        let dot = self.input.take()?.offset;
        let optional = self.input.take_if(T::Question)?.is_some();
        let field = self.field_name(AFTER_PRIMARY)?;
        *result = self.push(start, Syntax::Select { operand, dot, optional, field });
        Ok(())
    }

    fn member_call(&mut self, start: u32, result: &mut SyntaxId) -> Result<(), Fault> {
        let operand = *result;
        self.input.take()?;
        let name = self.input.take()?;
        let open = self.input.take()?.offset;
        let mut arguments = Vec::new();
        let outcome = self.arguments(Site::MemberArguments, &mut arguments).and_then(|()| {
            self.input.expect(Site::MemberArgumentsClose, T::RightParen, AFTER_PRIMARY)
        });
        *result = self.push(start, Syntax::MemberCall { operand, name, open, arguments });
        outcome.map(|_| ())
    }

    fn index(&mut self, start: u32, result: &mut SyntaxId) -> Result<(), Fault> {
        let operand = *result;
        let open = self.input.take()?.offset;
        let mut element = Element { optional: false, value: SyntaxId::MISSING };
        let outcome = self.index_inside(&mut element);
        let Element { optional, value: index } = element;
        *result = self.push(start, Syntax::Index { operand, open, optional, index });
        outcome
    }

    fn index_inside(&mut self, element: &mut Element) -> Result<(), Fault> {
        self.input.sync(Site::Index, OPTIONAL_EXPRESSION)?;
        element.optional = self.input.take_if(T::Question)?.is_some();
        element.value = self.expression(TokenSet::of(&[T::RightBracket]))?;
        self.input.expect(Site::IndexClose, T::RightBracket, AFTER_PRIMARY)?;
        Ok(())
    }

    /// `expr (',' expr)*`, or nothing.
    pub(super) fn arguments(
        &mut self,
        site: Site,
        arguments: &mut Vec<SyntaxId>,
    ) -> Result<(), Fault> {
        let close = TokenSet::of(&[T::RightParen]);
        self.input.sync(site, EXPRESSION.union(close))?;
        if !EXPRESSION.contains(self.input.kind()?) {
            return Ok(());
        }
        self.input.enter(close);
        arguments.push(self.expression(AFTER_ITEM)?);
        while self.input.take_if(T::Comma)?.is_some() {
            arguments.push(self.expression(AFTER_ITEM)?);
        }
        self.input.leave();
        Ok(())
    }

    /// `IDENTIFIER | ESC_IDENTIFIER`.
    pub(super) fn field_name(&mut self, follow: TokenSet) -> Result<FieldName, Abort> {
        self.input.enter(follow);
        let mut field = FieldName { offset: self.input.token()?.offset, name: None };
        let mut outcome = self.input.sync(Site::FieldName, FIELD_NAME);
        if outcome.is_ok() {
            let token = self.input.token()?;
            if FIELD_NAME.contains(token.kind) {
                field.name = Some(self.input.take()?);
            } else {
                outcome = Err(no_viable_alternative(Site::FieldName, token, token));
            }
        }
        self.input.absorb(outcome)?;
        self.input.leave();
        Ok(field)
    }
}
