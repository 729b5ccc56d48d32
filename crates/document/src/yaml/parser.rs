//! Turns tokens into a tree with anchors, aliases and tags still in it; the collections are in
//! [`collection`](super::collection).
//!
//! The grammar, in libyaml's terms:
//!
//! ```text
//! stream       = document? ('...'* explicit)* '...'*
//! document     = explicit | block-node '...'?
//! explicit     = directive* '---' block-node? '...'?
//! block-node   = alias | properties? (block-sequence | block-mapping | flow-node) | properties
//! flow-node    = alias | properties? (flow-sequence | flow-mapping | scalar) | properties
//! properties   = tag anchor? | anchor tag?
//! ```
//!
//! Recursion is bounded by [`NESTING_MAX`].

use std::collections::HashMap;

use super::YamlError;
use super::cursor::CursorPosition;
use super::scanner::{Scanner, Token, TokenKind, too_deep_message};
use crate::node::{NESTING_MAX, SpannedText};
use crate::source::Span;

/// Prefix of the tags that YAML itself defines.
pub(super) const YAML_TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// The node tree of one document, before aliases are expanded.
pub(super) struct RawTree {
    /// INVARIANT: every [`NodeId`] inside is an index of this list.
    raw_nodes: Vec<RawNode>,
    /// The root node; `None` if the text has no document.
    pub(super) root: Option<NodeId>,
}

impl RawTree {
    pub(super) fn raw_node_by_id(&self, id: NodeId) -> Option<&RawNode> {
        self.raw_nodes.get(id.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(usize);

#[derive(Debug)]
pub(super) struct RawNode {
    pub(super) span: Span,
    /// Line that Kubernetes names in messages, from 1.
    pub(super) line: usize,
    pub(super) raw_content: RawContent,
}

#[derive(Debug)]
pub(super) enum RawContent {
    Scalar(RawScalar),
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    Alias { name: String, target: NodeId },
}

#[derive(Debug, Default)]
pub(super) struct RawScalar {
    pub(super) scalar_text: SpannedText,
    /// The expanded tag, such as `tag:yaml.org,2002:str` or `!mine`.
    pub(super) tag: Option<String>,
    /// Whether the text itself determines the type, because the scalar is unquoted or has the tag `!`.
    pub(super) is_type_implicit: bool,
}

/// Parses the documents of a text one after the other.
pub(super) struct Parser<'t> {
    pub(super) scanner: Scanner<'t>,
    nodes_max: usize,
    raw_nodes: Vec<RawNode>,
    anchors: HashMap<String, NodeId>,
    /// Pairs of tag handle and prefix, from `%TAG` directives and the defaults.
    tag_prefixes: Vec<(String, String)>,
    nesting_depth: usize,
}

/// The syntactic context of a node.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum NodeContext {
    Flow,
    Block,
    /// The value of a block mapping, where a sequence need not be indented.
    BlockValue,
}

/// Anchor and tag of a node.
#[derive(Default)]
struct NodeProperties {
    start: Option<CursorPosition>,
    end: Option<CursorPosition>,
    anchor: Option<String>,
    tag: Option<String>,
}

impl<'t> Parser<'t> {
    /// Makes a parser that refuses a document of more than `nodes_max` values.
    pub(super) fn new(text: &'t str, nodes_max: usize) -> Self {
        Self {
            scanner: Scanner::new(text),
            nodes_max,
            raw_nodes: Vec::new(),
            anchors: HashMap::new(),
            tag_prefixes: Vec::new(),
            nesting_depth: 0,
        }
    }

    /// Parses the first document. It need not begin with `---`; every later document must.
    pub(super) fn parse_first_document(&mut self) -> Result<RawTree, YamlError> {
        let root = self.parse_document()?;
        Ok(RawTree { raw_nodes: std::mem::take(&mut self.raw_nodes), root })
    }

