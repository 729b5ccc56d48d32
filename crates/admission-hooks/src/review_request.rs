//! The request body of a call: an `AdmissionReview`.

use std::collections::BTreeMap;

use admission::{Attributes, GroupVersionKind, GroupVersionResource, ReviewVersion};
use api_object::Tree;
use authz::User;
use bytes::Bytes;
use serde::Serialize;

use crate::select_hook::ConvertedRequest;

/// The name of a review version.
pub(crate) const fn review_version_name(version: ReviewVersion) -> &'static str {
    match version {
        ReviewVersion::V1alpha1 => "v1alpha1",
        ReviewVersion::V1beta1 => "v1beta1",
        ReviewVersion::V1 => "v1",
    }
}

/// Encodes the body of a call.
///
/// # Errors
/// The object cannot be encoded as JSON; trees always can.
pub(crate) fn encode_review(
    version: ReviewVersion,
    uid: &str,
    attributes: &Attributes<'_>,
    converted_request: &ConvertedRequest<'_>,
) -> Result<Bytes, serde_json::Error> {
    let user = attributes.user.map(UserInfo::new).unwrap_or_default();
    let body = match version {
        ReviewVersion::V1 | ReviewVersion::V1beta1 => {
            let api_version = match version {
                ReviewVersion::V1 => "admission.k8s.io/v1",
                ReviewVersion::V1beta1 | ReviewVersion::V1alpha1 => "admission.k8s.io/v1beta1",
            };
            let request = ReviewRequestJson {
                uid,
                kind: converted_request.kind.into(),
                resource: converted_request.resource.into(),
                sub_resource: attributes.subresource,
                request_kind: attributes.kind.into(),
                request_resource: attributes.resource.into(),
                request_sub_resource: attributes.subresource,
                name: attributes.name,
                namespace: attributes.namespace,
                operation: attributes.operation.name(),
                user_info: user,
                object: converted_request.object.as_deref(),
                old_object: converted_request.old_object.as_deref(),
                dry_run: attributes.is_dry_run,
                options: attributes.options,
            };
            serde_json::to_vec(&ReviewJson { kind: KIND, api_version, request })?
        }
        ReviewVersion::V1alpha1 => {
            let spec = Spec {
                kind: converted_request.kind.into(),
                name: attributes.name,
                namespace: attributes.namespace,
                object: converted_request.object.as_deref(),
                old_object: converted_request.old_object.as_deref(),
                operation: attributes.operation.name(),
                resource: converted_request.resource.into(),
                sub_resource: attributes.subresource,
                user_info: user,
            };
            let api_version = "admission.k8s.io/v1alpha1";
            let status = EmptyReviewStatusJson { allowed: false };
            serde_json::to_vec(&V1alpha1ReviewJson { kind: KIND, api_version, spec, status })?
        }
    };
    Ok(body.into())
}

/// The kind of request and response bodies.
pub(crate) const KIND: &str = "AdmissionReview";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewJson<'a> {
    kind: &'static str,
    api_version: &'static str,
    request: ReviewRequestJson<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewRequestJson<'a> {
    uid: &'a str,
    kind: Kind<'a>,
    resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: Kind<'a>,
    request_resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'static str,
    user_info: UserInfo<'a>,
    object: Option<&'a Tree>,
    old_object: Option<&'a Tree>,
    dry_run: bool,
    options: Option<&'a Tree>,
}

/// A v1alpha1 review, which has no uid and contains the status that the hook fills in.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct V1alpha1ReviewJson<'a> {
    kind: &'static str,
    api_version: &'static str,
    spec: Spec<'a>,
    status: EmptyReviewStatusJson,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    object: Option<&'a Tree>,
    old_object: Option<&'a Tree>,
    operation: &'static str,
    resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    user_info: UserInfo<'a>,
}

#[derive(Serialize)]
struct EmptyReviewStatusJson {
    allowed: bool,
}

#[derive(Serialize)]
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

#[derive(Serialize)]
struct Resource<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
}

#[derive(Serialize, Default)]
struct UserInfo<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
}

impl<'a> UserInfo<'a> {
    fn new(user: &'a User) -> Self {
        let extra = (!user.extra.is_empty()).then_some(&user.extra);
        Self { username: &user.name, uid: &user.uid, groups: &user.groups, extra }
    }
}

impl<'a> From<GroupVersionKind<'a>> for Kind<'a> {
    fn from(GroupVersionKind { group, version, kind }: GroupVersionKind<'a>) -> Self {
        Self { group, version, kind }
    }
}

impl<'a> From<GroupVersionResource<'a>> for Resource<'a> {
    fn from(GroupVersionResource { group, version, resource }: GroupVersionResource<'a>) -> Self {
        Self { group, version, resource }
    }
}
