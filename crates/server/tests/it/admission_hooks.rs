//! Admission hooks that a test scripts, and their configurations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_http::{Answer, Authority, Leaf, Peer, Request, Script, ServerTls};
use serde_json::{Value, json};
use store::{ExpectedKeyState, Key, Put, Store};

use crate::client::{Answer as Reply, Client};
use crate::cluster::Cluster;

pub(crate) const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub(crate) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The CA of the hooks of a test.
pub(crate) struct HookAuthority(Authority);

impl HookAuthority {
    pub(crate) fn new() -> Self {
        Self(Authority::new("hooks").expect("an authority"))
    }

    /// A hook on a loopback address.
    pub(crate) fn hook(&self, script: impl Into<Script>) -> Peer {
        self.service(&Leaf::loopback(), script)
    }

    /// A hook with a certificate.
    pub(crate) fn service(&self, leaf: &Leaf, script: impl Into<Script>) -> Peer {
        let tls = ServerTls::new(self.0.issue(leaf).expect("a certificate"));
        Peer::start_tls(script, &tls).expect("a peer")
    }

    pub(crate) fn bundle(&self) -> String {
        STANDARD.encode(self.0.pem())
    }

    /// An entry of a configuration that asks a peer about configmaps, with some fields otherwise.
    pub(crate) fn webhook(&self, name: &str, peer: &Peer, changes: Value) -> Value {
        let url = format!("https://{}/admit", peer.address());
        self.webhook_at(name, &json!({"url": url, "caBundle": self.bundle()}), changes)
    }

    /// Returns the same entry with another client configuration.
    pub(crate) fn webhook_at(&self, name: &str, client: &Value, changes: Value) -> Value {
        let mut webhook = json!({
            "name": name,
            "clientConfig": client,
            "rules": [rule(&["*"], "", "configmaps")],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
        });
        let own = webhook.as_object_mut().expect("an object");
        own.extend(changes.as_object().expect("an object").clone());
        webhook
    }
}

pub(crate) fn rule(operations: &[&str], group: &str, resource: &str) -> Value {
    json!({"operations": operations, "apiGroups": [group], "apiVersions": ["*"],
        "resources": [resource]})
}

/// Creates a configuration with these webhooks.
pub(crate) async fn register(cluster: &Cluster, path: &str, name: &str, webhooks: &[Value]) {
    register_with(&cluster.admin(), path, &webhook_configuration(path, name, webhooks)).await;
}

pub(crate) async fn register_with(client: &Client, path: &str, configuration: &Value) {
    client.post(path, configuration).await.expect(201);
}

pub(crate) fn webhook_configuration(path: &str, name: &str, webhooks: &[Value]) -> Value {
    let kind = match path {
        MUTATING => "MutatingWebhookConfiguration",
        _ => "ValidatingWebhookConfiguration",
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": webhooks,
    })
}

/// Writes an object to the store directly, as if an older server had accepted it, and returns the
/// revision.
pub(crate) async fn plant(cluster: &Cluster, path: &str, value: impl Into<Vec<u8>>) -> u64 {
    let key = Key::new(&format!("/registry/{path}")).expect("a key");
    let value = value.into().into();
    let put = Put {
        key,
        value,
        expected_state: ExpectedKeyState::Absent,
        ttl: None,
        key_group_revision_action: None,
    };
    cluster.store.put(put).await.expect("a write").as_u64()
}

/// The texts of the warnings beside an answer.
pub(crate) fn warnings(reply: &Reply) -> Vec<String> {
    let texts = reply.headers.get_all("warning").iter().map(|value| {
        let text = value.to_str().expect("text").strip_prefix("299 - \"");
        text.and_then(|text| text.strip_suffix('"')).expect("a warning of code 299").to_owned()
    });
    texts.collect()
}

/// The `request` of the review that a peer received.
pub(crate) fn asked(request: &Request) -> Value {
    let review: Value = serde_json::from_slice(&request.body).expect("a review");
    review["request"].clone()
}

/// Answers each review with these members of `response`.
pub(crate) fn answering(response: Value) -> Script {
    Script::rule(move |request| answer(request, &response))
}

/// The answer to a review of v1.
pub(crate) fn answer(request: &Request, response: &Value) -> Answer {
    let mut response = response.clone();
    response["uid"] = asked(request)["uid"].clone();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    });
    Answer::json(review.to_string())
}

pub(crate) fn allow() -> Script {
    answering(json!({"allowed": true}))
}

/// A hook that allows the request and returns a patch.
pub(crate) fn patching(patch: &Value) -> Script {
    answering(patch_of(patch))
}

/// The response that allows with changes.
pub(crate) fn patch_of(patch: &Value) -> Value {
    let patch = STANDARD.encode(patch.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

pub(crate) fn deny(message: &str) -> Script {
    answering(json!({"allowed": false, "status": {"message": message, "code": 403}}))
}
