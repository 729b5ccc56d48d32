//! A client for one target.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue,
    PROXY_AUTHORIZATION, USER_AGENT,
};
use http::{Extensions, Method, Request, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, timeout, timeout_at};

use crate::certificate_observer::CertificateObserver;
use crate::client_certificate::ClientCertificateError;
use crate::connection::FirstFault;
use crate::connector::{ConnectionRoute, Connector, ProxyHop, RouteKind};
use crate::credentials::{AuthorizationSource, basic_auth_header};
use crate::endpoint::Endpoint;
use crate::fault::{Fault, FaultKind};
use crate::go_error_text::error_to_fault;
use crate::limits::{HEAD_BYTES_MIN, Limits};
use crate::path_request::PathRequest;
use crate::proxy::{Proxy, ProxyEnvironment, ProxyKind, ProxyUrl, ProxyUrlError};
use crate::reply::{self, NoReplyByteLimit, Reply, ReplyByteCounter};
use crate::reply_stream::ReplyStream;
use crate::service_resolver::ServiceResolver;
use crate::target::{Destination, Scheme, Target};
use crate::tls_client::TlsClient;

/// Makes exchanges with one target and pools connections to it. Connections belong to the runtime that makes the calls.
/// Dropping the client closes them when their exchanges have ended.
///
/// The client speaks HTTP/1.1, so each exchange has a connection of its own: an idle one or a new one. With
/// HTTP/2, the server would limit the exchanges of a connection, and further requests would wait in this process
/// behind slow exchanges of other users until they time out.
pub struct Client {
    http_client: legacy::Client<Connector, Full<Bytes>>,
    connector: Connector,
    /// The headers that all requests have.
    headers: HeaderMap,
    authorization_source: AuthorizationSource,
    /// Whether requests accept compressed responses, which are then decompressed.
    accepts_gzip: bool,
    response_body_bytes_max: usize,
}

/// The reason why no client can be made for a target.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The name, the namespace or the port of the Service is missing.
    #[error("cannot resolve an empty service name or namespace or port")]
    Service,
    /// Host, port and path do not make a URL.
    #[error("host, port and path do not make a URL")]
    Url,
    /// The name to verify in the certificate is neither a DNS name nor an IP address.
    #[error("`{0}` is not a server name")]
    ServerName(String),
    /// The credentials cannot be written in a header.
    #[error("the credentials cannot be written in a header")]
    Credentials,
    /// The user agent cannot be written in a header.
    #[error("the user agent cannot be written in a header")]
    UserAgent,
    /// The user to impersonate cannot be written in a header.
    #[error("the user to impersonate cannot be written in a header")]
    Impersonation,
    /// An environment variable names an invalid proxy.
    #[error("the environment names no proxy that can be used: {0}")]
    Proxy(ProxyUrlError),
    /// The cryptography provider supports no version of TLS.
    #[error("no version of TLS has a cipher suite")]
    Cryptography,
    /// The client certificate cannot be used.
    #[error(transparent)]
    ClientCertificate(#[from] ClientCertificateError),
}

impl From<ProxyUrlError> for BuildError {
    fn from(error: ProxyUrlError) -> Self {
        Self::Proxy(error)
    }
}

