//! The question that a review asks: may this user perform this verb on this target?

use std::borrow::Cow;

use authz::{
    Attributes, EvaluationErrors, FieldRequirement, LabelRequirement, Namespace, Resource,
    Selector, Target, User, Verb,
};

/// The question of a review. It owns or borrows the values that [`Attributes`] refer to, and borrows from
/// the line where possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessQuestion<'a> {
    /// The user of the question, with exactly the groups that the review lists.
    pub user: User,
    /// The verb of the request.
    pub verb: Cow<'a, str>,
    /// The target of the verb.
    pub target: AccessTarget<'a>,
}

/// A question is about a resource or about a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one question is asked at a time, and most are large"
)]
pub enum AccessTarget<'a> {
    /// A request for an API resource.
    Resource(ResourceTarget<'a>),
    /// A request for a URL path such as `/healthz`.
    Path(Cow<'a, str>),
}

/// The resource that a question is about. Parts that are not named are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceTarget<'a> {
    /// The API group; empty for the core group.
    pub api_group: Cow<'a, str>,
    /// The version; `*` if none is named.
    pub api_version: Cow<'a, str>,
    /// The namespace; empty for the cluster and for all namespaces together.
    pub namespace: Cow<'a, str>,
    /// The plural resource name, such as `pods`.
    pub resource: Cow<'a, str>,
    /// The subresource name, such as `log`.
    pub subresource: Cow<'a, str>,
    /// The name of the object.
    pub name: Cow<'a, str>,
    /// The parsed part of the field selector.
    pub field_selector: Option<Selector<FieldRequirement>>,
    /// The parsed part of the label selector.
    pub label_selector: Option<Selector<LabelRequirement>>,
}

impl AccessQuestion<'_> {
    /// Converts the question to the attributes that authorizers take.
    pub fn attributes(&self) -> Attributes<'_> {
        let target = match &self.target {
            AccessTarget::Resource(resource) => Target::Resource(Resource {
                path: "",
                api_group: &resource.api_group,
                api_version: &resource.api_version,
                namespace: Namespace::new(&resource.namespace),
                resource: &resource.resource,
                subresource: &resource.subresource,
                name: &resource.name,
                field_selector: resource.field_selector.as_ref(),
                label_selector: resource.label_selector.as_ref(),
            }),
            AccessTarget::Path(path) => Target::Path(path),
        };
        Attributes { user: Some(&self.user), verb: Verb::new(&self.verb), target }
    }

    /// Copies all borrowed values, so that the question can outlive the text it was read from.
    pub fn into_owned(self) -> AccessQuestion<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let target = match self.target {
            AccessTarget::Path(path) => AccessTarget::Path(owned(path)),
            AccessTarget::Resource(resource) => AccessTarget::Resource(ResourceTarget {
                api_group: owned(resource.api_group),
                api_version: owned(resource.api_version),
                namespace: owned(resource.namespace),
                resource: owned(resource.resource),
                subresource: owned(resource.subresource),
                name: owned(resource.name),
                field_selector: resource.field_selector,
                label_selector: resource.label_selector,
            }),
        };
        AccessQuestion { user: self.user, verb: owned(self.verb), target }
    }

    /// The `evaluationError` of the response: errors of the decision, then ignored parts of the
    /// selectors. `None` if there is neither.
    pub fn evaluation_error(&self, failure: Option<&EvaluationErrors>) -> Option<String> {
        let mut parts: Vec<String> = failure.map(ToString::to_string).into_iter().collect();
        if let AccessTarget::Resource(resource) = &self.target {
            parts.extend(ignored_selector_message(
                "fieldSelector",
                resource.field_selector.as_ref(),
            ));
            parts.extend(ignored_selector_message(
                "labelSelector",
                resource.label_selector.as_ref(),
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn ignored_selector_message<R>(name: &str, selector: Option<&Selector<R>>) -> Option<String> {
    let selector = selector.filter(|selector| selector.error.is_some())?;
    let how = if selector.requirements.is_empty() { "ignored" } else { "partially ignored" };
    Some(format!("spec.resourceAttributes.{name} {how} due to parse error"))
}
