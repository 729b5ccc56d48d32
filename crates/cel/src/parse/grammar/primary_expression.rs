//! Parses names, global calls, parentheses and literals.

use super::token_sets::{AFTER_PRIMARY, PRIMARY};
use super::{Parser, no_viable_alternative_fault};
use crate::parse::concrete_syntax_tree::{SyntaxNode, SyntaxNodeId};
use crate::parse::error_recovery::{GrammarPosition, ParseFault};
use crate::parse::parse_issues::ParseAborted;
use crate::parse::token::{Token, TokenKind as T, TokenSet};

impl Parser<'_> {
    /// Parses a name, a global call, an expression in parentheses, or a literal.
    pub(super) fn parse_primary(&mut self) -> Result<SyntaxNodeId, ParseAborted> {
        self.tokens.enter_grammar_rule(AFTER_PRIMARY);
        let mut result = SyntaxNodeId::MISSING;
        let outcome = self.parse_primary_alternatives(&mut result);
        self.tokens.finish_grammar_rule(outcome)?;
        self.tokens.leave_grammar_rule();
        Ok(result)
    }

    fn parse_primary_alternatives(&mut self, result: &mut SyntaxNodeId) -> Result<(), ParseFault> {
        self.tokens.sync_to_expected_token(GrammarPosition::Primary, PRIMARY)?;
        let first = self.tokens.current_token()?;
        match first.kind {
            T::LeftParen => self.parse_parenthesized(result),
            T::LeftBracket => self.parse_list_literal(result),
            T::LeftBrace => self.parse_map_literal(result),
            T::Identifier | T::Dot => match self.predict_ident_call_or_message(first)? {
                IdentCallOrMessage::Ident => Ok(self.parse_ident(result)?),
                IdentCallOrMessage::Call => self.parse_global_call(result),
                IdentCallOrMessage::Message => self.parse_message_literal(result),
            },
            kind if PRIMARY.contains(kind) => Ok(self.parse_literal_token(result)?),
            _ => Err(no_viable_alternative_fault(GrammarPosition::Primary, first, first)),
        }
    }

    /// Looks ahead past a name to find out which construct it begins.
    fn predict_ident_call_or_message(
        &mut self,
        first: Token,
    ) -> Result<IdentCallOrMessage, ParseFault> {
        let mut ahead = usize::from(first.kind == T::Dot);
        let name = self.tokens.peek_token(ahead)?;
        if name.kind != T::Identifier {
            return Err(no_viable_alternative_fault(GrammarPosition::Primary, first, name));
        }
        if self.tokens.peek_token(ahead + 1)?.kind == T::LeftParen {
            return Ok(IdentCallOrMessage::Call);
        }
        while self.tokens.peek_token(ahead + 1)?.kind == T::Dot
            && self.tokens.peek_token(ahead + 2)?.kind == T::Identifier
        {
            ahead += 2;
        }
        match self.tokens.peek_token(ahead + 1)?.kind {
            T::LeftBrace => Ok(IdentCallOrMessage::Message),
            _ => Ok(IdentCallOrMessage::Ident),
        }
    }

    fn parse_ident(&mut self, result: &mut SyntaxNodeId) -> Result<(), ParseAborted> {
        let start = self.tokens.current_token()?.start;
        let leading_dot = self.tokens.take_token_if(T::Dot)?.map(|dot| dot.source_offset);
        let name = self.tokens.take_token()?;
        *result = self.push(start, SyntaxNode::Ident { leading_dot, name });
        Ok(())
    }

    fn parse_global_call(&mut self, result: &mut SyntaxNodeId) -> Result<(), ParseFault> {
        let start = self.tokens.current_token()?.start;
        let leading_dot = self.tokens.take_token_if(T::Dot)?.map(|dot| dot.source_offset);
        let name = self.tokens.take_token()?;
        let open = self.tokens.take_token()?.source_offset;
        let mut arguments = Vec::new();
        let outcome =
            self.parse_arguments(GrammarPosition::CallArguments, &mut arguments).and_then(|()| {
                self.tokens.expect_token(
                    GrammarPosition::CallArgumentsClose,
                    T::RightParen,
                    TokenSet::RULE_END,
                )
            });
        *result = self.push(start, SyntaxNode::Call { leading_dot, name, open, arguments });
        outcome.map(|_| ())
    }

    fn parse_parenthesized(&mut self, result: &mut SyntaxNodeId) -> Result<(), ParseFault> {
        self.tokens.take_token()?;
        *result = self.parse_expression(TokenSet::from_token_kinds(&[T::RightParen]))?;
        self.tokens.expect_token(
            GrammarPosition::NestedClose,
            T::RightParen,
            TokenSet::RULE_END,
        )?;
        Ok(())
    }

    fn parse_literal_token(&mut self, result: &mut SyntaxNodeId) -> Result<(), ParseAborted> {
        let first = self.tokens.current_token()?;
        let mut sign = None;
        if first.kind == T::Minus {
            let second = self.tokens.peek_token(1)?;
            if !matches!(second.kind, T::Int | T::Float) {
                let fault = no_viable_alternative_fault(GrammarPosition::Literal, first, second);
                return self.tokens.finish_grammar_rule(Err(fault));
            }
            sign = Some(self.tokens.take_token()?);
        }
        let token = self.tokens.take_token()?;
        *result = self.push(first.start, SyntaxNode::Literal { sign, token });
        Ok(())
    }
}

/// A construct that begins with a name.
enum IdentCallOrMessage {
    Ident,
    Call,
    Message,
}
