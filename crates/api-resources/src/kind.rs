//! Defaults and validation of single kinds.
//!
//! After the validation of metadata an object passes two steps here:
//! 1. `prepare` sets defaults and corrects members that its author may not set;
//! 2. `validate` reports all faults at once.

mod certificate_signing_request;
mod config_data_key;
mod config_map;
mod endpoint_slice;
mod event;
mod immutable_fields;
mod lease;
mod namespace;
mod persistent_volume;
mod pod;
mod pod_update;
mod rbac;
mod reset_fields;
mod secret;
mod semantic_equality;
mod service;
mod service_account;

pub use certificate_signing_request::{
    SignerPermission, forbidden_subject, required_signer_permission,
};
pub use reset_fields::reset_fields;

pub(crate) use immutable_fields::{POD_CERTIFICATE_REQUEST, RESOURCE_SLICE, VOLUME_ATTACHMENT};

use admission::ConfigurationKind;
use api_object::Tree;
use field_errors::FieldErrors;
use jiff::Timestamp;
use serde_json::Value;

use self::immutable_fields::Immutable;
use crate::custom;
use crate::resource::{Origin, Resource};
use crate::schema::{Schema, WrongTypeError, check, prune};

/// A value of an object has another type than its field. The text is that of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}")]
pub struct PrepareError {
    kind: String,
    version: String,
    why: String,
}

/// The kind-specific rules of a built-in resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// None: what is received is stored.
    None,
    AdmissionPolicyBinding,
    CertificateSigningRequest,
    ConfigMap,
    /// Those of a configuration of admission.
    Configuration(ConfigurationKind),
    CustomResourceDefinition,
    Deployment,
    EndpointSlice,
    Endpoints,
    Event,
    /// The listed fields are immutable; the kind has no other rules.
    Immutable(&'static [Immutable]),
    Lease,
    MutatingAdmissionPolicy,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Rbac(manifests::rbac::Kind),
    ReplicaSet,
    ResourceQuota,
    Secret,
    Service,
    ServiceAccount,
    ValidatingAdmissionPolicy,
}

/// Members that every object has, whatever its kind.
const COMMON_MEMBERS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Completes a new object. A status that its author gave must be gone by now.
///
/// # Errors
/// 400 if a value is of a type that its field can not have.
pub fn prepare_create(resource: &Resource, tree: &mut Tree) -> Result<(), PrepareError> {
    conform_to_schema(resource, tree)?;
    match rules(resource) {
        Rules::CertificateSigningRequest => certificate_signing_request::prepare_create(tree),
        Rules::CustomResourceDefinition => custom::prepare_create(tree),
        Rules::Namespace => namespace::prepare_create(tree),
        Rules::Pod => pod::prepare_create(tree),
        Rules::Rbac(_) => rbac::prepare(tree),
        Rules::Secret => secret::prepare(tree),
        Rules::Service => service::prepare_create(tree),
        Rules::ServiceAccount => service_account::prepare(tree),
        _ => {}
    }
    Ok(())
}

/// Completes the next state of an object. What the path of the request does not change, such as
/// the status, must be that of the old state by now.
///
/// # Errors
/// 400 if a value is of a type that its field can not have.
pub fn prepare_update(
    resource: &Resource,
    new: &mut Tree,
    old: &Tree,
    subresource: Option<&str>,
) -> Result<(), PrepareError> {
    conform_to_schema(resource, new)?;
    match (rules(resource), subresource) {
        (Rules::CustomResourceDefinition, None) => custom::prepare_update(new),
        (Rules::Namespace, subresource) => namespace::prepare_update(new, old, subresource),
        (Rules::Pod, None) => pod::prepare_update(new),
        (Rules::CertificateSigningRequest, subresource) => {
            certificate_signing_request::prepare_update(new, old, subresource);
        }
        (Rules::Rbac(_), None) => rbac::prepare(new),
        (Rules::Secret, None) => secret::prepare(new),
        (Rules::Service, None) => service::prepare_update(new, old),
        (Rules::ServiceAccount, None) => service_account::prepare(new),
        (_, _) => {}
    }
    Ok(())
}

/// Writes the requesting user into objects that record it: approvers and signers of certificates
/// rely on it. Other objects stay unchanged.
pub fn set_requester(resource: &Resource, tree: &mut Tree, requester: &Tree) {
    if rules(resource) != Rules::CertificateSigningRequest {
        return;
    }
    let spec = api_object::object_mut(tree, "spec");
    for member in ["username", "uid", "groups", "extra"] {
        match requester.get(member) {
            Some(value) => drop(spec.insert(member.to_owned(), value.clone())),
            None => drop(spec.shift_remove(member)),
        }
    }
}

/// Sets the update and transition times of conditions where their author did not. Other objects
/// stay unchanged.
pub fn set_condition_times(resource: &Resource, new: &mut Tree, old: &Tree, now: Timestamp) {
    if rules(resource) == Rules::CertificateSigningRequest {
        certificate_signing_request::set_condition_times(new, old, now);
    }
}

/// Validates a new object, except for its metadata.
#[must_use]
pub fn validate_create(resource: &Resource, tree: &Tree) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate(resource, tree, None, &mut errors);
    errors
}

