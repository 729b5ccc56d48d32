//! The socket, and the connections that come from it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::body::Body;
use crate::connection::{Connection, Protocol};
use crate::drive::{Carrier, End, drive};
use crate::limits::Limits;
use crate::metered::Metered;
use crate::shutdown::{OpenConnection, Phase, Shutdown};

/// How many connections may wait to be accepted. The system may allow fewer.
const BACKLOG_CONNECTIONS_MAX: u32 = 4096;

/// How long no connection is accepted after accepting failed, usually for want of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of one connection of HTTP/1.1 that wait to be read, or to be written. It is more than the
/// longest head, and few enough to hold for every connection at once.
const HTTP1_BUFFER_BYTES_MAX: usize = 128 << 10;

/// Bytes of the body of one request that an HTTP/2 peer may send ahead of their being read.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 << 10;

/// The same for all requests of a connection together.
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// A bound socket, and what is spoken on it.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    /// `None` is plain HTTP.
    tls: Option<Arc<ServerConfig>>,
}

/// Why nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process has the address.
    #[error("can not listen on {0}: the address is in use, perhaps by another server")]
    InUse(SocketAddr),
    /// Ports below 1024 are not for everybody.
    #[error("can not listen on {0}: permission denied, choose a port above 1023")]
    Forbidden(SocketAddr),
    /// No interface of this machine has the address.
    #[error("can not listen on {0}: this machine does not have the address")]
    NotLocal(SocketAddr),
    /// Plain HTTP was asked for where others could listen in.
    #[error("can not listen on {0}: plain HTTP is for loopback addresses only")]
    NotLoopback(SocketAddr),
    /// Anything else.
    #[error("can not listen on {address}")]
    Io {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// What went wrong with one connection. The server goes on.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// A connection could not be accepted.
    #[error("a connection can not be accepted: {0}")]
    Accept(io::Error),
    /// The peer is not heard: TLS did not come about.
    #[error("TLS handshake with {peer} failed: {error}")]
    Handshake {
        /// The address of the peer.
        peer: SocketAddr,
        /// What the handshake failed with.
        error: io::Error,
    },
    /// The connection broke, or the peer did not speak HTTP.
    #[error("connection with {peer} failed: {error}{}", causes(error))]
    Connection {
        /// The address of the peer.
        peer: SocketAddr,
        /// What the connection failed with.
        error: hyper::Error,
    },
    /// The peer kept the server waiting, and was dropped.
    #[error("connection with {peer} dropped: {reason}")]
    TimedOut {
        /// The address of the peer.
        peer: SocketAddr,
        /// What was waited for.
        reason: &'static str,
    },
    /// The service panicked.
    #[error("a request or a connection was lost to a panic")]
    Panic,
}

/// Who is told of trouble. It is called often when somebody attacks, so it should be quick.
pub type Report = Arc<dyn Fn(&Trouble) + Send + Sync>;

