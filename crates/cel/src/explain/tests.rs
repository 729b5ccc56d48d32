use super::*;
use crate::program::COST_LIMIT;
use crate::static_type::Type;
use crate::value::{Map, OwnedMap};

fn environment() -> Environment {
    let texts = || Type::list_type_of(Type::String);
    Environment::for_stored_expressions(vec![
        ("user", Type::String),
        ("groups", texts()),
        ("extra", Type::map_type_of(Type::String, texts())),
        ("n", Type::Int),
    ])
}

fn explain_with_limit(source: &str, cost_limit: u64) -> Explanation {
    let groups = ["dev", "ops"].map(Value::borrowed_string).to_vec();
    let mut extra = OwnedMap::new();
    extra.insert(
        Value::borrowed_string("scope"),
        Value::owned_list_value(vec![Value::borrowed_string("read")]),
    );
    let extra = Value::Map(Map::from_owned_map(extra));
    let variables =
        [Value::borrowed_string("ana"), Value::owned_list_value(groups), extra, Value::Int(2)];
    environment().explain(source, &variables, cost_limit).unwrap()
}

/// Renders each subexpression as a line: its text, then `=` and the value, `!` and the error, or
/// `-` if it was skipped.
fn lines(source: &str) -> Vec<String> {
    let explanation = explain_with_limit(source, COST_LIMIT);
    assert_eq!(explanation.n_omitted_subexpressions, 0, "{source}");
    let line = |part: &ExplainedSubexpression| {
        let outcome = match &part.result {
            SubexpressionResult::Value(value) => format!("= {value}"),
            SubexpressionResult::Error(error) => format!("! {error}"),
            SubexpressionResult::Skipped => "-".to_owned(),
        };
        format!("{}{} {outcome}", "  ".repeat(part.nesting_depth), part.source_excerpt)
    };
    explanation.subexpressions.iter().map(line).collect()
}

#[track_caller]
fn check(source: &str, expected: &[&str]) {
    assert_eq!(lines(source), expected, "{source}");
}

#[test]
fn operands_are_shown_with_their_values() {
    check(
        "user == 'ana' && !('admins' in groups)",
        &[
            "user == 'ana' && !('admins' in groups) = true",
            "  user == 'ana' = true",
            "    user = \"ana\"",
            "  !('admins' in groups) = true",
            "    'admins' in groups = false",
            "      groups = [\"dev\", \"ops\"]",
        ],
    );
    check("n + 1 > 2", &["n + 1 > 2 = true", "  n + 1 = 3", "    n = 2"]);
    check(
        "user.startsWith('a' + user)",
        &[
            "user.startsWith('a' + user) = false",
            "  user = \"ana\"",
            "  'a' + user = \"aana\"",
            "    user = \"ana\"",
        ],
    );
    // Blanks and comments around the expression are not part of its text.
    check("  (user) != 'x' ", &["(user) != 'x' = true", "  user = \"ana\""]);
}

#[test]
fn short_circuited_operands_are_skipped() {
    check(
        "has(extra.team) && extra.team[0] == 'a' && n == 2",
        &[
            "has(extra.team) && extra.team[0] == 'a' && n == 2 = false",
            "  has(extra.team) = false",
            "  extra.team[0] == 'a' -",
            "  n == 2 -",
        ],
    );
    check(
        "n == 2 || user == 'x'",
        &["n == 2 || user == 'x' = true", "  n == 2 = true", "    n = 2", "  user == 'x' -"],
    );
    check(
        "(n > 5 ? groups : ['x']).size() == 1",
        &[
            "(n > 5 ? groups : ['x']).size() == 1 = true",
            "  (n > 5 ? groups : ['x']).size() = 1",
            "    n > 5 ? groups : ['x'] = [\"x\"]",
            "      n > 5 = false",
            "        n = 2",
            "      groups -",
        ],
    );
    check(
        "extra[?'team'].orValue(groups) == groups",
        &[
            "extra[?'team'].orValue(groups) == groups = true",
            "  extra[?'team'].orValue(groups) = [\"dev\", \"ops\"]",
            "    extra[?'team'] = optional.none()",
            "    groups = [\"dev\", \"ops\"]",
            "  groups = [\"dev\", \"ops\"]",
        ],
    );
    check(
        "extra[?'scope'].orValue(groups) == groups",
        &[
            "extra[?'scope'].orValue(groups) == groups = false",
            "  extra[?'scope'].orValue(groups) = [\"read\"]",
            "    extra[?'scope'] = optional.of([\"read\"])",
            "    groups -",
            "  groups = [\"dev\", \"ops\"]",
        ],
    );
    // A constant operand can short-circuit too.
    check("false && n == 2", &["false && n == 2 = false", "  n == 2 -"]);
}

