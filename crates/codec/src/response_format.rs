//! Negotiation of the response format.

use crate::accept_header::{AcceptClause, parse_accept_header};

/// The parts of a request that select the response format.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormatRequest<'r> {
    /// The header `Accept`; empty if there is none.
    pub accept_header: &'r str,
    /// The query parameter `pretty`.
    pub pretty_parameter: Option<&'r str>,
    /// The header `User-Agent`; empty if there is none.
    pub user_agent: &'r str,
}

/// The kind of content that an endpoint returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointKind {
    /// One object of a resource.
    Object,
    /// One object of a resource that may not exist.
    ReadObject,
    /// A list of objects.
    List,
    /// A stream of events, which is always JSON.
    Watch,
    /// Any other content, which cannot be transformed: discovery, the version, an error.
    Plain,
}

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseEncoding {
    /// The format of the body.
    pub response_body_format: ResponseBodyFormat,
    /// Whether JSON is indented.
    pub is_pretty: bool,
    /// The requested transformation of objects, if any.
    pub object_transform: Option<ObjectTransform>,
}

/// The format of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseBodyFormat {
    /// The media type `application/json`.
    Json,
    /// The media type `application/yaml`.
    Yaml,
}

/// A reduced form of objects that a client may request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectTransform {
    /// A table with rows and columns, which kubectl prints.
    Table(MetaVersion),
    /// One object, reduced to its metadata.
    PartialObjectMetadata(MetaVersion),
    /// A list of objects, each reduced to its metadata.
    PartialObjectMetadataList(MetaVersion),
}

/// A version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    /// The version is `meta.k8s.io/v1`.
    V1,
    /// The version is `meta.k8s.io/v1beta1`.
    V1Beta1,
}

/// The format of a response to `/api` and `/apis`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryFormat {
    /// The names of versions or groups only.
    Plain(ResponseEncoding),
    /// All resources of all groups, in JSON.
    Aggregated {
        /// The version of the document.
        version: DiscoveryVersion,
        /// Whether JSON is indented.
        pretty: bool,
    },
}

/// A version of the group `apidiscovery.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryVersion {
    /// The version is `apidiscovery.k8s.io/v2`.
    V2,
    /// The version is `apidiscovery.k8s.io/v2beta1`.
    V2Beta1,
}

impl ResponseBodyFormat {
    /// The formats that can be written, in the order in which a wildcard selects them.
    const ALL: [Self; 2] = [Self::Json, Self::Yaml];

    /// The value of `Content-Type`.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }

    fn media_subtype(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

impl MetaVersion {
    fn from_version_name(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// The `apiVersion` of documents of this version.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl DiscoveryVersion {
    /// The `apiVersion` of documents of this version.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V2 => "apidiscovery.k8s.io/v2",
            Self::V2Beta1 => "apidiscovery.k8s.io/v2beta1",
        }
    }

    /// The value of `Content-Type`, by which clients choose their decoder.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::V2 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::V2Beta1 => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
        }
    }
}

/// No response format that the client accepts can be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    /// No clause of `Accept` matches an offered media type.
    #[error("only the following media types are accepted: {}", offered.join(", "))]
    NotAcceptable {
        /// The media types that the endpoint offers.
        offered: &'static [&'static str],
    },
    /// The client requests the transformation of a single object, and the endpoint returns a list.
    #[error(
        "you requested PartialObjectMetadata, but the requested object is a list \
         (ask for PartialObjectMetadataList)"
    )]
    TransformForObject,
    /// The client requests the transformation of a list, and the endpoint returns a single object.
    #[error(
        "you requested PartialObjectMetadataList, but the requested object is not a list \
         (ask for PartialObjectMetadata)"
    )]
    TransformForList,
}

impl FormatRequest<'_> {
    /// Reports whether JSON is indented: by the query, or else for browsers and command-line clients.
    fn wants_indentation(&self) -> bool {
        match self.pretty_parameter {
            Some(text) if !text.is_empty() => {
                matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
            }
            _ => ["curl", "Wget", "Mozilla/5.0"]
                .iter()
                .any(|prefix| self.user_agent.starts_with(prefix)),
        }
    }
}

