//! `admission-webhook-config`: creating a configuration of webhooks.

use admission::{
    ConfigurationKind, WarningKind, configuration_warnings, prepare_configuration,
    validate_configuration_create,
};
use api_object::{
    Tree, check_and_set_namespace, metadata_mut, normalize_metadata, validate_metadata,
};
use field_errors::{FieldErrors, dns1123_subdomain_faults, mask_trailing_dash};
use serde_json::{Value, json};

use super::field_error_json::field_error_to_json;
use super::{AnswerPair, Warning};
use crate::compare::length_through;
use crate::vectors::{UnusableVector, Vector};

/// The metadata of a new object that only the server sets.
const SERVER_METADATA: [&str; 4] = ["creationTimestamp", "generation", "resourceVersion", "uid"];

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let object = vector
        .member("object")?
        .as_object()
        .ok_or_else(|| UnusableVector::new("`object` is not an object"))?;
    let mut want = vector.member("expect")?.clone();
    if let Some(want) = want.as_object_mut() {
        // The wording of decoders is free: only the failure is compared.
        want.shift_remove("error");
    }
    let mut answer = AnswerPair { want, got: Value::Null, warnings: Vec::new() };
    answer.got = match prepare_object(object) {
        Err(_) => json!({ "result": "decodeError" }),
        Ok((kind, tree)) => match validate(kind, &tree) {
            errors if errors.is_empty() => {
                let warnings = kubernetes_warnings(kind, &tree, &mut answer.warnings);
                json!({ "result": "valid", "defaulted": tree, "warnings": warnings })
            }
            errors => {
                json!({ "result": "invalid", "errors": errors.iter().map(field_error_to_json).collect::<Vec<_>>() })
            }
        },
    };
    Ok(answer)
}

/// The wording of compilers is free.
pub(super) fn exact_length(text: &str) -> usize {
    length_through(text, &["compilation failed: "])
}

/// Applies the steps of a server before validation.
fn prepare_object(object: &Tree) -> Result<(ConfigurationKind, Tree), UnusableVector> {
    let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or_default();
    let (api_version, name) = (text("apiVersion"), text("kind"));
    let kind = ConfigurationKind::from_type_meta(api_version, name).ok_or_else(|| {
        UnusableVector::new(format!("no kind {name:?} is registered for version {api_version:?}"))
    })?;
    let mut tree = object.clone();
    normalize_metadata(&mut tree).map_err(UnusableVector::new)?;
    check_and_set_namespace(&mut tree, "").map_err(|status| UnusableVector::new(status.message))?;
    prepare_configuration(kind, &mut tree).map_err(UnusableVector::new)?;
    let metadata = metadata_mut(&mut tree);
    metadata.retain(|member, _| !SERVER_METADATA.contains(&member.as_str()));
    Ok((kind, tree))
}

fn validate(kind: ConfigurationKind, tree: &Tree) -> FieldErrors {
    let mut errors = validate_metadata(tree, false, |name, is_prefix| match is_prefix {
        true => dns1123_subdomain_faults(&mask_trailing_dash(name)),
        false => dns1123_subdomain_faults(name),
    });
    errors.extend(validate_configuration_create(kind, tree));
    errors
}

/// The warnings that Kubernetes gives too. The others are added to `others`.
fn kubernetes_warnings(
    kind: ConfigurationKind,
    tree: &Tree,
    others: &mut Vec<Warning>,
) -> Vec<String> {
    let mut told = Vec::new();
    for warning in configuration_warnings(kind, tree, None) {
        if warning.warning_kind == WarningKind::ExcludedResource {
            told.push(warning.to_string());
        } else {
            others.push(Warning {
                code: warning.warning_kind.name().to_owned(),
                field: warning.path,
            });
        }
    }
    told
}
