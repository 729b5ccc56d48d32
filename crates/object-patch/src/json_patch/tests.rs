//! Cases of RFC 6902, and of the extensions that Kubernetes has.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn apply(document: Value, patch: Value) -> Result<Value, PatchError> {
    apply_json_patch(document.as_object().unwrap().clone(), patch).map(Value::Object)
}

#[test]
fn results_of_operations() {
    for (document, patch, want) in [
        (json!({}), json!([{"op": "add", "path": "/a", "value": 1}]), json!({"a": 1})),
        (json!({"a": 1}), json!([{"op": "add", "path": "/a", "value": 2}]), json!({"a": 2})),
        (
            json!({"a": [1, 3]}),
            json!([{"op": "add", "path": "/a/1", "value": 2}]),
            json!({"a": [1, 2, 3]}),
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "add", "path": "/a/-", "value": 2}]),
            json!({"a": [1, 2]}),
        ),
        (
            json!({"a": [1]}),
            json!([{"op": "add", "path": "/a/-1", "value": 2}]),
            json!({"a": [1, 2]}),
        ),
        (
            json!({"a/b": {"~": 1}}),
            json!([{"op": "remove", "path": "/a~1b/~0"}]),
            json!({"a/b": {}}),
        ),
        (json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/0"}]), json!({"a": [2]})),
        (json!({"a": 1}), json!([{"op": "replace", "path": "/a", "value": {}}]), json!({"a": {}})),
        (json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), json!({"a": 1})),
        (
            json!({"a": [1]}),
            json!([{"op": "replace", "path": "/a/0", "value": 2}]),
            json!({"a": [2]}),
        ),
        (
            json!({"a": 1}),
            json!([{"op": "replace", "path": "", "value": {"b": 1}}]),
            json!({"b": 1}),
        ),
        (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1})),
        (
            json!({"a": [1, 2]}),
            json!([{"op": "move", "from": "/a/0", "path": "/a/1"}]),
            json!({"a": [2, 1]}),
        ),
        (
            json!({"a": {"x": 1}}),
            json!([{"op": "copy", "from": "/a", "path": "/b"}]),
            json!({"a": {"x": 1}, "b": {"x": 1}}),
        ),
        (
            json!({"a": {"x": [1]}}),
            json!([{"op": "test", "path": "/a", "value": {"x": [1]}}]),
            json!({"a": {"x": [1]}}),
        ),
        (json!({"a": 1}), json!([{"op": "test", "path": "/b"}]), json!({"a": 1})),
        (json!({"a": 1}), json!([{"op": "test", "path": "", "value": {"a": 1}}]), json!({"a": 1})),
        (json!({}), json!([{"op": "add", "path": "/a"}]), json!({"a": null})),
        (json!({}), json!([]), json!({})),
    ] {
        assert_eq!(apply(document, patch.clone()), Ok(want), "{patch}");
    }
}

#[test]
fn invalid_operations_are_refused() {
    use PatchError::{BadOperation, MissingPath, NotAnObject, Shape, TestFailed};
    let document = json!({"a": [1], "b": "x"});
    for (patch, want) in [
        (json!([{"op": "test", "path": "/b", "value": "y"}]), TestFailed(0)),
        (json!([{"op": "remove", "path": "/c"}]), MissingPath(0)),
        (json!([{"op": "bogus", "path": "/b"}]), BadOperation(0)),
        (json!([{"op": "test", "path": "/a/0", "value": 1.0}]), TestFailed(0)),
        (json!([{"op": "test", "path": "/c", "value": 1}]), TestFailed(0)),
        (json!([{"op": "test", "path": "/a/1", "value": null}]), MissingPath(0)),
        (json!([{"op": "remove", "path": ""}]), MissingPath(0)),
        (json!([{"op": "remove", "path": "/a/-"}]), MissingPath(0)),
        (json!([{"op": "add", "path": "", "value": {}}]), MissingPath(0)),
        (json!([{"op": "add", "path": "/a/2", "value": 1}]), MissingPath(0)),
        (json!([{"op": "add", "path": "/a/x", "value": 1}]), MissingPath(0)),
        (json!([{"op": "add", "path": "/c/d", "value": 1}]), MissingPath(0)),
        (json!([{"op": "add", "path": "/b/d", "value": 1}]), MissingPath(0)),
        (json!([{"op": "add", "path": "c", "value": 1}]), BadOperation(0)),
        (json!([{"op": "add", "value": 1}]), BadOperation(0)),
        (json!([{"op": "replace", "path": "/a/1", "value": 1}]), MissingPath(0)),
        (json!([{"op": "replace", "path": "", "value": 1}]), BadOperation(0)),
        (json!([{"op": "replace", "path": "", "value": []}]), NotAnObject),
        (json!([{"op": "move", "from": "/c", "path": "/d"}]), MissingPath(0)),
        (json!([{"op": "move", "path": "/d"}]), BadOperation(0)),
        (json!([{"path": "/d"}]), BadOperation(0)),
        (json!([null]), BadOperation(0)),
        (json!({"op": "add"}), Shape("a JSON patch is a list of operations")),
        (json!([1]), Shape("an operation of a JSON patch is an object")),
    ] {
        assert_eq!(apply(document.clone(), patch.clone()), Err(want), "{patch}");
    }
}

