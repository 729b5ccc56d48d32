//! Encodes the reply of a request as an HTTP response.

use std::sync::Arc;

use api_object::{Status, Tree};
use api_resources::Resource;
use bytes::Bytes;
use codec::{
    IncludeTypeMeta, ListMetadata, MetaVersion, ObjectTransform, ResponseBodyFormat,
    ResponseEncoding, TableRow,
};
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, LOCATION,
    RETRY_AFTER, VARY, WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use https_server::Body;
use jiff::Timestamp;
use store::Item;

use crate::encoded_event_cache::{EncodedEventCache, EncodedEventKey};
use crate::list_body::{ListBody, ListEncoder};
use crate::response_bytes::ResponseBytesReservation;
use crate::rest::{ListPage, WatchEvent, WatchEventObject, Watcher};

/// The result of a request, before it is encoded.
pub(crate) enum Reply {
    /// An object of a resource.
    Object { code: u16, resource: Arc<Resource>, tree: Tree },
    /// An object of no resource: a review, or a Status of success.
    Tree { code: u16, tree: Tree },
    /// Encoded JSON; it ends in a line feed.
    Json { code: u16, json: Vec<u8> },
    /// A page of a list.
    List { resource: Arc<Resource>, page: ListPage },
    /// A watch, which is a stream of events.
    Watch { watcher: Box<Watcher> },
    /// The Status of a request that failed.
    Status(Status),
    /// A document that clients cache.
    Document(CacheableDocument),
}

/// A document that changes rarely, such as discovery.
pub(crate) struct CacheableDocument {
    pub(crate) document_bytes: Bytes,
    pub(crate) content_type: &'static str,
    /// The ETag with its quotation marks.
    pub(crate) etag: Option<String>,
    pub(crate) cache_control: &'static str,
    /// The location of a redirect.
    pub(crate) redirect_location: Option<String>,
    pub(crate) is_not_modified: bool,
}

impl From<Status> for Reply {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// The part of each object that the rows of a table contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(Status::bad_request(format!(
                "unrecognized includeObject value: {}",
                go_compat::quote(other)
            ))),
        }
    }
}

/// The negotiated format of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseFormat {
    pub(crate) response_encoding: ResponseEncoding,
    pub(crate) include_object: IncludeObject,
    pub(crate) accepts_gzip: bool,
    pub(crate) now: Timestamp,
}

/// Extra capacity of a list's first buffer, for the item that exceeds the minimum length for compression.
const FIRST_SLACK_BYTES: usize = 4 << 10;

/// The bytes of an event around a stored object, with its resourceVersion.
const EVENT_BYTES: usize = 96;

/// Compact JSON, for errors before the format is negotiated.
pub(crate) const PLAIN_JSON: ResponseEncoding = ResponseEncoding {
    response_body_format: ResponseBodyFormat::Json,
    is_pretty: false,
    object_transform: None,
};

impl ResponseFormat {
    fn encoding_without_transform(&self) -> ResponseEncoding {
        ResponseEncoding { object_transform: None, ..self.response_encoding }
    }

    /// Whether the response compresses JSON that is already encoded. Compression takes long, so it needs a
    /// processor turn.
    pub(crate) fn compresses_encoded_json(&self, reply: &Reply) -> bool {
        matches!(reply, Reply::Json { json, .. } if json.len() > codec::GZIP_BYTES_MIN)
            && self.accepts_gzip
    }

    fn encode_object(&self, resource: &Resource, tree: &Tree) -> Vec<u8> {
        match self.response_encoding.object_transform {
            None => codec::encode_object(tree, &self.response_encoding),
            Some(
                ObjectTransform::PartialObjectMetadata(version)
                | ObjectTransform::PartialObjectMetadataList(version),
            ) => codec::encode_object(
                &codec::to_partial_metadata(tree, version),
                &self.encoding_without_transform(),
            ),
            Some(ObjectTransform::Table(version)) => {
                let mut out = Vec::new();
                self.encode_one_row_table(resource, tree, version, true, &mut out);
                codec::reencode_json(out, &self.encoding_without_transform())
            }
        }
    }

    /// Encodes an object as a table of one row, with or without the definitions of the columns.
    fn encode_one_row_table(
        &self,
        resource: &Resource,
        tree: &Tree,
        version: MetaVersion,
        has_columns: bool,
        out: &mut Vec<u8>,
    ) {
        let revision = api_object::string_member(api_object::metadata(tree), "resourceVersion");
        let metadata =
            ListMetadata { resource_version: revision.parse().ok(), ..ListMetadata::default() };
        let columns = has_columns.then(|| table_columns(resource));
        let row = self.table_row(resource, tree, version);
        codec::encode_table(version, &metadata, columns.as_deref(), &[row], out);
    }

