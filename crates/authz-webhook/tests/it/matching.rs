//! Match conditions before the call, several webhooks in one chain, and the trace events.

use authz::{
    Attributes, Decision, Namespace, Resource, Selector, Target, Trace, User, Value, Verb,
    parse_label_selector,
};
use authz_webhook::{FailurePolicy, TransportErrorKind, WebhookLimits, WebhookSettings};

use crate::peer::{
    ALLOW, DENY, NEITHER, Scene, Step, conditions, failing_closed, fault, line, named, pods, says,
    settings,
};

fn scene(policy: FailurePolicy, expressions: &[&str], script: Step) -> Scene {
    let settings = WebhookSettings {
        failure_policy: policy,
        match_conditions: conditions(expressions),
        ..settings()
    };
    Scene::with(settings, WebhookLimits::default(), [script])
}

fn path(user: &User) -> Attributes<'_> {
    Attributes { user: Some(user), verb: Verb::LIST, target: Target::Path("/") }
}

const UNGUARDED: &str = "request.resourceAttributes.namespace == 'kittensandponies'";

#[tokio::test]
async fn without_conditions_everything_matches() {
    let scene = Scene::new([says(ALLOW)]);
    assert_eq!(line(&scene.ask_as("alice").await), "allow [yes]");
    assert_eq!(scene.tally.n("conditions"), 0, "no M9");
}

#[tokio::test]
async fn a_false_condition_skips_the_webhook() {
    let scene = scene(FailurePolicy::Deny, &["request.user == 'alice'"], says(ALLOW));
    let (alice, bob) = (named("alice"), named("bob"));
    let (answered, _) = scene.explain(&pods(&bob, "default")).await;
    assert_eq!(
        (line(&answered.decision).as_str(), answered.is_webhook_skipped),
        ("noOpinion []", true)
    );
    assert_eq!(scene.tally.events(), ["conditions", "excluded"]);
    let (answered, _) = scene.explain(&pods(&alice, "default")).await;
    assert_eq!(
        (line(&answered.decision).as_str(), answered.is_webhook_skipped),
        ("allow [yes]", false)
    );
    assert_eq!(scene.peer.n_calls(), 1);
}

/// L25: a condition that fails is neither true nor false.
#[tokio::test]
async fn an_error_in_a_condition_is_for_the_policy() {
    let user = named("alice2");
    let error = format!(
        "cel evaluation error: expression '{UNGUARDED}' resulted in error: no such key: \
         resourceAttributes"
    );
    for (policy, verdict) in
        [(FailurePolicy::NoOpinion, "noOpinion"), (FailurePolicy::Deny, "deny")]
    {
        let scene = scene(policy, &["request.user == 'alice2'", UNGUARDED], says(ALLOW));
        let decision = scene.ask(&path(&user)).await;
        assert_eq!(line(&decision), format!("{verdict} [] ! {error}"));
        // The webhook is not called. The fail-open cause is counted without a call result.
        let told = format!("condition-error with policy {}: {error}", policy.name());
        let events = ["conditions", "condition-error", &told, "fail-open by match_condition"];
        let n_events = if policy == FailurePolicy::NoOpinion { 4 } else { 3 };
        assert_eq!(scene.tally.events(), events[..n_events]);
        // A webhook that fails open is skipped, and the audit log names it as such.
        let (answered, _) = scene.explain(&path(&user)).await;
        assert_eq!(answered.is_webhook_skipped, policy == FailurePolicy::NoOpinion);
        assert_eq!(scene.peer.n_calls(), 0);
    }
}

