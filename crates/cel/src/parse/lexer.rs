//! The lexer: splits the source text into tokens.
//!
//! The lexer prefers the longest token. Where no token matches, it reports and skips the text up to
//! and including the first character that rules out every token, as cel-go's generated lexer does.
//! For example, it reports `= ` in `1 = 2`, because the blank rules out `==`.

use super::parse_issues::{ParseAborted, ParseIssues};
use super::token::{Token, TokenKind};

/// Reads tokens on demand and keeps them.
///
/// It does not read ahead, because errors in text that the parser never reaches are not reported.
pub(super) struct TokenStream<'s> {
    source: &'s str,
    /// The position of the next character in bytes.
    byte_position: usize,
    /// The position of the next character in code points.
    code_point_offset: u32,
    /// The tokens read so far. `Eof` is the last token.
    tokens: Vec<Token>,
    /// Index of the current token in `tokens`.
    current_token_index: usize,
    /// Byte ranges that belong to no token and were reported.
    skipped_ranges: Vec<(usize, usize)>,
}

/// A lexical unit of the source. The number is the position of its end in bytes.
enum Lexeme {
    Token(TokenKind, usize),
    /// White space or a comment.
    Trivia(usize),
    /// No token matches. The number is the position of the character that rules out every token.
    Unrecognized(usize),
}

impl<'s> TokenStream<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self {
            source,
            byte_position: 0,
            code_point_offset: 0,
            tokens: Vec::new(),
            current_token_index: 0,
            skipped_ranges: Vec::new(),
        }
    }

    /// Returns the token that is `ahead` places after the current one.
    pub(super) fn peek_token(
        &mut self,
        ahead: usize,
        issues: &mut ParseIssues,
    ) -> Result<Token, ParseAborted> {
        let wanted = self.current_token_index + ahead;
        loop {
            if let Some(token) = self.tokens.get(wanted) {
                return Ok(*token);
            }
            match self.tokens.last() {
                Some(last) if last.kind == TokenKind::Eof => return Ok(*last),
                _ => {
                    let token = self.read_token(issues)?;
                    self.tokens.push(token);
                }
            }
        }
    }

    /// Makes the next token the current one. `Eof` stays the current token.
    pub(super) fn advance_token(&mut self) {
        if self
            .tokens
            .get(self.current_token_index)
            .is_some_and(|token| token.kind != TokenKind::Eof)
        {
            self.current_token_index += 1;
        }
    }

    /// The index of the current token.
    pub(super) fn index(&self) -> usize {
        self.current_token_index
    }

    /// The source text from the first token to the last one, without skipped ranges.
    pub(super) fn source_text_between(&self, first: Token, last: Token) -> String {
        let mut text = String::new();
        let (first, to) = (first.start as usize, last.end_byte as usize);
        let mut from = first;
        for &(start, end) in
            self.skipped_ranges.iter().filter(|range| (first..to).contains(&range.0))
        {
            text.push_str(self.source.get(from..start).unwrap_or_default());
            from = end;
        }
        text.push_str(self.source.get(from..to).unwrap_or_default());
        text
    }

    fn read_token(&mut self, issues: &mut ParseIssues) -> Result<Token, ParseAborted> {
        loop {
            let (start, offset) = (self.byte_position, self.code_point_offset);
            let token = |kind, end| Token {
                kind,
                source_offset: offset,
                start: start as u32,
                end_byte: end as u32,
            };
            if start == self.source.len() {
                return Ok(token(TokenKind::Eof, start));
            }
            match scan_lexeme(self.source, start) {
                Lexeme::Token(kind, end) => {
                    self.advance_to_byte(end);
                    return Ok(token(kind, end));
                }
                Lexeme::Trivia(end) => self.advance_to_byte(end),
                Lexeme::Unrecognized(at) => {
                    let end = at + char_at(self.source, at).map_or(0, char::len_utf8);
                    self.advance_to_byte(end);
                    self.skipped_ranges.push((start, end));
                    let text = self.source.get(start..end).unwrap_or_default();
                    issues.report_syntax_error(
                        offset,
                        &format!("token recognition error at: '{text}'"),
                    )?;
                }
            }
        }
    }

    fn advance_to_byte(&mut self, end: usize) {
        let text = self.source.get(self.byte_position..end).unwrap_or_default();
        self.code_point_offset += text.chars().count() as u32;
        self.byte_position = end;
    }
}

fn char_at(source: &str, at: usize) -> Option<char> {
    source.get(at..)?.chars().next()
}

fn byte_at(source: &str, at: usize) -> Option<u8> {
    source.as_bytes().get(at).copied()
}

