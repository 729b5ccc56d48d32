//! The breaker alone; time is an argument.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn options(failures_to_open: u32) -> BreakerOptions {
    BreakerOptions { failures_to_open, open_max: 4 * SECOND, ..BreakerOptions::default() }
}

fn breaker(failures_to_open: u32) -> Arc<Breaker> {
    Arc::new(Breaker::new(options(failures_to_open), |_| {}))
}

fn fail(breaker: &Arc<Breaker>, now: Instant) {
    breaker.admit(now).unwrap().ended(Sign::Dead, now);
}

#[test]
fn opens_after_failures_in_a_row_and_waits_longer_each_time() {
    let (breaker, now) = (breaker(2), Instant::now());
    for sign in [Sign::Dead, Sign::Alive, Sign::Dead, Sign::Dead] {
        breaker.admit(now).unwrap().ended(sign, now);
    }
    let halt = breaker.admit(now).unwrap_err();
    assert_eq!(halt, Halt::Open { n_failures: 2, wait: SECOND });
    let probe = breaker.admit(now + SECOND).unwrap();
    assert_eq!(breaker.admit(now + SECOND).unwrap_err(), Halt::Probing { n_failures: 2 });
    probe.ended(Sign::Dead, now + SECOND);
    let halt = breaker.admit(now + SECOND).unwrap_err();
    assert_eq!(halt, Halt::Open { n_failures: 3, wait: 2 * SECOND });
    breaker.admit(now + 3 * SECOND).unwrap().ended(Sign::Alive, now);
    assert!(breaker.admit(now).is_ok());
}

#[test]
fn the_wait_grows_to_its_limit() {
    let (breaker, mut now) = (breaker(1), Instant::now());
    fail(&breaker, now);
    for seconds in [1, 2, 4, 4, 4] {
        let wait = Duration::from_secs(seconds);
        let just_before = now + wait - Duration::from_nanos(1);
        assert!(matches!(breaker.admit(just_before), Err(Halt::Open { .. })), "{seconds}");
        now += wait;
        fail(&breaker, now);
    }
}

#[test]
fn a_probe_that_nobody_waited_for_is_followed_by_another() {
    let (breaker, now) = (breaker(1), Instant::now());
    fail(&breaker, now);
    drop(breaker.admit(now + SECOND).unwrap());
    assert_eq!(breaker.state(), BreakerState::Open);
    let probe = breaker.admit(now + SECOND).unwrap();
    probe.ended(Sign::Dead, now + SECOND);
    let halt = breaker.admit(now + SECOND).unwrap_err();
    assert_eq!(halt, Halt::Open { n_failures: 2, wait: 2 * SECOND }, "only the second one counts");
}

