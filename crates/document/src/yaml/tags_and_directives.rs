//! Scans directives, anchors and tags.

use super::YamlError;
use super::cursor::{
    is_anchor_name_character, is_blank, is_line_break_or_end, is_whitespace_or_end,
};
use super::scanner::{Scanner, TokenKind};

/// The maximum number of digits of a version number in a `%YAML` directive. libyaml has the same
/// limit.
const VERSION_DIGITS_MAX: usize = 2;

impl Scanner<'_> {
    /// Scans `%YAML 1.1` or `%TAG !handle! prefix` with the rest of its line.
    pub(super) fn scan_directive(&mut self) -> Result<TokenKind, YamlError> {
        self.cursor.skip_char();
        let name = self.scan_word();
        if name.is_empty() {
            return Err(self.error("could not find expected directive name"));
        }
        if !is_whitespace_or_end(self.cursor.peek_char()) {
            return Err(self.error("found unexpected non-alphabetical character"));
        }
        let directive = match name.as_str() {
            "YAML" => self.scan_version_directive()?,
            "TAG" => self.scan_tag_directive()?,
            _ => return Err(self.error("found unknown directive name")),
        };
        self.cursor.skip_while(is_blank);
        self.cursor.skip_comment();
        if !is_line_break_or_end(self.cursor.peek_char()) {
            return Err(self.error("did not find expected comment or line break"));
        }
        self.cursor.read_line_break();
        Ok(directive)
    }

    fn scan_version_directive(&mut self) -> Result<TokenKind, YamlError> {
        self.cursor.skip_while(is_blank);
        let major = self.scan_version_number()?;
        if self.cursor.peek_char() != '.' {
            return Err(self.error("did not find expected digit or '.' character"));
        }
        self.cursor.skip_char();
        let minor = self.scan_version_number()?;
        Ok(TokenKind::VersionDirective { major, minor })
    }

    fn scan_version_number(&mut self) -> Result<u8, YamlError> {
        let mut digits = String::new();
        while self.cursor.peek_char().is_ascii_digit() {
            digits.push(self.cursor.peek_char());
            if digits.len() > VERSION_DIGITS_MAX {
                return Err(self.error("found extremely long version number"));
            }
            self.cursor.skip_char();
        }
        digits.parse().map_err(|_| self.error("did not find expected version number"))
    }

    fn scan_tag_directive(&mut self) -> Result<TokenKind, YamlError> {
        self.cursor.skip_while(is_blank);
        let handle = self.scan_tag_handle()?;
        if handle.len() > 1 && !handle.ends_with('!') {
            return Err(self.error("did not find expected '!'"));
        }
        if !is_blank(self.cursor.peek_char()) {
            return Err(self.error("did not find expected whitespace"));
        }
        self.cursor.skip_while(is_blank);
        let prefix = self.scan_tag_uri("")?;
        if prefix.is_empty() {
            return Err(self.error("did not find expected tag URI"));
        }
        if !is_whitespace_or_end(self.cursor.peek_char()) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(TokenKind::TagDirective { handle, prefix })
    }

    /// Scans the word after `&` or `*`.
    pub(super) fn scan_anchor_name(&mut self) -> Result<String, YamlError> {
        self.cursor.skip_char();
        let word = self.scan_word();
        let next = self.cursor.peek_char();
        let ends_well = is_whitespace_or_end(next)
            || matches!(next, '?' | ':' | ',' | ']' | '}' | '%' | '@' | '`');
        if word.is_empty() || !ends_well {
            return Err(self.error("did not find expected alphabetic or numeric character"));
        }
        Ok(word)
    }

    /// Scans `!`, `!suffix`, `!handle!suffix` or `!<uri>`.
    pub(super) fn scan_tag(&mut self) -> Result<TokenKind, YamlError> {
        let (handle, suffix) = if self.cursor.peek_char_at(1) == '<' {
            self.cursor.skip_chars(2);
            let uri = self.scan_tag_uri("")?;
            if uri.is_empty() {
                return Err(self.error("did not find expected tag URI"));
            }
            if self.cursor.peek_char() != '>' {
                return Err(self.error("did not find the expected '>'"));
            }
            self.cursor.skip_char();
            (String::new(), uri)
        } else {
            let handle = self.scan_tag_handle()?;
            if handle.len() > 1 && handle.ends_with('!') {
                let suffix = self.scan_tag_uri("")?;
                if suffix.is_empty() {
                    return Err(self.error("did not find expected tag URI"));
                }
                (handle, suffix)
            } else {
                // The text is not a handle but the beginning of a suffix.
                let head = handle.strip_prefix('!').unwrap_or(&handle);
                let suffix = self.scan_tag_uri(head)?;
                if suffix.is_empty() {
                    (String::new(), "!".to_owned())
                } else {
                    ("!".to_owned(), suffix)
                }
            }
        };
        if !is_whitespace_or_end(self.cursor.peek_char()) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(TokenKind::Tag { handle, suffix })
    }

    /// Scans `!`, `!word` or `!word!`.
    fn scan_tag_handle(&mut self) -> Result<String, YamlError> {
        if self.cursor.peek_char() != '!' {
            return Err(self.error("did not find expected '!'"));
        }
        self.cursor.skip_char();
        let mut handle = format!("!{}", self.scan_word());
        if self.cursor.peek_char() == '!' {
            self.cursor.skip_char();
            handle.push('!');
        }
        Ok(handle)
    }

    fn scan_tag_uri(&mut self, head: &str) -> Result<String, YamlError> {
        let mut uri = head.as_bytes().to_vec();
        loop {
            match self.cursor.peek_char() {
                '%' => self.scan_uri_escape(&mut uri)?,
                c if is_anchor_name_character(c) || ";/?:@&=+$,.!~*'()[]".contains(c) => {
                    uri.extend(c.encode_utf8(&mut [0; 4]).bytes());
                    self.cursor.skip_char();
                }
                _ => return Ok(String::from_utf8_lossy(&uri).into_owned()),
            }
        }
    }

    /// Scans the `%xx` sequences of one character.
    fn scan_uri_escape(&mut self, uri: &mut Vec<u8>) -> Result<(), YamlError> {
        let mut n_left = 0;
        let mut is_first = true;
        while is_first || n_left > 0 {
            let high = self.cursor.peek_char_at(1).to_digit(16);
            let low = self.cursor.peek_char_at(2).to_digit(16);
            let octet = match (self.cursor.peek_char(), high, low) {
                ('%', Some(high), Some(low)) => u8::try_from((high << 4) | low).ok(),
                _ => None,
            };
            let octet = octet.ok_or_else(|| self.error("did not find URI escaped octet"))?;
            if is_first {
                n_left = match octet {
                    0x00..=0x7F => 0,
                    0xC0..=0xDF => 1,
                    0xE0..=0xEF => 2,
                    0xF0..=0xF7 => 3,
                    _ => return Err(self.error("found an incorrect leading UTF-8 octet")),
                };
                is_first = false;
            } else if octet & 0xC0 == 0x80 {
                n_left -= 1;
            } else {
                return Err(self.error("found an incorrect trailing UTF-8 octet"));
            }
            uri.push(octet);
            self.cursor.skip_chars(3);
        }
        Ok(())
    }

    fn scan_word(&mut self) -> String {
        let mut word = String::new();
        while is_anchor_name_character(self.cursor.peek_char()) {
            word.push(self.cursor.peek_char());
            self.cursor.skip_char();
        }
        word
    }
}
