use std::time::Duration;

use super::*;
use crate::{
    FlowDistinguisher, NonResourceRule, PolicyRulesWithSubjects, QueuingOptions, RequestTarget,
    Subject,
};

fn level(name: &str, shares: u32, limit_response: LimitResponse) -> PriorityLevel {
    let kind = PriorityLevelKind::Limited { nominal_concurrency_shares: shares, limit_response };
    PriorityLevel { name: name.to_owned(), uid: format!("uid-{name}"), kind }
}

fn exempt() -> PriorityLevel {
    PriorityLevel { name: "exempt".to_owned(), uid: String::new(), kind: PriorityLevelKind::Exempt }
}

fn schema(name: &str, precedence: i32, level: &str, subject: Subject) -> Arc<FlowSchema> {
    let path_rule =
        NonResourceRule { verbs: vec!["*".to_owned()], non_resource_urls: vec!["*".to_owned()] };
    Arc::new(FlowSchema {
        name: name.to_owned(),
        uid: String::new(),
        matching_precedence: precedence,
        priority_level_name: level.to_owned(),
        flow_distinguisher: Some(FlowDistinguisher::ByUser),
        rules: vec![PolicyRulesWithSubjects {
            subjects: vec![subject],
            resource_rules: Vec::new(),
            non_resource_rules: vec![path_rule],
        }],
    })
}

fn everybody() -> Subject {
    Subject::User("*".to_owned())
}

fn classify_request(controller: &FlowController, user: &str, groups: &[String]) -> Classification {
    let target = RequestTarget::Path("/version");
    controller
        .classify_request(&RequestDigest { user, groups, verb: "get", request_target: target })
        .expect("a schema")
}

fn queue(queue_length_limit: u32) -> LimitResponse {
    LimitResponse::Queue(QueuingOptions { n_queues: 64, hand_size: 6, queue_length_limit })
}

fn in_a_moment() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

#[tokio::test(start_paused = true)]
async fn the_lowest_precedence_wins_and_ties_are_broken_by_name() {
    let controller = FlowController::new(10);
    let levels = [exempt(), level("normal", 10, LimitResponse::Reject)];
    let masters = Subject::Group("system:masters".to_owned());
    let schemas = vec![
        schema("zebra", 5, "normal", everybody()),
        schema("ape", 5, "normal", everybody()),
        schema("dangling", 1, "missing", everybody()),
        schema("exempt", 2, "exempt", masters),
    ];
    controller.replace_schemas_and_levels(schemas, &levels);
    let masters = ["system:masters".to_owned()];
    assert_eq!(classify_request(&controller, "ana", &[]).flow_schema().name, "ape");
    assert_eq!(classify_request(&controller, "ana", &masters).flow_schema().name, "exempt");
}

