//! The concrete syntax tree: macros are not expanded, and placeholders replace invalid text.
//!
//! Parentheses and grammar rules with a single part have no node. The nodes are in an arena,
//! because a long chain of boxed nodes would be dropped recursively.

use super::token::Token;
use crate::ast::SourceSpan;

/// The index of a node in its [`ConcreteSyntaxTree`].
#[derive(Debug, Clone, Copy)]
pub(super) struct SyntaxNodeId(u32);

impl SyntaxNodeId {
    /// The placeholder for a missing node, present in every tree.
    pub(super) const MISSING: Self = Self(0);
}

/// The nodes of one source text.
#[derive(Debug)]
pub(super) struct ConcreteSyntaxTree {
    nodes: Vec<(SyntaxNode, SourceSpan)>,
}

impl ConcreteSyntaxTree {
    pub(super) fn new() -> Self {
        Self { nodes: vec![(SyntaxNode::Missing, SourceSpan::default())] }
    }

    pub(super) fn push(&mut self, node: SyntaxNode, span: SourceSpan) -> SyntaxNodeId {
        // The source limit keeps the number of nodes far below the limit of the type.
        let id = SyntaxNodeId(self.nodes.len() as u32);
        self.nodes.push((node, span));
        id
    }

    pub(super) fn syntax_node(&self, id: SyntaxNodeId) -> &SyntaxNode {
        self.nodes.get(id.0 as usize).map_or(&SyntaxNode::Missing, |(node, _)| node)
    }

    /// The source span of the node, without enclosing parentheses.
    pub(super) fn source_span(&self, id: SyntaxNodeId) -> SourceSpan {
        self.nodes.get(id.0 as usize).map_or(SourceSpan::default(), |(_, span)| *span)
    }
}

/// A node of the syntax tree. Offsets are those of operators and brackets, in code points.
#[derive(Debug)]
pub(super) enum SyntaxNode {
    /// The parser has reported an error instead of building a node.
    Missing,
    /// An operand was expected at this offset.
    MissingOperand(u32),
    /// `condition ? then : otherwise`.
    Conditional {
        question: u32,
        condition: SyntaxNodeId,
        then: SyntaxNodeId,
        otherwise: SyntaxNodeId,
    },
    /// A run of `&&` or `||`. It has one more operand than operators.
    Logical { function: &'static str, operands: Vec<SyntaxNodeId>, operators: Vec<u32> },
    /// A comparison or an arithmetic operation.
    Binary { function: &'static str, operator: u32, left: SyntaxNodeId, right: SyntaxNodeId },
    /// A run of the same prefix operator. `first` is the offset of the first operator.
    Prefix { function: &'static str, n_operators: usize, first: u32, operand: SyntaxNodeId },
    /// A selection `operand.name` or `operand.?name`.
    Select { operand: SyntaxNodeId, dot: u32, is_optional: bool, field: FieldName },
    /// A call with a receiver: `operand.name(arguments)`.
    MemberCall { operand: SyntaxNodeId, name: Token, open: u32, arguments: Vec<SyntaxNodeId> },
    /// An index expression `operand[index]` or `operand[?index]`.
    Index { operand: SyntaxNodeId, open: u32, is_optional: bool, index: SyntaxNodeId },
    /// An identifier `name` or `.name`.
    Ident { leading_dot: Option<u32>, name: Token },
    /// A call without a receiver: `name(arguments)` or `.name(arguments)`.
    Call { leading_dot: Option<u32>, name: Token, open: u32, arguments: Vec<SyntaxNodeId> },
    /// A list literal `[elements]`.
    List { open: u32, elements: Vec<ElementSyntax> },
    /// A map literal `{entries}`.
    Map { open: u32, entries: Vec<KeyValueSyntax<ElementSyntax>> },
    /// A message literal `a.b.c{fields}` or `.a.b.c{fields}`.
    Message {
        leading_dot: bool,
        names: Vec<Token>,
        open: u32,
        fields: Vec<KeyValueSyntax<MessageFieldKey>>,
    },
    /// A literal. Numbers may have a sign.
    Literal { sign: Option<Token>, token: Token },
}

/// A list element, a map key or an index, which may be marked with `?`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementSyntax {
    pub(super) has_optional_mark: bool,
    pub(super) value: SyntaxNodeId,
}

/// A key and a value with a colon between them.
#[derive(Debug)]
pub(super) struct KeyValueSyntax<K> {
    pub(super) key: K,
    pub(super) colon_offset: u32,
    pub(super) value: SyntaxNodeId,
}

/// The key of a field in a message literal, which may be marked with `?`.
#[derive(Debug)]
pub(super) struct MessageFieldKey {
    pub(super) has_optional_mark: bool,
    /// `None` if the parser found neither `?` nor a name.
    pub(super) name: Option<FieldName>,
    /// The source offset of the first field.
    pub(super) first_field_offset: u32,
}

/// The name of a field: an identifier, or text between backticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldName {
    pub(super) source_offset: u32,
    pub(super) name: Option<Token>,
}
