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

/// The maximum number of bytes that are collected before they are written.
const COLLECTED_BYTES_MAX: usize = 64 << 10;

/// Writes of this size are not collected. They fill a TLS record by themselves: most are full frames of a long response.
const LARGE_WRITE_BYTES: usize = 16 << 10;

/// The maximum number of bytes of one read over HTTP/1.1: one TLS record. hyper doubles its buffer, up to 128 KiB,
/// after each read that fills it, and passes whole buffers on as the chunks of a body. With reads of one record, a
/// connection whose body nobody takes holds two buffers of 32 KiB.
const HTTP1_READ_BYTES_MAX: usize = 16 << 10;

/// The bytes that one poll of a connection reads. A peer that sends many small frames as fast as it can would otherwise
/// occupy a thread for tens of milliseconds; so it gives way to other connections after one or two.
const READ_BYTES_PER_POLL: usize = 128 << 10;

/// The bytes that one poll reads from a connection on which nobody has authenticated.
const UNAUTHENTICATED_READ_BYTES_PER_POLL: usize = 16 << 10;

/// The bytes that one poll of a connection writes. Otherwise one poll would encrypt and write the same event
/// for a hundred watches of one connection, and other connections would wait meanwhile.
const WRITTEN_BYTES_PER_POLL: usize = 128 << 10;

/// The maximum size in bytes of the buffer that an idle connection keeps for its next response.
const KEPT_BUFFER_BYTES_MAX: usize = 4 << 10;

/// Passes bytes through and records their number in the [`ConnectionActivity`].
#[derive(Debug)]
pub(crate) struct ActivityStream<S>(Arc<Mutex<WriteCollector<S>>>);

/// Flushes the writes that an [`ActivityStream`] has collected.
#[derive(Debug)]
pub(crate) struct CollectedWritesFlusher<S>(Arc<Mutex<WriteCollector<S>>>);

#[derive(Debug)]
struct WriteCollector<S> {
    inner_stream: S,
    connection_activity: Arc<ConnectionActivity>,
    /// Whether small writes are collected and flushes are left to [`CollectedWritesFlusher`].
    collects_writes: bool,
    collected_write_bytes: Vec<u8>,
    /// Bytes of `collected_write_bytes` that were written.
    n_flushed_collected_bytes: usize,
    /// Whether bytes were written since the last flush.
    needs_flush: bool,
    /// The error of a flush, which the next write reports.
    error: Option<io::ErrorKind>,
    /// The bytes that the current poll of the connection may still read.
    poll_read_bytes_left: usize,
    /// The bytes that the current poll of the connection may still write.
    poll_write_bytes_left: usize,
}

impl<S> ActivityStream<S> {
    /// Wraps a stream. HTTP/1.1 collects its writes itself.
    pub(crate) fn new(
        stream: S,
        activity: Arc<ConnectionActivity>,
        protocol: HttpProtocol,
    ) -> (Self, CollectedWritesFlusher<S>) {
        let shared = Arc::new(Mutex::new(WriteCollector {
            inner_stream: stream,
            connection_activity: activity,
            collects_writes: protocol == HttpProtocol::Http2,
            collected_write_bytes: Vec::new(),
            n_flushed_collected_bytes: 0,
            needs_flush: false,
            error: None,
            poll_read_bytes_left: UNAUTHENTICATED_READ_BYTES_PER_POLL,
            poll_write_bytes_left: WRITTEN_BYTES_PER_POLL,
        }));
        (Self(Arc::clone(&shared)), CollectedWritesFlusher(shared))
    }

    /// The task of the connection polls both halves, so no other thread waits for the lock.
    fn lock(&self) -> MutexGuard<'_, WriteCollector<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> CollectedWritesFlusher<S> {
    /// Begins a poll of the connection, which may read and write a limited number of bytes.
    pub(crate) fn begin_connection_poll(&self) {
        let mut collector = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        collector.poll_read_bytes_left = match collector.connection_activity.is_authenticated() {
            true => READ_BYTES_PER_POLL,
            false => UNAUTHENTICATED_READ_BYTES_PER_POLL,
        };
        collector.poll_write_bytes_left = WRITTEN_BYTES_PER_POLL;
    }

