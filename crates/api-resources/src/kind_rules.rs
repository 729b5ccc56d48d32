//! Defaults and validation of single kinds.
//!
//! After the validation of metadata an object passes two steps here:
//! 1. `prepare` sets defaults and corrects members that its author may not set;
//! 2. `validate` reports all faults at once.

mod certificate_signing_request;
mod cluster_trust_bundle_rules;
mod config_data_key;
mod config_map_rules;
mod csi_node_rules;
mod endpoint_address;
mod endpoint_slice_rules;
mod endpoints_rules;
mod event_rules;
mod flow_control_rules;
mod immutable_fields;
mod lease_rules;
mod namespace_rules;
mod node_rules;
mod persistent_volume_rules;
mod pod_rules;
mod pod_safety_rules;
mod pod_template_defaults;
mod pod_update;
mod rbac_rules;
mod reset_unwritable_fields;
mod secret_rules;
mod semantic_equality;
mod service_account_rules;
mod service_rules;
mod workload_defaults;

pub use certificate_signing_request::{
    SignerPermission, forbidden_node_certificate_reason, forbidden_subject_reason,
    required_signer_permission,
};
pub use reset_unwritable_fields::reset_unwritable_fields;

pub(crate) use immutable_fields::{POD_CERTIFICATE_REQUEST, RESOURCE_CLAIM, VOLUME_ATTACHMENT};

use admission::ConfigurationKind;
use api_object::{DeleteOptions, Tree};
use field_errors::FieldErrors;
use jiff::Timestamp;
use serde_json::Value;

use self::immutable_fields::ImmutableField;
use crate::custom_resources;
use crate::resource::{Resource, ResourceOrigin};
use crate::schema::{Schema, WrongTypeError, check_types, prune_unknown_fields};

/// A value of an object has another type than its field. The text is that of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} in version \"{version}\" cannot be handled as a {kind}: {type_mismatch}")]
pub struct PrepareError {
    kind: String,
    version: String,
    type_mismatch: String,
}

/// The kind-specific rules of a built-in resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KindRules {
    /// The kind has no rules: objects are stored as received.
    None,
    AdmissionPolicyBinding,
    CertificateSigningRequest,
    ClusterTrustBundle,
    ConfigMap,
    /// The rules of a kind that configures admission.
    Configuration(ConfigurationKind),
    CsiNode,
    CustomResourceDefinition,
    Deployment,
    EndpointSlice,
    Endpoints,
    Event,
    /// The rules of a kind that configures priority and fairness.
    FlowControl(manifests::flow_control::Kind),
    /// The listed fields are immutable; the kind has no other rules.
    Immutable(&'static [ImmutableField]),
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
    ResourceSlice,
    Scale,
    Secret,
    Service,
    ServiceAccount,
    ValidatingAdmissionPolicy,
}

/// Members that the objects of every kind have.
const COMMON_MEMBERS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Sets the defaults of a new object. The caller has removed a status that the client sent.
///
/// # Errors
/// A value has another type than its field.
pub fn prepare_create(resource: &Resource, tree: &mut Tree) -> Result<(), PrepareError> {
    conform_to_schema(resource, tree)?;
    workload_defaults::prepare_create(resource, tree);
    match kind_rules(resource) {
        KindRules::CertificateSigningRequest => {
            certificate_signing_request::prepare_certificate_request_create(tree)
        }
        KindRules::CsiNode => csi_node_rules::prepare_csi_node(tree),
        KindRules::CustomResourceDefinition => custom_resources::prepare_definition_create(tree),
        KindRules::FlowControl(kind) => flow_control_rules::prepare_flow_control_create(kind, tree),
        KindRules::Namespace => namespace_rules::prepare_namespace_create(tree),
        KindRules::Node => node_rules::prepare_node(tree),
        KindRules::Pod => pod_rules::prepare_pod_create(tree),
        KindRules::Rbac(_) => rbac_rules::prepare_rbac_object(tree),
        KindRules::Secret => secret_rules::prepare_secret(tree),
        KindRules::Service => service_rules::prepare_service_create(tree),
        KindRules::ServiceAccount => service_account_rules::prepare_service_account(tree),
        _ => {}
    }
    Ok(())
}

