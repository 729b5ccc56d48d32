//! Requests that hooks and initializers never see.

use crate::attributes::{Attributes, GroupVersionKind};

/// The reason why a request is not subject to hooks and initializers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exemption {
    /// The request changes the configuration of admission. No hook applies, so that an administrator can always
    /// repair a broken configuration.
    Configuration,
    /// The request is a review, which is not stored.
    Review,
}

const CONFIGURATION_GROUP: &str = "admissionregistration.k8s.io";

const CONFIGURATION_KINDS: [&str; 8] = [
    "InitializerConfiguration",
    "ExternalAdmissionHookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// The reviews, as (group, resource).
const REVIEWS: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Reports whether a kind configures admission. The group and the kind decide, in every version and for every
/// subresource; the name of the resource does not.
#[must_use]
pub fn is_admission_configuration(kind: &GroupVersionKind<'_>) -> bool {
    kind.group == CONFIGURATION_GROUP && CONFIGURATION_KINDS.contains(&kind.kind)
}

/// Reports whether a resource is a review.
pub(crate) fn is_review_group_and_resource(group: &str, resource: &str) -> bool {
    REVIEWS.contains(&(group, resource))
}

/// Reports whether a review kind is in this group.
pub(crate) fn is_review_group(group: &str) -> bool {
    REVIEWS.iter().any(|(own, _)| *own == group)
}

/// Reports whether a review kind has this resource name.
pub(crate) fn is_review_resource(resource: &str) -> bool {
    REVIEWS.iter().any(|(_, own)| *own == resource)
}

impl Attributes<'_> {
    /// Returns the reason why hooks and initializers do not apply to the request; `None` if they apply.
    #[must_use]
    pub fn exemption(&self) -> Option<Exemption> {
        if is_admission_configuration(&self.kind) {
            Some(Exemption::Configuration)
        } else if is_review_group_and_resource(self.resource.group, self.resource.resource) {
            Some(Exemption::Review)
        } else {
            None
        }
    }
}