    /// Writes and flushes the collected bytes. The connection gets an error at its next write.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut collector = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !collector.collects_writes || !collector.needs_flush {
            return Poll::Ready(());
        }
        if let Err(error) = ready!(collector.poll_flush_stream(cx)) {
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
    fn record_write_result(&mut self, result: &Poll<io::Result<usize>>) {
        match result {
            Poll::Ready(Ok(count)) => {
                self.needs_flush = true;
                self.poll_write_bytes_left = self.poll_write_bytes_left.saturating_sub(*count);
                self.connection_activity.record_bytes_written(*count);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.connection_activity.set_write_blocked(true),
        }
    }

    /// Whether this poll of the connection may write. If not, the connection continues after the tasks that are ready now.
    fn poll_write_turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_write_bytes_left > 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn take_flush_error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// Collects the slices, or returns `None` if the caller must write them to the stream directly.
    fn poll_collect_writes(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<Option<usize>>> {
        self.take_flush_error()?;
        let n_bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let is_large = n_bytes >= LARGE_WRITE_BYTES;
        if !self.collects_writes {
            return Poll::Ready(Ok(None));
        }
        if is_large || self.collected_write_bytes.len() + n_bytes > COLLECTED_BYTES_MAX {
            ready!(self.poll_write_collected(cx))?;
        }
        if is_large {
            return Poll::Ready(Ok(None));
        }
        for slice in slices {
            self.collected_write_bytes.extend_from_slice(slice);
        }
        self.needs_flush = true;
        Poll::Ready(Ok(Some(n_bytes)))
    }

    /// Writes the collected bytes to the stream.
    fn poll_write_collected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self
            .collected_write_bytes
            .get(self.n_flushed_collected_bytes..)
            .filter(|rest| !rest.is_empty())
        {
            ready!(self.poll_write_turn(cx));
            let result = Pin::new(&mut self.inner_stream).poll_write(cx, rest);
            self.record_write_result(&result);
            match ready!(result)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.n_flushed_collected_bytes += count,
            }
        }
        self.n_flushed_collected_bytes = 0;
        match self.collected_write_bytes.capacity() > KEPT_BUFFER_BYTES_MAX {
            true => self.collected_write_bytes = Vec::new(),
            false => self.collected_write_bytes.clear(),
        }
        Poll::Ready(Ok(()))
    }

    /// TLS buffers records itself, so a flush can block.
    fn poll_flush_stream(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_collected(cx))?;
        let result = Pin::new(&mut self.inner_stream).poll_flush(cx);
        self.connection_activity.set_write_blocked(result.is_pending());
        self.needs_flush = result.is_pending();
        result
    }
}

/// Reads into the first bytes of a buffer that has more room.
fn poll_read_up_to<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
    bytes_max: usize,
) -> Poll<io::Result<()>> {
    let mut part = ReadBuf::new(buffer.initialize_unfilled_to(bytes_max));
    let result = Pin::new(stream).poll_read(cx, &mut part);
    let n_read = part.filled().len();
    buffer.advance(n_read);
    result
}

