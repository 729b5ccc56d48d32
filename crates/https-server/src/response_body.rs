//! Response bodies: bytes, or chunks that arrive over time.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::connection::ActiveRequest;
use crate::stream_executor::{BodyWait, record_body_wait};

/// Maximum size of a chunk that is passed to hyper at a time. A peer that reads nothing occupies the memory
/// of a few chunks only.
pub const BODY_CHUNK_BYTES: usize = 64 << 10;

/// The maximum size in bytes of the last chunk of a body. Once it is handed over, the stream of an HTTP/2 response has
/// ended for this crate although the peer may not have taken the chunk, so it should be small.
pub const LAST_CHUNK_BYTES: usize = 4 << 10;

/// The body of a response, which may arrive over time.
#[derive(Debug, Default)]
pub struct Body {
    body_content: BodyContent,
    /// Counts the request as active until the last byte is handed over.
    active_request: Option<ActiveRequest>,
    /// Dropped with the body, such as a permit for its bytes.
    _drop_guard: Option<Box<dyn Any + Send + Sync>>,
}

#[derive(Default)]
enum BodyContent {
    #[default]
    Empty,
    Bytes(Bytes),
    Channel(mpsc::Receiver<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, ResponseBodyError>> + Send>>),
    Produced(ProducedChunks),
}

/// A future that sends chunks, and the chunk that it has sent last.
struct ProducedChunks {
    /// `None` after its end.
    chunk_producer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    chunk_slot: ChunkSlot,
    /// The unsent rest of a long chunk. It is sent in parts, so that the stall timeout sees progress while a
    /// slow peer reads.
    remaining_chunk: Bytes,
}

type ChunkSlot = Arc<Mutex<Option<Bytes>>>;

/// Sends the chunks of a body that [`Body::from_producer`] made.
#[derive(Debug)]
pub struct ChunkSender(ChunkSlot);

/// Why a body breaks off. The peer sees the connection or the stream end early.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ResponseBodyError(pub String);

/// Sends the chunks of a body. Dropping it ends the body.
#[derive(Debug, Clone)]
pub struct BodySender(mpsc::Sender<Bytes>);

/// The peer disconnected, so chunks cannot be sent any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct PeerDisconnected;

impl Body {
    /// A body without bytes.
    pub fn empty_body() -> Self {
        Self::default()
    }

    /// A body that `stream` produces. An error breaks it off; the end of the stream ends it.
    pub fn from_stream(
        stream: impl Stream<Item = Result<Bytes, ResponseBodyError>> + Send + 'static,
    ) -> Self {
        BodyContent::Stream(Box::pin(stream)).into()
    }

    /// A body whose chunks another task sends, at most `chunks_max` of them ahead of the peer.
    pub fn from_channel(chunks_max: usize) -> (BodySender, Self) {
        let (sender, receiver) = mpsc::channel(chunks_max.max(1));
        (BodySender(sender), BodyContent::Channel(receiver).into())
    }

    /// A body whose chunks a future sends. The future runs only when the peer takes chunks, and it is dropped with the
    /// body. That takes one task and one queue less than [`from_channel`](Self::from_channel).
    pub fn from_producer<F>(produce: impl FnOnce(ChunkSender) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let slot = ChunkSlot::default();
        let producer = Box::pin(produce(ChunkSender(Arc::clone(&slot))));
        BodyContent::Produced(ProducedChunks {
            chunk_producer: Some(producer),
            chunk_slot: slot,
            remaining_chunk: Bytes::new(),
        })
        .into()
    }

    /// The same body, which drops `guard` when it is dropped itself.
    #[must_use]
    pub fn with_drop_guard(self, guard: impl Any + Send + Sync) -> Self {
        Self { _drop_guard: Some(Box::new(guard)), ..self }
    }

    /// The number of bytes that the body holds; 0 if they arrive over time.
    pub fn in_memory_bytes(&self) -> usize {
        match &self.body_content {
            BodyContent::Bytes(bytes) => bytes.len(),
            BodyContent::Empty
            | BodyContent::Channel(_)
            | BodyContent::Stream(_)
            | BodyContent::Produced(_) => 0,
        }
    }

