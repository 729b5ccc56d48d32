//! An expression at each limit, and one just beyond it.
//!
//! Tests run on threads with a stack of 2 MiB. So these cases also show that the deepest
//! expressions do not overflow it, even in a debug build.

use super::super::{
    DEPTH_MAX, NODES_MAX, RECOVERIES_MAX, RECOVERY_TOKENS_MAX, SOURCE_CODE_POINTS_MAX,
    SYNTAX_ERRORS_MAX,
};
use super::{RenderedIssues, parse, parse_and_render};

fn nested(open: &str, inside: &str, close: &str, n: usize) -> String {
    format!("{}{inside}{}", open.repeat(n), close.repeat(n))
}

fn passes(source: &str) {
    if let Err(RenderedIssues(error)) = parse_and_render(source) {
        panic!("{}...: {error}", source.chars().take(40).collect::<String>());
    }
}

fn fails(source: &str, want: &str) {
    let error = match parse_and_render(source) {
        Ok(_) => panic!("{}... passes", source.chars().take(40).collect::<String>()),
        Err(RenderedIssues(error)) => error,
    };
    assert!(error.contains(want), "{error}");
}

#[test]
fn source_length() {
    passes(&"x".repeat(SOURCE_CODE_POINTS_MAX));
    passes(&nested("'", &"é".repeat(SOURCE_CODE_POINTS_MAX - 2), "'", 1));
    for letter in ["x", "é"] {
        assert_eq!(
            parse_and_render(&letter.repeat(SOURCE_CODE_POINTS_MAX + 1)),
            Err(RenderedIssues(
                "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, \
                 limit 100000"
                    .to_owned()
            ))
        );
    }
}

#[test]
fn expression_nesting() {
    let want = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
    for (open, close) in
        [("(", ")"), ("[", "]"), ("f(", ")"), ("a[", "]"), ("{1:", "}"), ("A{f:", "}"), ("!(", ")")]
    {
        passes(&nested(open, "1", close, 249));
        fails(&nested(open, "1", close, 250), want);
        fails(&nested(open, "1", close, 10_000), want);
    }
    passes(&nested("true ? 1 : ", "2", "", 249));
    fails(&nested("true ? 1 : ", "2", "", 250), want);
    // Each operator adds a level while its right operand is parsed.
    passes(&nested("1 + 1 * [", "1", "]", 83));
    fails(&nested("1 + 1 * [", "1", "]", 84), want);
    passes(&nested("1 < (", "1", ")", 124));
    fails(&nested("1 < (", "1", ")", 125), want);
}

#[test]
fn operator_and_selection_chains() {
    let want = "ERROR: <input>:-1:0: max recursion depth exceeded";
    for link in [".b", "[0]", ".f()", " + 1", " == 1", " in c"] {
        passes(&nested("", "a", link, 250));
        fails(&nested("", "a", link, 251), want);
        fails(&nested("", "a", link, 15_000), want);
    }
    // Repeated logical operators and prefix operators do not add nesting.
    for link in [" && b", " || b", " && b || c"] {
        passes(&nested("", "a", link, 5_000));
    }
    passes(&nested("!", "a", "", 10_000));
    passes(&nested("-", "a", "", 10_001));
}

#[test]
fn ast_depth() {
    let want = format!("ERROR: <input>:-1:0: expression depth limit exceeded: {DEPTH_MAX}");
    let n_turns = DEPTH_MAX as usize / 2 - 1;
    // Each repetition adds a list and a negation, or a comprehension and its loop step.
    for (open, close) in [("[!", "]"), ("a.all(x, ", ")")] {
        passes(&nested(open, "[1]", close, n_turns));
        fails(&nested(open, "[[1]]", close, n_turns), &want);
    }
}

/// Each `optMap` copies its target.
#[test]
fn ast_nodes() {
    let want = format!("ERROR: <input>:-1:0: expression node limit exceeded: {NODES_MAX}");
    passes(&nested("", "a", ".optMap(x, x)", 12));
    fails(&nested("", "a", ".optMap(x, x)", 20), &want);
    fails(&nested("", "a", ".optMap(x, x)", 70), &want);
    // Other expressions stay far below the limit. A list of such comprehensions has the most nodes
    // for its length.
    let longest = nested("[", &"a.sortBy(b,c),".repeat(SOURCE_CODE_POINTS_MAX / 14 - 1), "]", 1);
    passes(&longest);
}

#[test]
fn syntax_errors() {
    let errors = |n: usize| {
        let issues = parse(&format!("1{}", "@".repeat(n))).unwrap_err();
        (issues.iter().count(), issues.to_string())
    };
    assert_eq!(errors(SYNTAX_ERRORS_MAX).0, SYNTAX_ERRORS_MAX);
    assert!(!errors(SYNTAX_ERRORS_MAX).1.contains("truncated"));
    for n in [SYNTAX_ERRORS_MAX + 1, SYNTAX_ERRORS_MAX + 2, 10_000] {
        assert_eq!(errors(n).0, SYNTAX_ERRORS_MAX);
        assert!(errors(n).1.ends_with("\n1 more errors were truncated"));
    }
}

#[test]
fn recoveries() {
    let want = format!("error recovery attempt limit exceeded: {RECOVERIES_MAX}");
    let sum_of = |n: usize| vec!["(1 2)"; n].join(" + ");
    let RenderedIssues(error) = parse_and_render(&sum_of(RECOVERIES_MAX)).unwrap_err();
    assert!(!error.contains(&want), "{error}");
    fails(&sum_of(RECOVERIES_MAX + 1), &want);
    fails(&sum_of(10_000), &want);
}

#[test]
fn skipped_tokens() {
    let want = format!("error recovery token lookahead limit exceeded: {RECOVERY_TOKENS_MAX}");
    let RenderedIssues(error) = parse_and_render(&")".repeat(RECOVERY_TOKENS_MAX)).unwrap_err();
    assert!(!error.contains(&want), "{error}");
    fails(&")".repeat(RECOVERY_TOKENS_MAX + 1), &want);
    fails(&")".repeat(50_000), &want);
}
