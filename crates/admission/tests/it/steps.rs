//! The timers of pending initializers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use admission::{
    ExpiredInitializer, ExpiryAction, InitializerOptions, InitializerTimers, InitializersOrigin,
    PendingInitializer, Snapshot, runnable_initializers,
};
use proptest::prelude::*;

use crate::initialization::configured;

const STEP: Duration = Duration::from_secs(5);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn sequential(names: &[&str]) -> Vec<PendingInitializer> {
    names
        .iter()
        .map(|name| PendingInitializer { name: (*name).to_owned(), after_initializers: None })
        .collect()
}

fn graph(entries: &[(&str, &[&str])]) -> Vec<PendingInitializer> {
    let owned = |after: &[&str]| after.iter().map(|name| (*name).to_owned()).collect();
    let entry = |(name, after): &(&str, &[&str])| PendingInitializer {
        name: (*name).to_owned(),
        after_initializers: Some(owned(after)),
    };
    entries.iter().map(entry).collect()
}

/// The timers of an object that was just created.
fn new_timers(pending: &[PendingInitializer]) -> InitializerTimers {
    let mut steps =
        InitializerTimers::new(&InitializerOptions::default(), InitializersOrigin::Configuration);
    steps.observe_pending(pending, Duration::ZERO);
    steps
}

fn fire(
    steps: &mut InitializerTimers,
    at: f64,
    configured: &Snapshot,
) -> Vec<(String, ExpiryAction)> {
    let expired = steps.take_expired_initializers(seconds(at), Some(configured));
    expired.into_iter().map(|expired| (expired.name, expired.expiry_action)).collect()
}

fn removed(names: &[&str]) -> Vec<(String, ExpiryAction)> {
    names.iter().map(|name| ((*name).to_owned(), ExpiryAction::Remove)).collect()
}

fn failed(names: &[&str]) -> Vec<(String, ExpiryAction)> {
    names.iter().map(|name| ((*name).to_owned(), ExpiryAction::Fail)).collect()
}

#[test]
fn each_dead_initializer_takes_one_timeout() {
    let dead = configured(&[("a.b.c", "Ignore"), ("b.b.c", "Ignore")]);
    let mut steps = new_timers(&sequential(&["a.b.c", "b.b.c"]));
    assert_eq!(steps.next_due_at(), STEP);
    assert!(fire(&mut steps, 4.999, &dead).is_empty());
    assert_eq!(fire(&mut steps, 5.0, &dead), removed(&["a.b.c"]));
    steps.observe_pending(&sequential(&["b.b.c"]), STEP);
    assert_eq!(steps.next_due_at(), 2 * STEP);
    assert!(fire(&mut steps, 9.999, &dead).is_empty());
    assert_eq!(fire(&mut steps, 10.0, &dead), removed(&["b.b.c"]));
    steps.observe_pending(&[], 2 * STEP);
    assert!(fire(&mut steps, 100.0, &dead).is_empty());
}

#[test]
fn failure_policy_fail_reports_once() {
    let all = configured(&[("a.b.c", "Ignore"), ("b.b.c", "Fail")]);
    let mut steps = new_timers(&sequential(&["a.b.c", "b.b.c"]));
    assert_eq!(fire(&mut steps, 5.0, &all), removed(&["a.b.c"]));
    steps.observe_pending(&sequential(&["b.b.c"]), STEP);
    let expired = steps.take_expired_initializers(2 * STEP, Some(&all));
    let want = ExpiredInitializer {
        name: "b.b.c".to_owned(),
        pending_idx: 0,
        expiry_action: ExpiryAction::Fail,
    };
    assert_eq!(expired, [want]);
    assert_eq!(steps.next_due_at(), 3 * STEP);
    assert!(fire(&mut steps, 15.0, &all).is_empty(), "the creator was told");
    let relaxed = configured(&[("b.b.c", "Ignore")]);
    assert!(fire(&mut steps, 19.0, &relaxed).is_empty());
    assert_eq!(fire(&mut steps, 20.0, &relaxed), removed(&["b.b.c"]), "a later change is honoured");
}

