//! Walks over the characters of a text and counts lines and columns.

use crate::source::Span;

/// Stands for the end of the text. No text contains this character: [`is_yaml_character`] refuses it.
pub(super) const END: char = '\0';

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A position in the text, counted as libyaml does: NEL, LS and PS are line breaks too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CursorPosition {
    /// Number of bytes before the position.
    pub(super) offset: usize,
    /// Number of characters before the position.
    pub(super) index: usize,
    /// Line number, from 0.
    pub(super) line: usize,
    /// Column in characters, from 0.
    pub(super) column: usize,
}

impl CursorPosition {
    pub(super) fn span(self) -> Span {
        Span::new(self.offset, self.offset)
    }
}

/// Reports whether YAML allows a character.
pub(super) fn is_yaml_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(super) fn is_line_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub(super) fn is_line_break_or_end(c: char) -> bool {
    is_line_break(c) || c == END
}

pub(super) fn is_whitespace_or_end(c: char) -> bool {
    is_blank(c) || is_line_break_or_end(c)
}

/// Reports whether a tag handle or an anchor name may contain the character.
pub(super) fn is_anchor_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// A position in the text that moves forward one character at a time, and counts lines and columns.
pub(super) struct Cursor<'t> {
    text: &'t str,
    pub(super) position: CursorPosition,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut cursor = Self { text, position: CursorPosition::default() };
        if cursor.peek_char() == BYTE_ORDER_MARK {
            cursor.position.offset = BYTE_ORDER_MARK.len_utf8();
        }
        cursor
    }

    /// The character at the cursor, or [`END`].
    pub(super) fn peek_char(&self) -> char {
        match self.text.as_bytes().get(self.position.offset) {
            Some(byte) if byte.is_ascii() => char::from(*byte),
            Some(_) => self.peek_char_at(0),
            None => END,
        }
    }

    /// The character `n` characters after the cursor, or [`END`].
    pub(super) fn peek_char_at(&self, n: usize) -> char {
        let rest = self.text.get(self.position.offset..).unwrap_or_default();
        match rest.as_bytes().get(..=n) {
            Some(ascii) if ascii.is_ascii() => ascii.last().map_or(END, |&byte| char::from(byte)),
            _ => rest.chars().nth(n).unwrap_or(END),
        }
    }

    /// Skips one character that is no line break. Does nothing at the end of the text.
    pub(super) fn skip_char(&mut self) {
        let c = self.peek_char();
        if c != END {
            self.position.offset += c.len_utf8();
            self.position.index += 1;
            self.position.column += 1;
        }
    }

    pub(super) fn skip_chars(&mut self, n: usize) {
        for _ in 0..n {
            self.skip_char();
        }
    }

    pub(super) fn skip_while(&mut self, accepts: fn(char) -> bool) {
        while accepts(self.peek_char()) {
            self.skip_char();
        }
    }

    /// Skips a comment up to the end of its line, if there is one.
    pub(super) fn skip_comment(&mut self) {
        if self.peek_char() == '#' {
            self.skip_while(|c| !is_line_break_or_end(c));
        }
    }

    /// Skips a line break and returns the character that it stands for: LF, or LS and PS unchanged. Returns
    /// `None` if there is no line break.
    pub(super) fn read_line_break(&mut self) -> Option<char> {
        let (n_chars, meaning) = match self.peek_char() {
            '\r' if self.peek_char_at(1) == '\n' => (2, '\n'),
            '\r' | '\n' | '\u{85}' => (1, '\n'),
            c @ ('\u{2028}' | '\u{2029}') => (1, c),
            _ => return None,
        };
        self.skip_chars(n_chars);
        self.position.column = 0;
        self.position.line += 1;
        Some(meaning)
    }

    /// Reports whether a line begins here with `---` or `...`, followed by a blank or its end.
    pub(super) fn is_at_document_indicator(&self, indicator: char) -> bool {
        self.position.column == 0
            && (0..3).all(|n| self.peek_char_at(n) == indicator)
            && is_whitespace_or_end(self.peek_char_at(3))
    }
}