/// The position of the first byte at or after `at` that does not belong to a class.
fn skip_bytes_while(source: &str, at: usize, class: fn(u8) -> bool) -> usize {
    let rest = source.as_bytes().get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !class(*byte)).unwrap_or(rest.len())
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Scans the lexeme that begins at a byte. The byte is before the end of the source.
fn scan_lexeme(source: &str, start: usize) -> Lexeme {
    use TokenKind as T;
    let token = |kind, length| Lexeme::Token(kind, start + length);
    let Some(first) = byte_at(source, start) else {
        return Lexeme::Unrecognized(start);
    };
    let second = byte_at(source, start + 1);
    match (first, second) {
        (b' ' | b'\t' | b'\r' | b'\n' | b'\x0c', _) => {
            let is_space = |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'\x0c');
            Lexeme::Trivia(skip_bytes_while(source, start, is_space))
        }
        (b'/', Some(b'/')) => Lexeme::Trivia(skip_bytes_while(source, start, |byte| byte != b'\n')),
        (b'=', Some(b'=')) => token(T::Equals, 2),
        (b'!', Some(b'=')) => token(T::NotEquals, 2),
        (b'<', Some(b'=')) => token(T::LessEquals, 2),
        (b'>', Some(b'=')) => token(T::GreaterEquals, 2),
        (b'&', Some(b'&')) => token(T::LogicalAnd, 2),
        (b'|', Some(b'|')) => token(T::LogicalOr, 2),
        (b'=' | b'&' | b'|', _) => Lexeme::Unrecognized(start + 1),
        (b'<', _) => token(T::Less, 1),
        (b'>', _) => token(T::Greater, 1),
        (b'[', _) => token(T::LeftBracket, 1),
        (b']', _) => token(T::RightBracket, 1),
        (b'{', _) => token(T::LeftBrace, 1),
        (b'}', _) => token(T::RightBrace, 1),
        (b'(', _) => token(T::LeftParen, 1),
        (b')', _) => token(T::RightParen, 1),
        (b'.', Some(b'0'..=b'9')) => {
            let end = skip_bytes_while(source, start + 1, |byte| byte.is_ascii_digit());
            Lexeme::Token(T::Float, find_exponent_end(source, end).unwrap_or(end))
        }
        (b'.', _) => token(T::Dot, 1),
        (b',', _) => token(T::Comma, 1),
        (b'-', _) => token(T::Minus, 1),
        (b'!', _) => token(T::Exclamation, 1),
        (b'?', _) => token(T::Question, 1),
        (b':', _) => token(T::Colon, 1),
        (b'+', _) => token(T::Plus, 1),
        (b'*', _) => token(T::Star, 1),
        (b'/', _) => token(T::Slash, 1),
        (b'%', _) => token(T::Percent, 1),
        (b'0'..=b'9', _) => scan_number(source, start),
        (b'"' | b'\'', _) => scan_quoted_string(source, start, T::String, false),
        (b'`', _) => scan_escaped_identifier(source, start),
        (b'_' | b'a'..=b'z' | b'A'..=b'Z', _) => scan_word_or_prefixed_string(source, start),
        _ => Lexeme::Unrecognized(start),
    }
}

/// Scans an identifier, a keyword, or a string with a prefix.
fn scan_word_or_prefixed_string(source: &str, start: usize) -> Lexeme {
    let end = skip_bytes_while(source, start, is_word_byte);
    let word = source.get(start..end).unwrap_or_default();
    if matches!(byte_at(source, end), Some(b'"' | b'\'')) {
        let (kind, raw) = match word {
            "r" | "R" => (Some(TokenKind::String), true),
            "b" | "B" => (Some(TokenKind::Bytes), false),
            "br" | "bR" | "Br" | "BR" => (Some(TokenKind::Bytes), true),
            _ => (None, false),
        };
        // If the string has no closing quote, the prefix is an identifier.
        if let Some(kind) = kind
            && let lexeme @ Lexeme::Token(..) = scan_quoted_string(source, end, kind, raw)
        {
            return lexeme;
        }
    }
    let kind = match word {
        "in" => TokenKind::In,
        "true" => TokenKind::True,
        "false" => TokenKind::False,
        "null" => TokenKind::Null,
        _ => TokenKind::Identifier,
    };
    Lexeme::Token(kind, end)
}

