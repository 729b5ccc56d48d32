//! The body of a request, and the form of its answer.

use api_object::{DeleteOptions, Status};
use api_resources::Verb;
use bytes::Bytes;
use codec::{Endpoint, ExpectedKind, FormatRequest};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use https_server::CollectError;
use store::Store;

use super::{AuthorizedRequest, BODY_BYTES_MAX, Unread};
use crate::failure::asked;
use crate::record::Record;
use crate::respond::{Form, IncludeObject};
use crate::rest::{Call, FieldValidation, WriteOptions};
use crate::route::Route;

impl<S: Store> AuthorizedRequest<'_, S> {
    /// In which form the client wants the answer.
    pub(super) fn asked(&self) -> FormatRequest<'_> {
        asked(self.parts, self.query.get("pretty"))
    }

    pub(super) fn plain_form(&self) -> Result<Form, Status> {
        Ok(self.form_of(codec::negotiate(&self.asked(), Endpoint::Plain)?))
    }

    pub(super) fn form_of(&self, answer: codec::ResponseFormat) -> Form {
        Form {
            answer,
            include: IncludeObject::default(),
            accepts_gzip: self.accepts_gzip(),
            now: self.now,
        }
    }

    pub(super) fn form(&self, route: &Route<'_>) -> Result<Form, Status> {
        if route.verb == Verb::Patch {
            // The form of the change is looked at before that of the answer.
            codec::patch_type(self.header(&CONTENT_TYPE), route.resource.is_custom())?;
        }
        let endpoint = match route.verb {
            Verb::List | Verb::DeleteCollection => Endpoint::List,
            Verb::Watch => Endpoint::Watch,
            _ => Endpoint::Object,
        };
        let answer = codec::negotiate(&self.asked(), endpoint)?;
        let is_table = matches!(answer.transform, Some(codec::Transform::Table(_)));
        let include = match is_table {
            true => IncludeObject::parse(self.query.text("includeObject"))?,
            false => IncludeObject::default(),
        };
        Ok(Form { answer, include, accepts_gzip: self.accepts_gzip(), now: self.now })
    }

    fn accepts_gzip(&self) -> bool {
        self.header(&ACCEPT_ENCODING).is_some_and(codec::accepts_gzip)
    }

    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body of a write.
    pub(crate) async fn collect(&self, body: &mut Unread) -> Result<Bytes, Status> {
        codec::check_content_encoding(self.header(&CONTENT_ENCODING))?;
        let Some(body) = body.take() else { return Ok(Bytes::new()) };
        https_server::collect_limited(body, BODY_BYTES_MAX as u64).await.map_err(
            |error| match error {
                CollectError::TooLarge { .. } => Status::too_large(BODY_BYTES_MAX),
                CollectError::Read(why) => {
                    Status::bad_request(format!("the body can not be read: {why}"))
                }
                CollectError::Truncated => {
                    Status::bad_request("the body can not be read: unexpected EOF")
                }
            },
        )
    }

    /// The object in the body, and the options of the write.
    pub(super) async fn decode(
        &self,
        route: &Route<'_>,
        call: &mut Call<'_, S>,
        body: &mut Unread,
        options_kind: &str,
        record: &mut Record,
    ) -> Result<(api_object::Tree, WriteOptions), Status> {
        let resource = &route.resource;
        let expected = ExpectedKind {
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
            is_custom: resource.is_custom(),
        };
        let format = codec::body_format(self.header(&CONTENT_TYPE), &expected)?;
        let bytes = self.collect(body).await?;
        let options = self.query.write_options(options_kind)?;
        let decoded = codec::decode_object(&bytes, format, &expected)?;
        match options.field_validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => {
                call.warnings.extend(decoded.findings.iter().map(ToString::to_string));
            }
            FieldValidation::Strict => {
                let error =
                    codec::strict_error(&resource.kind, &resource.version, &decoded.findings);
                if let Some(status) = error {
                    return Err(status);
                }
            }
        }
        record.request_object(&decoded.tree);
        Ok((decoded.tree, options))
    }

    /// How something is to be deleted: by the body, or by the query.
    pub(super) async fn delete_options(
        &self,
        body: &mut Unread,
        record: &mut Record,
    ) -> Result<DeleteOptions, Status> {
        let bytes = self.collect(body).await?;
        if bytes.is_empty() {
            return self.query.delete_options();
        }
        let format = codec::options_format(self.header(&CONTENT_TYPE))?;
        let tree = codec::decode_options(&bytes, format)?;
        record.request_object(&tree);
        DeleteOptions::from_tree(&tree)
    }
}