#[tokio::test(start_paused = true)]
async fn a_flood_in_one_level_leaves_the_others_alone() {
    let controller = FlowController::new(4);
    let levels =
        [exempt(), level("a", 1, LimitResponse::Reject), level("b", 1, LimitResponse::Reject)];
    let schemas = vec![
        schema("ana", 1, "a", Subject::User("ana".to_owned())),
        schema("root", 2, "exempt", Subject::User("root".to_owned())),
        schema("rest", 3, "b", everybody()),
    ];
    controller.replace_schemas_and_levels(schemas, &levels);
    let ana = classify_request(&controller, "ana", &[]);
    let held =
        [ana.acquire_seats(1, in_a_moment()).await, ana.acquire_seats(1, in_a_moment()).await];
    assert!(held.iter().all(Result::is_ok));
    assert_eq!(
        ana.acquire_seats(1, in_a_moment()).await.err(),
        Some(RejectionReason::ConcurrencyLimit)
    );
    assert!(
        classify_request(&controller, "bob", &[]).acquire_seats(1, in_a_moment()).await.is_ok()
    );
    let root = classify_request(&controller, "root", &[]);
    let mut seats = Vec::new();
    for _ in 0..100 {
        seats.push(
            root.acquire_seats(1, in_a_moment()).await.expect("an exempt level has no limit"),
        );
    }
    let usage = controller.priority_level_usages();
    assert_eq!(usage.iter().map(|own| own.n_executing_requests).collect::<Vec<_>>(), [100, 2, 0]);
    drop((held, seats));
    assert!(controller.priority_level_usages().iter().all(|own| own.seats_in_use == 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_seat_until_its_deadline() {
    let controller = FlowController::new(1);
    controller.replace_schemas_and_levels(
        vec![schema("all", 1, "a", everybody())],
        &[level("a", 1, queue(1))],
    );
    let ana = classify_request(&controller, "ana", &[]);
    let first = ana.acquire_seats(1, in_a_moment()).await.expect("a free seat");
    assert_eq!(ana.acquire_seats(1, in_a_moment()).await.err(), Some(RejectionReason::TimeOut));
    assert_eq!(
        controller.priority_level_usages()[0].n_waiting_requests,
        0,
        "a request that gave up does not wait"
    );
    let waiting = tokio::spawn({
        let ana = ana.clone();
        async move { ana.acquire_seats(1, Instant::now() + Duration::from_secs(60)).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(controller.priority_level_usages()[0].n_waiting_requests, 1);
    drop(first);
    let second = waiting.await.expect("the task ends").expect("the seat that became free");
    assert_eq!(controller.priority_level_usages()[0].n_executing_requests, 1);
    drop(second);
    assert_eq!(controller.priority_level_usages()[0].n_executing_requests, 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_with_a_seat_in_its_channel_loses_no_seat() {
    let controller = FlowController::new(1);
    controller.replace_schemas_and_levels(
        vec![schema("all", 1, "a", everybody())],
        &[level("a", 1, queue(9))],
    );
    let ana = classify_request(&controller, "ana", &[]);
    let first = ana.acquire_seats(1, in_a_moment()).await.expect("a free seat");
    {
        let mut waiting = std::pin::pin!(ana.acquire_seats(1, in_a_moment()));
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx)));
        assert!(polled.await.is_pending());
        // The seat is now in the channel of the waiting request, which is dropped without looking.
        drop(first);
    }
    assert_eq!(controller.priority_level_usages()[0].seats_in_use, 0);
    assert!(ana.acquire_seats(1, in_a_moment()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_suspended_seat_is_free_for_others_and_comes_back() {
    let controller = FlowController::new(1);
    controller.replace_schemas_and_levels(
        vec![schema("all", 1, "a", everybody())],
        &[level("a", 1, queue(1))],
    );
    let ana = classify_request(&controller, "ana", &[]);
    let bob = classify_request(&controller, "bob", &[]);
    let suspended = ana.acquire_seats(1, in_a_moment()).await.expect("a free seat").suspend_seat();
    let of_bob = bob.acquire_seats(1, in_a_moment()).await.expect("the seat of ana");
    let resuming = tokio::spawn(suspended.reacquire_seat());
    tokio::task::yield_now().await;
    assert!(!resuming.is_finished());
    drop(of_bob);
    drop(resuming.await.expect("the task ends"));
    assert_eq!(controller.priority_level_usages()[0].seats_in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn a_level_may_become_exempt_and_limited_again() {
    let controller = FlowController::new(1);
    let schemas = || vec![schema("all", 1, "a", everybody())];
    controller.replace_schemas_and_levels(schemas(), &[level("a", 1, queue(5))]);
    let ana = classify_request(&controller, "ana", &[]);
    let first = ana.acquire_seats(1, in_a_moment()).await.expect("a free seat");
    let waiting = tokio::spawn({
        let ana = ana.clone();
        async move { ana.acquire_seats(1, Instant::now() + Duration::from_secs(60)).await }
    });
    tokio::task::yield_now().await;
    let exempt = PriorityLevel { kind: PriorityLevelKind::Exempt, ..level("a", 1, queue(5)) };
    controller.replace_schemas_and_levels(schemas(), &[exempt]);
    let second = waiting.await.expect("the task ends").expect("an exempt level has seats");
    assert_eq!(controller.priority_level_usages()[0].seats_max, None);
    controller.replace_schemas_and_levels(schemas(), &[level("a", 1, queue(5))]);
    assert_eq!(ana.acquire_seats(1, in_a_moment()).await.err(), Some(RejectionReason::TimeOut));
    drop((first, second));
    assert!(ana.acquire_seats(1, in_a_moment()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_service_accounts_of_a_namespace_are_one_flow() {
    let controller = FlowController::new(1);
    controller.replace_schemas_and_levels(
        vec![schema("all", 1, "a", everybody())],
        &[level("a", 1, queue(1))],
    );
    let hash = |user: &str| classify_request(&controller, user, &[]).flow_hash;
    assert_eq!(hash("system:serviceaccount:n:a"), hash("system:serviceaccount:n:b"));
    assert_ne!(hash("system:serviceaccount:n:a"), hash("system:serviceaccount:m:a"));
    assert_ne!(hash("ana"), hash("bob"));
    assert_ne!(hash("system:serviceaccount:n"), hash("system:serviceaccount:n:a"));
}

#[tokio::test(start_paused = true)]
async fn statistics_belong_to_schemas_in_force() {
    let controller = FlowController::new(1);
    let schemas = |level: &str| vec![schema("all", 1, level, everybody())];
    let levels = [level("a", 1, queue(1)), level("b", 1, queue(1))];
    controller.replace_schemas_and_levels(schemas("a"), &levels);
    let ana = classify_request(&controller, "ana", &[]);
    let first = ana.acquire_seats(1, in_a_moment()).await.expect("a free seat");
    tokio::time::advance(Duration::from_secs(3)).await;
    let suspended = first.suspend_seat();
    assert_eq!(controller.flow_schema_usages()[0].n_executing_requests, 0);
    tokio::time::advance(Duration::from_secs(20)).await;
    let resumed = suspended.reacquire_seat().await;
    assert_eq!(ana.acquire_seats(1, in_a_moment()).await.err(), Some(RejectionReason::TimeOut));
    drop(resumed);
    // A change that keeps the name and the level keeps the counts.
    controller.replace_schemas_and_levels(schemas("a"), &levels);
    let usage = &controller.flow_schema_usages()[0];
    assert_eq!((usage.flow_schema_name.as_str(), usage.priority_level_name.as_str()), ("all", "a"));
    assert_eq!(
        (usage.n_dispatched_requests, usage.n_executing_requests, usage.seats_in_use),
        (1, 0, 0)
    );
    assert_eq!(usage.n_rejected_requests_by_reason.map(|(_, n)| n), [0, 0, 1]);
    assert_eq!(usage.execution_durations.n_observations, 1, "a suspended seat is one execution");
    assert!(
        (usage.execution_durations.duration_sum_seconds - 3.0).abs() < 0.1,
        "{}",
        usage.execution_durations.duration_sum_seconds
    );
    controller.replace_schemas_and_levels(schemas("b"), &levels);
    let usage = controller.flow_schema_usages();
    assert_eq!(
        (usage.len(), usage[0].n_dispatched_requests),
        (1, 0),
        "the schema has another level now"
    );
}
