//! Names, calls, parentheses and literals.

use super::sets::{AFTER_PRIMARY, PRIMARY};
use super::{Parser, no_viable_alternative};
use crate::parse::recover::{Fault, Site};
use crate::parse::report::Abort;
use crate::parse::syntax::{Syntax, SyntaxId};
use crate::parse::token::{Token, TokenKind as T, TokenSet};

impl Parser<'_> {
    /// Names, calls, parentheses, lists, maps, messages and literals.
    pub(super) fn primary(&mut self) -> Result<SyntaxId, Abort> {
        self.input.enter(AFTER_PRIMARY);
        let mut result = SyntaxId::MISSING;
        let outcome = self.primary_alternatives(&mut result);
        self.input.absorb(outcome)?;
        self.input.leave();
        Ok(result)
    }

    fn primary_alternatives(&mut self, result: &mut SyntaxId) -> Result<(), Fault> {
        self.input.sync(Site::Primary, PRIMARY)?;
        let first = self.input.token()?;
        match first.kind {
            T::LeftParen => self.nested(result),
            T::LeftBracket => self.list(result),
            T::LeftBrace => self.map(result),
            T::Identifier | T::Dot => match self.predict_name(first)? {
                Named::Ident => Ok(self.ident(result)?),
                Named::Call => self.call(result),
                Named::Message => self.message(result),
            },
            kind if PRIMARY.contains(kind) => Ok(self.literal(result)?),
            _ => Err(no_viable_alternative(Site::Primary, first, first)),
        }
    }

    /// Looks past a name to what it is the name of.
    fn predict_name(&mut self, first: Token) -> Result<Named, Fault> {
        let mut ahead = usize::from(first.kind == T::Dot);
        let name = self.input.peek(ahead)?;
        if name.kind != T::Identifier {
            return Err(no_viable_alternative(Site::Primary, first, name));
        }
        if self.input.peek(ahead + 1)?.kind == T::LeftParen {
            return Ok(Named::Call);
        }
        while self.input.peek(ahead + 1)?.kind == T::Dot
            && self.input.peek(ahead + 2)?.kind == T::Identifier
        {
            ahead += 2;
        }
        match self.input.peek(ahead + 1)?.kind {
            T::LeftBrace => Ok(Named::Message),
            _ => Ok(Named::Ident),
        }
    }

    fn ident(&mut self, result: &mut SyntaxId) -> Result<(), Abort> {
        let start = self.input.token()?.start;
        let leading_dot = self.input.take_if(T::Dot)?.map(|dot| dot.offset);
        let name = self.input.take()?;
        *result = self.push(start, Syntax::Ident { leading_dot, name });
        Ok(())
    }

    fn call(&mut self, result: &mut SyntaxId) -> Result<(), Fault> {
        let start = self.input.token()?.start;
        let leading_dot = self.input.take_if(T::Dot)?.map(|dot| dot.offset);
        let name = self.input.take()?;
        let open = self.input.take()?.offset;
        let mut arguments = Vec::new();
        let outcome = self.arguments(Site::CallArguments, &mut arguments).and_then(|()| {
            self.input.expect(Site::CallArgumentsClose, T::RightParen, TokenSet::RULE_END)
        });
        *result = self.push(start, Syntax::Call { leading_dot, name, open, arguments });
        outcome.map(|_| ())
    }

    fn nested(&mut self, result: &mut SyntaxId) -> Result<(), Fault> {
        self.input.take()?;
        *result = self.expression(TokenSet::of(&[T::RightParen]))?;
        self.input.expect(Site::NestedClose, T::RightParen, TokenSet::RULE_END)?;
        Ok(())
    }

    fn literal(&mut self, result: &mut SyntaxId) -> Result<(), Abort> {
        let first = self.input.token()?;
        let mut sign = None;
        if first.kind == T::Minus {
            let second = self.input.peek(1)?;
            if !matches!(second.kind, T::Int | T::Float) {
                let fault = no_viable_alternative(Site::Literal, first, second);
                return self.input.absorb(Err(fault));
            }
            sign = Some(self.input.take()?);
        }
        let token = self.input.take()?;
        *result = self.push(first.start, Syntax::Literal { sign, token });
        Ok(())
    }
}

/// What a name can be the beginning of.
enum Named {
    Ident,
    Call,
    Message,
}
