use store::{Entry, Revision};

use super::*;

const LIMITS: (WaitingObjectLimits, WaitingObjectLimits) = (
    WaitingObjectLimits { waiting_objects_max: 4, waiting_object_bytes_max: 4_000 },
    WaitingObjectLimits { waiting_objects_max: 2, waiting_object_bytes_max: 1_000 },
);

fn options() -> InitializerOptions {
    let (waiting_max, waiting_per_user_max) = LIMITS;
    InitializerOptions {
        waiting_object_limits: waiting_max,
        waiting_object_limits_per_user: waiting_per_user_max,
        ..InitializerOptions::default()
    }
}

fn objects() -> Arc<UninitializedObjectCounts> {
    Arc::new(UninitializedObjectCounts::new("/registry"))
}

fn key(name: &str) -> Key {
    Key::new(&format!("/registry/configmaps/default/{name}")).unwrap()
}

/// An object with this uid that waits, failed or is initialized.
fn stored(uid: &str, initializers: Value) -> Bytes {
    let tree = json!({"metadata": {"name": "m", "uid": uid, "initializers": initializers}});
    Bytes::from(tree.to_string())
}

fn waiting(uid: &str) -> Bytes {
    stored(uid, json!({"pending": [{"name": "a.b.c"}]}))
}

fn entry(value: &Bytes, number: u64) -> Entry {
    let revision = Revision::new(number);
    Entry { value: value.clone(), mod_rev: revision, create_rev: revision }
}

/// An object, or its record, is stored or deleted.
fn event(key: &Key, value: Option<&Bytes>) -> Event {
    let change = match value {
        Some(value) => Change::Create(entry(value, 1)),
        None => Change::Delete { prev: entry(&Bytes::new(), 1) },
    };
    Event { key: key.clone(), revision: Revision::new(1), change }
}

fn used(objects: &UninitializedObjectCounts, user: &str) -> (usize, usize) {
    let table = objects.index();
    (
        table.uninitialized_usage_by_user.get(user).map_or(0, |usage| usage.n_objects),
        table.total_uninitialized_usage.n_objects,
    )
}

fn reserve(
    objects: &Arc<UninitializedObjectCounts>,
    user: &str,
    uid: &str,
    bytes: usize,
) -> Result<UninitializedObjectSlot, UninitializedLimitExceeded> {
    let creator = CreatingUser { name: user, is_exempt_from_limits: user == "admin" };
    objects.reserve_uninitialized_slot(&options(), creator, &key(uid), uid, bytes)
}

#[test]
fn there_is_room_for_so_many_objects() {
    let all = objects();
    let mut kept = vec![reserve(&all, "jane", "1", 10).unwrap()];
    kept.push(reserve(&all, "jane", "2", 10).unwrap());
    assert_eq!(reserve(&all, "jane", "3", 10).err(), Some(UninitializedLimitExceeded::User));
    assert_eq!(reserve(&all, "joe", "4", 1_001).err(), Some(UninitializedLimitExceeded::User));
    kept.push(reserve(&all, "joe", "5", 1_000).unwrap());
    assert_eq!(reserve(&all, "joe", "6", 1).err(), Some(UninitializedLimitExceeded::User), "bytes");
    drop(reserve(&all, "admin", "7", 1_000_000).expect("administrators are never refused"));
    kept.push(reserve(&all, "ada", "7", 10).unwrap());
    assert_eq!(reserve(&all, "eve", "8", 10).err(), Some(UninitializedLimitExceeded::Total));
    kept.pop();
    assert!(reserve(&all, "eve", "9", 10).is_ok(), "what is not stored does not count");
    assert_eq!(reserve(&all, "jane", "10", 10).err(), Some(UninitializedLimitExceeded::User));
    kept.clear();
    assert_eq!(used(&all, "jane"), (0, 0));
    assert!(all.index().uninitialized_usage_by_user.is_empty());
}