    pub(crate) fn table_row(
        &self,
        resource: &Resource,
        tree: &Tree,
        version: MetaVersion,
    ) -> TableRow {
        let object = match self.include_object {
            IncludeObject::None => None,
            IncludeObject::Metadata => {
                serde_json::to_vec(&codec::to_partial_metadata(tree, version)).ok()
            }
            IncludeObject::Object => serde_json::to_vec(tree).ok(),
        };
        TableRow {
            cells: api_resources::table_cells(resource, tree, self.now),
            object_json: object,
        }
    }

    /// The response to a list. A short list is encoded at once; a long one is encoded while the client reads it.
    fn build_list_response(&self, resource: Arc<Resource>, mut page: ListPage) -> Response<Body> {
        let bytes_in_flight = page.response_bytes_reservation.take();
        let mut encoder = ListEncoder::new(*self, resource, page);
        let mut first = Vec::with_capacity(
            encoder.estimate_list_bytes(codec::GZIP_BYTES_MIN + FIRST_SLACK_BYTES),
        );
        while first.len() <= codec::GZIP_BYTES_MIN {
            if encoder.encode_list_up_to(codec::GZIP_BYTES_MIN + 1, &mut first) {
                let mut response = self.build_bytes_response(200, first);
                hold_reservation_in_body(&mut response, bytes_in_flight);
                return response;
            }
        }
        let mut response = empty_response(200);
        let headers = response.headers_mut();
        let media_type = self.response_encoding.response_body_format.media_type();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        if self.accepts_gzip {
            insert_gzip_headers(headers);
        }
        *response.body_mut() = ListBody::new_list_body(encoder, first, self.accepts_gzip);
        hold_reservation_in_body(&mut response, bytes_in_flight);
        response
    }

    /// Encodes an event, or returns the bytes that another watch has encoded.
    pub(crate) fn encode_shared_watch_event(
        &self,
        encodings: &EncodedEventCache,
        resource: &Arc<Resource>,
        event: WatchEvent,
        is_first: bool,
    ) -> Bytes {
        let WatchEvent { event_type, object } = event;
        let (value, revision) = match object {
            WatchEventObject::Stored(value, revision) => (value, revision),
            object => {
                return self
                    .encode_watch_event(resource, &WatchEvent { event_type, object }, is_first)
                    .into();
            }
        };
        let form = EncodedEventKey {
            value,
            revision: revision.as_u64(),
            event_type,
            resource: Arc::clone(resource),
            transform: self.response_encoding.object_transform,
        };
        encodings.get_or_encode_event(form, |form| {
            let object = WatchEventObject::Stored(form.value.clone(), revision);
            self.encode_watch_event(resource, &WatchEvent { event_type, object }, is_first)
        })
    }

    /// Encodes an event; the first event of a table contains its columns.
    fn encode_watch_event(
        &self,
        resource: &Resource,
        event: &WatchEvent,
        is_first: bool,
    ) -> Vec<u8> {
        let mut out = match &event.object {
            WatchEventObject::Stored(value, _) => Vec::with_capacity(value.len() + EVENT_BYTES),
            WatchEventObject::Tree(_) | WatchEventObject::Status(_) => Vec::new(),
        };
        codec::write_watch_event_start(event.event_type, &mut out);
        match &event.object {
            WatchEventObject::Status(status) => {
                // An error is never transformed, and writing to memory does not fail.
                let _ = serde_json::to_writer(&mut out, status);
            }
            WatchEventObject::Tree(tree) => {
                self.encode_watch_event_object(resource, tree, is_first, &mut out)
            }
            WatchEventObject::Stored(value, revision) => {
                let api_version = resource.group_version().to_string();
                let is_plain = self.response_encoding.object_transform.is_none()
                    && (!resource.is_custom_resource() || has_api_version(value, &api_version));
                let revision = revision.as_u64();
                let is_written = is_plain
                    && codec::splice_resource_version(
                        value,
                        revision,
                        IncludeTypeMeta::Keep,
                        &mut out,
                    )
                    .is_ok();
                if !is_written {
                    let tree =
                        decode_with_resource_version(resource, value, revision).unwrap_or_default();
                    self.encode_watch_event_object(resource, &tree, is_first, &mut out);
                }
            }
        }
        codec::write_watch_event_end(&mut out);
        out
    }

    fn encode_watch_event_object(
        &self,
        resource: &Resource,
        tree: &Tree,
        is_first: bool,
        out: &mut Vec<u8>,
    ) {
        // Writing to memory does not fail.
        let _ = match self.response_encoding.object_transform {
            None => serde_json::to_writer(out, tree),
            Some(
                ObjectTransform::PartialObjectMetadata(version)
                | ObjectTransform::PartialObjectMetadataList(version),
            ) => serde_json::to_writer(out, &codec::to_partial_metadata(tree, version)),
            Some(ObjectTransform::Table(version)) => {
                self.encode_one_row_table(resource, tree, version, is_first, out);
                Ok(())
            }
        };
    }

