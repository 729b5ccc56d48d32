//! Scans scalars: plain, quoted and block.
//!
//! A line break inside a scalar usually folds to a space. The scanner holds blanks and line breaks back
//! until the next character shows whether they belong to the value.

use super::YamlError;
use super::cursor::{
    CursorPosition, END, is_blank, is_line_break, is_line_break_or_end, is_whitespace_or_end,
};
use super::scanner::Scanner;
use crate::node::SpannedText;

/// Blanks and line breaks that were read but are not yet part of the value.
#[derive(Default)]
struct PendingWhitespace {
    pending_blanks: SpannedText,
    first_line_break: SpannedText,
    more_line_breaks: SpannedText,
    /// Whether a line break was read. Then the blanks around it do not count.
    has_line_break: bool,
}

impl PendingWhitespace {
    fn push_line_break(&mut self, c: char, at: usize) {
        if self.has_line_break {
            self.more_line_breaks.push(c, at);
        } else {
            self.pending_blanks.clear();
            self.first_line_break.push(c, at);
            self.has_line_break = true;
        }
    }

    /// Appends the pending white space to the value, with line breaks folded.
    fn flush(&mut self, text: &mut SpannedText) {
        if !self.has_line_break {
            if !self.pending_blanks.is_empty() {
                text.append(&mut self.pending_blanks);
            }
            return;
        }
        if self.first_line_break.as_str().starts_with('\n') {
            if self.more_line_breaks.is_empty() {
                let at = self.first_line_break.to_file_offset(0).unwrap_or_default();
                text.push(' ', at);
            }
            self.first_line_break.clear();
        }
        text.append(&mut self.first_line_break);
        text.append(&mut self.more_line_breaks);
        self.pending_blanks.clear();
        self.has_line_break = false;
    }
}

