//! Compares random histories with a model that keeps every state.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Bound;

use bytes::Bytes;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use store::{
    AdditionalWrite, At, Change, Delete, Entry, Event, ExpectedKeyState, GetResult, Item, Key,
    KeyCondition, KeyGroupRevisionAction, ListPage, ListRequest, Put, ReadError, Revision, Store,
    Transaction, WriteError,
};

use crate::shorthand::{history, key, things, value};
use crate::{Harness, block_on};

/// The number of keys. It is small, so that operations often use the same key.
const N_KEYS: u8 = 6;
const N_STEPS_MAX: usize = 60;

/// Runs random operations on the engine and on the model, and compares every answer.
pub fn random_histories_agree_with_the_model(harness: &impl Harness) {
    let config = Config { cases: harness.cases(), failure_persistence: None, ..Config::default() };
    let steps = proptest::collection::vec(step(), 1..N_STEPS_MAX);
    let run = |steps: Vec<Step>| -> Result<(), TestCaseError> {
        block_on(follow(harness, &steps));
        Ok(())
    };
    if let Err(error) = TestRunner::new(config).run(&steps, run) {
        panic!("{error}");
    }
}

#[derive(Debug, Clone, Copy)]
enum ExpectedVersion {
    Current,
    Stale,
    Absent,
}

/// The use of a shared revision by a write. Sometimes its key is one of the other keys.
#[derive(Debug, Clone, Copy)]
enum SharedRevisionCondition {
    None,
    Bump { n: Option<u8> },
    BumpAtVersion { n: Option<u8>, expected: ExpectedVersion },
    RequireUnchanged { n: Option<u8>, expected: ExpectedVersion },
}

/// The condition or write of a transaction on another key, which may be its own key or the key of the shared revision.
#[derive(Debug, Clone, Copy)]
enum AdditionalOperation {
    Require {
        n: u8,
        expected: ExpectedVersion,
    },
    Put {
        n: u8,
        expected: Option<ExpectedVersion>,
    },
    /// Deletes the key, only if it exists.
    Delete {
        n: u8,
        is_stale: bool,
    },
}

/// One operation. `back` counts revisions before the newest one; a negative number is in the future.
#[derive(Debug, Clone)]
enum Step {
    Put {
        n: u8,
        expected: ExpectedVersion,
        shared_revision: SharedRevisionCondition,
        additional: Vec<AdditionalOperation>,
    },
    Delete {
        n: u8,
        expected: ExpectedVersion,
        shared_revision: SharedRevisionCondition,
        additional: Vec<AdditionalOperation>,
    },
    Get {
        n: u8,
        back: i8,
    },
    List {
        from: Option<u8>,
        limit: u8,
        back: i8,
    },
    Compact {
        back: i8,
    },
    Watch {
        back: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let expected = prop_oneof![
        8 => proptest::prelude::Just(ExpectedVersion::Current),
        1 => proptest::prelude::Just(ExpectedVersion::Stale),
        1 => proptest::prelude::Just(ExpectedVersion::Absent),
    ];
    let shared_revision_key = prop_oneof![
        4 => proptest::prelude::Just(None),
        1 => (0..N_KEYS).prop_map(Some),
    ];
    let shared_revision = prop_oneof![
        2 => proptest::prelude::Just(SharedRevisionCondition::None),
        1 => shared_revision_key.clone().prop_map(|n| SharedRevisionCondition::Bump { n }),
        2 => (shared_revision_key.clone(), expected.clone())
            .prop_map(|(n, expected)| SharedRevisionCondition::BumpAtVersion { n, expected }),
        1 => (shared_revision_key, expected.clone())
            .prop_map(|(n, expected)| SharedRevisionCondition::RequireUnchanged { n, expected }),
    ];
    let additional_operation = prop_oneof![
        1 => (0..N_KEYS, expected.clone())
            .prop_map(|(n, expected)| AdditionalOperation::Require { n, expected }),
        2 => (0..N_KEYS, proptest::option::weighted(0.7, expected.clone()))
            .prop_map(|(n, expected)| AdditionalOperation::Put { n, expected }),
        1 => (0..N_KEYS, proptest::bool::weighted(0.1))
            .prop_map(|(n, is_stale)| AdditionalOperation::Delete { n, is_stale }),
    ];
    let additional = prop_oneof![
        2 => proptest::prelude::Just(Vec::new()),
        1 => proptest::collection::vec(additional_operation, 1..4),
    ];
    let back = -2..20_i8;
    prop_oneof![
        6 => (0..N_KEYS, expected.clone(), shared_revision.clone(), additional.clone())
            .prop_map(|(n, expected, shared_revision, additional)| {
                Step::Put { n, expected, shared_revision, additional }
            }),
        3 => (0..N_KEYS, expected, shared_revision, additional)
            .prop_map(|(n, expected, shared_revision, additional)| {
                Step::Delete { n, expected, shared_revision, additional }
            }),
        2 => (0..N_KEYS, back.clone()).prop_map(|(n, back)| Step::Get { n, back }),
        3 => (any::<Option<u8>>(), 0..4_u8, back.clone())
            .prop_map(|(from, limit, back)| Step::List { from, limit, back }),
        1 => back.prop_map(|back| Step::Compact { back }),
        1 => (0..20_u8).prop_map(|back| Step::Watch { back }),
    ]
}

/// Every state and the whole log since the first revision of the store.
struct Model {
    start: Revision,
    floor: Revision,
    states: Vec<BTreeMap<Key, Entry>>,
    log: Vec<Event>,
}

impl Model {
    fn current(&self) -> Revision {
        Revision::new(self.start.as_u64() + self.states.len() as u64 - 1)
    }

