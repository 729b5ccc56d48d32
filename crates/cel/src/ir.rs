//! The compiled form of an expression: what the evaluator walks.
//!
//! Its shape follows the plan that cel-go makes, because cost is counted per step of that plan:
//! a chain of selections is one [`Attr`] with qualifiers, constant lists are folded, and a test
//! for membership in a constant list of scalars is free.

use std::collections::HashSet;
use std::sync::Arc;

use crate::function::{Cost, Implementation, MeteredImplementation};
use crate::library::regex::Pattern;
use crate::message::Message;
use crate::quick::Quick;
use crate::ty::Type;
use crate::value::Value;

/// An expression that yields a value.
#[derive(Debug)]
pub(crate) enum Expr {
    Const(Value<'static>),
    Attr(Attr),
    /// `has(a.b)`: the last qualifier is only tested.
    Has(Attr),
    And(Box<[Expr]>),
    Or(Box<[Expr]>),
    Not(Box<Expr>),
    Equal {
        sides: Box<[Expr; 2]>,
        negated: bool,
    },
    /// `x in [constants]`
    Member {
        item: Box<Expr>,
        set: ConstantSet,
    },
    /// A test on plain text.
    Quick(Box<Quick>),
    Call(Box<Call>),
    /// `text.matches('constant')`, `find` and `findAll` with a constant pattern.
    Regex(Box<RegexCall>),
    /// `a.or(b)`, or `a.orValue(b)` when `unwrap`.
    OptionalOr {
        sides: Box<[Expr; 2]>,
        unwrap: bool,
    },
    List {
        elements: Box<[Expr]>,
        /// Parallel to the elements; empty when none is optional.
        optional: Box<[bool]>,
    },
    Map(Box<[Entry]>),
    Message(Box<MessageExpr>),
    Fold(Box<Fold>),
    /// `exists` and `all`: the first bool that ends the loop, a predicate for each element.
    Quantifier(Box<Quantifier>),
    /// `accumulator + [element]`, in place.
    Append {
        slot: usize,
        element: Box<Expr>,
        /// What making the list of one element costs; a constant list costs nothing.
        list_cost: u64,
    },
    /// `cel.@mapInsert(accumulator, ...)`, in place.
    Insert {
        slot: usize,
        /// The key and the value, or the one map to add.
        args: Box<[Expr]>,
    },
}

/// A variable or a value, and the path from there.
#[derive(Debug, Clone)]
pub(crate) struct Attr {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
}

/// Where a path begins.
#[derive(Debug, Clone)]
pub(crate) enum Root {
    Variable(usize),
    /// A variable of a comprehension.
    Slot(usize),
    Value(Arc<Expr>),
    /// `condition ? then : otherwise`; paths after it are part of both branches.
    Conditional(Arc<Conditional>),
}

#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) condition: Expr,
    pub(crate) then: Attr,
    pub(crate) otherwise: Attr,
}

/// One step of a path.
#[derive(Debug, Clone)]
pub(crate) struct Qualifier {
    pub(crate) key: Key,
    /// Written `.?f` or `[?k]`.
    pub(crate) optional: bool,
}

/// What a step selects.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    /// A field of a record whose type is known.
    Field { index: usize, name: Arc<str> },
    /// A name on a map or on a value whose type is not known.
    Name(Arc<str>),
    /// A constant index or key.
    Const(Value<'static>),
    /// An index that is computed.
    Computed(Arc<Attr>),
}

/// A call of a library function.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) args: Box<[Expr]>,
    pub(crate) dispatch: Dispatch,
}

/// Which overload a call runs.
#[derive(Debug)]
pub(crate) enum Dispatch {
    /// The checker found exactly one.
    One {
        target: Target,
        /// The static types do not guarantee the run-time types.
        guarded: bool,
    },
    /// The run-time types decide, in the order of declaration.
    Many(Box<[Target]>),
}

/// One overload to call.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) params: Box<[Type]>,
    pub(crate) cost: Cost,
    pub(crate) implementation: Implementation,
    /// Runs instead during an evaluation.
    pub(crate) metered: Option<MeteredImplementation>,
}

#[derive(Debug)]
pub(crate) struct RegexCall {
    pub(crate) kind: RegexKind,
    pub(crate) pattern: Pattern,
    /// Code points of the pattern, for cost.
    pub(crate) pattern_size: u64,
    pub(crate) text: Expr,
    /// The limit of `findAll(pattern, limit)`.
    pub(crate) limit: Option<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegexKind {
    Matches,
    Find,
    FindAll,
}

/// One entry of a map literal.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A message literal.
#[derive(Debug)]
pub(crate) struct MessageExpr {
    /// `None` for the host's record types, which expressions can not make.
    pub(crate) message: Option<Message>,
    pub(crate) name: Arc<str>,
    pub(crate) fields: Box<[(Arc<str>, Expr, bool)]>,
}

/// A general comprehension.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Expr,
    pub(crate) init: Expr,
    pub(crate) accumulator: usize,
    pub(crate) first: usize,
    pub(crate) second: Option<usize>,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// `range.exists(x, predicate)` or `range.all(x, predicate)`.
#[derive(Debug)]
pub(crate) struct Quantifier {
    pub(crate) range: Expr,
    pub(crate) slot: usize,
    pub(crate) second: Option<usize>,
    pub(crate) predicate: Expr,
    /// `true` for `exists`, which stops at the first true; `false` for `all`.
    pub(crate) stops_at: bool,
}

/// A constant list of scalars, for membership tests.
#[derive(Debug, Clone)]
pub(crate) enum ConstantSet {
    /// Short lists of text: comparing is faster than hashing.
    FewStrings(Box<[Box<str>]>),
    ManyStrings(HashSet<Box<str>>),
    /// Everything else.
    Values(Box<[Value<'static>]>),
}
