//! The questions of match conditions to the authorizer, and its decisions.

use authz::{
    Attributes, Decision, FieldRequirement, LabelRequirement, Namespace, Resource, Selector,
    Target, User, Verb, Verdict, parse_field_selector, parse_label_selector,
};
use cel::AuthorizerCheckTarget;

/// A question that the authorizer must answer before a condition can be evaluated further.
#[derive(Debug, Clone)]
pub struct PendingAuthorizerCheck {
    cel_check: cel::AuthorizerCheck,
    /// The service account that the question is about; `None` for the user of the request.
    service_account: Option<User>,
    field_selector: Option<Selector<FieldRequirement>>,
    label_selector: Option<Selector<LabelRequirement>>,
}

impl PendingAuthorizerCheck {
    pub(super) fn new(cel_check: cel::AuthorizerCheck) -> Self {
        let service_account = cel_check.service_account.as_ref().map(service_account_user);
        let (fields, labels) = match &cel_check.check_target {
            AuthorizerCheckTarget::Path(_) => ("", ""),
            AuthorizerCheckTarget::Resource(target) => {
                (&*target.field_selector, &*target.label_selector)
            }
        };
        let field_selector = Selector::from_selector_parse_result(parse_field_selector(fields));
        let label_selector = Selector::from_selector_parse_result(parse_label_selector(labels));
        Self { cel_check, service_account, field_selector, label_selector }
    }

    /// Converts the question into the attributes that authorizers decide about. `requester` is the user of the request.
    #[must_use]
    pub fn to_authorization_attributes<'a>(
        &'a self,
        requester: Option<&'a User>,
    ) -> Attributes<'a> {
        let target = match &self.cel_check.check_target {
            AuthorizerCheckTarget::Path(path) => Target::Path(path),
            AuthorizerCheckTarget::Resource(target) => Target::Resource(Resource {
                path: "",
                api_group: &target.group,
                api_version: "*",
                namespace: Namespace::new(&target.namespace),
                resource: &target.resource,
                subresource: &target.subresource,
                name: &target.name,
                field_selector: self.field_selector.as_ref(),
                label_selector: self.label_selector.as_ref(),
            }),
        };
        Attributes {
            user: self.service_account.as_ref().or(requester),
            verb: Verb::new(&self.cel_check.verb),
            target,
        }
    }
}

/// The user that authentication gives for a service account.
fn service_account_user(account: &cel::ServiceAccount) -> User {
    let cel::ServiceAccount { namespace, name } = account;
    User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ],
        ..User::default()
    }
}

/// The decisions of the authorizer for the match conditions of one request.
///
/// Questions do not contain the user of the request, so decisions must not be used for another request. The number of
/// decisions is at most [`AUTHORIZER_CHECKS_MAX`](crate::AUTHORIZER_CHECKS_MAX) for each evaluation of the conditions of a hook.
#[derive(Debug, Clone, Default)]
pub struct AuthorizerDecisions(pub(super) cel::KnownDecisions);

impl AuthorizerDecisions {
    /// Records a decision.
    ///
    /// Only `Allow` counts as allowed: no opinion, with or without an error, does not. If the decision is unavailable
    /// because of this server, the caller refuses the request instead.
    pub fn record_decision(&mut self, question: PendingAuthorizerCheck, decision: &Decision) {
        let decision = cel::AuthorizerDecision {
            is_allowed: match decision.verdict {
                Verdict::Allow => true,
                Verdict::Deny | Verdict::NoOpinion | Verdict::Unavailable(_) => false,
            },
            reason: decision.reason.to_string().into(),
            error: decision.error.as_ref().map(|error| error.to_string().into()),
        };
        self.0.insert(question.cel_check, decision);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cel::ResourceCheckTarget;

    use super::*;

    fn question(target: AuthorizerCheckTarget) -> cel::AuthorizerCheck {
        cel::AuthorizerCheck { service_account: None, verb: "list".into(), check_target: target }
    }

    fn resource(change: fn(&mut ResourceCheckTarget)) -> cel::AuthorizerCheck {
        let mut target =
            ResourceCheckTarget { resource: "pods".into(), ..ResourceCheckTarget::default() };
        change(&mut target);
        question(AuthorizerCheckTarget::Resource(Box::new(target)))
    }

    #[test]
    fn checks_become_authorization_attributes() {
        let asked = resource(|target| {
            target.group = "g".into();
            target.subresource = "s".into();
            target.namespace = "ns".into();
            target.name = "n".into();
        });
        let question = PendingAuthorizerCheck::new(asked);
        let user = User { name: "ana".to_owned(), ..User::default() };
        let attributes = question.to_authorization_attributes(Some(&user));
        assert_eq!((attributes.user, attributes.verb), (Some(&user), Verb::LIST));
        let found = attributes.resource().unwrap();
        assert_eq!((found.api_group, found.api_version, found.resource), ("g", "*", "pods"));
        assert_eq!(
            (found.subresource, found.namespace, found.name),
            ("s", Namespace::new("ns"), "n")
        );
        assert!(found.field_selector.is_none() && found.label_selector.is_none());
        assert!(question.to_authorization_attributes(None).user.is_none());
    }

    #[test]
    fn path_checks_have_no_resource() {
        let question = PendingAuthorizerCheck::new(question(AuthorizerCheckTarget::Path(
            Arc::from("healthz"),
        )));
        let attributes = question.to_authorization_attributes(None);
        assert!(attributes.resource().is_none());
        assert_eq!(attributes.path(), "healthz");
    }

    #[test]
    fn selectors_that_do_not_parse_do_not_narrow() {
        let asked = resource(|target| {
            target.field_selector = "a=b,c!=d".into();
            target.label_selector = "x in (".into();
        });
        let question = PendingAuthorizerCheck::new(asked);
        let attributes = question.to_authorization_attributes(None);
        let found = attributes.resource().unwrap();
        assert_eq!(found.field_requirements().len(), 2);
        assert!(found.label_requirements().is_empty());
        assert!(found.label_selector.unwrap().error.is_some());
    }

    #[test]
    fn service_account_checks_replace_the_user() {
        let account = cel::ServiceAccount { namespace: "ns".into(), name: "robot".into() };
        let asked = cel::AuthorizerCheck { service_account: Some(account), ..resource(|_| {}) };
        let question = PendingAuthorizerCheck::new(asked);
        let user = User { name: "ana".to_owned(), ..User::default() };
        let found = question.to_authorization_attributes(Some(&user)).user.unwrap();
        assert_eq!(found.name, "system:serviceaccount:ns:robot");
        assert_eq!(found.groups, ["system:serviceaccounts", "system:serviceaccounts:ns"]);
        assert!(found.uid.is_empty() && found.extra.is_empty());
    }

    #[test]
    fn only_allow_counts_as_allowed() {
        for (decision, want) in [
            (Decision::allow("r"), (true, "r", None)),
            (Decision::deny("r"), (false, "r", None)),
            (Decision::no_opinion("r"), (false, "r", None)),
            (
                Decision::no_opinion("").with_error(authz::EvaluationErrors::message("down")),
                (false, "", Some("down")),
            ),
            (Decision::default(), (false, "", None)),
        ] {
            let asked = resource(|_| {});
            let mut decisions = AuthorizerDecisions::default();
            decisions.record_decision(PendingAuthorizerCheck::new(asked.clone()), &decision);
            let known = decisions.0.get(&asked).unwrap();
            let found = (known.is_allowed, &*known.reason, known.error.as_deref());
            assert_eq!(found, want, "{decision:?}");
        }
    }
}