    pub(crate) fn with_active_request(mut self, active_request: ActiveRequest) -> Self {
        self.active_request = Some(active_request);
        self
    }
}

impl From<BodyContent> for Body {
    fn from(content: BodyContent) -> Self {
        Self { body_content: content, active_request: None, _drop_guard: None }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        BodyContent::Bytes(bytes).into()
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl ChunkSender {
    /// Sends a chunk, and waits until the body has handed it over.
    pub async fn send(&self, chunk: Bytes) {
        *self.lock() = Some(chunk);
        // The body takes the chunk right after this returned pending, and polls again when the peer wants more. So
        // nobody needs to be woken.
        std::future::poll_fn(|_| match self.lock().is_some() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProducedChunks {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.remaining_chunk.is_empty() {
            return Poll::Ready(Some(self.take_chunk_part()));
        }
        if let Some(producer) = &mut self.chunk_producer
            && producer.as_mut().poll(cx).is_ready()
        {
            self.chunk_producer = None;
        }
        let chunk = self.chunk_slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        match chunk {
            None if self.chunk_producer.is_some() => Poll::Pending,
            None => Poll::Ready(None),
            Some(chunk) => {
                self.remaining_chunk = chunk;
                Poll::Ready(Some(self.take_chunk_part()))
            }
        }
    }

    fn take_chunk_part(&mut self) -> Bytes {
        self.remaining_chunk.split_to(self.remaining_chunk.len().min(BODY_CHUNK_BYTES))
    }
}

impl BodySender {
    /// Sends a chunk once the channel has room for it.
    ///
    /// # Errors
    /// [`PeerDisconnected`] if the peer is gone.
    pub async fn send(&self, chunk: Bytes) -> Result<(), PeerDisconnected> {
        self.0.send(chunk).await.map_err(|_| PeerDisconnected)
    }

    /// Completes when the peer has disconnected.
    pub async fn wait_for_disconnect(&self) {
        self.0.closed().await;
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        let frame = match &mut self.body_content {
            BodyContent::Empty => Poll::Ready(None),
            BodyContent::Bytes(bytes) => {
                let chunk = bytes.split_to(first_chunk_bytes(bytes.len()));
                Poll::Ready((!chunk.is_empty()).then(|| Ok(Frame::data(chunk))))
            }
            BodyContent::Channel(receiver) => {
                receiver.poll_recv(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
            }
            BodyContent::Stream(stream) => stream
                .as_mut()
                .poll_next(cx)
                .map(|chunk| chunk.map(|result| result.map(Frame::data))),
            BodyContent::Produced(produced) => {
                let chunk = produced.poll_chunk(cx);
                if let (Poll::Ready(Some(_)), Some(request)) = (&chunk, &self.active_request) {
                    request.record_watch_event();
                }
                chunk.map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
            }
        };
        record_body_wait(if frame.is_pending() { BodyWait::Service } else { BodyWait::Peer });
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.body_content {
            BodyContent::Empty => true,
            BodyContent::Bytes(bytes) => bytes.is_empty(),
            BodyContent::Channel(_) | BodyContent::Stream(_) | BodyContent::Produced(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body_content {
            BodyContent::Empty => SizeHint::with_exact(0),
            BodyContent::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodyContent::Channel(_) | BodyContent::Stream(_) | BodyContent::Produced(_) => {
                SizeHint::default()
            }
        }
    }
}

/// The bytes of the first chunk of a body of this many bytes, so that all chunks keep to the two limits.
pub fn first_chunk_bytes(n_bytes: usize) -> usize {
    match n_bytes.saturating_sub(LAST_CHUNK_BYTES) {
        0 => n_bytes,
        before_last => before_last.min(BODY_CHUNK_BYTES),
    }
}

impl fmt::Debug for BodyContent {
    /// Shows the form and not the bytes: a body may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Channel(_) => f.write_str("Channel"),
            Self::Stream(_) => f.write_str("Stream"),
            Self::Produced(_) => f.write_str("Produced"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CollectBodyError, MinimumBodyRate, collect_body};

    /// Yields what a list holds.
    struct Listed(std::vec::IntoIter<Result<Bytes, ResponseBodyError>>);

    impl Stream for Listed {
        type Item = Result<Bytes, ResponseBodyError>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(self.0.next())
        }
    }

    fn listed(items: Vec<Result<Bytes, ResponseBodyError>>) -> Body {
        Body::from_stream(Listed(items.into_iter()))
    }

    #[tokio::test]
    async fn a_stream_ends_or_breaks_off() {
        let pace = MinimumBodyRate::default();
        let mut whole = listed(vec![Ok("a".into()), Ok("b".into())]);
        assert_eq!(collect_body(&mut whole, 10, pace).await.unwrap(), "ab");
        let mut broken = listed(vec![Ok("a".into()), Err(ResponseBodyError("gone".to_owned()))]);
        let Err(CollectBodyError::Read(error)) = collect_body(&mut broken, 10, pace).await else {
            panic!("the body did not break off");
        };
        assert_eq!(error.to_string(), "gone");
    }

    #[tokio::test]
    async fn a_sender_hears_that_the_peer_is_gone() {
        let (sender, body) = Body::from_channel(1);
        drop(body);
        sender.wait_for_disconnect().await;
        assert_eq!(sender.send(Bytes::new()).await, Err(PeerDisconnected));
    }

    #[tokio::test]
    async fn a_producer_runs_while_it_is_asked_and_ends_with_its_body() {
        let mut whole = Body::from_producer(|sender| async move {
            for chunk in ["a", "b", "c"] {
                sender.send(chunk.into()).await;
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(collect_body(&mut whole, 10, MinimumBodyRate::default()).await.unwrap(), "abc");
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let body = Body::from_producer(|sender| async move {
            sender.send("a".into()).await;
            std::future::pending::<()>().await;
            drop(held);
        });
        let body = body.with_drop_guard(Arc::clone(&alive));
        assert_eq!(Arc::strong_count(&alive), 3);
        drop(body);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[tokio::test]
    async fn long_bytes_are_handed_over_in_chunks() {
        use http_body_util::BodyExt as _;
        let last = LAST_CHUNK_BYTES;
        for (n_bytes, want) in [
            (0, vec![]),
            (last, vec![last]),
            (last + 1, vec![1, last]),
            (BODY_CHUNK_BYTES, vec![BODY_CHUNK_BYTES - last, last]),
            (2 * BODY_CHUNK_BYTES + 7, vec![BODY_CHUNK_BYTES, BODY_CHUNK_BYTES - last + 7, last]),
        ] {
            let mut body = Body::from(vec![7; n_bytes]);
            let mut chunks = Vec::new();
            while let Some(frame) = body.frame().await {
                chunks.push(frame.unwrap().into_data().unwrap().len());
            }
            assert_eq!(chunks, want, "{n_bytes}");
        }
    }

    #[tokio::test]
    async fn long_chunks_of_a_producer_are_handed_over_in_parts() {
        use http_body_util::BodyExt as _;
        let full = BODY_CHUNK_BYTES;
        for (sent, want) in [
            (vec![], vec![]),
            (vec![1, full, 2], vec![1, full, 2]),
            (vec![full + 1, 3], vec![full, 1, 3]),
            (vec![2 * full, 2 * full + 5], vec![full, full, full, full, 5]),
        ] {
            let sizes = sent.clone();
            let mut body = Body::from_producer(|sender| async move {
                for size in sizes {
                    sender.send(vec![7; size].into()).await;
                }
            });
            let mut parts = Vec::new();
            while let Some(frame) = body.frame().await {
                parts.push(frame.unwrap().into_data().unwrap().len());
            }
            assert_eq!(parts, want, "{sent:?}");
        }
    }

    #[test]
    fn bytes_announce_their_size_and_are_not_printed() {
        use http_body::Body as _;
        let body = Body::from("hunter");
        assert_eq!(body.size_hint().exact(), Some(6));
        assert!(!body.is_end_stream() && Body::empty_body().is_end_stream());
        assert!(!format!("{body:?}").contains("hunter"));
    }
}