/// Validates an update of an object, except for its metadata.
#[must_use]
pub fn validate_update(
    resource: &Resource,
    new: &Tree,
    old: &Tree,
    subresource: Option<&str>,
) -> FieldErrors {
    let mut errors = FieldErrors::new();
    match (rules(resource), subresource) {
        (Rules::CertificateSigningRequest, subresource) => {
            certificate_signing_request::validate_update(new, old, subresource, &mut errors);
        }
        (_, None) => validate(resource, new, Some(old), &mut errors),
        (Rules::Namespace, Some("status")) => namespace::validate_status(new, &mut errors),
        (Rules::Namespace, Some("finalize")) => namespace::validate_finalizers(new, &mut errors),
        (Rules::Pod, Some("status")) => pod_update::validate_annotations(new, old, &mut errors),
        (_, Some(_)) => {}
    }
    errors
}

fn validate(resource: &Resource, new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    match rules(resource) {
        Rules::CertificateSigningRequest => {
            certificate_signing_request::validate_create(new, errors)
        }
        Rules::ConfigMap => config_map::validate(new, old, errors),
        Rules::Configuration(kind) => errors.append(match old {
            None => admission::validate_create(kind, new),
            Some(old) => admission::validate_update(kind, new, old),
        }),
        Rules::CustomResourceDefinition => custom::validate(new, old, errors),
        Rules::EndpointSlice => endpoint_slice::validate(new, old, errors),
        Rules::Event => event::validate(new, errors),
        Rules::Immutable(members) => {
            if let Some(old) = old {
                immutable_fields::validate(members, new, old, errors);
            }
        }
        Rules::Lease => lease::validate(new, errors),
        Rules::Namespace => namespace::validate_finalizers(new, errors),
        Rules::PersistentVolume => {
            if let Some(old) = old {
                persistent_volume::validate_update(new, old, errors);
            }
        }
        Rules::Pod => {
            pod::validate(new, errors);
            match old {
                Some(old) => pod_update::validate(new, old, errors),
                None => pod::validate_create(new, errors),
            }
        }
        Rules::Rbac(_) => rbac::validate(new, old, errors),
        Rules::Secret => secret::validate(new, old, errors),
        Rules::Service => service::validate(new, old, errors),
        _ => {}
    }
}

/// Marks an object whose deletion has been asked for, and adds what must be done first.
pub fn prepare_delete(
    resource: &Resource,
    tree: &mut Tree,
    finalizers: &mut Vec<String>,
    now: Timestamp,
) {
    match rules(resource) {
        Rules::Namespace => namespace::prepare_delete(tree),
        Rules::CustomResourceDefinition => custom::prepare_delete(tree, finalizers, now),
        _ => {}
    }
}

/// Which of the kinds that configure admission its objects are, if any.
#[must_use]
pub fn configuration_kind(resource: &Resource) -> Option<ConfigurationKind> {
    match rules(resource) {
        Rules::Configuration(kind) => Some(kind),
        _ => None,
    }
}

/// Reports whether something besides the finalizers of its metadata blocks the removal of an
/// object.
#[must_use]
pub fn blocks_removal(resource: &Resource, tree: &Tree) -> bool {
    rules(resource) == Rules::Namespace && namespace::blocks_removal(tree)
}

/// Reports whether the spec differs, as opposed to metadata and a status subresource. If so, the
/// generation increases.
#[must_use]
pub fn is_content_changed(resource: &Resource, new: &Tree, old: &Tree) -> bool {
    let is_apart =
        |key: &str| COMMON_MEMBERS.contains(&key) || (key == "status" && resource.has_status());
    let mut keys = new.keys().chain(old.keys());
    keys.any(|key| !is_apart(key) && non_empty_member(new, key) != non_empty_member(old, key))
}

/// The value of a member, unless it is null or an empty list.
fn non_empty_member<'t>(tree: &'t Tree, key: &str) -> Option<&'t Value> {
    let is_nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    tree.get(key).filter(|value| !is_nothing(value))
}

pub(crate) fn rules(resource: &Resource) -> Rules {
    match &resource.origin {
        Origin::BuiltIn(row) => row.rules,
        Origin::Custom(_) => Rules::None,
    }
}

/// Removes unknown fields, and refuses values of the wrong type.
fn conform_to_schema(resource: &Resource, tree: &mut Tree) -> Result<(), PrepareError> {
    let Origin::BuiltIn(row) = &resource.origin else { return Ok(()) };
    let fitted = match (row.rules, row.schema) {
        // The controllers of these kinds validate and complete them; the schema is for clients.
        (Rules::Configuration(kind), _) => {
            admission::prepare(kind, tree).map_err(|wrong| wrong.to_string())
        }
        (_, Some(schema)) => conform_fields(schema, tree).map_err(|wrong| wrong.to_string()),
        (_, None) => Ok(()),
    };
    fitted.map_err(|why| {
        let (kind, version) = (resource.kind.clone(), resource.version.clone());
        PrepareError { kind, version, why }
    })
}

fn conform_fields(schema: &Schema, tree: &mut Tree) -> Result<(), WrongTypeError> {
    check(schema, tree, "")?;
    let common: Vec<(String, Value)> =
        COMMON_MEMBERS.iter().filter_map(|&key| tree.shift_remove_entry(key)).collect();
    let mut rest = std::mem::take(tree);
    prune(schema, &mut rest);
    tree.extend(common);
    tree.extend(rest);
    Ok(())
}
