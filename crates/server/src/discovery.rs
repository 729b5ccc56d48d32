//! Discovery: the groups, versions and resources that are served, the OpenAPI documents, and `/version`.

use api_object::Status;
use api_resources::Registry;
use authn::{JWKS_PATH, OPENID_CONFIGURATION_PATH};
use bytes::Bytes;
use codec::{DiscoveryFormat, EndpointKind, FormatRequest};
use serde_json::json;

use crate::error_status::IntoStatus;
use crate::respond::{CacheableDocument, Reply};
use crate::rest::Query;
use crate::server_state::ServerState;

const NO_CACHE: &str = "no-cache, private";

/// The media type by which kubectl asks for OpenAPI v2; older versions append `@v1.0`.
const V2_ACCEPT_PREFIX: &str = "application/com.github.proto-openapi.spec.v2";
const V2_PROTOBUF_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// An OpenAPI v2 document without kinds, which only the OpenAPI v3 documents describe. kubectl asks for v2
/// when v3 does not contain a kind, as with `List`. It accepts an empty document, but fails without any.
const V2_JSON_DOCUMENT: &[u8] =
    br#"{"swagger":"2.0","info":{"title":"Portcullis","version":"v1"},"paths":{}}"#;
/// The same document as protobuf: `swagger` is field 1, `info` field 2 with `title` and `version`.
const V2_PROTOBUF_DOCUMENT: &[u8] = b"\x0a\x032.0\x12\x10\x0a\x0aPortcullis\x12\x02v1";

/// The response to a path of discovery; `None` for other paths.
pub(crate) fn discovery_reply(
    server: &ServerState,
    registry: &Registry,
    path: &str,
    asked: &FormatRequest<'_>,
    etag: Option<&str>,
    query: &Query,
) -> Result<Option<Reply>, Status> {
    let trimmed = path.trim_end_matches('/');
    let mut segments = trimmed.strip_prefix('/').unwrap_or(trimmed).split('/');
    let parts = [segments.next(), segments.next(), segments.next(), segments.next()];
    let found = match parts {
        [Some("" | "index.html"), None, ..] => Some(root_paths_document(server, registry)),
        [Some("version"), None, ..] => Some(version_document(server)),
        [Some("api"), None, ..] => {
            let aggregated = &registry.discovery().aggregated_core_document;
            if let Some(reply) = aggregated_discovery_reply(aggregated, asked, etag)? {
                return Ok(Some(reply));
            }
            Some(
                api_resources::Discovery::core_versions_document(
                    &server.api_settings.advertised_address,
                )
                .body,
            )
        }
        [Some("apis"), None, ..] => {
            let aggregated = &registry.discovery().aggregated_groups_document;
            if let Some(reply) = aggregated_discovery_reply(aggregated, asked, etag)? {
                return Ok(Some(reply));
            }
            Some(registry.discovery().groups.body.clone())
        }
        [Some("api"), Some(version), None, _] => {
            registry.discovery().version("", version).map(|document| document.body.clone())
        }
        [Some("apis"), Some(group), None, _] => {
            registry.discovery().group(group).map(|document| document.body.clone())
        }
        [Some("apis"), Some(group), Some(version), None] => {
            registry.discovery().version(group, version).map(|document| document.body.clone())
        }
        [Some("openapi"), Some("v2"), None, _] => return openapi_v2_reply(asked).map(Some),
        [Some("openapi"), Some("v3"), ..] => {
            let reply = openapi_v3_reply(registry, trimmed, query);
            if reply.is_some() {
                codec::negotiate_response_format(asked, EndpointKind::Plain)
                    .map_err(IntoStatus::into_status)?;
            }
            return Ok(reply);
        }
        _ => None,
    };
    let Some(body) = found else { return Ok(None) };
    codec::negotiate_response_format(asked, EndpointKind::Plain)
        .map_err(IntoStatus::into_status)?;
    let mut json = body.to_vec();
    json.push(b'\n');
    Ok(Some(Reply::Json { code: 200, json }))
}

/// Whether a path that was not found begins with the path of an existing API group.
pub(crate) fn is_path_of_known_group(registry: &Registry, path: &str) -> bool {
    let mut segments = path.trim_matches('/').split('/');
    match (segments.next(), segments.next()) {
        (Some("api"), Some(_)) => true,
        (Some("apis"), Some(group)) => registry.group(group).is_some_and(|group| group.is_built_in),
        _ => false,
    }
}