    /// Parses the next document; `None` at the end of the text. It does not inherit anchors and tag
    /// prefixes of earlier documents.
    pub(super) fn parse_next_document(&mut self) -> Result<Option<RawTree>, YamlError> {
        self.anchors.clear();
        self.tag_prefixes.clear();
        while self.peek_token_kind()? == &TokenKind::DocumentEnd {
            self.scanner.skip_token();
        }
        if self.peek_token_kind()? == &TokenKind::StreamEnd {
            return Ok(None);
        }
        self.parse_directives()?;
        let root = self.parse_explicit_document()?;
        self.skip_document_end()?;
        Ok(Some(RawTree { raw_nodes: std::mem::take(&mut self.raw_nodes), root: Some(root) }))
    }

    /// The offset up to which the text was read, in bytes.
    pub(super) fn n_consumed_bytes(&self) -> usize {
        self.scanner.cursor.position.offset
    }

    fn parse_document(&mut self) -> Result<Option<NodeId>, YamlError> {
        let is_explicit = match self.peek_token_kind()? {
            TokenKind::StreamEnd => return Ok(None),
            TokenKind::VersionDirective { .. }
            | TokenKind::TagDirective { .. }
            | TokenKind::DocumentStart => true,
            _ => false,
        };
        self.parse_directives()?;
        let root = if is_explicit {
            self.parse_explicit_document()?
        } else {
            self.parse_node(NodeContext::Block)?
        };
        self.skip_document_end()?;
        Ok(Some(root))
    }

    /// Consumes the `...` after a document, if there is one. A syntax error in the next token is reported
    /// even though the token does not belong to the document.
    fn skip_document_end(&mut self) -> Result<(), YamlError> {
        if self.peek_token_kind()? == &TokenKind::DocumentEnd {
            self.scanner.skip_token();
        }
        Ok(())
    }

    fn parse_explicit_document(&mut self) -> Result<NodeId, YamlError> {
        let token = self.scanner.take_token()?;
        if token.kind != TokenKind::DocumentStart {
            return Err(grammar_error_at("did not find expected <document start>", token.start));
        }
        match self.peek_token_kind()? {
            TokenKind::VersionDirective { .. }
            | TokenKind::TagDirective { .. }
            | TokenKind::DocumentStart
            | TokenKind::DocumentEnd
            | TokenKind::StreamEnd => self.add_empty_scalar(token.end),
            _ => self.parse_node(NodeContext::Block),
        }
    }

    /// Finds the first content after the document.
    pub(super) fn find_trailing_content(&mut self) -> Option<Span> {
        loop {
            match self.scanner.peek_token() {
                Err(error) => return Some(error.span),
                Ok(Token { kind: TokenKind::StreamEnd, .. }) => return None,
                Ok(Token { kind: TokenKind::DocumentStart | TokenKind::DocumentEnd, .. }) => {
                    self.scanner.skip_token();
                }
                Ok(token) => return Some(span_between(token.start, token.end)),
            }
        }
    }

