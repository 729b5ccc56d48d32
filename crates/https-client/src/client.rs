//! One client for one target.

use std::fmt;
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

use crate::connect::{Connector, Hop, Route, Way};
use crate::credentials::{Authorization, basic};
use crate::endpoint::Endpoint;
use crate::failure::explain;
use crate::fault::{Fault, FaultKind};
use crate::identity::IdentityError;
use crate::limits::{HEAD_BYTES_MIN, Limits};
use crate::observe::Observe;
use crate::proxy::{Environment, Proxy, ProxyKind, ProxyUrl, ProxyUrlError};
use crate::reply::{self, Reply};
use crate::resolve::Resolve;
use crate::target::{Place, Scheme, Target};
use crate::tls::Tls;
use crate::wire::Trouble;

/// Makes exchanges with one target and keeps connections to it. Connections belong to the runtime
/// that makes the calls; dropping the client closes them when the exchanges on them have ended.
///
/// HTTP/1.1 is spoken, so each exchange has a connection of its own: one that is idle, or else a new one.
/// Over HTTP/2 a server says how many exchanges a connection carries, and a further one would wait in
/// this process for the slow exchanges of somebody else, until it is out of time.
pub struct Client {
    http: legacy::Client<Connector, Full<Bytes>>,
    connector: Connector,
    /// The headers of all requests.
    headers: HeaderMap,
    authorization: Authorization,
    /// Whether compressed answers were asked for, and so are decompressed.
    can_compress: bool,
    body_bytes_max: usize,
}

/// Why there is no client for a target.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The service lacks a part of its name.
    #[error("cannot resolve an empty service name or namespace or port")]
    Service,
    /// Host, port and path do not make a URL.
    #[error("host, port and path do not make a URL")]
    Url,
    /// A name that should be found in a certificate is neither a DNS name nor an address.
    #[error("`{0}` is not a server name")]
    ServerName(String),
    /// The credentials can not be written in a header.
    #[error("the credentials can not be written in a header")]
    Credentials,
    /// Who we say we are can not be written in a header.
    #[error("the user agent can not be written in a header")]
    UserAgent,
    /// The user to act as can not be written in a header.
    #[error("the user to impersonate can not be written in a header")]
    Impersonate,
    /// The proxy that the environment names is none.
    #[error("the environment names no proxy that can be used: {0}")]
    Proxy(ProxyUrlError),
    /// The cryptography that was compiled in can not speak TLS.
    #[error("no version of TLS has a cipher suite")]
    Cryptography,
    /// The client certificate is unusable.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl From<ProxyUrlError> for BuildError {
    fn from(error: ProxyUrlError) -> Self {
        Self::Proxy(error)
    }
}

