//! Applies patches to stored objects.

use api_object::{GroupKind, GroupVersion, Status, Tree};
use codec::{ExpectedKind, PatchType};
use field_errors::{FieldErrors, FieldPath};
use object_patch::{PatchError, StrategicMergeSchema};
use store::Revision;

use crate::error_status::IntoStatus;
use crate::rest::{FieldValidation, VersionedObject};

/// A patch as the client sent it.
#[derive(Debug)]
pub(crate) struct PatchRequest {
    pub(crate) patch_type: PatchType,
    pub(crate) body: bytes::Bytes,
    pub(crate) field_validation: FieldValidation,
}

/// Applies a patch to the stored object, or to the part of it that the subresource names. The result has the same
/// `apiVersion` and `kind`. For a built-in kind, the function restores them if a strategic merge patch changed them or
/// another patch removed them. Any other change of them is an error.
///
/// # Errors
/// 400 or 422 if the patch cannot be decoded or applied, or its result is no object of the kind.
pub(super) fn apply_patch(
    kind: &ExpectedKind<'_>,
    patch: &PatchRequest,
    old: &Tree,
    revision: Revision,
    warnings: &mut Vec<String>,
) -> Result<Tree, Status> {
    let parsed = codec::parse_json(&patch.body).map_err(|_| PatchError::NotJson.into_status())?;
    apply_field_validation(&parsed.duplicate_fields, patch.field_validation, warnings)?;
    let mut patched = patched_object(kind, patch.patch_type, parsed.value, old, revision)?;
    for (member, expected) in [
        ("apiVersion", GroupVersion::new(kind.group, kind.version).to_string()),
        ("kind", kind.kind.to_owned()),
    ] {
        let actual = api_object::string_member(&patched, member).to_owned();
        let is_implied = patch.patch_type == PatchType::StrategicMerge || actual.is_empty();
        if is_implied && !kind.is_custom_resource {
            patched.insert(member.to_owned(), expected.into());
        } else if actual != expected {
            let mut errors = FieldErrors::new();
            let detail = format!("must be {expected}");
            errors.push(FieldPath::root(member).invalid(actual, &detail));
            let group_kind = GroupKind::new(kind.group, kind.kind);
            return Err(Status::invalid_object(&group_kind, api_object::name(old), &errors));
        }
    }
    let findings = codec::conform_object(&mut patched, kind).map_err(|error| {
        // The object is conformed in part only. It is rare enough to patch it again for the message.
        let parsed = codec::parse_json(&patch.body).map(|parsed| parsed.value).unwrap_or_default();
        let whole = patched_object(kind, patch.patch_type, parsed, old, revision);
        let whole = serde_json::Value::Object(whole.unwrap_or_default()).to_string();
        invalid_patch_status(&whole, &error.to_string())
    })?;
    apply_field_validation(&findings, patch.field_validation, warnings)?;
    Ok(patched)
}

/// The object after the patch, before it is checked.
fn patched_object(
    kind: &ExpectedKind<'_>,
    patch_type: PatchType,
    patch: serde_json::Value,
    old: &Tree,
    revision: Revision,
) -> Result<Tree, Status> {
    let current = VersionedObject { object_tree: old.clone(), revision: Some(revision) }
        .into_tree_with_resource_version();
    let patched = match patch_type {
        PatchType::Json | PatchType::StrategicMerge if patch.is_null() => Ok(current),
        PatchType::Json => object_patch::apply_json_patch(current, patch),
        PatchType::Merge => object_patch::apply_merge_patch(current, patch),
        PatchType::StrategicMerge => {
            let schema = StrategicMergeSchema::of(kind.group, kind.kind);
            object_patch::apply_strategic_merge_patch(current, patch, &schema)
        }
    };
    patched.map_err(IntoStatus::into_status)
}

/// Warns about or refuses fields that a patch has twice, or that the kind does not have.
fn apply_field_validation(
    findings: &[codec::StrictFinding],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    match validation {
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            warnings.extend(findings.iter().map(ToString::to_string));
            Ok(())
        }
        FieldValidation::Strict if findings.is_empty() => Ok(()),
        FieldValidation::Strict => {
            let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
            let detail = format!("strict decoding error: {}", texts.join(", "));
            Err(invalid_patch_status("", &detail))
        }
    }
}

/// The response to a patch whose result is no object of the kind.
fn invalid_patch_status(result: &str, why: &str) -> Status {
    let mut errors = FieldErrors::new();
    errors.push(FieldPath::root("patch").invalid(result, why));
    Status::invalid_object(&GroupKind::new("", ""), "", &errors)
}
