//! One hook and one request.
//!
//! Kubernetes asks the selectors first, then the rules, then the conditions, and drops errors of
//! selectors if no rule matches. Here rules come first, since an index answers them for all hooks at
//! once; the outcome is the same:
//! 1. No rule matches: not called ([`Hook::identify`]).
//! 2. A selector that can be evaluated says no: not called ([`Hook::select`]).
//! 3. The kind to present is not known: the request fails.
//! 4. A selector could not be evaluated: the request fails.
//! 5. Match conditions decide ([`Hook::check_conditions`]).

use api_object::{GroupResource, Status, Tree};

use super::rule::RuleTarget;
use crate::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation};
use crate::conditions::{ConditionInput, Conditions, Decisions, Question};
use crate::hook::{FailurePolicy, Hook, MatchPolicy};

/// As what a hook is told of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The resource that a rule named, which may be an equivalent one.
    pub resource: GroupVersionResource<'a>,
    /// The kind that goes with it. Objects are converted to it. `None` if the server knows of none.
    pub kind: Option<GroupVersionKind<'a>>,
}

/// What becomes of one hook for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consideration<'h> {
    /// Nothing speaks against calling it so far.
    Go,
    /// It is not called, and the request goes on.
    Skip(Skip<'h>),
    /// The request is refused without a call.
    Refuse(Status),
}

/// Why a hook whose rules match is not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip<'h> {
    /// The labels of the namespace.
    NamespaceSelector,
    /// The labels of the objects.
    ObjectSelector,
    /// A condition is false.
    Condition {
        /// Its name.
        name: &'h str,
    },
    /// Conditions could not be evaluated, and the hook ignores failures.
    ConditionError(String),
}

/// Under which of the names of its resource a request matches a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchedName {
    /// The resource of the request.
    Requested,
    /// The equivalent at this position of [`Attributes::equivalents`].
    Equivalent(usize),
}

impl MatchedName {
    /// Looks the name up in the attributes. Attributes of another request, with fewer equivalents, give no kind,
    /// so that [`Hook::select`] refuses the request.
    pub(crate) fn resolve<'a>(self, attributes: &Attributes<'a>) -> Identity<'a> {
        let Self::Equivalent(idx) = self else {
            return Identity { resource: attributes.resource, kind: Some(attributes.kind) };
        };
        match attributes.equivalents.get(idx) {
            Some(other) => Identity { resource: other.resource, kind: other.kind },
            None => Identity { resource: attributes.resource, kind: None },
        }
    }
}

impl Hook {
    /// Decides under which of its names a request matches a rule of the hook.
    ///
    /// 1. A rule that matches the requested resource wins, whatever the order of the rules.
    /// 2. With `matchPolicy: Exact`, nothing else matches.
    /// 3. The first rule that matches an equivalent resource decides; of several equivalents that it matches, the
    ///    one that was registered first.
    pub(crate) fn match_rules(&self, attributes: &Attributes<'_>) -> Option<MatchedName> {
        let target = attributes.rule_target();
        if self.rules.iter().any(|rule| rule.matches(&target)) {
            return Some(MatchedName::Requested);
        }
        if self.match_policy == MatchPolicy::Exact {
            return None;
        }
        let others = attributes.equivalents.iter().enumerate();
        let others = others.filter(|(_, other)| other.resource != attributes.resource);
        self.rules.iter().find_map(|rule| {
            let matches = |resource| rule.matches(&RuleTarget { resource, ..target });
            let (idx, _) = others.clone().find(|(_, other)| matches(other.resource))?;
            Some(MatchedName::Equivalent(idx))
        })
    }