/// Sets the defaults of an updated object. The caller has reset the fields that the path of the request
/// cannot change, such as the status.
///
/// # Errors
/// A value has another type than its field.
pub fn prepare_update(
    resource: &Resource,
    new: &mut Tree,
    old: &Tree,
    subresource: Option<&str>,
) -> Result<(), PrepareError> {
    conform_to_schema(resource, new)?;
    if subresource.is_none() {
        workload_defaults::prepare_update(resource, new);
    }
    match (kind_rules(resource), subresource) {
        (KindRules::CsiNode, None) => csi_node_rules::prepare_csi_node(new),
        (KindRules::CustomResourceDefinition, None) => {
            custom_resources::prepare_definition_update(new)
        }
        (KindRules::FlowControl(kind), None) => {
            flow_control_rules::prepare_flow_control_update(kind, new)
        }
        (KindRules::Namespace, subresource) => {
            namespace_rules::prepare_namespace_update(new, old, subresource)
        }
        (KindRules::Node, None) => node_rules::prepare_node(new),
        (KindRules::Pod, None) => pod_rules::prepare_pod_update(new),
        (KindRules::CertificateSigningRequest, subresource) => {
            certificate_signing_request::prepare_certificate_request_update(new, old, subresource);
        }
        (KindRules::Rbac(_), None) => rbac_rules::prepare_rbac_object(new),
        (KindRules::Secret, None) => secret_rules::prepare_secret(new),
        (KindRules::Service, None) => service_rules::prepare_service_update(new, old),
        (KindRules::ServiceAccount, None) => service_account_rules::prepare_service_account(new),
        (_, _) => {}
    }
    Ok(())
}

/// Writes the requesting user into objects that record it: approvers and signers of certificates
/// rely on it. Other objects stay unchanged.
pub fn set_requester(resource: &Resource, tree: &mut Tree, requester: &Tree) {
    if kind_rules(resource) != KindRules::CertificateSigningRequest {
        return;
    }
    let spec = api_object::object_member_mut(tree, "spec");
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
    if kind_rules(resource) == KindRules::CertificateSigningRequest {
        certificate_signing_request::set_certificate_condition_times(new, old, now);
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
    match (kind_rules(resource), subresource) {
        (KindRules::CertificateSigningRequest, subresource) => {
            certificate_signing_request::validate_certificate_request_update(
                new,
                old,
                subresource,
                &mut errors,
            );
        }
        (_, None) => validate(resource, new, Some(old), &mut errors),
        (KindRules::FlowControl(kind), Some("status")) => {
            flow_control_rules::validate_flow_control_status(kind, new, &mut errors);
        }
        (KindRules::Namespace, Some("status")) => {
            namespace_rules::validate_namespace_status(new, &mut errors)
        }
        (KindRules::Namespace, Some("finalize")) => {
            namespace_rules::validate_namespace_finalizers(new, &mut errors)
        }
        (KindRules::Node, Some("status")) => {
            node_rules::validate_node_update(new, old, &mut errors)
        }
        (KindRules::Pod, Some("status")) => {
            pod_update::validate_mirror_annotation_unchanged(new, old, &mut errors)
        }
        (KindRules::None, Some("status")) => {
            if let Some(paths) = resource.replica_paths() {
                paths.validate_status_replicas_and_selector(new, &mut errors);
            }
        }
        (_, Some(_)) => {}
    }
    errors
}

fn validate(resource: &Resource, new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    if let Some(paths) = resource.replica_paths() {
        paths.validate_spec_replicas(new, errors);
        paths.validate_status_replicas_and_selector(new, errors);
    }
    match kind_rules(resource) {
        KindRules::CertificateSigningRequest => {
            certificate_signing_request::validate_certificate_request_create(new, errors)
        }
        KindRules::ClusterTrustBundle => cluster_trust_bundle_rules::validate(new, old, errors),
        KindRules::ConfigMap => config_map_rules::validate(new, old, errors),
        KindRules::Configuration(kind) => errors.append(match old {
            None => admission::validate_configuration_create(kind, new),
            Some(old) => admission::validate_configuration_update(kind, new, old),
        }),
        KindRules::CustomResourceDefinition => custom_resources::validate(new, old, errors),
        KindRules::EndpointSlice => endpoint_slice_rules::validate(new, old, errors),
        KindRules::Endpoints => endpoints_rules::validate(new, old, errors),
        KindRules::Event => event_rules::validate(new, errors),
        KindRules::FlowControl(kind) => flow_control_rules::validate(kind, new, errors),
        KindRules::Immutable(members) => {
            if let Some(old) = old {
                immutable_fields::validate(members, new, old, errors);
            }
        }
        KindRules::Lease => lease_rules::validate(new, errors),
        KindRules::Namespace => namespace_rules::validate_namespace_finalizers(new, errors),
        KindRules::Node => {
            if let Some(old) = old {
                node_rules::validate_node_update(new, old, errors);
            }
        }
        KindRules::PersistentVolume => {
            if let Some(old) = old {
                persistent_volume_rules::validate_persistent_volume_update(new, old, errors);
            }
        }
        KindRules::Pod => {
            pod_rules::validate(new, errors);
            match old {
                Some(old) => pod_update::validate(new, old, errors),
                None => {
                    pod_rules::validate_pod_create(new, errors);
                    pod_safety_rules::validate_pod_safety(new, errors);
                }
            }
        }
        KindRules::Rbac(_) => rbac_rules::validate(new, old, errors),
        KindRules::ResourceSlice => {
            if let Some(old) = old {
                immutable_fields::validate(immutable_fields::RESOURCE_SLICE, new, old, errors);
            }
        }
        KindRules::Secret => secret_rules::validate(new, old, errors),
        KindRules::Service => service_rules::validate(new, old, errors),
        _ => {}
    }
}

/// Reports whether a create stores the status that the client sends.
pub(crate) fn keeps_client_status_on_create(resource: &Resource) -> bool {
    kind_rules(resource) == KindRules::Node
}

/// The warning about a delete whose options do not say what happens to the pods of a job. The text is that of Kubernetes.
#[must_use]
pub fn unspecified_job_pods_deletion_warning(
    resource: &Resource,
    options: &DeleteOptions,
) -> Option<&'static str> {
    let is_job = (resource.group.as_str(), resource.plural.as_str()) == ("batch", "jobs");
    (is_job && !options.has_propagation_policy()).then_some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
         them or set propagationPolicy=Orphan to suppress this warning",
    )
}

