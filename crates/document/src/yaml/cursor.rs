//! A read position in the text.

use crate::source::Span;

/// Represents the end of the text. [`is_allowed`] excludes this character from every text.
pub(super) const END: char = '\0';

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A read position, counted as libyaml counts: every line break counts as one, also NEL, LS and PS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// Number of bytes before the mark.
    pub(super) offset: usize,
    /// Number of characters before the mark.
    pub(super) index: usize,
    /// Line number, from 0.
    pub(super) line: usize,
    /// In characters, from 0.
    pub(super) column: usize,
}

impl Mark {
    pub(super) fn span(self) -> Span {
        Span::new(self.offset, self.offset)
    }
}

/// Reports whether YAML allows a character.
pub(super) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub(super) fn is_break_or_end(c: char) -> bool {
    is_break(c) || c == END
}

pub(super) fn is_blank_or_end(c: char) -> bool {
    is_blank(c) || is_break_or_end(c)
}

/// A character of a tag handle or an anchor.
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Walks over the text.
pub(super) struct Cursor<'t> {
    text: &'t str,
    pub(super) mark: Mark,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut cursor = Self { text, mark: Mark::default() };
        if cursor.peek() == BYTE_ORDER_MARK {
            cursor.mark.offset = BYTE_ORDER_MARK.len_utf8();
        }
        cursor
    }

    /// The character at the cursor, or [`END`].
    pub(super) fn peek(&self) -> char {
        match self.text.as_bytes().get(self.mark.offset) {
            Some(byte) if byte.is_ascii() => char::from(*byte),
            Some(_) => self.peek_at(0),
            None => END,
        }
    }

    /// The character `n` further, or [`END`].
    pub(super) fn peek_at(&self, n: usize) -> char {
        let rest = self.text.get(self.mark.offset..).unwrap_or_default();
        match rest.as_bytes().get(..=n) {
            Some(ascii) if ascii.is_ascii() => ascii.last().map_or(END, |&byte| char::from(byte)),
            _ => rest.chars().nth(n).unwrap_or(END),
        }
    }

    /// Steps over one character that is no line break; stays at the end.
    pub(super) fn skip(&mut self) {
        let c = self.peek();
        if c != END {
            self.mark.offset += c.len_utf8();
            self.mark.index += 1;
            self.mark.column += 1;
        }
    }

    pub(super) fn skip_n(&mut self, n: usize) {
        for _ in 0..n {
            self.skip();
        }
    }

    pub(super) fn skip_while(&mut self, accepts: fn(char) -> bool) {
        while accepts(self.peek()) {
            self.skip();
        }
    }

    /// Steps over a comment, if there is one, up to the end of its line.
    pub(super) fn skip_comment(&mut self) {
        if self.peek() == '#' {
            self.skip_while(|c| !is_break_or_end(c));
        }
    }

    /// Skips a line break and returns its meaning: LF, or LS and PS unchanged. Returns nothing if
    /// there is no line break.
    pub(super) fn read_break(&mut self) -> Option<char> {
        let (n_chars, meaning) = match self.peek() {
            '\r' if self.peek_at(1) == '\n' => (2, '\n'),
            '\r' | '\n' | '\u{85}' => (1, '\n'),
            c @ ('\u{2028}' | '\u{2029}') => (1, c),
            _ => return None,
        };
        self.skip_n(n_chars);
        self.mark.column = 0;
        self.mark.line += 1;
        Some(meaning)
    }

    /// Reports whether a line begins here with `---` or `...`, followed by a blank or its end.
    pub(super) fn is_at_document_indicator(&self, indicator: char) -> bool {
        self.mark.column == 0
            && (0..3).all(|n| self.peek_at(n) == indicator)
            && is_blank_or_end(self.peek_at(3))
    }
}