/// The future of a call. It is boxed, so that the code of the HTTP client is compiled in this crate alone, and not again in
/// each crate that calls.
pub type ClientFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Client {
    /// Makes a client without connecting. Without a resolver, a Service is looked up by its DNS name,
    /// `name.namespace.svc`.
    ///
    /// # Errors
    /// [`BuildError`] if the target is invalid.
    pub fn new(
        target: Target,
        resolver: Option<Arc<dyn ServiceResolver>>,
        limits: Limits,
        observer: Arc<dyn CertificateObserver>,
    ) -> Result<Self, BuildError> {
        let endpoint = Endpoint::new(&target)?;
        let route_kind = choose_route(&target, &endpoint, &observer)?;
        let headers = default_headers(&target, &endpoint, &route_kind)?;
        let credentials = match endpoint.scheme {
            Scheme::Https => &target.credentials,
            Scheme::Http => &crate::Credentials::None,
        };
        let authorization = AuthorizationSource::new(credentials, limits.token_age_max)
            .ok_or(BuildError::Credentials)?;
        let tls = match endpoint.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let certificate = target.client_certificate.as_ref();
                let tls = TlsClient::new(&target.server_trust, certificate, observer)?;
                Some(Arc::new(tls))
            }
        };
        let connector = Connector::new(ConnectionRoute {
            endpoint,
            kind: route_kind,
            service_resolver: resolver,
            tls_client: tls,
            connect_timeout: limits.connect_timeout,
            address_policy: limits.address_policy,
        });
        Ok(Self {
            http_client: http_client_builder(&limits).build(connector.clone()),
            connector,
            headers,
            authorization_source: authorization,
            accepts_gzip: target.accepts_gzip,
            response_body_bytes_max: limits.response_body_bytes_max,
        })
    }

    /// Sends a POST request with a JSON body and reads the response; `limit` bounds all of it, with connecting. The query,
    /// such as `timeout=3s`, is appended to the URL unchanged.
    ///
    /// If a pooled connection turns out to be closed before the request is sent, the request is sent on another one. A
    /// request that was sent is never repeated. Dropping the future ends the exchange.
    ///
    /// # Errors
    /// [`Fault`] if there is no response. A response of any status is a success.
    pub fn post<'a>(
        &'a self,
        query: &'a str,
        body: Bytes,
        limit: Duration,
    ) -> ClientFuture<'a, Result<Reply, Fault>> {
        Box::pin(async move { self.send_post(query, body, limit, &mut NoReplyByteLimit).await })
    }

    /// Like [`Self::post`], and counts the bytes of the response while they arrive.
    ///
    /// # Errors
    /// [`Fault`] if there is no response, or if the counter has no room for it.
    pub fn post_counting_bytes<'a>(
        &'a self,
        query: &'a str,
        body: Bytes,
        limit: Duration,
        counter: &'a mut dyn ReplyByteCounter,
    ) -> ClientFuture<'a, Result<Reply, Fault>> {
        Box::pin(self.send_post(query, body, limit, counter))
    }

    async fn send_post(
        &self,
        query: &str,
        body: Bytes,
        limit: Duration,
        counter: &mut dyn ReplyByteCounter,
    ) -> Result<Reply, Fault> {
        let deadline = Instant::now() + limit.min(TIMEOUT_MAX);
        let endpoint = &self.connector.connection_route().endpoint;
        let uri = endpoint
            .request_uri(query)
            .ok_or_else(|| Fault::new(FaultKind::Other, "the query cannot be part of a URL"))?;
        let body_bytes_max =
            self.response_body_bytes_max.max(body.len().saturating_mul(RESPONSE_SIZE_FACTOR));
        let head = self.send(self.build_request(Method::POST, uri, body), deadline).await?;
        self.read_reply(head, deadline, body_bytes_max, counter).await
    }

    /// Sends a request and waits for the head of the response.
    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<http::Response<Incoming>, Fault> {
        let error_prefix = request_error_prefix(request.method(), request.uri());
        let connection = capture_connection(&mut request);
        let n_successful_dials = self.connector.n_successful_dials();
        let fault = match timeout_at(deadline, self.http_client.request(request)).await {
            Ok(Ok(head)) => return Ok(head),
            Ok(Err(error)) => request_error_to_fault(&error),
            // Other requests got connections while this request waited, so the target is not at fault.
            Err(_)
                if connection.connection_metadata().is_none()
                    && self.connector.n_successful_dials() != n_successful_dials =>
            {
                let message = "out of time while waiting for a connection behind other requests";
                Fault::new(FaultKind::Local, message)
            }
            Err(_) => {
                let message = "context deadline exceeded (Client.Timeout exceeded while awaiting \
                               headers)";
                Fault::new(FaultKind::Timeout, message)
            }
        };
        Err(fault.with_message_prefix(error_prefix))
    }

    /// Sends a request to another path of the server and reads the response; `limit` bounds all of it, with connecting.
    ///
    /// # Errors
    /// [`Fault`] if there is no response. A response of any status is a success.
    pub fn exchange<'a>(
        &'a self,
        request: PathRequest<'a>,
        limit: Duration,
    ) -> ClientFuture<'a, Result<Reply, Fault>> {
        Box::pin(async move {
            let deadline = Instant::now() + limit.min(TIMEOUT_MAX);
            let head = self.send(self.build_path_request(request)?, deadline).await?;
            self.read_reply(head, deadline, self.response_body_bytes_max, &mut NoReplyByteLimit)
                .await
        })
    }

    /// Sends a request to another path of the server and returns the response when its head has arrived. The caller reads
    /// the body while it arrives, such as the events of a watch. `head_limit` bounds the time until then.
    ///
    /// # Errors
    /// [`Fault`] if there is no response. A response of any status is a success.
    pub fn open_stream<'a>(
        &'a self,
        request: PathRequest<'a>,
        head_limit: Duration,
    ) -> ClientFuture<'a, Result<ReplyStream, Fault>> {
        Box::pin(async move {
            let deadline = Instant::now() + head_limit.min(TIMEOUT_MAX);
            let mut request = self.build_path_request(request)?;
            // Events of a compressed stream arrive only when the compressor has enough of them.
            request.headers_mut().remove(ACCEPT_ENCODING);
            let (head, body) = self.send(request, deadline).await?.into_parts();
            Ok(ReplyStream::new(head.status.as_u16(), body))
        })
    }

    fn build_path_request(&self, request: PathRequest<'_>) -> Result<Request<Full<Bytes>>, Fault> {
        let PathRequest { method, path_and_query, accept_header: accept, body } = request;
        let uri = self.connector.connection_route().endpoint.path_uri(path_and_query);
        let uri =
            uri.ok_or_else(|| Fault::new(FaultKind::Other, "the path cannot be part of a URL"))?;
        let mut request = self.build_request(method.into(), uri, body);
        if !accept.is_empty() {
            let accept = HeaderValue::from_static(accept);
            request.headers_mut().insert(ACCEPT, accept);
        }
        Ok(request)
    }

    /// Opens a connection with its TLS handshake and closes it again, without a request.
    ///
    /// # Errors
    /// [`Fault`] if no trusted connection can be opened.
    pub fn check_connection(&self, limit: Duration) -> ClientFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            match timeout(limit, self.connector.connection_route().connect()).await {
                Ok(connected) => {
                    // A failed close does not matter.
                    drop(timeout(CLOSE_TIMEOUT, connected?.shutdown()).await);
                    Ok(())
                }
                Err(_) => Err(Fault::new(FaultKind::Timeout, "context deadline exceeded")),
            }
        })
    }

    fn build_request(&self, method: Method, uri: Uri, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let mut headers = self.headers.clone();
        if let Some(value) = self.authorization_source.authorization_header(Instant::now()) {
            headers.insert(AUTHORIZATION, value);
        }
        *request.headers_mut() = headers;
        request
    }

    async fn read_reply(
        &self,
        response: http::Response<Incoming>,
        deadline: Instant,
        body_bytes_max: usize,
        counter: &mut dyn ReplyByteCounter,
    ) -> Result<Reply, Fault> {
        let (mut head, body) = response.into_parts();
        let headers = &mut head.headers;
        let read = reply::read_body(headers, body, self.accepts_gzip, body_bytes_max, counter);
        let body = match timeout_at(deadline, read).await {
            Ok(Ok(body)) => body,
            Ok(Err(reply::ReadBodyError::TooLarge)) => {
                let message = format!("the body of the response exceeds {body_bytes_max} bytes");
                return Err(Fault::new(FaultKind::TooLarge, message));
            }
            Ok(Err(reply::ReadBodyError::NoRoom)) => {
                let message = "this server has no memory left for the response";
                return Err(Fault::new(FaultKind::Local, message));
            }
            Ok(Err(reply::ReadBodyError::Compression)) => {
                return Err(Fault::new(FaultKind::Other, "gzip: invalid data")
                    .with_message_prefix(BODY_ERROR_PREFIX));
            }
            Ok(Err(reply::ReadBodyError::Broken(error))) => {
                let fault = first_fault(&head.extensions).unwrap_or_else(|| error_to_fault(&error));
                let is_eof = fault.kind == FaultKind::Eof;
                let message = if is_eof { "unexpected EOF".to_owned() } else { fault.message };
                return Err(Fault::new(fault.kind, message).with_message_prefix(BODY_ERROR_PREFIX));
            }
            Err(_) => {
                let message = "context deadline exceeded (Client.Timeout or context cancellation \
                               while reading body)";
                return Err(
                    Fault::new(FaultKind::Timeout, message).with_message_prefix(BODY_ERROR_PREFIX)
                );
            }
        };
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = self.connector.connection_route().endpoint.request_uri("");
        f.debug_struct("Client").field("uri", &uri).finish_non_exhaustive()
    }
}

