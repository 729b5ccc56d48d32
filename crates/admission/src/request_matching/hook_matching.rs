//! Decides whether one hook is called for one request.
//!
//! Kubernetes evaluates selectors first, then rules, then match conditions, and drops errors of selectors if no rule
//! matches. Portcullis begins with the rules, because an index evaluates them for all hooks at once. The result is the
//! same:
//! 1. If no rule matches, the hook is not called ([`Hook::match_resource`]).
//! 2. If a valid selector does not match, the hook is not called ([`Hook::evaluate_selectors`]).
//! 3. If the kind that the review needs is not known, the request is refused.
//! 4. If a selector is invalid, the request is refused.
//! 5. The match conditions decide ([`Hook::evaluate_conditions`]).

use api_object::{GroupResource, Tree};

use super::label_selector::LabelSelectorError;
use super::rule::RuleTarget;
use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation};
use crate::hook::{FailurePolicy, Hook, MatchPolicy};
use crate::match_conditions::{
    AuthorizerDecisions, ConditionVariables, MatchConditionsResult, PendingAuthorizerCheck,
};

/// The resource and kind of the review for a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchedResource<'a> {
    /// The resource that a rule matched: the requested one or an equivalent.
    pub resource: GroupVersionResource<'a>,
    /// The kind of that resource, to which objects are converted. `None` if the server has no such kind.
    pub kind: Option<GroupVersionKind<'a>>,
}

/// Whether one hook is called for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallDecision<'h> {
    /// The hook is called, unless a later step decides otherwise.
    Call,
    /// The hook is not called, and the request continues.
    Skip(SkipCause<'h>),
    /// The request is refused without a call.
    Refuse(HookSelectionError),
}

/// The reason why a request is refused before a hook is called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookSelectionError {
    /// The server does not know the kind that the review for the hook must have.
    #[error("unable to convert to {resource}: unknown kind")]
    UnknownKind {
        /// The resource that the rules of the hook match, as `group/version, Resource=plural`.
        resource: String,
    },
    /// A stored selector of the hook is invalid.
    #[error(transparent)]
    InvalidSelector(LabelSelectorError),
    /// The hook selects by the labels of a namespace that does not exist.
    #[error("namespaces {} not found", go_compat::quote(.0))]
    NamespaceNotFound(String),
    /// The match conditions of the hook cannot be evaluated, and its failure policy is `Fail`.
    #[error("{cause}")]
    ConditionsFailed {
        /// The resource that the request names.
        resource: GroupResource,
        /// The name of the requested object; may be empty.
        name: String,
        /// The reason why the conditions cannot be evaluated.
        cause: String,
    },
}

/// The reason why a hook whose rules match is not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipCause<'h> {
    /// The namespace selector does not match.
    NamespaceSelector,
    /// The object selector does not match.
    ObjectSelector,
    /// A match condition is false.
    Condition {
        /// The name of the condition.
        name: &'h str,
    },
    /// The evaluation of a match condition failed, and the failure policy of the hook is `Ignore`.
    ConditionError(String),
}

/// The name of the requested resource that a rule matched: the name in the request, or that of an
/// equivalent resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchedResourceName {
    /// The resource of the request.
    Requested,
    /// The equivalent at this position of [`Attributes::equivalent_resources`].
    Equivalent(usize),
}

impl MatchedResourceName {
    /// Looks the name up in the attributes. Attributes of another request, with fewer equivalents, give no kind,
    /// so that [`Hook::evaluate_selectors`] refuses the request.
    pub(crate) fn to_matched_resource<'a>(
        self,
        attributes: &Attributes<'a>,
    ) -> MatchedResource<'a> {
        let Self::Equivalent(idx) = self else {
            return MatchedResource { resource: attributes.resource, kind: Some(attributes.kind) };
        };
        match attributes.equivalent_resources.get(idx) {
            Some(other) => MatchedResource { resource: other.resource, kind: other.kind },
            None => MatchedResource { resource: attributes.resource, kind: None },
        }
    }
}

impl Hook {
    /// Finds the name of the requested resource under which the request matches a rule of the hook.
    ///
    /// 1. A rule that matches the requested resource wins, whatever the order of the rules.
    /// 2. With `matchPolicy: Exact`, nothing else matches.
    /// 3. The first rule that matches an equivalent resource decides; of several equivalents that it matches, the
    ///    one that was registered first.
    pub(crate) fn match_rules(&self, attributes: &Attributes<'_>) -> Option<MatchedResourceName> {
        let target = attributes.rule_target();
        if self.rules.iter().any(|rule| rule.matches(&target)) {
            return Some(MatchedResourceName::Requested);
        }
        if self.match_policy == MatchPolicy::Exact {
            return None;
        }
        let others = attributes.equivalent_resources.iter().enumerate();
        let others = others.filter(|(_, other)| other.resource != attributes.resource);
        self.rules.iter().find_map(|rule| {
            let matches = |resource| rule.matches(&RuleTarget { resource, ..target });
            let (idx, _) = others.clone().find(|(_, other)| matches(other.resource))?;
            Some(MatchedResourceName::Equivalent(idx))
        })
    }

