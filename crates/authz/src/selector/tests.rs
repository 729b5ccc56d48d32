use proptest::prelude::*;

use super::*;

fn fields(selector: &str) -> String {
    match parse_field_selector(selector) {
        Ok(requirements) => requirements
            .iter()
            .map(|r| format!("[{}|{}|{}]", r.field, r.operator.operator_symbol(), r.value))
            .collect(),
        Err(error) => format!("error {error}"),
    }
}

fn labels(selector: &str) -> String {
    match parse_label_selector(selector) {
        Ok(requirements) => requirements
            .iter()
            .map(|r| format!("[{}|{}|{}]", r.key, r.operator.name(), r.values.join(" ")))
            .collect(),
        Err(error) => format!("error {error}"),
    }
}

#[test]
fn field_selectors() {
    for (selector, want) in [
        ("", ""),
        (",,", ""),
        ("a=b", "[a|=|b]"),
        ("a==b", "[a|=|b]"),
        ("a!=b", "[a|!=|b]"),
        ("b=2,a=1,", "[a|=|1][b|=|2]"),
        // The order is that of the text, operators included: `!` sorts before `=`.
        ("a=1,a!=2,a==0", "[a|!=|2][a|=|1][a|=|0]"),
        ("a=", "[a|=|]"),
        ("=b", "[|=|b]"),
        ("=", ""),
        ("!=,a=b,==", "[a|=|b]"),
        (" a = b ", "[ a |=| b ]"),
        (r"a=b\,c,d=e\=f\\g", r"[a|=|b,c][d|=|e=f\g]"),
        (r"a\,b=c", r"[a\,b|=|c]"),
        ("é=日", "[é|=|日]"),
        ("a!b=c", "[a!b|=|c]"),
        ("*bar", "error invalid selector: '*bar'; can't understand '*bar'"),
        ("z,y,a=1", "error invalid selector: 'z,y,a=1'; can't understand 'y'"),
        (r"a\=b", r"[a\|=|b]"),
        ("a=b=c", "error invalid field selector: unescaped character in value: 61"),
        ("a===b", "error invalid field selector: unescaped character in value: 61"),
        ("a!==b", "error invalid field selector: unescaped character in value: 61"),
        (r"a=b\x", r"error invalid field selector: invalid escape sequence: \x"),
        (r"a=b\é", r"error invalid field selector: invalid escape sequence: \é"),
        (r"a=b\", r"error invalid field selector: invalid escape sequence: \"),
        (r"a=\,", r"[a|=|,]"),
    ] {
        assert_eq!(fields(selector), want, "{selector}");
    }
}

#[test]
fn label_selectors() {
    for (selector, want) in [
        ("", ""),
        (" \t\r\n", ""),
        ("a", "[a|exists|]"),
        ("!a", "[a|!|]"),
        ("! a , b", "[a|!|][b|exists|]"),
        ("a=b", "[a|=|b]"),
        ("a==b", "[a|==|b]"),
        ("a!=b", "[a|!=|b]"),
        ("a = b,c  !=d", "[a|=|b][c|!=|d]"),
        ("a=", "[a|=|]"),
        ("a=,b", "[a|=|][b|exists|]"),
        ("x>5,y<6", "[x|gt|5][y|lt|6]"),
        ("a in (c,b,c)", "[a|in|b c]"),
        ("a in (b)", "[a|in|b]"),
        ("a notin (b)", "[a|notin|b]"),
        ("a in()", "[a|in|]"),
        ("a in (,)", "[a|in|]"),
        ("a in (,b),c", "[a|in| b][c|exists|]"),
        ("a in (b,,c)", "[a|in| b c]"),
        ("z=1,b=2,a=3,b=1", "[a|=|3][b|=|2][b|=|1][z|=|1]"),
        // The set operators are words like any other where no operator can stand.
        ("in in (in,notin)", "[in|in|in notin]"),
        ("notin=in", "[notin|=|in]"),
        ("example.org/app=x", "[example.org/app|=|x]"),
        // NUL ends the selector where a token could begin, and is skipped right behind one.
        ("a,b\0", "[a|exists|][b|exists|]"),
        ("a=\0b", "[a|=|b]"),
        ("a \0,(", "[a|exists|]"),
    ] {
        assert_eq!(labels(selector), want, "{selector}");
    }
}

#[test]
fn label_selectors_that_do_not_parse() {
    let nowhere = |key: &str| format!("unable to parse requirement: <nil>: Invalid value: {key}: ");
    for (selector, want) in [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a)", "unable to parse requirement: found ')', expected: in, notin, =, ==, !=, gt, lt"),
        (
            "a gt 5",
            "unable to parse requirement: found 'gt', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a in (,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("*bar", &(nowhere("\"*bar\"") + &field_errors::label_key_faults("*bar").join("; "))),
        ("/=x", &(nowhere("\"/\"") + &field_errors::label_key_faults("/").join("; "))),
        (
            "x>abc",
            "unable to parse requirement: values[0]: Invalid value: \"abc\": for 'Gt', 'Lt' \
             operators, the value must be an integer",
        ),
        (
            "x>",
            "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' \
             operators, the value must be an integer",
        ),
        (
            "x<9223372036854775808",
            "unable to parse requirement: values[0]: Invalid value: \"9223372036854775808\": for \
             'Gt', 'Lt' operators, the value must be an integer",
        ),
    ] {
        assert_eq!(labels(selector), format!("error {want}"), "{selector}");
    }
}