    fn parse_directives(&mut self) -> Result<(), YamlError> {
        let mut has_version = false;
        while let TokenKind::VersionDirective { .. } | TokenKind::TagDirective { .. } =
            self.peek_token_kind()?
        {
            let token = self.scanner.take_token()?;
            match token.kind {
                TokenKind::TagDirective { handle, prefix } => {
                    if self.tag_prefixes.iter().any(|(known, _)| *known == handle) {
                        return Err(grammar_error_at(
                            "found duplicate %TAG directive",
                            token.start,
                        ));
                    }
                    self.tag_prefixes.push((handle, prefix));
                }
                _ if has_version => {
                    return Err(grammar_error_at("found duplicate %YAML directive", token.start));
                }
                TokenKind::VersionDirective { major: 1, minor: 1 } => has_version = true,
                _ => return Err(grammar_error_at("found incompatible YAML document", token.start)),
            }
        }
        for (handle, prefix) in [("!", "!"), ("!!", YAML_TAG_PREFIX)] {
            if !self.tag_prefixes.iter().any(|(known, _)| known == handle) {
                self.tag_prefixes.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }

    pub(super) fn parse_node(&mut self, context: NodeContext) -> Result<NodeId, YamlError> {
        if self.nesting_depth >= NESTING_MAX {
            let start = self.scanner.peek_token()?.start;
            return Err(grammar_error_at(&too_deep_message(), start));
        }
        self.nesting_depth += 1;
        let node = self.parse_node_content(context);
        self.nesting_depth -= 1;
        node
    }

    fn parse_node_content(&mut self, context: NodeContext) -> Result<NodeId, YamlError> {
        let first = self.scanner.peek_token()?;
        if let TokenKind::Alias(name) = &first.kind {
            let (name, start, at) =
                (name.clone(), first.start, span_between(first.start, first.end));
            self.scanner.skip_token();
            let Some(&target) = self.anchors.get(&name) else {
                return Err(YamlError::new(format!("unknown anchor '{name}' referenced"), at));
            };
            return self.add_node(start, at, RawContent::Alias { name, target }, None);
        }

        let properties = self.parse_node_properties()?;
        let token = self.scanner.peek_token()?;
        let start = properties.start.unwrap_or(token.start);
        let at = span_between(token.start, token.end);
        let anchor = properties.anchor;
        match &token.kind {
            TokenKind::Scalar { .. } => {
                let token = self.scanner.take_token()?;
                let is_plain = matches!(token.kind, TokenKind::Scalar { is_plain: true, .. });
                let is_type_implicit = properties.tag.as_ref().map_or(is_plain, |tag| tag == "!");
                let text = token.into_text();
                let scalar = RawScalar { scalar_text: text, tag: properties.tag, is_type_implicit };
                self.add_node(start, at, RawContent::Scalar(scalar), anchor)
            }
            TokenKind::BlockEntry if context == NodeContext::BlockValue => {
                let id = self.add_node(start, at, RawContent::Sequence(Vec::new()), anchor)?;
                self.parse_indentless_sequence(id)
            }
            TokenKind::FlowSequenceStart => {
                self.scanner.skip_token();
                let id = self.add_node(start, at, RawContent::Sequence(Vec::new()), anchor)?;
                self.parse_flow_sequence(id)
            }
            TokenKind::FlowMappingStart => {
                self.scanner.skip_token();
                let id = self.add_node(start, at, RawContent::Mapping(Vec::new()), anchor)?;
                self.parse_flow_mapping(id)
            }
            TokenKind::BlockSequenceStart if context != NodeContext::Flow => {
                self.scanner.skip_token();
                let id = self.add_node(start, at, RawContent::Sequence(Vec::new()), anchor)?;
                self.parse_block_sequence(id)
            }
            TokenKind::BlockMappingStart if context != NodeContext::Flow => {
                self.scanner.skip_token();
                let id = self.add_node(start, at, RawContent::Mapping(Vec::new()), anchor)?;
                self.parse_block_mapping(id)
            }
            _ if anchor.is_some() || properties.tag.is_some() => {
                let is_type_implicit = properties.tag.is_none();
                let scalar = RawScalar {
                    tag: properties.tag,
                    is_type_implicit,
                    scalar_text: SpannedText::default(),
                };
                let at = span_between(start, properties.end.unwrap_or(start));
                self.add_node(start, at, RawContent::Scalar(scalar), anchor)
            }
            _ => Err(grammar_error_at("did not find expected node content", token.start)),
        }
    }

    /// Reads at most one anchor and one tag, in any order.
    fn parse_node_properties(&mut self) -> Result<NodeProperties, YamlError> {
        let mut properties = NodeProperties::default();
        loop {
            match self.peek_token_kind()? {
                TokenKind::Anchor(_) if properties.anchor.is_none() => {}
                TokenKind::Tag { .. } if properties.tag.is_none() => {}
                _ => return Ok(properties),
            }
            let token = self.scanner.take_token()?;
            properties.start.get_or_insert(token.start);
            properties.end = Some(token.end);
            match token.kind {
                TokenKind::Anchor(name) => properties.anchor = Some(name),
                TokenKind::Tag { handle, suffix } => {
                    let tag = self.expand_tag(&handle, suffix);
                    let tag = tag.ok_or_else(|| {
                        grammar_error_at("found undefined tag handle", token.start)
                    })?;
                    properties.tag = Some(tag);
                }
                _ => {}
            }
        }
    }

    fn expand_tag(&self, handle: &str, suffix: String) -> Option<String> {
        if handle.is_empty() {
            return Some(suffix);
        }
        let (_, prefix) = self.tag_prefixes.iter().find(|(known, _)| known == handle)?;
        Some(format!("{prefix}{suffix}"))
    }

    pub(super) fn peek_token_kind(&mut self) -> Result<&TokenKind, YamlError> {
        Ok(&self.scanner.peek_token()?.kind)
    }

    /// Consumes the closing bracket and ends the collection's span there.
    pub(super) fn close_flow_collection(&mut self, id: NodeId) -> Result<(), YamlError> {
        let end = self.scanner.take_token()?.end.offset;
        if let Some(node) = self.raw_nodes.get_mut(id.0) {
            node.span.end_offset = end;
        }
        Ok(())
    }

    pub(super) fn unwrap_or_empty_scalar(
        &mut self,
        node: Option<NodeId>,
    ) -> Result<NodeId, YamlError> {
        match node {
            Some(id) => Ok(id),
            None => {
                let start = self.scanner.peek_token()?.start;
                self.add_empty_scalar(start)
            }
        }
    }

    pub(super) fn add_empty_scalar(&mut self, at: CursorPosition) -> Result<NodeId, YamlError> {
        let scalar = RawScalar { is_type_implicit: true, ..RawScalar::default() };
        self.add_node(at, at.span(), RawContent::Scalar(scalar), None)
    }

    pub(super) fn add_node(
        &mut self,
        start: CursorPosition,
        span: Span,
        content: RawContent,
        anchor: Option<String>,
    ) -> Result<NodeId, YamlError> {
        if self.raw_nodes.len() >= self.nodes_max {
            return Err(grammar_error_at(&too_many_nodes_message(self.nodes_max), start));
        }
        let id = NodeId(self.raw_nodes.len());
        self.raw_nodes.push(RawNode { span, line: start.line + 1, raw_content: content });
        if let Some(name) = anchor {
            self.anchors.insert(name, id);
        }
        Ok(id)
    }

    pub(super) fn push_sequence_item(&mut self, id: NodeId, item: NodeId) {
        if let Some(RawNode { raw_content: RawContent::Sequence(items), .. }) =
            self.raw_nodes.get_mut(id.0)
        {
            items.push(item);
        }
    }

    pub(super) fn push_mapping_pair(&mut self, id: NodeId, key: NodeId, value: NodeId) {
        if let Some(RawNode { raw_content: RawContent::Mapping(pairs), .. }) =
            self.raw_nodes.get_mut(id.0)
        {
            pairs.push((key, value));
        }
    }
}

pub(super) fn too_many_nodes_message(nodes_max: usize) -> String {
    format!("document holds more than {nodes_max} values")
}

pub(super) fn span_between(start: CursorPosition, end: CursorPosition) -> Span {
    Span::new(start.offset, end.offset)
}

/// Builds a grammar error. Like Kubernetes, it names the line before the fault, and no line for a fault
/// in the first one.
pub(super) fn grammar_error_at(problem: &str, position: CursorPosition) -> YamlError {
    match position.line {
        0 => YamlError::new(problem, position.span()),
        line => YamlError::new(format!("line {line}: {problem}"), position.span()),
    }
}
