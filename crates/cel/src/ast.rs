//! The syntax tree: an arena of nodes, macros already expanded.

use std::sync::Arc;

/// The place of a node in its [`Ast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    /// The index into arrays that run parallel to the arena.
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
    pub(crate) nodes: Vec<AstNode>,
    pub(crate) root: NodeId,
}

impl Ast {
    pub(crate) fn kind(&self, id: NodeId) -> &ExprKind {
        &self.nodes[id.index()].kind
    }

    /// Where the node stands in the source, in code points from the start, as cel-go counts it:
    /// a call at its `(` or operator, a selection at its dot, an index at its `[`.
    pub(crate) fn offset(&self, id: NodeId) -> u32 {
        self.nodes[id.index()].offset
    }

    pub(crate) fn span(&self, id: NodeId) -> Option<Span> {
        self.nodes[id.index()].span
    }
}

/// One node of the tree.
#[derive(Debug, Clone)]
pub(crate) struct AstNode {
    pub(crate) kind: ExprKind,
    pub(crate) offset: u32,
    /// What stands for the node in the source; `None` if a macro has made it, or the parser for a
    /// chain of operators. The call of a macro stands for what it becomes.
    pub(crate) span: Option<Span>,
}

/// A part of the source text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    /// The byte after the part.
    pub(crate) end: u32,
}

/// What a node is. Operators are calls of functions with cel-go's names (`_==_`, `_&&_`, `_[_]`).
#[derive(Debug, Clone)]
pub(crate) enum ExprKind {
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: NodeId,
        field: Arc<str>,
        /// The `has(a.b)` form.
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
        optional: Vec<usize>,
    },
    Map {
        entries: Vec<MapEntry>,
    },
    Struct {
        name: Arc<str>,
        fields: Vec<StructField>,
    },
    Comprehension(Box<Comprehension>),
}

impl ExprKind {
    /// Visits the nodes right below, in the order of the source as far as there is one.
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
            Self::Comprehension(fold) => {
                [fold.iter_range, fold.accu_init, fold.loop_condition, fold.loop_step, fold.result]
                    .into_iter()
                    .for_each(visit)
            }
        }
    }
}

/// A literal value.
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
pub(crate) struct MapEntry {
    pub(crate) key: NodeId,
    pub(crate) value: NodeId,
    /// Written `?key: value`.
    pub(crate) optional: bool,
    /// The place of the `:`.
    pub(crate) offset: u32,
}

/// One `field: value` of a message literal.
#[derive(Debug, Clone)]
pub(crate) struct StructField {
    pub(crate) name: Arc<str>,
    pub(crate) value: NodeId,
    /// Written `?field: value`.
    pub(crate) optional: bool,
    /// The place of the `:`.
    pub(crate) offset: u32,
}

/// What macros become: a fold over a list or a map.
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
    pub(crate) result: NodeId,
}
