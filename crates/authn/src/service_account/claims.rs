//! The claims of a service-account token.

use api_object::Tree;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::well_known_identities::service_account_user_name;

/// The claims of a token that this server issues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The namespace of the account.
    pub namespace: String,
    /// Name and uid of the account.
    pub service_account: ObjectReference,
    /// The audiences that may accept the token.
    pub audiences: Vec<String>,
    /// The time from which the token is valid.
    pub issued_at: Timestamp,
    /// The time at which the token expires.
    pub expires_at: Timestamp,
    /// The value of the `jti` claim.
    pub id: String,
    /// The object whose deletion invalidates the token, besides the account.
    pub bound_object: Option<BoundObject>,
}

/// The object that a token is bound to. The token is invalid once that object is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundObject {
    /// A pod of the namespace, and the node on which it runs, for information.
    Pod(ObjectReference, Option<ObjectReference>),
    /// A node of the cluster.
    Node(ObjectReference),
    /// A secret of the namespace.
    Secret(ObjectReference),
}

/// The name and uid of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectReference {
    /// The name of the object.
    pub name: String,
    /// The uid; empty if it is not known.
    pub uid: String,
}

impl Claims {
    /// The payload of the token.
    pub(super) fn to_payload(&self, issuer: &str) -> Tree {
        let mut private = Tree::new();
        private.insert("namespace".to_owned(), self.namespace.clone().into());
        private.insert("serviceaccount".to_owned(), self.service_account.to_json());
        match &self.bound_object {
            None => {}
            Some(BoundObject::Pod(pod, node)) => {
                private.insert("pod".to_owned(), pod.to_json());
                if let Some(node) = node {
                    private.insert("node".to_owned(), node.to_json());
                }
            }
            Some(BoundObject::Node(node)) => {
                private.insert("node".to_owned(), node.to_json());
            }
            Some(BoundObject::Secret(secret)) => {
                private.insert("secret".to_owned(), secret.to_json());
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
    fn to_json(&self) -> Value {
        if self.uid.is_empty() {
            json!({"name": self.name})
        } else {
            json!({"name": self.name, "uid": self.uid})
        }
    }

    /// Reads one object reference from a payload; `None` if it is absent.
    pub(super) fn read(private: &Tree, member: &str) -> Option<Self> {
        let reference = private.get(member)?.as_object()?;
        Some(Self {
            name: api_object::string_member(reference, "name").to_owned(),
            uid: api_object::string_member(reference, "uid").to_owned(),
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
            bound_object: Some(BoundObject::Pod(reference("p", "u2"), Some(reference("n", "")))),
        };
        let want = json!({
            "aud": ["api"], "exp": 4600, "iat": 1000, "nbf": 1000, "iss": "https://me", "jti": "id",
            "kubernetes.io": {
                "namespace": "ns", "serviceaccount": {"name": "sa", "uid": "u1"},
                "pod": {"name": "p", "uid": "u2"}, "node": {"name": "n"},
            },
            "sub": "system:serviceaccount:ns:sa",
        });
        assert_eq!(Value::Object(claims.to_payload("https://me")), want);
        for (bound_object, member) in [
            (BoundObject::Node(reference("x", "u")), "node"),
            (BoundObject::Secret(reference("x", "u")), "secret"),
        ] {
            claims.bound_object = Some(bound_object);
            let tree = claims.to_payload("i");
            let private = tree["kubernetes.io"].as_object().unwrap();
            assert_eq!(private[member], json!({"name": "x", "uid": "u"}));
            assert_eq!(private.len(), 3);
        }
    }
}
