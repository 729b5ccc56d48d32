//! Cuts the text into tokens.
//!
//! The colon after a key decides that it is a key: `a: b` is a mapping because of the colon. The
//! scanner therefore remembers each position at which a key may have begun (a *simple key*) and, at
//! the colon, inserts the tokens that belong before it. Tokens wait in a queue while one of them
//! may still become a key.

use std::collections::VecDeque;

use super::YamlError;
use super::cursor::{Cursor, CursorPosition, END, is_blank, is_line_break, is_whitespace_or_end};
use crate::node::{NESTING_MAX, SpannedText};

/// The maximum number of characters between the start of a simple key and its colon, a limit of YAML.
const SIMPLE_KEY_CHARS_MAX: usize = 1024;

/// A token with its start and end.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: CursorPosition,
    pub(super) end: CursorPosition,
}

impl Token {
    /// The text of a scalar; empty for any other token.
    pub(super) fn into_text(self) -> SpannedText {
        match self.kind {
            TokenKind::Scalar { text, .. } => text,
            _ => SpannedText::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    StreamEnd,
    VersionDirective { major: u8, minor: u8 },
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { text: SpannedText, is_plain: bool },
}

/// A position at which a simple key may have begun.
#[derive(Debug, Clone, Copy)]
struct SimpleKey {
    /// Whether only a key is valid at this position.
    is_required: bool,
    token_number: usize,
    position: CursorPosition,
}

pub(super) struct Scanner<'t> {
    pub(super) cursor: Cursor<'t>,
    token_queue: VecDeque<Token>,
    /// Number of tokens handed out; the token at the head of the queue has this number.
    n_tokens_taken: usize,
    /// Column of the innermost block collection; `None` if there is none.
    block_indent: Option<usize>,
    /// The columns of the block collections around it, outermost first.
    outer_indents: Vec<Option<usize>>,
    /// The candidate for a key at each flow level. INVARIANT: never empty.
    simple_keys: Vec<Option<SimpleKey>>,
    pub(super) is_simple_key_allowed: bool,
    has_stream_ended: bool,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            cursor: Cursor::new(text),
            token_queue: VecDeque::new(),
            n_tokens_taken: 0,
            block_indent: None,
            outer_indents: Vec::new(),
            simple_keys: vec![None],
            is_simple_key_allowed: true,
            has_stream_ended: false,
        }
    }

    /// Returns the next token without consuming it.
    pub(super) fn peek_token(&mut self) -> Result<&Token, YamlError> {
        while !self.has_stream_ended && self.needs_more_tokens()? {
            self.fetch_next_token()?;
        }
        let position = self.cursor.position;
        if self.token_queue.is_empty() {
            self.token_queue.push_back(Token {
                kind: TokenKind::StreamEnd,
                start: position,
                end: position,
            });
        }
        self.token_queue.front().ok_or_else(|| self.empty_token_queue_error())
    }

    /// Removes the next token from the queue and returns it.
    pub(super) fn take_token(&mut self) -> Result<Token, YamlError> {
        self.peek_token()?;
        self.n_tokens_taken += 1;
        self.token_queue.pop_front().ok_or_else(|| self.empty_token_queue_error())
    }

    /// Consumes the token that the last peek returned.
    pub(super) fn skip_token(&mut self) {
        self.n_tokens_taken += 1;
        self.token_queue.pop_front();
    }

    pub(super) fn is_in_flow(&self) -> bool {
        self.simple_keys.len() > 1
    }

    /// The column that the content of a block scalar or the next line of a plain scalar must reach.
    pub(super) fn content_indent(&self) -> usize {
        self.block_indent.map_or(0, |indent| indent + 1)
    }

    /// The column of the innermost block collection.
    pub(super) fn block_indent(&self) -> Option<usize> {
        self.block_indent
    }

    /// An error at the cursor.
    pub(super) fn error(&self, problem: &str) -> YamlError {
        let position = self.cursor.position;
        let message = match position.line {
            0 => problem.to_owned(),
            line => format!("line {}: {problem}", line + 1),
        };
        YamlError::new(message, position.span())
    }

    /// The error of an empty queue. It does not occur, because a peek leaves a token in the queue.
    fn empty_token_queue_error(&self) -> YamlError {
        self.error("attempted to go past the end of stream")
    }

    /// Reports whether the head of the queue may still become a key.
    fn needs_more_tokens(&mut self) -> Result<bool, YamlError> {
        if self.token_queue.is_empty() {
            return Ok(true);
        }
        let head = self.n_tokens_taken;
        let level =
            self.simple_keys.iter().position(|key| key.is_some_and(|key| key.token_number == head));
        match level {
            None => Ok(false),
            Some(level) => Ok(self.current_simple_key(level)?.is_some()),
        }
    }

    fn fetch_next_token(&mut self) -> Result<(), YamlError> {
        self.skip_to_next_token();
        self.leave_block_collections(Some(self.cursor.position.column));

        let c = self.cursor.peek_char();
        let next_is_blank = is_whitespace_or_end(self.cursor.peek_char_at(1));
        let in_flow = self.is_in_flow();
        match c {
            END => self.fetch_stream_end(),
            '%' if self.cursor.position.column == 0 => self.fetch_directive(),
            '-' if self.cursor.is_at_document_indicator('-') => {
                self.fetch_document_indicator(TokenKind::DocumentStart)
            }
            '.' if self.cursor.is_at_document_indicator('.') => {
                self.fetch_document_indicator(TokenKind::DocumentEnd)
            }
            '[' => self.fetch_flow_start(TokenKind::FlowSequenceStart),
            '{' => self.fetch_flow_start(TokenKind::FlowMappingStart),
            ']' => self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            '}' => self.fetch_flow_end(TokenKind::FlowMappingEnd),
            ',' => {
                self.abandon_simple_key()?;
                self.is_simple_key_allowed = true;
                self.push_indicator(TokenKind::FlowEntry, 1);
                Ok(())
            }
            '-' if next_is_blank => self.fetch_block_entry(),
            '?' if in_flow || next_is_blank => self.fetch_key_token(),
            ':' if in_flow || next_is_blank => self.fetch_value_token(),
            '*' => self.fetch_alias_or_anchor(TokenKind::Alias),
            '&' => self.fetch_alias_or_anchor(TokenKind::Anchor),
            '!' => {
                self.save_simple_key()?;
                self.is_simple_key_allowed = false;
                let start = self.cursor.position;
                let kind = self.scan_tag()?;
                self.push(kind, start);
                Ok(())
            }
            '|' | '>' if !in_flow => {
                self.abandon_simple_key()?;
                self.is_simple_key_allowed = true;
                let start = self.cursor.position;
                let (text, end) = self.scan_block_scalar(c == '|')?;
                self.token_queue.push_back(Token {
                    kind: TokenKind::Scalar { text, is_plain: false },
                    start,
                    end,
                });
                Ok(())
            }
            '\'' | '"' => {
                self.save_simple_key()?;
                self.is_simple_key_allowed = false;
                let start = self.cursor.position;
                let text = self.scan_quoted_scalar(c)?;
                self.push(TokenKind::Scalar { text, is_plain: false }, start);
                Ok(())
            }
            _ if self.is_plain_scalar_start(c) => {
                self.save_simple_key()?;
                self.is_simple_key_allowed = false;
                let start = self.cursor.position;
                let (text, end) = self.scan_plain_scalar()?;
                self.token_queue.push_back(Token {
                    kind: TokenKind::Scalar { text, is_plain: true },
                    start,
                    end,
                });
                Ok(())
            }
            _ => Err(self.error("found character that cannot start any token")),
        }
    }

    fn is_plain_scalar_start(&self, c: char) -> bool {
        match c {
            '-' => !is_blank(self.cursor.peek_char_at(1)),
            '?' | ':' => !self.is_in_flow() && !is_whitespace_or_end(self.cursor.peek_char_at(1)),
            ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
            | '@' | '`' => false,
            _ => !is_whitespace_or_end(c),
        }
    }

    /// Skips blanks, comments and line breaks.
    ///
    /// A tab may separate tokens but not indent: it is skipped only where no key can begin.
    fn skip_to_next_token(&mut self) {
        loop {
            let tabs_too = self.is_in_flow() || !self.is_simple_key_allowed;
            while self.cursor.peek_char() == ' ' || (tabs_too && self.cursor.peek_char() == '\t') {
                self.cursor.skip_char();
            }
            self.cursor.skip_comment();
            if !is_line_break(self.cursor.peek_char()) {
                return;
            }
            self.cursor.read_line_break();
            if !self.is_in_flow() {
                self.is_simple_key_allowed = true;
            }
        }
    }

    fn fetch_stream_end(&mut self) -> Result<(), YamlError> {
        if self.cursor.position.column != 0 {
            self.cursor.position.column = 0;
            self.cursor.position.line += 1;
        }
        self.leave_block_collections(None);
        self.abandon_simple_key()?;
        self.is_simple_key_allowed = false;
        self.push(TokenKind::StreamEnd, self.cursor.position);
        self.has_stream_ended = true;
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), YamlError> {
        self.leave_block_collections(None);
        self.abandon_simple_key()?;
        self.is_simple_key_allowed = false;
        let start = self.cursor.position;
        let kind = self.scan_directive()?;
        self.push(kind, start);
        Ok(())
    }

    fn fetch_document_indicator(&mut self, kind: TokenKind) -> Result<(), YamlError> {
        self.leave_block_collections(None);
        self.abandon_simple_key()?;
        self.is_simple_key_allowed = false;
        self.push_indicator(kind, 3);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: TokenKind) -> Result<(), YamlError> {
        self.save_simple_key()?;
        self.simple_keys.push(None);
        if self.simple_keys.len() > NESTING_MAX {
            return Err(self.error(&too_deep_message()));
        }
        self.is_simple_key_allowed = true;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: TokenKind) -> Result<(), YamlError> {
        self.abandon_simple_key()?;
        if self.is_in_flow() {
            self.simple_keys.pop();
        }
        self.is_simple_key_allowed = false;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), YamlError> {
        // In flow context the parser refuses the entry.
        if !self.is_in_flow() {
            if !self.is_simple_key_allowed {
                return Err(self.error("block sequence entries are not allowed in this context"));
            }
            self.enter_block_collection(TokenKind::BlockSequenceStart, None, self.cursor.position)?;
        }
        self.abandon_simple_key()?;
        self.is_simple_key_allowed = true;
        self.push_indicator(TokenKind::BlockEntry, 1);
        Ok(())
    }

    fn fetch_key_token(&mut self) -> Result<(), YamlError> {
        if !self.is_in_flow() {
            if !self.is_simple_key_allowed {
                return Err(self.error("mapping keys are not allowed in this context"));
            }
            self.enter_block_collection(TokenKind::BlockMappingStart, None, self.cursor.position)?;
        }
        self.abandon_simple_key()?;
        self.is_simple_key_allowed = !self.is_in_flow();
        self.push_indicator(TokenKind::Key, 1);
        Ok(())
    }

    fn fetch_value_token(&mut self) -> Result<(), YamlError> {
        let level = self.simple_keys.len() - 1;
        if let Some(key) = self.current_simple_key(level)? {
            let at = key.token_number.saturating_sub(self.n_tokens_taken);
            let token = Token { kind: TokenKind::Key, start: key.position, end: key.position };
            self.token_queue.insert(at.min(self.token_queue.len()), token);
            self.enter_block_collection(TokenKind::BlockMappingStart, Some(at), key.position)?;
            self.clear_simple_key();
            self.is_simple_key_allowed = false;
        } else {
            if !self.is_in_flow() {
                if !self.is_simple_key_allowed {
                    return Err(self.error("mapping values are not allowed in this context"));
                }
                self.enter_block_collection(
                    TokenKind::BlockMappingStart,
                    None,
                    self.cursor.position,
                )?;
            }
            self.is_simple_key_allowed = !self.is_in_flow();
        }
        self.push_indicator(TokenKind::Value, 1);
        Ok(())
    }

    fn fetch_alias_or_anchor(&mut self, kind: fn(String) -> TokenKind) -> Result<(), YamlError> {
        self.save_simple_key()?;
        self.is_simple_key_allowed = false;
        let start = self.cursor.position;
        let word = self.scan_anchor_name()?;
        self.push(kind(word), start);
        Ok(())
    }

    /// Appends a token that ends at the cursor.
    fn push(&mut self, kind: TokenKind, start: CursorPosition) {
        self.token_queue.push_back(Token { kind, start, end: self.cursor.position });
    }

    /// Skips an indicator and appends its token.
    fn push_indicator(&mut self, kind: TokenKind, n_chars: usize) {
        let start = self.cursor.position;
        self.cursor.skip_chars(n_chars);
        self.push(kind, start);
    }

    /// Enters a block collection if `position` is further right than the current one. Its start token
    /// goes to position `at` of the queue, or to its end.
    fn enter_block_collection(
        &mut self,
        kind: TokenKind,
        at: Option<usize>,
        position: CursorPosition,
    ) -> Result<(), YamlError> {
        if self.is_in_flow() || self.block_indent.is_some_and(|indent| indent >= position.column) {
            return Ok(());
        }
        self.outer_indents.push(self.block_indent);
        self.block_indent = Some(position.column);
        if self.outer_indents.len() > NESTING_MAX {
            return Err(self.error(&too_deep_message()));
        }
        let token = Token { kind, start: position, end: position };
        self.token_queue
            .insert(at.unwrap_or(self.token_queue.len()).min(self.token_queue.len()), token);
        Ok(())
    }

    /// Leaves the block collections that are further right than `column`; all of them for `None`.
    fn leave_block_collections(&mut self, column: Option<usize>) {
        // `None` sorts before every column, as -1 does in libyaml.
        while !self.is_in_flow() && self.block_indent > column {
            self.push(TokenKind::BlockEnd, self.cursor.position);
            self.block_indent = self.outer_indents.pop().flatten();
        }
    }

    /// Returns the candidate for a key at a flow level. Drops it if the cursor has moved too far from it.
    fn current_simple_key(&mut self, level: usize) -> Result<Option<SimpleKey>, YamlError> {
        let Some(key) = self.simple_keys.get(level).copied().flatten() else {
            return Ok(None);
        };
        let here = self.cursor.position;
        if key.position.line == here.line && key.position.index + SIMPLE_KEY_CHARS_MAX >= here.index
        {
            return Ok(Some(key));
        }
        if key.is_required {
            return Err(self.error("could not find expected ':'"));
        }
        if let Some(slot) = self.simple_keys.get_mut(level) {
            *slot = None;
        }
        Ok(None)
    }

    /// Saves the current position as the possible start of a key, if a key may begin here.
    fn save_simple_key(&mut self) -> Result<(), YamlError> {
        if self.is_simple_key_allowed {
            let position = self.cursor.position;
            let is_required = !self.is_in_flow() && self.block_indent == Some(position.column);
            self.abandon_simple_key()?;
            let token_number = self.n_tokens_taken + self.token_queue.len();
            if let Some(slot) = self.simple_keys.last_mut() {
                *slot = Some(SimpleKey { is_required, token_number, position });
            }
        }
        Ok(())
    }

    /// Gives up the candidate of the current level, because something other than a colon follows it. That is an
    /// error if only a key is valid there.
    fn abandon_simple_key(&mut self) -> Result<(), YamlError> {
        if self.simple_keys.last().copied().flatten().is_some_and(|key| key.is_required) {
            return Err(self.error("could not find expected ':'"));
        }
        self.clear_simple_key();
        Ok(())
    }

    fn clear_simple_key(&mut self) {
        if let Some(slot) = self.simple_keys.last_mut() {
            *slot = None;
        }
    }
}

pub(super) fn too_deep_message() -> String {
    format!("exceeded max depth of {NESTING_MAX}")
}
