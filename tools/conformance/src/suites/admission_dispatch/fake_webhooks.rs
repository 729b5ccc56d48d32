//! Starts the admission webhooks of a vector as services on loopback.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admission_hooks::ClusterServices;
use api_object::Tree;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_http::{Body, Leaf, NOBODY, Peer, Request, Script, ServerTls};
use https_client::{HostPort, ResolveError, ServiceName, ServiceResolver};
use serde_json::{Value, json};

use crate::suites::chain::{parse_response, webhook_authority};
use crate::vectors::{UnusableVector, Vector};

/// The placeholder in vectors for the uid of a review, which differs in each run.
const UID: &str = "$UID";

/// The calls of all webhooks in the order in which they came.
type Calls = Arc<Mutex<Vec<(String, Request)>>>;

/// The webhooks of a vector.
pub(super) struct FakeWebhooks {
    peers: Vec<(String, Peer)>,
    /// The webhooks at an address where nothing listens.
    silent: Vec<String>,
    calls: Calls,
}

impl FakeWebhooks {
    pub(super) fn start(vector: &Vector) -> Result<Self, UnusableVector> {
        let calls = Calls::default();
        let (mut peers, mut silent) = (Vec::new(), Vec::new());
        let webhooks = vector.member("webhooks")?.as_object();
        for (key, webhook) in webhooks.into_iter().flatten() {
            let responses = webhook["responses"].as_array().into_iter().flatten();
            if responses.clone().any(|response| response["mode"] == "refuse") {
                silent.push(key.clone());
                continue;
            }
            let answers: Result<Vec<_>, _> = responses.map(parse_response).collect();
            let script = build_script(key.clone(), answers?, Arc::clone(&calls));
            let names = [webhook_host(key), format!("{key}.webhooks.svc")];
            let leaf = webhook_authority()?.issue(&Leaf::server(&[&names[0], &names[1]]));
            let tls = ServerTls::new(leaf.map_err(UnusableVector::new)?);
            let peer = Peer::start_tls(script, &tls).map_err(UnusableVector::new)?;
            peers.push((key.clone(), peer));
        }
        Ok(Self { peers, silent, calls })
    }

    /// A copy of a configuration whose webhooks have the CA bundle of the fake webhooks.
    pub(super) fn with_trust(&self, object: &Value) -> Result<Tree, UnusableVector> {
        let mut object = object.clone();
        let bundle = STANDARD.encode(webhook_authority()?.pem());
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["clientConfig"]["caBundle"] = bundle.clone().into();
        }
        object
            .as_object()
            .cloned()
            .ok_or_else(|| UnusableVector::new("a configuration is no object"))
    }

    /// The addresses of the webhooks.
    pub(super) fn addresses(&self) -> Arc<WebhookAddresses> {
        let known = self.peers.iter().map(|(key, peer)| (key.clone(), peer.address()));
        let silent = self.silent.iter().map(|key| (key.clone(), NOBODY));
        Arc::new(WebhookAddresses(known.chain(silent).collect()))
    }

    /// The calls of mutating webhooks in order, then those of the others by name.
    pub(super) fn calls(&self) -> Value {
        let mut calls = lock(&self.calls).clone();
        let rank = |key: &str| if key.starts_with('m') { String::new() } else { key.to_owned() };
        calls.sort_by_cached_key(|(key, _)| rank(key));
        calls.iter().map(|(key, request)| call_to_json(key, request)).collect()
    }
}

fn lock(calls: &Calls) -> MutexGuard<'_, Vec<(String, Request)>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A script that gives the answers in order and repeats the last one. It replaces the placeholder by the uid of the
/// review.
fn build_script(key: String, answers: Vec<fake_http::Answer>, calls: Calls) -> Script {
    let next = AtomicUsize::new(0);
    Script::rule(move |request| {
        lock(&calls).push((key.clone(), request.clone()));
        let idx = next.fetch_add(1, Ordering::Relaxed);
        let answer = answers.get(idx).or(answers.last()).cloned();
        let answer = answer.unwrap_or_else(|| fake_http::Answer::json("").status(500));
        let Body::Bytes(bytes) = &answer.body else { return answer };
        let body = String::from_utf8_lossy(bytes).replace(UID, &uid(request));
        answer.body(Body::Bytes(body.into()))
    })
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

fn uid(request: &Request) -> String {
    body(request)["request"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn call_to_json(key: &str, request: &Request) -> Value {
    let mut body = body(request);
    // A malformed uid stays, so that it shows as a difference.
    if uid(request).len() == 36 {
        body["request"]["uid"] = UID.into();
    }
    json!({ "webhook": key, "uri": request.target, "body": body })
}

fn webhook_host(key: &str) -> String {
    format!("{key}.webhook.test")
}

/// Replaces the address where nothing listens by the host of the URL, which recorded messages have.
pub(super) fn with_host(message: &str) -> String {
    let host = message.split_once("Post \"https://").and_then(|(_, rest)| rest.split('/').next());
    let here = format!("dial tcp {NOBODY}:");
    message.replace(&here, &format!("dial tcp {}:443:", host.unwrap_or_default()))
}

/// The addresses of webhooks, by key.
pub(super) struct WebhookAddresses(Vec<(String, SocketAddr)>);

impl WebhookAddresses {
    fn find(&self, matches: impl Fn(&str) -> bool) -> Option<SocketAddr> {
        self.0.iter().find(|(key, _)| matches(key)).map(|(_, address)| *address)
    }
}

impl ServiceResolver for WebhookAddresses {
    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        let unknown = || ResolveError(format!("services \"{}\" not found", service.name));
        let address = self.find(|key| key == service.name).ok_or_else(unknown)?;
        Ok(HostPort { host: address.ip().to_string(), port: address.port() })
    }

    fn override_address(&self, sought: &str, _: u16) -> Option<SocketAddr> {
        self.find(|key| webhook_host(key) == sought)
    }
}

impl ClusterServices for WebhookAddresses {
    fn tcp_ports(&self, _: &str, name: &str) -> Result<Vec<u16>, ResolveError> {
        Err(ResolveError(format!("no vector asks for the ports of `{name}`")))
    }
}
