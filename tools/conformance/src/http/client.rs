//! A client over TLS that sends requests exactly as a scenario gives them.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, WARNING};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The longest that one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The address of a server, with the credentials of its administrator.
#[derive(Debug, Clone)]
pub struct Endpoint {
    host: String,
    port: u16,
    authorization: HeaderValue,
    tls: Arc<ClientConfig>,
}

/// The reason why a request cannot be sent or has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address or the credentials cannot be used.
    #[error("cannot use {what}: {why}")]
    Unusable {
        /// The address or the credential that was given.
        what: String,
        /// The reason why it cannot be used.
        why: String,
    },
    /// The server gives no answer.
    #[error("no answer to {request}: {why}")]
    NoAnswer {
        /// The method and the path.
        request: String,
        /// The reason why there is no answer.
        why: ExchangeError,
    },
}

/// The reason why one request has no answer. The report prints only the text of the error, so the text contains
/// the cause and there is no `source`.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The server does not answer in time.
    #[error("none within {ANSWER_TIMEOUT:?}")]
    Timeout,
    /// The method, the path and the headers do not form a request.
    #[error("{0}")]
    Request(http::Error),
    /// The host of the URL cannot be the name of a server.
    #[error("{0}")]
    ServerName(InvalidDnsNameError),
    /// No connection can be opened.
    #[error("cannot connect to {address}: {cause}")]
    Connect {
        /// The host and the port.
        address: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The TLS handshake fails.
    #[error("no TLS with {address}: {cause}")]
    Tls {
        /// The host and the port.
        address: String,
        /// The error of the handshake.
        cause: io::Error,
    },
    /// The connection breaks, or its bytes are not HTTP.
    #[error("{0}")]
    Http(hyper::Error),
}

/// A client with one connection, which it opens again when the server closes it.
pub(super) struct Client {
    endpoint: Endpoint,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// An answer of a server.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) code: u16,
    /// The texts of the `Warning` headers, with their escapes.
    pub(super) warnings: Vec<String>,
    pub(super) body: Bytes,
}

impl Endpoint {
    /// Makes the endpoint of a server at an `https` URL. Without a CA file its certificate is not verified.
    ///
    /// # Errors
    /// The URL, the token or the file cannot be used.
    pub fn new(url: &str, token: &str, ca_file: Option<&Path>) -> Result<Self, ClientError> {
        let unusable = |what: &str, why: &str| ClientError::Unusable {
            what: what.to_owned(),
            why: why.to_owned(),
        };
        let bad_url = |why: &str| unusable(&format!("the address `{url}`"), why);
        let uri: Uri = url.parse().map_err(|_| bad_url("it is not a URL"))?;
        if uri.scheme_str() != Some("https") || !matches!(uri.path(), "" | "/") {
            return Err(bad_url("want https://HOST:PORT"));
        }
        let host = uri.host().ok_or_else(|| bad_url("it names no host"))?;
        let authorization = HeaderValue::from_str(&format!("Bearer {token}"));
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(443),
            authorization: authorization
                .map_err(|_| unusable("the token", "it does not fit into a header"))?,
            tls: Arc::new(tls_config(ca_file)?),
        })
    }
}

impl Client {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, connection: None }
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// The server cannot be reached, or does not answer in time.
    pub(super) async fn send(
        &mut self,
        method: &Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Response, ClientError> {
        let answer = self.exchange(method, path, headers, body);
        let answer = match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(ExchangeError::Timeout),
        };
        answer.map_err(|why| {
            self.connection = None;
            ClientError::NoAnswer { request: format!("{method} {path}"), why }
        })
    }

    async fn exchange(
        &mut self,
        method: &Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Response, ExchangeError> {
        let Endpoint { host, port, authorization, .. } = &self.endpoint;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, format!("{host}:{port}"))
            .header(AUTHORIZATION, authorization);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).map_err(ExchangeError::Request)?;
        let mut connection = match self.take_open_connection().await {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let answer = connection.send_request(request).await.map_err(ExchangeError::Http)?;
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.map_err(ExchangeError::Http)?.to_bytes();
        self.connection = Some(connection);
        let warnings = parts.headers.get_all(WARNING).into_iter();
        Ok(Response {
            code: parts.status.as_u16(),
            warnings: warnings.map(|value| warning_text(value.as_bytes())).collect(),
            body,
        })
    }

    /// The connection of the previous request, unless the server has closed it.
    async fn take_open_connection(&mut self) -> Option<SendRequest<Full<Bytes>>> {
        let mut connection = self.connection.take()?;
        connection.ready().await.ok().map(|()| connection)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ExchangeError> {
        let Endpoint { host, port, tls, .. } = &self.endpoint;
        let tcp = TcpStream::connect((host.as_str(), *port)).await;
        let address = format!("{host}:{port}");
        let tcp = match tcp {
            Ok(tcp) => tcp,
            Err(cause) => return Err(ExchangeError::Connect { address, cause }),
        };
        let name = ServerName::try_from(host.clone()).map_err(ExchangeError::ServerName)?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, tcp).await;
        let stream = stream.map_err(|cause| ExchangeError::Tls { address, cause })?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(ExchangeError::Http)?;
        // The task ends with the connection, and the sender reports its errors.
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// The text between the quotes of a warning.
fn warning_text(value: &[u8]) -> String {
    let value = String::from_utf8_lossy(value);
    let text = value.strip_prefix("299 - \"").unwrap_or(&value);
    text.strip_suffix('"').unwrap_or(text).to_owned()
}

fn tls_config(ca_file: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let unusable = |what: String, error: &dyn std::fmt::Display| ClientError::Unusable {
        what,
        why: error.to_string(),
    };
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable("TLS".to_owned(), &error))?;
    let Some(path) = ca_file else {
        let anybody = Arc::new(AcceptAnyCertificate { provider });
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(anybody)
            .with_no_client_auth());
    };
    let bad_file = |error: &dyn std::fmt::Display| unusable(format!("`{}`", path.display()), error);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad_file(&error))? {
        let certificate = certificate.map_err(|error| bad_file(&error))?;
        roots.add(certificate).map_err(|error| bad_file(&error))?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Accepts every certificate, for a server that was started for this comparison.
#[derive(Debug)]
struct AcceptAnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_https_without_a_path() {
        for url in ["https://127.0.0.1:6443", "https://[::1]:6443/", "https://example.test"] {
            assert!(Endpoint::new(url, "t", None).is_ok(), "{url}");
        }
        for url in ["http://127.0.0.1", "https://a/b", "127.0.0.1:6443", "https://", "\u{1}"] {
            assert!(Endpoint::new(url, "t", None).is_err(), "{url}");
        }
        assert!(Endpoint::new("https://a", "no\nline", None).is_err());
        assert!(Endpoint::new("https://a", "t", Some(Path::new("/no/such/file"))).is_err());
    }

    #[test]
    fn warning_texts_are_unquoted_and_keep_their_escapes() {
        for (header, want) in [
            ("299 - \"unknown field \\\"a\\\"\"", "unknown field \\\"a\\\""),
            ("199 other \"x\"", "199 other \"x"),
        ] {
            assert_eq!(warning_text(header.as_bytes()), want);
        }
    }
}
