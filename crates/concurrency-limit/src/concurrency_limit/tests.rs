use proptest::prelude::*;

use super::*;

#[test]
fn one_user_gets_half_rounded_up_and_at_least_one() {
    for (permits_max, of_one_user) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (256, 128)] {
        let limit = Arc::new(ConcurrencyLimit::new(permits_max));
        let permits: Vec<_> = std::iter::from_fn(|| limit.acquire_permit("attacker").ok())
            .take(permits_max + 1)
            .collect();
        assert_eq!(permits.len(), of_one_user, "of {permits_max}");
        let is_room_left = of_one_user < permits_max;
        assert_eq!(limit.acquire_permit("victim").is_ok(), is_room_left, "of {permits_max}");
    }
}

#[test]
fn the_reason_says_whose_limit_it_is() {
    let limit = Arc::new(ConcurrencyLimit::new(2));
    let held = limit.acquire_permit("jane").unwrap();
    assert_eq!(limit.acquire_permit("jane").unwrap_err(), LimitReached::User { permits_max: 1 });
    let other = limit.acquire_permit("joe").unwrap();
    assert_eq!(limit.acquire_permit("jane").unwrap_err(), LimitReached::Total { permits_max: 2 });
    drop((held, other));
    assert!(limit.acquire_permit("jane").is_ok());
}

#[derive(Debug, Clone)]
enum Step {
    Acquire(u8),
    /// Drops one of the permits that are held, by position.
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![3 => (0_u8..4).prop_map(Step::Acquire), 2 => any::<usize>().prop_map(Step::Release)]
}

proptest! {
    /// After every step the counts are those of a list of permits, no limit is exceeded, and a permit
    /// is refused only at a limit. Without calls in flight nothing is kept.
    #[test]
    fn it_counts_as_a_list_does(permits_max in 0_usize..9, steps in prop::collection::vec(step(), 0..60)) {
        let limit = Arc::new(ConcurrencyLimit::new(permits_max));
        let mut held: Vec<(String, Permit)> = Vec::new();
        for step in steps {
            match step {
                Step::Acquire(user) => {
                    let user = user.to_string();
                    let n_of_user = held.iter().filter(|(holder, _)| *holder == user).count();
                    match limit.acquire_permit(&user) {
                        Ok(permit) => held.push((user, permit)),
                        Err(LimitReached::Total { .. }) => prop_assert_eq!(held.len(), permits_max),
                        Err(LimitReached::User { .. }) => {
                            prop_assert_eq!(n_of_user, limit.permits_per_user_max());
                        }
                    }
                }
                Step::Release(_) if held.is_empty() => {}
                Step::Release(position) => drop(held.swap_remove(position % held.len())),
            }
            let permits_in_use = limit.lock();
            prop_assert_eq!(permits_in_use.n_permits, held.len());
            prop_assert!(held.len() <= permits_max);
            let mut users: Vec<&str> = held.iter().map(|(user, _)| user.as_str()).collect();
            users.sort_unstable();
            users.dedup();
            prop_assert_eq!(permits_in_use.n_permits_by_user.len(), users.len());
            for (user, n_permits) in &permits_in_use.n_permits_by_user {
                let n_held = held.iter().filter(|(holder, _)| **holder == **user).count();
                prop_assert_eq!(*n_permits, n_held);
                prop_assert!(n_held <= limit.permits_per_user_max());
            }
        }
        drop(held);
        prop_assert!(limit.lock().n_permits_by_user.is_empty());
    }
}

#[test]
fn a_permit_grows_within_the_limits() {
    let limit = Arc::new(ConcurrencyLimit::new_with_limit_per_user(100, 40));
    let mut held = limit.acquire_permits("jane", 10).unwrap();
    held.grow_permit_to(5).unwrap();
    assert_eq!(limit.n_permits_in_use(), 10);
    held.grow_permit_to(40).unwrap();
    assert_eq!(held.grow_permit_to(41), Err(LimitReached::User { permits_max: 40 }));
    assert_eq!(limit.n_permits_in_use(), 40);
    held.grow_permit_beyond_limit(45);
    held.grow_permit_to(45).unwrap();
    assert_eq!(limit.n_permits_in_use(), 45);
    drop(held);
    assert_eq!(limit.n_permits_in_use(), 0);
}

#[test]
fn several_permits_count_together_and_can_be_given_back_in_part() {
    let limit = Arc::new(ConcurrencyLimit::new_with_limit_per_user(100, 40));
    let mut held = limit.acquire_permits("jane", 40).unwrap();
    assert_eq!(
        limit.acquire_permits("jane", 1).unwrap_err(),
        LimitReached::User { permits_max: 40 }
    );
    held.shrink_permit_to(15);
    held.shrink_permit_to(30);
    assert_eq!(limit.n_permits_in_use(), 15);
    let _more = limit.acquire_permits("jane", 25).unwrap();
    let _joe = limit.acquire_permits("joe", 40).unwrap();
    assert_eq!(
        limit.acquire_permits("ada", 21).unwrap_err(),
        LimitReached::Total { permits_max: 100 }
    );
    let exempt = limit.acquire_permits_beyond_limit("root", 1_000);
    assert_eq!(limit.n_permits_in_use(), 1_080);
    assert_eq!(
        limit.acquire_permits("ada", 1).unwrap_err(),
        LimitReached::Total { permits_max: 100 }
    );
    drop(exempt);
    assert!(limit.acquire_permits("ada", 20).is_ok());
}
