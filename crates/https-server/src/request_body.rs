//! Reads request bodies up to a limit.

use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;

/// Upper bound on the memory that is reserved at once for a body with a declared length. Declaring
/// a length costs the peer nothing, so memory grows with the bytes that arrive.
const RESERVE_BYTES_MAX: u64 = 64 << 10;

/// Upper bound on the bytes that [`discard_body`] reads. Many clients send the whole body before
/// they read the response; if the connection breaks first, they never see it. The bound exceeds the
/// longest accepted body, and a peer that sends more gets no response.
const DISCARD_BYTES_MAX: u64 = 8 << 20;

/// Upper bound on the time that [`discard_body`] takes.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum CollectBodyError<E> {
    /// The body is longer than `limit`.
    #[error("the body is longer than {limit} bytes")]
    TooLarge {
        /// The longest body that would have been read, in bytes.
        limit: u64,
    },
    /// The connection or the peer broke off the body.
    #[error("the body can not be read")]
    Read(#[source] E),
    /// The body ended before its declared length. An HTTP/2 stream that is reset without an error
    /// looks like its end.
    #[error("the body ends before its announced length")]
    Truncated,
}

/// Reads a body of at most `limit` bytes. The rest of a longer body is [discarded](discard_body),
/// so that the peer reads the response.
///
/// # Errors
/// [`CollectBodyError::TooLarge`] past the limit, [`CollectBodyError::Read`] and [`CollectBodyError::Truncated`] if the
/// body breaks off.
pub async fn collect_body<B: Body>(
    body: B,
    limit: u64,
) -> Result<Bytes, CollectBodyError<B::Error>> {
    let mut body = pin!(body);
    let collected = if body.size_hint().lower() > limit {
        Err(CollectBodyError::TooLarge { limit })
    } else {
        match collect_chunks(body.as_mut(), limit).await {
            Ok(_) if body.size_hint().lower() > 0 => Err(CollectBodyError::Truncated),
            collected => collected,
        }
    };
    if matches!(collected, Err(CollectBodyError::TooLarge { .. })) {
        discard_body(body).await;
    }
    collected
}

/// Reads a body and drops it, within a few seconds and a few megabytes, for responses that do not
/// depend on the body. A body with a longer declared length is not read at all.
pub async fn discard_body<B: Body>(body: B) {
    let mut body = pin!(body);
    if body.size_hint().lower() > DISCARD_BYTES_MAX {
        return;
    }
    let reading = async {
        let mut discarded = 0;
        while let Ok(Some(data)) = next_data(body.as_mut()).await {
            discarded += data.remaining() as u64;
            if discarded > DISCARD_BYTES_MAX {
                return;
            }
        }
    };
    // A slow peer gets the response without having been read to the end.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, reading).await;
}

async fn collect_chunks<B: Body>(
    mut body: Pin<&mut B>,
    limit: u64,
) -> Result<Bytes, CollectBodyError<B::Error>> {
    let Some(first) = next_data(body.as_mut()).await? else {
        return Ok(Bytes::new());
    };
    if first.remaining() as u64 > limit {
        return Err(CollectBodyError::TooLarge { limit });
    }
    // Most bodies arrive in one chunk, which is returned without a copy.
    let Some(second) = next_data(body.as_mut()).await? else {
        return Ok(chunk_to_bytes(first));
    };
    let mut bytes = BytesMut::with_capacity(first.remaining() + second.remaining());
    bytes.extend_from_slice(&chunk_to_bytes(first));
    let mut next = Some(second);
    while let Some(data) = next {
        if (bytes.len() + data.remaining()) as u64 > limit {
            return Err(CollectBodyError::TooLarge { limit });
        }
        bytes.extend_from_slice(&chunk_to_bytes(data));
        bytes.reserve(body.size_hint().lower().min(RESERVE_BYTES_MAX) as usize);
        next = next_data(body.as_mut()).await?;
    }
    Ok(bytes.freeze())
}

/// The next chunk that is not empty. Trailers are ignored.
async fn next_data<B: Body>(
    mut body: Pin<&mut B>,
) -> Result<Option<B::Data>, CollectBodyError<B::Error>> {
    loop {
        let frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
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
        let (sender, body) = Body::channel(chunks.len());
        for chunk in chunks {
            sender.send(Bytes::from_static(chunk.as_bytes())).await.unwrap();
        }
        drop(sender);
        collect_body(body, limit).await
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
        let error = collect_body(Body::from("abcd"), 3).await.unwrap_err();
        assert!(matches!(error, CollectBodyError::TooLarge { limit: 3 }));
    }

    #[tokio::test(start_paused = true)]
    async fn discarding_ends_with_the_body_or_by_itself() {
        let (sender, body) = Body::channel(1);
        let discarding = tokio::spawn(discard_body(body));
        sender.send("abc".into()).await.unwrap();
        assert!(!discarding.is_finished());
        // The peer falls silent.
        discarding.await.unwrap();

        let (sender, body) = Body::channel(1);
        let discarding = tokio::spawn(discard_body(body));
        let chunk = Bytes::from(vec![0; 1 << 20]);
        let mut sent = 0;
        while sender.send(chunk.clone()).await.is_ok() {
            sent += chunk.len() as u64;
        }
        discarding.await.unwrap();
        assert!((DISCARD_BYTES_MAX..=DISCARD_BYTES_MAX + (3 << 20)).contains(&sent), "{sent}");
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
            let error = collect_body(Announcing(part), 10).await.unwrap_err();
            assert!(matches!(error, CollectBodyError::Truncated), "{error}");
        }
    }

    #[tokio::test]
    async fn one_piece_is_not_copied() {
        let bytes = Bytes::from(vec![b'x'; 100]);
        let collected = collect_body(Body::from(bytes.clone()), 100).await.unwrap();
        assert_eq!(collected.as_ptr(), bytes.as_ptr());
    }
}
