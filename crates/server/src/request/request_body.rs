//! The body of a request, and the format of its response.

use api_object::{DeleteOptions, GroupVersion, Status};
use api_resources::Verb;
use bytes::Bytes;
use codec::{EndpointKind, ExpectedKind, FormatRequest};
use concurrency_limit::{LimitReached, Permit};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use https_server::CollectBodyError;
use hyper::body::Body as _;

use super::{AuthorizedRequest, BODY_BYTES_MAX, UnreadBody};
use crate::error_status::IntoStatus;
use crate::memory_budget::MemoryBudget;
use crate::request_error::requested_response_format;
use crate::request_record::RequestRecord;
use crate::respond::{IncludeObject, ResponseFormat};
use crate::rest::{WarningsAndHookReports, WriteOptions, written_kind};
use crate::route::Route;

/// The minimum reservation for a body. It covers the other memory of a request.
const BODY_RESERVATION_MIN: usize = 16 << 10;

/// Shorter bodies do not count with what they are decoded to.
const COUNTED_BODY_BYTES_MIN: usize = 4 << 10;

impl AuthorizedRequest<'_> {
    /// The format that the client asks for.
    pub(super) fn requested_response_format(&self) -> FormatRequest<'_> {
        requested_response_format(self.request_parts, self.query.get("pretty"))
    }

    pub(super) fn negotiate_plain_format(&self) -> Result<ResponseFormat, Status> {
        Ok(self.new_response_format(
            codec::negotiate_response_format(
                &self.requested_response_format(),
                EndpointKind::Plain,
            )
            .map_err(IntoStatus::into_status)?,
        ))
    }

    pub(super) fn new_response_format(&self, encoding: codec::ResponseEncoding) -> ResponseFormat {
        ResponseFormat {
            response_encoding: encoding,
            include_object: IncludeObject::default(),
            accepts_gzip: self.accepts_gzip(),
            now: self.now,
        }
    }

    pub(super) fn negotiate_response_format(
        &self,
        route: &Route<'_>,
    ) -> Result<ResponseFormat, Status> {
        if route.connect_options_kind().is_some() {
            // The `Accept` header of a connection is meant for the kubelet and may contain anything.
            let json = codec::ResponseEncoding {
                response_body_format: codec::ResponseBodyFormat::Json,
                is_pretty: false,
                object_transform: None,
            };
            let encoding = codec::negotiate_response_format(
                &self.requested_response_format(),
                EndpointKind::Plain,
            );
            return Ok(self.new_response_format(encoding.unwrap_or(json)));
        }
        if route.verb == Verb::Patch {
            // An unsupported patch type is reported before an unsupported response format.
            codec::patch_type_of_content_type(
                self.request_header(&CONTENT_TYPE),
                route.resource.is_custom_resource(),
            )
            .map_err(IntoStatus::into_status)?;
        }
        let endpoint = match route.verb {
            Verb::List | Verb::DeleteCollection => EndpointKind::List,
            Verb::Watch => EndpointKind::Watch,
            Verb::Get => EndpointKind::ReadObject,
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => EndpointKind::Object,
        };
        let encoding =
            codec::negotiate_response_format(&self.requested_response_format(), endpoint)
                .map_err(IntoStatus::into_status)?;
        let is_table = matches!(encoding.object_transform, Some(codec::ObjectTransform::Table(_)));
        let include_object = match is_table {
            true => IncludeObject::parse(self.query.parameter_or_empty("includeObject"))?,
            false => IncludeObject::default(),
        };
        let (accepts_gzip, now) = (self.accepts_gzip(), self.now);
        Ok(ResponseFormat { response_encoding: encoding, include_object, accepts_gzip, now })
    }

    fn accepts_gzip(&self) -> bool {
        self.request_header(&ACCEPT_ENCODING).is_some_and(codec::accepts_gzip)
    }

    pub(crate) fn request_header(&self, name: &HeaderName) -> Option<&str> {
        self.request_parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Reserves memory for the body of a request, and reads the body. An empty body needs no memory.
    ///
    /// # Errors
    /// 429 if too many bytes are reserved, 413 if the body is too long, and 408 if it arrives too slowly.
    pub(super) async fn receive_body(
        &self,
        body: &mut UnreadBody,
    ) -> Result<(Bytes, Option<Permit>), Status> {
        codec::check_content_encoding(self.request_header(&CONTENT_ENCODING))
            .map_err(IntoStatus::into_status)?;
        let Some(incoming) = body.as_mut().filter(|body| !body.is_end_stream()) else {
            return Ok((Bytes::new(), None));
        };
        let bytes_max = BODY_BYTES_MAX as u64;
        let n_announced = incoming.size_hint().exact().unwrap_or(bytes_max);
        if n_announced > bytes_max {
            return Err(Status::too_large(BODY_BYTES_MAX));
        }
        let n_announced = usize::try_from(n_announced).unwrap_or(BODY_BYTES_MAX);
        let mut reservation = self.reserve_body_bytes(n_announced.max(BODY_RESERVATION_MIN))?;
        let pace = self.server.request_limits.minimum_body_rate;
        let bytes = https_server::collect_body(incoming, bytes_max, pace).await;
        let bytes = bytes.map_err(|error| match error {
            CollectBodyError::TooLarge { .. } => Status::too_large(BODY_BYTES_MAX),
            CollectBodyError::TooSlow => Status::request_timeout("the body arrives too slowly"),
            CollectBodyError::Read(why) => {
                Status::bad_request(format!("the body cannot be read: {why}"))
            }
            CollectBodyError::Truncated => {
                Status::bad_request("the body cannot be read: unexpected EOF")
            }
        })?;
        *body = None;
        reservation.shrink_permit_to(bytes.len().max(BODY_RESERVATION_MIN));
        Ok((bytes, Some(reservation)))
    }

    fn reserve_body_bytes(&self, n_bytes: usize) -> Result<Permit, Status> {
        let permit = self.reserve(&self.server.body_bytes_budget, n_bytes);
        permit.map_err(|busy| {
            self.memory_limit_status(match busy {
                LimitReached::User { .. } => {
                    "the bodies of this user's requests take too much memory"
                }
                LimitReached::Total { .. } => "the bodies of all requests take too much memory",
            })
        })
    }

    /// Reserves memory for what a body is decoded to, which may be a hundred times as much. Short bodies do not count: seats
    /// limit their number.
    ///
    /// # Errors
    /// 429 if too many bytes are reserved, and 413 if the body takes more than a user may have.
    pub(super) fn reserve_decoded_bytes(&self, body: &Bytes) -> Result<Option<Permit>, Status> {
        if body.len() < COUNTED_BODY_BYTES_MIN {
            return Ok(None);
        }
        let budget = &self.server.decoded_body_bytes_budget;
        let n_bytes = codec::estimate_decoded_bytes(body, self.request_header(&CONTENT_TYPE));
        if n_bytes > budget.budget_bytes_per_user_max() && !self.flow_classification.is_exempt() {
            return Err(Status::too_large_with_reason("it has too many values"));
        }
        let permit = self.reserve(budget, n_bytes).map_err(|busy| {
            self.memory_limit_status(match busy {
                LimitReached::User { .. } => {
                    "the objects in this user's requests take too much memory"
                }
                LimitReached::Total { .. } => "the objects in all requests take too much memory",
            })
        })?;
        Ok(Some(permit))
    }

    fn reserve(&self, budget: &MemoryBudget, n_bytes: usize) -> Result<Permit, LimitReached> {
        budget.reserve(self.authorization_proof.user(), self.flow_classification, n_bytes)
    }

    fn memory_limit_status(&self, why: &str) -> Status {
        self.server.metrics.request_terminations.with_label_values(&["429"]).inc();
        Status::too_many_requests(&format!("{why}, please try again later"), 1)
    }

    /// Decodes the object in the body and the options of the write.
    pub(super) fn decode_object(
        &self,
        route: &Route<'_>,
        body: &Bytes,
        options_kind: &str,
        record: &mut RequestRecord,
        report: &mut WarningsAndHookReports,
    ) -> Result<(api_object::Tree, WriteOptions), Status> {
        let expected = written_kind(&route.resource, route.subresource);
        self.decode_object_of_kind(&expected, None, body, options_kind, record, report)
    }

    /// Decodes an object of a kind, or of an older version of it that has the same fields, and the options of the
    /// write.
    pub(crate) fn decode_object_of_kind(
        &self,
        expected: &ExpectedKind<'_>,
        older_version: Option<&str>,
        body: &Bytes,
        options_kind: &str,
        record: &mut RequestRecord,
        report: &mut WarningsAndHookReports,
    ) -> Result<(api_object::Tree, WriteOptions), Status> {
        let format = codec::request_body_format(self.request_header(&CONTENT_TYPE), expected)
            .map_err(IntoStatus::into_status)?;
        let options = self.query.parse_write_options(options_kind)?;
        let mut decoded = codec::decode_object(body, format, expected);
        if let (Err(_), Some(version)) = (&decoded, older_version)
            && let Ok(mut older) =
                codec::decode_object(body, format, &ExpectedKind { version, ..*expected })
        {
            let current = GroupVersion::new(expected.group, expected.version).to_string();
            older.object_tree.insert("apiVersion".to_owned(), current.into());
            decoded = Ok(older);
        }
        let decoded = decoded.map_err(IntoStatus::into_status)?;
        let (findings, warnings) = (&decoded.strict_findings, &mut report.warnings);
        options.field_validation.apply_field_validation(expected, findings, warnings)?;
        record.record_request_object(&decoded.object_tree);
        Ok((decoded.object_tree, options))
    }

    /// Decodes the options of a delete from the body, or from the query if the body is empty.
    pub(super) fn decode_delete_options(
        &self,
        body: &Bytes,
        record: &mut RequestRecord,
    ) -> Result<DeleteOptions, Status> {
        if body.is_empty() {
            return self.query.parse_delete_options();
        }
        if body.trim_ascii() == b"null" {
            return Ok(DeleteOptions::default());
        }
        let format = codec::delete_options_format(self.request_header(&CONTENT_TYPE))
            .map_err(IntoStatus::into_status)?;
        let tree = codec::decode_delete_options(body, format).map_err(IntoStatus::into_status)?;
        record.record_request_object(&tree);
        DeleteOptions::parse_delete_options(&tree)
    }
}

#[cfg(test)]
mod tests {
    use api_resources::Registry;

    /// Clients of Kubernetes send every built-in kind as protobuf. Kinds that Kubernetes does not have, and the reviews of
    /// `v1beta1` that it dropped, are JSON only.
    #[test]
    fn every_kind_of_kubernetes_is_read_from_protobuf() {
        let registry = Registry::with_built_in_resources();
        let mut json_only = Vec::new();
        for resource in registry.resources() {
            let own = (resource.group.as_str(), resource.version.as_str(), resource.kind.as_str());
            // A connection has options in its query and no body.
            let subresources = resource.subresources.iter();
            let subresources = subresources.filter(|part| part.connect_options_kind().is_none());
            let subresources = subresources.filter_map(|part| part.kind);
            let kinds = subresources.map(|part| (part.group, part.version, part.kind));
            for (group, version, kind) in kinds.chain([own]) {
                if !codec::has_field_table(group, version, kind) {
                    json_only.push(format!("{group}/{version}"));
                }
            }
        }
        json_only.sort();
        json_only.dedup();
        assert_eq!(
            json_only,
            ["authorization.k8s.io/v1beta1", "authorization.portcullis.io/v1alpha1"]
        );
    }
}
