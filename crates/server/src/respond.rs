//! From what a request came to, to the bytes of its answer.

use std::sync::Arc;

use api_object::{Status, Tree};
use api_resources::Resource;
use bytes::Bytes;
use codec::{Format, ListMetadata, MetaVersion, ResponseFormat, Row, Transform, TypeMeta};
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, LOCATION, RETRY_AFTER, VARY,
    WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use https_server::Body;
use jiff::Timestamp;
use store::{Item, Store};

use crate::rest::{Listed, Seen, WatchEvent, Watcher};

/// What a request came to.
pub(crate) enum Reply<S: Store> {
    /// One object.
    Object { code: u16, resource: Arc<Resource>, tree: Tree },
    /// Something that is an object in form only: a review, a Status of success.
    Tree { code: u16, tree: Tree },
    /// The same, written already; it ends in a line feed.
    Json { code: u16, json: Vec<u8> },
    /// Many objects.
    List { resource: Arc<Resource>, listed: Listed },
    /// A stream of events.
    Watch { watcher: Box<Watcher<S>> },
    /// A failure.
    Status(Status),
    /// Something with a life of its own in caches.
    Document(Document),
}

/// A document that changes seldom.
pub(crate) struct Document {
    pub(crate) bytes: Bytes,
    pub(crate) content_type: &'static str,
    /// Quoted.
    pub(crate) etag: Option<String>,
    pub(crate) cache: &'static str,
    /// Where it is found now, if it is elsewhere.
    pub(crate) location: Option<String>,
    pub(crate) is_not_modified: bool,
}

impl<S: Store> From<Status> for Reply<S> {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// Which part of an object the rows of a table carry.
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

/// How the client wants the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) answer: ResponseFormat,
    pub(crate) include: IncludeObject,
    pub(crate) accepts_gzip: bool,
    pub(crate) now: Timestamp,
}

/// JSON without ornaments, for failures before anybody knows what the client wants.
pub(crate) const PLAIN: ResponseFormat =
    ResponseFormat { format: Format::Json, pretty: false, transform: None };

impl Form {
    fn plain(&self) -> ResponseFormat {
        ResponseFormat { transform: None, ..self.answer }
    }

    fn object(&self, resource: &Resource, tree: &Tree) -> Vec<u8> {
        match self.answer.transform {
            None => codec::encode_tree(tree, &self.answer),
            Some(
                Transform::PartialObjectMetadata(version)
                | Transform::PartialObjectMetadataList(version),
            ) => codec::encode_tree(&codec::partial_metadata(tree, version), &self.plain()),
            Some(Transform::Table(version)) => {
                let mut out = Vec::new();
                let revision =
                    api_object::string_member(api_object::metadata(tree), "resourceVersion")
                        .parse()
                        .ok();
                let metadata =
                    ListMetadata { resource_version: revision, ..ListMetadata::default() };
                let row = self.row(resource, tree, version);
                let columns = columns(resource);
                codec::encode_table(version, &metadata, Some(&columns), &[row], &mut out);
                codec::reencode_json(out, &self.plain())
            }
        }
    }

    fn row(&self, resource: &Resource, tree: &Tree, version: MetaVersion) -> Row {
        let object = match self.include {
            IncludeObject::None => None,
            IncludeObject::Metadata => {
                serde_json::to_vec(&codec::partial_metadata(tree, version)).ok()
            }
            IncludeObject::Object => serde_json::to_vec(tree).ok(),
        };
        Row { cells: api_resources::cells(resource, tree, self.now), object }
    }