    /// Encodes a reply as a response, with warnings.
    pub(crate) fn encode_response(&self, reply: Reply, warnings: &[String]) -> Response<Body> {
        let mut response = match reply {
            Reply::Object { code, resource, tree } => {
                self.build_bytes_response(code, self.encode_object(&resource, &tree))
            }
            Reply::Tree { code, tree } => self.build_bytes_response(
                code,
                codec::encode_object(&tree, &self.encoding_without_transform()),
            ),
            Reply::Json { code, json } => {
                let is_plain = self.response_encoding.response_body_format
                    == ResponseBodyFormat::Json
                    && !self.response_encoding.is_pretty;
                let json = if is_plain {
                    json
                } else {
                    codec::reencode_json(json, &self.encoding_without_transform())
                };
                self.build_bytes_response(code, json)
            }
            Reply::List { resource, page } => self.build_list_response(resource, page),
            Reply::Watch { .. } => empty_response(200),
            Reply::Status(status) => self.status_response(&status),
            Reply::Document(document) => cacheable_document_response(document),
        };
        for warning in codec::warning_headers(warnings) {
            if let Ok(value) = HeaderValue::from_str(&warning) {
                response.headers_mut().append(WARNING, value);
            }
        }
        response
    }

    /// Encodes an error as a response.
    pub(crate) fn status_response(&self, status: &Status) -> Response<Body> {
        let bytes = codec::encode_status(status, &self.encoding_without_transform());
        let mut response = self.build_bytes_response(status.code, bytes);
        let headers = response.headers_mut();
        if let Some(seconds) = status.retry_after_seconds() {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if matches!(status.code, 401 | 403) {
            headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        }
        response
    }

    fn build_bytes_response(&self, code: u16, mut bytes: Vec<u8>) -> Response<Body> {
        let mut response = empty_response(code);
        let headers = response.headers_mut();
        let media_type = self.response_encoding.response_body_format.media_type();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        if self.accepts_gzip
            && bytes.len() > codec::GZIP_BYTES_MIN
            && let Ok(smaller) = codec::gzip(&bytes)
        {
            bytes = smaller;
            insert_gzip_headers(headers);
        }
        *response.body_mut() = bytes.into();
        response
    }
}

fn insert_gzip_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Counts the bytes of a response until its body is dropped.
pub(crate) fn hold_reservation_in_body(
    response: &mut Response<Body>,
    bytes: Option<ResponseBytesReservation>,
) {
    if let Some(bytes) = bytes {
        let body = std::mem::take(response.body_mut());
        *response.body_mut() = body.with_drop_guard(bytes);
    }
}

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

fn empty_response(code: u16) -> Response<Body> {
    let mut response = Response::new(Body::empty_body());
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A response in plain text.
pub(crate) fn text_response(code: u16, text: String) -> Response<Body> {
    let mut response = empty_response(code);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    *response.body_mut() = text.into();
    response
}

fn cacheable_document_response(document: CacheableDocument) -> Response<Body> {
    let code = match (&document.redirect_location, document.is_not_modified) {
        (Some(_), _) => 301,
        (None, true) => 304,
        (None, false) => 200,
    };
    let mut response = empty_response(code);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(document.cache_control));
    if let Some(location) =
        document.redirect_location.and_then(|own| HeaderValue::from_str(&own).ok())
    {
        headers.insert(LOCATION, location);
        return response;
    }
    if let Some(etag) = document.etag.and_then(|own| HeaderValue::from_str(&own).ok()) {
        headers.insert(ETAG, etag);
        headers.insert(VARY, HeaderValue::from_static("Accept"));
    }
    if document.is_not_modified {
        return response;
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(document.content_type));
    *response.body_mut() = document.document_bytes.into();
    response
}

pub(crate) fn has_api_version(stored: &[u8], api_version: &str) -> bool {
    let rest = stored.strip_prefix(b"{\"apiVersion\":\"");
    let rest = rest.and_then(|rest| rest.strip_prefix(api_version.as_bytes()));
    rest.is_some_and(|rest| rest.starts_with(b"\""))
}

pub(crate) fn decode_list_item(resource: &Resource, item: &Item) -> Option<Tree> {
    decode_with_resource_version(resource, &item.entry.value, item.entry.mod_rev.as_u64())
}

fn decode_with_resource_version(resource: &Resource, value: &[u8], revision: u64) -> Option<Tree> {
    let mut tree: Tree = codec::decode_stored_object(value).ok()?;
    if resource.is_custom_resource() {
        tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
    }
    let metadata = api_object::metadata_mut(&mut tree);
    metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    Some(tree)
}

pub(crate) fn table_columns(resource: &Resource) -> Vec<codec::TableColumn> {
    let column = |own: &api_resources::Column| codec::TableColumn {
        name: own.name.clone(),
        kind: own.r#type.clone(),
        column_format: own.column_format.clone(),
        description: own.description.clone(),
        column_priority: own.column_priority,
    };
    api_resources::table_columns(resource).iter().map(column).collect()
}