fn scan_number(source: &str, start: usize) -> Lexeme {
    let with_suffix = |end| match byte_at(source, end) {
        Some(b'u' | b'U') => Lexeme::Token(TokenKind::Uint, end + 1),
        _ => Lexeme::Token(TokenKind::Int, end),
    };
    if source.get(start..).is_some_and(|rest| rest.starts_with("0x")) {
        let digits = start + 2;
        let end = skip_bytes_while(source, digits, |byte| byte.is_ascii_hexdigit());
        if end > digits {
            return with_suffix(end);
        }
    }
    let whole_end = skip_bytes_while(source, start, |byte| byte.is_ascii_digit());
    if byte_at(source, whole_end) == Some(b'.') {
        let end = skip_bytes_while(source, whole_end + 1, |byte| byte.is_ascii_digit());
        if end > whole_end + 1 {
            return Lexeme::Token(TokenKind::Float, find_exponent_end(source, end).unwrap_or(end));
        }
    }
    match find_exponent_end(source, whole_end) {
        Some(end) => Lexeme::Token(TokenKind::Float, end),
        None => with_suffix(whole_end),
    }
}

/// The position after an exponent, if an exponent begins at `start`.
fn find_exponent_end(source: &str, start: usize) -> Option<usize> {
    if !matches!(byte_at(source, start), Some(b'e' | b'E')) {
        return None;
    }
    let signed = matches!(byte_at(source, start + 1), Some(b'+' | b'-'));
    let digits = start + 1 + usize::from(signed);
    let end = skip_bytes_while(source, digits, |byte| byte.is_ascii_digit());
    (end > digits).then_some(end)
}

fn scan_escaped_identifier(source: &str, start: usize) -> Lexeme {
    let is_inside = |byte| is_word_byte(byte) || matches!(byte, b'.' | b'-' | b'/' | b' ');
    let end = skip_bytes_while(source, start + 1, is_inside);
    if end > start + 1 && byte_at(source, end) == Some(b'`') {
        Lexeme::Token(TokenKind::EscapedIdentifier, end + 1)
    } else {
        Lexeme::Unrecognized(end)
    }
}

/// Scans a string from its opening quote on.
fn scan_quoted_string(source: &str, quote_at: usize, kind: TokenKind, raw: bool) -> Lexeme {
    let rest = source.get(quote_at..).unwrap_or_default();
    for quote in ["\"\"\"", "'''"] {
        if rest.starts_with(quote) {
            // If the closing quotes are missing, the first two quotes are an empty string.
            return match find_multi_line_string_end(source, quote_at + quote.len(), quote, raw) {
                Some(end) => Lexeme::Token(kind, end),
                None => Lexeme::Token(kind, quote_at + 2),
            };
        }
    }
    match find_single_line_string_end(source, quote_at, raw) {
        Ok(end) => Lexeme::Token(kind, end),
        Err(at) => Lexeme::Unrecognized(at),
    }
}

fn find_multi_line_string_end(source: &str, start: usize, quote: &str, raw: bool) -> Option<usize> {
    let mut at = start;
    loop {
        let rest = source.get(at..)?;
        let next = rest.find(|c| quote.starts_with(c) || (c == '\\' && !raw))?;
        at += next;
        if rest.get(next..)?.starts_with(quote) {
            return Some(at + quote.len());
        }
        at = match byte_at(source, at) {
            Some(b'\\') => find_escape_end(source, at).ok()?,
            _ => at + 1,
        };
    }
}

/// The position after the closing quote; the error is the position at which the string is invalid.
fn find_single_line_string_end(source: &str, quote_at: usize, raw: bool) -> Result<usize, usize> {
    let quote = byte_at(source, quote_at);
    let mut at = quote_at + 1;
    loop {
        match byte_at(source, at) {
            None | Some(b'\n' | b'\r') => return Err(at),
            Some(b'\\') if !raw => at = find_escape_end(source, at)?,
            byte if byte == quote => return Ok(at + 1),
            // No byte of a multi-byte character equals a quote or a line end.
            Some(_) => at += 1,
        }
    }
}

/// The position after an escape sequence; the error is the position at which it is invalid.
fn find_escape_end(source: &str, backslash_at: usize) -> Result<usize, usize> {
    let kind_at = backslash_at + 1;
    let (n_digits, is_digit): (usize, fn(u8) -> bool) = match byte_at(source, kind_at) {
        Some(b'x' | b'X') => (2, |byte| byte.is_ascii_hexdigit()),
        Some(b'u') => (4, |byte| byte.is_ascii_hexdigit()),
        Some(b'U') => (8, |byte| byte.is_ascii_hexdigit()),
        Some(b'0'..=b'3') => (2, |byte| matches!(byte, b'0'..=b'7')),
        Some(
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`',
        ) => (0, |_| false),
        _ => return Err(kind_at),
    };
    let digits = kind_at + 1;
    for at in digits..digits + n_digits {
        if !byte_at(source, at).is_some_and(is_digit) {
            return Err(at);
        }
    }
    Ok(digits + n_digits)
}