impl<S: AsyncRead + Unpin> AsyncRead for ActivityStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut collector = self.lock();
        if collector.poll_read_bytes_left == 0 {
            // The connection continues after the tasks that are ready now.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        // HTTP/1.1 is the protocol that collects its writes itself.
        let result = match !collector.collects_writes && buffer.remaining() > HTTP1_READ_BYTES_MAX {
            true => poll_read_up_to(&mut collector.inner_stream, cx, buffer, HTTP1_READ_BYTES_MAX),
            false => Pin::new(&mut collector.inner_stream).poll_read(cx, buffer),
        };
        let n_read = buffer.filled().len() - before;
        if n_read > 0 {
            collector.poll_read_bytes_left = collector.poll_read_bytes_left.saturating_sub(n_read);
            collector.connection_activity.record_bytes_read(n_read);
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
        if let Some(count) = ready!(collector.poll_collect_writes(cx, &[io::IoSlice::new(bytes)]))?
        {
            return Poll::Ready(Ok(count));
        }
        ready!(collector.poll_write_turn(cx));
        let result = Pin::new(&mut collector.inner_stream).poll_write(cx, bytes);
        collector.record_write_result(&result);
        result
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut collector = self.lock();
        if let Some(count) = ready!(collector.poll_collect_writes(cx, slices))? {
            return Poll::Ready(Ok(count));
        }
        ready!(collector.poll_write_turn(cx));
        let result = Pin::new(&mut collector.inner_stream).poll_write_vectored(cx, slices);
        collector.record_write_result(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().inner_stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut collector = self.lock();
        collector.take_flush_error()?;
        match collector.collects_writes {
            true => Poll::Ready(Ok(())),
            false => collector.poll_flush_stream(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut collector = self.lock();
        ready!(collector.poll_write_collected(cx))?;
        let result = Pin::new(&mut collector.inner_stream).poll_shutdown(cx);
        collector.connection_activity.set_write_blocked(result.is_pending());
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

    /// A8: what hyper reads at once bounds the buffers of connections whose bodies nobody takes.
    #[tokio::test]
    async fn a8_http1_reads_one_record_at_a_time() {
        for (protocol, want) in
            [(HttpProtocol::Http1, HTTP1_READ_BYTES_MAX), (HttpProtocol::Http2, 100 << 10)]
        {
            let (mut peer, own) = tokio::io::duplex(1 << 20);
            let activity: Arc<ConnectionActivity> = Arc::default();
            activity.set_authenticated();
            let (mut stream, polls) = ActivityStream::new(own, activity, protocol);
            polls.begin_connection_poll();
            let sent: Vec<u8> = (0..100 << 10).map(|n: u32| n.to_le_bytes()[0]).collect();
            peer.write_all(&sent).await.unwrap();
            let mut buffer = vec![0; 128 << 10];
            assert_eq!(stream.read(&mut buffer).await.unwrap(), want, "{protocol:?}");
            let mut got = buffer[..want].to_vec();
            while got.len() < sent.len() {
                let count = stream.read(&mut buffer).await.unwrap();
                got.extend(&buffer[..count]);
            }
            assert!(got == sent, "{protocol:?}");
        }
    }

    /// A12: a peer that sends without a pause gives way to others, sooner if nobody has authenticated.
    #[tokio::test]
    async fn a12_one_poll_reads_a_limited_number_of_bytes() {
        for (is_authenticated, want) in
            [(false, UNAUTHENTICATED_READ_BYTES_PER_POLL), (true, READ_BYTES_PER_POLL)]
        {
            let (mut peer, own) = tokio::io::duplex(1 << 20);
            let activity: Arc<ConnectionActivity> = Arc::default();
            if is_authenticated {
                activity.set_authenticated();
            }
            let (mut stream, polls) = ActivityStream::new(own, activity, HttpProtocol::Http2);
            peer.write_all(&vec![0; 1 << 20]).await.unwrap();
            let mut n_polls = 0;
            let mut n_read = 0;
            while n_read < 1 << 20 {
                let before = n_read;
                std::future::poll_fn(|cx| {
                    polls.begin_connection_poll();
                    n_polls += 1;
                    let mut bytes = [0; 4096];
                    let mut buffer = ReadBuf::new(&mut bytes);
                    while Pin::new(&mut stream).poll_read(cx, &mut buffer)?.is_ready() {
                        n_read += buffer.filled().len();
                        buffer.clear();
                        if n_read == 1 << 20 {
                            break;
                        }
                    }
                    Poll::Ready(io::Result::Ok(()))
                })
                .await
                .unwrap();
                assert!(n_read - before <= want, "{is_authenticated}: {}", n_read - before);
                // Each poll of a task has a budget of its own.
                tokio::task::yield_now().await;
            }
            assert_eq!(n_polls, (1 << 20) / want, "{is_authenticated}");
        }
    }

    /// A10: a connection that has much to send gives way to others.
    #[tokio::test]
    async fn a10_one_poll_writes_a_limited_number_of_bytes() {
        for write_bytes in [4 << 10, LARGE_WRITE_BYTES] {
            let (mut peer, own) = tokio::io::duplex(4 << 20);
            let (mut stream, polls) = ActivityStream::new(own, Arc::default(), HttpProtocol::Http2);
            let n_bytes = 1 << 20;
            let (mut n_polls, mut n_written) = (0, 0);
            std::future::poll_fn(|cx| {
                polls.begin_connection_poll();
                n_polls += 1;
                let bytes = vec![1; write_bytes];
                while n_written < n_bytes {
                    n_written += ready!(Pin::new(&mut stream).poll_write(cx, &bytes))?;
                }
                polls.poll_flush(cx).map(io::Result::Ok)
            })
            .await
            .unwrap();
            assert!(n_polls >= n_bytes / (WRITTEN_BYTES_PER_POLL + (64 << 10)), "{n_polls}");
            let mut got = vec![0; n_bytes];
            peer.read_exact(&mut got).await.unwrap();
            assert!(got.iter().all(|byte| *byte == 1));
        }
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
