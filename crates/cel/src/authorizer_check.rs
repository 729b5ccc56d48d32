//! Authorization checks of expressions, and the decisions that are already known.
//!
//! Evaluation is synchronous and pure, while an authorizer may call a remote service. So the host
//! passes the decisions that it already has. An evaluation that needs another decision ends with
//! [`EvalError::NeedsDecision`](crate::EvalError::NeedsDecision) and the check; the host authorizes
//! it, adds the decision and evaluates again. A check costs so much that only two fit into the cost
//! limit, so there are few rounds.

use std::collections::HashMap;
use std::sync::Arc;

/// One authorization check: may the subject use this verb on this target?
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuthorizerCheck {
    /// The service account to check; `None` for the user of the request.
    pub service_account: Option<ServiceAccount>,
    /// The verb of the request attributes.
    pub verb: Arc<str>,
    /// The resource or the path.
    pub check_target: AuthorizerCheckTarget,
}

/// A service account whose names have been validated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceAccount {
    /// The namespace of the service account, a DNS-1123 label.
    pub namespace: Arc<str>,
    /// The name of the service account, a DNS-1123 subdomain.
    pub name: Arc<str>,
}

/// The target of a check. Neither a path nor a resource name is blank.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AuthorizerCheckTarget {
    /// A path that is not a resource, from `authorizer.path()`.
    Path(Arc<str>),
    /// A resource, from `authorizer.group().resource()`.
    Resource(Box<ResourceCheckTarget>),
}

/// The resource attributes of a check. Attributes that are not set are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ResourceCheckTarget {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The plural name of the resource.
    pub resource: Arc<str>,
    /// The subresource, such as `status`.
    pub subresource: Arc<str>,
    /// The namespace; empty for cluster-scoped requests.
    pub namespace: Arc<str>,
    /// The name of the object.
    pub name: Arc<str>,
    /// A field selector, as it was written.
    pub field_selector: Arc<str>,
    /// A label selector, as it was written.
    pub label_selector: Arc<str>,
}

impl ResourceCheckTarget {
    /// The number of bytes of all texts.
    pub(crate) fn approx_text_len(&self) -> usize {
        let Self { group, resource, subresource, namespace, name, field_selector, label_selector } =
            self;
        let parts = [group, resource, subresource, namespace, name, field_selector, label_selector];
        parts.iter().map(|part| part.len()).sum()
    }
}

/// The decision of an authorizer. The default denies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizerDecision {
    /// Whether the authorizer allows the check; no opinion counts as not allowed.
    pub is_allowed: bool,
    /// The reason of the decision; may be empty.
    pub reason: Arc<str>,
    /// The error that the authorizer reported, if any.
    pub error: Option<Arc<str>>,
}

/// The decisions that are already known, by check. Cloning is cheap, and an empty value does not
/// allocate.
#[derive(Debug, Clone, Default)]
pub struct KnownDecisions {
    decisions_by_check: Option<Arc<HashMap<AuthorizerCheck, AuthorizerDecision>>>,
}

impl KnownDecisions {
    /// The decision for a check, if it is known.
    pub fn get(&self, check: &AuthorizerCheck) -> Option<&AuthorizerDecision> {
        self.decisions_by_check.as_ref()?.get(check)
    }

    /// Adds a decision. Earlier clones are not affected.
    pub fn insert(&mut self, check: AuthorizerCheck, decision: AuthorizerDecision) {
        Arc::make_mut(self.decisions_by_check.get_or_insert_default()).insert(check, decision);
    }

    /// The number of known decisions.
    pub fn len(&self) -> usize {
        self.decisions_by_check.as_ref().map_or(0, |known| known.len())
    }

    /// Reports whether no decision is known.
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
            check_target: AuthorizerCheckTarget::Path("/x".into()),
        }
    }

    #[test]
    fn the_default_decision_denies() {
        assert!(!AuthorizerDecision::default().is_allowed);
    }

    #[test]
    fn a_clone_does_not_see_later_decisions() {
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
    fn every_attribute_is_part_of_the_key() {
        let mut decisions = KnownDecisions::default();
        let resource = |name: &str, label_selector: &str| {
            AuthorizerCheckTarget::Resource(Box::new(ResourceCheckTarget {
                name: name.into(),
                label_selector: label_selector.into(),
                ..ResourceCheckTarget::default()
            }))
        };
        let account = ServiceAccount { namespace: "a".into(), name: "b".into() };
        let plain = AuthorizerCheck { check_target: resource("n", ""), ..question("get") };
        decisions.insert(plain.clone(), AuthorizerDecision::default());
        for other in [
            AuthorizerCheck { service_account: Some(account), ..plain.clone() },
            AuthorizerCheck { verb: "list".into(), ..plain.clone() },
            AuthorizerCheck { check_target: resource("", "n"), ..plain.clone() },
            AuthorizerCheck {
                check_target: AuthorizerCheckTarget::Path("n".into()),
                ..plain.clone()
            },
        ] {
            assert_eq!(decisions.get(&other), None, "{other:?}");
        }
        assert!(decisions.get(&plain).is_some());
    }
}