    fn back(&self, back: i64) -> Revision {
        let number = self.current().as_u64().saturating_add_signed(-back);
        Revision::new(number).max(self.start)
    }

    fn state(&self, at: Revision) -> Result<&BTreeMap<Key, Entry>, ReadError> {
        if at > self.current() {
            return Err(ReadError::Future { requested: at, current: self.current() });
        }
        if at < self.floor {
            return Err(ReadError::Compacted { requested: at, floor: self.floor });
        }
        Ok(&self.states[(at.as_u64() - self.start.as_u64()) as usize])
    }

    fn newest(&self) -> &BTreeMap<Key, Entry> {
        self.states.last().expect("there is always a state")
    }

    fn expect(&self, key: &Key, expected: ExpectedVersion) -> ExpectedKeyState {
        match (expected, self.newest().get(key)) {
            (ExpectedVersion::Current, Some(entry)) => ExpectedKeyState::At(entry.mod_rev),
            (ExpectedVersion::Current, None) | (ExpectedVersion::Absent, _) => {
                ExpectedKeyState::Absent
            }
            (ExpectedVersion::Stale, _) => ExpectedKeyState::At(self.start),
        }
    }

    fn shared_revision(
        &self,
        shared_revision: SharedRevisionCondition,
    ) -> Option<KeyGroupRevisionAction> {
        let key = |n: Option<u8>| n.map_or_else(|| key("shared"), name);
        match shared_revision {
            SharedRevisionCondition::None => None,
            SharedRevisionCondition::Bump { n } => {
                Some(KeyGroupRevisionAction::Bump { key: key(n), expect: None })
            }
            SharedRevisionCondition::BumpAtVersion { n, expected } => {
                let key = key(n);
                let expect = Some(self.expect(&key, expected));
                Some(KeyGroupRevisionAction::Bump { key, expect })
            }
            SharedRevisionCondition::RequireUnchanged { n, expected } => {
                let key = key(n);
                let expect = self.expect(&key, expected);
                Some(KeyGroupRevisionAction::Unchanged { key, expect })
            }
        }
    }

    fn with_additional(
        &self,
        mut transaction: Transaction,
        additional: &[AdditionalOperation],
    ) -> Transaction {
        for operation in additional {
            transaction = match *operation {
                AdditionalOperation::Require { n, expected } => {
                    transaction.add_condition(name(n), self.expect(&name(n), expected))
                }
                AdditionalOperation::Put { n, expected } => {
                    let expect = expected.map(|expected| self.expect(&name(n), expected));
                    transaction.add_put(name(n), value("beside"), expect)
                }
                AdditionalOperation::Delete { n, is_stale } => match self.newest().get(&name(n)) {
                    Some(entry) if !is_stale => transaction.add_delete(name(n), entry.mod_rev),
                    Some(_) => transaction.add_delete(name(n), self.start),
                    None => transaction,
                },
            };
        }
        transaction
    }

    /// Checks the conditions of a transaction and applies it.
    fn write(&mut self, transaction: &Transaction) -> Result<Revision, WriteError> {
        let key = transaction.key();
        let content = transaction.new_content().map(|content| &content.value);
        let current = self.newest().get(key).cloned();
        let is_nothing = current.is_none() && content.is_none();
        if is_nothing || !fits(current.as_ref(), transaction.expected_state()) {
            return Err(WriteError::Conflict { current });
        }
        for KeyCondition { key, expected_state: expect } in transaction.conditions() {
            let current = self.newest().get(key).cloned();
            if !fits(current.as_ref(), *expect) {
                return Err(WriteError::ConditionFailed { key: key.clone(), current });
            }
        }
        let revision = self.current().next();
        let mut state = self.newest().clone();
        self.change(&mut state, revision, key, content);
        for AdditionalWrite { key, value } in transaction.additional_writes() {
            self.change(&mut state, revision, key, value.as_ref());
        }
        self.states.push(state);
        Ok(revision)
    }

    /// Changes one key of a state and adds the change to the log.
    fn change(
        &mut self,
        state: &mut BTreeMap<Key, Entry>,
        revision: Revision,
        key: &Key,
        value: Option<&Bytes>,
    ) {
        let prev = state.get(key).cloned();
        let entry = value.map(|value| Entry {
            value: value.clone(),
            mod_rev: revision,
            create_rev: prev.as_ref().map_or(revision, |prev| prev.create_rev),
        });
        match &entry {
            Some(entry) => state.insert(key.clone(), entry.clone()),
            None => state.remove(key),
        };
        let change = match (entry, prev) {
            (Some(entry), None) => Change::Create(entry),
            (Some(entry), Some(prev)) => Change::Update { entry, prev },
            (None, Some(prev)) => Change::Delete { prev },
            (None, None) => panic!("a delete of nothing does not fit"),
        };
        self.log.push(Event { key: key.clone(), revision, change });
    }

