//! Accepts connections and serves their requests.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderValue, Method, Request, Response, Version};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::CertificateDer;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::activity_stream::ActivityStream;
use crate::connection::{Connection, HttpProtocol};
use crate::connection_fault::{ConnectionFault, ConnectionFaultReporter};
use crate::connection_table::{ConnectionSlot, ConnectionTable};
use crate::limits::Limits;
use crate::listener::Listener;
use crate::plain_response::{connection_evicted_response, panic_response, uri_too_long_response};
use crate::response_body::Body;
use crate::run_connection::{ConnectionEnd, HttpConnection, RunningConnection};
use crate::shutdown::{ConnectionRegistration, Shutdown, ShutdownPhase};
use crate::stream_executor::StreamExecutor;

/// The pause after a failed accept, which usually means too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The pause after a failed accept for which a connection was closed, until its descriptor is free.
const EVICTION_PAUSE: Duration = Duration::from_millis(2);

/// Streams that an HTTP/2 peer resets before the server has taken them up. More end the connection.
const HTTP2_PENDING_RESETS_MAX: usize = 20;

/// Streams that the server resets because of errors of an HTTP/2 peer. More end the connection.
const HTTP2_ERROR_RESETS_MAX: usize = 256;

/// Buffered bytes of one HTTP/1.1 connection in each direction. It exceeds the longest head, and is
/// small enough for every connection at once.
const HTTP1_BUFFER_BYTES_MAX: usize = 128 << 10;

/// Bytes of one request body that an HTTP/2 peer may send before the server reads them.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 << 10;

/// Bytes of all request bodies of a connection that an HTTP/2 peer may send before the server reads them.
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// Bytes of one response that wait for an HTTP/2 peer outside of their body, apart from the last chunk.
const HTTP2_SEND_BYTES_MAX: usize = 128 << 10;

/// Accepts connections and passes their requests to `service` until `shutdown` reaches
/// [`ShutdownPhase::Refusing`]; then returns when all connections have ended, at the latest at
/// [`ShutdownPhase::Dropping`].
///
/// Each call of `service` runs in its own task, which the peer cannot cancel: a peer that disconnects only
/// loses its response. A connection counts as open, for [`Shutdown::drain`] and against
/// [`Limits::connections_max`], until its requests have ended. Accepting never pauses at a limit: the server
/// closes another connection for the new one.
///
/// The service is boxed here, so that this crate generates the code of the connections.
pub fn serve<S, F>(
    listener: Listener,
    limits: Limits,
    shutdown: Shutdown,
    report: ConnectionFaultReporter,
    service: S,
) -> BoxedFuture
where
    S: Fn(Request<Incoming>, Arc<Connection>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let service: Service = Box::new(move |request, connection, response_sender| {
        let answering = service(request, connection);
        Box::pin(async move { response_sender.send_response(answering.await) })
    });
    serve_with_response_sender(listener, limits, shutdown, report, service)
}

/// The type of a boxed future that returns nothing.
pub type BoxedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A function that handles one request to its end, and sends the response in between.
pub type Service =
    Box<dyn Fn(Request<Incoming>, Arc<Connection>, ResponseSender) -> BoxedFuture + Send + Sync>;

/// Sends the response to one request. If the service drops it unused, it has panicked, and the peer
/// gets 500.
#[derive(Debug)]
pub struct ResponseSender(oneshot::Sender<Response<Body>>);

impl ResponseSender {
    /// Sends the response. It is dropped if the peer is gone.
    pub fn send_response(self, response: Response<Body>) {
        drop(self.0.send(response));
    }
}

/// Like [`serve`], but the service sends its response through a [`ResponseSender`] and may continue to run after that.
pub fn serve_with_response_sender(
    listener: Listener,
    limits: Limits,
    shutdown: Shutdown,
    report: ConnectionFaultReporter,
    service: Service,
) -> BoxedFuture {
    Box::pin(accept_connections(listener, limits, shutdown, report, service))
}

