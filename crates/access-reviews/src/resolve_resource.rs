//! Resolves the resource that a review names to the one that the server serves.

use api_object::GroupKind;
use field_errors::{FieldErrors, FieldPath};

use crate::resource_access_review::ResourceAccessReview;
use crate::review_error::ReviewError;
use crate::review_parsing::AccessTarget;

/// The resource as a review names it: by plural, singular, kind or short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceToResolve<'n> {
    /// The API group; `None` if the review does not say one.
    pub api_group: Option<&'n str>,
    /// The name of the resource as the client wrote it.
    pub resource: &'n str,
    /// The subresource; empty if the review is about the resource itself.
    pub subresource: &'n str,
}

/// The resource that the server found for the name in a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedResource {
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The plural name, as policies have it.
    pub resource: String,
    /// Whether objects of the resource are in namespaces.
    pub is_namespaced: bool,
}

/// The server has no such resource, or several. Displays as the detail of a field error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error_detail}")]
pub struct ResourceResolutionError {
    /// The reason, with the likely intention of the client.
    pub error_detail: String,
}

/// The name of the resource as the body has it, and its place, for messages.
#[derive(Debug, Clone)]
pub(crate) struct ResourceNameInBody {
    pub(crate) field: ResourceNameField,
    pub(crate) name_in_body: String,
    pub(crate) review_kind: GroupKind,
    pub(crate) review_name: String,
}

/// The field that names the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceNameField {
    /// `spec.resourceKind` of the first proposal.
    ResourceKind,
    /// `spec.resourceAttributes.resource` of current reviews.
    ResourceAttributes,
}

impl ResourceNameInBody {
    fn into_invalid_error(self, detail: &str) -> ReviewError {
        let at = FieldPath::root("spec");
        let mut errors = FieldErrors::new();
        errors.push(match self.field {
            ResourceNameField::ResourceKind => {
                at.child("resourceKind").invalid(self.name_in_body, detail)
            }
            ResourceNameField::ResourceAttributes => {
                at.child("resourceAttributes").child("resource").invalid(self.name_in_body, detail)
            }
        });
        ReviewError::Invalid { kind: self.review_kind, name: self.review_name, errors }
    }
}

impl ResourceAccessReview {
    /// Replaces the name of the resource by that of a resource that the server has. `resolve` returns `None` for names
    /// that are used as they are: wildcards, and resources of groups that another server may serve.
    ///
    /// A review of the first proposal is posted to a namespace. If the resource has no namespaces, the question is about
    /// the whole cluster, because requests for it have no namespace.
    ///
    /// # Errors
    /// The name does not resolve; the error is one of the field that holds it.
    pub fn resolve_resource(
        &mut self,
        resolve: impl FnOnce(
            &ResourceToResolve<'_>,
        ) -> Result<Option<ResolvedResource>, ResourceResolutionError>,
    ) -> Result<(), ReviewError> {
        let AccessTarget::Resource(target) = &mut self.access_question.target else {
            return Ok(());
        };
        let is_legacy = self.resource_name_in_body.field == ResourceNameField::ResourceKind;
        let has_group = !is_legacy || !target.api_group.is_empty();
        let named = ResourceToResolve {
            api_group: has_group.then_some(&*target.api_group),
            resource: &target.resource,
            subresource: &target.subresource,
        };
        let resolved = match resolve(&named) {
            Ok(Some(resolved)) => resolved,
            Ok(None) => return Ok(()),
            Err(ResourceResolutionError { error_detail: detail }) => {
                return Err(self.resource_name_in_body.clone().into_invalid_error(&detail));
            }
        };
        if is_legacy && !resolved.is_namespaced {
            // A request for a namespace is in that namespace.
            let is_namespace = resolved.api_group.is_empty() && resolved.resource == "namespaces";
            target.namespace =
                if is_namespace { target.name.clone() } else { String::new().into() };
        }
        target.api_group = resolved.api_group.into();
        target.resource = resolved.resource.into();
        Ok(())
    }
}