    fn list(&self, resource: &Resource, listed: &Listed) -> Vec<u8> {
        let metadata = ListMetadata {
            resource_version: Some(listed.revision.number()),
            continue_token: listed.continue_token.clone(),
            remaining_item_count: listed.remaining,
        };
        let mut out = Vec::new();
        match self.answer.transform {
            Some(Transform::Table(version)) => {
                let rows: Vec<Row> = (listed.items.iter())
                    .filter_map(|item| shown(resource, item))
                    .map(|tree| self.row(resource, &tree, version))
                    .collect();
                codec::encode_table(version, &metadata, Some(&columns(resource)), &rows, &mut out);
            }
            Some(
                Transform::PartialObjectMetadata(version)
                | Transform::PartialObjectMetadataList(version),
            ) => {
                let kind = "PartialObjectMetadataList";
                codec::write_list_start(version.api_version(), kind, &metadata, &mut out);
                write_items(&listed.items, &mut out, |item, out| {
                    let revision = item.entry.mod_rev.number();
                    codec::splice_partial_metadata(&item.entry.value, revision, version, out)
                        .is_ok()
                });
                codec::write_list_end(&mut out);
            }
            None => {
                let api_version = resource.group_version().to_string();
                codec::write_list_start(&api_version, &resource.list_kind, &metadata, &mut out);
                let is_custom = resource.is_custom();
                let type_meta = if is_custom { TypeMeta::Keep } else { TypeMeta::Drop };
                write_items(&listed.items, &mut out, |item, out| {
                    if is_custom && !has_version(&item.entry.value, &api_version) {
                        let tree = shown(resource, item);
                        return tree.is_some_and(|tree| serde_json::to_writer(out, &tree).is_ok());
                    }
                    let revision = item.entry.mod_rev.number();
                    codec::splice_resource_version(&item.entry.value, revision, type_meta, out)
                        .is_ok()
                });
                codec::write_list_end(&mut out);
            }
        }
        codec::reencode_json(out, &self.plain())
    }

    /// The bytes of an event; the first one of a table says what its columns are.
    pub(crate) fn event(&self, resource: &Resource, event: &WatchEvent, is_first: bool) -> Vec<u8> {
        let mut out = Vec::new();
        codec::write_event_start(event_type(event.kind), &mut out);
        match &event.object {
            Seen::Status(status) => {
                // A failure is never brought into another shape, and memory takes it.
                let _ = serde_json::to_writer(&mut out, status);
            }
            Seen::Tree(tree) => self.event_object(resource, tree, is_first, &mut out),
            Seen::Stored(value, revision) => {
                let api_version = resource.group_version().to_string();
                let is_plain = self.answer.transform.is_none()
                    && (!resource.is_custom() || has_version(value, &api_version));
                let revision = revision.number();
                let is_written = is_plain
                    && codec::splice_resource_version(value, revision, TypeMeta::Keep, &mut out)
                        .is_ok();
                if !is_written {
                    let tree = tree_of(resource, value, revision).unwrap_or_default();
                    self.event_object(resource, &tree, is_first, &mut out);
                }
            }
        }
        codec::write_event_end(&mut out);
        out
    }

    fn event_object(&self, resource: &Resource, tree: &Tree, is_first: bool, out: &mut Vec<u8>) {
        // Memory takes whatever is written to it.
        let _ = match self.answer.transform {
            None => serde_json::to_writer(out, tree),
            Some(
                Transform::PartialObjectMetadata(version)
                | Transform::PartialObjectMetadataList(version),
            ) => serde_json::to_writer(out, &codec::partial_metadata(tree, version)),
            Some(Transform::Table(version)) => {
                let revision =
                    api_object::string_member(api_object::metadata(tree), "resourceVersion")
                        .parse()
                        .ok();
                let metadata =
                    ListMetadata { resource_version: revision, ..ListMetadata::default() };
                let columns = is_first.then(|| columns(resource));
                let row = self.row(resource, tree, version);
                codec::encode_table(version, &metadata, columns.as_deref(), &[row], out);
                Ok(())
            }
        };
    }

    /// The answer, ready to be sent.
    pub(crate) fn response<S: Store>(
        &self,
        reply: Reply<S>,
        warnings: &[String],
    ) -> Response<Body> {
        let mut response = match reply {
            Reply::Object { code, resource, tree } => {
                self.bytes_response(code, self.object(&resource, &tree))
            }
            Reply::Tree { code, tree } => {
                self.bytes_response(code, codec::encode_tree(&tree, &self.plain()))
            }
            Reply::Json { code, json } => {
                let is_plain = self.answer.format == Format::Json && !self.answer.pretty;
                let json = if is_plain { json } else { codec::reencode_json(json, &self.plain()) };
                self.bytes_response(code, json)
            }
            Reply::List { resource, listed } => {
                self.bytes_response(200, self.list(&resource, &listed))
            }
            Reply::Watch { .. } => empty_response(200),
            Reply::Status(status) => self.status_response(&status),
            Reply::Document(document) => document_response(document),
        };
        for warning in codec::warning_headers(warnings) {
            if let Ok(value) = HeaderValue::from_str(&warning) {
                response.headers_mut().append(WARNING, value);
            }
        }
        response
    }