async fn accept_connections(
    listener: Listener,
    limits: Limits,
    shutdown: Shutdown,
    report: ConnectionFaultReporter,
    service: Service,
) {
    let Listener { tcp_listener: socket, bound_address: _, tls_config: tls } = listener;
    let table = Arc::new(ConnectionTable::new(limits.clone(), Arc::clone(&report)));
    let server = Arc::new(ConnectionServer {
        tls_acceptor: tls.map(TlsAcceptor::from),
        limits,
        shutdown: shutdown.clone(),
        report_fault: report,
        service,
    });
    let mut connections = JoinSet::new();
    let mut refusing = std::pin::pin!(shutdown.wait_for_phase(ShutdownPhase::Refusing));
    loop {
        tokio::select! {
            () = &mut refusing => break,
            Some(ended) = connections.join_next() => server.report_panic(ended),
            accepted = socket.accept() => match accepted {
                Ok((stream, peer)) => {
                    // A stream without a slot is closed here.
                    let Some(slot) = table.admit_connection(peer) else { continue };
                    let server = Arc::clone(&server);
                    let open = Arc::new(OpenConnectionGuard {
                        _connection_registration: shutdown.register_connection(),
                        connection_slot: Arc::new(slot),
                    });
                    connections.spawn(async move {
                        server.serve_connection(stream, peer, open).await;
                    });
                }
                // The peer has left the socket's queue.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    let is_evicted = is_out_of_descriptors(&error) && table.evict_to_free_descriptor();
                    (server.report_fault)(&ConnectionFault::Accept(error));
                    let pause = if is_evicted { EVICTION_PAUSE } else { ACCEPT_PAUSE };
                    tokio::time::sleep(pause).await;
                }
            },
        }
    }
    drop(socket);
    let mut dropping = std::pin::pin!(shutdown.wait_for_phase(ShutdownPhase::Dropping));
    loop {
        tokio::select! {
            ended = connections.join_next() => match ended {
                Some(ended) => server.report_panic(ended),
                None => return,
            },
            () = &mut dropping => return connections.shutdown().await,
        }
    }
}

/// Counts a connection as open. The connection and each of its requests hold a reference.
struct OpenConnectionGuard {
    _connection_registration: ConnectionRegistration,
    connection_slot: Arc<ConnectionSlot>,
}

/// The state that all connections share.
struct ConnectionServer {
    tls_acceptor: Option<TlsAcceptor>,
    limits: Limits,
    shutdown: Shutdown,
    report_fault: ConnectionFaultReporter,
    service: Service,
}

/// A TCP stream, with TLS or without. One boxed type for both, because the HTTP code is generated once for each type of
/// stream.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