#[test]
fn the_timer_is_not_reset_by_other_changes() {
    let mut steps = new_timers(&sequential(&["a.b.c", "b.b.c"]));
    steps.observe_pending(&sequential(&["a.b.c", "b.b.c", "c.b.c"]), seconds(4.0));
    assert_eq!(steps.next_due_at(), STEP);
    let raised = configured(&[("a.b.c", "Fail")]);
    assert_eq!(fire(&mut steps.clone(), 5.0, &raised), failed(&["a.b.c"]));
    assert_eq!(fire(&mut steps.clone(), 5.0, &configured(&[])), removed(&["a.b.c"]));
    steps.observe_pending(&sequential(&["b.b.c", "c.b.c"]), seconds(4.5));
    steps.observe_pending(&sequential(&["a.b.c", "b.b.c", "c.b.c"]), seconds(4.6));
    assert_eq!(steps.next_due_at(), seconds(9.6), "removed and added again is new");
}

#[test]
fn unregistered_initializers_of_clients_are_not_skipped() {
    let mut steps =
        InitializerTimers::new(&InitializerOptions::default(), InitializersOrigin::Client);
    steps.observe_pending(&sequential(&["x.y.z"]), Duration::ZERO);
    assert_eq!(fire(&mut steps.clone(), 5.0, &configured(&[])), failed(&["x.y.z"]));
    let known = configured(&[("x.y.z", "Ignore")]);
    assert_eq!(fire(&mut steps, 5.0, &known), removed(&["x.y.z"]));
}

#[test]
fn parallel_initializers_expire_together() {
    let dead = configured(&[("a.b.c", "Ignore"), ("b.b.c", "Ignore"), ("c.b.c", "Ignore")]);
    let mut steps = new_timers(&graph(&[("a.b.c", &[]), ("b.b.c", &["a.b.c"]), ("c.b.c", &[])]));
    let expired = steps.take_expired_initializers(STEP, Some(&dead));
    let idx: Vec<usize> = expired.iter().map(|expired| expired.pending_idx).collect();
    assert_eq!(idx, [0, 2]);
    steps.observe_pending(&graph(&[("b.b.c", &[]), ("c.b.c", &[])]), STEP);
    assert_eq!(fire(&mut steps, 5.0, &dead), removed(&["c.b.c"]), "b's timer begins");
    steps.observe_pending(&graph(&[("b.b.c", &[])]), seconds(5.1));
    assert_eq!(steps.next_due_at(), 2 * STEP);
    assert_eq!(fire(&mut steps, 10.0, &dead), removed(&["b.b.c"]));
}

#[test]
fn stale_configuration_delays_expiry() {
    let dead = configured(&[("a.b.c", "Ignore")]);
    let mut steps = new_timers(&sequential(&["a.b.c"]));
    assert!(steps.take_expired_initializers(STEP, None).is_empty());
    assert_eq!(steps.next_due_at(), seconds(6.0));
    assert!(steps.take_expired_initializers(seconds(6.0), None).is_empty());
    assert_eq!(fire(&mut steps, 7.0, &dead), removed(&["a.b.c"]));
}

#[test]
fn failed_removals_are_retried() {
    let dead = configured(&[("a.b.c", "Ignore")]);
    let mut steps = new_timers(&sequential(&["a.b.c"]));
    for at in [5.0, 5.0, 5.1] {
        assert_eq!(fire(&mut steps, at, &dead), removed(&["a.b.c"]), "a race was lost");
    }
    steps.postpone_removal("a.b.c", seconds(5.1));
    assert_eq!(steps.next_due_at(), seconds(6.1));
    assert!(fire(&mut steps, 6.0, &dead).is_empty());
    assert_eq!(fire(&mut steps, 6.1, &dead), removed(&["a.b.c"]));
}

