//! Conditions before the call, several webhooks in a row, and what is noted (CEL-12 to CEL-22,
//! MUL-01 to MUL-06).

use authz::{
    Attributes, Decision, Resource, Selector, Target, Trace, User, Value, parse_label_selector,
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
    Attributes { user: Some(user), verb: "list", target: Target::Path("/") }
}

const UNGUARDED: &str = "request.resourceAttributes.namespace == 'kittensandponies'";

#[tokio::test]
async fn without_conditions_everything_matches() {
    let scene = Scene::new([says(ALLOW)]);
    assert_eq!(line(&scene.ask_as("alice").await), "allow [yes]", "CEL-12");
    assert_eq!(scene.tally.n("conditions"), 0, "CEL-12: no M9");
}

#[tokio::test]
async fn a_false_condition_skips_the_webhook() {
    let scene = scene(FailurePolicy::Deny, &["request.user == 'alice'"], says(ALLOW));
    let (alice, bob) = (named("alice"), named("bob"));
    let (answered, _) = scene.explain(&pods(&bob, "default")).await;
    assert_eq!((line(&answered.decision).as_str(), answered.is_skipped), ("noOpinion []", true));
    assert_eq!(scene.tally.events(), ["conditions", "excluded"], "CEL-14, CEL-15");
    let (answered, _) = scene.explain(&pods(&alice, "default")).await;
    assert_eq!((line(&answered.decision).as_str(), answered.is_skipped), ("allow [yes]", false));
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
    for (id, policy, verdict) in
        [("CEL-18", FailurePolicy::NoOpinion, "noOpinion"), ("CEL-19", FailurePolicy::Deny, "deny")]
    {
        let scene = scene(policy, &["request.user == 'alice2'", UNGUARDED], says(ALLOW));
        let decision = scene.ask(&path(&user)).await;
        assert_eq!(line(&decision), format!("{verdict} [] ! {error}"), "{id}");
        // Neither called nor counted as an evaluation that failed open; the cause is counted.
        let events = ["conditions", "condition-error", "fail-open by match_condition"];
        let n_events = if policy == FailurePolicy::NoOpinion { 3 } else { 2 };
        assert_eq!(scene.tally.events(), events[..n_events], "{id}");
        assert_eq!(scene.peer.n_calls(), 0, "{id}");
    }
}

#[tokio::test]
async fn errors_beside_a_false_condition_are_only_counted() {
    let user = named("alice2");
    let other = "request.user != 'alice2'";
    for (id, expressions, events) in [
        ("CEL-20", [other, UNGUARDED], vec!["conditions", "excluded"]),
        ("CEL-21", [UNGUARDED, other], vec!["conditions", "excluded", "condition-error"]),
    ] {
        let scene = scene(FailurePolicy::Deny, &expressions, says(ALLOW));
        let (answered, _) = scene.explain(&path(&user)).await;
        assert!(answered.is_skipped && answered.decision.error.is_none(), "{id}");
        assert_eq!(scene.tally.events(), events, "{id}");
    }
    let scene = scene(FailurePolicy::NoOpinion, &[UNGUARDED, UNGUARDED], says(ALLOW));
    assert!(line(&scene.ask(&path(&user)).await).starts_with("noOpinion [] ! cel evaluation"));
    assert_eq!(scene.tally.n("condition-error"), 1, "CEL-22");
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

    /// Who was called, and how often.
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
    let resource = Resource { namespace, name, resource: "configmaps", ..Resource::default() };
    Attributes { user: Some(user), verb, target: Target::Resource(resource) }
}

