//! Parsing: lexer, grammar and macro expansion.
//!
//! The text goes through three steps: [`lexer`] finds tokens, [`grammar`] finds the structure and
//! gets over errors ([`error_recovery`]), and [`ast_builder`] makes the tree, with [`macros`] expanded. Errors
//! of all steps are reported together, in the words of cel-go and as many of them.

use crate::ast::Ast;
use crate::compile_budget::CompileBudget;
use crate::issues::Issues;

mod ast_builder;
mod error_recovery;
mod grammar;
mod lexer;
mod literal;
mod macros;
mod node_arena;
mod parse_issues;
mod syntax_tree;
#[cfg(test)]
mod tests;
mod token;

/// The longest source text. cel-go's limit.
pub(crate) const SOURCE_CODE_POINTS_MAX: usize = 100_000;

/// The deepest nesting of one rule of the grammar, and of selections, calls and binary operators
/// inside each other. cel-go's limits.
const RECURSION_MAX: u32 = 250;

/// The most nodes on the way from the root of a tree to a leaf.
///
/// cel-go has no such limit, yet its limits on nesting imply one, at some thousand nodes. This one
/// lets pass whatever is nested in a single way as deep as cel-go allows, and leaves a walk that
/// recurses 6 KiB for each level on a stack of 2 MiB.
pub(crate) const DEPTH_MAX: u32 = 300;

/// The most nodes of a tree, counting those that macros make superfluous.
///
/// Only expressions that chain `optMap` or `optFlatMap` reach it: each link doubles what is before
/// it, which cel-go does without a limit.
const NODES_MAX: usize = 200_000;

/// The most syntax errors that are reported before the text is given up. cel-go's limit.
const SYNTAX_ERRORS_MAX: usize = 100;

/// The most recoveries of the parser after errors. cel-go's limit.
const RECOVERIES_MAX: usize = 30;

/// The most tokens that are skipped to go on after one error. cel-go's limit.
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
        // The text is too long to be kept, and the message points at no part of it.
        return Err(issues.into_issues(""));
    }
    let (parsed, mut issues) = grammar::parse_syntax(source);
    let ast = parsed.and_then(|(tree, root)| {
        ast_builder::build_ast(source, &tree, root, &mut issues, compile_budget).ok()
    });
    match ast {
        Some(ast) if issues.is_empty() => Ok(ast),
        _ => Err(issues.into_issues(source)),
    }
}
