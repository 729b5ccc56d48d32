//! Classifies an HTTP request line into attributes.

mod classify_path;
mod list_options;

use std::borrow::Cow;

use go_compat::{Url, UrlError};

use crate::attributes::{Attributes, Resource, Target};
use crate::namespace::Namespace;
use crate::selector::{FieldRequirement, LabelRequirement, Selector};
use crate::user::User;
use crate::verb::Verb;

/// The longest request target that is parsed, in bytes. Kubernetes limits the whole header to the same
/// number of bytes.
pub const TARGET_BYTES_MAX: usize = 1 << 20;

/// The classification of an HTTP request by its method and target, without headers and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestInfo {
    /// The path, percent-decoded once, as the client sent it. A legacy path is rewritten for classification, but
    /// keeps its original text here.
    pub path: String,
    /// The API verb of a resource request, or the lower-case HTTP method of any other.
    pub verb: Cow<'static, str>,
    /// The first segment of the path, `api` or `apis`, if at least two segments follow it; otherwise empty.
    pub api_prefix: &'static str,
    /// The parts of a resource request; `None` for any other request.
    pub resource: Option<ResourceInfo>,
    /// The path had a form of the oldest API and was rewritten before it was classified.
    /// Kubernetes would read such a path literally.
    pub has_rewritten_legacy_segment: bool,
}

/// The parts of a resource request, from its path and query. Absent parts are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceInfo {
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The version within the group.
    pub api_version: String,
    /// The namespace. The namespace object itself has its own name here, so that a grant within
    /// the namespace can cover it.
    pub namespace: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource, such as `log`; empty for none.
    pub subresource: String,
    /// The name of the object, from the path or from a selector for exactly one name.
    pub name: String,
    /// The segments after the resource, joined by slashes; `None` if the path ends there.
    pub path_after_resource: Option<String>,
    /// The text of the field selector, if the verb has selectors.
    pub raw_field_selector: String,
    /// The text of the label selector, if the verb has selectors.
    pub raw_label_selector: String,
    /// The field selector, parsed; `None` if it does not narrow the request.
    pub field_selector: Option<Selector<FieldRequirement>>,
    /// The label selector, parsed; `None` if it does not narrow the request.
    pub label_selector: Option<Selector<LabelRequirement>>,
}

/// The reason why a request line has no attributes. The server refuses such a request before it consults an
/// authorizer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request line is not acceptable HTTP, which is a fault of the client.
    #[error(transparent)]
    Malformed(#[from] MalformedRequestError),
    /// The path cannot be classified. Kubernetes answers this as an internal error.
    #[error(transparent)]
    Unclassified(#[from] Box<UnclassifiableRequestError>),
}

/// A request line is malformed. The texts of the first three variants are those of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedRequestError {
    /// The method is not an HTTP token.
    #[error("invalid method {}", go_compat::quote(.0))]
    Method(String),
    /// The target contains a space, and the text after the space is not an HTTP version.
    #[error("malformed HTTP version {}", go_compat::quote(.0))]
    Version(String),
    /// The target is not a URL.
    #[error(transparent)]
    Target(#[from] UrlError),
    /// The path decodes to bytes that are not text, which no policy could name.
    #[error("request path is not valid UTF-8")]
    PathNotUtf8,
    /// The target is longer than [`TARGET_BYTES_MAX`].
    #[error("request target is longer than {TARGET_BYTES_MAX} bytes")]
    TargetTooLong,
}

/// A path that ends where a resource should follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to determine kind and namespace from url, {url}")]
pub struct UnclassifiableRequestError {
    /// The URL of the request, normalised.
    pub url: String,
    /// The classification up to the failure.
    pub partial_request_info: RequestInfo,
}

impl RequestInfo {
    /// Classifies a request by the first two words of its request line.
    ///
    /// # Errors
    /// [`RequestError::Malformed`] if the words are not acceptable HTTP, and
    /// [`RequestError::Unclassified`] if the path breaks off after `proxy` or `watch`.
    ///
    /// ```
    /// let info = authz::RequestInfo::new("GET", "/api/v1/namespaces/web/pods?watch=1").unwrap();
    /// assert_eq!(info.verb, "watch");
    /// assert_eq!(info.resource.unwrap().namespace, "web");
    /// ```
    pub fn new(method: &str, target: &str) -> Result<Self, RequestError> {
        if let Some((path, raw_query)) = split_unescaped_request_target(method, target)
            && let Ok(info) = classify_path::classify_request(method, path.to_owned(), raw_query)
        {
            return Ok(info);
        }
        let url = parse_request_line(method, target)?;
        let path = String::from_utf8(url.path().to_owned())
            .map_err(|_| MalformedRequestError::PathNotUtf8)?;
        let info =
            classify_path::classify_request(method, path, url.raw_query()).map_err(|info| {
                Box::new(UnclassifiableRequestError {
                    url: url.to_string(),
                    partial_request_info: *info,
                })
            })?;
        Ok(info)
    }

    /// The attributes of the request when `user` sends it.
    pub fn to_attributes_for_user<'a>(&'a self, user: Option<&'a User>) -> Attributes<'a> {
        let target = match &self.resource {
            None => Target::Path(&self.path),
            Some(resource) => Target::Resource(Resource {
                path: &self.path,
                api_group: &resource.api_group,
                api_version: &resource.api_version,
                namespace: Namespace::new(&resource.namespace),
                resource: &resource.resource,
                subresource: &resource.subresource,
                name: &resource.name,
                field_selector: resource.field_selector.as_ref(),
                label_selector: resource.label_selector.as_ref(),
            }),
        };
        Attributes { user, verb: Verb::new(&self.verb), target }
    }
}

impl ResourceInfo {
    /// The segments of the path from the resource on: the resource, the name, the subresource,
    /// and whatever follows. Empty if the request was not classified.
    pub fn path_segments_from_resource(&self) -> impl Iterator<Item = &str> {
        // A path never ends in an empty segment. So an empty resource that no segment follows means that the
        // request has no resource.
        let is_classified = !self.resource.is_empty() || self.path_after_resource.is_some();
        let resource = is_classified.then_some(self.resource.as_str());
        let path_after_resource = self
            .path_after_resource
            .iter()
            .flat_map(|path_after_resource| path_after_resource.split('/'));
        resource.into_iter().chain(path_after_resource)
    }
}

/// Splits a target whose path is written without escapes into its path and its query. `None` if the target has to be
/// parsed as a URL; the result is the same, and takes longer.
fn split_unescaped_request_target<'t>(method: &str, target: &'t str) -> Option<(&'t str, &'t str)> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_' | b'~');
    let (path, raw_query) = target.split_once('?').unwrap_or((target, ""));
    let is_known = matches!(method, "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD");
    let is_split = is_known
        && target.len() <= TARGET_BYTES_MAX
        && path.starts_with('/')
        && path.bytes().all(is_plain)
        && raw_query.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    is_split.then_some((path, raw_query))
}

fn parse_request_line(method: &str, target: &str) -> Result<Url, MalformedRequestError> {
    if target.len() > TARGET_BYTES_MAX {
        return Err(MalformedRequestError::TargetTooLong);
    }
    if method.is_empty() || !method.bytes().all(is_http_token_byte) {
        return Err(MalformedRequestError::Method(method.to_owned()));
    }
    // The text after a space is read as the version of the protocol.
    if let Some((_, rest)) = target.split_once(' ') {
        return Err(MalformedRequestError::Version(format!("{rest} HTTP/1.1")));
    }
    Ok(Url::parse_request_target(method, target)?)
}

fn is_http_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
