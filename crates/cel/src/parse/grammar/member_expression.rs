//! Parses selections, member calls and index expressions.

use super::token_sets::{AFTER_ITEM, AFTER_PRIMARY, EXPRESSION, FIELD_NAME, OPTIONAL_EXPRESSION};
use super::{Parser, no_viable_alternative_fault};
use crate::parse::concrete_syntax_tree::{ElementSyntax, FieldName, SyntaxNode, SyntaxNodeId};
use crate::parse::error_recovery::{GrammarPosition, ParseFault};
use crate::parse::parse_issues::ParseAborted;
use crate::parse::token::{TokenKind as T, TokenSet};

impl Parser<'_> {
    /// Parses the rule `primary`, followed by any number of selections, calls and indices.
    pub(super) fn parse_member_expression(&mut self) -> Result<SyntaxNodeId, ParseAborted> {
        let start = self.tokens.current_token()?.start;
        let mut result = self.parse_primary()?;
        loop {
            let outcome = match self.tokens.current_token_kind()? {
                T::Dot => self.parse_dot_suffix(start, &mut result),
                T::LeftBracket => self.parse_index_suffix(start, &mut result),
                _ => return Ok(result),
            };
            let failed = outcome.is_err();
            self.tokens.finish_grammar_rule(outcome)?;
            if failed {
                return Ok(result);
            }
        }
    }

    fn parse_dot_suffix(
        &mut self,
        start: u32,
        result: &mut SyntaxNodeId,
    ) -> Result<(), ParseFault> {
        let dot = self.tokens.current_token()?;
        let after = self.tokens.peek_token(1)?;
        match after.kind {
            T::Identifier if self.tokens.peek_token(2)?.kind == T::LeftParen => {
                self.parse_member_call(start, result)
            }
            T::Identifier | T::EscapedIdentifier | T::Question => {
                Ok(self.parse_select(start, result)?)
            }
            _ => Err(no_viable_alternative_fault(GrammarPosition::MemberSuffix, dot, after)),
        }
    }

    fn parse_select(&mut self, start: u32, result: &mut SyntaxNodeId) -> Result<(), ParseAborted> {
        let operand = *result;
        let dot = self.tokens.take_token()?.source_offset;
        let is_optional = self.tokens.take_token_if(T::Question)?.is_some();
        let field = self.parse_field_name(AFTER_PRIMARY)?;
        *result = self.push(start, SyntaxNode::Select { operand, dot, is_optional, field });
        Ok(())
    }

    fn parse_member_call(
        &mut self,
        start: u32,
        result: &mut SyntaxNodeId,
    ) -> Result<(), ParseFault> {
        let operand = *result;
        self.tokens.take_token()?;
        let name = self.tokens.take_token()?;
        let open = self.tokens.take_token()?.source_offset;
        let mut arguments = Vec::new();
        let outcome =
            self.parse_arguments(GrammarPosition::MemberArguments, &mut arguments).and_then(|()| {
                self.tokens.expect_token(
                    GrammarPosition::MemberArgumentsClose,
                    T::RightParen,
                    AFTER_PRIMARY,
                )
            });
        *result = self.push(start, SyntaxNode::MemberCall { operand, name, open, arguments });
        outcome.map(|_| ())
    }

    fn parse_index_suffix(
        &mut self,
        start: u32,
        result: &mut SyntaxNodeId,
    ) -> Result<(), ParseFault> {
        let operand = *result;
        let open = self.tokens.take_token()?.source_offset;
        let mut element = ElementSyntax { has_optional_mark: false, value: SyntaxNodeId::MISSING };
        let outcome = self.parse_index_expression(&mut element);
        let ElementSyntax { has_optional_mark: is_optional, value: index } = element;
        *result = self.push(start, SyntaxNode::Index { operand, open, is_optional, index });
        outcome
    }

    fn parse_index_expression(&mut self, element: &mut ElementSyntax) -> Result<(), ParseFault> {
        self.tokens.sync_to_expected_token(GrammarPosition::Index, OPTIONAL_EXPRESSION)?;
        element.has_optional_mark = self.tokens.take_token_if(T::Question)?.is_some();
        element.value = self.parse_expression(TokenSet::from_token_kinds(&[T::RightBracket]))?;
        self.tokens.expect_token(GrammarPosition::IndexClose, T::RightBracket, AFTER_PRIMARY)?;
        Ok(())
    }

    /// Parses an optional `expr (',' expr)*`.
    pub(super) fn parse_arguments(
        &mut self,
        position: GrammarPosition,
        arguments: &mut Vec<SyntaxNodeId>,
    ) -> Result<(), ParseFault> {
        let close = TokenSet::from_token_kinds(&[T::RightParen]);
        self.tokens.sync_to_expected_token(position, EXPRESSION.union_with(close))?;
        if !EXPRESSION.contains(self.tokens.current_token_kind()?) {
            return Ok(());
        }
        self.tokens.enter_grammar_rule(close);
        arguments.push(self.parse_expression(AFTER_ITEM)?);
        while self.tokens.take_token_if(T::Comma)?.is_some() {
            arguments.push(self.parse_expression(AFTER_ITEM)?);
        }
        self.tokens.leave_grammar_rule();
        Ok(())
    }

    /// Parses the rule `IDENTIFIER | ESC_IDENTIFIER`.
    pub(super) fn parse_field_name(
        &mut self,
        follow_set: TokenSet,
    ) -> Result<FieldName, ParseAborted> {
        self.tokens.enter_grammar_rule(follow_set);
        let mut field =
            FieldName { source_offset: self.tokens.current_token()?.source_offset, name: None };
        let mut outcome =
            self.tokens.sync_to_expected_token(GrammarPosition::FieldName, FIELD_NAME);
        if outcome.is_ok() {
            let token = self.tokens.current_token()?;
            if FIELD_NAME.contains(token.kind) {
                field.name = Some(self.tokens.take_token()?);
            } else {
                outcome =
                    Err(no_viable_alternative_fault(GrammarPosition::FieldName, token, token));
            }
        }
        self.tokens.finish_grammar_rule(outcome)?;
        self.tokens.leave_grammar_rule();
        Ok(field)
    }
}