/// The treatment of the line breaks at the end of a block scalar.
#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    /// Scans an unquoted scalar; also returns where its last character ends.
    pub(super) fn scan_plain_scalar(&mut self) -> Result<(SpannedText, CursorPosition), YamlError> {
        let indent = self.content_indent();
        let mut text = SpannedText::default();
        let mut pending = PendingWhitespace::default();
        let mut end = self.cursor.position;
        loop {
            if self.is_at_any_document_indicator() || self.cursor.peek_char() == '#' {
                break;
            }
            while !is_whitespace_or_end(self.cursor.peek_char()) && !self.is_plain_scalar_end() {
                pending.flush(&mut text);
                text.push(self.cursor.peek_char(), self.cursor.position.offset);
                self.cursor.skip_char();
                end = self.cursor.position;
            }
            if !is_blank(self.cursor.peek_char()) && !is_line_break(self.cursor.peek_char()) {
                break;
            }
            self.scan_whitespace(&mut pending, indent)?;
            if !self.is_in_flow() && self.cursor.position.column < indent {
                break;
            }
        }
        if pending.has_line_break {
            self.is_simple_key_allowed = true;
        }
        Ok((text, end))
    }

    /// Reads blanks and line breaks into `pending`. A tab in the indentation, in a column before `indent`, is an
    /// error.
    fn scan_whitespace(
        &mut self,
        pending: &mut PendingWhitespace,
        indent: usize,
    ) -> Result<(), YamlError> {
        loop {
            let c = self.cursor.peek_char();
            let at = self.cursor.position.offset;
            if is_blank(c) {
                if pending.has_line_break && self.cursor.position.column < indent && c == '\t' {
                    return Err(self.error("found a tab character that violates indentation"));
                }
                if !pending.has_line_break {
                    pending.pending_blanks.push(c, at);
                }
                self.cursor.skip_char();
            } else if let Some(meaning) = self.cursor.read_line_break() {
                pending.push_line_break(meaning, at);
            } else {
                return Ok(());
            }
        }
    }

    fn is_plain_scalar_end(&self) -> bool {
        match self.cursor.peek_char() {
            ':' => is_whitespace_or_end(self.cursor.peek_char_at(1)),
            ',' | '?' | '[' | ']' | '{' | '}' => self.is_in_flow(),
            _ => false,
        }
    }

    fn is_at_any_document_indicator(&self) -> bool {
        self.cursor.is_at_document_indicator('-') || self.cursor.is_at_document_indicator('.')
    }

    /// Scans a scalar in single or double quotes.
    pub(super) fn scan_quoted_scalar(&mut self, quote: char) -> Result<SpannedText, YamlError> {
        self.cursor.skip_char();
        let mut text = SpannedText::default();
        loop {
            if self.is_at_any_document_indicator() {
                return Err(self.error("found unexpected document indicator"));
            }
            if self.cursor.peek_char() == END {
                return Err(self.error("found unexpected end of stream"));
            }
            let mut pending = PendingWhitespace::default();
            self.scan_quoted_word(quote, &mut text, &mut pending)?;
            if self.cursor.peek_char() == quote {
                self.cursor.skip_char();
                return Ok(text);
            }
            self.scan_whitespace(&mut pending, 0)?;
            pending.flush(&mut text);
        }
    }

    /// Scans up to a blank, a line break or the closing quote.
    fn scan_quoted_word(
        &mut self,
        quote: char,
        text: &mut SpannedText,
        pending: &mut PendingWhitespace,
    ) -> Result<(), YamlError> {
        loop {
            let c = self.cursor.peek_char();
            let at = self.cursor.position.offset;
            match c {
                _ if is_whitespace_or_end(c) => return Ok(()),
                '\'' if quote == '\'' && self.cursor.peek_char_at(1) == '\'' => {
                    text.push('\'', at);
                    self.cursor.skip_chars(2);
                }
                _ if c == quote => return Ok(()),
                '\\' if quote == '"' && is_line_break(self.cursor.peek_char_at(1)) => {
                    // An escaped line break vanishes together with the blanks after it.
                    self.cursor.skip_char();
                    self.cursor.read_line_break();
                    pending.has_line_break = true;
                    return Ok(());
                }
                '\\' if quote == '"' => {
                    let c = self.scan_escape()?;
                    text.push(c, at);
                }
                _ => {
                    text.push(c, at);
                    self.cursor.skip_char();
                }
            }
        }
    }

    fn scan_escape(&mut self) -> Result<char, YamlError> {
        let (meaning, n_digits) = match self.cursor.peek_char_at(1) {
            '0' => ('\0', 0),
            'a' => ('\x07', 0),
            'b' => ('\x08', 0),
            't' | '\t' => ('\t', 0),
            'n' => ('\n', 0),
            'v' => ('\x0b', 0),
            'f' => ('\x0c', 0),
            'r' => ('\r', 0),
            'e' => ('\x1b', 0),
            c @ (' ' | '"' | '\'' | '\\') => (c, 0),
            'N' => ('\u{85}', 0),
            '_' => ('\u{a0}', 0),
            'L' => ('\u{2028}', 0),
            'P' => ('\u{2029}', 0),
            'x' => (END, 2),
            'u' => (END, 4),
            'U' => (END, 8),
            _ => return Err(self.error("found unknown escape character")),
        };
        self.cursor.skip_chars(2);
        if n_digits == 0 {
            return Ok(meaning);
        }
        let mut value: u32 = 0;
        for n in 0..n_digits {
            let digit = self.cursor.peek_char_at(n).to_digit(16);
            let digit =
                digit.ok_or_else(|| self.error("did not find expected hexdecimal number"))?;
            value = (value << 4) | digit;
        }
        let c = char::from_u32(value)
            .ok_or_else(|| self.error("found invalid Unicode character escape code"))?;
        self.cursor.skip_chars(n_digits);
        Ok(c)
    }

    /// Scans a literal (`|`) or folded (`>`) scalar; also returns where its last line ends.
    pub(super) fn scan_block_scalar(
        &mut self,
        is_literal: bool,
    ) -> Result<(SpannedText, CursorPosition), YamlError> {
        self.cursor.skip_char();
        let (chomp, increment) = self.scan_block_scalar_header()?;
        let mut end = self.cursor.position;
        let mut indent = increment.map(|by| self.block_indent().unwrap_or(0) + by);

        let mut text = SpannedText::default();
        let mut first_line_break = SpannedText::default();
        let mut more_line_breaks = SpannedText::default();
        self.scan_empty_lines(&mut indent, &mut more_line_breaks, &mut end)?;
        let mut was_blank = false;
        while Some(self.cursor.position.column) == indent && self.cursor.peek_char() != END {
            let is_blank_line = is_blank(self.cursor.peek_char());
            let folds = !is_literal
                && !was_blank
                && !is_blank_line
                && first_line_break.as_str().starts_with('\n');
            if folds {
                if more_line_breaks.is_empty() {
                    text.push(' ', first_line_break.to_file_offset(0).unwrap_or_default());
                }
                first_line_break.clear();
            }
            text.append(&mut first_line_break);
            text.append(&mut more_line_breaks);
            was_blank = is_blank_line;
            while !is_line_break_or_end(self.cursor.peek_char()) {
                text.push(self.cursor.peek_char(), self.cursor.position.offset);
                self.cursor.skip_char();
            }
            let at = self.cursor.position.offset;
            if let Some(meaning) = self.cursor.read_line_break() {
                first_line_break.push(meaning, at);
            }
            self.scan_empty_lines(&mut indent, &mut more_line_breaks, &mut end)?;
        }
        if chomp != Chomping::Strip {
            text.append(&mut first_line_break);
        }
        if chomp == Chomping::Keep {
            text.append(&mut more_line_breaks);
        }
        Ok((text, end))
    }

    /// Scans the header after `|` or `>`: chomping and indentation in any order.
    fn scan_block_scalar_header(&mut self) -> Result<(Chomping, Option<usize>), YamlError> {
        let mut chomp = self.scan_chomping();
        let mut increment = None;
        if let Some(digit) = self.cursor.peek_char().to_digit(10) {
            if digit == 0 {
                return Err(self.error("found an indentation indicator equal to 0"));
            }
            increment = usize::try_from(digit).ok();
            self.cursor.skip_char();
            if chomp.is_none() {
                chomp = self.scan_chomping();
            }
        }
        self.cursor.skip_while(is_blank);
        self.cursor.skip_comment();
        if !is_line_break_or_end(self.cursor.peek_char()) {
            return Err(self.error("did not find expected comment or line break"));
        }
        self.cursor.read_line_break();
        Ok((chomp.unwrap_or(Chomping::Clip), increment))
    }

    fn scan_chomping(&mut self) -> Option<Chomping> {
        let chomp = match self.cursor.peek_char() {
            '+' => Chomping::Keep,
            '-' => Chomping::Strip,
            _ => return None,
        };
        self.cursor.skip_char();
        Some(chomp)
    }

    /// Skips indentation and collects the line breaks of empty lines. If the header does not give the
    /// indentation, the first call determines it.
    fn scan_empty_lines(
        &mut self,
        indent: &mut Option<usize>,
        breaks: &mut SpannedText,
        end: &mut CursorPosition,
    ) -> Result<(), YamlError> {
        *end = self.cursor.position;
        let mut deepest = 0;
        loop {
            let is_left_of = |column| indent.is_none_or(|indent| column < indent);
            while is_left_of(self.cursor.position.column) && self.cursor.peek_char() == ' ' {
                self.cursor.skip_char();
            }
            deepest = deepest.max(self.cursor.position.column);
            if is_left_of(self.cursor.position.column) && self.cursor.peek_char() == '\t' {
                return Err(
                    self.error("found a tab character where an indentation space is expected")
                );
            }
            let at = self.cursor.position.offset;
            let Some(meaning) = self.cursor.read_line_break() else { break };
            breaks.push(meaning, at);
            *end = self.cursor.position;
        }
        indent.get_or_insert(deepest.max(self.content_indent()).max(1));
        Ok(())
    }
}