#[tokio::test]
async fn errors_beside_a_false_condition_are_only_counted() {
    let user = named("alice2");
    let other = "request.user != 'alice2'";
    for (expressions, events) in [
        ([other, UNGUARDED], vec!["conditions", "excluded"]),
        ([UNGUARDED, other], vec!["conditions", "excluded", "condition-error"]),
    ] {
        let scene = scene(FailurePolicy::Deny, &expressions, says(ALLOW));
        let (answered, _) = scene.explain(&path(&user)).await;
        assert!(answered.is_webhook_skipped && answered.decision.error.is_none());
        assert_eq!(scene.tally.events(), events);
    }
    let scene = scene(FailurePolicy::NoOpinion, &[UNGUARDED, UNGUARDED], says(ALLOW));
    assert!(line(&scene.ask(&path(&user)).await).starts_with("noOpinion [] ! cel evaluation"));
    assert_eq!(scene.tally.n("condition-error"), 1);
}

/// The webhooks of the chain rows, without the authorizers around them.
struct Chain(Vec<(&'static str, Scene)>);

impl Chain {
    fn new() -> Self {
        let ns = "request.resourceAttributes.namespace == 'fail'";
        let has = "has(request.resourceAttributes)";
        let selector = "request.?resourceAttributes.labelSelector.requirements.orValue([])\
                        .exists(r, r.key == 'testselector')";
        let timeout = fault(TransportErrorKind::Timeout, "context deadline exceeded");
        let (open, closed) = (FailurePolicy::NoOpinion, FailurePolicy::Deny);
        let name = |name: &str| format!("request.resourceAttributes.name == '{name}'");
        Self(vec![
            ("error", scene(closed, &[has, ns, &name("error")], says("garbage"))),
            ("timeout", scene(closed, &[ns, &name("timeout")], timeout)),
            ("deny", scene(open, &[has, ns], says(DENY))),
            ("selector", scene(open, &[selector], says(ALLOW))),
            ("noop", Scene::with(failing_closed(), WebhookLimits::default(), [says(NEITHER)])),
            ("failopen", scene(open, &[], says("garbage"))),
            ("allow", scene(open, &[], says(ALLOW))),
        ])
    }

    async fn ask(&self, attributes: &Attributes<'_>) -> Decision {
        let mut last = Decision::no_opinion("");
        for (_, scene) in &self.0 {
            last = scene.ask(attributes).await;
            if last.verdict != authz::Verdict::NoOpinion {
                break;
            }
        }
        last
    }

    /// The number of calls of each webhook.
    fn called(&self) -> Vec<(&'static str, usize)> {
        let calls = self.0.iter().map(|(name, scene)| (*name, scene.peer.n_calls()));
        calls.filter(|(_, n_calls)| *n_calls > 0).collect()
    }

    fn n(&self, event: &str) -> usize {
        self.0.iter().map(|(_, scene)| scene.tally.n(event)).sum()
    }
}

fn config_maps<'a>(
    user: &'a User,
    verb: &'a str,
    namespace: &'a str,
    name: &'a str,
) -> Attributes<'a> {
    let resource = Resource {
        namespace: Namespace::new(namespace),
        name,
        resource: "configmaps",
        ..Resource::default()
    };
    Attributes { user: Some(user), verb: Verb::new(verb), target: Target::Resource(resource) }
}

