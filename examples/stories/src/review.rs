//! The parts of a `SubjectAccessReview` that the webhooks use.

use serde::Deserialize;
use serde_json::{Value, json};

/// The request that a review is about.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReviewSpec {
    /// The name of the user.
    pub user: String,
    /// The groups of the user; version v1beta1 calls them `group`.
    #[serde(alias = "group")]
    pub groups: Vec<String>,
    /// The resource of the request; absent if the request is for a path.
    pub resource_attributes: Option<ResourceAttributes>,
}

/// The verb and the resource of a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ResourceAttributes {
    /// The verb of the request, such as `get`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource in the plural, such as `pods`.
    pub resource: String,
    /// The namespace; empty for the whole cluster.
    pub namespace: String,
    /// The name of the object; empty for all objects.
    pub name: String,
}

/// The decision of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed, and later authorizers are not consulted.
    Allow(String),
    /// The request is denied, and later authorizers are not consulted.
    Deny(String),
    /// The next authorizer decides.
    NoOpinion,
}

impl ReviewSpec {
    /// Whether the user is in a group.
    pub fn is_in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// Reads the version and the `spec` of a review.
pub(crate) fn read(body: &[u8]) -> Result<(String, ReviewSpec), serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Review {
        api_version: String,
        spec: ReviewSpec,
    }
    let review: Review = serde_json::from_slice(body)?;
    Ok((review.api_version, review.spec))
}

/// The review with its status, in the version of the request.
pub(crate) fn write(api_version: &str, answer: &Decision) -> Value {
    let status = match answer {
        Decision::Allow(reason) => json!({"allowed": true, "reason": reason}),
        Decision::Deny(reason) => json!({"allowed": false, "denied": true, "reason": reason}),
        Decision::NoOpinion => json!({"allowed": false}),
    };
    json!({"apiVersion": api_version, "kind": "SubjectAccessReview", "status": status})
}

/// The line that the program prints for a review.
pub(crate) fn line(api_version: &str, spec: &ReviewSpec, answer: &Decision) -> String {
    let asked = match &spec.resource_attributes {
        None => "a path".to_owned(),
        Some(own) => {
            let group = if own.group.is_empty() { "" } else { "." };
            let at = if own.namespace.is_empty() { "" } else { " in " };
            let name = if own.name.is_empty() { "" } else { " " };
            format!(
                "{} {}{group}{}{name}{}{at}{}",
                own.verb, own.resource, own.group, own.name, own.namespace
            )
        }
    };
    let answer = match answer {
        Decision::Allow(_) => "allow",
        Decision::Deny(_) => "deny",
        Decision::NoOpinion => "no opinion",
    };
    format!("{api_version}: {}: {asked}: {answer}", spec.user)
}