impl ConnectionServer {
    async fn serve_connection(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        open: Arc<OpenConnectionGuard>,
    ) {
        if let Err(error) = configure_socket(&stream, &self.limits) {
            // The peer disconnected before the handshake.
            return (self.report_fault)(&ConnectionFault::Handshake { peer, error });
        }
        let Some(tls) = &self.tls_acceptor else {
            open.connection_slot.end_handshake();
            let (protocol, slot) = (HttpProtocol::Http1, Arc::clone(&open.connection_slot));
            let connection = Connection::new(peer, protocol, Arc::from([]), slot, &self.limits);
            return self.serve_http(Box::new(stream), connection, open).await;
        };
        let handshake = tokio::time::timeout(self.limits.handshake_timeout, tls.accept(stream));
        let stream = tokio::select! {
            // No request has begun, so nothing is lost.
            () = self.shutdown.wait_for_phase(ShutdownPhase::Closing) => return,
            () = open.connection_slot.wait_for_eviction() => return,
            done = handshake => match done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => stream,
                Err(error) => return (self.report_fault)(&ConnectionFault::Handshake { peer, error }),
            },
        };
        open.connection_slot.end_handshake();
        let session = stream.get_ref().1;
        let protocol = match session.alpn_protocol() {
            Some(b"h2") => HttpProtocol::Http2,
            Some(_) | None => HttpProtocol::Http1,
        };
        let certificates = session.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().cloned().map(CertificateDer::into_owned).collect();
        let slot = Arc::clone(&open.connection_slot);
        let connection = Connection::new(peer, protocol, certificates, slot, &self.limits);
        self.serve_http(Box::new(stream), connection, open).await;
    }

    /// Serves HTTP on a stream until it ends.
    async fn serve_http(
        self: &Arc<Self>,
        stream: Box<dyn ByteStream>,
        connection: Connection,
        open: Arc<OpenConnectionGuard>,
    ) {
        let connection = Arc::new(connection);
        let activity = Arc::clone(&connection.connection_activity);
        let (peer, protocol) = (connection.peer_address, connection.protocol);
        let (stream, writes) = ActivityStream::new(stream, Arc::clone(&activity), protocol);
        let io = TokioIo::new(stream);
        let server = Arc::clone(self);
        let slot = Arc::clone(&open.connection_slot);
        let service = service_fn(move |request| {
            let (server, connection) = (Arc::clone(&server), Arc::clone(&connection));
            let open = Arc::clone(&open);
            async move {
                let answer = server.serve_request(request, connection, open).await;
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let limits = &self.limits;
        let running = RunningConnection {
            collected_writes_flusher: writes,
            connection_activity: &activity,
            protocol,
            limits,
            shutdown: &self.shutdown,
            eviction_future: slot.wait_for_eviction(),
        };
        let end = match protocol {
            HttpProtocol::Http1 => {
                running.run(http1_builder(limits).serve_connection(io, service)).await
            }
            HttpProtocol::Http2 => {
                let report = Arc::clone(&self.report_fault);
                let reason = "the peer takes no bytes of a stream";
                let executor = StreamExecutor {
                    stall_timeout: limits.stream_stall_timeout,
                    report_stall: Arc::new(move || {
                        report(&ConnectionFault::StreamTimedOut { peer, reason });
                    }),
                };
                running.run(http2_builder(limits, executor).serve_connection(io, service)).await
            }
        };
        match end {
            ConnectionEnd::Finished => {}
            ConnectionEnd::Failed(error) => {
                (self.report_fault)(&ConnectionFault::Connection { peer, error })
            }
            ConnectionEnd::TimedOut(reason) => {
                (self.report_fault)(&ConnectionFault::TimedOut { peer, reason })
            }
        }
    }

    /// Responds to a request. Dropping the future abandons the response and not the running
    /// request. A request waits, as if it had not been received, while [`Limits::concurrent_streams_max`]
    /// requests of its connection run; fewer until somebody has authenticated on it.
    async fn serve_request(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection>,
        open: Arc<OpenConnectionGuard>,
    ) -> Response<Body> {
        let (Some(occupied), Some(occupied_by_task)) =
            (open.connection_slot.begin_request(), open.connection_slot.begin_request())
        else {
            // The peer rarely receives this response, because the connection is being closed.
            return connection_evicted_response();
        };
        let active = connection.connection_activity.begin_request(occupied);
        let is_http1 = request.version() < Version::HTTP_2;
        let is_head = request.method() == Method::HEAD;
        let target_bytes = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
        let mut response = if target_bytes > self.limits.url_bytes_max {
            uri_too_long_response()
        } else {
            let permit = Arc::clone(&connection.request_permits).acquire_owned().await;
            let (sender, answer) = oneshot::channel();
            let answering =
                (self.service)(request, Arc::clone(&connection), ResponseSender(sender));
            tokio::spawn(async move {
                answering.await;
                drop((permit, occupied_by_task, open));
            });
            answer.await.unwrap_or_else(|_| {
                (self.report_fault)(&ConnectionFault::Panic);
                panic_response()
            })
        };
        let is_last = connection.connection_activity.is_close_requested()
            || self.shutdown.current_phase() >= ShutdownPhase::Refusing;
        if is_http1 && is_last {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if is_head && !is_http1 {
            response = strip_body_for_head_response(response);
        }
        response.map(|body| body.with_active_request(active))
    }

    fn report_panic(&self, ended: Result<(), tokio::task::JoinError>) {
        if ended.is_err_and(|error| error.is_panic()) {
            (self.report_fault)(&ConnectionFault::Panic);
        }
    }
}

/// The response to a HEAD: the header of the response to a GET, with the length of its body. hyper drops the body
/// over HTTP/1.1 only, and an HTTP/2 peer resets a stream that sends one.
fn strip_body_for_head_response(response: Response<Body>) -> Response<Body> {
    let n_bytes = response.body().size_hint().exact();
    let mut response = response.map(|_| Body::empty_body());
    if let Some(n_bytes) = n_bytes {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| n_bytes.into());
    }
    response
}

/// Whether the process or the system has no descriptor left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Disables Nagle's algorithm and enables keepalive probes.
fn configure_socket(stream: &TcpStream, limits: &Limits) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive =
        TcpKeepalive::new().with_time(limits.ping_interval).with_interval(limits.ping_timeout);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Timeouts are those of [`RunningConnection`]: hyper's own would set a timer for every request.
fn http1_builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .max_headers(limits.header_fields_max)
        .max_header_size(limits.header_bytes_max as usize)
        .max_buf_size(HTTP1_BUFFER_BYTES_MAX);
    builder
}

/// h2 itself ends the connection of a peer whose header list takes too many frames. It processes no further
/// frame of a peer that does not read the answers to its settings and pings.
fn http2_builder(limits: &Limits, executor: StreamExecutor) -> http2::Builder<StreamExecutor> {
    let mut builder = http2::Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.concurrent_streams_max)
        .max_header_list_size(limits.header_bytes_max)
        .max_pending_accept_reset_streams(HTTP2_PENDING_RESETS_MAX)
        .max_local_error_reset_streams(HTTP2_ERROR_RESETS_MAX)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(HTTP2_SEND_BYTES_MAX)
        .keep_alive_interval(limits.ping_interval)
        .keep_alive_timeout(limits.ping_timeout);
    builder
}

impl<I, S> HttpConnection for http1::Connection<I, S>
where
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, F> HttpConnection for http2::Connection<I, S, StreamExecutor>
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
