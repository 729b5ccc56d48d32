//! The body of a list, which is encoded while the client reads it.
//!
//! The body holds the objects as the store has them, at one revision, and a chunk of their encoded form. Every object
//! was checked before the response began, so the encoding does not fail.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use api_resources::Resource;
use bytes::Bytes;
use codec::{
    GzipStream, IncludeTypeMeta, ListMetadata, ListWriter, ObjectSplicer, ObjectTransform,
};
use futures_core::Stream;
use https_server::{BODY_CHUNK_BYTES, Body, ResponseBodyError, first_chunk_bytes};
use store::Item;

use crate::respond::{ResponseFormat, decode_list_item, has_api_version, table_columns};
use crate::rest::ListPage;

/// The maximum time for encoding one chunk of a list. Then other tasks of the thread run.
const CHUNK_TIME_MAX: Duration = Duration::from_millis(1);

/// The number of items that are encoded between two reads of the clock.
const ITEMS_PER_CLOCK_READ: usize = 16;

/// Estimates for the buffer size: the bytes of a list besides its objects, and the bytes of an encoded object
/// besides its stored form.
const LIST_BYTES: usize = 256;
const ITEM_BYTES: usize = 48;

/// Encodes the objects of a page one after the other.
pub(crate) struct ListEncoder {
    response_format: ResponseFormat,
    resource: Arc<Resource>,
    api_version: String,
    list_writer: ListWriter,
    object_splicer: ObjectSplicer,
    items: std::vec::IntoIter<Item>,
    list_encoding_progress: ListEncodingProgress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListEncodingProgress {
    Start,
    Items,
    End,
}

impl ListEncoder {
    /// An encoder of a page that has written nothing yet.
    pub(crate) fn new(format: ResponseFormat, resource: Arc<Resource>, page: ListPage) -> Self {
        let metadata = ListMetadata {
            resource_version: Some(page.revision.as_u64()),
            continue_token: page.continue_token,
            remaining_item_count: page.n_remaining_objects,
        };
        let api_version = resource.group_version().to_string();
        let encoding = &format.response_encoding;
        let writer = match encoding.object_transform {
            Some(ObjectTransform::Table(version)) => {
                ListWriter::for_table(version, &metadata, &table_columns(&resource), encoding)
            }
            Some(
                ObjectTransform::PartialObjectMetadata(version)
                | ObjectTransform::PartialObjectMetadataList(version),
            ) => {
                let kind = "PartialObjectMetadataList";
                ListWriter::for_list(version.api_version(), kind, &metadata, encoding)
            }
            None => ListWriter::for_list(&api_version, &resource.list_kind, &metadata, encoding),
        };
        let items = page.items.into_iter();
        let splicer = ObjectSplicer::default();
        Self {
            response_format: format,
            resource,
            api_version,
            list_writer: writer,
            object_splicer: splicer,
            items,
            list_encoding_progress: ListEncodingProgress::Start,
        }
    }

    /// Estimates the size of the encoded list, up to `bytes_max`. A buffer of this capacity is not reallocated
    /// while it fills.
    pub(crate) fn estimate_list_bytes(&self, bytes_max: usize) -> usize {
        let mut n_bytes = LIST_BYTES;
        for item in self.items.as_slice() {
            if n_bytes >= bytes_max {
                return bytes_max;
            }
            n_bytes += item.entry.value.len() + ITEM_BYTES;
        }
        n_bytes.min(bytes_max)
    }

    /// Encodes objects until `out` has `n_bytes`, or until [`CHUNK_TIME_MAX`] is over. Returns whether it has
    /// written the end of the list. The last object may exceed `n_bytes`.
    pub(crate) fn encode_list_up_to(&mut self, n_bytes: usize, out: &mut Vec<u8>) -> bool {
        let begun = Instant::now();
        if self.list_encoding_progress == ListEncodingProgress::Start {
            self.list_writer.write_list_start(out);
            self.list_encoding_progress = ListEncodingProgress::Items;
        }
        for n_written in 1_usize.. {
            if self.list_encoding_progress == ListEncodingProgress::End {
                return true;
            }
            match self.items.next() {
                Some(item) => self.encode_list_item(&item, out),
                None => {
                    self.list_writer.write_list_end(out);
                    self.list_encoding_progress = ListEncodingProgress::End;
                    return true;
                }
            }
            let next_bytes = self.items.as_slice().first().map_or(0, |next| next.entry.value.len());
            let is_late =
                n_written.is_multiple_of(ITEMS_PER_CLOCK_READ) && begun.elapsed() >= CHUNK_TIME_MAX;
            if out.len() + next_bytes > n_bytes || is_late {
                break;
            }
        }
        false
    }

