//! Serves paths that are no resources: health, metrics, status and discovery.

use api_object::Status;
use authn::{JWKS_PATH, OPENID_CONFIGURATION_PATH};
use bytes::Bytes;
use http::Response;
use https_server::Body;

use super::{AuthorizedRequest, NOT_FOUND_TEXT};
use crate::admission::ADMISSION_STATUS_PATH;
use crate::discovery;
use crate::health;
use crate::request_error::RequestError;
use crate::respond::{CacheableDocument, PLAIN_JSON, Reply, text_response};
use crate::undecodable_objects;

/// The path of the status of the authorizers.
const AUTHORIZATION_STATUS_PATH: &str = "/portcullis/authorization/status";

impl AuthorizedRequest<'_> {
    /// Serves a non-resource path: health, metrics, status and discovery.
    pub(super) async fn serve_non_resource_path(
        &self,
        path: &str,
    ) -> Result<Response<Body>, RequestError> {
        // Verbs are lower-case, but `get` is another method than `GET`.
        let verb = match self.has_standard_spelling() {
            true => self.authorization_proof.request_info().verb.as_ref(),
            false => "",
        };
        let is_read = matches!(verb, "get" | "head");
        // Proxies that match paths by their beginning would not recognize such a path.
        if path.starts_with("//") {
            return Err(RequestError::Text(404, NOT_FOUND_TEXT.to_owned()));
        }
        if let Some(text) = health::health_response(self.server, path, self.query).await {
            return Ok(text_response(text.code, text.body_text));
        }
        if path == "/metrics" {
            return Ok(crate::metrics::metrics_response(self.server).await);
        }
        if matches!(path, AUTHORIZATION_STATUS_PATH | ADMISSION_STATUS_PATH) {
            if !is_read {
                return Err(Status::method_not_allowed().into());
            }
            let status = match path {
                ADMISSION_STATUS_PATH => self.server.admission_status_json().await,
                _ => {
                    let cluster = self.server.snapshot_cache.snapshot();
                    undecodable_objects::add_undecodable_objects_to_status(
                        (self.server.authorization_status_json)(),
                        &cluster,
                    )
                }
            };
            let json = serde_json::to_vec(&status).unwrap_or_default();
            let reply = Reply::Json { code: 200, json };
            return Ok(self.new_response_format(PLAIN_JSON).encode_response(reply, &[]));
        }
        if let Some(document) = self.issuer_discovery_document(path) {
            return match verb {
                "get" => Ok(self.new_response_format(PLAIN_JSON).encode_response(document, &[])),
                _ => Err(Status::method_not_allowed().into()),
            };
        }
        let registry = &self.authorization_proof.authorization_snapshot().resource_registry;
        let is_offered = verb == "get" || discovery::answers_every_http_method(registry, path);
        let mut format_request = self.requested_response_format();
        if !is_offered {
            // The method is refused whatever the client accepts.
            format_request.accept_header = "";
        }
        let etag = self.request_header(&http::header::IF_NONE_MATCH);
        let document = discovery::discovery_reply(
            self.server,
            registry,
            path,
            &format_request,
            etag,
            self.query,
        )?;
        match document {
            Some(_) if !is_offered => Err(Status::method_not_allowed().into()),
            // The format of a document was negotiated when it was encoded.
            Some(reply @ Reply::Document(_)) => {
                Ok(self.new_response_format(PLAIN_JSON).encode_response(reply, &[]))
            }
            Some(reply) => Ok(self.negotiate_plain_format()?.encode_response(reply, &[])),
            None if discovery::is_path_of_known_group(registry, path) => {
                Err(Status::unknown_resource().into())
            }
            None => Err(RequestError::Text(404, NOT_FOUND_TEXT.to_owned())),
        }
    }

    /// The document of issuer discovery at a path, if the path has one.
    fn issuer_discovery_document(&self, path: &str) -> Option<Reply> {
        let discovery = self.server.issuer_discovery.as_ref()?;
        let (json, content_type) = match path.trim_end_matches('/') {
            OPENID_CONFIGURATION_PATH => (discovery.openid_configuration(), "application/json"),
            JWKS_PATH => (discovery.json_web_key_set(), "application/jwk-set+json"),
            _ => return None,
        };
        Some(Reply::Document(CacheableDocument {
            document_bytes: Bytes::copy_from_slice(json.as_bytes()),
            content_type,
            etag: None,
            cache_control: "public, max-age=3600",
            redirect_location: None,
            is_not_modified: false,
        }))
    }
}
