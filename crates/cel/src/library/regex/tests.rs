use super::*;
use crate::library::operators::tests::{assert_outcome, implementation};
use crate::value::{Str, Value};

/// Compiles an expression with a budget of its own.
fn compile_alone(source: &str) -> Result<Pattern, PatternError> {
    PatternCache::default().compile_or_reuse_pattern(source)
}

/// The matches of a Go expression in a text.
#[track_caller]
fn matches_of(pattern: &str, text: &'static str) -> Vec<String> {
    let pattern = compile_alone(pattern).unwrap();
    match pattern.find_all_matches(&Str::Borrowed(text), -1, &mut StepBudget::default()).unwrap() {
        Value::List(list) => list
            .iter()
            .map(|item| match item {
                Value::String(text) => text.as_str().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn matches_like_go() {
    for (pattern, text, expected) in [
        // `\d`, `\w` and `\s` are ASCII classes.
        (r"\d+", "1٣2", &["1", "2"] as &[&str]),
        (r"\w+", "aéb", &["a", "b"]),
        (r"\W", "aéb", &["é"]),
        (r"\s", "\u{b}\u{a0} ", &[" "]),
        (r"\bb", "éb", &["b"]),
        (r"[[:word:]]+", "aé_1", &["a", "_1"]),
        (r"[[:^alpha:]x]", "ax1", &["x", "1"]),
        // Everything else is Unicode.
        (r".", "日", &["日"]),
        (r"[^a]", "a\n日", &["\n", "日"]),
        (r"\pL+", "aé1", &["aé"]),
        (r"\p{^Greek}", "αa", &["a"]),
        (r"\p{uppercase letter}", "aB", &["B"]),
        (r"(?i)k", "kK\u{212a}", &["k", "K", "\u{212a}"]),
        (r"(?i)[^k]", "kK\u{212a}x", &["x"]),
        // Assertions and flags.
        (r"^a|b$", "ab\nab", &["a", "b"]),
        (r"(?m)^a|b$", "ab\nab", &["a", "b", "a", "b"]),
        (r"a.b", "a\nb", &[]),
        (r"(?s)a.b", "a\nb", &["a\nb"]),
        (r"(?U)a+", "aa", &["a", "a"]),
        (r"(?U)a+?", "aa", &["aa"]),
        (r"(?i)a(?-i)b", "Ab AB", &["Ab"]),
        (r"(?i:a)b", "AbB", &["Ab"]),
        (r"a(?i)*b", "aab", &["aab"]),
        // Literals.
        (r"\Qa.b*\E+", "a.b**a.b", &["a.b**"]),
        (r"a{,2}", "a{,2}", &["a{,2}"]),
        (r"a{01}", "a{01}", &["a{01}"]),
        (r"[a[b]", "ab[", &["a", "b", "["]),
        (r"[a&&b]+", "a&b", &["a&b"]),
        (r"[]a]", "]a", &["]", "a"]),
        (r"\101\x42\x{43}", "ABC", &["ABC"]),
        (r"\x{D800}|a", "a", &["a"]),
        (r"[^\x{D800}]", "a", &["a"]),
        // Alternatives, the leftmost first, and empty matches.
        (r"a|ab", "ab", &["a"]),
        (r"(?P<n>a)(?P<n>b)", "ab", &["ab"]),
        (r"(|a)+", "aa", &["", "", ""]),
        (r"[0-9]*", "abc 123", &["", "", "", "", "123"]),
        (r"", "é", &["", ""]),
    ] {
        assert_eq!(matches_of(pattern, text), expected, "{pattern}");
    }
}

#[test]
fn syntax_errors_match_go() {
    for (pattern, expected) in [
        ("(abc", "missing closing ): `(abc`"),
        ("a)b", "unexpected ): `a)b`"),
        ("[a", "missing closing ]: `[a`"),
        ("x[]", "missing closing ]: `[]`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Old_Italic}", r"invalid character class range: `\p{Old_Italic}`"),
        (r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        (r"\p{Lu", r"invalid character class range: `\p{Lu`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        (r"a\", "trailing backslash at end of expression: ``"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(|*)", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*?+", "invalid nested repetition operator: `*?+`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("((a{100}){10}){2}", "invalid repeat count: `{2}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("(?<a-b>c)", "invalid named capture: `(?<a-b>`"),
    ] {
        let error = compile_alone(pattern).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), format!("error parsing regexp: {expected}"));
    }
}

#[test]
fn expression_height_and_size_are_limited() {
    let nested = |levels: usize| "(".repeat(levels) + "a" + &")".repeat(levels);
    assert!(compile_alone(&nested(regex_translator::HEIGHT_MAX - 1)).is_ok());
    let too_deep = nested(regex_translator::HEIGHT_MAX);
    assert_eq!(
        compile_alone(&too_deep).map(|_| ()).unwrap_err().to_string(),
        format!("error parsing regexp: expression nests too deeply: `{too_deep}`")
    );
    // The height is bounded so that compiling fits into any stack; alternation, concatenation, a
    // group and a repetition make four levels here.
    let levels = (regex_translator::HEIGHT_MAX - 1) / 4;
    let deep = "(a|b".repeat(levels) + &"c)*".repeat(levels);
    assert!(compile_alone(&deep).unwrap().is_match("abc"));
    // Non-capturing groups do not add to the height, but the number of open groups is limited.
    let grouped = |groups: usize| "(?:".repeat(groups) + "a" + &")".repeat(groups);
    assert!(compile_alone(&grouped(regex_translator::OPEN_GROUPS_MAX)).is_ok());
    assert!(compile_alone(&grouped(regex_translator::OPEN_GROUPS_MAX + 1)).is_err());

    assert!(compile_alone(r".{1000}.{1000}").is_ok());
    for too_large in [r"\pL{1000}", "((ab){1000}c{1000}){1000}"] {
        assert_eq!(
            compile_alone(too_large).map(|_| ()).unwrap_err().to_string(),
            format!("error parsing regexp: expression too large: `{too_large}`")
        );
    }
}

#[test]
fn finding_is_limited_and_reports_bad_patterns() {
    let text = |text| Value::borrowed_string(text);
    let texts = |items: &[&'static str]| {
        Value::owned_list_value(items.iter().map(|item| Value::borrowed_string(item)).collect())
    };
    let illegal = "Illegal regex: error parsing regexp: missing closing ]: `[`";
    for (function, arguments, expected) in [
        ("matches", vec![text("hello"), text("^h.*o$")], Ok(Value::Bool(true))),
        ("matches", vec![text("hello"), text("^o")], Ok(Value::Bool(false))),
        (
            "matches",
            vec![text("hello"), text("[")],
            Err("error parsing regexp: missing closing ]: `[`"),
        ),
        ("matches", vec![Value::Int(1), text("a")], Err("no such overload: matches")),
        ("matches", vec![text("a"), Value::Int(1)], Err("no such overload")),
        ("find", vec![text("abc 123"), text("[0-9]+")], Ok(text("123"))),
        ("find", vec![text("abc 123"), text("xyz")], Ok(text(""))),
        ("find", vec![text("abc"), text("[")], Err(illegal)),
        ("findAll", vec![text("1 2 3"), text("[0-9]")], Ok(texts(&["1", "2", "3"]))),
        ("findAll", vec![text("1 2 3"), text("[0-9]"), Value::Int(2)], Ok(texts(&["1", "2"]))),
        ("findAll", vec![text("1 2 3"), text("[0-9]"), Value::Int(0)], Ok(texts(&[]))),
        ("findAll", vec![text("1 2"), text("[0-9]"), Value::Int(-1)], Ok(texts(&["1", "2"]))),
        ("findAll", vec![text("1 2"), text("x")], Ok(texts(&[]))),
        ("findAll", vec![text("abc"), text("[")], Err(illegal)),
    ] {
        assert_outcome(&arguments, &implementation(function, "")(&arguments), &expected);
    }
}
