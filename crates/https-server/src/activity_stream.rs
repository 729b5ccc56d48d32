//! A stream wrapper that records activity, and collects the small writes of an HTTP/2 connection.
//!
//! h2 flushes after each frame, and a flush is a TLS record and a system call. An event that goes to a hundred watches of
//! one connection is a hundred small frames, so they are collected, and [`run_connection`](crate::run_connection) flushes
//! them together.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::{ConnectionActivity, HttpProtocol};

/// The most bytes that are collected.
const COLLECTED_BYTES_MAX: usize = 64 << 10;

/// Writes of this size are not collected. They fill a TLS record by themselves: most are full frames of a long response.
const LARGE_WRITE_BYTES: usize = 16 << 10;

/// The most bytes of the buffer that an idle connection keeps for its next response.
const KEPT_BUFFER_BYTES_MAX: usize = 4 << 10;

/// Passes bytes through and records them in `activity`.
#[derive(Debug)]
pub(crate) struct ActivityStream<S>(Arc<Mutex<WriteCollector<S>>>);

/// Flushes the writes that an [`ActivityStream`] has collected.
#[derive(Debug)]
pub(crate) struct CollectedWrites<S>(Arc<Mutex<WriteCollector<S>>>);

#[derive(Debug)]
struct WriteCollector<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
    /// Whether small writes are collected and flushes are left to [`CollectedWrites`].
    collects: bool,
    collected: Vec<u8>,
    /// Bytes of `collected` that were written.
    n_written: usize,
    /// Whether bytes were written since the last flush.
    needs_flush: bool,
    /// The error of a flush, which the next write reports.
    error: Option<io::ErrorKind>,
}

impl<S> ActivityStream<S> {
    /// Wraps a stream. HTTP/1.1 collects its writes itself.
    pub(crate) fn new(
        stream: S,
        activity: Arc<ConnectionActivity>,
        protocol: HttpProtocol,
    ) -> (Self, CollectedWrites<S>) {
        let shared = Arc::new(Mutex::new(WriteCollector {
            stream,
            activity,
            collects: protocol == HttpProtocol::Http2,
            collected: Vec::new(),
            n_written: 0,
            needs_flush: false,
            error: None,
        }));
        (Self(Arc::clone(&shared)), CollectedWrites(shared))
    }

    /// Both halves are polled by the task of the connection, so nobody waits for the lock.
    fn lock(&self) -> MutexGuard<'_, WriteCollector<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> CollectedWrites<S> {
    /// Writes and flushes what was collected. An error is reported to the connection.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut collector = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !collector.collects || !collector.needs_flush {
            return Poll::Ready(());
        }
        if let Err(error) = ready!(collector.poll_flush_now(cx)) {
            collector.error = Some(error.kind());
            collector.needs_flush = false;
            // The connection learns of the error when it flushes next.
            cx.waker().wake_by_ref();
        }
        Poll::Ready(())
    }
}

impl<S: AsyncWrite + Unpin> WriteCollector<S> {
    /// Records the outcome of a write to the stream.
    fn record_write(&mut self, result: &Poll<io::Result<usize>>) {
        match result {
            Poll::Ready(Ok(count)) => {
                self.needs_flush = true;
                self.activity.record_bytes_written(*count);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.set_write_blocked(true),
        }
    }

    fn check_error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// Collects the slices, or returns `None` if they are to be written at once.
    fn poll_collect(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<Option<usize>>> {
        self.check_error()?;
        let n_bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let is_large = n_bytes >= LARGE_WRITE_BYTES;
        if !self.collects {
            return Poll::Ready(Ok(None));
        }
        if is_large || self.collected.len() + n_bytes > COLLECTED_BYTES_MAX {
            ready!(self.poll_write_collected(cx))?;
        }
        if is_large {
            return Poll::Ready(Ok(None));
        }
        for slice in slices {
            self.collected.extend_from_slice(slice);
        }
        self.needs_flush = true;
        Poll::Ready(Ok(Some(n_bytes)))
    }

    /// Writes what was collected.
    fn poll_write_collected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.collected.get(self.n_written..).filter(|rest| !rest.is_empty())
        {
            let result = Pin::new(&mut self.stream).poll_write(cx, rest);
            self.record_write(&result);
            match ready!(result)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.n_written += count,
            }
        }
        self.n_written = 0;
        match self.collected.capacity() > KEPT_BUFFER_BYTES_MAX {
            true => self.collected = Vec::new(),
            false => self.collected.clear(),
        }
        Poll::Ready(Ok(()))
    }

