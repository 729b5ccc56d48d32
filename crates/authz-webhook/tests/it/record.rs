//! The events that are recorded about conditions. Recording does not change the result.

use authz::{
    Attributes, Namespace, Resource, Target, Trace, TraceEvent, TraceRecorder, User, Value, Verb,
};
use authz_webhook::{MatchCondition, MatchConditions, MatchResult, ReviewSpec};

fn conditions(expressions: &[&str]) -> MatchConditions {
    let compiled = expressions.iter().map(|text| MatchCondition::compile(text).unwrap());
    MatchConditions::V1(compiled.collect())
}

fn recorded(conditions: &MatchConditions, attributes: &Attributes<'_>) -> (MatchResult, Trace) {
    let request = ReviewSpec::new(attributes, conditions.used_selectors());
    let mut trace = Trace::default();
    let matching = conditions.evaluate_and_trace(&request, &mut TraceRecorder::new(&mut trace));
    assert_eq!(matching, conditions.evaluate(&request), "noting changes nothing");
    (matching, trace)
}

fn field<'e>(event: &'e TraceEvent, name: &str) -> Option<&'e Value> {
    event.trace_event_values.iter().find(|(field, _)| field == name).map(|(_, value)| value)
}

/// The events as lines: the kind, and the fields as `name=value`.
fn lines(trace: &Trace) -> Vec<String> {
    let line = |entry: &authz::TraceEntry| {
        let mut line = format!("{}{}", "  ".repeat(entry.trace_depth), entry.trace_event.kind);
        for (name, value) in &entry.trace_event.trace_event_values {
            match value {
                Value::Bool(truth) => line.push_str(&format!(" {name}={truth}")),
                Value::Integer(number) => line.push_str(&format!(" {name}={number}")),
                Value::Text(text) => line.push_str(&format!(" {name}={text}")),
                Value::List(texts) => line.push_str(&format!(" {name}={texts:?}")),
            }
        }
        line
    };
    trace.trace_entries().iter().map(line).collect()
}

fn ana() -> User {
    User { name: "ana".to_owned(), groups: vec!["dev".to_owned()], ..User::default() }
}

fn pods<'a>(user: &'a User, namespace: &'a str) -> Attributes<'a> {
    let resource =
        Resource { namespace: Namespace::new(namespace), resource: "pods", ..Resource::default() };
    Attributes { user: Some(user), verb: Verb::GET, target: Target::Resource(resource) }
}

fn path(user: &User) -> Attributes<'_> {
    Attributes { user: Some(user), verb: Verb::GET, target: Target::Path("/healthz") }
}

#[test]
fn conditions_are_noted_with_the_values_of_their_parts() {
    let user = ana();
    let conditions = conditions(&[
        "request.resourceAttributes.namespace == 'kube-system' && !('admins' in request.groups)",
        "request.user != 'ana'",
        "request.uid == ''",
    ]);
    let (matching, trace) = recorded(&conditions, &pods(&user, "kube-system"));
    assert_eq!(matching, MatchResult::Excluded { has_errors: false });
    assert_eq!(
        lines(&trace),
        [
            "condition index=0 expression=request.resourceAttributes.namespace == 'kube-system' && \
             !('admins' in request.groups) outcome=true",
            "  value text=request.resourceAttributes.namespace == 'kube-system' value=true",
            "    value text=request.resourceAttributes.namespace value=\"kube-system\"",
            "  value text=!('admins' in request.groups) value=true",
            "    value text='admins' in request.groups value=false",
            "      value text=request.groups value=[\"dev\"]",
            // The first false condition ends the evaluation.
            "condition index=1 expression=request.user != 'ana' outcome=false",
            "  value text=request.user value=\"ana\"",
        ]
    );
}

#[test]
fn errors_and_operands_that_were_not_looked_at_are_noted() {
    let user = ana();
    let conditions = conditions(&[
        "request.resourceAttributes.verb == 'get'",
        "has(request.resourceAttributes) && request.resourceAttributes.verb == 'get'",
    ]);
    let (matching, trace) = recorded(&conditions, &path(&user));
    assert_eq!(matching, MatchResult::Excluded { has_errors: true });
    assert_eq!(
        lines(&trace),
        [
            "condition index=0 expression=request.resourceAttributes.verb == 'get' error=cel \
             evaluation error: expression 'request.resourceAttributes.verb == 'get'' resulted in \
             error: no such key: resourceAttributes",
            "  value text=request.resourceAttributes.verb error=no such key: resourceAttributes",
            "condition index=1 expression=has(request.resourceAttributes) && \
             request.resourceAttributes.verb == 'get' outcome=false",
            "  value text=has(request.resourceAttributes) value=false",
            "  value text=request.resourceAttributes.verb == 'get' skipped=true",
        ]
    );
}

#[test]
fn parts_that_are_left_out_are_counted() {
    let user = ana();
    let long = vec!["request.user == 'ana'"; 150].join(" && ");
    let (_, trace) = recorded(&conditions(&[&long]), &path(&user));
    let last = trace.trace_entries().last().unwrap();
    assert!(matches!(field(&last.trace_event, "leftOut"), Some(Value::Integer(1..))), "{last:?}");
}

/// A part that equals the whole condition has the value of the condition.
#[test]
fn top_level_values_are_the_outcome() {
    const PARTS: [&str; 9] = [
        "request.user == 'ana'",
        "request.resourceAttributes.namespace == 'a'",
        "'dev' in request.groups",
        "request.groups.exists(g, g.startsWith('o'))",
        "request.extra['x'][0] == 'y'",
        "request.user.matches('^a+$')",
        "has(request.nonResourceAttributes)",
        "size(request.groups) > 0 ? request.uid == '' : false",
        "!(request.uid in ['1', '2'])",
    ];
    let user = ana();
    let requests = [pods(&user, "a"), pods(&user, "b"), path(&user)];
    let (mut n_values, mut n_errors) = (0, 0);
    for first in PARTS {
        for second in PARTS {
            for operator in ["&&", "||"] {
                let whole = format!("({first}) {operator} ({second})");
                let conditions = conditions(&[&format!("({whole}) == true")]);
                for request in &requests {
                    let (_, trace) = recorded(&conditions, request);
                    let [condition, part] = [
                        &trace.trace_entries()[0].trace_event,
                        &trace.trace_entries()[1].trace_event,
                    ];
                    assert_eq!(field(part, "text"), Some(&Value::from(whole.as_str())));
                    match (field(condition, "outcome"), field(condition, "error")) {
                        (Some(Value::Bool(outcome)), None) => {
                            let shown = Value::from(outcome.to_string());
                            assert_eq!(field(part, "value"), Some(&shown), "{whole}");
                            n_values += 1;
                        }
                        (None, Some(Value::Text(outcome))) => {
                            let Some(Value::Text(error)) = field(part, "error") else {
                                panic!("{whole}: {part:?}");
                            };
                            assert!(outcome.ends_with(error.as_str()), "{whole}");
                            n_errors += 1;
                        }
                        other => panic!("{whole}: {other:?}"),
                    }
                }
            }
        }
    }
    assert!(n_values > 300 && n_errors > 20, "{n_values} {n_errors}");
}
