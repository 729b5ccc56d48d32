//! Random patches, with the results that the libraries of Kubernetes give for them.
//!
//! Each line of `testdata/*.jsonl` is a document, a patch, and the result or the error of
//! `k8s.io/apimachinery/pkg/util/strategicpatch` (v0.37.2) or `gopkg.in/evanphx/json-patch.v4`
//! (v4.13.0).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::strategic_merge::strip_nulls_and_directives;
use crate::{
    PatchError, StrategicMergeSchema, apply_json_patch, apply_merge_patch,
    apply_strategic_merge_patch,
};

/// Errors that the libraries return for patches that are valid here: an order for an empty list, and patches that
/// make a library panic.
const UPSTREAM_ONLY_ERRORS: [&str; 2] = ["no elements in any of the given slices", "panic "];

fn check_against_upstream(cases: &str, apply: impl Fn(&Value) -> Result<Value, PatchError>) {
    let mut n_compared = 0;
    for (idx, line) in cases.lines().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let ours = apply(&case);
        match case["error"].as_str() {
            // The library allows a result that is not an object; this crate does not.
            None if !case["want"].is_object() => assert_eq!(ours, Err(PatchError::NotAnObject)),
            None if deletes_and_orders(line) => {
                let want = strip_nulls_and_directives(case["want"].clone());
                assert_eq!(
                    ours.map(sort_recursively),
                    Ok(sort_recursively(want)),
                    "line {}",
                    idx + 1
                );
            }
            None => assert_eq!(
                ours,
                Ok(strip_nulls_and_directives(case["want"].clone())),
                "line {}",
                idx + 1
            ),
            Some(error) if UPSTREAM_ONLY_ERRORS.iter().any(|limit| error.starts_with(limit)) => {
                continue;
            }
            Some(error) => assert!(ours.is_err(), "line {}: {error}", idx + 1),
        }
        n_compared += 1;
    }
    assert!(n_compared > 50, "only {n_compared} cases were compared");
}

/// Reports whether a patch deletes items and sets an order. The library then overwrites the order of the
/// server with the items that it appends, so that a new item may take the place of the deleted one. This
/// crate follows the documentation.
fn deletes_and_orders(line: &str) -> bool {
    line.contains("$setElementOrder") && line.contains("\"$patch\":\"delete\"")
}

/// Sorts all lists and objects of a value.
fn sort_recursively(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.into_iter().collect();
            sorted.into_iter().map(|(name, value)| (name, sort_recursively(value))).collect()
        }
        Value::Array(items) => {
            let mut items: Vec<_> = items.into_iter().map(sort_recursively).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        scalar => scalar,
    }
}

fn case_document(case: &Value) -> api_object::Tree {
    case["doc"].as_object().unwrap().clone()
}

#[test]
fn strategic_merge_results_match_kubernetes() {
    check_against_upstream(include_str!("../testdata/strategic.jsonl"), |case| {
        let text = |name: &str| case[name].as_str().unwrap();
        let schema = StrategicMergeSchema::of(text("group"), text("kind"));
        apply_strategic_merge_patch(case_document(case), case["patch"].clone(), &schema)
            .map(Value::Object)
    });
}

#[test]
fn merge_patch_results_match_kubernetes() {
    check_against_upstream(include_str!("../testdata/merge.jsonl"), |case| {
        apply_merge_patch(case_document(case), case["patch"].clone())
            .map(Value::Object)
            .map(strip_nulls_and_directives)
    });
}

#[test]
fn json_patch_results_match_kubernetes() {
    check_against_upstream(include_str!("../testdata/json.jsonl"), |case| {
        apply_json_patch(case_document(case), case["patch"].clone())
            .map(Value::Object)
            .map(strip_nulls_and_directives)
    });
}