#[test]
fn errors_name_every_bad_label_value() {
    let syntax = field_errors::label_value_faults("-").join("; ");
    let value =
        |idx: usize, value: &str| format!("values[{idx}][a]: Invalid value: {value:?}: {syntax}");
    assert_eq!(
        labels("a in (b,-c,-d)"),
        format!("error unable to parse requirement: [{}, {}]", value(0, "-c"), value(1, "-d")),
    );
    assert_eq!(
        labels("a<-x"),
        format!(
            "error unable to parse requirement: [values[0]: Invalid value: \"-x\": for 'Gt', 'Lt' \
             operators, the value must be an integer, {}]",
            value(0, "-x"),
        ),
    );
}

#[test]
fn operators_map_to_those_of_reviews() {
    for (selector, want) in [
        ("a=b", Some("In")),
        ("a==b", Some("In")),
        ("a in (b)", Some("In")),
        ("a!=b", Some("NotIn")),
        ("a notin (b)", Some("NotIn")),
        ("a", Some("Exists")),
        ("!a", Some("DoesNotExist")),
        ("a>1", None),
        ("a<1", None),
    ] {
        let operator = parse_label_selector(selector).unwrap()[0].operator;
        assert_eq!(
            operator.review_selector_operator().map(ReviewSelectorOperator::name),
            want,
            "{selector}"
        );
    }
    let operators = parse_field_selector("a=1,b!=1,c==1").unwrap();
    let names: Vec<_> =
        operators.iter().map(|r| r.operator.review_selector_operator().name()).collect();
    assert_eq!(names, ["In", "NotIn", "In"]);
}

#[test]
fn selectors_at_the_limit_parse_and_one_past_it_do_not() {
    let too_many = format!("selector has more than {SELECTOR_TERMS_MAX} terms");
    let terms = |n_terms: usize| vec!["a=b"; n_terms].join(",");
    assert_eq!(parse_field_selector(&terms(SELECTOR_TERMS_MAX)).unwrap().len(), SELECTOR_TERMS_MAX);
    assert_eq!(fields(&terms(SELECTOR_TERMS_MAX + 1)), format!("error {too_many}"));
    assert_eq!(parse_label_selector(&terms(SELECTOR_TERMS_MAX)).unwrap().len(), SELECTOR_TERMS_MAX);
    let prefix = "error unable to parse requirement: ";
    assert_eq!(labels(&terms(SELECTOR_TERMS_MAX + 1)), format!("{prefix}{too_many}"));
    // A requirement counts once, and each of its values once more.
    let set = |n_values: usize| format!("a in ({})", vec!["b"; n_values].join(","));
    assert!(parse_label_selector(&set(SELECTOR_TERMS_MAX - 1)).is_ok());
    assert_eq!(labels(&set(SELECTOR_TERMS_MAX)), format!("{prefix}{too_many}"));
    let blanks = format!("a in ({})", ",".repeat(SELECTOR_TERMS_MAX));
    assert_eq!(labels(&blanks), format!("{prefix}{too_many}"));
}

#[test]
fn a_selector_without_requirements_is_none() {
    assert_eq!(Selector::from_selector_parse_result(parse_field_selector(",")), None);
    assert_eq!(Selector::from_selector_parse_result(parse_label_selector(" ")), None);
    let broken = Selector::from_selector_parse_result(parse_label_selector(",")).unwrap();
    assert!(broken.requirements.is_empty() && broken.error.is_some());
}

proptest! {
    #[test]
    fn displayed_field_selectors_parse_back(selector in r"([a-c!\\]{0,3}(=|==|!=)[a-c\\,=é]{0,4},?){0,4}") {
        if let Ok(requirements) = parse_field_selector(&selector) {
            let mut again = Vec::new();
            for requirement in &requirements {
                again.extend(parse_field_selector(&requirement.to_string()).unwrap());
            }
            prop_assert_eq!(again, requirements);
        }
    }

    #[test]
    fn displayed_label_selectors_parse_back(
        selector in "(!?[ab/]{1,3}( in | notin |=|==|!=|>|<)?[(]?[a1,.]{0,3}[)]?,?){0,4}",
    ) {
        if let Ok(requirements) = parse_label_selector(&selector) {
            let text: Vec<String> = requirements.iter().map(ToString::to_string).collect();
            prop_assert_eq!(parse_label_selector(&text.join(",")).unwrap(), requirements);
        }
    }

    #[test]
    fn no_selector_panics(selector in r"[-ab1 \\=!<>(),\x00é]{0,24}|\PC{0,24}") {
        let _ = parse_field_selector(&selector);
        let _ = parse_label_selector(&selector);
    }
}
