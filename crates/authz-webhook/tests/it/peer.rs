//! A scripted webhook, and an observer that records events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use authz::{Attributes, Decision, Namespace, Resource, Target, Trace, TraceRecorder, User, Verb};
use authz_webhook::{
    AbsolutePath, AttemptResult, CacheEvent, CacheSettings, CallRejection, ConnectionInfo,
    FailOpenCause, FailurePolicy, HttpResponse, MatchCondition, MatchConditions, MatchResultKind,
    ResponseFuture, ReviewVersion, Timeout, Transport, TransportError, TransportErrorKind, Webhook,
    WebhookDecision, WebhookLimits, WebhookObserver, WebhookSettings,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The scripted result of one exchange.
#[derive(Clone)]
pub(crate) enum Step {
    HttpResponse(HttpResponse),
    TransportError(TransportError),
    /// Answers after a time, or reaches the time limit.
    After(Duration, HttpResponse),
    /// Never answers, and ignores the time limit.
    Hang,
    /// Answers when the test notifies it.
    WhenTold(Arc<Semaphore>, HttpResponse),
    Panic,
}

/// Plays its steps in order, and repeats the last one.
pub(crate) struct Peer {
    script: Mutex<VecDeque<Step>>,
    bodies: Mutex<Vec<Bytes>>,
}

impl Peer {
    pub(crate) fn new(script: impl IntoIterator<Item = Step>) -> Arc<Self> {
        let script = Mutex::new(script.into_iter().collect());
        Arc::new(Self { script, bodies: Mutex::default() })
    }

    pub(crate) fn n_calls(&self) -> usize {
        self.bodies.lock().unwrap().len()
    }

    /// The bodies that were sent, in order.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        let bodies = self.bodies.lock().unwrap();
        bodies.iter().map(|body| serde_json::from_slice(body).unwrap()).collect()
    }

    fn next(&self) -> Step {
        let mut script = self.script.lock().unwrap();
        if script.len() > 1 { script.pop_front().unwrap() } else { script[0].clone() }
    }
}

impl Transport for Peer {
    fn send(&self, body: Bytes, limit: Duration) -> ResponseFuture<'_> {
        self.bodies.lock().unwrap().push(body);
        let step = self.next();
        Box::pin(async move {
            match step {
                Step::HttpResponse(reply) => Ok(reply),
                Step::TransportError(fault) => Err(fault),
                Step::After(delay, reply) if delay <= limit => {
                    wait(delay).await;
                    Ok(reply)
                }
                Step::After(..) => {
                    wait(limit).await;
                    Err(TransportError::new(
                        TransportErrorKind::Timeout,
                        "context deadline exceeded",
                    ))
                }
                Step::Hang => std::future::pending().await,
                Step::WhenTold(told, reply) => {
                    told.acquire().await.unwrap().forget();
                    Ok(reply)
                }
                Step::Panic => panic!("the script says so"),
            }
        })
    }

    fn url(&self) -> &str {
        "https://hook.test/authorize?timeout=3s"
    }
}

/// Waits on the clock of the runtime, which tests pause and which then advances without real time.
async fn wait(duration: Duration) {
    let _ = timeout(duration, std::future::pending::<()>()).await;
}

/// An answer with a status code and a body.
pub(crate) fn reply(status: u16, body: &str) -> HttpResponse {
    let content_type = Some("application/json".to_owned());
    HttpResponse { status, content_type, retry_after: None, body: body.to_owned().into() }
}

pub(crate) fn says(body: &str) -> Step {
    Step::HttpResponse(reply(200, body))
}

pub(crate) fn code(status: u16) -> Step {
    let content_type = Some("text/plain".to_owned());
    Step::HttpResponse(HttpResponse {
        status,
        content_type,
        retry_after: None,
        body: "boom".into(),
    })
}

pub(crate) fn code_retry_after(status: u16, retry_after: &str) -> Step {
    let retry_after = Some(retry_after.to_owned());
    Step::HttpResponse(HttpResponse { status, retry_after, ..reply(status, "") })
}

pub(crate) fn fault(kind: TransportErrorKind, message: &str) -> Step {
    Step::TransportError(TransportError::new(kind, message))
}

pub(crate) const ALLOW: &str = r#"{"status":{"allowed":true,"reason":"yes"}}"#;
pub(crate) const DENY: &str = r#"{"status":{"denied":true,"reason":"no"}}"#;
pub(crate) const NEITHER: &str = r#"{"status":{"reason":"who knows"}}"#;

/// All observed events, in order.
#[derive(Default)]
pub(crate) struct Tally {
    events: Mutex<Vec<String>>,
}