#[test]
fn a_duplicate_name_takes_two_timeouts() {
    let dead = configured(&[("a.b.c", "Ignore")]);
    let mut steps = new_timers(&sequential(&["a.b.c", "a.b.c"]));
    assert_eq!(fire(&mut steps, 5.0, &dead), removed(&["a.b.c"]));
    steps.observe_pending(&sequential(&["a.b.c"]), STEP);
    assert_eq!(steps.next_due_at(), 2 * STEP);
    let mut steps = new_timers(&graph(&[("a.b.c", &[]), ("a.b.c", &[])]));
    assert_eq!(fire(&mut steps, 5.0, &dead), removed(&["a.b.c"]), "one at a time");
}

#[test]
fn a_timer_restarts_if_the_initializer_must_wait_again() {
    let mut steps = new_timers(&sequential(&["a.b.c"]));
    steps.observe_pending(&sequential(&["x.y.z", "a.b.c"]), seconds(3.0));
    assert_eq!(steps.next_due_at(), seconds(8.0));
    steps.observe_pending(&sequential(&["a.b.c"]), seconds(7.0));
    assert_eq!(steps.next_due_at(), seconds(12.0));
}

#[test]
fn timers_end_at_the_global_timeout() {
    let fail = configured(&[("a.b.c", "Fail")]);
    let mut steps = new_timers(&sequential(&["a.b.c"]));
    let mut n_rounds = 0;
    loop {
        let now = steps.next_due_at();
        if steps.have_timers_ended(now) {
            break;
        }
        let _ = steps.take_expired_initializers(now, Some(&fail));
        n_rounds += 1;
    }
    assert_eq!((steps.next_due_at(), n_rounds), (seconds(600.0), 119));
    assert!(!steps.have_timers_ended(seconds(599.999)));
    let none = InitializerOptions {
        initializer_step_timeout: Duration::ZERO,
        ..InitializerOptions::default()
    };
    let mut steps = InitializerTimers::new(&none, InitializersOrigin::Configuration);
    steps.observe_pending(&sequential(&["a.b.c"]), Duration::ZERO);
    let now = steps.next_due_at();
    assert_eq!(steps.take_expired_initializers(now, Some(&fail)).len(), 1);
    assert!(steps.next_due_at() > now, "options of zero do not spin");
}

#[test]
fn removal_annotations_are_unique_per_entry() {
    let mut steps = new_timers(&sequential(&["a.b.c", "b.b.c"]));
    steps.observe_pending(&sequential(&["b.b.c", "x.y.z"]), STEP);
    for (name, idx) in [("a.b.c", 0), ("b.b.c", 1), ("x.y.z", 2)] {
        let want = format!("failed-open.initializer.portcullis.io/{idx}");
        assert_eq!(steps.removal_annotation_key(name), want);
    }
}

/// The behaviour of an initializer in a random history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    /// The initializer does not act, and its failure policy is `Ignore`.
    DeadIgnore,
    /// The initializer does not act, and its failure policy is `Fail`.
    DeadFail,
    /// The initializer acts this many milliseconds after it can.
    Acts(u64),
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        3 => Just(Behaviour::DeadIgnore),
        1 => Just(Behaviour::DeadFail),
        3 => (0..5000_u64).prop_map(Behaviour::Acts),
    ]
}

/// Entries whose `after_initializers` names earlier entries, or a sequential list.
fn plan() -> impl Strategy<Value = (Vec<PendingInitializer>, Vec<Behaviour>)> {
    let entry = (behaviour(), prop::collection::btree_set(0..8_usize, 0..3));
    (prop::collection::vec(entry, 1..8), any::<bool>()).prop_map(|(entries, is_graph)| {
        let name = |idx: usize| format!("n{idx}.b.c");
        let pending = entries.iter().enumerate().map(|(idx, (_, after))| {
            let before: Vec<String> = after.range(..idx).map(|idx| name(*idx)).collect();
            PendingInitializer { name: name(idx), after_initializers: is_graph.then_some(before) }
        });
        (pending.collect(), entries.iter().map(|(behaviour, _)| *behaviour).collect())
    })
}

