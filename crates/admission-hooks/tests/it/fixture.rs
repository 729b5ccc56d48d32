//! A request, some hooks, and services that answer as a script says.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use admission::{
    Attributes, Configuration, ConfigurationKind, GroupVersionKind, GroupVersionResource,
    MatchedHooks, Operation, Snapshot,
};
use admission_hooks::{
    CallReport, HookConnections, HookEnvironment, HookFailureCause, HookObserver, HookRefusal,
    HookRequest, HookSession, ObjectConverter, Phase, SessionReport, UntypedConverter,
};
use api_object::Tree;
use authz::{Authorizer, User};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_http::{Answer, Authority, Body, Leaf, Peer, Request, Script, ServerTls};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new("ca").unwrap());

/// A service at a loopback address that the hooks of a test can be at.
pub(crate) fn peer(script: impl Into<Script>) -> Peer {
    let leaf = AUTHORITY.issue(&Leaf::loopback()).unwrap();
    Peer::start_tls(script, &ServerTls::new(leaf)).unwrap()
}

/// Answers a v1 review with this `response`, to which the uid is added.
pub(crate) fn says(response: Value) -> Script {
    answers(vec![response])
}

/// Answers v1 reviews with these, and then with the last again and again.
pub(crate) fn answers(responses: Vec<Value>) -> Script {
    let next = std::sync::atomic::AtomicUsize::new(0);
    Script::rule(move |request| {
        let idx = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let response = responses.get(idx).or(responses.last()).unwrap();
        answer_to(request, response.clone())
    })
}

/// The answer to one v1 review.
pub(crate) fn answer_to(request: &Request, mut response: Value) -> Answer {
    response["uid"] = review(request)["request"]["uid"].clone();
    let body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    });
    Answer::json("").body(Body::Bytes(body.to_string().into()))
}

pub(crate) fn allow() -> Value {
    json!({ "allowed": true })
}

pub(crate) fn deny(message: &str) -> Value {
    json!({ "allowed": false, "status": { "message": message } })
}

/// A response that allows the request with a patch.
pub(crate) fn patch(operations: Value) -> Value {
    let patch = STANDARD.encode(operations.to_string());
    json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })
}

/// Allows, and sets a label.
pub(crate) fn label(name: &str, value: &str) -> Value {
    patch(json!([{"op": "add", "path": format!("/metadata/labels/{name}"), "value": value}]))
}