impl Tally {
    /// Counts the occurrences of an event.
    pub(crate) fn n(&self, event: &str) -> usize {
        self.events.lock().unwrap().iter().filter(|other| *other == event).count()
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    fn push(&self, event: String) {
        self.events.lock().unwrap().push(event);
    }
}

impl WebhookObserver for Tally {
    fn on_attempt_end(&self, result: AttemptResult, _: Duration) {
        self.push(format!("attempt {}", result.name()));
    }

    fn on_fail_open(&self, cause: FailOpenCause, result: Option<AttemptResult>) {
        self.push(format!("fail-open by {}", cause.name()));
        if let Some(result) = result {
            self.push(format!("fail-open {}", result.name()));
        }
    }

    fn on_condition_error(&self, error: &str, policy: FailurePolicy) {
        self.push(format!("condition-error with policy {}: {error}", policy.name()));
    }

    fn on_conditions_evaluated(&self, _: Duration, outcome: MatchResultKind) {
        self.push("conditions".to_owned());
        if outcome.is_webhook_skipped() {
            self.push("excluded".to_owned());
        }
        if outcome.has_condition_error() {
            self.push("condition-error".to_owned());
        }
    }

    fn on_cache_event(&self, event: CacheEvent) {
        self.push(format!("cache {}", event.name()));
    }

    fn on_shared_call(&self) {
        self.push("joined".to_owned());
    }

    fn on_call_rejected(&self, why: CallRejection) {
        self.push(format!("rejected {}", why.name()));
    }
}

/// A webhook with its scripted peer and its observer.
pub(crate) struct Scene {
    pub(crate) peer: Arc<Peer>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) webhook: Arc<Webhook>,
}

impl Scene {
    pub(crate) fn new(script: impl IntoIterator<Item = Step>) -> Self {
        Self::with(settings(), WebhookLimits::default(), script)
    }

    pub(crate) fn with(
        settings: WebhookSettings,
        limits: WebhookLimits,
        script: impl IntoIterator<Item = Step>,
    ) -> Self {
        let peer = Peer::new(script);
        let tally = Arc::new(Tally::default());
        let (transport, observe) = (Arc::clone(&peer), Arc::clone(&tally));
        let webhook = Arc::new(Webhook::new("hook", settings, transport, limits, observe));
        Self { peer, tally, webhook }
    }

    pub(crate) async fn ask(&self, attributes: &Attributes<'_>) -> Decision {
        self.webhook.authorize(attributes, TraceRecorder::disabled_recorder()).await.decision
    }

    /// Checks a request of a user without groups.
    pub(crate) async fn ask_as(&self, name: &str) -> Decision {
        let user = named(name);
        self.ask(&pods(&user, "default")).await
    }

    pub(crate) async fn explain(&self, attributes: &Attributes<'_>) -> (WebhookDecision, Trace) {
        let mut trace = Trace::default();
        let answered = self.webhook.authorize(attributes, TraceRecorder::new(&mut trace)).await;
        (answered, trace)
    }
}

/// The settings of a webhook with the failure policy `NoOpinion` and the default times of a configuration file.
pub(crate) fn settings() -> WebhookSettings {
    WebhookSettings {
        timeout: Timeout::new(Duration::from_secs(3)).unwrap(),
        authorized_cache_settings: CacheSettings::new(Duration::from_secs(300), true),
        unauthorized_cache_settings: CacheSettings::new(Duration::from_secs(30), true),
        subject_access_review_version: ReviewVersion::V1,
        failure_policy: FailurePolicy::NoOpinion,
        connection_info: ConnectionInfo::KubeConfigFile(AbsolutePath::new("/hook.yaml").unwrap()),
        match_conditions: MatchConditions::Unversioned,
    }
}

pub(crate) fn failing_closed() -> WebhookSettings {
    WebhookSettings { failure_policy: FailurePolicy::Deny, ..settings() }
}

pub(crate) fn conditions(expressions: &[&str]) -> MatchConditions {
    let compiled = expressions.iter().map(|text| MatchCondition::compile(text).unwrap());
    MatchConditions::V1(compiled.collect())
}

pub(crate) fn named(name: &str) -> User {
    User { name: name.to_owned(), ..User::default() }
}

pub(crate) fn pods<'a>(user: &'a User, namespace: &'a str) -> Attributes<'a> {
    let resource = Resource {
        api_version: "v1",
        namespace: Namespace::new(namespace),
        resource: "pods",
        ..Resource::default()
    };
    Attributes { user: Some(user), verb: Verb::GET, target: Target::Resource(resource) }
}

/// The decision as one line: the verdict, the reason, and the error if there is one.
pub(crate) fn line(decision: &Decision) -> String {
    let (verdict, reason) = (decision.verdict.name(), &decision.reason);
    match &decision.error {
        Some(error) => format!("{verdict} [{reason}] ! {error}"),
        None => format!("{verdict} [{reason}]"),
    }
}
