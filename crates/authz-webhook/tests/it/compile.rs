//! Match conditions that compile, those that do not, and the errors for their author.

use authz_webhook::{ConditionCompiler, ConditionError, MatchCondition};

/// The detail of the error of an expression that must not compile.
fn refused(expression: &str) -> (String, Vec<authz_webhook::ConditionIssue>) {
    match MatchCondition::compile(expression) {
        Err(ConditionError::Invalid { detail, issues }) => (detail, issues),
        other => panic!("{expression}: {other:?}"),
    }
}

#[test]
fn refused_expressions_have_kubernetes_text() {
    let cases = [
        (
            "test",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'test' (in container \
             '')\n | test\n | ^",
        ),
        ("request.user = 'test'", "ERROR: <input>:1:14: Syntax error: "),
        ("request.user = 'test'", "ERROR: <input>:1:16: Syntax error: "),
        ("request.time == 'now'", "undefined field 'time'"),
        ("request++'", "Syntax error"),
        ("request.user", "must evaluate to bool but got string"),
        ("dyn(true)", "must evaluate to bool but got dyn"),
        ("x.user", "undeclared reference to 'x' (in container '')"),
        ("('group3' in request.group)", "ERROR: <input>:1:21: undefined field 'group'"),
        (
            "request.nonResourceAttributes.verb == 2",
            "ERROR: <input>:1:36: found no matching overload for '_==_' applied to '(string, int)'",
        ),
        (
            "authorizer.group('').resource('pods').check('get').allowed()",
            "undeclared reference to 'authorizer' (in container '')",
        ),
    ];
    for (expression, text) in cases {
        let (detail, issues) = refused(expression);
        assert!(detail.contains(text), "{expression}: {detail}");
        assert!(!issues.is_empty(), "{expression}");
    }
}

#[test]
fn selectors_are_part_of_the_type() {
    for expression in [
        "request.resourceAttributes.fieldSelector.rawSelector == 'foo'",
        "request.resourceAttributes.labelSelector.requirements.exists(r, r.key == 'foo' && \
         r.operator == 'In' && ('bar' in r.values))",
    ] {
        assert!(MatchCondition::compile(expression).is_ok(), "{expression}");
    }
}

#[test]
fn a_constant_that_fails_is_an_internal_error() {
    match MatchCondition::compile("int('x') == 0") {
        Err(ConditionError::Internal { detail }) => assert_eq!(
            detail,
            "program instantiation failed: type conversion error from 'string' to 'int'"
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn near_misses_have_hints() {
    for (expression, hint) in [
        ("'a' in request.user.groups", "`user` is a string, did you mean `request.groups`?"),
        ("request.group == ''", "did you mean `request.resourceAttributes.group`?"),
        ("request.resourceAttributes.namespce == ''", "did you mean `namespace`?"),
        ("request.spec.user == ''", "`request` is the spec of the review: write `request.user`"),
        ("request.user.name == 'a'", "`user` is a string: `request.user` is the name itself"),
        ("object.kind == 'Pod'", "match conditions know one variable, `request`"),
        ("groups.size() == 0", "did you mean `request.groups`?"),
        ("requst.user == 'a'", "did you mean `request`?"),
        ("request.user = 'a'", "`==` compares"),
        ("true and false", "write `&&` for `and`"),
        ("request.user == 1", "a string is compared with int: quote the value"),
        ("request.groups in 'a'", "the list stands on the right: `'name' in request.groups`"),
        ("request.user", "compare it: `request.user == '...'`"),
        ("request.groups", "test for an element: `'...' in request.groups`"),
    ] {
        let (detail, issues) = refused(expression);
        let hints: Vec<&str> = issues.iter().filter_map(|issue| issue.hint.as_deref()).collect();
        assert!(hints.contains(&hint), "{expression}: {hints:?}\n{detail}");
    }
    // There is no hint if no known name is similar.
    let (_, issues) = refused("request.volume == ''");
    assert_eq!(issues[0].hint, None);
}

/// The limits apply to all conditions of one configuration together.
#[test]
fn conditions_that_find_no_room_are_refused_with_a_hint() {
    let mut compiler = ConditionCompiler::default();
    let condition =
        |n: usize| format!("request.uid == '{n}' || request.user.matches(r'\\pL{{{n}}}')");
    let errors = (180..191).filter_map(|n| compiler.compile_condition(&condition(n)).err());
    let Some(ConditionError::Invalid { issues, .. }) = errors.last() else {
        panic!("eleven patterns of megabytes each");
    };
    let [issue] = &issues[..] else { panic!("{issues:?}") };
    assert!(issue.message.contains("take too much memory together"), "{issue:?}");
    assert_eq!((issue.line, issue.column), (1, 46));
    assert!(issue.hint.as_deref().is_some_and(|hint| hint.contains("repeat counts")), "{issue:?}");
    // Each condition alone is within the limit.
    assert!(MatchCondition::compile(&condition(190)).is_ok());
    assert!(compiler.compile_condition("request.user.matches('^system:')").is_ok());

    let copied = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(12));
    let errors = (0..400).filter_map(|_| compiler.compile_condition(&copied).err());
    let Some(ConditionError::Invalid { issues, .. }) = errors.last() else {
        panic!("four hundred trees of ten thousand nodes each");
    };
    assert!(issues[0].message.contains("take too much work together"), "{issues:?}");
    assert!(issues[0].hint.is_some());
}

/// The compiler repeats the line for each issue, so the messages about long lines are truncated at a limit.
#[test]
fn what_is_said_about_conditions_is_bounded() {
    let mut compiler = ConditionCompiler::default();
    let wrong = vec!["x"; 4_000].join("||");
    let lengths: Vec<usize> = (0..20)
        .map(|_| match compiler.compile_condition(&wrong) {
            Err(ConditionError::Invalid { detail, issues }) => {
                assert!(detail.starts_with("compilation failed: ERROR: <input>:1:1: undeclared"));
                assert!(!issues.is_empty());
                detail.len()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(lengths[0] > 1 << 20, "the first in full: {lengths:?}");
    assert!(lengths[19] < 2 << 10, "the last in short: {lengths:?}");
    assert!(lengths.iter().sum::<usize>() < 9 << 20);
}
