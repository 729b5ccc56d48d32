//! Proxies that record the targets of connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::http1::{Connection, Head};
use crate::socks;
use crate::stream::Stream;
use crate::thread::Thread;
use crate::tls::{self, ServerTls};

/// A proxy on the loopback interface. It stops when it is dropped.
pub struct Relay {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    _thread: Thread,
}

/// The protocol of a proxy.
#[derive(Debug, Clone)]
pub enum RelayKind {
    /// HTTP proxy: `CONNECT`, or requests with absolute URLs.
    Http,
    /// HTTP proxy that is reached over TLS.
    Https(Box<ServerTls>),
    /// Proxy with SOCKS version 5.
    Socks5,
}

/// One request to a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The target as the client wrote it: `host:port`.
    pub target: String,
    /// The user name and the password of the client.
    pub login: Option<(String, String)>,
}

/// The state that serving a connection needs.
pub(crate) struct RelayState {
    /// The required login; `None` permits every client.
    pub(crate) login: Option<(String, String)>,
    routes: Vec<(String, SocketAddr)>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Relay {
    /// Starts a proxy, with or without a required login. It resolves the given routes (`host:port`), and
    /// otherwise accepts only addresses.
    ///
    /// # Errors
    /// The system has no free port or thread, or the certificate cannot be used.
    pub fn start(
        kind: RelayKind,
        login: Option<(&str, &str)>,
        routes: &[(&str, SocketAddr)],
    ) -> io::Result<Self> {
        let acceptor = match &kind {
            RelayKind::Https(tls) => Some(tls.acceptor()?),
            RelayKind::Http | RelayKind::Socks5 => None,
        };
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let asked = Arc::default();
        let rules = Arc::new(RelayState {
            login: login.map(|(user, password)| (user.to_owned(), password.to_owned())),
            routes: routes.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect(),
            asked: Arc::clone(&asked),
        });
        let serve = move || run(listener, acceptor, matches!(kind, RelayKind::Socks5), rules);
        Ok(Self { address, asked, _thread: Thread::start(serve)? })
    }

    /// Returns the address on which the relay listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The recorded requests, oldest first.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RelayState {
    /// Records a request and returns whether it is permitted.
    pub(crate) fn permit(&self, asked: Asked) -> bool {
        let is_permitted = self.login.is_none() || asked.login == self.login;
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        is_permitted
    }

    pub(crate) async fn connect(&self, target: &str) -> io::Result<TcpStream> {
        let route = self.routes.iter().find(|(name, _)| name == target);
        let address = match route {
            Some((_, address)) => *address,
            None => target.parse().map_err(io::Error::other)?,
        };
        TcpStream::connect(address).await
    }
}

async fn run(
    listener: std::net::TcpListener,
    acceptor: Option<TlsAcceptor>,
    is_socks: bool,
    rules: Arc<RelayState>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (acceptor, rules) = (acceptor.clone(), Arc::clone(&rules));
                let tcp = accepted?.0;
                connections.spawn(async move { serve(tcp, acceptor, is_socks, &rules).await });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(
    tcp: TcpStream,
    acceptor: Option<TlsAcceptor>,
    is_socks: bool,
    rules: &RelayState,
) -> io::Result<()> {
    let stream = match acceptor {
        Some(acceptor) => tls::accept(&acceptor, tcp).await?.0,
        None => Stream::Plain(tcp),
    };
    if is_socks { socks::serve(stream, rules).await } else { serve_http(stream, rules).await }
}

async fn serve_http(stream: Stream, rules: &RelayState) -> io::Result<()> {
    let mut connection = Connection::new(stream);
    let Some(head) = connection.read_head().await? else { return Ok(()) };
    let is_tunnel = head.method == "CONNECT";
    let (target, path) = match is_tunnel {
        true => (head.target.clone(), String::new()),
        false => split_url(&head.target).ok_or(io::ErrorKind::InvalidData)?,
    };
    if !rules.permit(Asked { target: target.clone(), login: login(&head) }) {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
        connection.stream.write_all(refusal).await?;
        return connection.stream.shutdown().await;
    }
    let Ok(mut onward) = rules.connect(&target).await else {
        let failure = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
        connection.stream.write_all(failure).await?;
        return connection.stream.shutdown().await;
    };
    if is_tunnel {
        connection.stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    } else {
        let mut rewritten = format!("{} {path} HTTP/1.1\r\n", head.method);
        for (name, value) in &head.headers {
            if !name.eq_ignore_ascii_case("proxy-authorization") {
                rewritten.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        rewritten.push_str("\r\n");
        onward.write_all(rewritten.as_bytes()).await?;
    }
    onward.write_all(&connection.buffer).await?;
    copy_bidirectional(&mut connection.stream, &mut onward).await.map(drop)
}

fn login(head: &Head) -> Option<(String, String)> {
    let value = head.header("proxy-authorization")?.strip_prefix("Basic ")?;
    let pair = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
    let (user, password) = pair.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// Splits a URL into `host:port` and the rest.
fn split_url(url: &str) -> Option<(String, String)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    Some((host, format!("/{path}")))
}
