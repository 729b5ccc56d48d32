//! The Common Expression Language as Kubernetes runs it: parse, check, cost, evaluate.
//!
//! An [`Environment`] holds the variables and the function libraries; [`Environment::compile`]
//! turns source text into a [`Program`], which is immutable, shared freely between threads, and
//! evaluated against values that borrow the host's data.
//!
//! An expression may ask an authorizer. It is evaluated with the [`Decisions`] that are known, and ends
//! with [`Failure::Wanted`] where one is missing: whoever evaluates asks, and evaluates again.
//!
//! Owns: the grammar and its limits, macros, type checking, constant folding, runtime cost, what
//! parts of an expression gave, the standard and the Kubernetes function libraries.
//! Must not know: what a request is, how anybody decides, admission, files, clocks, the network.

mod budget;
mod environment;
mod program;

mod ast;
mod issue;
mod parse;

mod check;
mod message;
mod ty;

mod ir;
mod plan;
mod quick;

mod cost;
mod eval;
mod explain;
mod question;
mod value;

mod function;
mod library;

pub use budget::Budget;
pub use environment::Environment;
pub use explain::{Explanation, PARTS_MAX, Part, PartOutcome, SHOWN_BYTES_MAX};
pub use function::Failure;
pub use issue::{Issue, Issues};
pub use library::CHECK_COST;
pub use program::{COST_LIMIT, CheckedExpression, CompileError, Evaluation, Program};
pub use question::{CheckTarget, Decision, Decisions, Question, ResourceTarget, ServiceAccount};
pub use ty::{ObjectType, Type};
pub use value::{
    Authorization, Authorizer, Bytes, Cidr, List, ListSource, Map, MapSource, NamedFormat, Opaque,
    OwnedList, OwnedMap, Quantity, Record, Semver, Str, Timestamp, TimestampError, TypeName, Value,
};