/// A response may always be this many times as long as its request, because it may contain the request, such as an object
/// in the patch of an admission webhook.
pub const RESPONSE_SIZE_FACTOR: usize = 2;

/// The longest timeout, so that deadlines do not overflow.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The maximum time that closing a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// The prefix that Kubernetes' client gives to errors of response bodies.
const BODY_ERROR_PREFIX: &str =
    "unexpected error when reading response body. Please retry. Original error";

/// The prefix that Go's HTTP client gives to errors of a request.
fn request_error_prefix(method: &Method, uri: &Uri) -> String {
    let word = if *method == Method::GET { "Get" } else { "Post" };
    format!("{word} \"{uri}\"")
}

/// Converts an error of the HTTP library, preferring the first fault of the connection.
fn request_error_to_fault(error: &legacy::Error) -> Fault {
    let mut extensions = Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extensions);
    }
    first_fault(&extensions).unwrap_or_else(|| error_to_fault(error))
}

fn first_fault(extensions: &Extensions) -> Option<Fault> {
    extensions.get::<FirstFault>().and_then(FirstFault::get)
}

fn http_client_builder(limits: &Limits) -> legacy::Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits.idle_timeout)
        .pool_max_idle_per_host(limits.idle_connections_max)
        .http1_max_buf_size(limits.response_head_bytes_max.max(HEAD_BYTES_MIN))
        .http1_max_headers(limits.response_header_fields_max);
    builder
}