proptest! {
    /// Runs objects through their life on a clock of milliseconds. An initializer with failure policy `Ignore`
    /// that does not act is removed exactly once, five seconds after it could act. One with `Fail` fails once and
    /// stays. One that acts is never removed. A stale configuration only delays these actions.
    #[test]
    fn timers_remove_only_dead_initializers(
        (mut pending, behaviours) in plan(),
        noise in prop::collection::btree_set(0..60_000_u64, 0..20),
        stale in (0..40_000_u64, 0..4_000_u64),
    ) {
        let policy = |behaviour: &Behaviour| match behaviour {
            Behaviour::DeadFail => "Fail",
            Behaviour::DeadIgnore | Behaviour::Acts(_) => "Ignore",
        };
        let entries: Vec<(&str, &str)> =
            pending.iter().zip(&behaviours).map(|(entry, own)| (entry.name.as_str(), policy(own))).collect();
        let snapshot = configured(&entries);
        let behaviour: BTreeMap<String, Behaviour> =
            pending.iter().zip(&behaviours).map(|(entry, own)| (entry.name.clone(), *own)).collect();
        let stale = stale.0..stale.0 + stale.1;

        let mut steps = new_timers(&pending);
        let mut since: BTreeMap<String, u64> = BTreeMap::new();
        let (mut removed, mut failed) = (BTreeSet::new(), BTreeSet::new());
        let mut now = 0_u64;
        let mut noise = noise.into_iter().peekable();
        loop {
            let can_act: BTreeSet<String> =
                runnable_initializers(&pending).into_iter().map(|idx| pending[idx].name.clone()).collect();
            since.retain(|name, _| can_act.contains(name));
            for name in can_act {
                since.entry(name).or_insert(now);
            }
            let acts = since.iter().filter_map(|(name, new_timers)| match behaviour[name] {
                Behaviour::Acts(after) => Some((new_timers + after, name.clone())),
                Behaviour::DeadIgnore | Behaviour::DeadFail => None,
            });
            let acts = acts.min();
            let due = u64::try_from(steps.next_due_at().as_millis()).unwrap();
            let event = [acts.as_ref().map(|(at, _)| *at), noise.peek().copied(), Some(due)];
            let next = event.into_iter().flatten().min().unwrap();
            prop_assert!(next >= now || next == due, "time does not go back");
            now = now.max(next);
            if steps.have_timers_ended(Duration::from_millis(now)) {
                break;
            }
            if let Some((_, name)) = acts.filter(|(at, _)| *at <= now) {
                pending.retain(|entry| entry.name != name);
                steps.observe_pending(&pending, Duration::from_millis(now));
                since.remove(&name);
                continue;
            }
            if noise.next_if(|at| *at <= now).is_some() {
                steps.observe_pending(&pending, Duration::from_millis(now));
                continue;
            }
            let configured = (!stale.contains(&now)).then_some(&snapshot);
            for ExpiredInitializer { name, pending_idx: idx, expiry_action: action } in steps.take_expired_initializers(Duration::from_millis(now), configured) {
                prop_assert_eq!(&pending[idx].name, &name);
                let took = now - since[&name];
                let is_delayed = stale.contains(&(now - 1000)) || stale.contains(&(since[&name] + 5000));
                prop_assert!(took == 5000 || (took > 5000 && is_delayed), "{name} after {took} ms");
                match action {
                    ExpiryAction::Remove => {
                        prop_assert_eq!(behaviour[&name], Behaviour::DeadIgnore);
                        prop_assert!(removed.insert(name));
                    }
                    ExpiryAction::Fail => {
                        prop_assert_eq!(behaviour[&name], Behaviour::DeadFail);
                        prop_assert!(failed.insert(name));
                    }
                }
            }
            pending.retain(|entry| !removed.contains(&entry.name));
            steps.observe_pending(&pending, Duration::from_millis(now));
        }
        for entry in &pending {
            let is_blocked = !runnable_initializers(&pending).iter().any(|idx| pending[*idx].name == entry.name);
            prop_assert!(is_blocked || failed.contains(&entry.name), "{} is left", entry.name);
        }
        prop_assert!(pending.is_empty() || !failed.is_empty());
    }
}
