//! Peers: servers that follow a script.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::answer::{Answer, Conduct};
use crate::log::{Log, REQUESTS_MAX, State};
use crate::request::{Handshake, Request};
use crate::script::Script;
use crate::thread::Thread;
use crate::tls::{self, ServerTls};
use crate::{http1, http2};

/// An address where nothing listens.
pub const NOBODY: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));

/// The number of connections that the system queues before they are accepted. Tests open a thousand at once.
const BACKLOG: i32 = 1024;

/// A server on the loopback interface that follows a script. It stops when it is dropped.
pub struct Peer {
    address: SocketAddr,
    log: Arc<Log>,
    commands: mpsc::UnboundedSender<Command>,
    _thread: Thread,
}

/// A command to the thread of a peer. The sender of each variant reports its end.
enum Command {
    Listen(CommandResult),
    StopListening(CommandResult),
    CloseConnections(CommandResult),
}

type CommandResult = oneshot::Sender<io::Result<()>>;

/// The state that serving a connection needs.
pub(crate) struct Service {
    pub(crate) connection: usize,
    pub(crate) handshake: Option<Handshake>,
    log: Arc<Log>,
    commands: mpsc::UnboundedSender<Command>,
}

impl Peer {
    /// Starts a peer that serves HTTP/1.1 without TLS.
    ///
    /// # Errors
    /// The system has no free port or thread.
    pub fn start(script: impl Into<Script>) -> io::Result<Self> {
        Self::start_with(script.into(), None)
    }

    /// Starts a peer that serves TLS.
    ///
    /// # Errors
    /// As for [`Peer::start`], or the certificate cannot be used.
    pub fn start_tls(script: impl Into<Script>, tls: &ServerTls) -> io::Result<Self> {
        Self::start_with(script.into(), Some(tls.acceptor()?))
    }

    fn start_with(script: Script, acceptor: Option<TlsAcceptor>) -> io::Result<Self> {
        let socket = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let refuses = is_refusal(&script);
        let (commands, received) = mpsc::unbounded_channel();
        let log = Arc::new(Log::new(script));
        let mut server = Server {
            address,
            listener_state: ListenerState::Closed(socket),
            acceptor,
            log: Arc::clone(&log),
            commands: commands.clone(),
            connections: JoinSet::new(),
        };
        let (started, start) = std_mpsc::sync_channel(1);
        let thread = Thread::start(move || async move {
            let opened = if refuses { Ok(()) } else { server.listen() };
            let is_open = opened.is_ok();
            // The other end waits for exactly this message.
            if started.send(opened).is_ok() && is_open {
                server.run(received).await;
            }
        })?;
        start.recv().map_err(io::Error::other)??;
        Ok(Self { address, log, commands, _thread: thread })
    }

    /// Returns the address on which the peer listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of requests that the peer has received.
    pub fn n_requests(&self) -> usize {
        self.log.state().n_requests
    }

    /// The received requests, oldest first. The peer keeps 65,536 requests until they are taken.
    pub fn requests(&self) -> Vec<Request> {
        self.log.state().requests.clone()
    }

    /// Takes the requests that were received since the last call.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.log.state().requests)
    }

    /// The complete handshakes of clients, oldest first.
    pub fn handshakes(&self) -> Vec<Handshake> {
        self.log.state().handshakes.clone()
    }

    /// The number of failed handshakes.
    pub fn n_failed_handshakes(&self) -> usize {
        self.log.state().n_failed_handshakes
    }

    /// The number of connections that the peer has accepted.
    pub fn n_accepted(&self) -> usize {
        self.log.state().n_accepted
    }

    /// The number of open connections.
    pub fn n_open(&self) -> usize {
        self.log.state().n_open
    }

    /// Starts another script.
    ///
    /// # Errors
    /// The peer has to listen again and cannot.
    pub fn replace(&self, script: impl Into<Script>) -> io::Result<()> {
        let script = script.into();
        let refuses = is_refusal(&script);
        self.log.change(|state| state.script = script);
        if refuses { self.stop_listening() } else { self.listen() }
    }

    /// Closes the port, so that connections are refused. Open connections stay.
    ///
    /// # Errors
    /// The port cannot be reserved for later.
    pub fn stop_listening(&self) -> io::Result<()> {
        self.command(Command::StopListening)
    }

    /// Opens the port again.
    ///
    /// # Errors
    /// Another process uses the port.
    pub fn listen(&self) -> io::Result<()> {
        self.command(Command::Listen)
    }

    /// Closes all connections, including those in use.
    ///
    /// # Errors
    /// The peer has ended.
    pub fn close_connections(&self) -> io::Result<()> {
        self.command(Command::CloseConnections)
    }

    /// Waits until no connection is open; false if some are open after the limit. This blocks the thread, so
    /// the client must run on another one.
    pub fn wait_idle(&self, limit: Duration) -> bool {
        self.log.wait(limit, &|state| state.n_open == 0)
    }

    /// Waits until the peer has received this many requests; false if there are fewer after the limit. This
    /// blocks the thread, so the client must run on another one.
    pub fn wait_requests(&self, n: usize, limit: Duration) -> bool {
        self.log.wait(limit, &|state| state.requests.len() >= n)
    }

    fn command(&self, command: impl FnOnce(CommandResult) -> Command) -> io::Result<()> {
        let (done, is_done) = oneshot::channel();
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.commands.send(command(done)).map_err(|_| gone())?;
        // Tests call this within a runtime too, where blocking on its channel is forbidden.
        let wait = move || is_done.blocking_recv().map_err(|_| gone())?;
        std::thread::spawn(wait).join().map_err(|_| gone())?
    }
}

