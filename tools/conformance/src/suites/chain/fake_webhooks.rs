//! Starts the webhooks of a vector as services on loopback.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use fake_http::{Authority, Conduct, Leaf, NOBODY, Peer, ServerTls};
use https_client::{HostPort, ResolveError, ServiceName, ServiceResolver};
use serde_json::Value;

use super::calls;
use crate::vectors::{UnusableVector, Vector};

/// The domain of all webhooks.
const DOMAIN: &str = "webhook.test";

/// The CA that signs the certificates of all webhooks.
static AUTHORITY: LazyLock<Result<Authority, UnusableVector>> =
    LazyLock::new(|| Authority::new("conformance").map_err(UnusableVector::new));

/// The webhooks of a vector in the order of the chain, by name.
pub(super) struct FakeWebhooks(Vec<(String, Peer)>);

impl FakeWebhooks {
    pub(super) fn start(vector: &Vector) -> Result<Self, UnusableVector> {
        let webhooks = vector.member("webhooks")?;
        let authorizers = vector.member("config")?["authorizers"].as_array();
        let names = authorizers.into_iter().flatten().filter_map(|it| it["name"].as_str());
        let mut peers = Vec::new();
        for name in names {
            let Some(webhook) = webhooks.get(name) else { continue };
            let responses = webhook["responses"].as_array().into_iter().flatten();
            let answers: Result<Vec<_>, _> = responses.map(parse_response).collect();
            let leaf = webhook_authority()?.issue(&Leaf::server(&[&webhook_host(name)]));
            let tls = ServerTls::new(leaf.map_err(UnusableVector::new)?);
            let peer = Peer::start_tls(answers?, &tls).map_err(UnusableVector::new)?;
            peers.push((name.to_owned(), peer));
        }
        Ok(Self(peers))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the calls since the last time, in the order of the chain, which calls one webhook after the other.
    pub(super) fn take_calls(&self) -> Vec<Value> {
        let calls =
            self.0.iter().map(|(name, peer)| calls::group_attempts(name, &peer.take_requests()));
        calls.flatten().collect()
    }

    /// The addresses of the webhooks. A webhook that refuses connections has an address where nothing listens, as in
    /// the recording.
    pub(super) fn addresses(&self, vector: &Vector) -> WebhookAddresses {
        let refuses = |name: &str| {
            let responses = vector.body["webhooks"][name]["responses"].as_array();
            responses.into_iter().flatten().any(|response| response["mode"] == "refuse")
        };
        let address = |name: &str, peer: &Peer| if refuses(name) { NOBODY } else { peer.address() };
        WebhookAddresses(
            self.0.iter().map(|(name, peer)| (webhook_host(name), address(name, peer))).collect(),
        )
    }
}

pub(in crate::suites) fn webhook_authority() -> Result<&'static Authority, UnusableVector> {
    AUTHORITY.as_ref().map_err(Clone::clone)
}

/// The host of a webhook.
pub(super) fn webhook_host(webhook: &str) -> String {
    format!("{webhook}.{DOMAIN}")
}

/// The address of the host of each webhook.
pub(super) struct WebhookAddresses(Vec<(String, SocketAddr)>);

impl ServiceResolver for WebhookAddresses {
    fn resolve_service(&self, service: &ServiceName) -> Result<HostPort, ResolveError> {
        Err(ResolveError(format!("no vector has services, so {service} is unknown")))
    }

    fn override_address(&self, host: &str, _: u16) -> Option<SocketAddr> {
        self.0.iter().find(|(known, _)| known == host).map(|(_, address)| *address)
    }
}

/// Parses the scripted response of a webhook to one request.
pub(in crate::suites) fn parse_response(
    response: &Value,
) -> Result<fake_http::Answer, UnusableVector> {
    let text = |key: &str| response[key].as_str();
    let number = |key: &str| response[key].as_u64();
    let mut answer = fake_http::Answer::json(text("body").unwrap_or_default().to_owned());
    if let Some(status) = number("status") {
        answer = answer.status(
            u16::try_from(status).map_err(|_| UnusableVector::new("`status` is too large"))?,
        );
    }
    match text("contentType") {
        None => {}
        Some("none") => answer = answer.content_type(None),
        Some(other) => answer = answer.content_type(Some(other)),
    }
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        answer = answer.header(
            name,
            value.as_str().ok_or_else(|| UnusableVector::new("a header is no string"))?,
        );
    }
    if let Some(n) = number("padReason") {
        answer = answer
            .pad(usize::try_from(n).map_err(|_| UnusableVector::new("`padReason` is too large"))?);
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
        Some(other) => return Err(UnusableVector::new(format!("the `mode` `{other}` is unknown"))),
    })
}