#[tokio::test(start_paused = true)]
async fn several_webhooks_in_a_row() {
    let alice = named("alice");

    let chain = Chain::new();
    let decision = chain.ask(&config_maps(&alice, "get", "fail", "error")).await;
    assert_eq!((decision.verdict.name(), chain.called()), ("deny", vec![("error", 1)]));

    let chain = Chain::new();
    let decision = chain.ask(&config_maps(&alice, "get", "fail", "timeout")).await;
    assert_eq!(line(&decision), "deny [] ! context deadline exceeded");
    assert_eq!((chain.called(), chain.n("excluded")), (vec![("timeout", 1)], 1));
    assert_eq!(chain.n("attempt timeout"), 1);

    let chain = Chain::new();
    let decision = chain.ask(&config_maps(&alice, "list", "fail", "")).await;
    assert_eq!(line(&decision), "deny [no]");
    assert_eq!((chain.called(), chain.n("excluded")), (vec![("deny", 1)], 2));

    let chain = Chain::new();
    let decision = chain.ask(&config_maps(&alice, "list", "allow", "")).await;
    assert_eq!(line(&decision), "allow [yes]");
    let called = vec![("noop", 1), ("failopen", 1), ("allow", 1)];
    assert_eq!((chain.called(), chain.n("excluded")), (called, 4));
    assert_eq!(chain.n("fail-open error"), 1);

    let chain = Chain::new();
    let decision = chain.ask(&path(&alice)).await;
    assert_eq!((decision.verdict.name(), chain.called()), ("deny", vec![]));
    assert_eq!((chain.n("excluded"), chain.n("condition-error")), (1, 1));

    let chain = Chain::new();
    let selector = Selector::from_selector_parse_result(parse_label_selector(
        "testselector in (a),allow=true",
    ));
    let resource =
        Resource { resource: "pods", label_selector: selector.as_ref(), ..Resource::default() };
    let target = Target::Resource(resource);
    let decision = chain.ask(&Attributes { user: Some(&alice), verb: Verb::LIST, target }).await;
    assert_eq!(line(&decision), "allow [yes]");
    assert_eq!((chain.called(), chain.n("excluded")), (vec![("selector", 1)], 3));
}

/// The events of kind `webhook`, as `name=value` pairs.
fn noted(trace: &Trace) -> Vec<String> {
    let events = trace.trace_entries().iter().map(|entry| &entry.trace_event);
    let events = events.filter(|event| event.kind == "webhook");
    let pair = |(name, value): &(std::borrow::Cow<'static, str>, Value)| match value {
        Value::Bool(truth) => format!("{name}={truth}"),
        Value::Integer(_) if name == "tookMicros" => format!("{name}=_"),
        Value::Integer(number) => format!("{name}={number}"),
        Value::Text(text) => format!("{name}={text}"),
        Value::List(texts) => format!("{name}={texts:?}"),
    };
    events
        .map(|event| event.trace_event_values.iter().map(pair).collect::<Vec<_>>().join(" "))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_happened_is_noted() {
    let (alice, bob) = (named("alice"), named("bob"));
    let scene = scene(FailurePolicy::NoOpinion, &["request.user == 'alice'"], says(ALLOW));
    let (_, trace) = scene.explain(&pods(&bob, "a")).await;
    assert_eq!(noted(&trace), ["skipped=true"]);
    assert_eq!(trace.trace_entries()[0].trace_event.kind, "condition");
    let (_, trace) = scene.explain(&pods(&alice, "a")).await;
    assert_eq!(noted(&trace), ["cache=miss joined=false attempts=1 tookMicros=_ status=200"]);
    let (_, trace) = scene.explain(&pods(&alice, "a")).await;
    assert_eq!(noted(&trace), ["cache=hit"]);

    let down = || fault(TransportErrorKind::Reset, "connection reset by peer");
    let scene = Scene::new([down()]);
    let (_, trace) = scene.explain(&pods(&alice, "a")).await;
    let want = "cache=miss joined=false attempts=5 tookMicros=_ error=connection reset by peer";
    assert_eq!(noted(&trace), [want]);
    let none = WebhookLimits { in_flight_calls_max: 0, ..WebhookLimits::default() };
    let scene = Scene::with(settings(), none, [down()]);
    let (_, trace) = scene.explain(&pods(&alice, "a")).await;
    assert_eq!(noted(&trace), ["cache=miss called=false why=too_many_in_flight"]);
}

#[test]
fn rules_and_subjects_are_not_known() {
    let scene = Scene::new([says(ALLOW)]);
    let alice = named("alice");
    let rules = scene.webhook.rules_for(&alice, Namespace::new("default"));
    assert!(rules.is_incomplete && rules.resource_rules.is_empty());
    let error = rules.error.unwrap().to_string();
    assert_eq!(error, "webhook authorizer does not support user rule resolution");
    assert!(scene.webhook.allowed_subjects(&pods(&alice, "a")).is_incomplete);
}
