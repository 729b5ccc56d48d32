//! Sends the reviews of a webhook over an HTTPS client.

use std::sync::Arc;
use std::time::Duration;

use authz::UnavailableCause;
use authz_webhook::{HttpResponse, ResponseFuture, Transport, TransportError, TransportErrorKind};
use bytes::Bytes;
use https_client::{Client, Destination, Target};

/// Posts reviews to one webhook.
pub struct WebhookTransport {
    client: Arc<Client>,
    /// The query `timeout=…`, with which Kubernetes announces how long it waits.
    announced_timeout_query: String,
    url: String,
}

impl WebhookTransport {
    /// Creates a transport over this client. `endpoint` is the URL of the client's target, for messages. The transport
    /// announces the timeout to the webhook.
    pub fn new(client: Arc<Client>, endpoint: &str, timeout: Duration) -> Self {
        let nanos = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        let timeout_query = format!("timeout={}", go_compat::format_duration(nanos));
        let url = format!("{endpoint}?{timeout_query}");
        Self { client, announced_timeout_query: timeout_query, url }
    }
}

impl Transport for WebhookTransport {
    fn send(&self, body: Bytes, limit: Duration) -> ResponseFuture<'_> {
        Box::pin(async move {
            let reply = self.client.post(&self.announced_timeout_query, body, limit).await;
            reply.map(to_http_response).map_err(to_transport_error)
        })
    }

    fn url(&self) -> &str {
        &self.url
    }
}

fn to_http_response(reply: https_client::Reply) -> HttpResponse {
    let header = |name: &str| {
        let value = reply.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    HttpResponse {
        status: reply.status,
        content_type: header("content-type"),
        retry_after: header("retry-after"),
        body: reply.body,
    }
}

fn to_transport_error(fault: https_client::Fault) -> TransportError {
    let kind = match fault.kind {
        https_client::FaultKind::Timeout => TransportErrorKind::Timeout,
        https_client::FaultKind::Reset => TransportErrorKind::Reset,
        https_client::FaultKind::TooLarge => TransportErrorKind::TooLarge,
        https_client::FaultKind::Refused
        | https_client::FaultKind::Dns
        | https_client::FaultKind::Connect => TransportErrorKind::Connect,
        https_client::FaultKind::Tls => TransportErrorKind::Tls,
        https_client::FaultKind::Eof | https_client::FaultKind::Other => TransportErrorKind::Other,
        https_client::FaultKind::Local | https_client::FaultKind::AddressRefused => {
            TransportErrorKind::Local(UnavailableCause::OutOfResources)
        }
    };
    TransportError { kind, message: fault.message }
}

/// Formats the URL of a webhook for messages, without credentials.
pub fn url_without_credentials(target: &Target) -> String {
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
            url_without_credentials(&Target::new(place, path))
        };
        assert_eq!(url("a.example", None, ""), "https://a.example/");
        assert_eq!(url("::1", Some(8443), "/x"), "https://[::1]:8443/x");
        let service =
            ServiceName { namespace: "ns".to_owned(), name: "hook".to_owned(), port: Some(443) };
        let service = Target::new(Destination::Service(service), "");
        assert_eq!(url_without_credentials(&service), "https://hook.ns.svc:443/");
    }

    #[test]
    fn faults_keep_the_kind_that_retries_depend_on() {
        for (from, want) in [
            (https_client::FaultKind::Timeout, TransportErrorKind::Timeout),
            (https_client::FaultKind::Reset, TransportErrorKind::Reset),
            (https_client::FaultKind::TooLarge, TransportErrorKind::TooLarge),
            (https_client::FaultKind::Eof, TransportErrorKind::Other),
            (https_client::FaultKind::Tls, TransportErrorKind::Tls),
            (https_client::FaultKind::Refused, TransportErrorKind::Connect),
            (
                https_client::FaultKind::Local,
                TransportErrorKind::Local(UnavailableCause::OutOfResources),
            ),
            (
                https_client::FaultKind::AddressRefused,
                TransportErrorKind::Local(UnavailableCause::OutOfResources),
            ),
        ] {
            let fault =
                to_transport_error(https_client::Fault { kind: from, message: "m".to_owned() });
            assert_eq!(fault, TransportError::new(want, "m"));
        }
    }
}
