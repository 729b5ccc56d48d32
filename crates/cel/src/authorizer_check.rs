//! What an expression asks an authorizer, and what has been answered so far.
//!
//! Evaluation is a function of values, while an authorizer may have to ask a remote service. So an
//! expression is given the answers that are known. One that needs another answer ends with
//! [`EvalError::NeedsDecision`](crate::Failure::Wanted) and the question; the host asks, adds the answer and
//! evaluates again. Each round knows one answer more, and a check costs so much that few fit into one
//! evaluation, so there are few rounds.

use std::collections::HashMap;
use std::sync::Arc;

/// One question: may this subject do that?
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuthorizerCheck {
    /// The service account that it is about; `None` for the user whom the host knows.
    pub service_account: Option<ServiceAccount>,
    /// What the subject wants to do.
    pub verb: Arc<str>,
    /// With what.
    pub target: CheckTarget,
}

/// A service account, by names that are valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceAccount {
    /// Its namespace, a DNS-1123 label.
    pub namespace: Arc<str>,
    /// Its name, a DNS-1123 subdomain.
    pub name: Arc<str>,
}

/// What a question is about. A path or a resource is never blank.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CheckTarget {
    /// A path that names no resource.
    Path(Arc<str>),
    /// A resource.
    Resource(Box<ResourceTarget>),
}

/// A resource that a question is about. Parts that are not set are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ResourceTarget {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The resource.
    pub resource: Arc<str>,
    /// The subresource.
    pub subresource: Arc<str>,
    /// The namespace; empty for the cluster.
    pub namespace: Arc<str>,
    /// The name of the object.
    pub name: Arc<str>,
    /// A field selector, as it was written.
    pub field_selector: Arc<str>,
    /// A label selector, as it was written.
    pub label_selector: Arc<str>,
}

impl ResourceTarget {
    /// How many octets of text it is.
    pub(crate) fn text_len(&self) -> usize {
        let Self { group, resource, subresource, namespace, name, field_selector, label_selector } =
            self;
        let parts = [group, resource, subresource, namespace, name, field_selector, label_selector];
        parts.iter().map(|part| part.len()).sum()
    }
}

/// What an authorizer answered. The default refuses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizerDecision {
    /// Whether it allows what was asked; no opinion does not.
    pub is_allowed: bool,
    /// Why; may be empty.
    pub reason: Arc<str>,
    /// What went wrong while deciding, if anything did.
    pub error: Option<Arc<str>>,
}

/// The answers that are known. A clone shares them, and an empty one takes no memory.
#[derive(Debug, Clone, Default)]
pub struct KnownDecisions {
    decisions: Option<Arc<HashMap<AuthorizerCheck, AuthorizerDecision>>>,
}

impl KnownDecisions {
    /// The answer to a question, if it is known.
    pub fn get(&self, question: &AuthorizerCheck) -> Option<&AuthorizerDecision> {
        self.decisions.as_ref()?.get(question)
    }

    /// Adds an answer. Clones that were made before do not learn of it.
    pub fn insert(&mut self, question: AuthorizerCheck, decision: AuthorizerDecision) {
        Arc::make_mut(self.decisions.get_or_insert_default()).insert(question, decision);
    }

    /// How many answers are known.
    pub fn len(&self) -> usize {
        self.decisions.as_ref().map_or(0, |known| known.len())
    }

    /// Whether no answer is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(verb: &str) -> AuthorizerCheck {
        AuthorizerCheck {
            service_account: None,
            verb: verb.into(),
            target: CheckTarget::Path("/x".into()),
        }
    }

    #[test]
    fn a_decision_that_nobody_filled_in_refuses() {
        assert!(!AuthorizerDecision::default().is_allowed);
    }

    #[test]
    fn clones_know_what_was_known_when_they_were_made() {
        let mut decisions = KnownDecisions::default();
        let before = decisions.clone();
        let allowed = AuthorizerDecision { is_allowed: true, ..AuthorizerDecision::default() };
        decisions.insert(question("get"), allowed.clone());
        let after = decisions.clone();
        decisions.insert(question("list"), AuthorizerDecision::default());
        assert_eq!((before.len(), after.len(), decisions.len()), (0, 1, 2));
        assert!(before.is_empty());
        assert_eq!(after.get(&question("get")), Some(&allowed));
        assert_eq!(after.get(&question("list")), None);
    }

    #[test]
    fn everything_that_was_asked_tells_questions_apart() {
        let mut decisions = KnownDecisions::default();
        let resource = |name: &str, label_selector: &str| {
            CheckTarget::Resource(Box::new(ResourceTarget {
                name: name.into(),
                label_selector: label_selector.into(),
                ..ResourceTarget::default()
            }))
        };
        let account = ServiceAccount { namespace: "a".into(), name: "b".into() };
        let plain = AuthorizerCheck { target: resource("n", ""), ..question("get") };
        decisions.insert(plain.clone(), AuthorizerDecision::default());
        for other in [
            AuthorizerCheck { service_account: Some(account), ..plain.clone() },
            AuthorizerCheck { verb: "list".into(), ..plain.clone() },
            AuthorizerCheck { target: resource("", "n"), ..plain.clone() },
            AuthorizerCheck { target: CheckTarget::Path("n".into()), ..plain.clone() },
        ] {
            assert_eq!(decisions.get(&other), None, "{other:?}");
        }
        assert!(decisions.get(&plain).is_some());
    }
}
