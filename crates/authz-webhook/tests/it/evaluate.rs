//! The values that match conditions read, and the combination of their results.

use std::collections::BTreeMap;

use authz::{Attributes, Namespace, Resource, Selector, Target, User, Verb, parse_label_selector};
use authz_webhook::{MatchCondition, MatchConditions, MatchResult, ReviewSpec};

const GUARDED: &str = "has(request.resourceAttributes) && \
                       request.resourceAttributes.namespace == 'kittensandponies'";
const UNGUARDED: &str = "request.resourceAttributes.namespace == 'kittensandponies'";

fn alice() -> User {
    let values = ["a", "b", "c"].map(str::to_owned).to_vec();
    User {
        name: "alice".to_owned(),
        uid: "1".to_owned(),
        groups: vec!["group1".to_owned(), "group2".to_owned()],
        extra: BTreeMap::from([("key1".to_owned(), values)]),
    }
}

fn named(name: &str) -> User {
    User { name: name.to_owned(), ..User::default() }
}

/// A resource request with every attribute set.
fn resource(user: &User) -> Attributes<'_> {
    let resource =
        Resource { namespace: Namespace::new("kittensandponies"), ..Resource::default() };
    Attributes { user: Some(user), verb: Verb::GET, target: Target::Resource(resource) }
}

/// A request for a path.
fn path(user: &User) -> Attributes<'_> {
    Attributes { user: Some(user), verb: Verb::GET, target: Target::Path("/") }
}

fn evaluate(expressions: &[&str], attributes: &Attributes<'_>) -> MatchResult {
    let compiled = expressions.iter().map(|e| MatchCondition::compile(e).unwrap()).collect();
    let conditions = MatchConditions::V1(compiled);
    conditions.evaluate(&ReviewSpec::new(attributes, conditions.used_selectors()))
}

fn excluded(has_errors: bool) -> MatchResult {
    MatchResult::Excluded { has_errors }
}

#[test]
fn resource_requests() {
    let user = alice();
    let all = [
        "request.user == 'alice'",
        "request.uid == '1'",
        "'group1' in request.groups",
        "'key1' in request.extra",
        "!('key2' in request.extra)",
        "'a' in request.extra['key1']",
        "!('z' in request.extra['key1'])",
        GUARDED,
    ];
    assert_eq!(evaluate(&[], &resource(&user)), MatchResult::Matched);
    assert_eq!(evaluate(&all, &resource(&user)), MatchResult::Matched);
    for other in
        ["'group3' in request.groups", "request.uid == '2'", &UNGUARDED.replace("and", "&")]
    {
        let mut conditions = all.to_vec();
        conditions.insert(4, other);
        assert_eq!(evaluate(&conditions, &resource(&user)), excluded(false), "{other}");
    }
}

#[test]
fn path_requests() {
    let bob = named("bob");
    let cases = [
        ("request.user == 'alice'", excluded(false)),
        (GUARDED, excluded(false)),
        (
            "has(request.nonResourceAttributes) && request.nonResourceAttributes.verb == 'get'",
            MatchResult::Matched,
        ),
    ];
    for (expression, want) in cases {
        assert_eq!(evaluate(&[expression], &path(&bob)), want, "{expression}");
    }
}

#[test]
fn errors_count_only_if_nothing_is_false() {
    let user = named("alice2");
    let error = |expression: &str| {
        format!(
            "cel evaluation error: expression '{expression}' resulted in error: no such key: \
             resourceAttributes"
        )
    };
    let same = "request.user == 'alice2'";
    let other = "request.user != 'alice2'";
    let verb = "request.resourceAttributes.verb == 'get'";
    assert_eq!(evaluate(&[same, UNGUARDED], &path(&user)), MatchResult::Failed(error(UNGUARDED)));
    assert_eq!(evaluate(&[other, UNGUARDED], &path(&user)), excluded(false));
    assert_eq!(evaluate(&[UNGUARDED, other], &path(&user)), excluded(true));
    assert_eq!(
        evaluate(&[UNGUARDED, verb], &path(&user)),
        MatchResult::Failed(format!("[{}, {}]", error(UNGUARDED), error(verb)))
    );
}

#[test]
fn nobody_is_an_empty_user() {
    let nobody = Attributes { user: None, verb: Verb::GET, target: Target::Path("/") };
    let conditions = ["request.user == ''", "request.groups.size() == 0", "request.uid == ''"];
    assert_eq!(evaluate(&conditions, &nobody), MatchResult::Matched);
    assert_eq!(evaluate(&["size(request.extra) == 0"], &nobody), MatchResult::Matched);
}

#[test]
fn presence_of_selectors_and_of_empty_text() {
    let user = alice();
    for (expression, want) in [
        ("has(request.resourceAttributes.labelSelector)", excluded(false)),
        ("has(request.resourceAttributes.subresource)", MatchResult::Matched),
    ] {
        assert_eq!(evaluate(&[expression], &resource(&user)), want, "{expression}");
    }
}

#[test]
fn label_selectors() {
    let expression = "request.?resourceAttributes.labelSelector.requirements.orValue([]).exists(r, \
                      r.key == 'baz' && r.operator == 'In' && ('qux' in r.values))";
    let user = alice();
    let selector = Selector::from_selector_parse_result(parse_label_selector("baz=qux,n>1"));
    let target = Resource { label_selector: selector.as_ref(), ..Resource::default() };
    let labelled = Attributes { target: Target::Resource(target), ..resource(&user) };
    assert_eq!(evaluate(&[expression], &labelled), MatchResult::Matched);
    assert_eq!(evaluate(&[expression], &path(&user)), excluded(false));
    // A review cannot express `n>1`.
    let count = "request.resourceAttributes.labelSelector.requirements.size() == 1";
    assert_eq!(evaluate(&[count], &labelled), MatchResult::Matched);
    // No condition of this list uses the selector, so it is not built.
    let hidden = "!('labelSelector' in dyn(request.resourceAttributes))";
    assert_eq!(evaluate(&[hidden], &labelled), MatchResult::Matched);
}

#[test]
fn cost_is_limited() {
    let groups = (0..1000).map(|n| format!("group{n}")).collect();
    let user = User { groups, ..named("alice") };
    let nested = "request.groups.all(a, request.groups.all(b, request.groups.all(c, \
                  a + b + c != '')))";
    match evaluate(&[nested], &path(&user)) {
        MatchResult::Failed(error) => {
            assert!(error.ends_with("operation cancelled: actual cost limit exceeded"), "{error}")
        }
        other => panic!("{other:?}"),
    }
    // No operator can absorb the error about the cost limit.
    let absorbed = format!("{nested} || true");
    assert!(matches!(evaluate(&[&absorbed], &path(&user)), MatchResult::Failed(_)));
}

#[test]
fn groups_have_their_v1_name() {
    assert_eq!(
        evaluate(&["'group1' in request.groups"], &resource(&alice())),
        MatchResult::Matched
    );
    assert!(MatchCondition::compile("'group1' in request.group").is_err());
}
