//! Questions and answers: the parts of a `SubjectAccessReview` that webhooks look at.

use serde::Deserialize;
use serde_json::{Value, json};

/// Who wants to do what.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Question {
    /// The name of the user.
    pub user: String,
    /// The groups of the user; version v1beta1 calls them `group`.
    #[serde(alias = "group")]
    pub groups: Vec<String>,
    /// What it is done to; absent if it is a path.
    pub resource_attributes: Option<ResourceQuestion>,
}

/// What is done to what.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ResourceQuestion {
    /// What is done.
    pub verb: String,
    /// The API group; empty for the first one.
    pub group: String,
    /// The kind of object, in the plural.
    pub resource: String,
    /// Where it is; empty for the whole cluster.
    pub namespace: String,
    /// Its name; empty for all of them.
    pub name: String,
}

/// What a webhook thinks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, and nobody else is asked.
    Allow(String),
    /// No, and nobody else is asked.
    Deny(String),
    /// Somebody else may decide.
    NoOpinion,
}

impl Question {
    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// The version of a review and the question in it.
pub(crate) fn read(body: &[u8]) -> Result<(String, Question), serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Review {
        api_version: String,
        spec: Question,
    }
    let review: Review = serde_json::from_slice(body)?;
    Ok((review.api_version, review.spec))
}

/// The review that answers, in the version that was asked in.
pub(crate) fn write(api_version: &str, answer: &Answer) -> Value {
    let status = match answer {
        Answer::Allow(reason) => json!({"allowed": true, "reason": reason}),
        Answer::Deny(reason) => json!({"allowed": false, "denied": true, "reason": reason}),
        Answer::NoOpinion => json!({"allowed": false}),
    };
    json!({"apiVersion": api_version, "kind": "SubjectAccessReview", "status": status})
}

/// A line for people.
pub(crate) fn line(api_version: &str, question: &Question, answer: &Answer) -> String {
    let asked = match &question.resource_attributes {
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
        Answer::Allow(_) => "allow",
        Answer::Deny(_) => "deny",
        Answer::NoOpinion => "no opinion",
    };
    format!("{api_version}: {}: {asked}: {answer}", question.user)
}
