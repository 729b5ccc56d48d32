//! Parsing: lexer, grammar and macro expansion.
//!
//! Parsing has three steps: [`lexer`] splits the text into tokens, [`grammar`] builds the syntax
//! tree and recovers from errors ([`error_recovery`]), and [`ast_builder`] builds the AST and
//! expands [`macros`]. The errors of all steps are reported together, with the messages and in the
//! number of cel-go.

use crate::ast::Ast;
use crate::compile_budget::CompileBudget;
use crate::issues::Issues;

mod ast_builder;
mod concrete_syntax_tree;
mod error_recovery;
mod grammar;
mod lexer;
mod literal;
mod macros;
mod node_arena;
mod parse_issues;
#[cfg(test)]
mod tests;
mod token;

/// The longest source text in code points. This is cel-go's limit.
pub(crate) const SOURCE_CODE_POINTS_MAX: usize = 100_000;

/// The deepest nesting of one grammar rule, and of selections, calls and binary operators inside
/// each other. These are cel-go's limits.
const RECURSION_MAX: u32 = 250;

/// The maximum number of nodes on a path from the root of an AST to a leaf.
///
/// cel-go's limits on nesting imply a limit of a few thousand nodes. This limit still accepts an
/// expression that nests one construct as deep as cel-go allows. A recursive walk may use 6 KiB for
/// each level of a stack of 2 MiB.
pub(crate) const DEPTH_MAX: u32 = 300;

/// The maximum number of nodes of an AST, including nodes that a macro expansion replaces.
///
/// Only chains of `optMap` or `optFlatMap` reach it, because each of these macros copies its
/// target. cel-go has no such limit.
const NODES_MAX: usize = 200_000;

/// The maximum number of syntax errors that are reported before parsing stops. This is cel-go's
/// limit.
const SYNTAX_ERRORS_MAX: usize = 100;

/// The maximum number of recoveries of the parser after errors. This is cel-go's limit.
const RECOVERIES_MAX: usize = 30;

/// The maximum number of tokens that one recovery skips. This is cel-go's limit.
const RECOVERY_TOKENS_MAX: usize = 256;

/// Parses an expression. The macros are all those that Kubernetes enables.
pub(crate) fn parse(source: &str, compile_budget: &mut CompileBudget) -> Result<Ast, Issues> {
    let n_code_points = source.chars().count();
    if n_code_points > SOURCE_CODE_POINTS_MAX {
        let mut issues = parse_issues::ParseIssues::default();
        issues.report_limit_exceeded(format!(
            "expression code point size exceeds limit: size: {n_code_points}, \
             limit {SOURCE_CODE_POINTS_MAX}"
        ));
        // The source text is not kept, because the message does not refer to a position in it.
        return Err(issues.into_issues(""));
    }
    let (parsed, mut issues) = grammar::parse_concrete_syntax_tree(source);
    let ast = parsed.and_then(|(tree, root)| {
        ast_builder::build_ast(source, &tree, root, &mut issues, compile_budget).ok()
    });
    match ast {
        Some(ast) if issues.is_empty() => Ok(ast),
        _ => Err(issues.into_issues(source)),
    }
}