/// What hyper leaves to the sources of its errors.
fn causes(error: &hyper::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl Listener {
    /// Listens for TLS. Port zero is replaced by a free one.
    ///
    /// # Errors
    /// [`BindError`] if the address can not be had.
    pub fn bind(address: SocketAddr, tls: Arc<ServerConfig>) -> Result<Self, BindError> {
        Self::bind_socket(address, Some(tls))
    }

    /// Listens for plain HTTP/1.1, which anybody on the way can read and change. It is for tests
    /// and for a proxy on the same machine.
    ///
    /// # Errors
    /// [`BindError::NotLoopback`] if others than this machine could connect, and the other
    /// variants if the address can not be had.
    pub fn dangerous_bind_plain(address: SocketAddr) -> Result<Self, BindError> {
        if !address.ip().is_loopback() {
            return Err(BindError::NotLoopback(address));
        }
        Self::bind_socket(address, None)
    }

    fn bind_socket(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Result<Self, BindError> {
        let bind = || {
            let socket =
                if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // A restarted server takes over while connections of the old one fade away.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let socket = socket.listen(BACKLOG_CONNECTIONS_MAX)?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        };
        let (socket, address) = bind().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse(address),
            io::ErrorKind::PermissionDenied => BindError::Forbidden(address),
            io::ErrorKind::AddrNotAvailable => BindError::NotLocal(address),
            _ => BindError::Io { address, source },
        })?;
        Ok(Self { socket, address, tls })
    }

    /// The address in use, with the port that the system chose if none was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts connections and hands their requests to `service` until the phase of `shutdown` is
/// [`Phase::Refusing`]; then returns when all connections have ended, at the latest when the phase
/// is [`Phase::Dropping`].
///
/// Each call of `service` runs in a task of its own, which the peer can not end: a peer that hangs up only
/// gives up its answer. A connection counts as open, for [`Shutdown::drain`] and against
/// [`Limits::connections_max`], until the requests that it began have ended.
///
/// `T` is what the service keeps with a connection; see [`Connection::identity`].
pub async fn serve<T, S, F>(
    listener: Listener,
    limits: Limits,
    shutdown: Shutdown,
    report: Report,
    service: S,
) where
    T: Send + Sync + 'static,
    S: Fn(Request<Incoming>, Arc<Connection<T>>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let service = move |request, connection, responder: Responder| {
        let answering = service(request, connection);
        async move { responder.respond(answering.await) }
    };
    serve_responding(listener, limits, shutdown, report, service).await;
}

/// Takes the answer to one request. A service that drops it unused has panicked, and the peer gets 500.
#[derive(Debug)]
pub struct Responder(oneshot::Sender<Response<Body>>);

impl Responder {
    /// Answers the request. Nobody hears it if the peer is gone.
    pub fn respond(self, response: Response<Body>) {
        drop(self.0.send(response));
    }
}

/// The same as [`serve`] for a service that may answer a request before it has ended.
pub async fn serve_responding<T, S, F>(
    listener: Listener,
    limits: Limits,
    shutdown: Shutdown,
    report: Report,
    service: S,
) where
    T: Send + Sync + 'static,
    S: Fn(Request<Incoming>, Arc<Connection<T>>, Responder) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let Listener { socket, address: _, tls } = listener;
    let room = Arc::new(Semaphore::new(limits.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
    let host = Arc::new(Host {
        tls: tls.map(TlsAcceptor::from),
        limits,
        shutdown: shutdown.clone(),
        report,
        service,
    });
    let mut connections = JoinSet::new();
    let mut refusing = std::pin::pin!(shutdown.reached(Phase::Refusing));
    loop {
        let accept = async {
            let room = Arc::clone(&room).acquire_owned().await;
            (socket.accept().await, room)
        };
        tokio::select! {
            () = &mut refusing => break,
            Some(ended) = connections.join_next() => host.note_panic(ended),
            (accepted, room) = accept => match accepted {
                Ok((stream, peer)) => {
                    let host = Arc::clone(&host);
                    let open = Arc::new(ConnectionHold {
                        _open: shutdown.open_connection(),
                        _room: room.ok(),
                    });
                    connections.spawn(async move {
                        host.serve_connection(stream, peer, open).await;
                    });
                }
                Err(error) => {
                    (host.report)(&Trouble::Accept(error));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(socket);
    let mut dropping = std::pin::pin!(shutdown.reached(Phase::Dropping));
    loop {
        tokio::select! {
            ended = connections.join_next() => match ended {
                Some(ended) => host.note_panic(ended),
                None => return,
            },
            () = &mut dropping => return connections.shutdown().await,
        }
    }
}

/// Keeps a connection counted as open. The connection holds it, and each request that it began.
struct ConnectionHold {
    _open: OpenConnection,
    _room: Option<OwnedSemaphorePermit>,
}

/// What all connections share.
struct Host<S> {
    tls: Option<TlsAcceptor>,
    limits: Limits,
    shutdown: Shutdown,
    report: Report,
    service: S,
}

impl<S> Host<S> {
    async fn serve_connection<T, F>(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        open: Arc<ConnectionHold>,
    ) where
        T: Send + Sync + 'static,
        S: Fn(Request<Incoming>, Arc<Connection<T>>, Responder) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        if let Err(error) = tune(&stream, &self.limits) {
            // The peer was gone before it was greeted.
            return (self.report)(&Trouble::Accept(error));
        }
        let Some(tls) = &self.tls else {
            let connection = Connection::new(peer, Protocol::Http1, Arc::from([]));
            return self.carry(stream, connection, open).await;
        };
        let handshake = tokio::time::timeout(self.limits.handshake_timeout, tls.accept(stream));
        let stream = tokio::select! {
            // Nobody waits for an answer yet.
            () = self.shutdown.reached(Phase::Closing) => return,
            done = handshake => match done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => stream,
                Err(error) => return (self.report)(&Trouble::Handshake { peer, error }),
            },
        };
        let session = stream.get_ref().1;
        let protocol = match session.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            Some(_) | None => Protocol::Http1,
        };
        let certificates = session.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().cloned().map(CertificateDer::into_owned).collect();
        self.carry(stream, Connection::new(peer, protocol, certificates), open).await;
    }

    /// Speaks HTTP on a stream until it ends.
    async fn carry<T, F, I>(
        self: &Arc<Self>,
        stream: I,
        connection: Connection<T>,
        open: Arc<ConnectionHold>,
    ) where
        T: Send + Sync + 'static,
        S: Fn(Request<Incoming>, Arc<Connection<T>>, Responder) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = Arc::new(connection);
        let activity = Arc::clone(&connection.activity);
        let (peer, protocol) = (connection.peer, connection.protocol);
        let io = TokioIo::new(Metered::new(stream, Arc::clone(&activity)));
        let host = Arc::clone(self);
        // A stream of HTTP/2 that is reset makes room for another one at once, but its request goes on.
        let tasks = Arc::new(Semaphore::new((self.limits.streams_max as usize).max(1)));
        let service = service_fn(move |request| {
            let (host, connection) = (Arc::clone(&host), Arc::clone(&connection));
            let (open, tasks) = (Arc::clone(&open), Arc::clone(&tasks));
            async move {
                let answer = host.answer(request, connection, open, tasks).await;
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let (limits, shutdown) = (&self.limits, &self.shutdown);
        let end = match protocol {
            Protocol::Http1 => {
                let carrier = http1_builder(limits).serve_connection(io, service);
                drive(carrier, &activity, protocol, limits, shutdown).await
            }
            Protocol::Http2 => {
                let carrier = http2_builder(limits).serve_connection(io, service);
                drive(carrier, &activity, protocol, limits, shutdown).await
            }
        };
        match end {
            End::Finished => {}
            End::Failed(error) => (self.report)(&Trouble::Connection { peer, error }),
            End::TimedOut(reason) => (self.report)(&Trouble::TimedOut { peer, reason }),
        }
    }

    /// Answers a request. Dropping the future gives up the answer and not the request, once that has begun:
    /// a request waits, as one that was not received yet, while [`Limits::streams_max`] requests of its
    /// connection are under way.
    async fn answer<T, F>(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection<T>>,
        open: Arc<ConnectionHold>,
        tasks: Arc<Semaphore>,
    ) -> Response<Body>
    where
        S: Fn(Request<Incoming>, Arc<Connection<T>>, Responder) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let active = connection.activity.begin_request();
        let is_http1 = request.version() < Version::HTTP_2;
        let target_bytes = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
        let mut response = if target_bytes > self.limits.url_bytes_max {
            uri_too_long()
        } else {
            let permit = tasks.acquire_owned().await;
            let (sender, answer) = oneshot::channel();
            let answering = (self.service)(request, Arc::clone(&connection), Responder(sender));
            tokio::spawn(async move {
                answering.await;
                drop((permit, open));
            });
            answer.await.unwrap_or_else(|_| {
                (self.report)(&Trouble::Panic);
                lost()
            })
        };
        let is_last =
            connection.activity.is_close_requested() || self.shutdown.phase() >= Phase::Refusing;
        if is_http1 && is_last {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.map(|body| body.hold(active))
    }

    fn note_panic(&self, ended: Result<(), tokio::task::JoinError>) {
        if ended.is_err_and(|error| error.is_panic()) {
            (self.report)(&Trouble::Panic);
        }
    }
}

fn uri_too_long() -> Response<Body> {
    plain(StatusCode::URI_TOO_LONG, "the request URI is too long\n")
}

/// The answer if the service panicked.
fn lost() -> Response<Body> {
    plain(StatusCode::INTERNAL_SERVER_ERROR, "the request was lost to a fault of the server\n")
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Sends small answers at once, and notices when a peer vanishes without a word.
fn tune(stream: &TcpStream, limits: &Limits) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive =
        TcpKeepalive::new().with_time(limits.ping_interval).with_interval(limits.ping_timeout);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Timeouts are those of [`drive`]: the ones of hyper set a timer anew for every request.
fn http1_builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .max_headers(limits.header_fields_max)
        .max_header_size(limits.header_bytes_max as usize)
        .max_buf_size(HTTP1_BUFFER_BYTES_MAX);
    builder
}

/// Against streams that are opened only to be reset, hyper's own bounds hold.
fn http2_builder(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(limits.header_bytes_max)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(limits.ping_interval)
        .keep_alive_timeout(limits.ping_timeout);
    builder
}

impl<I, S> Carrier for http1::Connection<I, S>
where
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, F> Carrier for http2::Connection<I, S, TokioExecutor>
where
    S: HttpService<Incoming, ResBody = Body, Future = F>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    F: Future<Output = Result<Response<Body>, S::Error>> + Send + 'static,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