    fn encode_list_item(&mut self, item: &Item, out: &mut Vec<u8>) {
        let Self {
            response_format: format,
            resource,
            api_version,
            list_writer: writer,
            object_splicer: splicer,
            ..
        } = self;
        let revision = item.entry.mod_rev.as_u64();
        writer.write_list_item(out, |out| match format.response_encoding.object_transform {
            Some(ObjectTransform::Table(version)) => {
                decode_list_item(resource, item).is_some_and(|tree| {
                    codec::write_table_row(&format.table_row(resource, &tree, version), out);
                    true
                })
            }
            Some(
                ObjectTransform::PartialObjectMetadata(version)
                | ObjectTransform::PartialObjectMetadataList(version),
            ) => codec::splice_partial_metadata(&item.entry.value, revision, version, out).is_ok(),
            None if resource.is_custom_resource() => {
                if has_api_version(&item.entry.value, api_version) {
                    let keep = IncludeTypeMeta::Keep;
                    splicer.write(&item.entry.value, revision, keep, out).is_ok()
                } else {
                    let tree = decode_list_item(resource, item);
                    tree.is_some_and(|tree| serde_json::to_writer(out, &tree).is_ok())
                }
            }
            None => {
                let drop = IncludeTypeMeta::Drop;
                splicer.write(&item.entry.value, revision, drop, out).is_ok()
            }
        });
    }
}

/// The response body of a list: a stream of encoded chunks.
pub(crate) struct ListBody {
    list_encoder: ListEncoder,
    gzip_stream: Option<GzipStream>,
    /// Encoded bytes that the connection has not taken yet.
    encoded_unsent_bytes: Bytes,
    has_list_ended: bool,
    /// Whether other tasks run before the next chunk is encoded.
    should_yield_before_next_chunk: bool,
}

impl ListBody {
    /// The body of a list whose first bytes are encoded.
    pub(crate) fn new_list_body(encoder: ListEncoder, first: Vec<u8>, is_compressed: bool) -> Body {
        let mut list = Self {
            list_encoder: encoder,
            gzip_stream: is_compressed.then(GzipStream::default),
            encoded_unsent_bytes: Bytes::new(),
            has_list_ended: false,
            should_yield_before_next_chunk: false,
        };
        list.encoded_unsent_bytes = list.compress_if_requested(first).unwrap_or_default().into();
        Body::from_stream(list)
    }

    /// Compresses encoded bytes if the client wants that.
    fn compress_if_requested(&mut self, bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
        let Some(gzip) = &mut self.gzip_stream else { return Ok(bytes) };
        let mut compressed = gzip.compress(&bytes)?;
        if self.has_list_ended
            && let Some(gzip) = self.gzip_stream.take()
        {
            compressed.extend(gzip.finish_gzip_stream()?);
        }
        Ok(compressed)
    }

    fn encode_next_chunk(&mut self) -> std::io::Result<()> {
        let begun = Instant::now();
        let mut chunk = Vec::with_capacity(BODY_CHUNK_BYTES + ITEM_BYTES);
        self.has_list_ended = self.list_encoder.encode_list_up_to(BODY_CHUNK_BYTES, &mut chunk);
        self.encoded_unsent_bytes = self.compress_if_requested(chunk)?.into();
        // Without this, a client with a large flow-control window would occupy the thread for its whole list.
        self.should_yield_before_next_chunk = begun.elapsed() >= CHUNK_TIME_MAX / 2;
        Ok(())
    }
}

impl Stream for ListBody {
    type Item = Result<Bytes, ResponseBodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.encoded_unsent_bytes.is_empty() && !self.has_list_ended {
            if std::mem::take(&mut self.should_yield_before_next_chunk) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Err(error) = self.encode_next_chunk() {
                return Poll::Ready(Some(Err(ResponseBodyError(error.to_string()))));
            }
        }
        let n_ready = self.encoded_unsent_bytes.len();
        if n_ready == 0 && !self.has_list_ended {
            // The compressor has buffered its input and returned no output yet.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let n_chunk = match self.has_list_ended {
            true => first_chunk_bytes(n_ready),
            false => n_ready.min(BODY_CHUNK_BYTES),
        };
        let chunk = self.encoded_unsent_bytes.split_to(n_chunk);
        Poll::Ready((!chunk.is_empty()).then_some(Ok(chunk)))
    }
}
