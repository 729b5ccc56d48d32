//! Any text compiles, or fails with issues whose positions are within the text.

use cel::CompileError;
use proptest::prelude::*;

use super::expressions::Choices;
use super::{ENVIRONMENT, answer};

/// Pieces that the parser, the checker or a macro treats specially.
const PIECES: &[&str] = &[
    "request",
    ".user",
    ".groups",
    ".extra",
    ".?resourceAttributes",
    ".verb",
    "[0]",
    "[?0]",
    "['a']",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{'a': ",
    "{?",
    ",",
    ".",
    ":",
    "?",
    " ",
    "\n",
    "\t",
    "'",
    "\"",
    "'a'",
    "'é'",
    "b'x'",
    "r'\\d'",
    "1",
    "0x1F",
    "2u",
    "1.5",
    "-",
    "!",
    "+",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    " in ",
    "true",
    "null",
    "int",
    "type(",
    "dyn(",
    "has(",
    "size(",
    "optional.of(",
    ".map(x, ",
    ".filter(x, ",
    ".all(i, x, ",
    ".exists(x, ",
    ".optMap(x, ",
    ".sortBy(x, ",
    ".transformMap(k, v, ",
    ".matches('",
    ".format([",
    ".split('",
    ".orValue(",
    "duration('",
    "1h",
    "timestamp(",
    "quantity('",
    "x",
    "v0",
    "// c\n",
    "`a`",
    "😀",
    "\u{0}",
    "@",
    "google.protobuf.Duration{seconds: ",
    "google.protobuf.Struct{",
];

proptest! {
    #[test]
    fn arbitrary_text(source in any::<String>()) {
        check(&source)?;
    }

    #[test]
    fn token_soup(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
    ) {
        check(&pieces.concat())?;
    }

    /// A well-typed expression from which text is removed or into which text is inserted.
    #[test]
    fn nearly_an_expression(
        choices in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<proptest::sample::Index>(),
        n_removed in 0..4_usize,
        piece in proptest::sample::select(PIECES),
    ) {
        let source = Choices::new(&choices).expression('b');
        let chars: Vec<char> = source.chars().collect();
        let at = at.index(chars.len());
        let end = (at + n_removed).min(chars.len());
        let changed: String =
            chars[..at].iter().copied().chain(piece.chars()).chain(chars[end..].iter().copied()).collect();
        check(&changed)?;
    }
}

fn check(source: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(answer(source), answer(source));
    if let Err(CompileError::Issues(issues)) = ENVIRONMENT.compile(source) {
        prop_assert!(issues.iter().count() > 0);
        let lines: Vec<&str> = source.split('\n').collect();
        for issue in issues.iter() {
            prop_assert!(!issue.message.is_empty());
            let Some(line) = issue.line else { continue };
            let text = lines.get(line as usize - 1);
            prop_assert!(text.is_some(), "no line {} in {:?}", line, source);
            // The position after the last character is valid, and so is that of a node without
            // source text.
            let n_columns = text.map_or(0, |text| text.chars().count()) + 1;
            prop_assert!(issue.column as usize <= n_columns, "{issue:?} in {source:?}");
        }
    }
    Ok(())
}