fn choose_route(
    target: &Target,
    endpoint: &Endpoint,
    observer: &Arc<dyn CertificateObserver>,
) -> Result<RouteKind, BuildError> {
    let at = &endpoint.host_port;
    if let Destination::Service(service) = &target.destination {
        return Ok(RouteKind::Service(service.clone()));
    }
    let proxy = match &target.proxy {
        Proxy::Direct => None,
        Proxy::Environment => ProxyEnvironment::from_process_environment().proxy_for_host(
            endpoint.scheme,
            &at.host,
            at.port,
        )?,
        Proxy::Url(proxy) => Some(proxy.clone()),
    };
    let Some(proxy) = proxy else { return Ok(RouteKind::Direct) };
    let tls = match proxy.kind {
        ProxyKind::Http | ProxyKind::Socks5 => None,
        // A proxy is verified with the trust of the target, but does not get its client certificate.
        ProxyKind::Https => {
            let name = proxy.host_port.host.clone();
            let parsed = ServerName::try_from(name.clone());
            let name = parsed.map_err(|_| BuildError::ServerName(name))?;
            let tls = TlsClient::new(&target.server_trust, None, Arc::clone(observer))?;
            Some((Arc::new(tls), name))
        }
    };
    Ok(RouteKind::Proxy(ProxyHop { proxy, tls_client: tls }))
}

fn default_headers(
    target: &Target,
    endpoint: &Endpoint,
    route_kind: &RouteKind,
) -> Result<HeaderMap, BuildError> {
    let mut headers = HeaderMap::new();
    let user_agent = HeaderValue::from_str(target.user_agent);
    headers.insert(USER_AGENT, user_agent.map_err(|_| BuildError::UserAgent)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    if target.accepts_gzip {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let RouteKind::Service(_) = route_kind {
        let host = HeaderValue::from_str(endpoint.authority()).map_err(|_| BuildError::Url)?;
        headers.insert(HOST, host);
    }
    // In a tunnel, the CONNECT request carries this header; without a tunnel, every request does.
    if let (Scheme::Http, RouteKind::Proxy(ProxyHop { proxy, .. })) = (endpoint.scheme, route_kind)
        && let Some(value) = proxy_authorization_header(proxy)?
    {
        headers.insert(PROXY_AUTHORIZATION, value);
    }
    target
        .impersonation
        .write_impersonation_headers(&mut headers)
        .map_err(|_| BuildError::Impersonation)?;
    Ok(headers)
}

fn proxy_authorization_header(proxy: &ProxyUrl) -> Result<Option<HeaderValue>, BuildError> {
    match &proxy.proxy_login {
        Some(login) if !proxy.is_socks() => {
            basic_auth_header(&login.username, login.password.expose())
                .map(Some)
                .ok_or(BuildError::Credentials)
        }
        _ => Ok(None),
    }
}
