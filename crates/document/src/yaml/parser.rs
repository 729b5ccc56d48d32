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
use super::cursor::Mark;
use super::scanner::{Scanner, Token, TokenKind, too_deep};
use crate::node::{NESTING_MAX, Text};
use crate::source::Span;

/// Prefix of the tags that YAML itself defines.
pub(super) const YAML_TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// One document of a text.
pub(super) struct RawTree {
    /// INVARIANT: every [`NodeId`] inside is an index of this list.
    nodes: Vec<RawNode>,
    /// `None`: there is no document at all.
    pub(super) root: Option<NodeId>,
}

impl RawTree {
    pub(super) fn node(&self, id: NodeId) -> Option<&RawNode> {
        self.nodes.get(id.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(usize);

#[derive(Debug)]
pub(super) struct RawNode {
    pub(super) span: Span,
    /// Line that Kubernetes names in messages, from 1.
    pub(super) line: usize,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Scalar(RawScalar),
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    Alias { name: String, target: NodeId },
}

#[derive(Debug, Default)]
pub(super) struct RawScalar {
    pub(super) text: Text,
    /// The expanded tag, such as `tag:yaml.org,2002:str` or `!mine`.
    pub(super) tag: Option<String>,
    /// The text itself decides the type: it is unquoted, or carries the tag `!`.
    pub(super) is_implicit: bool,
}

/// Reads one document after the other.
pub(super) struct Parser<'t> {
    pub(super) scanner: Scanner<'t>,
    nodes_max: usize,
    nodes: Vec<RawNode>,
    anchors: HashMap<String, NodeId>,
    /// Pairs of handle and prefix.
    tag_prefixes: Vec<(String, String)>,
    depth: usize,
}

/// The syntactic context of a node.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Context {
    Flow,
    Block,
    /// The value of a block mapping, where a sequence need not be indented.
    BlockValue,
}

/// Anchor and tag of a node.
#[derive(Default)]
struct Properties {
    start: Option<Mark>,
    end: Option<Mark>,
    anchor: Option<String>,
    tag: Option<String>,
}

impl<'t> Parser<'t> {
    /// A parser that refuses a document of more than `nodes_max` values.
    pub(super) fn new(text: &'t str, nodes_max: usize) -> Self {
        Self {
            scanner: Scanner::new(text),
            nodes_max,
            nodes: Vec::new(),
            anchors: HashMap::new(),
            tag_prefixes: Vec::new(),
            depth: 0,
        }
    }

    /// Reads the first document. It need not begin with `---`, unlike those that follow.
    pub(super) fn first_document(&mut self) -> Result<RawTree, YamlError> {
        let root = self.parse_document()?;
        Ok(RawTree { nodes: std::mem::take(&mut self.nodes), root })
    }

    /// Reads the document after the one that was just read, if there is one. Anchors and tags of
    /// the others mean nothing in it.
    pub(super) fn next_document(&mut self) -> Result<Option<RawTree>, YamlError> {
        self.anchors.clear();
        self.tag_prefixes.clear();
        while self.peek_kind()? == &TokenKind::DocumentEnd {
            self.scanner.skip();
        }
        if self.peek_kind()? == &TokenKind::StreamEnd {
            return Ok(None);
        }
        self.parse_directives()?;
        let root = self.parse_explicit_document()?;
        self.end_document()?;
        Ok(Some(RawTree { nodes: std::mem::take(&mut self.nodes), root: Some(root) }))
    }

    /// The offset up to which the text was read, in bytes.
    pub(super) fn read_offset(&self) -> usize {
        self.scanner.cursor.mark.offset
    }

    fn parse_document(&mut self) -> Result<Option<NodeId>, YamlError> {
        let is_explicit = match self.peek_kind()? {
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
            self.parse_node(Context::Block)?
        };
        self.end_document()?;
        Ok(Some(root))
    }

    /// The token after a document must be readable; it may end the document.
    fn end_document(&mut self) -> Result<(), YamlError> {
        if self.peek_kind()? == &TokenKind::DocumentEnd {
            self.scanner.skip();
        }
        Ok(())
    }