pub(crate) fn review(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// A hook that is called for everything; members are changed by the test.
pub(crate) fn hook(name: &str, peer: &Peer) -> Value {
    hook_at(name, &format!("https://{}/admit", peer.address()))
}

pub(crate) fn hook_at(name: &str, url: &str) -> Value {
    json!({
        "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": { "url": url, "caBundle": STANDARD.encode(AUTHORITY.pem()) },
        "rules": [{
            "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
        }],
    })
}

/// The same hook with another member.
pub(crate) fn with(mut hook: Value, member: &str, value: impl Into<Value>) -> Value {
    hook[member] = value.into();
    hook
}

/// An observer that keeps all reports.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Name, code and error type of calls.
    pub(crate) calls: Mutex<Vec<(String, i32, Option<&'static str>)>>,
    pub(crate) failed_open: Mutex<Vec<String>>,
}

impl HookObserver for Seen {
    fn on_call(&self, report: &CallReport<'_>) {
        let rejection = report.rejection_cause.map(|cause| cause.metric_label());
        self.calls.lock().unwrap().push((report.webhook_name.to_owned(), report.code, rejection));
    }

    fn on_fail_open(&self, webhook: &str, phase: Phase, cause: HookFailureCause) {
        let shown = format!("{webhook} {} {}", phase.metric_label(), cause.name());
        self.failed_open.lock().unwrap().push(shown);
    }
}

/// A request and its hooks.
pub(crate) struct Scene {
    configurations: Vec<Arc<Configuration>>,
    pub(crate) environment: Arc<HookEnvironment>,
    pub(crate) operation: Operation,
    pub(crate) object: Option<Tree>,
    pub(crate) old_object: Option<Tree>,
    pub(crate) is_dry_run: bool,
    pub(crate) limit: Duration,
    pub(crate) kinds: Box<dyn ObjectConverter>,
    pub(crate) authorizer: Option<Box<dyn Authorizer>>,
    pub(crate) user: Option<User>,
    pub(crate) seen: Seen,
    matched_hooks: OnceLock<MatchedHooks>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            configurations: Vec::new(),
            environment: Arc::default(),
            operation: Operation::Create,
            object: Some(widget()),
            old_object: None,
            is_dry_run: false,
            limit: Duration::from_secs(34),
            kinds: Box::new(UntypedConverter),
            authorizer: None,
            user: None,
            seen: Seen::default(),
            matched_hooks: OnceLock::new(),
        }
    }

    pub(crate) fn mutating(self, name: &str, hooks: Vec<Value>) -> Self {
        self.configured(ConfigurationKind::Mutating, name, "webhooks", hooks)
    }

    pub(crate) fn validating(self, name: &str, hooks: Vec<Value>) -> Self {
        self.configured(ConfigurationKind::Validating, name, "webhooks", hooks)
    }

    pub(crate) fn external(self, name: &str, hooks: Vec<Value>) -> Self {
        let list = "externalAdmissionHooks";
        self.configured(ConfigurationKind::ExternalHook, name, list, hooks)
    }

    fn configured(
        mut self,
        kind: ConfigurationKind,
        name: &str,
        list: &str,
        hooks: Vec<Value>,
    ) -> Self {
        let object = json!({ "metadata": { "name": name }, list: hooks });
        let configuration = Configuration::compile_configuration(kind, object.as_object().unwrap());
        self.configurations.push(Arc::new(configuration));
        self.matched_hooks = OnceLock::new();
        self
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.configurations)
    }

    pub(crate) fn connections(&self, snapshot: &Snapshot) -> HookConnections {
        HookConnections::new(snapshot, &self.environment, &HookConnections::default())
    }

    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes {
            operation: self.operation,
            kind: GroupVersionKind { group: "example.com", version: "v1", kind: "Widget" },
            resource: GroupVersionResource {
                group: "example.com",
                version: "v1",
                resource: "widgets",
            },
            subresource: "",
            name: "w",
            namespace: "ns",
            object: self.object.as_ref(),
            old_object: self.old_object.as_ref(),
            options: None,
            is_dry_run: self.is_dry_run,
            user: self.user.as_ref(),
            equivalent_resources: &[],
        }
    }

    fn match_hooks(&self, snapshot: &Snapshot) -> &MatchedHooks {
        self.matched_hooks.get_or_init(|| snapshot.match_hooks(&self.attributes()))
    }

    pub(crate) fn asking<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        connections: &'a HookConnections,
    ) -> HookRequest<'a> {
        HookRequest {
            attributes: self.attributes(),
            matched_hooks: self.match_hooks(snapshot),
            hook_connections: connections,
            namespace: None,
            authorizer: self.authorizer.as_deref(),
            object_converter: &*self.kinds,
            hook_observer: &self.seen,
            long_computation_flag: None,
        }
    }

    pub(crate) fn session(&self) -> HookSession {
        HookSession::new(Instant::now() + self.limit)
    }

    /// Runs both phases, with connections of its own.
    pub(crate) async fn run(&self) -> Admission {
        let snapshot = self.snapshot();
        let connections = self.connections(&snapshot);
        admit(self.session(), &self.asking(&snapshot, &connections)).await
    }

    pub(crate) async fn allowed(&self) -> (Tree, SessionReport) {
        match self.run().await {
            Admission::Allowed { object, notes } => (object.unwrap_or_default(), notes),
            Admission::Refused { refusal, .. } => panic!("{refusal}"),
        }
    }

    pub(crate) async fn refused(&self) -> (HookRefusal, SessionReport) {
        match self.run().await {
            Admission::Allowed { .. } => panic!("it was allowed"),
            Admission::Refused { refusal, notes, .. } => (refusal, notes),
        }
    }

    /// The message of the refusal.
    pub(crate) async fn complaint(&self) -> String {
        self.refused().await.0.to_string()
    }
}

/// The result of both phases of a session for one request.
pub(crate) enum Admission {
    Allowed { object: Option<Tree>, notes: SessionReport },
    Refused { refusal: HookRefusal, notes: SessionReport },
}

/// Runs both phases of a session, with nothing in between.
pub(crate) async fn admit(mut session: HookSession, asking: &HookRequest<'_>) -> Admission {
    match both_phases(&mut session, asking).await {
        Ok(object) => Admission::Allowed { object, notes: session.into_report() },
        Err(refusal) => Admission::Refused { refusal, notes: session.into_report() },
    }
}

async fn both_phases(
    session: &mut HookSession,
    asking: &HookRequest<'_>,
) -> Result<Option<Tree>, HookRefusal> {
    let mut object = session.call_mutating_hooks(asking, asking.attributes.object.cloned()).await?;
    if session.needs_another_round() {
        object = session.call_mutating_hooks(asking, object).await?;
    }
    let attributes = Attributes { object: object.as_ref(), ..asking.attributes };
    session.validate(&HookRequest { attributes, ..*asking }).await?;
    Ok(object)
}

pub(crate) fn widget() -> Tree {
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "name": "w", "namespace": "ns", "labels": { "app": "w" } },
    });
    widget.as_object().unwrap().clone()
}

/// The value of a label.
pub(crate) fn label_of<'t>(tree: &'t Tree, name: &str) -> Option<&'t str> {
    tree.get("metadata")?.get("labels")?.get(name)?.as_str()
}

/// The annotations as a map.
pub(crate) fn annotations(notes: &SessionReport) -> BTreeMap<&str, &str> {
    notes.annotations.iter().map(|it| (it.key.as_str(), it.value.as_str())).collect()
}

/// Waits for something that the tasks of clients bring about.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            std::thread::yield_now();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap();
}