/// Marks an object for deletion, and adds the finalizers that its kind needs.
pub fn prepare_delete(
    resource: &Resource,
    tree: &mut Tree,
    finalizers: &mut Vec<String>,
    now: Timestamp,
) {
    match kind_rules(resource) {
        KindRules::Namespace => namespace_rules::prepare_namespace_delete(tree),
        KindRules::CustomResourceDefinition => {
            custom_resources::prepare_definition_delete(tree, finalizers, now)
        }
        _ => {}
    }
}

/// The kind of admission configuration of a resource, if its objects configure admission.
#[must_use]
pub fn configuration_kind(resource: &Resource) -> Option<ConfigurationKind> {
    match kind_rules(resource) {
        KindRules::Configuration(kind) => Some(kind),
        _ => None,
    }
}

/// Reports whether something besides the finalizers of its metadata blocks the removal of an
/// object.
#[must_use]
pub fn blocks_removal(resource: &Resource, tree: &Tree) -> bool {
    kind_rules(resource) == KindRules::Namespace && namespace_rules::has_namespace_finalizers(tree)
}

/// Reports whether the spec differs, as opposed to metadata and a status subresource. If so, the
/// generation increases.
#[must_use]
pub fn is_spec_changed(resource: &Resource, new: &Tree, old: &Tree) -> bool {
    let is_apart = |key: &str| {
        COMMON_MEMBERS.contains(&key) || (key == "status" && resource.has_status_subresource())
    };
    let mut keys = new.keys().chain(old.keys());
    keys.any(|key| !is_apart(key) && non_empty_member(new, key) != non_empty_member(old, key))
}

/// The value of a member, unless it is null or an empty list.
fn non_empty_member<'t>(tree: &'t Tree, key: &str) -> Option<&'t Value> {
    let is_nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    tree.get(key).filter(|value| !is_nothing(value))
}

pub(crate) fn kind_rules(resource: &Resource) -> KindRules {
    match &resource.resource_origin {
        ResourceOrigin::BuiltIn(row) => row.rules,
        ResourceOrigin::Custom(_) => KindRules::None,
    }
}

/// Removes unknown fields, and refuses values of the wrong type.
fn conform_to_schema(resource: &Resource, tree: &mut Tree) -> Result<(), PrepareError> {
    let ResourceOrigin::BuiltIn(row) = &resource.resource_origin else { return Ok(()) };
    let fitted = match (row.rules, row.schema) {
        // The controllers of these kinds validate and complete them; the schema is for clients.
        (KindRules::Configuration(kind), _) => {
            admission::prepare_configuration(kind, tree).map_err(|wrong| wrong.to_string())
        }
        (_, Some(schema)) => {
            conform_fields_to_schema(schema, tree).map_err(|wrong| wrong.to_string())
        }
        (_, None) => Ok(()),
    };
    fitted.map_err(|why| {
        let (kind, version) = (resource.kind.clone(), resource.version.clone());
        PrepareError { kind, version, type_mismatch: why }
    })
}

fn conform_fields_to_schema(schema: &Schema, tree: &mut Tree) -> Result<(), WrongTypeError> {
    check_types(schema, tree, "")?;
    let common: Vec<(String, Value)> =
        COMMON_MEMBERS.iter().filter_map(|&key| tree.shift_remove_entry(key)).collect();
    let mut rest = std::mem::take(tree);
    prune_unknown_fields(schema, &mut rest);
    tree.extend(common);
    tree.extend(rest);
    Ok(())
}