    fn parse_explicit_document(&mut self) -> Result<NodeId, YamlError> {
        let token = self.scanner.take()?;
        if token.kind != TokenKind::DocumentStart {
            return Err(error_at("did not find expected <document start>", token.start));
        }
        match self.peek_kind()? {
            TokenKind::VersionDirective { .. }
            | TokenKind::TagDirective { .. }
            | TokenKind::DocumentStart
            | TokenKind::DocumentEnd
            | TokenKind::StreamEnd => self.empty_scalar(token.end),
            _ => self.parse_node(Context::Block),
        }
    }

    /// Finds the first content after the document.
    pub(super) fn find_trailing_content(&mut self) -> Option<Span> {
        loop {
            match self.scanner.peek() {
                Err(error) => return Some(error.span),
                Ok(Token { kind: TokenKind::StreamEnd, .. }) => return None,
                Ok(Token { kind: TokenKind::DocumentStart | TokenKind::DocumentEnd, .. }) => {
                    self.scanner.skip();
                }
                Ok(token) => return Some(span(token.start, token.end)),
            }
        }
    }

    fn parse_directives(&mut self) -> Result<(), YamlError> {
        let mut has_version = false;
        while let TokenKind::VersionDirective { .. } | TokenKind::TagDirective { .. } =
            self.peek_kind()?
        {
            let token = self.scanner.take()?;
            match token.kind {
                TokenKind::TagDirective { handle, prefix } => {
                    if self.tag_prefixes.iter().any(|(known, _)| *known == handle) {
                        return Err(error_at("found duplicate %TAG directive", token.start));
                    }
                    self.tag_prefixes.push((handle, prefix));
                }
                _ if has_version => {
                    return Err(error_at("found duplicate %YAML directive", token.start));
                }
                TokenKind::VersionDirective { major: 1, minor: 1 } => has_version = true,
                _ => return Err(error_at("found incompatible YAML document", token.start)),
            }
        }
        for (handle, prefix) in [("!", "!"), ("!!", YAML_TAG_PREFIX)] {
            if !self.tag_prefixes.iter().any(|(known, _)| known == handle) {
                self.tag_prefixes.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }

    pub(super) fn parse_node(&mut self, context: Context) -> Result<NodeId, YamlError> {
        if self.depth >= NESTING_MAX {
            let start = self.scanner.peek()?.start;
            return Err(error_at(&too_deep(), start));
        }
        self.depth += 1;
        let node = self.parse_node_content(context);
        self.depth -= 1;
        node
    }

    fn parse_node_content(&mut self, context: Context) -> Result<NodeId, YamlError> {
        let first = self.scanner.peek()?;
        if let TokenKind::Alias(name) = &first.kind {
            let (name, start, at) = (name.clone(), first.start, span(first.start, first.end));
            self.scanner.skip();
            let Some(&target) = self.anchors.get(&name) else {
                return Err(YamlError::new(format!("unknown anchor '{name}' referenced"), at));
            };
            return self.add_node(start, at, Content::Alias { name, target }, None);
        }

        let properties = self.parse_properties()?;
        let token = self.scanner.peek()?;
        let start = properties.start.unwrap_or(token.start);
        let at = span(token.start, token.end);
        let anchor = properties.anchor;
        match &token.kind {
            TokenKind::Scalar { .. } => {
                let token = self.scanner.take()?;
                let is_plain = matches!(token.kind, TokenKind::Scalar { is_plain: true, .. });
                let is_implicit = properties.tag.as_ref().map_or(is_plain, |tag| tag == "!");
                let text = token.into_text();
                let scalar = RawScalar { text, tag: properties.tag, is_implicit };
                self.add_node(start, at, Content::Scalar(scalar), anchor)
            }
            TokenKind::BlockEntry if context == Context::BlockValue => {
                let id = self.add_node(start, at, Content::Sequence(Vec::new()), anchor)?;
                self.parse_indentless_sequence(id)
            }
            TokenKind::FlowSequenceStart => {
                self.scanner.skip();
                let id = self.add_node(start, at, Content::Sequence(Vec::new()), anchor)?;
                self.parse_flow_sequence(id)
            }
            TokenKind::FlowMappingStart => {
                self.scanner.skip();
                let id = self.add_node(start, at, Content::Mapping(Vec::new()), anchor)?;
                self.parse_flow_mapping(id)
            }
            TokenKind::BlockSequenceStart if context != Context::Flow => {
                self.scanner.skip();
                let id = self.add_node(start, at, Content::Sequence(Vec::new()), anchor)?;
                self.parse_block_sequence(id)
            }
            TokenKind::BlockMappingStart if context != Context::Flow => {
                self.scanner.skip();
                let id = self.add_node(start, at, Content::Mapping(Vec::new()), anchor)?;
                self.parse_block_mapping(id)
            }
            _ if anchor.is_some() || properties.tag.is_some() => {
                let is_implicit = properties.tag.is_none();
                let scalar = RawScalar { tag: properties.tag, is_implicit, text: Text::default() };
                let at = span(start, properties.end.unwrap_or(start));
                self.add_node(start, at, Content::Scalar(scalar), anchor)
            }
            _ => Err(error_at("did not find expected node content", token.start)),
        }
    }

    /// Reads at most one anchor and one tag, in any order.
    fn parse_properties(&mut self) -> Result<Properties, YamlError> {
        let mut properties = Properties::default();
        loop {
            match self.peek_kind()? {
                TokenKind::Anchor(_) if properties.anchor.is_none() => {}
                TokenKind::Tag { .. } if properties.tag.is_none() => {}
                _ => return Ok(properties),
            }
            let token = self.scanner.take()?;
            properties.start.get_or_insert(token.start);
            properties.end = Some(token.end);
            match token.kind {
                TokenKind::Anchor(name) => properties.anchor = Some(name),
                TokenKind::Tag { handle, suffix } => {
                    let tag = self.expand_tag(&handle, suffix);
                    let tag =
                        tag.ok_or_else(|| error_at("found undefined tag handle", token.start))?;
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

    pub(super) fn peek_kind(&mut self) -> Result<&TokenKind, YamlError> {
        Ok(&self.scanner.peek()?.kind)
    }

    /// Consumes the closing bracket and ends the collection's span there.
    pub(super) fn close_flow_collection(&mut self, id: NodeId) -> Result<(), YamlError> {
        let end = self.scanner.take()?.end.offset;
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.span.end = end;
        }
        Ok(())
    }

    pub(super) fn node_or_empty_scalar(
        &mut self,
        node: Option<NodeId>,
    ) -> Result<NodeId, YamlError> {
        match node {
            Some(id) => Ok(id),
            None => {
                let start = self.scanner.peek()?.start;
                self.empty_scalar(start)
            }
        }
    }

    pub(super) fn empty_scalar(&mut self, at: Mark) -> Result<NodeId, YamlError> {
        let scalar = RawScalar { is_implicit: true, ..RawScalar::default() };
        self.add_node(at, at.span(), Content::Scalar(scalar), None)
    }

    pub(super) fn add_node(
        &mut self,
        start: Mark,
        span: Span,
        content: Content,
        anchor: Option<String>,
    ) -> Result<NodeId, YamlError> {
        if self.nodes.len() >= self.nodes_max {
            return Err(error_at(&too_many_nodes(self.nodes_max), start));
        }
        let id = NodeId(self.nodes.len());
        self.nodes.push(RawNode { span, line: start.line + 1, content });
        if let Some(name) = anchor {
            self.anchors.insert(name, id);
        }
        Ok(id)
    }

    pub(super) fn push_item(&mut self, id: NodeId, item: NodeId) {
        if let Some(RawNode { content: Content::Sequence(items), .. }) = self.nodes.get_mut(id.0) {
            items.push(item);
        }
    }

    pub(super) fn push_pair(&mut self, id: NodeId, key: NodeId, value: NodeId) {
        if let Some(RawNode { content: Content::Mapping(pairs), .. }) = self.nodes.get_mut(id.0) {
            pairs.push((key, value));
        }
    }
}

pub(super) fn too_many_nodes(nodes_max: usize) -> String {
    format!("document holds more than {nodes_max} values")
}

pub(super) fn span(start: Mark, end: Mark) -> Span {
    Span::new(start.offset, end.offset)
}

/// An error of the grammar. Kubernetes prints the line before it, and none for the first.
pub(super) fn error_at(problem: &str, mark: Mark) -> YamlError {
    match mark.line {
        0 => YamlError::new(problem, mark.span()),
        line => YamlError::new(format!("line {line}: {problem}"), mark.span()),
    }
}
