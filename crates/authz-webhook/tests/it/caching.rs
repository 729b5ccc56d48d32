//! Cached answers. Time is simulated.

use std::time::Duration;

use authz::{Attributes, Namespace, Resource, Target, User, Verb};
use authz_webhook::{CacheSettings, WebhookLimits, WebhookSettings};
use tokio::time::advance;

use crate::peer::{ALLOW, DENY, NEITHER, Scene, code, line, named, pods, says, settings};

#[tokio::test(start_paused = true)]
async fn an_answer_is_used_again() {
    let scene = Scene::new([says(ALLOW), code(500)]);
    for _ in 0..3 {
        assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
    }
    assert_eq!(scene.peer.n_calls(), 1);
    let events = ["cache miss", "attempt success", "cache stored", "cache hit", "cache hit"];
    assert_eq!(scene.tally.events(), events);
}

#[tokio::test(start_paused = true)]
async fn another_question_is_another_answer() {
    let scene = Scene::new([says(ALLOW)]);
    let groups = |groups: &[&str]| User {
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..named("ana")
    };
    for user in [named("ana"), named("bob"), groups(&["a", "b"]), groups(&["b", "a"])] {
        let before = scene.peer.n_calls();
        let _ = scene.ask(&pods(&user, "default")).await;
        let _ = scene.ask(&pods(&user, "default")).await;
        assert_eq!(scene.peer.n_calls(), before + 1);
    }
    // The path of a resource request is not part of the key.
    let user = named("ana");
    let mut asked = pods(&user, "default");
    if let Target::Resource(resource) = &mut asked.target {
        resource.path = "/api/v1/namespaces/default/pods";
    }
    let before = scene.peer.n_calls();
    let _ = scene.ask(&asked).await;
    assert_eq!(scene.peer.n_calls(), before);
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_answer_has_its_time() {
    let both = r#"{"status":{"allowed":true,"denied":true}}"#;
    for (body, seconds) in [(ALLOW, 300), (DENY, 30), (NEITHER, 30), (both, 300)] {
        let scene = Scene::new([says(body)]);
        let first = line(&scene.ask_as("ana").await);
        assert_eq!(line(&scene.ask_as("ana").await), first);
        advance(Duration::from_secs(seconds)).await;
        let _ = scene.ask_as("ana").await;
        assert_eq!(scene.peer.n_calls(), 1, "good at the instant it expires: {body}");
        advance(Duration::from_millis(1)).await;
        let _ = scene.ask_as("ana").await;
        assert_eq!(scene.peer.n_calls(), 2, "{body}");
        assert_eq!(scene.tally.n("cache expired"), 1);
    }
}

/// A use protects an answer from eviction, but does not extend its lifetime.
#[tokio::test(start_paused = true)]
async fn a_use_does_not_put_off_the_end() {
    let scene = Scene::new([says(ALLOW)]);
    for _ in 0..4 {
        let _ = scene.ask_as("ana").await;
        advance(Duration::from_secs(100)).await;
    }
    assert_eq!(scene.peer.n_calls(), 1);
    let _ = scene.ask_as("ana").await;
    assert_eq!(scene.peer.n_calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_are_not_kept() {
    let scene = Scene::new([code(404), says("what"), says(ALLOW)]);
    for n in 1..=3 {
        let _ = scene.ask_as("ana").await;
        assert_eq!(scene.peer.n_calls(), n);
    }
    assert_eq!(line(&scene.ask_as("ana").await), "allow [yes]");
}

#[tokio::test(start_paused = true)]
async fn a_side_that_is_switched_off_keeps_nothing() {
    let off = CacheSettings::new(Duration::from_secs(300), false);
    let zero = CacheSettings::new(Duration::ZERO, true);
    for (caching, body) in [(off, ALLOW), (zero, ALLOW)] {
        let settings = WebhookSettings { authorized_cache_settings: caching, ..settings() };
        let scene = Scene::with(settings, WebhookLimits::default(), [says(body), says(DENY)]);
        let _ = scene.ask_as("ana").await;
        assert_eq!(line(&scene.ask_as("ana").await), "deny [no]");
        assert_eq!(line(&scene.ask_as("ana").await), "deny [no]");
        assert_eq!(scene.peer.n_calls(), 2, "the other side is on");
    }
}

async fn n_calls_for_two(attributes: &Attributes<'_>) -> usize {
    let scene = Scene::new([says(ALLOW)]);
    let _ = scene.ask(attributes).await;
    let _ = scene.ask(attributes).await;
    scene.peer.n_calls()
}

#[tokio::test(start_paused = true)]
async fn long_questions_are_asked_each_time() {
    let long = "x".repeat(2000);
    let user = named("ana");
    let resource = Resource {
        namespace: Namespace::new("ns"),
        api_group: &long,
        api_version: &long,
        resource: &long,
        name: &long,
        ..Resource::default()
    };
    let target = Target::Resource(resource);
    let asked = Attributes { user: Some(&user), verb: Verb::new(&long), target };
    assert_eq!(n_calls_for_two(&asked).await, 2);

    // Each part of the request counts, the path included.
    let parts = |rest: &'static str, path: &'static str| Resource {
        path,
        api_group: "1234567",
        api_version: "12",
        namespace: Namespace::new("12345"),
        resource: "1234",
        subresource: "12",
        name: rest,
        ..Resource::default()
    };
    let sum = "123".len() + 7 + 2 + 5 + 4 + 2;
    let fits: &'static str = "n".repeat(9_999 - sum).leak();
    let exceeds: &'static str = "n".repeat(10_000 - sum).leak();
    for (resource, n) in [(parts(fits, ""), 1), (parts(exceeds, ""), 2), (parts(fits, "/"), 2)] {
        let target = Target::Resource(resource);
        let asked = Attributes { user: Some(&user), verb: Verb::new("123"), target };
        assert_eq!(n_calls_for_two(&asked).await, n);
    }
    let path = "p".repeat(9_996);
    for (path, n) in [(path.as_str(), 1), (&format!("{path}p"), 2)] {
        let asked =
            Attributes { user: Some(&user), verb: Verb::new("123"), target: Target::Path(path) };
        assert_eq!(n_calls_for_two(&asked).await, n);
    }
    // The user does not count.
    let user = named(&"u".repeat(20_000));
    assert_eq!(n_calls_for_two(&pods(&user, "default")).await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_answer_that_is_unused_for_longest_gives_way() {
    let scene = Scene::new([says(ALLOW)]);
    for n in 0..=8192 {
        let _ = scene.ask_as(&format!("user{n}")).await;
    }
    assert_eq!((scene.peer.n_calls(), scene.webhook.health().n_cached_answers), (8193, 8192));
    assert_eq!(scene.tally.n("cache evicted"), 1);
    let _ = scene.ask_as("user1").await;
    assert_eq!(scene.peer.n_calls(), 8193, "the second is still known");
    let _ = scene.ask_as("user0").await;
    assert_eq!(scene.peer.n_calls(), 8194, "the first is not");
    // The new answer replaced the third one, because the second one was used last.
    let _ = scene.ask_as("user1").await;
    assert_eq!(scene.peer.n_calls(), 8194);
    let _ = scene.ask_as("user2").await;
    assert_eq!(scene.peer.n_calls(), 8195);
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded() {
    let guards = WebhookLimits { cache_bytes_max: 64 << 10, ..WebhookLimits::default() };
    let long = format!(r#"{{"status":{{"allowed":true,"reason":"{}"}}}}"#, "r".repeat(10_000));
    let scene = Scene::with(settings(), guards, [says(&long)]);
    for n in 0..50 {
        let _ = scene.ask_as(&format!("user{n}")).await;
        assert!(scene.webhook.health().cache_bytes <= 64 << 10);
    }
    assert_eq!(scene.webhook.health().n_cached_answers, 6);
    let huge = format!(r#"{{"status":{{"allowed":true,"reason":"{}"}}}}"#, "r".repeat(70_000));
    let scene = Scene::with(settings(), guards, [says(&huge)]);
    let _ = scene.ask_as("ana").await;
    assert_eq!((scene.tally.n("cache too_large"), scene.webhook.health().n_cached_answers), (1, 0));
}