#[tokio::test(start_paused = true)]
async fn several_webhooks_in_a_row() {
    let alice = named("alice");

    let chain = Chain::new();
    let decision = chain.ask(&config_maps(&alice, "get", "fail", "error")).await;
    assert_eq!((decision.verdict.name(), chain.called()), ("deny", vec![("error", 1)]), "MUL-01");

    let chain = Chain::new();
    let decision = chain.ask(&config_maps(&alice, "get", "fail", "timeout")).await;
    assert_eq!(line(&decision), "deny [] ! context deadline exceeded", "MUL-02");
    assert_eq!((chain.called(), chain.n("excluded")), (vec![("timeout", 1)], 1), "MUL-02");
    assert_eq!(chain.n("attempt timeout"), 1, "MUL-02");

    let chain = Chain::new();
    let decision = chain.ask(&config_maps(&alice, "list", "fail", "")).await;
    assert_eq!(line(&decision), "deny [no]", "MUL-03");
    assert_eq!((chain.called(), chain.n("excluded")), (vec![("deny", 1)], 2), "MUL-03");

    let chain = Chain::new();
    let decision = chain.ask(&config_maps(&alice, "list", "allow", "")).await;
    assert_eq!(line(&decision), "allow [yes]", "MUL-04");
    let called = vec![("noop", 1), ("failopen", 1), ("allow", 1)];
    assert_eq!((chain.called(), chain.n("excluded")), (called, 4), "MUL-04");
    assert_eq!(chain.n("fail-open error"), 1, "MUL-04");

    let chain = Chain::new();
    let decision = chain.ask(&path(&alice)).await;
    assert_eq!((decision.verdict.name(), chain.called()), ("deny", vec![]), "MUL-05");
    assert_eq!((chain.n("excluded"), chain.n("condition-error")), (1, 1), "MUL-05");

    let chain = Chain::new();
    let selector = Selector::from_parsed(parse_label_selector("testselector in (a),allow=true"));
    let resource =
        Resource { resource: "pods", label_selector: selector.as_ref(), ..Resource::default() };
    let target = Target::Resource(resource);
    let decision = chain.ask(&Attributes { user: Some(&alice), verb: "list", target }).await;
    assert_eq!(line(&decision), "allow [yes]", "MUL-06");
    assert_eq!((chain.called(), chain.n("excluded")), (vec![("selector", 1)], 3), "MUL-06");
}

/// The events of kind `webhook`, as `name=value` pairs.
fn noted(trace: &Trace) -> Vec<String> {
    let events = trace.entries().iter().map(|entry| &entry.event);
    let events = events.filter(|event| event.kind == "webhook");
    let pair = |(name, value): &(std::borrow::Cow<'static, str>, Value)| match value {
        Value::Bool(truth) => format!("{name}={truth}"),
        Value::Integer(_) if name == "tookMicros" => format!("{name}=_"),
        Value::Integer(number) => format!("{name}={number}"),
        Value::Text(text) => format!("{name}={text}"),
        Value::List(texts) => format!("{name}={texts:?}"),
    };
    events.map(|event| event.fields.iter().map(pair).collect::<Vec<_>>().join(" ")).collect()
}

#[tokio::test(start_paused = true)]
async fn what_happened_is_noted() {
    let (alice, bob) = (named("alice"), named("bob"));
    let scene = scene(FailurePolicy::NoOpinion, &["request.user == 'alice'"], says(ALLOW));
    let (_, trace) = scene.explain(&pods(&bob, "a")).await;
    assert_eq!(noted(&trace), ["skipped=true"]);
    assert_eq!(trace.entries()[0].event.kind, "condition");
    let (_, trace) = scene.explain(&pods(&alice, "a")).await;
    assert_eq!(noted(&trace), ["cache=miss joined=false attempts=1 tookMicros=_ status=200"]);
    let (_, trace) = scene.explain(&pods(&alice, "a")).await;
    assert_eq!(noted(&trace), ["cache=hit"]);

    let down = || fault(TransportErrorKind::Reset, "connection reset by peer");
    let scene = Scene::new([down()]);
    let (_, trace) = scene.explain(&pods(&alice, "a")).await;
    let want = "cache=miss joined=false attempts=5 tookMicros=_ error=connection reset by peer";
    assert_eq!(noted(&trace), [want]);
    let none = WebhookLimits { in_flight_max: 0, ..WebhookLimits::default() };
    let scene = Scene::with(settings(), none, [down()]);
    let (_, trace) = scene.explain(&pods(&alice, "a")).await;
    assert_eq!(noted(&trace), ["cache=miss called=false why=too_many_in_flight"]);
}

#[test]
fn rules_and_subjects_are_not_known() {
    let scene = Scene::new([says(ALLOW)]);
    let alice = named("alice");
    let rules = scene.webhook.rules_for(&alice, "default");
    assert!(rules.is_incomplete && rules.resource_rules.is_empty(), "CHN-30");
    let error = rules.error.unwrap().to_string();
    assert_eq!(error, "webhook authorizer does not support user rule resolution", "CHN-30");
    assert!(scene.webhook.allowed_subjects(&pods(&alice, "a")).is_incomplete);
}
