//! The words and symbols of a label selector.

use std::fmt;

/// A word, a symbol, or the end of the selector. Displays as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LabelToken<'a> {
    /// A key, a value, or the operator `in` or `notin`, depending on where it stands.
    Word(&'a str),
    /// One of `= == ! != ( ) , < >`.
    Symbol(&'static str),
    /// The end of the selector.
    End,
}

impl fmt::Display for LabelToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) | Self::Symbol(text) => f.write_str(text),
            Self::End => Ok(()),
        }
    }
}

/// Cuts a selector into tokens, one at a time.
///
/// Kubernetes' lexer treats NUL as the end mark. So NUL ends the selector where a token could begin, and the lexer
/// skips a NUL that directly follows a token.
pub(super) struct LabelLexer<'a> {
    remaining_selector_text: &'a str,
    peeked_token: Option<LabelToken<'a>>,
}

impl<'a> LabelLexer<'a> {
    pub(super) fn new(selector: &'a str) -> Self {
        Self { remaining_selector_text: selector, peeked_token: None }
    }

    pub(super) fn peek_token(&mut self) -> LabelToken<'a> {
        let token = self.peeked_token.unwrap_or_else(|| self.scan_token());
        self.peeked_token = Some(token);
        token
    }

    pub(super) fn next(&mut self) -> LabelToken<'a> {
        self.peeked_token.take().unwrap_or_else(|| self.scan_token())
    }

    fn scan_token(&mut self) -> LabelToken<'a> {
        let text = self.remaining_selector_text.trim_start_matches(is_blank);
        let (token, n_bytes) = match text.as_bytes() {
            [] | [b'\0', ..] => {
                self.remaining_selector_text = "";
                return LabelToken::End;
            }
            [b'=', b'=', ..] => (LabelToken::Symbol("=="), 2),
            [b'!', b'=', ..] => (LabelToken::Symbol("!="), 2),
            [b'=', ..] => (LabelToken::Symbol("="), 1),
            [b'!', ..] => (LabelToken::Symbol("!"), 1),
            [b'(', ..] => (LabelToken::Symbol("("), 1),
            [b')', ..] => (LabelToken::Symbol(")"), 1),
            [b',', ..] => (LabelToken::Symbol(","), 1),
            [b'<', ..] => (LabelToken::Symbol("<"), 1),
            [b'>', ..] => (LabelToken::Symbol(">"), 1),
            _ => {
                let end = text.find(is_word_delimiter).unwrap_or(text.len());
                (LabelToken::Word(&text[..end]), end)
            }
        };
        let rest = &text[n_bytes..];
        self.remaining_selector_text = rest.strip_prefix('\0').unwrap_or(rest);
        token
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_word_delimiter(c: char) -> bool {
    is_blank(c) || matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<' | '\0')
}
