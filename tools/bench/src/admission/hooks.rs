//! Hooks that answer at once or after a delay, and their registration.

use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_http::{Answer, Authority, Leaf, Peer, Request, Script, ServerTls};
use serde_json::{Value, json};

use crate::server::client::Client;
use crate::server::populate::send_as_admin;

/// The admission phase in which hooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Mutating,
    Validating,
}

/// One fake service that answers for all hooks.
pub(super) struct FakeHooks {
    peer: Peer,
    bundle: String,
}

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
/// The name of the configuration whose hooks match.
const NAME: &str = "bench";
/// The name of the configuration whose hooks do not match.
const OTHERS: &str = "others";

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mutating => "mutating",
            Self::Validating => "validating",
        }
    }

    fn path(self) -> String {
        format!("{GROUP}/{}webhookconfigurations", self.name())
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }
}

impl FakeHooks {
    pub(super) fn start() -> anyhow::Result<Self> {
        let authority = Authority::new("bench")?;
        let tls = ServerTls::new(authority.issue(&Leaf::loopback())?);
        let peer = Peer::start_tls(Script::rule(answer), &tls)?;
        Ok(Self { peer, bundle: STANDARD.encode(authority.pem()) })
    }

    /// Registers hooks that match config maps.
    pub(super) async fn register(
        &self,
        client: &Client,
        phase: Phase,
        n_hooks: usize,
        delay: Option<Duration>,
    ) -> anyhow::Result<()> {
        let millis = delay.unwrap_or_default().as_millis();
        let path = format!("/{}/{millis}", phase.name());
        let webhooks: Vec<Value> =
            (0..n_hooks).map(|n| self.webhook(&format!("h{n}"), &path, "configmaps")).collect();
        self.create(client, phase, NAME, &webhooks).await
    }

    /// Registers hooks for resources that the benchmark does not create.
    pub(super) async fn register_others(
        &self,
        client: &Client,
        n_hooks: usize,
    ) -> anyhow::Result<()> {
        let webhooks: Vec<Value> = (0..n_hooks)
            .map(|n| self.webhook(&format!("o{n}"), "/validating/0", &format!("others{n}")))
            .collect();
        self.create(client, Phase::Validating, OTHERS, &webhooks).await
    }

    pub(super) async fn remove(&self, client: &Client, phase: Phase) -> anyhow::Result<()> {
        let path = format!("{}/{NAME}", phase.path());
        send_as_admin(client, "DELETE", &path, None, 200).await
    }

    pub(super) async fn remove_others(&self, client: &Client) -> anyhow::Result<()> {
        let path = format!("{}/{OTHERS}", Phase::Validating.path());
        send_as_admin(client, "DELETE", &path, None, 200).await
    }

    async fn create(
        &self,
        client: &Client,
        phase: Phase,
        name: &str,
        webhooks: &[Value],
    ) -> anyhow::Result<()> {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": phase.kind(),
            "metadata": {"name": name},
            "webhooks": webhooks,
        });
        let created = send_as_admin(client, "POST", &phase.path(), Some(&configuration), 201).await;
        created.with_context(|| format!("{} {}", webhooks.len(), phase.name()))
    }

    fn webhook(&self, name: &str, path: &str, resource: &str) -> Value {
        json!({
            "name": format!("{name}.bench.example.com"),
            "clientConfig": {
                "url": format!("https://{}{path}", self.peer.address()),
                "caBundle": self.bundle,
            },
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": [resource]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        })
    }
}

/// Allows the request; mutating hooks also add a label.
fn answer(request: &Request) -> Answer {
    let review: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    let path = request.target.split('?').next().unwrap_or_default();
    let millis = path.rsplit('/').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    if path.starts_with("/mutating") {
        let patch = json!([{"op": "add", "path": "/metadata/labels/hook", "value": "seen"}]);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    });
    Answer::json(review.to_string()).delay(Duration::from_millis(millis))
}
