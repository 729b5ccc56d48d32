//! The abstract syntax tree (AST): an arena of nodes in which macros are already expanded.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// The index of a node in the arena of its [`Ast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    /// The index of the node's value in a [`NodeMap`] or any other list that is parallel to the arena.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A parsed expression.
///
/// INVARIANT: no path from the root is longer than [`crate::parse::DEPTH_MAX`] nodes, so walks may
/// recurse.
#[derive(Debug, Clone)]
pub(crate) struct Ast {
    pub(crate) nodes: NodeMap<AstNode>,
    pub(crate) root_node: NodeId,
}

impl Ast {
    pub(crate) fn kind(&self, id: NodeId) -> &ExprKind {
        &self.nodes[id].kind
    }

    /// The source offset of the node in code points, as cel-go counts it: a call has the offset of
    /// its `(` or operator, a selection that of its dot, an index that of its `[`.
    pub(crate) fn source_offset(&self, id: NodeId) -> u32 {
        self.nodes[id].source_offset
    }

    pub(crate) fn source_span(&self, id: NodeId) -> Option<SourceSpan> {
        self.nodes[id].source_span
    }
}

/// One value for each node of an [`Ast`].
///
/// INVARIANT: a map has as many values as the arena has nodes, and a [`NodeId`] is used only with
/// the arena that issued it and with the maps of that arena.
#[derive(Debug, Clone)]
pub(crate) struct NodeMap<T>(Vec<T>);

impl<T> NodeMap<T> {
    /// Makes a map from values in the order of the arena.
    pub(crate) fn new(values: Vec<T>) -> Self {
        Self(values)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

#[expect(clippy::indexing_slicing, reason = "INVARIANT on NodeMap: it has a value for each NodeId")]
impl<T> Index<NodeId> for NodeMap<T> {
    type Output = T;

    fn index(&self, id: NodeId) -> &T {
        &self.0[id.index()]
    }
}

#[expect(clippy::indexing_slicing, reason = "INVARIANT on NodeMap: it has a value for each NodeId")]
impl<T> IndexMut<NodeId> for NodeMap<T> {
    fn index_mut(&mut self, id: NodeId) -> &mut T {
        &mut self.0[id.index()]
    }
}

/// A node of the AST with its position in the source.
#[derive(Debug, Clone)]
pub(crate) struct AstNode {
    pub(crate) kind: ExprKind,
    pub(crate) source_offset: u32,
    /// The source text of the node. `None` for nodes that a macro expansion or the balancing of
    /// `&&` and `||` added. The root of an expansion has the span of the macro call.
    pub(crate) source_span: Option<SourceSpan>,
}

/// A byte range of the source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SourceSpan {
    pub(crate) start: u32,
    /// The byte after the last one.
    pub(crate) span_end_byte: u32,
}

/// The kinds of AST nodes. Operators are calls of functions with cel-go's names (`_==_`, `_&&_`,
/// `_[_]`).
#[derive(Debug, Clone)]
pub(crate) enum ExprKind {
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: NodeId,
        field: Arc<str>,
        /// Whether this is `has(operand.field)`, which tests presence instead of reading.
        test_only: bool,
    },
    Call {
        /// The receiver of `target.function(args)`.
        target: Option<NodeId>,
        function: Arc<str>,
        args: Vec<NodeId>,
    },
    List {
        elements: Vec<NodeId>,
        /// Indices of the elements written `?x`.
        optional_indices: Vec<usize>,
    },
    Map {
        entries: Vec<MapLiteralEntry>,
    },
    Struct {
        name: Arc<str>,
        fields: Vec<MessageLiteralField>,
    },
    Comprehension(Box<Comprehension>),
}

impl ExprKind {
    /// Visits the direct children in source order. Children that a macro added have no such order.
    pub(crate) fn for_each_child(&self, mut visit: impl FnMut(NodeId)) {
        match self {
            Self::Literal(_) | Self::Ident(_) => {}
            Self::Select { operand, .. } => visit(*operand),
            Self::Call { target, args, .. } => target.iter().chain(args).copied().for_each(visit),
            Self::List { elements, .. } => elements.iter().copied().for_each(visit),
            Self::Map { entries } => entries.iter().for_each(|entry| {
                visit(entry.key);
                visit(entry.value);
            }),
            Self::Struct { fields, .. } => fields.iter().for_each(|field| visit(field.value)),
            Self::Comprehension(fold) => [
                fold.iter_range,
                fold.accu_init,
                fold.loop_condition,
                fold.loop_step,
                fold.result_expr,
            ]
            .into_iter()
            .for_each(visit),
        }
    }
}

/// The value of a literal in the source text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// One `key: value` of a map literal.
#[derive(Debug, Clone)]
pub(crate) struct MapLiteralEntry {
    pub(crate) key: NodeId,
    pub(crate) value: NodeId,
    /// Whether the source says `?key: value`.
    pub(crate) is_optional_entry: bool,
    /// The source offset of the `:`.
    pub(crate) colon_offset: u32,
}

/// One `field: value` of a message literal.
#[derive(Debug, Clone)]
pub(crate) struct MessageLiteralField {
    pub(crate) name: Arc<str>,
    pub(crate) value: NodeId,
    /// Whether the source says `?field: value`.
    pub(crate) is_optional_field: bool,
    /// The source offset of the `:`.
    pub(crate) colon_offset: u32,
}

/// A fold over a list or a map. Macros such as `all` and `map` expand to comprehensions.
#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) iter_range: NodeId,
    pub(crate) iter_var: Arc<str>,
    /// The second variable of the two-variable macros.
    pub(crate) iter_var2: Option<Arc<str>>,
    pub(crate) accu_var: Arc<str>,
    pub(crate) accu_init: NodeId,
    pub(crate) loop_condition: NodeId,
    pub(crate) loop_step: NodeId,
    pub(crate) result_expr: NodeId,
}
