//! The intermediate representation (IR): the compiled form of an expression that the evaluator
//! runs.
//!
//! Its shape follows cel-go's plan, because cost is counted per step of that plan: a sequence of
//! selections is one [`Attribute`] with qualifiers, constant lists are folded, and a membership
//! test in a constant list of scalars is free.

use std::collections::HashSet;
use std::sync::Arc;

use crate::function::{CostFormula, FunctionImpl, MeteredFunctionImpl};
use crate::library::regex::Pattern;
use crate::static_type::Type;
use crate::string_predicate_fast_path::FastPath;
use crate::value::Value;
use crate::well_known_message::WellKnownMessage;

/// An expression that is compiled for evaluation.
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
    /// The test `x in [constants]`.
    Member {
        item: Box<CompiledExpr>,
        set: ConstantSet,
    },
    /// A bool test with a fast path for borrowed strings.
    FastPath(Box<FastPath>),
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
        /// Whether each element is optional. The list is empty if no element is optional.
        is_optional: Box<[bool]>,
    },
    Map(Box<[MapEntryExpr]>),
    Message(Box<MessageExpr>),
    Fold(Box<FoldExpr>),
    /// `exists` and `all`, which evaluate a predicate for each element.
    Quantifier(Box<QuantifierExpr>),
    /// `accumulator + [element]`, in place.
    Append {
        slot: usize,
        element: Box<CompiledExpr>,
        /// The cost of creating the list of one element; 0 for a constant list.
        list_cost: u64,
    },
    /// The call `cel.@mapInsert(accumulator, ...)`, which changes the accumulator in place.
    Insert {
        slot: usize,
        /// The key and the value, or the one map to add.
        args: Box<[CompiledExpr]>,
    },
}

/// A root value and the qualifiers that are applied to it: `a.b[0].c`.
#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub(crate) attribute_root: AttributeRoot,
    pub(crate) qualifiers: Vec<Qualifier>,
}

/// The value that the qualifiers of an [`Attribute`] start from.
#[derive(Debug, Clone)]
pub(crate) enum AttributeRoot {
    Variable(usize),
    /// A variable of a comprehension.
    Slot(usize),
    Value(Arc<CompiledExpr>),
    /// `condition ? then : otherwise`; qualifiers after it are part of both branches.
    Conditional(Arc<ConditionalExpr>),
}

#[derive(Debug)]
pub(crate) struct ConditionalExpr {
    pub(crate) condition: CompiledExpr,
    pub(crate) then_branch: Attribute,
    pub(crate) else_branch: Attribute,
}

/// One selection of an attribute: `.field` or `[key]`.
#[derive(Debug, Clone)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    /// Whether the qualifier is written `.?f` or `[?k]`.
    pub(crate) is_optional_qualifier: bool,
}

/// The field, key or index that a qualifier selects.
#[derive(Debug, Clone)]
pub(crate) enum QualifierKey {
    /// A field of a record whose type the checker knows.
    Field { index: usize, name: Arc<str> },
    /// A field of a map or of a value whose type is not known.
    Name(Arc<str>),
    /// A constant index or key.
    Const(Value<'static>),
    /// A key that is computed at run time.
    Computed(Arc<Attribute>),
}

/// A call of a library function.
#[derive(Debug)]
pub(crate) struct CallExpr {
    pub(crate) name: &'static str,
    pub(crate) args: Box<[CompiledExpr]>,
    pub(crate) overload_dispatch: OverloadDispatch,
    /// The operator that the call stands for if both arguments are integers.
    pub(crate) int_operator: Option<IntOperator>,
}

/// An operator on two integers. Loops over lists of numbers spend most of their time on these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntOperator {
    Add,
    Subtract,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
}

impl IntOperator {
    /// The operator of a function.
    pub(crate) fn from_function_name(name: &str) -> Option<Self> {
        Some(match name {
            "_+_" => Self::Add,
            "_-_" => Self::Subtract,
            "_<_" => Self::Less,
            "_<=_" => Self::LessEquals,
            "_>_" => Self::Greater,
            "_>=_" => Self::GreaterEquals,
            _ => return None,
        })
    }

    /// The result; `None` if it overflows.
    #[inline]
    pub(crate) fn apply_to_ints(self, left: i64, right: i64) -> Option<Value<'static>> {
        Some(match self {
            Self::Add => Value::Int(left.checked_add(right)?),
            Self::Subtract => Value::Int(left.checked_sub(right)?),
            Self::Less => Value::Bool(left < right),
            Self::LessEquals => Value::Bool(left <= right),
            Self::Greater => Value::Bool(left > right),
            Self::GreaterEquals => Value::Bool(left >= right),
        })
    }
}

/// The way in which a call chooses its overload.
#[derive(Debug)]
pub(crate) enum OverloadDispatch {
    /// The type checker found exactly one overload.
    One {
        target: ResolvedOverload,
        /// Whether the run-time types must be matched on each call, because the static types do not guarantee
        /// them.
        guarded: bool,
    },
    /// The first overload whose parameters match the run-time types, in declaration order.
    Many(Box<[ResolvedOverload]>),
}

/// The parts of an overload that a call needs.
#[derive(Debug)]
pub(crate) struct ResolvedOverload {
    pub(crate) param_types: Box<[Type]>,
    pub(crate) cost_formula: CostFormula,
    pub(crate) implementation: FunctionImpl,
    /// The implementation that replaces `implementation` during an evaluation. Constant folding has no step budget
    /// and uses `implementation`.
    pub(crate) metered_implementation: Option<MeteredFunctionImpl>,
}

#[derive(Debug)]
pub(crate) struct RegexCall {
    pub(crate) kind: RegexFunction,
    pub(crate) pattern: Pattern,
    /// The code points of the pattern, which determine the cost.
    pub(crate) pattern_code_points: u64,
    pub(crate) searched_text_expr: CompiledExpr,
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
    pub(crate) is_optional_entry: bool,
}

/// A literal of a message type.
#[derive(Debug)]
pub(crate) struct MessageExpr {
    /// The message type; `None` for record types of the host, which expressions cannot create.
    pub(crate) message: Option<WellKnownMessage>,
    pub(crate) name: Arc<str>,
    pub(crate) field_exprs: Box<[(Arc<str>, CompiledExpr, bool)]>,
}

/// A comprehension that no specialized node covers.
#[derive(Debug)]
pub(crate) struct FoldExpr {
    pub(crate) iter_range: CompiledExpr,
    pub(crate) accumulator_init: CompiledExpr,
    pub(crate) accumulator_slot: usize,
    pub(crate) first_variable_slot: usize,
    pub(crate) second_variable_slot: Option<usize>,
    pub(crate) loop_condition: CompiledExpr,
    pub(crate) loop_step: CompiledExpr,
    pub(crate) result_expr: CompiledExpr,
}

/// `range.exists(x, predicate)` or `range.all(x, predicate)`.
#[derive(Debug)]
pub(crate) struct QuantifierExpr {
    pub(crate) iter_range: CompiledExpr,
    pub(crate) first_variable_slot: usize,
    pub(crate) second_variable_slot: Option<usize>,
    pub(crate) predicate: CompiledExpr,
    /// `true` for `exists`, which stops at the first true; `false` for `all`.
    pub(crate) stopping_value: bool,
}

/// A constant list of scalars, for membership tests.
#[derive(Debug, Clone)]
pub(crate) enum ConstantSet {
    /// Short lists of strings, for which comparing is faster than hashing.
    FewStrings(Box<[Box<str>]>),
    ManyStrings(HashSet<Box<str>>),
    /// Lists with scalars of other types.
    Values(Box<[Value<'static>]>),
}