#[test]
fn an_object_counts_until_it_is_initialized_or_gone() {
    let failed = |uid: &str| stored(uid, json!({"result": {"status": "Failure"}}));
    for (what, events, want) in [
        ("waits", vec![Some(waiting("1"))], 1),
        ("failed", vec![Some(waiting("1")), Some(failed("1"))], 1),
        ("initialized", vec![Some(waiting("1")), Some(stored("1", Value::Null))], 0),
        ("initialized at once", vec![Some(stored("1", Value::Null))], 0),
        ("gone", vec![Some(waiting("1")), None], 0),
        ("another one", vec![Some(waiting("1")), Some(waiting("2"))], 0),
        // These events are older than the object.
        ("another one was gone", vec![None, Some(waiting("1"))], 1),
        ("another one was there", vec![Some(waiting("0")), None, Some(waiting("1"))], 1),
        ("nothing", vec![], 1),
        ("no object", vec![Some(waiting("1")), Some(Bytes::from_static(b"{"))], 1),
    ] {
        for is_kept_late in [false, true] {
            let all = objects();
            let mut reservation = Some(reserve(&all, "jane", "1", 10).unwrap());
            if !is_kept_late {
                reservation.take().unwrap().mark_object_stored();
            }
            let events: Vec<Event> =
                events.iter().map(|value| event(&key("1"), value.as_ref())).collect();
            all.apply_store_events(&events);
            reservation.iter().for_each(UninitializedObjectSlot::mark_object_stored);
            assert_eq!(used(&all, "jane"), (want, want), "{what}, {is_kept_late}");
            let due: Vec<UninitializedObjectState> = all
                .abandoned_initialization_candidates(false)
                .iter()
                .map(|due| due.uninitialized_object_state)
                .collect();
            let want = if want == 0 { vec![UninitializedObjectState::NotCounted] } else { vec![] };
            assert_eq!(due, want, "{what}: useless records");
        }
    }
}

#[test]
fn records_of_others_and_of_earlier_processes_count() {
    let first = objects();
    let reservation = reserve(&first, "jane", "1", 10).unwrap();
    let (record, value) = reservation.uninitialized_record.clone();
    reservation.mark_object_stored();

    let second = objects();
    second.apply_store_events(&[event(&record, Some(&value))]);
    assert_eq!(used(&second, "jane"), (1, 1));
    second.apply_store_events(&[event(&key("1"), Some(&waiting("1")))]);
    assert!(second.abandoned_initialization_candidates(true).is_empty());
    second.apply_store_events(&[event(&record, None)]);
    assert_eq!(used(&second, "jane"), (0, 0));

    let third = objects();
    let item = Item { key: record.clone(), entry: entry(&value, 1) };
    third.replace_uninitialized_records(std::slice::from_ref(&item));
    assert_eq!(used(&third, "jane"), (1, 1));
    let due = third.abandoned_initialization_candidates(true);
    assert_eq!(
        due.iter().map(|due| due.uninitialized_object_state).collect::<Vec<_>>(),
        [UninitializedObjectState::Unread]
    );
    third.record_read_object(&key("1"), Some(&waiting("1")));
    assert!(third.abandoned_initialization_candidates(true).is_empty());
    third.replace_uninitialized_records(&[item]);
    assert_eq!(
        third.abandoned_initialization_candidates(true).len(),
        1,
        "something may have happened meanwhile"
    );
    third.replace_uninitialized_records(&[]);
    assert_eq!(used(&third, "jane"), (0, 0));
    third.apply_store_events(&[event(&record, Some(&Bytes::from_static(b"{")))]);
    assert_eq!(used(&third, "jane"), (0, 0), "a record that cannot be read");
}

#[test]
fn an_object_that_grows_takes_more() {
    let all = objects();
    reserve(&all, "jane", "1", 10).unwrap().mark_object_stored();
    let large = stored("1", json!({"pending": [{"name": "x".repeat(900)}]}));
    all.apply_store_events(&[event(&key("1"), Some(&large))]);
    assert_eq!(all.index().total_uninitialized_usage.n_object_bytes, large.len());
    assert_eq!(reserve(&all, "jane", "2", 200).err(), Some(UninitializedLimitExceeded::User));
    all.apply_store_events(&[event(&key("1"), Some(&waiting("1")))]);
    assert!(reserve(&all, "jane", "3", 200).is_ok());
}

#[test]
fn an_object_without_a_record_counts_for_nobody_in_particular() {
    let all = objects();
    all.count_unrecorded_uninitialized_object(&key("1"), &waiting("1"));
    all.count_unrecorded_uninitialized_object(&key("1"), &waiting("1"));
    assert_eq!(used(&all, ""), (1, 1));
    all.replace_uninitialized_records(&[]);
    assert_eq!(used(&all, ""), (1, 1), "it never had a record");
    all.apply_store_events(&[event(&key("1"), None)]);
    assert_eq!(
        all.abandoned_initialization_candidates(false).len(),
        0,
        "it has to be read again after the gap"
    );
    all.stop_counting_uninitialized_object("1");
    assert_eq!(used(&all, ""), (0, 0));
}