    /// The resource and kind that the review for this hook has, if one of its rules matches.
    #[must_use]
    pub fn identify<'a>(&self, attributes: &Attributes<'a>) -> Option<Identity<'a>> {
        self.match_rules(attributes).map(|name| name.resolve(attributes))
    }

    /// Whether [`select`](Self::select) will look at the stored namespace, so that it is worth
    /// fetching.
    #[must_use]
    pub fn needs_namespace(&self, attributes: &Attributes<'_>) -> bool {
        let source = NamespaceSource::of(attributes);
        source == NamespaceSource::Stored
            && !self.namespace_selector.is_empty()
            && self.select_object(attributes) != Ok(false)
    }

    /// Evaluates the selectors for a request that a rule matches.
    ///
    /// `namespace` is the stored namespace of the request, `None` if there is no such namespace; it
    /// counts only where [`needs_namespace`](Self::needs_namespace) says so. In the mutating phase
    /// the object of `attributes` is the one as patched so far.
    #[must_use]
    pub fn select(
        &self,
        attributes: &Attributes<'_>,
        identity: &Identity<'_>,
        namespace: Option<&Tree>,
    ) -> Consideration<'_> {
        let by_namespace = self.select_namespace(attributes, namespace);
        if by_namespace == Ok(false) {
            return Consideration::Skip(Skip::NamespaceSelector);
        }
        let by_object = self.select_object(attributes);
        if by_object == Ok(false) {
            return Consideration::Skip(Skip::ObjectSelector);
        }
        if identity.kind.is_none() {
            let resource = identity.resource;
            let cause = format!("unable to convert to {resource}: unknown kind");
            return Consideration::Refuse(Status::internal(&cause));
        }
        match by_namespace.and(by_object) {
            Ok(_) => Consideration::Go,
            Err(status) => Consideration::Refuse(status),
        }
    }

    /// Lets the match conditions decide about a request that rules and selectors chose, with what
    /// the authorizer has answered so far; `None` if there is nobody to ask.
    ///
    /// # Errors
    /// A question for the authorizer, see [`MatchConditions::evaluate`](crate::MatchConditions).
    pub fn check_conditions(
        &self,
        attributes: &Attributes<'_>,
        input: &ConditionInput<'_>,
        decisions: Option<&Decisions>,
    ) -> Result<Consideration<'_>, Box<Question>> {
        Ok(match self.conditions.evaluate(input, decisions)? {
            Conditions::Hold => Consideration::Go,
            Conditions::Exclude { condition } => {
                Consideration::Skip(Skip::Condition { name: condition })
            }
            Conditions::Fail(cause) => match self.failure_policy {
                FailurePolicy::Ignore => Consideration::Skip(Skip::ConditionError(cause)),
                FailurePolicy::Fail => {
                    let GroupVersionResource { group, resource, .. } = attributes.resource;
                    let resource = GroupResource::new(group, resource);
                    Consideration::Refuse(Status::forbidden(&resource, attributes.name, &cause))
                }
            },
        })
    }

    fn select_namespace(
        &self,
        attributes: &Attributes<'_>,
        stored: Option<&Tree>,
    ) -> Result<bool, Status> {
        let source = NamespaceSource::of(attributes);
        if source == NamespaceSource::None || self.namespace_selector.is_empty() {
            return Ok(true);
        }
        let namespace = match source {
            NamespaceSource::Object => attributes.object,
            NamespaceSource::Stored | NamespaceSource::None => stored,
        };
        let missing = || {
            let namespaces = GroupResource::new("", "namespaces");
            Status::not_found(&namespaces, attributes.namespace)
        };
        let selected = self.namespace_selector.selects(&[namespace]);
        match (selected, namespace) {
            (Err(cause), _) => Err(Status::internal(cause)),
            (Ok(_), None) => Err(missing()),
            (Ok(is_selected), Some(_)) => Ok(is_selected),
        }
    }

    fn select_object(&self, attributes: &Attributes<'_>) -> Result<bool, Status> {
        let objects = [attributes.object, attributes.old_object];
        self.object_selector.selects(&objects).map_err(Status::internal)
    }
}

/// Whose labels a namespace selector looks at (admission §3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamespaceSource {
    /// Nobody's: the request is for the whole cluster, and every selector matches.
    None,
    /// The new state of the Namespace that the request writes.
    Object,
    /// The stored namespace.
    Stored,
}

impl NamespaceSource {
    fn of(attributes: &Attributes<'_>) -> Self {
        let is_namespace = attributes.resource.resource == "namespaces";
        let is_written = matches!(attributes.operation, Operation::Create | Operation::Update);
        match (is_namespace, attributes.namespace) {
            (true, _) if attributes.subresource.is_empty() && is_written => Self::Object,
            (false, "") => Self::None,
            (_, _) => Self::Stored,
        }
    }
}
