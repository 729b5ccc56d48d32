//! The Common Expression Language as Kubernetes runs it: parse, check, cost, evaluate.
//!
//! An [`Environment`] holds the variables and the function libraries; [`Environment::compile`]
//! turns source text into a [`Program`], which is immutable, shared freely between threads, and
//! evaluated against values that borrow the host's data.
//!
//! An expression may query an authorizer. The evaluation looks decisions up in [`KnownDecisions`]
//! and ends with [`EvalError::NeedsDecision`] if one is missing. The caller then authorizes the
//! [`AuthorizerCheck`], adds the decision and evaluates again.
//!
//! Owns: the grammar and its limits, macros, type checking, constant folding, runtime cost,
//! explanations, the standard and the Kubernetes function libraries.
//! Must not know: what a request is, how authorizers decide, admission, files, clocks, the network.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod compile_budget;
mod environment;
mod program;

mod ast;
mod issues;
mod parse;

mod static_type;
mod type_check;
mod well_known_message;

mod ir;
mod plan;
mod string_predicate_fast_path;

mod authorizer_check;
mod cost;
mod eval;
mod explain;
mod value;

mod function;
mod library;

pub use authorizer_check::{
    AuthorizerCheck, AuthorizerCheckTarget, AuthorizerDecision, KnownDecisions,
    ResourceCheckTarget, ServiceAccount,
};
pub use compile_budget::CompileBudget;
pub use environment::Environment;
pub use explain::{
    ExplainedSubexpression, Explanation, SHOWN_BYTES_MAX, SUBEXPRESSIONS_MAX, SubexpressionResult,
};
pub use function::EvalError;
pub use issues::{Issue, Issues};
pub use library::AUTHORIZER_CHECK_COST;
pub use program::{COST_LIMIT, CheckedExpression, CompileError, Evaluation, Program, ProgramError};
pub use static_type::{ObjectType, Type};
pub use value::{
    AuthorizationValue, Authorizer, Bytes, Cidr, CidrError, CidrFault, List, ListSource, Map,
    MapSource, NamedFormat, OpaqueValue, OwnedList, OwnedMap, Quantity, QuantityError,
    RecordSource, Semver, SemverError, SemverPart, Str, Timestamp, TimestampError, TypeName, Value,
};