impl Client {
    /// Makes a client; connects to nobody yet. A service without a resolver is looked up by its DNS
    /// name, `name.namespace.svc`.
    ///
    /// # Errors
    /// [`BuildError`] if there can be none for the target.
    pub fn new(
        target: Target,
        resolver: Option<Arc<dyn Resolve>>,
        limits: Limits,
        observe: Arc<dyn Observe>,
    ) -> Result<Self, BuildError> {
        let endpoint = Endpoint::new(&target)?;
        let way = way(&target, &endpoint, &observe)?;
        let headers = headers(&target, &endpoint, &way)?;
        let credentials = match endpoint.scheme {
            Scheme::Https => &target.credentials,
            Scheme::Http => &crate::Credentials::None,
        };
        let authorization =
            Authorization::new(credentials, limits.token_age_max).ok_or(BuildError::Credentials)?;
        let tls = match endpoint.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let identity = target.identity.as_ref();
                let tls = Tls::new(&target.trust, identity, observe)?;
                Some(Arc::new(tls))
            }
        };
        let connector = Connector::new(Route {
            endpoint,
            way,
            resolver,
            tls,
            connect_timeout: limits.connect_timeout,
            addresses: limits.addresses,
        });
        Ok(Self {
            http: builder(&limits).build(connector.clone()),
            connector,
            headers,
            authorization,
            can_compress: target.can_compress,
            body_bytes_max: limits.body_bytes_max,
        })
    }

    /// Sends JSON and waits for the answer; all of it, with connecting, within the limit. The query
    /// is appended to the URL as it is, such as `timeout=3s`.
    ///
    /// A request that could not be sent, because an idle connection turned out to be closed, is sent
    /// again on another; one that was sent never is. Dropping the future ends the exchange.
    ///
    /// # Errors
    /// [`Fault`] if there is no answer. Any answer, of whatever status, is one.
    pub async fn post(&self, query: &str, body: Bytes, limit: Duration) -> Result<Reply, Fault> {
        let deadline = Instant::now() + limit.min(FOREVER);
        let endpoint = &self.connector.route().endpoint;
        let uri = endpoint
            .uri(query)
            .ok_or_else(|| Fault::new(FaultKind::Other, "the query can not be part of a URL"))?;
        let body_bytes_max = self.body_bytes_max.max(body.len().saturating_mul(ANSWER_FACTOR));
        let mut request = self.request(uri.clone(), body);
        let connection = capture_connection(&mut request);
        let n_connected = self.connector.n_connected();
        let head = match timeout_at(deadline, self.http.request(request)).await {
            Ok(Ok(head)) => head,
            Ok(Err(error)) => return Err(failed_request(&error).within(posting(&uri))),
            // Others got connections while this request had none.
            Err(_)
                if connection.connection_metadata().is_none()
                    && self.connector.n_connected() != n_connected =>
            {
                let message = "out of time while waiting for a connection behind other requests";
                return Err(Fault::new(FaultKind::Local, message).within(posting(&uri)));
            }
            Err(_) => {
                let message = "context deadline exceeded (Client.Timeout exceeded while awaiting \
                               headers)";
                return Err(Fault::new(FaultKind::Timeout, message).within(posting(&uri)));
            }
        };
        self.read(head, deadline, body_bytes_max).await
    }

    /// Connects and makes the handshake, and hangs up again: whether somebody is there whom we
    /// would speak to. Asks nothing.
    ///
    /// # Errors
    /// [`Fault`] if not.
    pub async fn check(&self, limit: Duration) -> Result<(), Fault> {
        match timeout(limit, self.connector.route().connect()).await {
            Ok(connected) => {
                // Whether the peer hears the farewell is all the same.
                drop(timeout(FAREWELL_TIMEOUT, connected?.shutdown()).await);
                Ok(())
            }
            Err(_) => Err(Fault::new(FaultKind::Timeout, "context deadline exceeded")),
        }
    }

    fn request(&self, uri: Uri, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let mut headers = self.headers.clone();
        if let Some(value) = self.authorization.header(Instant::now()) {
            headers.insert(AUTHORIZATION, value);
        }
        *request.headers_mut() = headers;
        request
    }

    async fn read(
        &self,
        response: http::Response<Incoming>,
        deadline: Instant,
        body_bytes_max: usize,
    ) -> Result<Reply, Fault> {
        let (mut head, body) = response.into_parts();
        let read = reply::read(&mut head.headers, body, self.can_compress, body_bytes_max);
        let body = match timeout_at(deadline, read).await {
            Ok(Ok(body)) => body,
            Ok(Err(reply::ReadError::TooLarge)) => {
                let message = format!("the body of the response exceeds {body_bytes_max} bytes");
                return Err(Fault::new(FaultKind::TooLarge, message));
            }
            Ok(Err(reply::ReadError::Compression)) => {
                return Err(Fault::new(FaultKind::Other, "gzip: invalid data").within(READING));
            }
            Ok(Err(reply::ReadError::Broken(error))) => {
                let fault = trouble(&head.extensions).unwrap_or_else(|| explain(&error));
                let is_eof = fault.kind == FaultKind::Eof;
                let message = if is_eof { "unexpected EOF".to_owned() } else { fault.message };
                return Err(Fault::new(fault.kind, message).within(READING));
            }
            Err(_) => {
                let message = "context deadline exceeded (Client.Timeout or context cancellation \
                               while reading body)";
                return Err(Fault::new(FaultKind::Timeout, message).within(READING));
            }
        };
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = self.connector.route().endpoint.uri("");
        f.debug_struct("Client").field("uri", &uri).finish_non_exhaustive()
    }
}

