//! Compares random histories with a model that keeps every state.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Bound;

use bytes::Bytes;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use store::{
    AdditionalWrite, At, Change, Condition, Delete, Entry, Event, Expect, GetResult, Item, Key,
    ListRequest, Page, Put, ReadError, Revision, SharedRevision, Store, Transaction, WriteError,
};

use crate::shorthand::{history, key, things, value};
use crate::{Harness, block_on};

/// Few keys, so that operations often use the same one.
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
enum Belief {
    Right,
    Stale,
    Absent,
}

/// The condition of a write on the mark. Sometimes the mark is one of the other keys.
#[derive(Debug, Clone, Copy)]
enum Marking {
    None,
    Anywhere { n: Option<u8> },
    Believed { n: Option<u8>, belief: Belief },
    Kept { n: Option<u8>, belief: Belief },
}

/// The condition or write of a transaction on another key, which may be its own key or the mark.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Require {
        n: u8,
        belief: Belief,
    },
    Put {
        n: u8,
        belief: Option<Belief>,
    },
    /// Deletes only a key that exists.
    Delete {
        n: u8,
        is_stale: bool,
    },
}

/// One operation. `back` counts revisions before the newest one; a negative number is in the future.
#[derive(Debug, Clone)]
enum Step {
    Put { n: u8, belief: Belief, marking: Marking, beside: Vec<Beside> },
    Delete { n: u8, belief: Belief, marking: Marking, beside: Vec<Beside> },
    Get { n: u8, back: i8 },
    List { from: Option<u8>, limit: u8, back: i8 },
    Compact { back: i8 },
    Watch { back: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let belief = prop_oneof![
        8 => proptest::prelude::Just(Belief::Right),
        1 => proptest::prelude::Just(Belief::Stale),
        1 => proptest::prelude::Just(Belief::Absent),
    ];
    let mark = prop_oneof![
        4 => proptest::prelude::Just(None),
        1 => (0..N_KEYS).prop_map(Some),
    ];
    let marking = prop_oneof![
        2 => proptest::prelude::Just(Marking::None),
        1 => mark.clone().prop_map(|n| Marking::Anywhere { n }),
        2 => (mark.clone(), belief.clone())
            .prop_map(|(n, belief)| Marking::Believed { n, belief }),
        1 => (mark, belief.clone()).prop_map(|(n, belief)| Marking::Kept { n, belief }),
    ];
    let beside = prop_oneof![
        1 => (0..N_KEYS, belief.clone()).prop_map(|(n, belief)| Beside::Require { n, belief }),
        2 => (0..N_KEYS, proptest::option::weighted(0.7, belief.clone()))
            .prop_map(|(n, belief)| Beside::Put { n, belief }),
        1 => (0..N_KEYS, proptest::bool::weighted(0.1))
            .prop_map(|(n, is_stale)| Beside::Delete { n, is_stale }),
    ];
    let beside = prop_oneof![
        2 => proptest::prelude::Just(Vec::new()),
        1 => proptest::collection::vec(beside, 1..4),
    ];
    let back = -2..20_i8;
    prop_oneof![
        6 => (0..N_KEYS, belief.clone(), marking.clone(), beside.clone())
            .prop_map(|(n, belief, marking, beside)| Step::Put { n, belief, marking, beside }),
        3 => (0..N_KEYS, belief, marking, beside)
            .prop_map(|(n, belief, marking, beside)| Step::Delete { n, belief, marking, beside }),
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
        Revision::new(self.start.number() + self.states.len() as u64 - 1)
    }

    fn back(&self, back: i64) -> Revision {
        let number = self.current().number().saturating_add_signed(-back);
        Revision::new(number).max(self.start)
    }

    fn state(&self, at: Revision) -> Result<&BTreeMap<Key, Entry>, ReadError> {
        if at > self.current() {
            return Err(ReadError::Future { requested: at, current: self.current() });
        }
        if at < self.floor {
            return Err(ReadError::Compacted { requested: at, floor: self.floor });
        }
        Ok(&self.states[(at.number() - self.start.number()) as usize])
    }

    fn newest(&self) -> &BTreeMap<Key, Entry> {
        self.states.last().expect("there is always a state")
    }

    fn expect(&self, key: &Key, belief: Belief) -> Expect {
        match (belief, self.newest().get(key)) {
            (Belief::Right, Some(entry)) => Expect::At(entry.mod_rev),
            (Belief::Right, None) | (Belief::Absent, _) => Expect::Absent,
            (Belief::Stale, _) => Expect::At(self.start),
        }
    }

    fn mark(&self, marking: Marking) -> Option<SharedRevision> {
        let key = |n: Option<u8>| n.map_or_else(|| key("mark"), name);
        match marking {
            Marking::None => None,
            Marking::Anywhere { n } => Some(SharedRevision::Bump { key: key(n), expect: None }),
            Marking::Believed { n, belief } => {
                let key = key(n);
                let expect = Some(self.expect(&key, belief));
                Some(SharedRevision::Bump { key, expect })
            }
            Marking::Kept { n, belief } => {
                let key = key(n);
                let expect = self.expect(&key, belief);
                Some(SharedRevision::Unchanged { key, expect })
            }
        }
    }

    fn with_beside(&self, mut transaction: Transaction, beside: &[Beside]) -> Transaction {
        for beside in beside {
            transaction = match *beside {
                Beside::Require { n, belief } => {
                    transaction.require(name(n), self.expect(&name(n), belief))
                }
                Beside::Put { n, belief } => {
                    let expect = belief.map(|belief| self.expect(&name(n), belief));
                    transaction.also_put(name(n), value("beside"), expect)
                }
                Beside::Delete { n, is_stale } => match self.newest().get(&name(n)) {
                    Some(entry) if !is_stale => transaction.also_delete(name(n), entry.mod_rev),
                    Some(_) => transaction.also_delete(name(n), self.start),
                    None => transaction,
                },
            };
        }
        transaction
    }

    /// Checks the conditions of a transaction and applies it.
    fn write(&mut self, transaction: &Transaction) -> Result<Revision, WriteError> {
        let key = transaction.key();
        let content = transaction.content().map(|content| &content.value);
        let current = self.newest().get(key).cloned();
        let is_nothing = current.is_none() && content.is_none();
        if is_nothing || !fits(current.as_ref(), transaction.expect()) {
            return Err(WriteError::Conflict { current });
        }
        for Condition { key, expect } in transaction.conditions() {
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

    fn list(&self, request: &ListRequest, at: Revision) -> Result<Page, ReadError> {
        let state = self.state(at)?;
        let range = (request.from.clone(), Bound::Unbounded);
        let all =
            state.range(range).map(|(key, entry)| Item { key: key.clone(), entry: entry.clone() });
        let mut items: Vec<Item> = all.collect();
        let n_all = items.len();
        items.truncate(request.limit.map_or(n_all, NonZeroUsize::get));
        let remaining = (n_all - items.len()) as u64;
        Ok(Page { items, remaining, revision: at })
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

fn fits(current: Option<&Entry>, expect: Expect) -> bool {
    match (current, expect) {
        (None, Expect::Absent) => true,
        (Some(entry), Expect::At(revision)) => entry.mod_rev == revision,
        (None, Expect::At(_)) | (Some(_), Expect::Absent) => false,
    }
}

fn name(n: u8) -> Key {
    key(&n.to_string())
}

async fn follow<H: Harness>(harness: &H, steps: &[Step]) {
    let store = harness.fresh().await;
    let start = store.current_rev().await.unwrap();
    let floor = store.compact_floor().await.unwrap();
    let states = vec![BTreeMap::new()];
    let mut model = Model { start, floor, states, log: Vec::new() };
    for (idx, step) in steps.iter().enumerate() {
        compare(&store, &mut model, idx, step).await;
        assert_eq!(store.current_rev().await, Ok(model.current()), "after {step:?}");
    }
    for at in model.floor.max(start).number()..=model.current().number() {
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
        Step::Put { n, belief, marking, ref beside } => {
            let (key, text) = (name(n), idx.to_string());
            let (expect, mark) = (model.expect(&key, belief), model.mark(marking));
            let put = Put { key, value: value(&text), expect, ttl: None, shared_revision: mark };
            let transaction = model.with_beside(put.into(), beside);
            let want = model.write(&transaction);
            assert_eq!(store.write(transaction).await, want, "{step:?}");
        }
        Step::Delete { n, belief, marking, ref beside } => {
            let key = name(n);
            let (expect, mark) = (model.expect(&key, belief), model.mark(marking));
            let transaction =
                model.with_beside(Delete { key, expect, shared_revision: mark }.into(), beside);
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
            let request = ListRequest { from, limit, at: At::Exactly(at) };
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