#[test]
fn a_call_that_nobody_waited_for_says_nothing() {
    let (breaker, now) = (breaker(2), Instant::now());
    fail(&breaker, now);
    drop(breaker.admit(now).unwrap());
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, now);
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn whoever_answers_is_alive_also_late() {
    let (breaker, now) = (breaker(1), Instant::now());
    let slow = breaker.admit(now).unwrap();
    let slower = breaker.admit(now).unwrap();
    fail(&breaker, now);
    slower.ended(Sign::Dead, now);
    assert_eq!(breaker.admit(now).unwrap_err(), Halt::Open { n_failures: 1, wait: SECOND });
    slow.ended(Sign::Alive, now);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

/// A probe may still be under way when an older call has closed the breaker, and it has opened and
/// waited again. What becomes of that one says nothing about the new probe.
#[test]
fn a_late_probe_is_not_taken_for_the_one_under_way() {
    for is_given_up in [true, false] {
        let (breaker, now) = (breaker(1), Instant::now());
        let old = breaker.admit(now).unwrap();
        fail(&breaker, now);
        let late = breaker.admit(now + SECOND).unwrap();
        old.ended(Sign::Alive, now + SECOND);
        fail(&breaker, now + SECOND);
        let later = now + 2 * SECOND;
        let probe = breaker.admit(later).unwrap();
        if is_given_up {
            drop(late);
        } else {
            late.ended(Sign::Dead, later);
        }
        assert_eq!(breaker.admit(later).unwrap_err(), Halt::Probing { n_failures: 1 });
        probe.ended(Sign::Alive, later);
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}

#[test]
fn a_disabled_one_never_opens() {
    let disabled = BreakerOptions { is_enabled: false, ..options(1) };
    let (breaker, now) = (Arc::new(Breaker::new(disabled, |_| {})), Instant::now());
    for _ in 0..10 {
        fail(&breaker, now);
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn changes_of_state_are_told_once_and_in_order() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = {
        let told = Arc::clone(&told);
        move |state: BreakerState| told.lock().unwrap().push(state.name())
    };
    let (breaker, now) = (Arc::new(Breaker::new(options(2), tell)), Instant::now());
    fail(&breaker, now);
    fail(&breaker, now);
    drop(breaker.admit(now + SECOND).unwrap());
    fail(&breaker, now + SECOND);
    breaker.admit(now + 3 * SECOND).unwrap().ended(Sign::Alive, now);
    breaker.admit(now).unwrap().ended(Sign::Alive, now);
    let want = ["open", "half_open", "open", "half_open", "open", "half_open", "closed"];
    assert_eq!(*told.lock().unwrap(), want);
}

#[test]
fn what_status_codes_say() {
    for (code, want) in [
        (200, Sign::Alive),
        (302, Sign::Alive),
        (404, Sign::Alive),
        (429, Sign::Dead),
        (499, Sign::Alive),
        (500, Sign::Dead),
        (599, Sign::Dead),
    ] {
        assert_eq!(Sign::of_status(code), want, "{code}");
    }
}

#[test]
fn the_longest_wait_does_not_overflow() {
    let endless = BreakerOptions { open_min: Duration::MAX, open_max: Duration::MAX, ..options(1) };
    let (breaker, now) = (Arc::new(Breaker::new(endless, |_| {})), Instant::now());
    fail(&breaker, now);
    fail(&breaker, now);
    assert_eq!(breaker.state(), BreakerState::Open);
}

/// What may happen to a breaker.
#[derive(Debug, Clone, Copy)]
enum Step {
    Begin,
    End(usize, Sign),
    GiveUp(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let sign = prop_oneof![3 => Just(Sign::Dead), 1 => Just(Sign::Alive)];
    prop_oneof![
        4 => Just(Step::Begin),
        3 => (any::<usize>(), sign).prop_map(|(which, sign)| Step::End(which, sign)),
        1 => any::<usize>().prop_map(Step::GiveUp),
        2 => (0..3000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever happens, at most one probe is under way while the breaker is half open, it never
    /// stays half open without one, and a call is refused only while the breaker is not closed.
    #[test]
    fn one_probe_at_a_time(steps in proptest::collection::vec(step(), 1..200)) {
        let (breaker, mut now) = (breaker(2), Instant::now());
        let mut calls: Vec<Pass> = Vec::new();
        for step in steps {
            match step {
                Step::Begin => {
                    let before = breaker.state();
                    match breaker.admit(now) {
                        Ok(pass) => {
                            prop_assert_eq!(pass.probe.is_some(), before == BreakerState::Open);
                            calls.push(pass);
                        }
                        Err(_) => prop_assert_ne!(before, BreakerState::Closed),
                    }
                }
                Step::End(which, sign) if !calls.is_empty() => {
                    calls.swap_remove(which % calls.len()).ended(sign, now);
                    if sign == Sign::Alive {
                        prop_assert_eq!(breaker.state(), BreakerState::Closed);
                    }
                }
                Step::GiveUp(which) if !calls.is_empty() => {
                    drop(calls.swap_remove(which % calls.len()));
                }
                Step::End(..) | Step::GiveUp(_) => {}
                Step::Wait(millis) => now += Duration::from_millis(millis),
            }
            if let Phase::HalfOpen { probe, .. } = *breaker.lock() {
                let n_of_it = calls.iter().filter(|pass| pass.probe == Some(probe)).count();
                prop_assert_eq!(n_of_it, 1);
            }
        }
    }
}