/// How many times longer than the question an answer may always be: it may hold all of the question, such
/// as an object in the patch of an admission webhook.
pub const ANSWER_FACTOR: usize = 2;

/// Longest time that is reckoned with: sums of time must not overflow.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a farewell may take.
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(100);

/// What Kubernetes' client says before anything that goes wrong in a body.
const READING: &str = "unexpected error when reading response body. Please retry. Original error";

fn posting(uri: &Uri) -> String {
    format!("Post \"{uri}\"")
}

/// Why a request has no answer, by what its connection knows or else by what the library says.
fn failed_request(error: &legacy::Error) -> Fault {
    let mut extensions = Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extensions);
    }
    trouble(&extensions).unwrap_or_else(|| explain(error))
}

fn trouble(extensions: &Extensions) -> Option<Fault> {
    extensions.get::<Trouble>().and_then(Trouble::first)
}

fn builder(limits: &Limits) -> legacy::Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits.idle_timeout)
        .pool_max_idle_per_host(limits.idle_connections_max)
        .http1_max_buf_size(limits.head_bytes_max.max(HEAD_BYTES_MIN))
        .http1_max_headers(limits.headers_max);
    builder
}

fn way(
    target: &Target,
    endpoint: &Endpoint,
    observe: &Arc<dyn Observe>,
) -> Result<Way, BuildError> {
    let at = &endpoint.at;
    if let Place::Service(service) = &target.place {
        return Ok(Way::Service(service.clone()));
    }
    let proxy = match &target.proxy {
        Proxy::Direct => None,
        Proxy::Environment => {
            Environment::of_process().proxy(endpoint.scheme, &at.host, at.port)?
        }
        Proxy::Url(proxy) => Some(proxy.clone()),
    };
    let Some(proxy) = proxy else { return Ok(Way::Direct) };
    let tls = match proxy.kind {
        ProxyKind::Http | ProxyKind::Socks5 => None,
        // Trust is that of the target; its client certificate is none of the proxy's business.
        ProxyKind::Https => {
            let name = proxy.at.host.clone();
            let parsed = ServerName::try_from(name.clone());
            let name = parsed.map_err(|_| BuildError::ServerName(name))?;
            let tls = Tls::new(&target.trust, None, Arc::clone(observe))?;
            Some((Arc::new(tls), name))
        }
    };
    Ok(Way::Proxy(Hop { proxy, tls }))
}

fn headers(target: &Target, endpoint: &Endpoint, way: &Way) -> Result<HeaderMap, BuildError> {
    let mut headers = HeaderMap::new();
    let user_agent = HeaderValue::from_str(target.user_agent);
    headers.insert(USER_AGENT, user_agent.map_err(|_| BuildError::UserAgent)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    if target.can_compress {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Way::Service(_) = way {
        let host = HeaderValue::from_str(endpoint.authority()).map_err(|_| BuildError::Url)?;
        headers.insert(HOST, host);
    }
    // Through a tunnel only the proxy itself is told; else this is how it is told.
    if let (Scheme::Http, Way::Proxy(Hop { proxy, .. })) = (endpoint.scheme, way)
        && let Some(value) = proxy_authorization(proxy)?
    {
        headers.insert(PROXY_AUTHORIZATION, value);
    }
    target.impersonate.write(&mut headers).map_err(|_| BuildError::Impersonate)?;
    Ok(headers)
}

fn proxy_authorization(proxy: &ProxyUrl) -> Result<Option<HeaderValue>, BuildError> {
    match &proxy.login {
        Some(login) if !proxy.is_socks() => {
            basic(&login.username, login.password.expose()).map(Some).ok_or(BuildError::Credentials)
        }
        _ => Ok(None),
    }
}