/// Whether the document at a path is served for every HTTP method, as in kube-apiserver: the list of groups, a group,
/// a version of a custom group, and the OpenAPI documents.
pub(crate) fn answers_every_http_method(registry: &Registry, path: &str) -> bool {
    let mut segments = path.trim_matches('/').split('/');
    match [segments.next(), segments.next(), segments.next(), segments.next()] {
        [Some("" | "index.html"), None, ..]
        | [Some("apis"), None | Some(_), None, _]
        | [Some("openapi"), ..] => true,
        [Some("apis"), Some(group), Some(_), None] => {
            registry.group(group).is_some_and(|group| !group.is_built_in)
        }
        _ => false,
    }
}

fn aggregated_discovery_reply(
    document: &api_resources::EncodedDocument,
    asked: &FormatRequest<'_>,
    etag: Option<&str>,
) -> Result<Option<Reply>, Status> {
    let format = codec::negotiate_discovery_format(asked).map_err(IntoStatus::into_status)?;
    let DiscoveryFormat::Aggregated { version, .. } = format else { return Ok(None) };
    if version != codec::DiscoveryVersion::V2 {
        return Ok(None);
    }
    let document_etag = document.etag();
    let is_not_modified =
        etag.is_some_and(|given| given.split(',').any(|one| one.trim() == document_etag));
    Ok(Some(Reply::Document(CacheableDocument {
        document_bytes: document.body.clone(),
        content_type: version.media_type(),
        etag: Some(document_etag),
        cache_control: "public",
        redirect_location: None,
        is_not_modified,
    })))
}

fn openapi_v2_reply(asked: &FormatRequest<'_>) -> Result<Reply, Status> {
    let (bytes, content_type) = match asked.accept_header.starts_with(V2_ACCEPT_PREFIX) {
        true => (V2_PROTOBUF_DOCUMENT, V2_PROTOBUF_TYPE),
        false => {
            codec::negotiate_response_format(asked, EndpointKind::Plain)
                .map_err(IntoStatus::into_status)?;
            (V2_JSON_DOCUMENT, "application/json")
        }
    };
    Ok(Reply::Document(CacheableDocument {
        document_bytes: Bytes::from_static(bytes),
        content_type,
        etag: None,
        cache_control: NO_CACHE,
        redirect_location: None,
        is_not_modified: false,
    }))
}

fn openapi_v3_reply(registry: &Registry, path: &str, query: &Query) -> Option<Reply> {
    let openapi = registry.openapi();
    let rest = path.strip_prefix("/openapi/v3")?;
    let reply = |bytes: Bytes, cache: &'static str, location: Option<String>| {
        Some(Reply::Document(CacheableDocument {
            document_bytes: bytes,
            content_type: "application/json",
            etag: None,
            cache_control: cache,
            redirect_location: location,
            is_not_modified: false,
        }))
    };
    let Some(name) = rest.strip_prefix('/') else {
        return match rest {
            "" => reply(openapi.index().body.clone(), NO_CACHE, None),
            _ => None,
        };
    };
    let document = openapi.openapi_document_of_version(name)?;
    match query.get("hash") {
        None => reply(document.body.clone(), NO_CACHE, None),
        Some(hash) if hash == document.hash => {
            reply(document.body.clone(), "public, immutable, max-age=31536000", None)
        }
        Some(_) => {
            let location = format!("{path}?hash={}", document.hash);
            reply(Bytes::new(), NO_CACHE, Some(location))
        }
    }
}

fn root_paths_document(server: &ServerState, registry: &Registry) -> Bytes {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for group in registry.groups().filter(|group| !group.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(
            group.versions.iter().map(|served| format!("/apis/{}/{}", group.name, served.version)),
        );
    }
    if server.issuer_discovery.is_some() {
        paths.extend([OPENID_CONFIGURATION_PATH, JWKS_PATH].map(str::to_owned));
    }
    for other in
        ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
    {
        paths.push(other.to_owned());
    }
    paths.sort_unstable();
    Bytes::from(json!({"paths": paths}).to_string())
}

fn version_document(server: &ServerState) -> Bytes {
    let reported = &server.api_settings.reported_kubernetes_version;
    let (major, minor) = reported.split_once('.').unwrap_or((reported, "0"));
    let package_version = env!("CARGO_PKG_VERSION");
    Bytes::from(
        json!({
            "major": major,
            "minor": minor,
            "gitVersion": format!("v{major}.{minor}.0+portcullis.{package_version}"),
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "none (Rust)",
            "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
        })
        .to_string(),
    )
}

/// The architecture under the name that Go uses.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
