//! Function declarations: what the checker matches and what the evaluator calls.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::ty::Type;
use crate::value::Value;

/// The outcome of a function.
pub(crate) type Outcome<'a> = Result<Value<'a>, Failure>;

/// Why an evaluation did not yield a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An error of the language; `&&`, `||` and `? :` may absorb it.
    Error(Box<str>),
    /// A map has no such key, or a record no such field: the commonest error, made without
    /// formatting anything.
    NoSuchKey(Arc<str>),
    /// The cost limit was passed. Nothing absorbs it.
    CostLimit,
}

impl Failure {
    /// An error with this message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Error(message.into().into_boxed_str())
    }
}

impl Failure {
    /// The error for arguments that no overload takes.
    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(message) => f.write_str(message),
            Self::NoSuchKey(key) => write!(f, "no such key: {key}"),
            Self::CostLimit => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}

impl std::error::Error for Failure {}

/// How an implementation is called: receiver first, then arguments; their run-time types have been
/// matched against the overload's parameters (`dyn` and type parameters match anything; of a list
/// only the first element is looked at).
pub(crate) type Implementation = for<'a> fn(&[Value<'a>]) -> Outcome<'a>;

/// All functions of an environment.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    by_name: HashMap<&'static str, Function>,
}

/// One function: overloads in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
}

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// cel-go's id, stable across implementations.
    pub(crate) id: &'static str,
    /// Called as `receiver.function(...)`; the receiver is the first parameter.
    pub(crate) member: bool,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    pub(crate) cost: Cost,
    pub(crate) implementation: Implementation,
}

/// What a call costs, given arguments and result. Sizes are [`Value::size`], 1 for values without
/// one. The factors are Kubernetes': a tenth per code point traversed, a quarter per code point of
/// a pattern, rounded up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cost {
    /// 1
    Unit,
    /// ceil(size of argument n / 10)
    Scan(usize),
    /// ceil(2 × size of argument n / 10)
    ScanTwice(usize),
    /// ceil(2 × size of result / 10)
    ScanResultTwice,
    /// ceil(min(size 0, size 1) / 10)
    ScanShorter,
    /// ceil((size 0 + size 1) / 10)
    ScanBoth,
    /// ceil(size 0 / 10) × ceil(size 1 / 10)
    ScanProduct,
    /// The size of argument 1.
    SizeOfSecond,
    /// ceil((1 + size 0) / 10) × ceil(size 1 / 4)
    Regex,
    /// A walk over argument 0: a tenth per code point of text rounded down, 1 per other leaf.
    Traverse,
    /// Anything else; `None` stands for a result that is an error.
    Custom(for<'a> fn(&[Value<'a>], Option<&Value<'a>>) -> u64),
}

impl Functions {
    /// Adds overloads to a function, after those it has.
    pub(crate) fn add(&mut self, name: &'static str, overloads: Vec<Overload>) {
        self.by_name
            .entry(name)
            .or_insert_with(|| Function { name, overloads: Vec::new() })
            .overloads
            .extend(overloads);
    }

    /// The function of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name)
    }
}

impl Overload {
    /// `name(params...) -> result`, cost 1.
    pub(crate) fn global(
        id: &'static str,
        params: Vec<Type>,
        result: Type,
        implementation: Implementation,
    ) -> Self {
        Self { id, member: false, params, result, cost: Cost::Unit, implementation }
    }

    /// `params[0].name(params[1..]...) -> result`, cost 1.
    pub(crate) fn member(
        id: &'static str,
        params: Vec<Type>,
        result: Type,
        implementation: Implementation,
    ) -> Self {
        Self { id, member: true, params, result, cost: Cost::Unit, implementation }
    }

    /// The same overload with another cost.
    pub(crate) fn cost(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }
}
