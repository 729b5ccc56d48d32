//! Checks of transactions: a write with conditions on other keys and writes of other keys.

use std::sync::Arc;

use store::{
    At, Change, Delete, Entry, ExpectedKeyState, Key, Prefix, Put, Revision, Store, Transaction,
    VALUE_BYTES_MAX, WriteError,
};

use crate::Harness;
use crate::shorthand::{create, delete, events, get, history, key, text, value};

/// The key of a reservation, which is outside of the prefix of the objects.
fn reservation(name: &str) -> Key {
    Key::new(&format!("/registry/reservations/{name}")).unwrap()
}

fn put(name: &str, text: &str, expect: ExpectedKeyState) -> Transaction {
    Put {
        key: key(name),
        value: value(text),
        expected_state: expect,
        ttl: None,
        key_group_revision_action: None,
    }
    .into()
}

fn removal(name: &str, at: Revision) -> Transaction {
    Delete {
        key: key(name),
        expected_state: ExpectedKeyState::At(at),
        key_group_revision_action: None,
    }
    .into()
}

async fn reserved(store: &dyn Store, name: &str, at: At) -> Option<Entry> {
    store.get(&reservation(name), at).await.unwrap().entry
}

/// The write comes first and its additional writes follow in order, in one batch and one revision.
pub async fn a_transaction_is_one_revision_in_order(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = create(&store, "owner", "1").await;
    let first = put("a", "1", ExpectedKeyState::Absent)
        .add_condition(key("owner"), ExpectedKeyState::At(start))
        .add_put(reservation("x"), value("x"), Some(ExpectedKeyState::Absent))
        .add_put(reservation("y"), value("y"), Some(ExpectedKeyState::Absent));
    let made = store.write(first).await.unwrap();
    assert_eq!(made, start.next(), "one revision for all");
    let second = put("a", "2", ExpectedKeyState::At(made))
        .add_delete(reservation("x"), made)
        .add_put(reservation("y"), value("Y"), Some(ExpectedKeyState::At(made)))
        .add_put(reservation("z"), value("z"), None);
    let updated = store.write(second).await.unwrap();
    assert_eq!(updated, made.next());
    let last = removal("a", updated)
        .add_delete(reservation("y"), updated)
        .add_delete(reservation("z"), updated);
    let gone = store.write(last).await.unwrap();
    let entry = |text: &str, mod_rev, create_rev| Entry { value: value(text), mod_rev, create_rev };
    let (x, y) = (entry("x", made, made), entry("y", made, made));
    let (y_next, z) = (entry("Y", updated, made), entry("z", updated, updated));
    let all = Prefix::new("/registry/reservations/").unwrap();
    let mut watch = store.watch(all, start).await.unwrap();
    let delivered = events(&mut *watch, start, gone).await;
    let delivered: Vec<(Key, Revision, Change)> =
        delivered.into_iter().map(|event| (event.key, event.revision, event.change)).collect();
    let want = [
        ("x", made, Change::Create(x.clone())),
        ("y", made, Change::Create(y.clone())),
        ("x", updated, Change::Delete { prev: x.clone() }),
        ("y", updated, Change::Update { entry: y_next.clone(), prev: y.clone() }),
        ("z", updated, Change::Create(z.clone())),
        ("y", gone, Change::Delete { prev: y_next.clone() }),
        ("z", gone, Change::Delete { prev: z.clone() }),
    ];
    let want = want.map(|(name, revision, change)| (reservation(name), revision, change));
    assert_eq!(delivered, want);
    let mut watch = store.watch(Prefix::new("/registry/").unwrap(), start).await.unwrap();
    let delivered = events(&mut *watch, start, gone).await;
    let keys: Vec<&Key> = delivered.iter().map(|event| &event.key).collect();
    let of = |name: &str| reservation(name);
    let (a, x_key, y_key, z_key) = (key("a"), of("x"), of("y"), of("z"));
    let order = [&a, &x_key, &y_key, &a, &x_key, &y_key, &z_key, &a, &y_key, &z_key];
    assert_eq!(keys, order);
    // Older states contain either all of a transaction or nothing.
    for (at, want) in [
        (start, [None, None, None]),
        (made, [Some(x), Some(y), None]),
        (updated, [None, Some(y_next), Some(z)]),
        (gone, [None, None, None]),
    ] {
        for (name, want) in ["x", "y", "z"].into_iter().zip(want) {
            assert_eq!(reserved(&store, name, At::Exactly(at)).await, want, "{name} at {at}");
        }
    }
}

