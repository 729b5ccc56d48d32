//! Cases with the results of cel-go, limits, and properties of arbitrary texts.

use crate::ast::Ast;
use crate::compile_budget::CompileBudget;
use crate::issues::Issues;

mod dump;
mod limits;
mod properties;

/// Parses a text with a compile budget of its own.
fn parse(source: &str) -> Result<Ast, Issues> {
    super::parse(source, &mut CompileBudget::default())
}

/// The issues of a text as cel-go shows them.
#[derive(Debug, PartialEq, Eq)]
struct RenderedIssues(String);

/// Parses a text and renders the tree or the issues.
fn parse_and_render(source: &str) -> Result<String, RenderedIssues> {
    match parse(source) {
        Ok(ast) => Ok(dump::dump(&ast)),
        Err(issues) => Err(RenderedIssues(issues.to_string())),
    }
}

/// The cases of a file: expressions on lines that begin with `>`, and the lines after them up to
/// an empty one.
fn cases(file: &str) -> Vec<(String, String)> {
    let mut cases = Vec::new();
    for block in file.split("\n\n").filter(|block| block.starts_with('>')) {
        let (source, want): (Vec<_>, Vec<_>) =
            block.lines().partition(|line| line.starts_with('>'));
        let source: Vec<_> =
            source.iter().map(|line| line.strip_prefix("> ").unwrap_or_default()).collect();
        cases.push((source.join("\n"), want.join("\n")));
    }
    cases
}

#[test]
fn syntax_trees_match_cel_go() {
    let cases = cases(include_str!("testdata/trees.txt"));
    assert!(cases.len() > 150, "the file is not read to its end");
    for (source, want) in cases {
        assert_eq!(parse_and_render(&source), Ok(want), "{source}");
    }
}

#[test]
fn errors_match_cel_go() {
    let cases = cases(include_str!("testdata/errors.txt"));
    assert!(cases.len() > 200, "the file is not read to its end");
    for (source, want) in cases {
        assert_eq!(parse_and_render(&source), Err(RenderedIssues(want)), "{source}");
    }
}

/// Cases with carriage returns and trailing blanks, which are not visible in the file of cases.
#[test]
fn carriage_returns_and_trailing_blanks() {
    let expecting = "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
                     NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
    let nothing = format!("Syntax error: mismatched input '<EOF>' {expecting}");
    let failing = [
        (" ", format!("ERROR: <input>:1:2: {nothing}\n |  \n | .^")),
        ("\n", format!("ERROR: <input>:2:1: {nothing}\n | \n | ^")),
        ("a &&\nb ==\n", format!("ERROR: <input>:3:1: {nothing}\n | \n | ^")),
        (
            "1 +\r\n+\t2",
            format!(
                "ERROR: <input>:2:1: Syntax error: extraneous input '+' {expecting}\n | + 2\n | ^"
            ),
        ),
        (
            "'a\r\nb'",
            "ERROR: <input>:1:1: Syntax error: token recognition error at: ''a\r'\n | 'a\r\n | ^\n\
             ERROR: <input>:2:2: Syntax error: token recognition error at: '''\n | b'\n | .^"
                .to_owned(),
        ),
    ];
    for (source, want) in failing {
        assert_eq!(parse_and_render(source), Err(RenderedIssues(want)), "{source:?}");
    }
    assert_eq!(parse_and_render("'''a\r\nb\rc'''"), Ok("\"a\\u{a}b\\u{a}c\"@0".to_owned()));
    assert_eq!(parse_and_render("1\r\n+\x0c2"), Ok("(call _+_ 1@0 2@5)@3".to_owned()));
}

/// A line that is too long to be shown is left out of the message.
#[test]
fn long_lines_are_not_shown() {
    let shown = format!("{} 2", "a".repeat(16_382));
    let too_long = format!("{} 2", "a".repeat(16_383));
    assert_eq!(parse(&shown).unwrap_err().to_string().lines().count(), 3);
    assert_eq!(parse(&too_long).unwrap_err().to_string().lines().count(), 1);
}