/// Chooses the format of a response.
///
/// 1. Without `Accept` it is JSON.
/// 2. The clauses are tried by preference; the first that can be served decides. A clause with an
///    unsupported media type or transformation is skipped.
/// 3. A transformation for one object on a list, or the reverse, is an error, because the client requested it
///    explicitly.
///
/// # Errors
/// No clause can be served, or step 3 fails.
pub fn negotiate_response_format(
    format_request: &FormatRequest<'_>,
    endpoint: EndpointKind,
) -> Result<ResponseEncoding, NegotiationError> {
    let wants_indentation = format_request.wants_indentation();
    if format_request.accept_header.is_empty() {
        return Ok(ResponseEncoding {
            response_body_format: ResponseBodyFormat::Json,
            is_pretty: wants_indentation,
            object_transform: None,
        });
    }
    // Most clients ask for this and nothing else.
    if format_request.accept_header == ResponseBodyFormat::Json.media_type() {
        let pretty = wants_indentation;
        return Ok(ResponseEncoding {
            response_body_format: ResponseBodyFormat::Json,
            is_pretty: pretty,
            object_transform: None,
        });
    }
    for clause in parse_accept_header(format_request.accept_header) {
        if let Some((format, transform)) = servable_format(&clause, endpoint) {
            check_transform_cardinality(transform, endpoint)?;
            let pretty = wants_indentation || clause.media_parameter_value("pretty") == Some("1");
            return Ok(ResponseEncoding {
                response_body_format: format,
                is_pretty: pretty,
                object_transform: transform,
            });
        }
    }
    let offered: &[&str] = match endpoint {
        EndpointKind::Watch => &["application/json;stream=watch"],
        EndpointKind::Object
        | EndpointKind::ReadObject
        | EndpointKind::List
        | EndpointKind::Plain => &["application/json", "application/yaml"],
    };
    Err(NegotiationError::NotAcceptable { offered })
}

/// Chooses the format of a response for `/api` and `/apis`, by the steps of [`negotiate_response_format`].
///
/// # Errors
/// No clause can be served.
pub fn negotiate_discovery_format(
    format_request: &FormatRequest<'_>,
) -> Result<DiscoveryFormat, NegotiationError> {
    for clause in parse_accept_header(format_request.accept_header) {
        if let Some(version) = aggregated_discovery_version(&clause) {
            let pretty = format_request.wants_indentation()
                || clause.media_parameter_value("pretty") == Some("1");
            return Ok(DiscoveryFormat::Aggregated { version, pretty });
        }
        if servable_format(&clause, EndpointKind::Plain).is_some() {
            break;
        }
    }
    negotiate_response_format(format_request, EndpointKind::Plain).map(DiscoveryFormat::Plain)
}

/// The format and transformation that satisfy a clause, if the endpoint can serve them.
fn servable_format(
    clause: &AcceptClause<'_>,
    endpoint: EndpointKind,
) -> Option<(ResponseBodyFormat, Option<ObjectTransform>)> {
    let format = ResponseBodyFormat::ALL
        .into_iter()
        .find(|format| clause.accepts_media_type("application", format.media_subtype()))
        .filter(|format| endpoint != EndpointKind::Watch || *format == ResponseBodyFormat::Json)?;
    let is_known_stream = match clause.media_parameter_value("stream") {
        None | Some("") => true,
        Some(stream) => stream == "watch" && format == ResponseBodyFormat::Json,
    };
    let has_server_version =
        clause.media_parameter_value("sv").is_some_and(|version| !version.is_empty());
    if !is_known_stream || has_server_version {
        return None;
    }
    let wanted = ["as", "g", "v"].map(|name| clause.media_parameter_value(name));
    if wanted == [None, None, None] {
        return Some((format, None));
    }
    let [kind, group, version] = wanted.map(Option::unwrap_or_default);
    if group != "meta.k8s.io" || endpoint == EndpointKind::Plain {
        return None;
    }
    let version = MetaVersion::from_version_name(version)?;
    let transform = match kind {
        "Table" => ObjectTransform::Table(version),
        "PartialObjectMetadata" => ObjectTransform::PartialObjectMetadata(version),
        "PartialObjectMetadataList" => ObjectTransform::PartialObjectMetadataList(version),
        _ => return None,
    };
    Some((format, Some(transform)))
}

/// Refuses a transformation for one object on a list, and the reverse. For a read of one object, the caller
/// refuses the transformation only if the object exists, so that a missing object is 404. The events of a
/// watch hold one object each, whichever form the client names.
fn check_transform_cardinality(
    transform: Option<ObjectTransform>,
    endpoint: EndpointKind,
) -> Result<(), NegotiationError> {
    match (transform, endpoint) {
        (Some(ObjectTransform::PartialObjectMetadata(_)), EndpointKind::List) => {
            Err(NegotiationError::TransformForObject)
        }
        (
            Some(ObjectTransform::PartialObjectMetadataList(_)),
            EndpointKind::Object | EndpointKind::Plain,
        ) => Err(NegotiationError::TransformForList),
        _ => Ok(()),
    }
}

fn aggregated_discovery_version(clause: &AcceptClause<'_>) -> Option<DiscoveryVersion> {
    let is_asked = clause.accepts_media_type("application", "json")
        && clause.media_parameter_value("as") == Some("APIGroupDiscoveryList")
        && clause.media_parameter_value("g") == Some("apidiscovery.k8s.io");
    match clause.media_parameter_value("v") {
        Some("v2") if is_asked => Some(DiscoveryVersion::V2),
        Some("v2beta1") if is_asked => Some(DiscoveryVersion::V2Beta1),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
