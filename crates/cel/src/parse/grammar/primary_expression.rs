//! Names, calls, parentheses and literals.

use super::token_sets::{AFTER_PRIMARY, PRIMARY};
use super::{Parser, no_viable_alternative};
use crate::parse::error_recovery::{GrammarSite, ParseFault};
use crate::parse::parse_issues::ParseAborted;
use crate::parse::syntax_tree::{SyntaxId, SyntaxNode};
use crate::parse::token::{Token, TokenKind as T, TokenSet};

impl Parser<'_> {
    /// Names, calls, parentheses, lists, maps, messages and literals.
    pub(super) fn primary(&mut self) -> Result<SyntaxId, ParseAborted> {
        self.input.enter(AFTER_PRIMARY);
        let mut result = SyntaxId::MISSING;
        let outcome = self.primary_alternatives(&mut result);
        self.input.absorb(outcome)?;
        self.input.leave();
        Ok(result)
    }

    fn primary_alternatives(&mut self, result: &mut SyntaxId) -> Result<(), ParseFault> {
        self.input.sync(GrammarSite::Primary, PRIMARY)?;
        let first = self.input.token()?;
        match first.kind {
            T::LeftParen => self.nested(result),
            T::LeftBracket => self.list(result),
            T::LeftBrace => self.map(result),
            T::Identifier | T::Dot => match self.predict_name(first)? {
                NamePrediction::Ident => Ok(self.ident(result)?),
                NamePrediction::Call => self.call(result),
                NamePrediction::Message => self.message(result),
            },
            kind if PRIMARY.contains(kind) => Ok(self.literal(result)?),
            _ => Err(no_viable_alternative(GrammarSite::Primary, first, first)),
        }
    }

    /// Looks past a name to what it is the name of.
    fn predict_name(&mut self, first: Token) -> Result<NamePrediction, ParseFault> {
        let mut ahead = usize::from(first.kind == T::Dot);
        let name = self.input.peek(ahead)?;
        if name.kind != T::Identifier {
            return Err(no_viable_alternative(GrammarSite::Primary, first, name));
        }
        if self.input.peek(ahead + 1)?.kind == T::LeftParen {
            return Ok(NamePrediction::Call);
        }
        while self.input.peek(ahead + 1)?.kind == T::Dot
            && self.input.peek(ahead + 2)?.kind == T::Identifier
        {
            ahead += 2;
        }
        match self.input.peek(ahead + 1)?.kind {
            T::LeftBrace => Ok(NamePrediction::Message),
            _ => Ok(NamePrediction::Ident),
        }
    }

    fn ident(&mut self, result: &mut SyntaxId) -> Result<(), ParseAborted> {
        let start = self.input.token()?.start;
        let leading_dot = self.input.take_if(T::Dot)?.map(|dot| dot.offset);
        let name = self.input.take()?;
        *result = self.push(start, SyntaxNode::Ident { leading_dot, name });
        Ok(())
    }

    fn call(&mut self, result: &mut SyntaxId) -> Result<(), ParseFault> {
        let start = self.input.token()?.start;
        let leading_dot = self.input.take_if(T::Dot)?.map(|dot| dot.offset);
        let name = self.input.take()?;
        let open = self.input.take()?.offset;
        let mut arguments = Vec::new();
        let outcome = self.arguments(GrammarSite::CallArguments, &mut arguments).and_then(|()| {
            self.input.expect(GrammarSite::CallArgumentsClose, T::RightParen, TokenSet::RULE_END)
        });
        *result = self.push(start, SyntaxNode::Call { leading_dot, name, open, arguments });
        outcome.map(|_| ())
    }

    fn nested(&mut self, result: &mut SyntaxId) -> Result<(), ParseFault> {
        self.input.take()?;
        *result = self.expression(TokenSet::of(&[T::RightParen]))?;
        self.input.expect(GrammarSite::NestedClose, T::RightParen, TokenSet::RULE_END)?;
        Ok(())
    }

    fn literal(&mut self, result: &mut SyntaxId) -> Result<(), ParseAborted> {
        let first = self.input.token()?;
        let mut sign = None;
        if first.kind == T::Minus {
            let second = self.input.peek(1)?;
            if !matches!(second.kind, T::Int | T::Float) {
                let fault = no_viable_alternative(GrammarSite::Literal, first, second);
                return self.input.absorb(Err(fault));
            }
            sign = Some(self.input.take()?);
        }
        let token = self.input.take()?;
        *result = self.push(first.start, SyntaxNode::Literal { sign, token });
        Ok(())
    }
}

/// What a name can be the beginning of.
enum NamePrediction {
    Ident,
    Call,
    Message,
}