    /// A failure, ready to be sent.
    pub(crate) fn status_response(&self, status: &Status) -> Response<Body> {
        let bytes = codec::encode_status(status, &self.plain());
        let mut response = self.bytes_response(status.code, bytes);
        let headers = response.headers_mut();
        if let Some(seconds) = status.retry_after_seconds() {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if matches!(status.code, 401 | 403) {
            headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        }
        response
    }

    fn bytes_response(&self, code: u16, mut bytes: Vec<u8>) -> Response<Body> {
        let mut response = empty_response(code);
        let headers = response.headers_mut();
        let media_type = self.answer.format.media_type();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        if self.accepts_gzip
            && bytes.len() > codec::GZIP_BYTES_MIN
            && let Ok(smaller) = codec::gzip(&bytes)
        {
            bytes = smaller;
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        *response.body_mut() = bytes.into();
        response
    }
}

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

fn empty_response(code: u16) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// An answer in plain text.
pub(crate) fn text_response(code: u16, text: String) -> Response<Body> {
    let mut response = empty_response(code);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    *response.body_mut() = text.into();
    response
}

fn document_response(document: Document) -> Response<Body> {
    let code = match (&document.location, document.is_not_modified) {
        (Some(_), _) => 301,
        (None, true) => 304,
        (None, false) => 200,
    };
    let mut response = empty_response(code);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(document.cache));
    if let Some(location) = document.location.and_then(|own| HeaderValue::from_str(&own).ok()) {
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
    *response.body_mut() = document.bytes.into();
    response
}

fn write_items(
    items: &[Item],
    out: &mut Vec<u8>,
    mut write: impl FnMut(&Item, &mut Vec<u8>) -> bool,
) {
    let mut is_first = true;
    for item in items {
        let before = out.len();
        if !is_first {
            out.push(b',');
        }
        match write(item, out) {
            true => is_first = false,
            // What can not be read is left out; reading it directly says what is wrong.
            false => out.truncate(before),
        }
    }
}

fn has_version(stored: &[u8], api_version: &str) -> bool {
    let rest = stored.strip_prefix(b"{\"apiVersion\":\"");
    let rest = rest.and_then(|rest| rest.strip_prefix(api_version.as_bytes()));
    rest.is_some_and(|rest| rest.starts_with(b"\""))
}

fn shown(resource: &Resource, item: &Item) -> Option<Tree> {
    tree_of(resource, &item.entry.value, item.entry.mod_rev.number())
}

fn tree_of(resource: &Resource, value: &[u8], revision: u64) -> Option<Tree> {
    let mut tree: Tree = codec::from_stored(value).ok()?;
    if resource.is_custom() {
        tree.insert("apiVersion".to_owned(), resource.group_version().to_string().into());
    }
    let metadata = api_object::metadata_mut(&mut tree);
    metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    Some(tree)
}

fn columns(resource: &Resource) -> Vec<codec::Column> {
    let column = |own: &api_resources::Column| codec::Column {
        name: own.name.clone(),
        kind: own.r#type.clone(),
        format: own.format.clone(),
        description: own.description.clone(),
        priority: own.priority,
    };
    api_resources::columns(resource).iter().map(column).collect()
}

fn event_type(kind: &str) -> codec::EventType {
    match kind {
        "ADDED" => codec::EventType::Added,
        "MODIFIED" => codec::EventType::Modified,
        "DELETED" => codec::EventType::Deleted,
        "BOOKMARK" => codec::EventType::Bookmark,
        _ => codec::EventType::Error,
    }
}
