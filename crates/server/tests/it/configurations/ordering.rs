//! The order of initializers across objects.

use admission::ConfigurationKind::Initializer;
use serde_json::{Value, json};

use super::{
    Row, assert_faults, check, create, object, path_of, plant, plant_object, replace, warnings,
};
use crate::cluster::Cluster;

/// An entry that waits for others.
fn after(name: &str, others: &[&str]) -> Value {
    json!({"name": name, "orderingMode": "Graph", "after": others})
}

/// The validation of one entry.
#[tokio::test(flavor = "multi_thread")]
async fn entries_by_themselves() {
    let cluster = Cluster::start().await;
    let row = |entry: Value, want: &[&str]| -> Row {
        let want = want.iter().map(|want| format!("initializers[0].{want}")).collect();
        ("entry", json!([entry]), want)
    };
    let only_graph = "Forbidden: may only be set when orderingMode is Graph";
    let rows = vec![
        (
            "after without orderingMode Graph",
            json!([{"name": "a.b.c", "after": ["x.y.z"]}]),
            vec![format!("initializers[0].after: {only_graph}")],
        ),
        row(
            json!({"name": "a.b.c", "orderingMode": "Sequential", "before": ["x.y.z"]}),
            &[&format!("before: {only_graph}")],
        ),
        row(
            json!({"name": "a.b.c", "orderingMode": "Parallel"}),
            &[
                "orderingMode: Unsupported value: \"Parallel\": supported values: \"Graph\", \"Sequential\"",
            ],
        ),
        row(
            after("a.b.c", &["a.b.c"]),
            &["after[0]: Invalid value: \"a.b.c\": must not reference itself"],
        ),
        row(
            after("a.b.c", &["k8s.io"]),
            &[
                "after[0]: Invalid value: \"k8s.io\": should be a domain with at least three segments …",
            ],
        ),
        row(after("a.b.c", &["x.y.z", "x.y.z"]), &["after[1]: Duplicate value: \"x.y.z\""]),
        row(json!({"name": "a.b.c", "orderingMode": "Graph", "before": [], "after": []}), &[]),
    ];
    check(&cluster.admin(), Initializer, rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_itself_by_way_of_other_objects() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    create(&admin, Initializer, "one", json!([after("a.b.c", &["x.y.z"])])).await.expect(201);
    let circle = json!([after("x.y.z", &["a.b.c"])]);
    let want =
        ["initializers[0].after: Invalid value: \"a.b.c\": ordering cycle: x.y.z -> a.b.c -> \
                 x.y.z"
            .to_owned()];
    let answer = create(&admin, Initializer, "two", circle.clone()).await;
    assert_faults("a new object", &answer, &want);
    assert_eq!(
        answer.json()["message"],
        format!(
            "InitializerConfiguration.admissionregistration.k8s.io \"two\" is invalid: {}",
            want[0]
        )
    );
    let dry = format!("{}?dryRun=All", path_of(Initializer));
    let answer = admin.post(&dry, &object(Initializer, "two", circle.clone())).await;
    assert_faults("a dry run", &answer, &want);
    create(&admin, Initializer, "two", json!([after("x.y.z", &[])])).await.expect(201);
    let answer = replace(&admin, Initializer, "two", circle.clone()).await;
    assert_faults("an update", &answer, &want);
    let patch = json!({"initializers": [{"name": "x.y.z", "after": ["a.b.c"]}]});
    let path = format!("{}/two", path_of(Initializer));
    let answer = admin.patch(&path, "strategic-merge-patch", &patch).await;
    assert_faults("a patch", &answer, &want);
    // The stored state of the object itself does not count: the next state replaces it.
    replace(&admin, Initializer, "one", json!([after("a.b.c", &[])])).await.expect(200);
    replace(&admin, Initializer, "two", circle).await.expect(200);
}

/// The check and the write are atomic. Of two concurrent writes that do not fit together one is
/// refused; those that do are all made, however many they are.
#[tokio::test(flavor = "multi_thread")]
async fn objects_that_come_at_once_are_checked_against_each_other() {
    const ROUNDS: usize = 16;
    const AT_ONCE: usize = 8;
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for round in 0..ROUNDS {
        let (one, other) = (format!("a{round}.b.c"), format!("x{round}.y.z"));
        let (first, second) = (format!("first-{round}"), format!("second-{round}"));
        let (left, right) = tokio::join!(
            create(&admin, Initializer, &first, json!([after(&one, &[&other])])),
            create(&admin, Initializer, &second, json!([after(&other, &[&one])])),
        );
        let mut codes = [left.code, right.code];
        codes.sort_unstable();
        assert_eq!(codes, [201, 422], "{}\n{}", left.text(), right.text());
    }
    let mut making = tokio::task::JoinSet::new();
    for idx in 0..AT_ONCE {
        let admin = cluster.admin();
        making.spawn(async move {
            let entries = json!([after(&format!("n{idx}.b.c"), &[])]);
            create(&admin, Initializer, &format!("n-{idx}"), entries).await.code
        });
    }
    assert_eq!(making.join_all().await, [201; AT_ONCE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_nobody_is_told() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    let entries = json!([after("a.b.c", &["x.y.z", "b.b.c"]), {"name": "b.b.c"}]);
    let answer = create(&admin, Initializer, "one", entries.clone()).await;
    let want = "initializers[0].after[0]: no initializer named \"x.y.z\" is registered; the constraint \
                has no effect until one is";
    assert_eq!(warnings(&answer), [want]);
    answer.expect(201);
    create(&admin, Initializer, "two", json!([{"name": "x.y.z"}])).await.expect(201);
    let more = json!([entries[0], entries[1], {"name": "c.b.c"}]);
    let answer = replace(&admin, Initializer, "one", more).await;
    assert_eq!(warnings(&answer), Vec::<String>::new());
    answer.expect(200);
}

/// A stored cycle can be found, labelled, broken and deleted, and an undecodable configuration does
/// not affect the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_circle_that_is_there_is_no_trap() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    plant(&cluster, Initializer, "broken", b"{\"metadata\":".to_vec()).await;
    for (name, own, other) in [("one", "a.b.c", "x.y.z"), ("two", "x.y.z", "a.b.c")] {
        plant_object(&cluster, Initializer, name, json!([with_policy(after(own, &[other]))])).await;
    }
    let path = format!("{}/one", path_of(Initializer));
    let label = json!({"metadata": {"labels": {"x": "y"}, "finalizers": ["a.b/c"]}});
    let labelled = admin.patch(&path, "merge-patch", &label).await.expect(200);
    assert_eq!(labelled["metadata"]["generation"], 1);
    let answer = replace(
        &admin,
        Initializer,
        "one",
        json!([after("a.b.c", &["x.y.z"]), after("n.b.c", &[])]),
    );
    let want =
        "initializers[0].after: Invalid value: \"x.y.z\": ordering cycle: a.b.c -> x.y.z -> a.b.c";
    assert_faults("one that stays", &answer.await, &[want.to_owned()]);
    admin.delete(&path).await.expect(200);
    let done = json!({"metadata": {"finalizers": null}});
    admin.patch(&path, "merge-patch", &done).await.expect(200);
    admin.get(&path).await.expect(404);
    replace(&admin, Initializer, "two", json!([after("x.y.z", &["n.b.c"])])).await.expect(200);
}

/// As it is stored.
fn with_policy(entry: Value) -> Value {
    super::with(entry, json!({"failurePolicy": "Ignore"}))
}