impl Service {
    /// Records a request and takes its answer. The flag says that no request follows on this connection.
    /// `None` closes the connection.
    pub(crate) async fn answer(&self, request: Request) -> Option<(Answer, bool)> {
        let (answer, is_last) = self.log.change(|state: &mut State| {
            let answer = state.script.take(&request);
            state.n_requests += 1;
            if state.requests.len() < REQUESTS_MAX {
                state.requests.push(request);
            }
            (answer, is_refusal(&state.script))
        });
        let answer = answer?;
        if is_last {
            // The port must be closed before the client can know that this was the last answer.
            let (done, is_done) = oneshot::channel();
            self.commands.send(Command::StopListening(done)).ok()?;
            is_done.await.ok()?.ok()?;
        }
        Some((answer, is_last))
    }
}

/// The thread of a peer, which owns the listener.
struct Server {
    address: SocketAddr,
    listener_state: ListenerState,
    acceptor: Option<TlsAcceptor>,
    log: Arc<Log>,
    commands: mpsc::UnboundedSender<Command>,
    connections: JoinSet<()>,
}

enum ListenerState {
    Open(TcpListener),
    /// Nothing listens on the port. The socket only reserves it.
    Closed(Socket),
    /// The socket is changing between the states `Open` and `Closed`.
    Gone,
}

impl Server {
    async fn run(&mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.run_command(command).await,
                    None => return,
                },
                Ok((tcp, _)) = accept(&self.listener_state) => self.serve(tcp),
                Some(_) = self.connections.join_next() => {}
            }
        }
    }

    async fn run_command(&mut self, command: Command) {
        let (done, result) = match command {
            Command::Listen(done) => (done, self.listen()),
            Command::StopListening(done) => (done, self.stop_listening()),
            Command::CloseConnections(done) => {
                self.connections.shutdown().await;
                (done, Ok(()))
            }
        };
        // The caller may have stopped waiting.
        drop(done.send(result));
    }

    fn listen(&mut self) -> io::Result<()> {
        let socket = match std::mem::replace(&mut self.listener_state, ListenerState::Gone) {
            ListenerState::Open(listener) => {
                self.listener_state = ListenerState::Open(listener);
                return Ok(());
            }
            ListenerState::Closed(socket) => socket,
            ListenerState::Gone => bind(self.address)?,
        };
        socket.listen(BACKLOG)?;
        self.listener_state = ListenerState::Open(TcpListener::from_std(socket.into())?);
        Ok(())
    }

    fn stop_listening(&mut self) -> io::Result<()> {
        if matches!(self.listener_state, ListenerState::Closed(_)) {
            return Ok(());
        }
        self.listener_state = ListenerState::Gone;
        self.listener_state = ListenerState::Closed(bind(self.address)?);
        Ok(())
    }

    fn serve(&mut self, tcp: TcpStream) {
        let connection = self.log.change(|state| {
            state.n_accepted += 1;
            state.n_open += 1;
            state.n_accepted
        });
        let open = Open(Arc::clone(&self.log));
        let (acceptor, commands) = (self.acceptor.clone(), self.commands.clone());
        let log = Arc::clone(&self.log);
        self.connections.spawn(async move {
            let service = Service { connection, handshake: None, log, commands };
            // The client reports how the connection ended.
            drop(serve_connection(tcp, acceptor, service).await);
            drop(open);
        });
    }
}

/// A guard that counts a connection as open.
struct Open(Arc<Log>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.change(|state| state.n_open -= 1);
    }
}

async fn accept(listener_state: &ListenerState) -> io::Result<(TcpStream, SocketAddr)> {
    match listener_state {
        ListenerState::Open(listener) => listener.accept().await,
        ListenerState::Closed(_) | ListenerState::Gone => std::future::pending().await,
    }
}

async fn serve_connection(
    tcp: TcpStream,
    acceptor: Option<TlsAcceptor>,
    mut service: Service,
) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let Some(acceptor) = acceptor else {
        return http1::serve(crate::stream::Stream::Plain(tcp), &service).await;
    };
    let accepted = tls::accept(&acceptor, tcp).await;
    let (stream, handshake) = accepted.inspect_err(|_| {
        service.log.change(|state| state.n_failed_handshakes += 1);
    })?;
    service.log.change(|state| state.handshakes.push(handshake.clone()));
    let is_http2 = handshake.protocol.as_deref() == Some("h2");
    service.handshake = Some(handshake);
    if is_http2 {
        http2::serve(stream, &Arc::new(service)).await
    } else {
        http1::serve(stream, &service).await
    }
}

fn is_refusal(script: &Script) -> bool {
    script.peek().is_some_and(|answer| answer.conduct == Conduct::Refuse)
}

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
