//! ResourceAccessReview in the form of the first design proposal, which is posted to a path of a namespace.
//!
//! Its spec is older than the separation of resources and non-resource paths. It has a verb, a resource that is
//! named by its kind, the name of an object, and the content of one, which is refused.

use crate::review_parsing::{AccessQuestion, AccessTarget, ResourceTarget};
use api_object::GroupKind;
use authz::User;
use field_errors::{FieldErrors, FieldPath};
use serde_json::{Map, Value};

use crate::prepare_review::ReviewRequest;
use crate::read_body::{MalformedBodyError, ObjectFields, read_spec_fields};
use crate::resolve_resource::{ResourceNameField, ResourceNameInBody};
use crate::resource_access_review::ResourceAccessReview;
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;
use crate::review_response::ResponseWithoutStatus;

const KIND: ReviewKind = ReviewKind::LegacyResourceAccessReview;

/// The fields of the body.
struct LegacyReviewFields<'t> {
    verb: &'t str,
    resource_kind: &'t str,
    resource_name: &'t str,
    has_content_field: bool,
}

/// Reads and validates the body:
/// 1. The kind and version, which the decoder does not check because they are not registered.
/// 2. The metadata, of which only the namespace is used; all of it is echoed.
/// 3. The spec, which is echoed unchanged. Fields that could not change the answer are refused.
pub(crate) fn prepare_legacy_review(
    body: &Value,
    request: &ReviewRequest<'_>,
) -> Result<ResourceAccessReview, ReviewError> {
    if request.namespace.is_empty() {
        return Err(ReviewError::NamespaceRequired);
    }
    let fields = ObjectFields::from_body(body, KIND);
    let malformed = |error: MalformedBodyError| error.into_review_error(KIND, request.version);
    check_kind_and_version(&fields, request).map_err(malformed)?;
    let mut metadata = match fields.get("metadata") {
        None => Map::new(),
        Some(Value::Object(members)) => members.clone(),
        Some(other) => {
            return Err(malformed(fields.wrong_type_error("metadata", other, "v1.ObjectMeta")));
        }
    };
    match metadata.get("namespace").unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::String(own) if own.is_empty() || own == request.namespace => {}
        _ => return Err(ReviewError::NamespaceMismatch),
    }
    metadata.insert("namespace".to_owned(), request.namespace.into());
    let legacy_fields = read_legacy_fields(&fields, request.version).map_err(malformed)?;
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let question = build_question(&legacy_fields, request.namespace).map_err(|errors| {
        let kind = GroupKind::new("", KIND.name());
        ReviewError::Invalid { kind, name: name.clone(), errors }
    })?;
    let spec = fields.get("spec").cloned();
    let response = ResponseWithoutStatus::new(KIND, request, Value::Object(metadata), spec);
    let resource_name_in_body = ResourceNameInBody {
        field: ResourceNameField::ResourceKind,
        name_in_body: legacy_fields.resource_kind.to_owned(),
        review_kind: GroupKind::new("", KIND.name()),
        review_name: name,
    };
    Ok(ResourceAccessReview {
        response_without_status: response,
        access_question: question,
        namespace_to_authorize: None,
        resource_name_in_body,
    })
}

fn check_kind_and_version(
    fields: &ObjectFields<'_>,
    request: &ReviewRequest<'_>,
) -> Result<(), MalformedBodyError> {
    let kind = fields.read_string("kind")?;
    if !kind.is_empty() && kind != KIND.name() {
        let kind = go_compat::quote(kind);
        return Err(MalformedBodyError::new(format!("no kind {kind} is served here")));
    }
    let api_version = fields.read_string("apiVersion")?;
    if !api_version.is_empty() && api_version != request.version {
        let api_version = go_compat::quote(api_version);
        return Err(MalformedBodyError::new(format!(
            "the apiVersion {api_version} is not that of the path"
        )));
    }
    Ok(())
}

fn read_legacy_fields<'t>(
    fields: &ObjectFields<'t>,
    version: &str,
) -> Result<LegacyReviewFields<'t>, MalformedBodyError> {
    let Some(spec) = read_spec_fields(fields, version, "ResourceAccessReviewSpec")? else {
        return Ok(LegacyReviewFields {
            verb: "",
            resource_kind: "",
            resource_name: "",
            has_content_field: false,
        });
    };
    Ok(LegacyReviewFields {
        verb: spec.read_string("verb")?,
        resource_kind: spec.read_string("resourceKind")?,
        resource_name: spec.read_string("resourceName")?,
        has_content_field: spec.get("content").is_some_and(|content| !content.is_null()),
    })
}

fn build_question(
    legacy_fields: &LegacyReviewFields<'_>,
    namespace: &str,
) -> Result<AccessQuestion<'static>, FieldErrors> {
    let at = FieldPath::root("spec");
    let mut errors = FieldErrors::new();
    if legacy_fields.verb.is_empty() {
        errors.push(at.child("verb").required(""));
    }
    let kind = legacy_fields.resource_kind.to_ascii_lowercase();
    let (resource, subresource) = kind.split_once('/').unwrap_or((&kind, ""));
    let (resource, api_group) = resource.split_once('.').unwrap_or((resource, ""));
    if legacy_fields.resource_kind.is_empty() {
        errors.push(at.child("resourceKind").required(""));
    } else if resource.is_empty() {
        let detail = "must begin with the name of a resource";
        errors.push(at.child("resourceKind").invalid(legacy_fields.resource_kind, detail));
    }
    if legacy_fields.has_content_field {
        let detail = "authorizers decide before the object is read, so its content cannot change \
                      the answer; name the object in resourceName";
        errors.push(at.child("content").forbidden(detail));
    }
    let is_nameless = match legacy_fields.verb {
        "create" => subresource.is_empty(),
        "deletecollection" => true,
        _ => false,
    };
    if is_nameless && !legacy_fields.resource_name.is_empty() {
        let verb = legacy_fields.verb;
        let detail = format!("requests with the verb {verb} are authorized without a name");
        errors.push(at.child("resourceName").forbidden(&detail));
    }
    let target = ResourceTarget {
        api_group: api_group.to_owned().into(),
        api_version: "*".into(),
        namespace: namespace.to_owned().into(),
        resource: resource.to_owned().into(),
        subresource: subresource.to_owned().into(),
        name: legacy_fields.resource_name.to_owned().into(),
        ..ResourceTarget::default()
    };
    errors.into_result(AccessQuestion {
        user: User::default(),
        verb: legacy_fields.verb.to_owned().into(),
        target: AccessTarget::Resource(target),
    })
}
