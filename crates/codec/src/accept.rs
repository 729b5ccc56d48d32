//! In which form the client wants its answer.

use api_object::Status;

use crate::media_type::{Clause, clauses};

/// What the request says about the form of its answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'r> {
    /// The header `Accept`; empty if there is none.
    pub accept: &'r str,
    /// The query parameter `pretty`.
    pub pretty: Option<&'r str>,
    /// The header `User-Agent`; empty if there is none.
    pub user_agent: &'r str,
}

/// What the answer will hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// One object of a resource.
    Object,
    /// A list of objects.
    List,
    /// A stream of events, which has one form only.
    Watch,
    /// Anything that has no other shape: discovery of one group, a version, an error.
    Plain,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The language.
    pub format: Format,
    /// Whether JSON is indented for people.
    pub pretty: bool,
    /// Another shape than the object's own.
    pub transform: Option<Transform>,
}

/// A language in which answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// A shape into which objects are brought for a client that does not need all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// Rows and columns for people.
    Table(MetaVersion),
    /// One object, reduced to its metadata.
    PartialObjectMetadata(MetaVersion),
    /// A list of objects, each reduced to its metadata.
    PartialObjectMetadataList(MetaVersion),
}

/// A version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1Beta1,
}

/// The form of an answer to `/api` and `/apis`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryAnswer {
    /// The names of the versions or groups alone.
    Plain(Answer),
    /// All resources of all groups, in JSON.
    Aggregated {
        /// The version of the document.
        version: DiscoveryVersion,
        /// Whether JSON is indented for people.
        pretty: bool,
    },
}

/// A version of the group `apidiscovery.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryVersion {
    /// `v2`.
    V2,
    /// `v2beta1`.
    V2Beta1,
}

impl Format {
    /// What can be written, in the order in which a wildcard takes it.
    const ALL: [Self; 2] = [Self::Json, Self::Yaml];

    /// The value of `Content-Type`.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }

    fn sub_type(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

impl MetaVersion {
    fn named(name: &str) -> Option<Self> {
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

impl Asked<'_> {
    /// Whether the answer is for eyes: the query says so, or else the kind of client does.
    fn is_for_people(&self) -> bool {
        match self.pretty {
            Some(text) if !text.is_empty() => {
                matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
            }
            _ => ["curl", "Wget", "Mozilla/5.0"]
                .iter()
                .any(|prefix| self.user_agent.starts_with(prefix)),
        }
    }
}

/// Chooses the form of an answer.
///
/// 1. Without `Accept` it is JSON.
/// 2. The clauses are tried from the best liked on; the first that can be served decides. A clause
///    for another language, or whose transformation is unknown or not for this endpoint, is passed
///    over.
/// 3. A transformation that fits one object but meets a list, or the reverse, is an error of its
///    own, since the client clearly meant it.
///
/// # Errors
///
/// 406 if nothing that the client takes can be served.
pub fn negotiate(asked: &Asked<'_>, endpoint: Endpoint) -> Result<Answer, Status> {
    let is_for_people = asked.is_for_people();
    if asked.accept.is_empty() {
        return Ok(Answer { format: Format::Json, pretty: is_for_people, transform: None });
    }
    for clause in clauses(asked.accept) {
        if let Some((format, transform)) = served(&clause, endpoint) {
            check_cardinality(transform, endpoint)?;
            let pretty = is_for_people || clause.parameter("pretty") == Some("1");
            return Ok(Answer { format, pretty, transform });
        }
    }
    Err(Status::not_acceptable(match endpoint {
        Endpoint::Watch => &["application/json;stream=watch"],
        Endpoint::Object | Endpoint::List | Endpoint::Plain => {
            &["application/json", "application/yaml"]
        }
    }))
}

/// Chooses the form of an answer to `/api` and `/apis`, by the steps of [`negotiate`].
///
/// # Errors
///
/// 406 if nothing that the client takes can be served.
pub fn negotiate_discovery(asked: &Asked<'_>) -> Result<DiscoveryAnswer, Status> {
    for clause in clauses(asked.accept) {
        if let Some(version) = aggregated(&clause) {
            let pretty = asked.is_for_people() || clause.parameter("pretty") == Some("1");
            return Ok(DiscoveryAnswer::Aggregated { version, pretty });
        }
        if served(&clause, Endpoint::Plain).is_some() {
            break;
        }
    }
    negotiate(asked, Endpoint::Plain).map(DiscoveryAnswer::Plain)
}

/// What the clause would be served with, if it can be.
fn served(clause: &Clause<'_>, endpoint: Endpoint) -> Option<(Format, Option<Transform>)> {
    let format = Format::ALL
        .into_iter()
        .find(|format| clause.takes("application", format.sub_type()))
        .filter(|format| endpoint != Endpoint::Watch || *format == Format::Json)?;
    let is_known_stream = match clause.parameter("stream") {
        None | Some("") => true,
        Some(stream) => stream == "watch" && format == Format::Json,
    };
    let has_server_version = clause.parameter("sv").is_some_and(|version| !version.is_empty());
    if !is_known_stream || has_server_version {
        return None;
    }
    let wanted = ["as", "g", "v"].map(|name| clause.parameter(name));
    if wanted == [None, None, None] {
        return Some((format, None));
    }
    let [kind, group, version] = wanted.map(Option::unwrap_or_default);
    if group != "meta.k8s.io" || endpoint == Endpoint::Plain {
        return None;
    }
    let version = MetaVersion::named(version)?;
    let transform = match kind {
        "Table" => Transform::Table(version),
        "PartialObjectMetadata" => Transform::PartialObjectMetadata(version),
        "PartialObjectMetadataList" => Transform::PartialObjectMetadataList(version),
        _ => return None,
    };
    Some((format, Some(transform)))
}

/// Refuses one object where there is a list, and a list where there is one object.
fn check_cardinality(transform: Option<Transform>, endpoint: Endpoint) -> Result<(), Status> {
    let problem = match (transform, endpoint) {
        (Some(Transform::PartialObjectMetadata(_)), Endpoint::List) => {
            "you requested PartialObjectMetadata, but the requested object is a list \
             (ask for PartialObjectMetadataList)"
        }
        (
            Some(Transform::PartialObjectMetadataList(_)),
            Endpoint::Object | Endpoint::Watch | Endpoint::Plain,
        ) => {
            "you requested PartialObjectMetadataList, but the requested object is not a list \
             (ask for PartialObjectMetadata)"
        }
        _ => return Ok(()),
    };
    let mut status = Status::not_acceptable(&[]);
    problem.clone_into(&mut status.message);
    Err(status)
}

fn aggregated(clause: &Clause<'_>) -> Option<DiscoveryVersion> {
    let is_asked = clause.takes("application", "json")
        && clause.parameter("as") == Some("APIGroupDiscoveryList")
        && clause.parameter("g") == Some("apidiscovery.k8s.io");
    match clause.parameter("v") {
        Some("v2") if is_asked => Some(DiscoveryVersion::V2),
        Some("v2beta1") if is_asked => Some(DiscoveryVersion::V2Beta1),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
