//! What a token says.

use api_object::Tree;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::identity::service_account_user_name;

/// What is claimed for the issuer and everybody else to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The namespace of the account.
    pub namespace: String,
    /// The account.
    pub service_account: ObjectReference,
    /// For whom the token is.
    pub audiences: Vec<String>,
    /// Since when it counts.
    pub issued_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
    /// The name of the token.
    pub id: String,
    /// What it lives and dies with, beside the account.
    pub binding: Option<Binding>,
}

/// The object without which a token does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// A pod of the namespace, and for the record the node that it runs on, if any.
    Pod(ObjectReference, Option<ObjectReference>),
    /// A node.
    Node(ObjectReference),
    /// A secret of the namespace.
    Secret(ObjectReference),
}

/// One object at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectReference {
    /// The name.
    pub name: String,
    /// The uid; empty if it is not known.
    pub uid: String,
}

impl Claims {
    /// The payload of a token.
    pub(super) fn to_tree(&self, issuer: &str) -> Tree {
        let mut private = Tree::new();
        private.insert("namespace".to_owned(), self.namespace.clone().into());
        private.insert("serviceaccount".to_owned(), self.service_account.to_value());
        match &self.binding {
            None => {}
            Some(Binding::Pod(pod, node)) => {
                private.insert("pod".to_owned(), pod.to_value());
                if let Some(node) = node {
                    private.insert("node".to_owned(), node.to_value());
                }
            }
            Some(Binding::Node(node)) => {
                private.insert("node".to_owned(), node.to_value());
            }
            Some(Binding::Secret(secret)) => {
                private.insert("secret".to_owned(), secret.to_value());
            }
        }
        let subject = service_account_user_name(&self.namespace, &self.service_account.name);
        let claims = [
            ("aud", json!(self.audiences)),
            ("exp", json!(self.expires_at.as_second())),
            ("iat", json!(self.issued_at.as_second())),
            ("iss", json!(issuer)),
            ("jti", json!(self.id)),
            ("kubernetes.io", Value::Object(private)),
            ("nbf", json!(self.issued_at.as_second())),
            ("sub", json!(subject)),
        ];
        claims.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

impl ObjectReference {
    fn to_value(&self) -> Value {
        if self.uid.is_empty() {
            json!({"name": self.name})
        } else {
            json!({"name": self.name, "uid": self.uid})
        }
    }

    /// What a payload says of one object; `None` if it says nothing of it.
    pub(super) fn read(private: &Tree, member: &str) -> Option<Self> {
        let reference = private.get(member)?.as_object()?;
        Some(Self {
            name: api_object::text(reference, "name").to_owned(),
            uid: api_object::text(reference, "uid").to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_has_the_names_of_kubernetes() {
        let reference =
            |name: &str, uid: &str| ObjectReference { name: name.to_owned(), uid: uid.to_owned() };
        let mut claims = Claims {
            namespace: "ns".to_owned(),
            service_account: reference("sa", "u1"),
            audiences: vec!["api".to_owned()],
            issued_at: Timestamp::from_second(1000).unwrap(),
            expires_at: Timestamp::from_second(4600).unwrap(),
            id: "id".to_owned(),
            binding: Some(Binding::Pod(reference("p", "u2"), Some(reference("n", "")))),
        };
        let want = json!({
            "aud": ["api"], "exp": 4600, "iat": 1000, "nbf": 1000, "iss": "https://me", "jti": "id",
            "kubernetes.io": {
                "namespace": "ns", "serviceaccount": {"name": "sa", "uid": "u1"},
                "pod": {"name": "p", "uid": "u2"}, "node": {"name": "n"},
            },
            "sub": "system:serviceaccount:ns:sa",
        });
        assert_eq!(Value::Object(claims.to_tree("https://me")), want);
        for (binding, member) in [
            (Binding::Node(reference("x", "u")), "node"),
            (Binding::Secret(reference("x", "u")), "secret"),
        ] {
            claims.binding = Some(binding);
            let tree = claims.to_tree("i");
            let private = tree["kubernetes.io"].as_object().unwrap();
            assert_eq!(private[member], json!({"name": "x", "uid": "u"}));
            assert_eq!(private.len(), 3);
        }
    }
}