    /// Returns the resource and kind of the review for this hook, if one of its rules matches.
    #[must_use]
    pub fn match_resource<'a>(&self, attributes: &Attributes<'a>) -> Option<MatchedResource<'a>> {
        self.match_rules(attributes).map(|name| name.to_matched_resource(attributes))
    }

    /// Reports whether [`evaluate_selectors`](Self::evaluate_selectors) reads the stored namespace, so that the
    /// caller has to fetch it.
    #[must_use]
    pub fn needs_stored_namespace(&self, attributes: &Attributes<'_>) -> bool {
        let source = NamespaceLabelsSource::for_request(attributes);
        source == NamespaceLabelsSource::Stored
            && !self.namespace_selector.is_empty()
            && self.object_selector_matches(attributes) != Ok(false)
    }

    /// Evaluates the selectors for a request that a rule matches.
    ///
    /// `namespace` is the stored namespace of the request, `None` if there is no such namespace. It is used only if
    /// [`needs_stored_namespace`](Self::needs_stored_namespace). In the mutating phase, the object of `attributes` has the
    /// patches of the hooks before.
    #[must_use]
    pub fn evaluate_selectors(
        &self,
        attributes: &Attributes<'_>,
        matched_resource: &MatchedResource<'_>,
        namespace: Option<&Tree>,
    ) -> CallDecision<'_> {
        let by_namespace = self.namespace_selector_matches(attributes, namespace);
        if by_namespace == Ok(false) {
            return CallDecision::Skip(SkipCause::NamespaceSelector);
        }
        let by_object = self.object_selector_matches(attributes);
        if by_object == Ok(false) {
            return CallDecision::Skip(SkipCause::ObjectSelector);
        }
        if matched_resource.kind.is_none() {
            let resource = matched_resource.resource.to_string();
            return CallDecision::Refuse(HookSelectionError::UnknownKind { resource });
        }
        match by_namespace.and(by_object) {
            Ok(_) => CallDecision::Call,
            Err(error) => CallDecision::Refuse(error),
        }
    }

    /// Evaluates the match conditions for a request that rules and selectors match. `decisions` are the decisions of the
    /// authorizer so far; `None` if there is no authorizer.
    ///
    /// # Errors
    /// A question for the authorizer, see [`MatchConditions::evaluate`](crate::MatchConditions).
    pub fn evaluate_conditions(
        &self,
        attributes: &Attributes<'_>,
        input: &ConditionVariables<'_>,
        decisions: Option<&AuthorizerDecisions>,
    ) -> Result<CallDecision<'_>, Box<PendingAuthorizerCheck>> {
        Ok(match self.match_conditions.evaluate_conditions(input, decisions)? {
            MatchConditionsResult::Hold => CallDecision::Call,
            MatchConditionsResult::Exclude { condition } => {
                CallDecision::Skip(SkipCause::Condition { name: condition })
            }
            MatchConditionsResult::Fail(cause) => match self.failure_policy {
                FailurePolicy::Ignore => CallDecision::Skip(SkipCause::ConditionError(cause)),
                FailurePolicy::Fail => {
                    let GroupVersionResource { group, resource, .. } = attributes.resource;
                    CallDecision::Refuse(HookSelectionError::ConditionsFailed {
                        resource: GroupResource::new(group, resource),
                        name: attributes.name.to_owned(),
                        cause,
                    })
                }
            },
        })
    }

    fn namespace_selector_matches(
        &self,
        attributes: &Attributes<'_>,
        stored: Option<&Tree>,
    ) -> Result<bool, HookSelectionError> {
        let source = NamespaceLabelsSource::for_request(attributes);
        if source == NamespaceLabelsSource::None || self.namespace_selector.is_empty() {
            return Ok(true);
        }
        let namespace = match source {
            NamespaceLabelsSource::Object => attributes.object,
            NamespaceLabelsSource::Stored | NamespaceLabelsSource::None => stored,
        };
        let missing = || HookSelectionError::NamespaceNotFound(attributes.namespace.to_owned());
        let selected = self.namespace_selector.selects_any(&[namespace]);
        match (selected, namespace) {
            (Err(error), _) => Err(HookSelectionError::InvalidSelector(error.clone())),
            (Ok(_), None) => Err(missing()),
            (Ok(is_selected), Some(_)) => Ok(is_selected),
        }
    }

    fn object_selector_matches(
        &self,
        attributes: &Attributes<'_>,
    ) -> Result<bool, HookSelectionError> {
        let objects = [attributes.object, attributes.old_object];
        let selected = self.object_selector.selects_any(&objects);
        selected.map_err(|error| HookSelectionError::InvalidSelector(error.clone()))
    }
}

/// The labels that a namespace selector is evaluated against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamespaceLabelsSource {
    /// There are no labels: the resource is cluster-scoped, and every namespace selector matches.
    None,
    /// The labels of the Namespace object that the request writes.
    Object,
    /// The labels of the stored namespace.
    Stored,
}

impl NamespaceLabelsSource {
    fn for_request(attributes: &Attributes<'_>) -> Self {
        let is_namespace = attributes.resource.resource == "namespaces";
        let is_written = matches!(attributes.operation, Operation::Create | Operation::Update);
        match (is_namespace, attributes.namespace) {
            (true, _) if attributes.subresource.is_empty() && is_written => Self::Object,
            (false, "") => Self::None,
            (_, _) => Self::Stored,
        }
    }
}