/// The error names the first condition that does not hold, and the actual state of its key.
pub async fn a_failed_condition_is_reported_and_nothing_is_written(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let first = create(&store, "first", "1").await;
    let second = create(&store, "second", "1").await;
    let current = |at| Some(Entry { value: value("1"), mod_rev: at, create_rev: at });
    let failed = |name: &str, current| {
        Err::<Revision, _>(WriteError::ConditionFailed { key: key(name), current })
    };
    let with = |one: ExpectedKeyState, other: ExpectedKeyState| {
        put("a", "1", ExpectedKeyState::Absent)
            .add_condition(key("first"), one)
            .add_condition(key("second"), other)
            .add_put(reservation("x"), value("x"), Some(ExpectedKeyState::Absent))
    };
    let (right, also_right) = (ExpectedKeyState::At(first), ExpectedKeyState::At(second));
    for (transaction, want) in [
        (with(ExpectedKeyState::Absent, also_right), failed("first", current(first))),
        (
            with(ExpectedKeyState::At(second), ExpectedKeyState::Absent),
            failed("first", current(first)),
        ),
        (with(right, ExpectedKeyState::At(first)), failed("second", current(second))),
        (with(right, also_right).add_condition(key("none"), right), failed("none", None)),
        (
            with(right, also_right).add_delete(key("second"), first),
            failed("second", current(second)),
        ),
        (with(right, also_right).add_delete(key("none"), first), failed("none", None)),
        (with(right, also_right).add_condition(key("a"), right), failed("a", None)),
    ] {
        assert_eq!(store.write(transaction.clone()).await, want, "{transaction:?}");
    }
    // The key of the write is checked before all conditions.
    let conflict = put("first", "2", ExpectedKeyState::Absent)
        .add_condition(key("second"), ExpectedKeyState::Absent);
    let want = Err(WriteError::Conflict { current: current(first) });
    assert_eq!(store.write(conflict).await, want);
    assert_eq!(store.current_rev().await, Ok(second));
    assert_eq!(history(&store, start).await.len(), 2);
    assert_eq!(reserved(&store, "x", At::Newest).await, None);
    let made = store.write(with(right, also_right)).await.unwrap();
    assert_eq!(made, second.next());
    // A deleted key is absent like one that never existed, and a key that was created again is another one.
    delete(&store, "first", first).await;
    let create_again = put("b", "1", ExpectedKeyState::Absent);
    let absent = create_again.clone().add_condition(key("first"), right);
    assert_eq!(store.write(absent).await, failed("first", None));
    let again = create(&store, "first", "1").await;
    let other = create_again.clone().add_condition(key("first"), right);
    assert_eq!(store.write(other).await, failed("first", current(again)));
    store
        .write(create_again.add_condition(key("first"), ExpectedKeyState::At(again)))
        .await
        .unwrap();
}

/// If an additional write conflicts, the whole transaction fails.
pub async fn additional_writes_are_atomic_with_their_write(harness: &impl Harness) {
    let store = harness.fresh().await;
    let holding = |name: &str| {
        let holder = value(name);
        put(name, "1", ExpectedKeyState::Absent).add_put(
            reservation("x"),
            holder,
            Some(ExpectedKeyState::Absent),
        )
    };
    let made = store.write(holding("a")).await.unwrap();
    let current = Some(Entry { value: value("a"), mod_rev: made, create_rev: made });
    let taken = WriteError::ConditionFailed { key: reservation("x"), current };
    assert_eq!(store.write(holding("b")).await, Err(taken));
    assert_eq!(get(&store, "b", At::Newest).await.unwrap().entry, None);
    let again = store.write(holding("a")).await;
    assert!(matches!(again, Err(WriteError::Conflict { .. })), "{again:?}");
    let freed = removal("a", made).add_delete(reservation("x"), made);
    let gone = store.write(freed.clone()).await.unwrap();
    assert_eq!(reserved(&store, "x", At::Newest).await, None);
    assert_eq!(store.write(freed).await, Err(WriteError::Conflict { current: None }));
    assert_eq!(store.write(holding("b")).await, Ok(gone.next()));
}

/// Many writers reserve the same few keys: each reservation has one holder, and a writer without a
/// reservation has not written.
pub async fn racing_reservations_have_one_holder(harness: &impl Harness) {
    const N_WRITERS: usize = 12;
    const N_RESERVATIONS: usize = 3;
    let store = Arc::new(harness.fresh().await);
    let mut writers = Vec::new();
    for writer in 0..N_WRITERS {
        let store = store.clone();
        writers.push(tokio::spawn(async move {
            let name = format!("w{writer}");
            let wanted = reservation(&(writer % N_RESERVATIONS).to_string());
            let holder = value(&name);
            let write = put(&name, "1", ExpectedKeyState::Absent).add_put(
                wanted.clone(),
                holder,
                Some(ExpectedKeyState::Absent),
            );
            match store.write(write).await {
                Ok(_) => true,
                Err(WriteError::ConditionFailed { key, .. }) if key == wanted => false,
                Err(error) => panic!("{error}"),
            }
        }));
    }
    let mut n_done = 0;
    for (writer, task) in writers.into_iter().enumerate() {
        let name = format!("w{writer}");
        let is_done = task.await.unwrap();
        let wanted = (writer % N_RESERVATIONS).to_string();
        let holder = reserved(&*store, &wanted, At::Newest).await.expect("a holder").value;
        assert_eq!(holder == value(&name), is_done, "{name}");
        assert_eq!(text(&*store, &name).await.is_some(), is_done, "{name}");
        n_done += usize::from(is_done);
    }
    assert_eq!(n_done, N_RESERVATIONS);
}

/// Values of additional writes have the same size limit as others.
pub async fn value_size_of_additional_writes_is_limited(harness: &impl Harness) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let bytes = VALUE_BYTES_MAX + 1;
    let large = value(&"x".repeat(bytes));
    let write = put("a", "1", ExpectedKeyState::Absent).add_put(reservation("x"), large, None);
    assert_eq!(store.write(write).await, Err(WriteError::ValueTooLarge { bytes }));
    assert_eq!(store.current_rev().await, Ok(start));
}