    fn list(&self, request: &ListRequest, at: Revision) -> Result<ListPage, ReadError> {
        let state = self.state(at)?;
        let range = (request.from.clone(), Bound::Unbounded);
        let all =
            state.range(range).map(|(key, entry)| Item { key: key.clone(), entry: entry.clone() });
        let mut items: Vec<Item> = all.collect();
        let n_all = items.len();
        items.truncate(request.items_max.map_or(n_all, NonZeroUsize::get));
        let remaining = (n_all - items.len()) as u64;
        Ok(ListPage { items, n_remaining_items: remaining, revision: at })
    }

    fn compact(&mut self, at: Revision) -> Result<Revision, ReadError> {
        if at > self.current() {
            return Err(ReadError::Future { requested: at, current: self.current() });
        }
        self.floor = self.floor.max(at);
        Ok(self.floor)
    }

    fn log_after(&self, after: Revision) -> &[Event] {
        &self.log[self.log.partition_point(|event| event.revision <= after)..]
    }
}

fn fits(current: Option<&Entry>, expect: ExpectedKeyState) -> bool {
    match (current, expect) {
        (None, ExpectedKeyState::Absent) => true,
        (Some(entry), ExpectedKeyState::At(revision)) => entry.mod_rev == revision,
        (None, ExpectedKeyState::At(_)) | (Some(_), ExpectedKeyState::Absent) => false,
    }
}

fn name(n: u8) -> Key {
    key(&n.to_string())
}

async fn follow<H: Harness>(harness: &H, steps: &[Step]) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let floor = store.compaction_floor().await.unwrap();
    let states = vec![BTreeMap::new()];
    let mut model = Model { start, floor, states, log: Vec::new() };
    for (idx, step) in steps.iter().enumerate() {
        compare(&store, &mut model, idx, step).await;
        assert_eq!(store.current_rev().await, Ok(model.current()), "after {step:?}");
    }
    for at in model.floor.max(start).as_u64()..=model.current().as_u64() {
        let at = Revision::new(at);
        let request = ListRequest { at: At::Exactly(at), ..ListRequest::default() };
        let want = model.list(&request, at);
        assert_eq!(store.list(&things(), request).await, want, "at {at}");
        assert_eq!(history(&store, at).await, model.log_after(at), "after {at}");
    }
    store.close().await;
}

async fn compare(store: &dyn Store, model: &mut Model, idx: usize, step: &Step) {
    match *step {
        Step::Put { n, expected, shared_revision, ref additional } => {
            let (key, text) = (name(n), idx.to_string());
            let (expect, shared_revision) =
                (model.expect(&key, expected), model.shared_revision(shared_revision));
            let put = Put {
                key,
                value: value(&text),
                expected_state: expect,
                ttl: None,
                key_group_revision_action: shared_revision,
            };
            let transaction = model.with_additional(put.into(), additional);
            let want = model.write(&transaction);
            assert_eq!(store.write(transaction).await, want, "{step:?}");
        }
        Step::Delete { n, expected, shared_revision, ref additional } => {
            let key = name(n);
            let (expect, shared_revision) =
                (model.expect(&key, expected), model.shared_revision(shared_revision));
            let transaction = model.with_additional(
                Delete { key, expected_state: expect, key_group_revision_action: shared_revision }
                    .into(),
                additional,
            );
            let want = model.write(&transaction);
            assert_eq!(store.write(transaction).await, want, "{step:?}");
        }
        Step::Get { n, back } => {
            let (key, at) = (name(n), model.back(back.into()));
            let entry = model.state(at).map(|state| state.get(&key).cloned());
            let want = entry.map(|entry| GetResult { entry, revision: at });
            assert_eq!(store.get(&key, At::Exactly(at)).await, want, "{step:?}");
        }
        Step::List { from, limit, back } => {
            let at = model.back(back.into());
            let from = from.map_or(Bound::Unbounded, |n| {
                let key = name(n % N_KEYS);
                if n % 2 == 0 { Bound::Included(key) } else { Bound::Excluded(key) }
            });
            let limit = NonZeroUsize::new(limit.into());
            let request =
                ListRequest { from, items_max: limit, page_bytes_max: None, at: At::Exactly(at) };
            let want = model.list(&request, at);
            assert_eq!(store.list(&things(), request).await, want, "{step:?}");
        }
        Step::Compact { back } => {
            let at = model.back(back.into());
            assert_eq!(store.compact(at).await, model.compact(at), "{step:?}");
        }
        Step::Watch { back } => {
            let after = model.back(back.into()).max(model.floor);
            assert_eq!(history(store, after).await, model.log_after(after), "{step:?}");
        }
    }
}
