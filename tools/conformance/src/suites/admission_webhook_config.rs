//! `admission-webhook-config`: creating a configuration of webhooks.

use admission::{
    ConfigurationKind, WarningKind, configuration_warnings, prepare_configuration,
    validate_configuration_create,
};
use api_object::{
    Tree, check_and_set_namespace, metadata_mut, normalize_metadata, validate_metadata,
};
use field_errors::{FieldErrors, dns1123_subdomain_faults};
use serde_json::{Value, json};

use super::faults::fault;
use super::{Answer, Warning};
use crate::compare::length_through;
use crate::vectors::Vector;

/// What a server sets in the metadata of a new object whatever its author says.
const SERVER_METADATA: [&str; 4] = ["creationTimestamp", "generation", "resourceVersion", "uid"];

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let object = vector.member("object")?.as_object().ok_or("`object` is not an object")?;
    let mut want = vector.member("expect")?.clone();
    if let Some(want) = want.as_object_mut() {
        // The words of a decoder are its own: that it fails is what counts.
        want.shift_remove("error");
    }
    let mut answer = Answer { want, got: Value::Null, warnings: Vec::new() };
    answer.got = match prepared(object) {
        Err(_) => json!({ "result": "decodeError" }),
        Ok((kind, tree)) => match faults(kind, &tree) {
            errors if errors.is_empty() => {
                let told = told(kind, &tree, &mut answer.warnings);
                json!({ "result": "valid", "defaulted": tree, "warnings": told })
            }
            errors => {
                json!({ "result": "invalid", "errors": errors.iter().map(fault).collect::<Vec<_>>() })
            }
        },
    };
    Ok(answer)
}

/// What compilers say is their own wording.
pub(super) fn exact_length(text: &str) -> usize {
    length_through(text, &["compilation failed: "])
}

/// The object as a server has it before validation.
fn prepared(object: &Tree) -> Result<(ConfigurationKind, Tree), String> {
    let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or_default();
    let (api_version, name) = (text("apiVersion"), text("kind"));
    let kind = ConfigurationKind::from_type_meta(api_version, name)
        .ok_or_else(|| format!("no kind {name:?} is registered for version {api_version:?}"))?;
    let mut tree = object.clone();
    normalize_metadata(&mut tree).map_err(|error| error.to_string())?;
    check_and_set_namespace(&mut tree, "").map_err(|status| status.message)?;
    prepare_configuration(kind, &mut tree).map_err(|error| error.to_string())?;
    let metadata = metadata_mut(&mut tree);
    metadata.retain(|member, _| !SERVER_METADATA.contains(&member.as_str()));
    Ok((kind, tree))
}

fn faults(kind: ConfigurationKind, tree: &Tree) -> FieldErrors {
    let mut errors = validate_metadata(tree, false, |name, _| dns1123_subdomain_faults(name));
    errors.extend(validate_configuration_create(kind, tree));
    errors
}

/// The warnings that Kubernetes gives too; the others are beside the answer.
fn told(kind: ConfigurationKind, tree: &Tree, others: &mut Vec<Warning>) -> Vec<String> {
    let mut told = Vec::new();
    for warning in configuration_warnings(kind, tree, None) {
        if warning.cause == WarningKind::ExcludedResource {
            told.push(warning.to_string());
        } else {
            others.push(Warning { code: warning.cause.name().to_owned(), field: warning.path });
        }
    }
    told
}
