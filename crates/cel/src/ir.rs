//! The compiled form of an expression: what the evaluator walks.
//!
//! Its shape follows the plan that cel-go makes, because cost is counted per step of that plan:
//! a chain of selections is one [`Attribute`] with qualifiers, constant lists are folded, and a test
//! for membership in a constant list of scalars is free.

use std::collections::HashSet;
use std::sync::Arc;

use crate::fast_path::FastPath;
use crate::function::{CostFormula, FunctionImpl, MeteredFunctionImpl};
use crate::library::regex::Pattern;
use crate::static_type::Type;
use crate::value::Value;
use crate::well_known_message::WellKnownMessage;

/// An expression that yields a value.
#[derive(Debug)]
pub(crate) enum CompiledExpr {
    Const(Value<'static>),
    Attr(Attribute),
    /// `has(a.b)`: the last qualifier is only tested.
    Has(Attribute),
    And(Box<[CompiledExpr]>),
    Or(Box<[CompiledExpr]>),
    Not(Box<CompiledExpr>),
    Equal {
        sides: Box<[CompiledExpr; 2]>,
        negated: bool,
    },
    /// `x in [constants]`
    Member {
        item: Box<CompiledExpr>,
        set: ConstantSet,
    },
    /// A test on plain text.
    Quick(Box<FastPath>),
    Call(Box<CallExpr>),
    /// `text.matches('constant')`, `find` and `findAll` with a constant pattern.
    Regex(Box<RegexCall>),
    /// `a.or(b)`, or `a.orValue(b)` when `unwrap`.
    OptionalOr {
        sides: Box<[CompiledExpr; 2]>,
        unwrap: bool,
    },
    List {
        elements: Box<[CompiledExpr]>,
        /// Parallel to the elements; empty when none is optional.
        optional: Box<[bool]>,
    },
    Map(Box<[MapEntryExpr]>),
    Message(Box<MessageExpr>),
    Fold(Box<FoldExpr>),
    /// `exists` and `all`: the first bool that ends the loop, a predicate for each element.
    Quantifier(Box<QuantifierExpr>),
    /// `accumulator + [element]`, in place.
    Append {
        slot: usize,
        element: Box<CompiledExpr>,
        /// What making the list of one element costs; a constant list costs nothing.
        list_cost: u64,
    },
    /// `cel.@mapInsert(accumulator, ...)`, in place.
    Insert {
        slot: usize,
        /// The key and the value, or the one map to add.
        args: Box<[CompiledExpr]>,
    },
}

/// A variable or a value, and the path from there.
#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub(crate) root: AttributeRoot,
    pub(crate) qualifiers: Vec<Qualifier>,
}

/// Where a path begins.
#[derive(Debug, Clone)]
pub(crate) enum AttributeRoot {
    Variable(usize),
    /// A variable of a comprehension.
    Slot(usize),
    Value(Arc<CompiledExpr>),
    /// `condition ? then : otherwise`; paths after it are part of both branches.
    Conditional(Arc<ConditionalExpr>),
}

#[derive(Debug)]
pub(crate) struct ConditionalExpr {
    pub(crate) condition: CompiledExpr,
    pub(crate) then: Attribute,
    pub(crate) otherwise: Attribute,
}

/// One step of a path.
#[derive(Debug, Clone)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    /// Written `.?f` or `[?k]`.
    pub(crate) optional: bool,
}

/// What a step selects.
#[derive(Debug, Clone)]
pub(crate) enum QualifierKey {
    /// A field of a record whose type is known.
    Field { index: usize, name: Arc<str> },
    /// A name on a map or on a value whose type is not known.
    Name(Arc<str>),
    /// A constant index or key.
    Const(Value<'static>),
    /// An index that is computed.
    Computed(Arc<Attribute>),
}

/// A call of a library function.
#[derive(Debug)]
pub(crate) struct CallExpr {
    pub(crate) name: &'static str,
    pub(crate) args: Box<[CompiledExpr]>,
    pub(crate) dispatch: OverloadDispatch,
}

/// Which overload a call runs.
#[derive(Debug)]
pub(crate) enum OverloadDispatch {
    /// The checker found exactly one.
    One {
        target: ResolvedOverload,
        /// The static types do not guarantee the run-time types.
        guarded: bool,
    },
    /// The run-time types decide, in the order of declaration.
    Many(Box<[ResolvedOverload]>),
}

/// One overload to call.
#[derive(Debug)]
pub(crate) struct ResolvedOverload {
    pub(crate) params: Box<[Type]>,
    pub(crate) cost: CostFormula,
    pub(crate) implementation: FunctionImpl,
    /// Runs instead during an evaluation.
    pub(crate) metered_implementation: Option<MeteredFunctionImpl>,
}

#[derive(Debug)]
pub(crate) struct RegexCall {
    pub(crate) kind: RegexFunction,
    pub(crate) pattern: Pattern,
    /// Code points of the pattern, for cost.
    pub(crate) pattern_size: u64,
    pub(crate) text: CompiledExpr,
    /// The limit of `findAll(pattern, limit)`.
    pub(crate) match_limit: Option<CompiledExpr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegexFunction {
    Matches,
    Find,
    FindAll,
}

/// One entry of a map literal.
#[derive(Debug)]
pub(crate) struct MapEntryExpr {
    pub(crate) key: CompiledExpr,
    pub(crate) value: CompiledExpr,
    pub(crate) optional: bool,
}

/// A message literal.
#[derive(Debug)]
pub(crate) struct MessageExpr {
    /// `None` for the host's record types, which expressions can not make.
    pub(crate) message: Option<WellKnownMessage>,
    pub(crate) name: Arc<str>,
    pub(crate) fields: Box<[(Arc<str>, CompiledExpr, bool)]>,
}

/// A general comprehension.
#[derive(Debug)]
pub(crate) struct FoldExpr {
    pub(crate) range: CompiledExpr,
    pub(crate) accumulator_init: CompiledExpr,
    pub(crate) accumulator_slot: usize,
    pub(crate) first_slot: usize,
    pub(crate) second_slot: Option<usize>,
    pub(crate) condition: CompiledExpr,
    pub(crate) loop_step: CompiledExpr,
    pub(crate) result: CompiledExpr,
}

/// `range.exists(x, predicate)` or `range.all(x, predicate)`.
#[derive(Debug)]
pub(crate) struct QuantifierExpr {
    pub(crate) range: CompiledExpr,
    pub(crate) slot: usize,
    pub(crate) second_slot: Option<usize>,
    pub(crate) predicate: CompiledExpr,
    /// `true` for `exists`, which stops at the first true; `false` for `all`.
    pub(crate) stopping_value: bool,
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
