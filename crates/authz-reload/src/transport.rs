//! The exchanges of a webhook over a client.

use std::sync::Arc;
use std::time::Duration;

use authz::Unavailable;
use authz_webhook::{Fault, FaultKind, Reply, Sending, Transport};
use bytes::Bytes;
use https_client::{Client, Destination, Target};

/// Posts reviews.
pub struct HookTransport {
    client: Arc<Client>,
    /// Tells the service how long somebody waits for it, as Kubernetes does.
    query: String,
    url: String,
}

impl HookTransport {
    /// Posts over a client, and tells the service after which time nobody waits any more. The
    /// endpoint is the one of the client's target, for messages.
    pub fn new(client: Arc<Client>, endpoint: &str, timeout: Duration) -> Self {
        let nanos = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        let query = format!("timeout={}", go_compat::format_duration(nanos));
        let url = format!("{endpoint}?{query}");
        Self { client, query, url }
    }
}

impl Transport for HookTransport {
    fn send(&self, body: Bytes, limit: Duration) -> Sending<'_> {
        Box::pin(async move {
            let reply = self.client.post(&self.query, body, limit).await;
            reply.map(reply_of).map_err(fault_of)
        })
    }

    fn url(&self) -> &str {
        &self.url
    }
}

fn reply_of(reply: https_client::Reply) -> Reply {
    let header = |name: &str| {
        let value = reply.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Reply {
        status: reply.status,
        content_type: header("content-type"),
        retry_after: header("retry-after"),
        body: reply.body,
    }
}

fn fault_of(fault: https_client::Fault) -> Fault {
    let kind = match fault.kind {
        https_client::FaultKind::Timeout => FaultKind::Timeout,
        https_client::FaultKind::Reset => FaultKind::Reset,
        https_client::FaultKind::TooLarge => FaultKind::TooLarge,
        https_client::FaultKind::Refused
        | https_client::FaultKind::Dns
        | https_client::FaultKind::Connect => FaultKind::Connect,
        https_client::FaultKind::Tls => FaultKind::Tls,
        https_client::FaultKind::Eof | https_client::FaultKind::Other => FaultKind::Other,
        https_client::FaultKind::Local | https_client::FaultKind::AddressRefused => {
            FaultKind::Local(Unavailable::OutOfResources)
        }
    };
    Fault { kind, message: fault.message }
}

/// Where a service is called, for people to read. Credentials are not part of a target's place.
pub fn endpoint(target: &Target) -> String {
    let path = if target.path.is_empty() { "/" } else { target.path.as_str() };
    match &target.destination {
        Destination::Service(service) => format!("https://{service}{path}"),
        Destination::Url { scheme, host, port } => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            let port = port.map_or_else(String::new, |port| format!(":{port}"));
            format!("{}://{host}{port}{path}", scheme.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use https_client::{Scheme, ServiceName};

    #[test]
    fn endpoints_are_written_as_urls() {
        let url = |host: &str, port, path| {
            let place = Destination::Url { scheme: Scheme::Https, host: host.to_owned(), port };
            endpoint(&Target::new(place, path))
        };
        assert_eq!(url("a.example", None, ""), "https://a.example/");
        assert_eq!(url("::1", Some(8443), "/x"), "https://[::1]:8443/x");
        let service =
            ServiceName { namespace: "ns".to_owned(), name: "hook".to_owned(), port: 443 };
        let service = Target::new(Destination::Service(service), "");
        assert_eq!(endpoint(&service), "https://hook.ns.svc:443/");
    }

    #[test]
    fn faults_keep_what_retry_needs_to_know() {
        for (from, want) in [
            (https_client::FaultKind::Timeout, FaultKind::Timeout),
            (https_client::FaultKind::Reset, FaultKind::Reset),
            (https_client::FaultKind::TooLarge, FaultKind::TooLarge),
            (https_client::FaultKind::Eof, FaultKind::Other),
            (https_client::FaultKind::Tls, FaultKind::Tls),
            (https_client::FaultKind::Refused, FaultKind::Connect),
            (https_client::FaultKind::Local, FaultKind::Local(Unavailable::OutOfResources)),
            (
                https_client::FaultKind::AddressRefused,
                FaultKind::Local(Unavailable::OutOfResources),
            ),
        ] {
            let fault = fault_of(https_client::Fault { kind: from, message: "m".to_owned() });
            assert_eq!(fault, Fault::new(want, "m"));
        }
    }
}
