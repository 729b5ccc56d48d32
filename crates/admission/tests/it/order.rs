//! The order of initializers.

use admission::ConfigurationKind::Initializer;
use admission::{
    PendingInitializer, PendingInitializers, initializer_ordering_errors,
    initializer_ordering_warnings, order_pending_initializers, runnable_initializers,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::documents::{created, object, snapshot};
use crate::matching::pod;

fn entry(name: &str, changes: Value) -> Value {
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
    crate::documents::with(json!({"name": name, "rules": rules}), changes)
}

fn graph(name: &str, after: &[&str], before: &[&str]) -> Value {
    entry(name, json!({"orderingMode": "Graph", "after": after, "before": before}))
}

fn pending_of(objects: &[(&str, Value)]) -> PendingInitializers {
    let objects: Vec<_> =
        objects.iter().map(|(name, entries)| (Initializer, *name, entries.clone())).collect();
    order_pending_initializers(&snapshot(&objects).match_initializers(&pod()))
}

fn names(entries: &[PendingInitializer]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn sequential_initializers_act_in_global_order() {
    let deployments = json!([{"apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["*"]}]);
    let objects = [
        ("b", json!([entry("x.b.c", json!({}))])),
        ("a", json!([entry("y.b.c", json!({})), entry("z.b.c", json!({}))])),
    ];
    let list = pending_of(&objects);
    assert_eq!(names(&list.ordered_entries), ["y.b.c", "z.b.c", "x.b.c"]);
    assert!(list.ordered_entries.iter().all(|entry| entry.after_initializers.is_none()));
    let objects = [
        ("b", json!([entry("x.b.c", json!({}))])),
        ("a", json!([entry("y.b.c", json!({"rules": deployments})), entry("z.b.c", json!({}))])),
    ];
    assert_eq!(names(&pending_of(&objects).ordered_entries), ["z.b.c", "x.b.c"]);
    let objects = [
        ("b", json!([entry("x.b.c", json!({})), entry("y.b.c", json!({}))])),
        ("a", json!([entry("y.b.c", json!({}))])),
    ];
    assert_eq!(names(&pending_of(&objects).ordered_entries), ["y.b.c", "x.b.c"]);
}

#[test]
fn independent_initializers_of_a_graph_act_in_parallel() {
    let list = pending_of(&[(
        "a",
        json!([
            graph("a.b.c", &[], &[]),
            graph("b.b.c", &["a.b.c"], &[]),
            graph("c.b.c", &[], &[])
        ]),
    )]);
    let want: Vec<PendingInitializer> =
        [("a.b.c", vec![]), ("b.b.c", vec!["a.b.c"]), ("c.b.c", vec![])]
            .into_iter()
            .map(|(name, after)| PendingInitializer {
                name: name.to_owned(),
                after_initializers: Some(after.into_iter().map(str::to_owned).collect()),
            })
            .collect();
    assert_eq!(list.ordered_entries, want);
    assert_eq!(runnable_initializers(&want), [0, 2]);
    assert_eq!(runnable_initializers(&want[..2]), [0], "b waits for a when c is done");
    assert_eq!(runnable_initializers(&want[1..]), [0, 1], "the head can always act");
    let sequential =
        |name: &str| PendingInitializer { name: name.to_owned(), after_initializers: None };
    assert_eq!(runnable_initializers(&[sequential("a.b.c"), sequential("b.b.c")]), [0]);
    assert!(runnable_initializers(&[]).is_empty());
}

#[test]
fn sequential_entries_keep_their_chain_among_others() {
    let list = pending_of(&[(
        "a",
        json!([
            entry("s1.b.c", json!({})),
            graph("g.b.c", &["s2.b.c", "absent.b.c"], &["s3.b.c"]),
            entry("s2.b.c", json!({})),
            entry("s3.b.c", json!({})),
        ]),
    )]);
    assert_eq!(names(&list.ordered_entries), ["s1.b.c", "s2.b.c", "g.b.c", "s3.b.c"]);
    let after: Vec<_> =
        list.ordered_entries.into_iter().map(|entry| entry.after_initializers.unwrap()).collect();
    assert_eq!(after[3], ["s2.b.c", "g.b.c"]);
    assert_eq!((after[1].len(), after[2].len()), (1, 1), "the absent one adds nothing");
}

#[test]
fn invalid_orderings_are_refused() {
    let sequential = entry("a.b.c", json!({"after": ["x.b.c"]}));
    assert_eq!(
        created(Initializer, json!([sequential])),
        ["initializers[0].after: Forbidden: may only be set when orderingMode is Graph"]
    );
    let odd = entry("a.b.c", json!({"orderingMode": "Random"}));
    assert_eq!(
        created(Initializer, json!([odd])),
        [
            r#"initializers[0].orderingMode: Unsupported value: "Random": supported values: "Graph", "Sequential""#
        ]
    );
    let itself = graph("a.b.c", &["a.b.c"], &["x.b.c", "x.b.c"]);
    assert_eq!(
        created(Initializer, json!([itself])),
        [
            r#"initializers[0].after[0]: Invalid value: "a.b.c": must not reference itself"#,
            r#"initializers[0].before[1]: Duplicate value: "x.b.c""#,
        ]
    );
    let first = object(Initializer, "one", json!([graph("a.b.c", &["x.y.z"], &[])]));
    let second = object(Initializer, "two", json!([graph("x.y.z", &["a.b.c"], &[])]));
    assert!(initializer_ordering_errors(&first, &[]).is_empty());
    assert_eq!(
        initializer_ordering_errors(&second, &[&first]).to_string(),
        r#"initializers[0].after: Invalid value: "a.b.c": ordering cycle: x.y.z -> a.b.c -> x.y.z"#
    );
    let repaired = object(Initializer, "one", json!([graph("a.b.c", &[], &[])]));
    assert!(
        initializer_ordering_errors(&repaired, &[&first, &second]).is_empty(),
        "it replaces its old state"
    );
}

#[test]
fn cycle_errors_name_the_closing_constraint() {
    let others = object(Initializer, "one", json!([graph("a.b.c", &["x.y.z"], &[])]));
    let before = object(
        Initializer,
        "two",
        json!([graph("x.y.z", &[], &["q.y.z"]), graph("q.y.z", &["a.b.c"], &[])]),
    );
    assert!(initializer_ordering_errors(&before, &[&others]).is_empty());
    let before = object(
        Initializer,
        "two",
        json!([graph("q.y.z", &[], &["x.y.z"]), graph("x.y.z", &["a.b.c"], &[])]),
    );
    assert!(!initializer_ordering_errors(&before, &[&others]).is_empty());
    // The constraints put an entry between two sequential ones in the reverse order.
    let old = object(Initializer, "one", json!([graph("g.b.c", &["s2.b.c"], &["s1.b.c"])]));
    let new =
        object(Initializer, "two", json!([entry("s1.b.c", json!({})), entry("s2.b.c", json!({}))]));
    assert_eq!(
        initializer_ordering_errors(&new, &[&old]).to_string(),
        r#"initializers[0].name: Invalid value: "s1.b.c": ordering cycle: s1.b.c -> s2.b.c -> g.b.c -> s1.b.c"#
    );
}

#[test]
fn unregistered_names_are_warned_about() {
    let new = object(Initializer, "one", json!([graph("a.b.c", &["x.y.z"], &[])]));
    let warnings_of: Vec<String> =
        initializer_ordering_warnings(&new, &[]).iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings_of,
        [
            "initializers[0].after[0]: no initializer named \"x.y.z\" is registered; the constraint has \
             no effect until one is"
        ]
    );
    let other = object(Initializer, "two", json!([entry("x.y.z", json!({}))]));
    assert!(initializer_ordering_warnings(&new, &[&other]).is_empty());
}

#[test]
fn a_cycle_that_was_stored_is_broken_in_global_order() {
    let list = pending_of(&[(
        "a",
        json!([
            graph("a.b.c", &["b.b.c"], &[]),
            graph("b.b.c", &["a.b.c"], &[]),
            graph("c.b.c", &["b.b.c"], &[]),
        ]),
    )]);
    assert_eq!(names(&list.ordered_entries), ["a.b.c", "b.b.c", "c.b.c"]);
    assert_eq!(list.dependency_cycles, [["a.b.c", "b.b.c"]]);
    assert_eq!(runnable_initializers(&list.ordered_entries), [0]);
}

proptest! {
    /// For any configuration, every initializer is listed once and after those it waits for, and the first one may
    /// act.
    #[test]
    fn every_pending_list_can_be_completed(
        constraints in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(0..8_usize, 0..3), prop::collection::vec(0..8_usize, 0..3)),
            1..8,
        ),
    ) {
        let name = |idx: &usize| format!("n{idx}.b.c");
        let entries: Vec<Value> = constraints.iter().enumerate().map(|(idx, (is_graph, after, before))| {
            let own = name(&idx);
            let of = |all: &[usize]| all.iter().map(name).collect::<Vec<_>>();
            match is_graph {
                true => entry(&own, json!({"orderingMode": "Graph", "after": of(after), "before": of(before)})),
                false => entry(&own, json!({})),
            }
        }).collect();
        let list = pending_of(&[("a", json!(entries))]);
        let mut left = list.ordered_entries;
        let mut sorted = names(&left).into_iter().map(str::to_owned).collect::<Vec<_>>();
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(sorted.len(), constraints.len());
        for (at, entry) in left.iter().enumerate() {
            for other in entry.after_initializers.iter().flatten() {
                prop_assert!(left[..at].iter().any(|before| &before.name == other));
            }
        }
        let new = object(Initializer, "a", json!(entries));
        prop_assert_eq!(list.dependency_cycles.is_empty(), initializer_ordering_errors(&new, &[]).is_empty());
        while !left.is_empty() {
            let acting = runnable_initializers(&left);
            prop_assert_eq!(acting[0], 0);
            left.remove(*acting.last().unwrap());
        }
    }
}
