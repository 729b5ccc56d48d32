//! A connection that remembers why it broke.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::failure::explain;
use crate::fault::{Fault, FaultKind};

/// Anything that can be read from and written to.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection, however many layers deep.
pub(crate) struct Wire {
    io: Box<dyn Io>,
    /// Whether a proxy reads the requests.
    pub(crate) is_relayed: bool,
    trouble: Trouble,
}

/// Why a connection broke. The HTTP library tells only the request that was being answered, and
/// says of others that they were canceled.
#[derive(Clone)]
pub(crate) struct Trouble {
    first: Arc<Mutex<Option<Fault>>>,
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
}

impl Wire {
    pub(crate) fn new(
        io: Box<dyn Io>,
        local: Option<SocketAddr>,
        peer: Option<SocketAddr>,
    ) -> Self {
        let trouble = Trouble { first: Arc::default(), local, peer };
        Self { io, is_relayed: false, trouble }
    }

    fn note<T>(&self, operation: &str, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &polled {
            self.trouble.note(operation, error);
        }
        polled
    }
}

impl Trouble {
    pub(crate) fn first(&self) -> Option<Fault> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An end is not noted: what it means depends on what was expected.
    fn note(&self, operation: &str, error: &io::Error) {
        let fault = explain(error);
        let fault = match (fault.kind, self.local, self.peer) {
            (FaultKind::Eof, _, _) => return,
            (FaultKind::Tls, _, _) => fault,
            (_, Some(local), Some(peer)) => {
                fault.within(format_args!("{operation} tcp {local}->{peer}: {operation}"))
            }
            (_, _, _) => fault.within(format_args!("{operation} tcp: {operation}")),
        };
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_relayed).extra(self.trouble.clone())
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(cx, buffer);
        self.note("read", polled)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.note("write", polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(cx);
        self.note("write", polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.note("write", polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