    /// TLS buffers records itself, so a flush can block.
    fn poll_flush_now(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_collected(cx))?;
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.activity.set_write_blocked(result.is_pending());
        self.needs_flush = result.is_pending();
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ActivityStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut collector = self.lock();
        let before = buffer.filled().len();
        let result = Pin::new(&mut collector.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            collector.activity.record_bytes_read();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ActivityStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut collector = self.lock();
        if let Some(count) = ready!(collector.poll_collect(cx, &[io::IoSlice::new(bytes)]))? {
            return Poll::Ready(Ok(count));
        }
        let result = Pin::new(&mut collector.stream).poll_write(cx, bytes);
        collector.record_write(&result);
        result
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut collector = self.lock();
        if let Some(count) = ready!(collector.poll_collect(cx, slices))? {
            return Poll::Ready(Ok(count));
        }
        let result = Pin::new(&mut collector.stream).poll_write_vectored(cx, slices);
        collector.record_write(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut collector = self.lock();
        collector.check_error()?;
        match collector.collects {
            true => Poll::Ready(Ok(())),
            false => collector.poll_flush_now(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut collector = self.lock();
        ready!(collector.poll_write_collected(cx))?;
        let result = Pin::new(&mut collector.stream).poll_shutdown(cx);
        collector.activity.set_write_blocked(result.is_pending());
        result
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Small writes arrive with the flush of the connection, in order with large ones.
    #[tokio::test]
    async fn small_writes_are_collected() {
        let (mut peer, own) = tokio::io::duplex(1 << 20);
        let (mut stream, collected) = ActivityStream::new(own, Arc::default(), HttpProtocol::Http2);
        let mut want = Vec::new();
        for n_bytes in [10, 20, LARGE_WRITE_BYTES, 30, 40] {
            let bytes = vec![u8::try_from(n_bytes % 256).unwrap(); n_bytes];
            stream.write_all(&bytes).await.unwrap();
            stream.flush().await.unwrap();
            want.extend(bytes);
        }
        let mut got = vec![0; want.len() - 70];
        peer.read_exact(&mut got).await.unwrap();
        assert!(tokio::time::timeout(std::time::Duration::ZERO, peer.read_u8()).await.is_err());
        std::future::poll_fn(|cx| collected.poll_flush(cx)).await;
        let mut rest = [0; 70];
        peer.read_exact(&mut rest).await.unwrap();
        got.extend(rest);
        assert_eq!(got, want);
        stream.write_all(b"last").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"last");
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_waited_for_and_its_end_is_told() {
        let (peer, own) = tokio::io::duplex(16);
        let activity: Arc<ConnectionActivity> = Arc::default();
        let (mut stream, collected) =
            ActivityStream::new(own, Arc::clone(&activity), HttpProtocol::Http2);
        stream.write_all(&[0; 100]).await.unwrap();
        let flush = std::future::poll_fn(|cx| Poll::Ready(collected.poll_flush(cx)));
        assert!(flush.await.is_pending() && activity.is_write_blocked());
        drop(peer);
        std::future::poll_fn(|cx| collected.poll_flush(cx)).await;
        assert_eq!(stream.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn http1_writes_at_once() {
        let (mut peer, own) = tokio::io::duplex(16);
        let (mut stream, _) = ActivityStream::new(own, Arc::default(), HttpProtocol::Http1);
        stream.write_all(b"now").await.unwrap();
        let mut got = [0; 3];
        peer.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"now");
    }
}
