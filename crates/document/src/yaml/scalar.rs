//! Scans scalars: plain, quoted and block.
//!
//! A line break inside a scalar usually folds to a space. Blanks and breaks are held back until
//! the next character shows whether they belong to the value.

use super::YamlError;
use super::cursor::{END, Mark, is_blank, is_blank_or_end, is_break, is_break_or_end};
use super::scanner::Scanner;
use crate::node::Text;

/// Blanks and line breaks that were read but are not yet part of the value.
#[derive(Default)]
struct PendingWhitespace {
    blanks: Text,
    first_break: Text,
    more_breaks: Text,
    /// A line break was seen, so the blanks around it do not count.
    has_break: bool,
}

impl PendingWhitespace {
    fn push_break(&mut self, c: char, at: usize) {
        if self.has_break {
            self.more_breaks.push(c, at);
        } else {
            self.blanks.clear();
            self.first_break.push(c, at);
            self.has_break = true;
        }
    }

    /// Appends the pending white space to the value, with line breaks folded.
    fn flush(&mut self, text: &mut Text) {
        if !self.has_break {
            if !self.blanks.is_empty() {
                text.append(&mut self.blanks);
            }
            return;
        }
        if self.first_break.as_str().starts_with('\n') {
            if self.more_breaks.is_empty() {
                let at = self.first_break.file_offset(0).unwrap_or_default();
                text.push(' ', at);
            }
            self.first_break.clear();
        }
        text.append(&mut self.first_break);
        text.append(&mut self.more_breaks);
        self.blanks.clear();
        self.has_break = false;
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
    pub(super) fn scan_plain_scalar(&mut self) -> Result<(Text, Mark), YamlError> {
        let indent = self.content_indent();
        let mut text = Text::default();
        let mut pending = PendingWhitespace::default();
        let mut end = self.cursor.mark;
        loop {
            if self.is_at_any_document_indicator() || self.cursor.peek() == '#' {
                break;
            }
            while !is_blank_or_end(self.cursor.peek()) && !self.ends_plain_scalar() {
                pending.flush(&mut text);
                text.push(self.cursor.peek(), self.cursor.mark.offset);
                self.cursor.skip();
                end = self.cursor.mark;
            }
            if !is_blank(self.cursor.peek()) && !is_break(self.cursor.peek()) {
                break;
            }
            loop {
                let c = self.cursor.peek();
                let at = self.cursor.mark.offset;
                if is_blank(c) {
                    if pending.has_break && self.cursor.mark.column < indent && c == '\t' {
                        return Err(self.error("found a tab character that violates indentation"));
                    }
                    if !pending.has_break {
                        pending.blanks.push(c, at);
                    }
                    self.cursor.skip();
                } else if let Some(meaning) = self.cursor.read_break() {
                    pending.push_break(meaning, at);
                } else {
                    break;
                }
            }
            if !self.is_in_flow() && self.cursor.mark.column < indent {
                break;
            }
        }
        if pending.has_break {
            self.is_simple_key_allowed = true;
        }
        Ok((text, end))
    }

    fn ends_plain_scalar(&self) -> bool {
        match self.cursor.peek() {
            ':' => is_blank_or_end(self.cursor.peek_at(1)),
            ',' | '?' | '[' | ']' | '{' | '}' => self.is_in_flow(),
            _ => false,
        }
    }

    fn is_at_any_document_indicator(&self) -> bool {
        self.cursor.is_at_document_indicator('-') || self.cursor.is_at_document_indicator('.')
    }

    /// Scans a scalar in single or double quotes.
    pub(super) fn scan_quoted_scalar(&mut self, quote: char) -> Result<Text, YamlError> {
        self.cursor.skip();
        let mut text = Text::default();
        loop {
            if self.is_at_any_document_indicator() {
                return Err(self.error("found unexpected document indicator"));
            }
            if self.cursor.peek() == END {
                return Err(self.error("found unexpected end of stream"));
            }
            let mut pending = PendingWhitespace::default();
            self.scan_quoted_word(quote, &mut text, &mut pending)?;
            if self.cursor.peek() == quote {
                self.cursor.skip();
                return Ok(text);
            }
            loop {
                let c = self.cursor.peek();
                let at = self.cursor.mark.offset;
                if is_blank(c) {
                    if !pending.has_break {
                        pending.blanks.push(c, at);
                    }
                    self.cursor.skip();
                } else if let Some(meaning) = self.cursor.read_break() {
                    pending.push_break(meaning, at);
                } else {
                    break;
                }
            }
            pending.flush(&mut text);
        }
    }

    /// Scans up to a blank, a line break or the closing quote.
    fn scan_quoted_word(
        &mut self,
        quote: char,
        text: &mut Text,
        pending: &mut PendingWhitespace,
    ) -> Result<(), YamlError> {
        loop {
            let c = self.cursor.peek();
            let at = self.cursor.mark.offset;
            match c {
                _ if is_blank_or_end(c) => return Ok(()),
                '\'' if quote == '\'' && self.cursor.peek_at(1) == '\'' => {
                    text.push('\'', at);
                    self.cursor.skip_n(2);
                }
                _ if c == quote => return Ok(()),
                '\\' if quote == '"' && is_break(self.cursor.peek_at(1)) => {
                    // An escaped line break vanishes together with the blanks after it.
                    self.cursor.skip();
                    self.cursor.read_break();
                    pending.has_break = true;
                    return Ok(());
                }
                '\\' if quote == '"' => {
                    let c = self.scan_escape()?;
                    text.push(c, at);
                }
                _ => {
                    text.push(c, at);
                    self.cursor.skip();
                }
            }
        }
    }

    fn scan_escape(&mut self) -> Result<char, YamlError> {
        let (meaning, n_digits) = match self.cursor.peek_at(1) {
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
        self.cursor.skip_n(2);
        if n_digits == 0 {
            return Ok(meaning);
        }
        let mut value: u32 = 0;
        for n in 0..n_digits {
            let digit = self.cursor.peek_at(n).to_digit(16);
            let digit =
                digit.ok_or_else(|| self.error("did not find expected hexdecimal number"))?;
            value = (value << 4) | digit;
        }
        let c = char::from_u32(value)
            .ok_or_else(|| self.error("found invalid Unicode character escape code"))?;
        self.cursor.skip_n(n_digits);
        Ok(c)
    }

    /// Scans a literal (`|`) or folded (`>`) scalar; also returns where its last line ends.
    pub(super) fn scan_block_scalar(
        &mut self,
        is_literal: bool,
    ) -> Result<(Text, Mark), YamlError> {
        self.cursor.skip();
        let (chomp, increment) = self.scan_block_scalar_header()?;
        let mut end = self.cursor.mark;
        let mut indent = increment.map(|by| self.indent().unwrap_or(0) + by);

        let mut text = Text::default();
        let mut first_break = Text::default();
        let mut more_breaks = Text::default();
        self.scan_block_scalar_breaks(&mut indent, &mut more_breaks, &mut end)?;
        let mut was_blank = false;
        while Some(self.cursor.mark.column) == indent && self.cursor.peek() != END {
            let is_blank_line = is_blank(self.cursor.peek());
            let folds = !is_literal
                && !was_blank
                && !is_blank_line
                && first_break.as_str().starts_with('\n');
            if folds {
                if more_breaks.is_empty() {
                    text.push(' ', first_break.file_offset(0).unwrap_or_default());
                }
                first_break.clear();
            }
            text.append(&mut first_break);
            text.append(&mut more_breaks);
            was_blank = is_blank_line;
            while !is_break_or_end(self.cursor.peek()) {
                text.push(self.cursor.peek(), self.cursor.mark.offset);
                self.cursor.skip();
            }
            let at = self.cursor.mark.offset;
            if let Some(meaning) = self.cursor.read_break() {
                first_break.push(meaning, at);
            }
            self.scan_block_scalar_breaks(&mut indent, &mut more_breaks, &mut end)?;
        }
        if chomp != Chomping::Strip {
            text.append(&mut first_break);
        }
        if chomp == Chomping::Keep {
            text.append(&mut more_breaks);
        }
        Ok((text, end))
    }

    /// Scans the header after `|` or `>`: chomping and indentation in any order.
    fn scan_block_scalar_header(&mut self) -> Result<(Chomping, Option<usize>), YamlError> {
        let mut chomp = self.scan_chomp();
        let mut increment = None;
        if let Some(digit) = self.cursor.peek().to_digit(10) {
            if digit == 0 {
                return Err(self.error("found an indentation indicator equal to 0"));
            }
            increment = usize::try_from(digit).ok();
            self.cursor.skip();
            if chomp.is_none() {
                chomp = self.scan_chomp();
            }
        }
        self.cursor.skip_while(is_blank);
        self.cursor.skip_comment();
        if !is_break_or_end(self.cursor.peek()) {
            return Err(self.error("did not find expected comment or line break"));
        }
        self.cursor.read_break();
        Ok((chomp.unwrap_or(Chomping::Clip), increment))
    }

    fn scan_chomp(&mut self) -> Option<Chomping> {
        let chomp = match self.cursor.peek() {
            '+' => Chomping::Keep,
            '-' => Chomping::Strip,
            _ => return None,
        };
        self.cursor.skip();
        Some(chomp)
    }

    /// Skips indentation and empty lines. The first call finds out the indentation if the header
    /// did not say it.
    fn scan_block_scalar_breaks(
        &mut self,
        indent: &mut Option<usize>,
        breaks: &mut Text,
        end: &mut Mark,
    ) -> Result<(), YamlError> {
        *end = self.cursor.mark;
        let mut deepest = 0;
        loop {
            let is_left_of = |column| indent.is_none_or(|indent| column < indent);
            while is_left_of(self.cursor.mark.column) && self.cursor.peek() == ' ' {
                self.cursor.skip();
            }
            deepest = deepest.max(self.cursor.mark.column);
            if is_left_of(self.cursor.mark.column) && self.cursor.peek() == '\t' {
                return Err(
                    self.error("found a tab character where an indentation space is expected")
                );
            }
            let at = self.cursor.mark.offset;
            let Some(meaning) = self.cursor.read_break() else { break };
            breaks.push(meaning, at);
            *end = self.cursor.mark;
        }
        indent.get_or_insert(deepest.max(self.content_indent()).max(1));
        Ok(())
    }
}
