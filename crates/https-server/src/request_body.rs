//! Reads request bodies up to a limit.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use tokio::time::Instant;

/// Upper bound on the memory that is reserved at once for a body with a declared length. Declaring
/// a length costs the peer nothing, so memory grows with the bytes that arrive.
const RESERVE_BYTES_MAX: u64 = 64 << 10;

/// Upper bound on the time that [`discard_body`] takes.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// The minimum rate at which a peer must send a body. After the grace period, the average rate since the
/// start of the body counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinimumBodyRate {
    /// The time that a body may take whatever its length.
    pub grace_period: Duration,
    /// The minimum rate: for every so many bytes that arrive, the body may take one more second.
    pub bytes_per_second_min: u32,
}

impl Default for MinimumBodyRate {
    fn default() -> Self {
        Self { grace_period: Duration::from_secs(10), bytes_per_second_min: 4 << 10 }
    }
}

impl MinimumBodyRate {
    /// The time that a peer has for the first `n_bytes` and for the next chunk.
    fn time_allowed_for_bytes(&self, n_bytes: usize) -> Duration {
        let millis = n_bytes as u64 * 1_000 / u64::from(self.bytes_per_second_min.max(1));
        self.grace_period + Duration::from_millis(millis)
    }
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum CollectBodyError<E> {
    /// The body is longer than `limit`.
    #[error("the body is longer than {limit} bytes")]
    TooLarge {
        /// The longest body that would have been read, in bytes.
        limit: u64,
    },
    /// The peer sends more slowly than the [`MinimumBodyRate`].
    #[error("the body arrives too slowly")]
    TooSlow,
    /// The connection or the peer broke off the body.
    #[error("the body cannot be read")]
    Read(#[source] E),
    /// The body ended before its declared length. An HTTP/2 stream that is reset without an error
    /// looks like its end.
    #[error("the body ends before its announced length")]
    Truncated,
}

/// Reads a body of at most `limit` bytes. A longer body is not read to its end, and one with a longer declared length is not
/// read at all.
///
/// # Errors
/// [`CollectBodyError::TooLarge`] past the limit, [`CollectBodyError::TooSlow`] below the pace, [`CollectBodyError::Read`]
/// and [`CollectBodyError::Truncated`] if the body breaks off.
pub async fn collect_body<B: Body + Unpin>(
    body: &mut B,
    limit: u64,
    pace: MinimumBodyRate,
) -> Result<Bytes, CollectBodyError<B::Error>> {
    if body.size_hint().lower() > limit {
        return Err(CollectBodyError::TooLarge { limit });
    }
    match collect_body_chunks(body, limit, pace).await {
        Ok(_) if body.size_hint().lower() > 0 => Err(CollectBodyError::Truncated),
        collected => collected,
    }
}

/// Reads the rest of a body of HTTP/1.1 and drops it, for responses that do not depend on the body. The response is sent
/// before: many clients send the whole body before they read the response, and if the connection broke at once, they would
/// never see it. After `bytes_max` nothing more is read, and the peer has the rest of two seconds to read its response.
pub async fn discard_body<B: Body + Unpin>(mut body: B, bytes_max: u64) {
    let reading = async {
        let mut discarded = 0;
        while let Ok(Some(data)) = next_body_chunk(&mut body).await {
            discarded += data.remaining() as u64;
            if discarded >= bytes_max {
                return std::future::pending().await;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, reading).await;
}

async fn collect_body_chunks<B: Body + Unpin>(
    body: &mut B,
    limit: u64,
    pace: MinimumBodyRate,
) -> Result<Bytes, CollectBodyError<B::Error>> {
    let begun = Instant::now();
    let ends_at = |n_bytes| begun + pace.time_allowed_for_bytes(n_bytes);
    let Some(first) = next_body_chunk_until(body, ends_at(0)).await? else {
        return Ok(Bytes::new());
    };
    if first.remaining() as u64 > limit {
        return Err(CollectBodyError::TooLarge { limit });
    }
    // Most bodies arrive in one chunk, which is returned without a copy.
    let Some(second) = next_body_chunk_until(body, ends_at(first.remaining())).await? else {
        return Ok(chunk_to_bytes(first));
    };
    let mut bytes = BytesMut::with_capacity(first.remaining() + second.remaining());
    bytes.extend_from_slice(&chunk_to_bytes(first));
    let mut chunk = Some(second);
    while let Some(data) = chunk {
        if (bytes.len() + data.remaining()) as u64 > limit {
            return Err(CollectBodyError::TooLarge { limit });
        }
        bytes.extend_from_slice(&chunk_to_bytes(data));
        bytes.reserve(body.size_hint().lower().min(RESERVE_BYTES_MAX) as usize);
        chunk = next_body_chunk_until(body, ends_at(bytes.len())).await?;
    }
    Ok(bytes.freeze())
}

/// The next chunk, if it arrives in time. A timer is set only if the chunk has not arrived yet.
async fn next_body_chunk_until<B: Body + Unpin>(
    body: &mut B,
    ends_at: Instant,
) -> Result<Option<B::Data>, CollectBodyError<B::Error>> {
    let next = tokio::time::timeout_at(ends_at, next_body_chunk(body)).await;
    next.unwrap_or(Err(CollectBodyError::TooSlow))
}

/// The next chunk that is not empty. Trailers are ignored.
async fn next_body_chunk<B: Body + Unpin>(
    body: &mut B,
) -> Result<Option<B::Data>, CollectBodyError<B::Error>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        match frame.transpose().map_err(CollectBodyError::Read)? {
            None => return Ok(None),
            Some(frame) => match frame.into_data() {
                Ok(data) if data.has_remaining() => return Ok(Some(data)),
                Ok(_) | Err(_) => {}
            },
        }
    }
}

/// The bytes of one chunk, without a copy if it already is [`Bytes`].
fn chunk_to_bytes(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, ResponseBodyError};

    async fn chunks(
        chunks: &[&'static str],
        limit: u64,
    ) -> Result<Bytes, CollectBodyError<ResponseBodyError>> {
        let (sender, mut body) = Body::from_channel(chunks.len());
        for chunk in chunks {
            sender.send(Bytes::from_static(chunk.as_bytes())).await.unwrap();
        }
        drop(sender);
        collect_body(&mut body, limit, MinimumBodyRate::default()).await
    }

    #[tokio::test]
    async fn reads_up_to_the_limit() {
        assert_eq!(chunks(&[], 0).await.unwrap(), "");
        assert_eq!(chunks(&["abc"], 3).await.unwrap(), "abc");
        assert_eq!(chunks(&["", "ab", "", "c", "de"], 5).await.unwrap(), "abcde");
    }

    #[tokio::test]
    async fn refuses_one_byte_more() {
        for pieces in [&["abcd"][..], &["abc", "d"], &["a", "b", "c", "d"]] {
            let error = chunks(pieces, 3).await.unwrap_err();
            assert!(matches!(error, CollectBodyError::TooLarge { limit: 3 }), "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn refuses_an_announced_size() {
        let error =
            collect_body(&mut Body::from("abcd"), 3, MinimumBodyRate::default()).await.unwrap_err();
        assert!(matches!(error, CollectBodyError::TooLarge { limit: 3 }));
    }

    #[tokio::test(start_paused = true)]
    async fn discarding_ends_with_the_body_or_by_itself() {
        let (sender, body) = Body::from_channel(1);
        let discarding = tokio::spawn(discard_body(body, 256 << 10));
        sender.send("abc".into()).await.unwrap();
        assert!(!discarding.is_finished());
        // The peer falls silent.
        discarding.await.unwrap();

        // A peer that never stops is not read for long.
        let (sender, body) = Body::from_channel(1);
        let discarding = tokio::spawn(discard_body(body, 256 << 10));
        let chunk = Bytes::from(vec![0; 16 << 10]);
        let mut sent = 0;
        while sender.send(chunk.clone()).await.is_ok() {
            sent += chunk.len() as u64;
        }
        discarding.await.unwrap();
        assert!((256 << 10..=320 << 10).contains(&sent), "{sent}");
    }

    /// A8: a body that arrives slowly ends.
    #[tokio::test(start_paused = true)]
    async fn a_body_has_to_keep_its_pace() {
        let pace =
            MinimumBodyRate { grace_period: Duration::from_secs(10), bytes_per_second_min: 100 };
        for (interval_secs, chunk_bytes, is_read) in
            [(1, 100, true), (1, 50, false), (1, 1, false), (2, 250, true), (11, 5_000, false)]
        {
            let (sender, mut body) = Body::from_channel(1);
            let sending = tokio::spawn(async move {
                let mut interval = tokio::time::interval(Duration::from_secs(interval_secs));
                interval.tick().await;
                for _ in 0..60 {
                    interval.tick().await;
                    if sender.send(Bytes::from(vec![b'x'; chunk_bytes])).await.is_err() {
                        return;
                    }
                }
            });
            let begun = Instant::now();
            let collected = collect_body(&mut body, 1 << 20, pace).await;
            match is_read {
                true => assert_eq!(collected.unwrap().len(), 60 * chunk_bytes),
                false => {
                    assert!(matches!(collected, Err(CollectBodyError::TooSlow)), "{chunk_bytes}");
                    assert!(begun.elapsed() <= Duration::from_secs(25), "{:?}", begun.elapsed());
                }
            }
            drop(body);
            sending.await.unwrap();
        }
    }

    /// A body that announces more than it has.
    struct Announcing(Option<Bytes>);

    impl http_body::Body for Announcing {
        type Data = Bytes;
        type Error = ResponseBodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, ResponseBodyError>>> {
            std::task::Poll::Ready(self.0.take().map(|bytes| Ok(http_body::Frame::data(bytes))))
        }

        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(7)
        }
    }

    #[tokio::test]
    async fn a_part_of_a_body_is_not_taken_for_the_whole() {
        for part in [None, Some("abc".into())] {
            let error = collect_body(&mut Announcing(part), 10, MinimumBodyRate::default())
                .await
                .unwrap_err();
            assert!(matches!(error, CollectBodyError::Truncated), "{error}");
        }
    }

    #[tokio::test]
    async fn one_piece_is_not_copied() {
        let bytes = Bytes::from(vec![b'x'; 100]);
        let mut body = Body::from(bytes.clone());
        let collected = collect_body(&mut body, 100, MinimumBodyRate::default()).await.unwrap();
        assert_eq!(collected.as_ptr(), bytes.as_ptr());
    }
}
