//! The webhooks of a vector.

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

use crate::suites::chain::{authority, stub_answer};
use crate::vectors::Vector;

/// What stands for the number of a question, which is another one each time.
const UID: &str = "$UID";

/// The calls of all webhooks in the order in which they came.
type Calls = Arc<Mutex<Vec<(String, Request)>>>;

/// The webhooks of a vector.
pub(super) struct Peers {
    peers: Vec<(String, Peer)>,
    /// Those where nobody listens.
    silent: Vec<String>,
    calls: Calls,
}

impl Peers {
    pub(super) fn start(vector: &Vector) -> Result<Self, String> {
        let calls = Calls::default();
        let (mut peers, mut silent) = (Vec::new(), Vec::new());
        let webhooks = vector.member("webhooks")?.as_object();
        for (key, webhook) in webhooks.into_iter().flatten() {
            let responses = webhook["responses"].as_array().into_iter().flatten();
            if responses.clone().any(|response| response["mode"] == "refuse") {
                silent.push(key.clone());
                continue;
            }
            let answers: Result<Vec<_>, _> = responses.map(stub_answer).collect();
            let script = script(key.clone(), answers?, Arc::clone(&calls));
            let names = [host(key), format!("{key}.webhooks.svc")];
            let leaf = authority()?.issue(&Leaf::server(&[&names[0], &names[1]]));
            let tls = ServerTls::new(leaf.map_err(|error| error.to_string())?);
            let peer = Peer::start_tls(script, &tls).map_err(|error| error.to_string())?;
            peers.push((key.clone(), peer));
        }
        Ok(Self { peers, silent, calls })
    }

    /// A configuration whose webhooks trust the authority of all webhooks.
    pub(super) fn with_trust(&self, object: &Value) -> Result<Tree, String> {
        let mut object = object.clone();
        let bundle = STANDARD.encode(authority()?.pem());
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["clientConfig"]["caBundle"] = bundle.clone().into();
        }
        object.as_object().cloned().ok_or_else(|| "a configuration is no object".to_owned())
    }

    /// Who knows where the webhooks are.
    pub(super) fn hosts(&self) -> Arc<Hosts> {
        let known = self.peers.iter().map(|(key, peer)| (key.clone(), peer.address()));
        let silent = self.silent.iter().map(|key| (key.clone(), NOBODY));
        Arc::new(Hosts(known.chain(silent).collect()))
    }

    /// The calls: those of mutating webhooks in order, then the others by name.
    pub(super) fn calls(&self) -> Value {
        let mut calls = lock(&self.calls).clone();
        let rank = |key: &str| if key.starts_with('m') { String::new() } else { key.to_owned() };
        calls.sort_by_cached_key(|(key, _)| rank(key));
        calls.iter().map(|(key, request)| shown(key, request)).collect()
    }
}

fn lock(calls: &Calls) -> MutexGuard<'_, Vec<(String, Request)>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers in order, the last again and again, each to the question that was asked.
fn script(key: String, answers: Vec<fake_http::Answer>, calls: Calls) -> Script {
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

fn shown(key: &str, request: &Request) -> Value {
    let mut body = body(request);
    // A number that is none stays, so that it shows.
    if uid(request).len() == 36 {
        body["request"]["uid"] = UID.into();
    }
    json!({ "webhook": key, "uri": request.target, "body": body })
}

fn host(key: &str) -> String {
    format!("{key}.webhook.test")
}

/// A message about a webhook where nobody listens, which the recording tells by the host of its URL.
pub(super) fn with_host(message: &str) -> String {
    let host = message.split_once("Post \"https://").and_then(|(_, rest)| rest.split('/').next());
    let here = format!("dial tcp {NOBODY}:");
    message.replace(&here, &format!("dial tcp {}:443:", host.unwrap_or_default()))
}

/// Where webhooks are, by key.
pub(super) struct Hosts(Vec<(String, SocketAddr)>);

impl Hosts {
    fn find(&self, is_sought: impl Fn(&str) -> bool) -> Option<SocketAddr> {
        self.0.iter().find(|(key, _)| is_sought(key)).map(|(_, address)| *address)
    }
}

impl ServiceResolver for Hosts {
    fn resolve(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        let unknown = || ResolveError(format!("services \"{}\" not found", service.name));
        let address = self.find(|key| key == service.name).ok_or_else(unknown)?;
        Ok(HostPort { host: address.ip().to_string(), port: address.port() })
    }

    fn override_address(&self, sought: &str, _: u16) -> Option<SocketAddr> {
        self.find(|key| host(key) == sought)
    }
}

impl ClusterServices for Hosts {
    fn tcp_ports(&self, _: &str, name: &str) -> Result<Vec<u16>, ResolveError> {
        Err(ResolveError(format!("no vector asks for the ports of `{name}`")))
    }
}
