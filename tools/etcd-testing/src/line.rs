//! A network connection to a member that can be cut or slowed down.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::Member;

/// The state of a connection to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Bytes pass in both directions.
    Open,
    /// Connections end at once, as if nothing listened.
    Closed,
    /// Bytes are lost without an error. Connections that existed stay lost when the state is open again, as if a
    /// router had dropped them. New connections then work.
    Silent,
}

/// A port that forwards to a member, by threads that end with this value.
#[derive(Debug)]
pub struct Line {
    /// The URL for clients, in place of that of the member.
    pub url: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    /// The delay of bytes from the member, in milliseconds.
    lag_ms: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    is_over: bool,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    /// The connection to the member; absent if the line was not open at its start.
    member: Option<TcpStream>,
    is_lost: Arc<AtomicBool>,
}

impl Connection {
    fn close(&self) {
        // The other side may have closed the connection already.
        self.client.shutdown(Shutdown::Both).ok();
        if let Some(member) = &self.member {
            member.shutdown(Shutdown::Both).ok();
        }
    }
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Opens a line to a member that serves `http`.
    #[must_use]
    pub fn to(member: &Member) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Inner { state: State::Open, is_over: false, connections: Vec::new() };
        let shared = Shared { inner: Mutex::new(inner), lag_ms: Arc::default() };
        let shared = Arc::new(shared);
        let (theirs, target) = (shared.clone(), member.address().to_owned());
        let accepting = std::thread::spawn(move || accept(&listener, &target, &theirs));
        Self { url: format!("http://{address}"), address, shared, accepting: Some(accepting) }
    }

    /// Changes the state for existing and for new connections.
    pub fn set(&self, state: State) {
        let mut inner = self.shared.inner();
        inner.state = state;
        match state {
            State::Open => {}
            State::Closed => inner.connections.drain(..).for_each(|one| one.close()),
            State::Silent => {
                inner.connections.iter().for_each(|one| one.is_lost.store(true, Ordering::SeqCst));
            }
        }
    }
}

impl Line {
    /// Delays bytes from the member by at least this time.
    pub fn lag(&self, lag: Duration) {
        let ms = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
        self.shared.lag_ms.store(ms, Ordering::SeqCst);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut inner = self.shared.inner();
        inner.is_over = true;
        inner.connections.drain(..).for_each(|one| one.close());
        drop(inner);
        // Wakes the accepting thread; if that fails, the thread has ended already.
        TcpStream::connect(self.address).ok();
        if let Some(accepting) = self.accepting.take() {
            accepting.join().ok();
        }
    }
}

fn accept(listener: &TcpListener, target: &str, shared: &Shared) {
    for client in listener.incoming() {
        let mut inner = shared.inner();
        if inner.is_over {
            return;
        }
        let Ok(client) = client else { continue };
        match inner.state {
            State::Closed => {}
            State::Silent => {
                let is_lost = Arc::new(AtomicBool::new(true));
                inner.connections.push(Connection { client, member: None, is_lost });
            }
            State::Open => {
                inner.connections.extend(connect(client, target, &shared.lag_ms));
            }
        }
    }
}

/// Forwards bytes in both directions; `None` if the member does not listen.
fn connect(client: TcpStream, target: &str, lag_ms: &Arc<AtomicU64>) -> Option<Connection> {
    let member = TcpStream::connect(target).ok()?;
    let is_lost = Arc::new(AtomicBool::new(false));
    let at_once = Arc::default();
    for (from, to, lag_ms) in [(&client, &member, &at_once), (&member, &client, lag_ms)] {
        from.set_nodelay(true).ok()?;
        let (from, to, is_lost) = (from.try_clone().ok()?, to.try_clone().ok()?, is_lost.clone());
        let lag_ms = Arc::clone(lag_ms);
        std::thread::spawn(move || forward_bytes(from, to, &is_lost, &lag_ms));
    }
    Some(Connection { client, member: Some(member), is_lost })
}

/// Forwards bytes until one side closes. The end of a lost connection is not forwarded.
fn forward_bytes(mut from: TcpStream, mut to: TcpStream, is_lost: &AtomicBool, lag_ms: &AtomicU64) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(n_read @ 1..) = from.read(&mut bytes) {
        let said = bytes.get(..n_read).unwrap_or_default();
        // Bytes that arrive during the delay are forwarded together when it ends.
        std::thread::sleep(Duration::from_millis(lag_ms.load(Ordering::SeqCst)));
        if !is_lost.load(Ordering::SeqCst) && to.write_all(said).is_err() {
            break;
        }
    }
    if !is_lost.load(Ordering::SeqCst) {
        to.shutdown(Shutdown::Both).ok();
        from.shutdown(Shutdown::Both).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::time::Instant;

    /// Sends a request over a connection and waits a moment for each part of the answer.
    fn exchange(stream: &mut TcpStream) -> Result<(), ErrorKind> {
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let request = b"GET /version HTTP/1.1\r\nHost: m\r\n\r\n";
        stream.write_all(request).map_err(|error| error.kind())?;
        let mut byte = [0];
        // The answer is one JSON object after a head without braces.
        while byte != [b'}'] {
            stream.read_exact(&mut byte).map_err(|error| error.kind())?;
        }
        Ok(())
    }

    #[test]
    fn a_line_delays_bytes() {
        let member = Member::alone();
        member.wait_until_healthy();
        let line = Line::to(&member);
        let mut stream = TcpStream::connect(line.address).unwrap();
        assert_eq!(exchange(&mut stream), Ok(()));
        line.lag(Duration::from_millis(50));
        let begun = Instant::now();
        assert_eq!(exchange(&mut stream), Ok(()));
        assert!(begun.elapsed() >= Duration::from_millis(50));
    }

    #[test]
    fn a_line_is_closed_silenced_and_reopened() {
        let member = Member::alone();
        member.wait_until_healthy();
        let line = Line::to(&member);
        let connect = || TcpStream::connect(line.address).unwrap();
        let mut first = connect();
        assert_eq!(exchange(&mut first), Ok(()));

        line.set(State::Silent);
        let mut second = connect();
        for stream in [&mut first, &mut second] {
            assert_eq!(exchange(stream), Err(ErrorKind::WouldBlock), "a hole in the ground");
        }
        line.set(State::Open);
        assert_eq!(exchange(&mut first), Err(ErrorKind::WouldBlock), "lost for good");
        let mut third = connect();
        assert_eq!(exchange(&mut third), Ok(()));

        line.set(State::Closed);
        for mut stream in [third, connect()] {
            let refused = exchange(&mut stream).unwrap_err();
            assert_ne!(refused, ErrorKind::WouldBlock, "it hears that it is over");
        }
        line.set(State::Open);
        assert_eq!(exchange(&mut connect()), Ok(()));
    }
}