#[test]
fn the_number_of_operations_is_limited() {
    let operations = |n: usize| json!(vec![json!({"op": "test", "path": "/b"}); n]);
    assert!(apply(json!({}), operations(OPERATIONS_MAX)).is_ok());
    let want = PatchError::TooManyOperations(OPERATIONS_MAX + 1);
    assert_eq!(apply(json!({}), operations(OPERATIONS_MAX + 1)), Err(want));
}

#[test]
fn copied_bytes_are_limited() {
    // The copied value is a text of 1 MiB with its quotes.
    let document = json!({"a": "x".repeat((1 << 20) - 2)});
    let copies = |n: usize| {
        let operations =
            (0..n).map(|idx| json!({"op": "copy", "from": "/a", "path": format!("/{idx}")}));
        Value::Array(operations.collect())
    };
    assert!(apply(document.clone(), copies(3)).is_ok());
    assert_eq!(apply(document, copies(4)), Err(PatchError::CopiesTooLarge));
}

#[test]
fn steps_are_limited() {
    let document = json!({"a": vec![1; 100_000]});
    let insertions = json!(vec![json!({"op": "add", "path": "/a/0", "value": 1}); 1_000]);
    assert_eq!(apply(document, insertions), Err(PatchError::TooMuchWork));
}

#[test]
fn nesting_is_limited_for_moved_values() {
    // Each round wraps the document into another level.
    let round = [
        json!({"op": "add", "path": "/b", "value": {}}),
        json!({"op": "move", "from": "/a", "path": "/b/a"}),
        json!({"op": "move", "from": "/b", "path": "/a"}),
    ];
    let rounds = |n: usize| Value::Array(round.iter().cycle().take(3 * n).cloned().collect());
    // The document itself and the innermost object are two levels; moving needs a third.
    assert!(apply(json!({"a": {}}), rounds(NESTING_MAX - 3)).is_ok());
    assert_eq!(apply(json!({"a": {}}), rounds(NESTING_MAX)), Err(PatchError::TooDeep));
}

proptest! {
    #[test]
    fn no_patch_panics(
        operations in proptest::collection::vec((
            "(add|remove|replace|move|copy|test)",
            "(/[ab01-]{0,2}){0,3}",
            "(/[ab01-]{0,2}){0,3}",
            prop_oneof![Just(json!(1)), Just(json!({"a": []})), Just(json!([1, [2]]))],
        ), 0..6),
    ) {
        let patch: Vec<Value> = operations
            .into_iter()
            .map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
            .collect();
        let document = json!({"a": [{"b": 1}, [1, 2]], "b": {"a": 0}});
        let _ = apply(document, Value::Array(patch));
    }

    #[test]
    fn removing_an_added_value_restores_the_document(name in "[a-z/~]{0,4}", value in 0..9) {
        let document = json!({"A": 1});
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let patch = json!([
            {"op": "add", "path": path, "value": value},
            {"op": "test", "path": path, "value": value},
            {"op": "remove", "path": path},
        ]);
        prop_assert_eq!(apply(document.clone(), patch), Ok(document));
    }
}