#[test]
fn errors_are_shown_at_their_subexpression() {
    check(
        "extra.team[0] == 'a' || n == 3",
        &[
            "extra.team[0] == 'a' || n == 3 ! no such key: team",
            "  extra.team[0] == 'a' ! no such key: team",
            "    extra.team[0] ! no such key: team",
            "  n == 3 = false",
            "    n = 2",
        ],
    );
    // An error that an operator absorbs does not end the explanation.
    check(
        "groups[n] == 'x' || n == 2",
        &[
            "groups[n] == 'x' || n == 2 = true",
            "  groups[n] == 'x' ! index out of bounds: 2",
            "    groups[n] ! index out of bounds: 2",
            "      n = 2",
            "  n == 2 = true",
            "    n = 2",
        ],
    );
}

#[test]
fn macros_are_shown_with_their_range_and_result() {
    check(
        "groups.filter(g, g != 'dev').exists(g, g == user)",
        &[
            "groups.filter(g, g != 'dev').exists(g, g == user) = false",
            "  groups.filter(g, g != 'dev') = [\"ops\"]",
            "    groups = [\"dev\", \"ops\"]",
        ],
    );
    check(
        "extra[?'scope'].optMap(s, s[0] + 'x').orValue('') == 'readx'",
        &[
            "extra[?'scope'].optMap(s, s[0] + 'x').orValue('') == 'readx' = true",
            "  extra[?'scope'].optMap(s, s[0] + 'x').orValue('') = \"readx\"",
            "    extra[?'scope'].optMap(s, s[0] + 'x') = optional.of(\"readx\")",
            "      extra[?'scope'] = optional.of([\"read\"])",
        ],
    );
    check(
        "groups.sortBy(g, g)[0] == 'dev'",
        &[
            "groups.sortBy(g, g)[0] == 'dev' = true",
            "  groups.sortBy(g, g)[0] = \"dev\"",
            "    groups.sortBy(g, g) = [\"dev\", \"ops\"]",
            "      groups = [\"dev\", \"ops\"]",
        ],
    );
    // The prefix of a namespaced function is not a receiver.
    check(
        "optional.of(user).hasValue()",
        &[
            "optional.of(user).hasValue() = true",
            "  optional.of(user) = optional.of(\"ana\")",
            "    user = \"ana\"",
        ],
    );
}

#[test]
fn subexpressions_and_their_texts_are_limited() {
    let chain = |n: usize| vec!["n == 2"; n].join(" && ");
    let within = explain_with_limit(&chain(SUBEXPRESSIONS_MAX / 2 - 1), COST_LIMIT);
    assert_eq!(
        (within.subexpressions.len(), within.n_omitted_subexpressions),
        (SUBEXPRESSIONS_MAX - 1, 0)
    );
    let beyond = explain_with_limit(&chain(SUBEXPRESSIONS_MAX), COST_LIMIT);
    assert_eq!(beyond.subexpressions.len(), SUBEXPRESSIONS_MAX);
    assert!(beyond.n_omitted_subexpressions > SUBEXPRESSIONS_MAX / 2);
    for part in &beyond.subexpressions {
        assert!(part.source_excerpt.len() <= SHOWN_BYTES_MAX + 3, "{}", part.source_excerpt);
    }
}

#[test]
fn the_total_cost_of_an_explanation_is_limited() {
    let slow = "lists.range(1000).all(x, x < n + 5000)";
    let source = vec![slow; 20].join(" && ");
    let explanation = explain_with_limit(&source, COST_LIMIT);
    assert!(explanation.n_omitted_subexpressions == 0, "{}", explanation.n_omitted_subexpressions);
    // The cost limit applies to each subexpression, but only a few of them may use it up.
    let explanation = explain_with_limit(&source, 20_000);
    assert_eq!(
        explanation.subexpressions[0].result,
        SubexpressionResult::Error("operation cancelled: actual cost limit exceeded".to_owned())
    );
    assert_eq!(explanation.subexpressions[1].result, SubexpressionResult::Value("true".to_owned()));
    assert!(explanation.n_omitted_subexpressions > 10, "{}", explanation.n_omitted_subexpressions);
}
