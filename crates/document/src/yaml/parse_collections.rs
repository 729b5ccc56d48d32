//! Parses the items of sequences and the pairs of mappings, in block and in flow style.
//!
//! ```text
//! block-sequence = start ('-' block-node?)* end
//! block-mapping  = start ('?' block-node? (':' block-node?)?)* end
//! flow-sequence  = '[' (flow-item ',')* flow-item? ']'
//! flow-mapping   = '{' (flow-item ',')* flow-item? '}'
//! flow-item      = flow-node | '?' flow-node? (':' flow-node?)?
//! ```
//!
//! The scanner has already put a `?` token before every key.

use super::YamlError;
use super::cursor::CursorPosition;
use super::parser::{NodeContext, NodeId, Parser, RawContent, grammar_error_at, span_between};
use super::scanner::TokenKind;

impl Parser<'_> {
    pub(super) fn parse_block_sequence(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        loop {
            let token = self.scanner.take_token()?;
            match token.kind {
                TokenKind::BlockEntry => {
                    let item = match self.peek_token_kind()? {
                        TokenKind::BlockEntry | TokenKind::BlockEnd => {
                            self.add_empty_scalar(token.end)?
                        }
                        _ => self.parse_node(NodeContext::Block)?,
                    };
                    self.push_sequence_item(id, item);
                }
                TokenKind::BlockEnd => return Ok(id),
                _ => {
                    return Err(grammar_error_at(
                        "did not find expected '-' indicator",
                        token.start,
                    ));
                }
            }
        }
    }

    pub(super) fn parse_indentless_sequence(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        while self.peek_token_kind()? == &TokenKind::BlockEntry {
            let entry = self.scanner.take_token()?;
            let item = match self.peek_token_kind()? {
                TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                    self.add_empty_scalar(entry.end)?
                }
                _ => self.parse_node(NodeContext::Block)?,
            };
            self.push_sequence_item(id, item);
        }
        Ok(id)
    }

    pub(super) fn parse_block_mapping(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        loop {
            let token = self.scanner.take_token()?;
            match token.kind {
                TokenKind::Key => {
                    let key = self.parse_block_mapping_part(token.end)?;
                    let value = match self.peek_token_kind()? {
                        TokenKind::Value => {
                            let value = self.scanner.take_token()?;
                            self.parse_block_mapping_part(value.end)?
                        }
                        _ => {
                            let start = self.scanner.peek_token()?.start;
                            self.add_empty_scalar(start)?
                        }
                    };
                    self.push_mapping_pair(id, key, value);
                }
                TokenKind::BlockEnd => return Ok(id),
                _ => return Err(grammar_error_at("did not find expected key", token.start)),
            }
        }
    }

    /// Parses the key after `?` or the value after `:`. Either may be missing.
    fn parse_block_mapping_part(
        &mut self,
        indicator_end: CursorPosition,
    ) -> Result<NodeId, YamlError> {
        match self.peek_token_kind()? {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                self.add_empty_scalar(indicator_end)
            }
            _ => self.parse_node(NodeContext::BlockValue),
        }
    }

    pub(super) fn parse_flow_sequence(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        let mut is_first = true;
        loop {
            if self.peek_token_kind()? != &TokenKind::FlowSequenceEnd && !is_first {
                let comma = self.scanner.take_token()?;
                if comma.kind != TokenKind::FlowEntry {
                    return Err(grammar_error_at("did not find expected ',' or ']'", comma.start));
                }
            }
            is_first = false;
            match self.peek_token_kind()? {
                TokenKind::FlowSequenceEnd => {
                    self.close_flow_collection(id)?;
                    return Ok(id);
                }
                TokenKind::Key => {
                    let pair = self.parse_flow_pair()?;
                    self.push_sequence_item(id, pair);
                }
                _ => {
                    let item = self.parse_node(NodeContext::Flow)?;
                    self.push_sequence_item(id, item);
                }
            }
        }
    }

    /// Parses `[key: value]`, a mapping of one pair without braces.
    fn parse_flow_pair(&mut self) -> Result<NodeId, YamlError> {
        let indicator = self.scanner.take_token()?;
        let at = span_between(indicator.start, indicator.end);
        let id = self.add_node(indicator.start, at, RawContent::Mapping(Vec::new()), None)?;
        let key = match self.peek_token_kind()? {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                // libyaml consumes the token here although it is not part of the key.
                let token = self.scanner.take_token()?;
                self.add_empty_scalar(token.end)?
            }
            _ => self.parse_node(NodeContext::Flow)?,
        };
        let mut value = None;
        if self.peek_token_kind()? == &TokenKind::Value {
            self.scanner.skip_token();
            match self.peek_token_kind()? {
                TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {}
                _ => value = Some(self.parse_node(NodeContext::Flow)?),
            }
        }
        let value = self.unwrap_or_empty_scalar(value)?;
        self.push_mapping_pair(id, key, value);
        Ok(id)
    }

    pub(super) fn parse_flow_mapping(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        let mut is_first = true;
        loop {
            if self.peek_token_kind()? != &TokenKind::FlowMappingEnd && !is_first {
                let comma = self.scanner.take_token()?;
                if comma.kind != TokenKind::FlowEntry {
                    return Err(grammar_error_at("did not find expected ',' or '}'", comma.start));
                }
            }
            is_first = false;
            match self.peek_token_kind()? {
                TokenKind::FlowMappingEnd => {
                    self.close_flow_collection(id)?;
                    return Ok(id);
                }
                TokenKind::Key => {
                    self.scanner.skip_token();
                    let key = self.parse_flow_mapping_part()?;
                    let mut value = None;
                    if self.peek_token_kind()? == &TokenKind::Value {
                        self.scanner.skip_token();
                        match self.peek_token_kind()? {
                            TokenKind::FlowEntry | TokenKind::FlowMappingEnd => {}
                            _ => value = Some(self.parse_node(NodeContext::Flow)?),
                        }
                    }
                    let value = self.unwrap_or_empty_scalar(value)?;
                    self.push_mapping_pair(id, key, value);
                }
                _ => {
                    let key = self.parse_node(NodeContext::Flow)?;
                    let value = self.unwrap_or_empty_scalar(None)?;
                    self.push_mapping_pair(id, key, value);
                }
            }
        }
    }

    fn parse_flow_mapping_part(&mut self) -> Result<NodeId, YamlError> {
        match self.peek_token_kind()? {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd => {
                self.unwrap_or_empty_scalar(None)
            }
            _ => self.parse_node(NodeContext::Flow),
        }
    }
}
