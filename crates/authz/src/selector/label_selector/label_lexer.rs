//! The words and symbols of a label selector.

use std::fmt;

/// A word, a symbol, or the end. Displays as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A key, a value, or the operator `in` or `notin`, depending on where it stands.
    Word(&'a str),
    /// One of `= == ! != ( ) , < >`.
    Symbol(&'static str),
    /// The end of the selector.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) | Self::Symbol(text) => f.write_str(text),
            Self::End => Ok(()),
        }
    }
}

/// Cuts a selector into tokens, one at a time.
///
/// NUL is the end mark of Kubernetes' lexer: where a token could begin it ends the selector, and
/// right behind a token it is skipped.
pub(super) struct Lexer<'a> {
    rest: &'a str,
    peeked: Option<Token<'a>>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(selector: &'a str) -> Self {
        Self { rest: selector, peeked: None }
    }

    pub(super) fn peek(&mut self) -> Token<'a> {
        let token = self.peeked.unwrap_or_else(|| self.scan());
        self.peeked = Some(token);
        token
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        self.peeked.take().unwrap_or_else(|| self.scan())
    }

    fn scan(&mut self) -> Token<'a> {
        let text = self.rest.trim_start_matches(is_blank);
        let (token, n_bytes) = match text.as_bytes() {
            [] | [b'\0', ..] => {
                self.rest = "";
                return Token::End;
            }
            [b'=', b'=', ..] => (Token::Symbol("=="), 2),
            [b'!', b'=', ..] => (Token::Symbol("!="), 2),
            [b'=', ..] => (Token::Symbol("="), 1),
            [b'!', ..] => (Token::Symbol("!"), 1),
            [b'(', ..] => (Token::Symbol("("), 1),
            [b')', ..] => (Token::Symbol(")"), 1),
            [b',', ..] => (Token::Symbol(","), 1),
            [b'<', ..] => (Token::Symbol("<"), 1),
            [b'>', ..] => (Token::Symbol(">"), 1),
            _ => {
                let end = text.find(ends_word).unwrap_or(text.len());
                (Token::Word(&text[..end]), end)
            }
        };
        let rest = &text[n_bytes..];
        self.rest = rest.strip_prefix('\0').unwrap_or(rest);
        token
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn ends_word(c: char) -> bool {
    is_blank(c) || matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<' | '\0')
}
