//! A connection that keeps its first fault.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::fault::{Fault, FaultKind};
use crate::go_error_text::error_to_fault;

/// A bidirectional byte stream.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection to the target, with all its layers.
pub(crate) struct TargetConnection {
    io: Box<dyn ByteStream>,
    /// Whether an HTTP proxy forwards the requests, so that they have absolute URLs.
    pub(crate) is_forwarded_by_proxy: bool,
    first_fault: FirstFault,
}

/// The first fault of a connection. The HTTP library reports it only to the request whose response is being read; to
/// others it reports a cancellation.
#[derive(Clone)]
pub(crate) struct FirstFault {
    recorded_fault: Arc<Mutex<Option<Fault>>>,
    local_address: Option<SocketAddr>,
    peer_address: Option<SocketAddr>,
}

impl TargetConnection {
    pub(crate) fn new(
        io: Box<dyn ByteStream>,
        local_address: Option<SocketAddr>,
        peer_address: Option<SocketAddr>,
    ) -> Self {
        let first_fault =
            FirstFault { recorded_fault: Arc::default(), local_address, peer_address };
        Self { io, is_forwarded_by_proxy: false, first_fault }
    }

    fn record_io_error<T>(
        &self,
        operation: &str,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &polled {
            self.first_fault.record_fault(operation, error);
        }
        polled
    }
}

impl FirstFault {
    pub(crate) fn get(&self) -> Option<Fault> {
        self.recorded_fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The end of the stream is not recorded: its meaning depends on the state of the exchange.
    fn record_fault(&self, operation: &str, error: &io::Error) {
        let fault = error_to_fault(error);
        let fault = match (fault.kind, self.local_address, self.peer_address) {
            (FaultKind::Eof, _, _) => return,
            (FaultKind::Tls, _, _) => fault,
            (_, Some(local), Some(peer)) => fault
                .with_message_prefix(format_args!("{operation} tcp {local}->{peer}: {operation}")),
            (_, _, _) => fault.with_message_prefix(format_args!("{operation} tcp: {operation}")),
        };
        let mut first = self.recorded_fault.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
    }
}

impl Connection for TargetConnection {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_forwarded_by_proxy).extra(self.first_fault.clone())
    }
}

impl AsyncRead for TargetConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(cx, buffer);
        self.record_io_error("read", polled)
    }
}

impl AsyncWrite for TargetConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.record_io_error("write", polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(cx);
        self.record_io_error("write", polled)
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
        self.record_io_error("write", polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
