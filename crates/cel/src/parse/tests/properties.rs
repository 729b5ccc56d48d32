//! Properties of the parser for arbitrary texts.

use proptest::prelude::*;

use super::super::DEPTH_MAX;
use super::{parse, parse_and_render};
use crate::ast::{Ast, ExprKind, NodeId};

/// Pieces for texts that are almost expressions.
const PIECES: &[&str] = &[
    "==",
    "!=",
    "in",
    "<",
    "<=",
    ">=",
    ">",
    "&&",
    "||",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ".",
    ",",
    "-",
    "!",
    "?",
    ":",
    "+",
    "*",
    "/",
    "%",
    "true",
    "null",
    "1.5",
    "1",
    "2u",
    "'s'",
    "b'x'",
    "a",
    "`a-b`",
    "// c\n",
    "\n",
    "\t",
    " ",
    "@",
    "=",
    "&",
    "'",
    "\"",
    "'''",
    "\\",
    "has(",
    ".all(x,",
    ".map(x,",
    ".optMap(x,",
    ".sortBy(x,",
    "let",
    "é",
    "😀",
    "0x",
    "1e",
    ".?",
    "[?",
    "{?",
    "A{",
];

proptest! {
    #[test]
    fn any_text_is_a_tree_or_an_error(source in any::<String>()) {
        check(&source)?;
    }

    #[test]
    fn any_pieces_are_a_tree_or_an_error(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..80),
        separator in proptest::sample::select(&["", " "][..]),
    ) {
        check(&pieces.join(separator))?;
    }
}

fn check(source: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(parse_and_render(source), parse_and_render(source));
    match parse(source) {
        Ok(ast) => {
            let n_code_points = source.chars().count();
            for node in ast.nodes.iter() {
                prop_assert!((node.source_offset as usize) < n_code_points);
            }
            prop_assert!(height(&ast, ast.root_node) <= DEPTH_MAX);
        }
        Err(issues) => {
            prop_assert!(issues.iter().count() > 0);
            let places: Vec<_> = issues.iter().map(|issue| (issue.line, issue.column)).collect();
            prop_assert!(places.is_sorted());
        }
    }
    Ok(())
}

fn height(ast: &Ast, id: NodeId) -> u32 {
    let children = match ast.kind(id) {
        ExprKind::Literal(_) | ExprKind::Ident(_) => Vec::new(),
        ExprKind::Select { operand, .. } => vec![*operand],
        ExprKind::Call { target, args, .. } => target.iter().chain(args).copied().collect(),
        ExprKind::List { elements, .. } => elements.clone(),
        ExprKind::Map { entries } => {
            entries.iter().flat_map(|entry| [entry.key, entry.value]).collect()
        }
        ExprKind::Struct { fields, .. } => fields.iter().map(|field| field.value).collect(),
        ExprKind::Comprehension(fold) => {
            vec![
                fold.iter_range,
                fold.accu_init,
                fold.loop_condition,
                fold.loop_step,
                fold.result_expr,
            ]
        }
    };
    assert!(children.iter().all(|child| *child < id), "children come first");
    1 + children.into_iter().map(|child| height(ast, child)).max().unwrap_or(0)
}
