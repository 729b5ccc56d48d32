//! The webhooks of a vector.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use fake_http::{Authority, Conduct, Leaf, NOBODY, Peer, ServerTls};
use https_client::{HostPort, ResolveError, ServiceName, ServiceResolver};
use serde_json::Value;

use super::calls;
use crate::vectors::Vector;

/// The domain of all webhooks.
const DOMAIN: &str = "webhook.test";

/// Who vouches for all webhooks.
static AUTHORITY: LazyLock<Result<Authority, String>> =
    LazyLock::new(|| Authority::new("conformance").map_err(|error| error.to_string()));

/// The webhooks of a vector in the order of the chain, by name.
pub(super) struct Peers(Vec<(String, Peer)>);

impl Peers {
    pub(super) fn start(vector: &Vector) -> Result<Self, String> {
        let webhooks = vector.member("webhooks")?;
        let authorizers = vector.member("config")?["authorizers"].as_array();
        let names = authorizers.into_iter().flatten().filter_map(|it| it["name"].as_str());
        let mut peers = Vec::new();
        for name in names {
            let Some(webhook) = webhooks.get(name) else { continue };
            let responses = webhook["responses"].as_array().into_iter().flatten();
            let answers: Result<Vec<_>, _> = responses.map(answer).collect();
            let leaf = authority()?.issue(&Leaf::server(&[&host(name)]));
            let tls = ServerTls::new(leaf.map_err(|error| error.to_string())?);
            let peer = Peer::start_tls(answers?, &tls).map_err(|error| error.to_string())?;
            peers.push((name.to_owned(), peer));
        }
        Ok(Self(peers))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The calls since this was last asked. The chain asks one webhook after the other, so its order
    /// is that of the calls.
    pub(super) fn take_calls(&self) -> Vec<Value> {
        let calls = self.0.iter().map(|(name, peer)| calls::grouped(name, &peer.take_requests()));
        calls.flatten().collect()
    }

    /// Who knows where the hosts are. One that refuses to be called was recorded at an address where
    /// nobody listens.
    pub(super) fn hosts(&self, vector: &Vector) -> Hosts {
        let refuses = |name: &str| {
            let responses = vector.body["webhooks"][name]["responses"].as_array();
            responses.into_iter().flatten().any(|response| response["mode"] == "refuse")
        };
        let address = |name: &str, peer: &Peer| if refuses(name) { NOBODY } else { peer.address() };
        Hosts(self.0.iter().map(|(name, peer)| (host(name), address(name, peer))).collect())
    }
}

pub(in crate::suites) fn authority() -> Result<&'static Authority, String> {
    AUTHORITY.as_ref().map_err(Clone::clone)
}

/// The host of a webhook.
pub(super) fn host(webhook: &str) -> String {
    format!("{webhook}.{DOMAIN}")
}

/// Where the hosts of webhooks are.
pub(super) struct Hosts(Vec<(String, SocketAddr)>);

impl ServiceResolver for Hosts {
    fn resolve(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        Err(ResolveError(format!("no vector has services, so {service} is unknown")))
    }

    fn override_address(&self, host: &str, _: u16) -> Option<SocketAddr> {
        self.0.iter().find(|(known, _)| known == host).map(|(_, address)| *address)
    }
}

/// What a webhook does with one request.
pub(in crate::suites) fn answer(response: &Value) -> Result<fake_http::Answer, String> {
    let text = |key: &str| response[key].as_str();
    let number = |key: &str| response[key].as_u64();
    let mut answer = fake_http::Answer::json(text("body").unwrap_or_default().to_owned());
    if let Some(status) = number("status") {
        answer = answer.status(u16::try_from(status).map_err(|_| "`status` is too large")?);
    }
    match text("contentType") {
        None => {}
        Some("none") => answer = answer.content_type(None),
        Some(other) => answer = answer.content_type(Some(other)),
    }
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        answer = answer.header(name, value.as_str().ok_or("a header is no string")?);
    }
    if let Some(n) = number("padReason") {
        answer = answer.pad(usize::try_from(n).map_err(|_| "`padReason` is too large")?);
    }
    if let Some(delay_ms) = number("delayMillis") {
        answer = answer.delay(Duration::from_millis(delay_ms));
    }
    Ok(match text("mode") {
        None => answer,
        Some("refuse") => answer.conduct(Conduct::Refuse),
        Some("reset") => answer.conduct(Conduct::Reset),
        Some("close") => answer.conduct(Conduct::Close),
        Some("truncate") => answer.conduct(Conduct::Truncate),
        Some(other) => return Err(format!("the `mode` `{other}` is unknown")),
    })
}
