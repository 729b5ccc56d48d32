//! The kinds of reviews, with their API groups, versions and resources.

/// The API group of the reviews that Kubernetes does not have.
pub const PORTCULLIS_GROUP: &str = "authorization.portcullis.io";

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";
const LEGACY_VERSIONS: [&str; 4] = ["v1beta1", "v1beta2", "v1beta3", "v1"];

/// A kind of access review that clients can create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewKind {
    /// Reports whether a user may do something.
    SubjectAccessReview,
    /// Reports whether a user may do something in one namespace.
    LocalSubjectAccessReview,
    /// Reports whether the caller may do something.
    SelfSubjectAccessReview,
    /// Lists the rules of the caller in a namespace.
    SelfSubjectRulesReview,
    /// Returns the user attributes of the caller.
    SelfSubjectReview,
    /// Lists the subjects that may do something.
    ResourceAccessReview,
    /// Lists the subjects that may do something in one namespace.
    LocalResourceAccessReview,
    /// Lists subjects, in the form of the first proposal.
    LegacyResourceAccessReview,
    /// Reports whether a user may do something, with a trace of the decision.
    ///
    /// A user who may `create` these sees every role, binding and policy that the decision uses.
    SubjectAccessExplanation,
}

impl ReviewKind {
    /// Every kind of review.
    pub const ALL: [Self; 9] = [
        Self::SubjectAccessReview,
        Self::LocalSubjectAccessReview,
        Self::SelfSubjectAccessReview,
        Self::SelfSubjectRulesReview,
        Self::SelfSubjectReview,
        Self::ResourceAccessReview,
        Self::LocalResourceAccessReview,
        Self::LegacyResourceAccessReview,
        Self::SubjectAccessExplanation,
    ];

    /// The review that is created by a request for this resource.
    pub fn from_resource(api_group: &str, api_version: &str, resource: &str) -> Option<Self> {
        let found = Self::ALL
            .into_iter()
            .find(|kind| kind.group() == api_group && kind.plural_resource_name() == resource)?;
        found.served_versions().contains(&api_version).then_some(found)
    }

    /// The `kind` of the review's objects.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SubjectAccessReview => "SubjectAccessReview",
            Self::LocalSubjectAccessReview => "LocalSubjectAccessReview",
            Self::SelfSubjectAccessReview => "SelfSubjectAccessReview",
            Self::SelfSubjectRulesReview => "SelfSubjectRulesReview",
            Self::SelfSubjectReview => "SelfSubjectReview",
            Self::ResourceAccessReview | Self::LegacyResourceAccessReview => "ResourceAccessReview",
            Self::LocalResourceAccessReview => "LocalResourceAccessReview",
            Self::SubjectAccessExplanation => "SubjectAccessExplanation",
        }
    }

    /// The API group of the review; empty for the core group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::SubjectAccessReview
            | Self::LocalSubjectAccessReview
            | Self::SelfSubjectAccessReview
            | Self::SelfSubjectRulesReview => AUTHORIZATION,
            Self::SelfSubjectReview => AUTHENTICATION,
            Self::LegacyResourceAccessReview => "",
            Self::ResourceAccessReview
            | Self::LocalResourceAccessReview
            | Self::SubjectAccessExplanation => PORTCULLIS_GROUP,
        }
    }

    /// The versions in which the server serves the review.
    pub const fn served_versions(self) -> &'static [&'static str] {
        match self {
            Self::SubjectAccessReview
            | Self::LocalSubjectAccessReview
            | Self::SelfSubjectAccessReview
            | Self::SelfSubjectRulesReview => &["v1", "v1beta1"],
            Self::SelfSubjectReview => &["v1"],
            Self::LegacyResourceAccessReview => &LEGACY_VERSIONS,
            Self::ResourceAccessReview
            | Self::LocalResourceAccessReview
            | Self::SubjectAccessExplanation => &["v1alpha1"],
        }
    }

    /// The plural name of the resource, as paths contain it.
    pub const fn plural_resource_name(self) -> &'static str {
        match self {
            Self::SubjectAccessReview => "subjectaccessreviews",
            Self::LocalSubjectAccessReview => "localsubjectaccessreviews",
            Self::SelfSubjectAccessReview => "selfsubjectaccessreviews",
            Self::SelfSubjectRulesReview => "selfsubjectrulesreviews",
            Self::SelfSubjectReview => "selfsubjectreviews",
            Self::ResourceAccessReview | Self::LegacyResourceAccessReview => {
                "resourceaccessreviews"
            }
            Self::LocalResourceAccessReview => "localresourceaccessreviews",
            Self::SubjectAccessExplanation => "subjectaccessexplanations",
        }
    }

    /// Reports whether clients post the review to a namespace.
    pub const fn is_namespaced(self) -> bool {
        match self {
            Self::LocalSubjectAccessReview
            | Self::LocalResourceAccessReview
            | Self::LegacyResourceAccessReview => true,
            Self::SubjectAccessReview
            | Self::SelfSubjectAccessReview
            | Self::SelfSubjectRulesReview
            | Self::SelfSubjectReview
            | Self::ResourceAccessReview
            | Self::SubjectAccessExplanation => false,
        }
    }

    /// The `apiVersion` of the review's objects in this version.
    pub(crate) fn api_version(self, version: &str) -> String {
        match self.group() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_are_found_by_group_version_and_resource() {
        for kind in ReviewKind::ALL {
            for version in kind.served_versions() {
                assert_eq!(
                    ReviewKind::from_resource(kind.group(), version, kind.plural_resource_name()),
                    Some(kind)
                );
            }
            assert_eq!(
                ReviewKind::from_resource(kind.group(), "v9", kind.plural_resource_name()),
                None
            );
            assert_eq!(ReviewKind::from_resource("apps", "v1", kind.plural_resource_name()), None);
        }
        assert_eq!(ReviewKind::from_resource("", "v1beta3", "pods"), None);
    }
}
