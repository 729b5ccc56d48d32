//! Generates requests, and the answer of the service to each.

use authz::{Attributes, Namespace, Resource, Target, User, Verb, Verdict};
use serde_json::{Value, json};

/// The match condition of all webhooks, which is true for every request.
pub(crate) const CONDITION: &str = "request.resourceAttributes.namespace != 'kube-system'";

/// The text in reviews that the service allows.
pub(crate) const ALLOWED: &str = "\"verb\":\"get\"";

/// One request with its expected answer.
#[derive(Debug)]
pub(crate) struct ReviewRequest {
    user: User,
    verb: &'static str,
    namespace: String,
    name: String,
    pub(crate) want: Verdict,
}

impl ReviewRequest {
    /// A unique request: a user in six groups reads or writes a pod.
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

    /// The request in the form of our side.
    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes {
            user: Some(&self.user),
            verb: Verb::new(self.verb),
            target: Target::Resource(Resource {
                api_version: "v1",
                namespace: Namespace::new(&self.namespace),
                resource: "pods",
                name: &self.name,
                ..Resource::default()
            }),
        }
    }

    /// The request in the form of the Go program.
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

    /// Reads the request, because a server has just read its request too.
    pub(crate) fn preload(&self) {
        let texts = [&self.user.name, &self.user.uid, &self.namespace, &self.name];
        let texts = texts.into_iter().chain(&self.user.groups);
        std::hint::black_box(texts.flat_map(|text| text.bytes()).fold(0, u8::wrapping_add));
    }
}
