//! Selections, calls and indices.

use super::token_sets::{AFTER_ITEM, AFTER_PRIMARY, EXPRESSION, FIELD_NAME, OPTIONAL_EXPRESSION};
use super::{Parser, no_viable_alternative};
use crate::parse::error_recovery::{GrammarSite, ParseFault};
use crate::parse::parse_issues::ParseAborted;
use crate::parse::syntax_tree::{FieldName, SyntaxElement, SyntaxId, SyntaxNode};
use crate::parse::token::{TokenKind as T, TokenSet};

impl Parser<'_> {
    /// `primary` and any number of selections, calls and indices.
    pub(super) fn member(&mut self) -> Result<SyntaxId, ParseAborted> {
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

    fn dot_suffix(&mut self, start: u32, result: &mut SyntaxId) -> Result<(), ParseFault> {
        let dot = self.input.token()?;
        let after = self.input.peek(1)?;
        match after.kind {
            T::Identifier if self.input.peek(2)?.kind == T::LeftParen => {
                self.member_call(start, result)
            }
            T::Identifier | T::EscapedIdentifier | T::Question => Ok(self.select(start, result)?),
            _ => Err(no_viable_alternative(GrammarSite::MemberSuffix, dot, after)),
        }
    }

    fn select(&mut self, start: u32, result: &mut SyntaxId) -> Result<(), ParseAborted> {
        let operand = *result;
        let dot = self.input.take()?.offset;
        let optional = self.input.take_if(T::Question)?.is_some();
        let field = self.field_name(AFTER_PRIMARY)?;
        *result = self.push(start, SyntaxNode::Select { operand, dot, optional, field });
        Ok(())
    }

    fn member_call(&mut self, start: u32, result: &mut SyntaxId) -> Result<(), ParseFault> {
        let operand = *result;
        self.input.take()?;
        let name = self.input.take()?;
        let open = self.input.take()?.offset;
        let mut arguments = Vec::new();
        let outcome = self.arguments(GrammarSite::MemberArguments, &mut arguments).and_then(|()| {
            self.input.expect(GrammarSite::MemberArgumentsClose, T::RightParen, AFTER_PRIMARY)
        });
        *result = self.push(start, SyntaxNode::MemberCall { operand, name, open, arguments });
        outcome.map(|_| ())
    }

    fn index(&mut self, start: u32, result: &mut SyntaxId) -> Result<(), ParseFault> {
        let operand = *result;
        let open = self.input.take()?.offset;
        let mut element = SyntaxElement { optional: false, value: SyntaxId::MISSING };
        let outcome = self.index_inside(&mut element);
        let SyntaxElement { optional, value: index } = element;
        *result = self.push(start, SyntaxNode::Index { operand, open, optional, index });
        outcome
    }

    fn index_inside(&mut self, element: &mut SyntaxElement) -> Result<(), ParseFault> {
        self.input.sync(GrammarSite::Index, OPTIONAL_EXPRESSION)?;
        element.optional = self.input.take_if(T::Question)?.is_some();
        element.value = self.expression(TokenSet::of(&[T::RightBracket]))?;
        self.input.expect(GrammarSite::IndexClose, T::RightBracket, AFTER_PRIMARY)?;
        Ok(())
    }

    /// `expr (',' expr)*`, or nothing.
    pub(super) fn arguments(
        &mut self,
        site: GrammarSite,
        arguments: &mut Vec<SyntaxId>,
    ) -> Result<(), ParseFault> {
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
    pub(super) fn field_name(&mut self, follow: TokenSet) -> Result<FieldName, ParseAborted> {
        self.input.enter(follow);
        let mut field = FieldName { offset: self.input.token()?.offset, name: None };
        let mut outcome = self.input.sync(GrammarSite::FieldName, FIELD_NAME);
        if outcome.is_ok() {
            let token = self.input.token()?;
            if FIELD_NAME.contains(token.kind) {
                field.name = Some(self.input.take()?);
            } else {
                outcome = Err(no_viable_alternative(GrammarSite::FieldName, token, token));
            }
        }
        self.input.absorb(outcome)?;
        self.input.leave();
        Ok(field)
    }
}
