//! The body of a request, and the format of its response.

use api_object::{DeleteOptions, GroupVersion, Status};
use api_resources::Verb;
use bytes::Bytes;
use codec::{EndpointKind, ExpectedKind, FormatRequest};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use https_server::CollectBodyError;

use super::{AuthorizedRequest, BODY_BYTES_MAX, UnreadBody};
use crate::error_status::IntoStatus;
use crate::request_error::format_request;
use crate::request_record::RequestRecord;
use crate::respond::{IncludeObject, ResponseFormat};
use crate::rest::{RequestReport, WriteOptions};
use crate::route::Route;

impl AuthorizedRequest<'_> {
    /// The format that the client asks for.
    pub(super) fn format_request(&self) -> FormatRequest<'_> {
        format_request(self.parts, self.query.get("pretty"))
    }

    pub(super) fn negotiate_plain_format(&self) -> Result<ResponseFormat, Status> {
        Ok(self.new_response_format(
            codec::negotiate(&self.format_request(), EndpointKind::Plain)
                .map_err(IntoStatus::into_status)?,
        ))
    }

    pub(super) fn new_response_format(&self, encoding: codec::ResponseEncoding) -> ResponseFormat {
        ResponseFormat {
            encoding,
            include_object: IncludeObject::default(),
            accepts_gzip: self.accepts_gzip(),
            now: self.now,
        }
    }

    pub(super) fn negotiate_format(&self, route: &Route<'_>) -> Result<ResponseFormat, Status> {
        if route.verb == Verb::Patch {
            // An unsupported patch type is reported before an unsupported response format.
            codec::patch_type(self.header(&CONTENT_TYPE), route.resource.is_custom())
                .map_err(IntoStatus::into_status)?;
        }
        let endpoint = match route.verb {
            Verb::List | Verb::DeleteCollection => EndpointKind::List,
            Verb::Watch => EndpointKind::Watch,
            Verb::Get | Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => {
                EndpointKind::Object
            }
        };
        let encoding =
            codec::negotiate(&self.format_request(), endpoint).map_err(IntoStatus::into_status)?;
        let is_table = matches!(encoding.transform, Some(codec::Transform::Table(_)));
        let include_object = match is_table {
            true => IncludeObject::parse(self.query.text_or_empty("includeObject"))?,
            false => IncludeObject::default(),
        };
        let (accepts_gzip, now) = (self.accepts_gzip(), self.now);
        Ok(ResponseFormat { encoding, include_object, accepts_gzip, now })
    }

    fn accepts_gzip(&self) -> bool {
        self.header(&ACCEPT_ENCODING).is_some_and(codec::accepts_gzip)
    }

    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Reads the body of a request, up to the limit.
    pub(crate) async fn read_body(&self, body: &mut UnreadBody) -> Result<Bytes, Status> {
        codec::check_content_encoding(self.header(&CONTENT_ENCODING))
            .map_err(IntoStatus::into_status)?;
        let Some(body) = body.take() else { return Ok(Bytes::new()) };
        https_server::collect_body(body, BODY_BYTES_MAX as u64).await.map_err(|error| match error {
            CollectBodyError::TooLarge { .. } => Status::too_large(BODY_BYTES_MAX),
            CollectBodyError::Read(why) => {
                Status::bad_request(format!("the body can not be read: {why}"))
            }
            CollectBodyError::Truncated => {
                Status::bad_request("the body can not be read: unexpected EOF")
            }
        })
    }

    /// Decodes the object in the body and the options of the write.
    pub(super) async fn decode_object(
        &self,
        route: &Route<'_>,
        body: &mut UnreadBody,
        options_kind: &str,
        record: &mut RequestRecord,
        report: &mut RequestReport,
    ) -> Result<(api_object::Tree, WriteOptions), Status> {
        let resource = &route.resource;
        let expected = ExpectedKind {
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
            is_custom: resource.is_custom(),
        };
        self.decode_kind(&expected, None, body, options_kind, record, report).await
    }

    /// Decodes an object of a kind, or of an older version of it that has the same fields, and the options of the
    /// write.
    pub(crate) async fn decode_kind(
        &self,
        expected: &ExpectedKind<'_>,
        older_version: Option<&str>,
        body: &mut UnreadBody,
        options_kind: &str,
        record: &mut RequestRecord,
        report: &mut RequestReport,
    ) -> Result<(api_object::Tree, WriteOptions), Status> {
        let format = codec::body_format(self.header(&CONTENT_TYPE), expected)
            .map_err(IntoStatus::into_status)?;
        let bytes = self.read_body(body).await?;
        let options = self.query.write_options(options_kind)?;
        let mut decoded = codec::decode_object(&bytes, format, expected);
        if let (Err(_), Some(version)) = (&decoded, older_version)
            && let Ok(mut older) =
                codec::decode_object(&bytes, format, &ExpectedKind { version, ..*expected })
        {
            let current = GroupVersion::new(expected.group, expected.version).to_string();
            older.tree.insert("apiVersion".to_owned(), current.into());
            decoded = Ok(older);
        }
        let decoded = decoded.map_err(IntoStatus::into_status)?;
        let (findings, warnings) = (&decoded.findings, &mut report.warnings);
        options.field_validation.check_findings(expected, findings, warnings)?;
        record.record_request_object(&decoded.tree);
        Ok((decoded.tree, options))
    }

    /// Decodes the options of a delete from the body, or from the query if the body is empty.
    pub(super) async fn decode_delete_options(
        &self,
        body: &mut UnreadBody,
        record: &mut RequestRecord,
    ) -> Result<DeleteOptions, Status> {
        let bytes = self.read_body(body).await?;
        if bytes.is_empty() {
            return self.query.delete_options();
        }
        let format = codec::delete_options_format(self.header(&CONTENT_TYPE))
            .map_err(IntoStatus::into_status)?;
        let tree = codec::decode_delete_options(&bytes, format).map_err(IntoStatus::into_status)?;
        record.record_request_object(&tree);
        DeleteOptions::from_tree(&tree)
    }
}
