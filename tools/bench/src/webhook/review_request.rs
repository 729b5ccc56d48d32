//! Questions that are made up, and what the service says to them.

use authz::{Attributes, Resource, Target, User, Verdict};
use serde_json::{Value, json};

/// The match condition of all webhooks. It holds for every question.
pub(crate) const CONDITION: &str = "request.resourceAttributes.namespace != 'kube-system'";

/// What the service finds in questions that it allows.
pub(crate) const ALLOWED: &str = "\"verb\":\"get\"";

/// One question.
#[derive(Debug)]
pub(crate) struct Question {
    user: User,
    verb: &'static str,
    namespace: String,
    name: String,
    pub(crate) want: Verdict,
}

impl Question {
    /// A question that is like no other: a user in six groups about a pod.
    pub(crate) fn make(round: usize, number: usize) -> Self {
        let is_get = number.is_multiple_of(2);
        let groups = ["developers", "team-a", "oncall", "eu", "staff", "system:authenticated"];
        Self {
            user: User {
                name: format!("user-{}@example.com", number % 97),
                uid: format!("5e6c1f3a-{:04}", number % 97),
                groups: groups.map(str::to_owned).into(),
                ..User::default()
            },
            verb: if is_get { "get" } else { "delete" },
            namespace: format!("team-{}", number % 31),
            name: format!("web-{round}-{number}"),
            want: if is_get { Verdict::Allow } else { Verdict::NoOpinion },
        }
    }

    /// The question for our side.
    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes {
            user: Some(&self.user),
            verb: self.verb,
            target: Target::Resource(Resource {
                api_version: "v1",
                namespace: &self.namespace,
                resource: "pods",
                name: &self.name,
                ..Resource::default()
            }),
        }
    }

    /// The question for the other side.
    pub(crate) fn json(&self) -> Value {
        json!({
            "user": self.user.name,
            "uid": self.user.uid,
            "groups": self.user.groups,
            "verb": self.verb,
            "namespace": self.namespace,
            "apiVersion": "v1",
            "resource": "pods",
            "name": self.name,
            "want": match self.want {
                Verdict::Allow => "allow",
                Verdict::Deny => "deny",
                Verdict::NoOpinion => "no-opinion",
                Verdict::Unavailable(_) => "unavailable",
            },
        })
    }

    /// Reads the question, as a server has just read its request.
    pub(crate) fn touch(&self) {
        let texts = [&self.user.name, &self.user.uid, &self.namespace, &self.name];
        let texts = texts.into_iter().chain(&self.user.groups);
        std::hint::black_box(texts.flat_map(|text| text.bytes()).fold(0, u8::wrapping_add));
    }
}
