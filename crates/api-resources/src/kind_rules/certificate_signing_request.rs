//! CertificateSigningRequests: the requester is fixed, approvers approve or deny, signers sign.

pub(super) mod pem;
pub(super) mod signer_name;

use api_object::{Tree, format_rfc3339, object_member_mut};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use field_errors::{FieldErrors, FieldPath};
use jiff::Timestamp;
use serde_json::{Value, json};
use x509_verify::{Certificate, CertificateRequest, CertificateRequestError};

use super::{KindRules, kind_rules};
use crate::json_members::{list_member, string_list_member, string_member, value_at_path};
use crate::resource::Resource;

const GROUP: &str = "certificates.k8s.io";
/// The signer of the client certificates of this server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Certificates of that signer must not contain this group.
const SUPERUSERS: &str = "system:masters";
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const EXPIRATION_SECONDS_MIN: i64 = 600;

/// Conditions that cannot be removed or changed once they are set.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];
/// Conditions that only approvers set.
const APPROVAL: [&str; 2] = ["Approved", "Denied"];

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The permission on a signer that a write needs, besides the one for its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignerPermission<'t> {
    /// `approve`, `sign` or `attest`.
    pub verb: &'static str,
    /// The signer, such as `example.com/signer`.
    pub signer_name: &'t str,
}

/// The permission on a signer that a write needs:
///
/// 1. `approve` for writing the approval of a CertificateSigningRequest, `sign` for changing the
///    certificate or the conditions in its status.
/// 2. `sign` for changing the status of a PodCertificateRequest.
/// 3. `attest` for writing a ClusterTrustBundle of a signer, except for changes of owner references and finalizers.
#[must_use]
pub fn required_signer_permission<'t>(
    resource: &Resource,
    new: &'t Tree,
    old: Option<&'t Tree>,
    subresource: Option<&str>,
) -> Option<SignerPermission<'t>> {
    if resource.group != GROUP || resource.is_custom_resource() {
        return None;
    }
    let verb = match (resource.plural.as_str(), subresource, old) {
        ("certificatesigningrequests", Some("approval"), Some(_)) => "approve",
        ("certificatesigningrequests", Some("status"), Some(old))
            if issued_certificate(new) != issued_certificate(old)
                || conditions(new) != conditions(old) =>
        {
            "sign"
        }
        ("podcertificaterequests", Some("status"), Some(old))
            if new.get("status") != old.get("status") =>
        {
            "sign"
        }
        ("clustertrustbundles", None, old)
            if old.is_none_or(|old| !is_only_owners_or_finalizers_changed(new, old)) =>
        {
            "attest"
        }
        _ => return None,
    };
    // A trust bundle is attested for the signer of its next state, so that no update can move it to a signer
    // that the user may not attest for. The signer of a certificate request is immutable.
    let signed = match verb {
        "attest" => new,
        _ => old.unwrap_or(new),
    };
    let signer_name = string_member(value_at_path(signed, &["spec"]), "signerName");
    let is_demanded = verb != "attest" || !signer_name.is_empty();
    is_demanded.then_some(SignerPermission { verb, signer_name })
}

/// Reports whether an update changes at most owner references and finalizers, as the garbage collector does.
fn is_only_owners_or_finalizers_changed(new: &Tree, old: &Tree) -> bool {
    let rest = |tree: &Tree| {
        let mut tree = tree.clone();
        let metadata = api_object::metadata_mut(&mut tree);
        for member in
            ["ownerReferences", "finalizers", "managedFields", "selfLink", "resourceVersion"]
        {
            metadata.shift_remove(member);
        }
        tree
    };
    rest(new) == rest(old)
}

/// The reason why this certificate may not be requested; `None` for other objects and for allowed
/// requests.
#[must_use]
pub fn forbidden_subject_reason(resource: &Resource, tree: &Tree) -> Option<String> {
    let spec = value_at_path(tree, &["spec"]);
    let is_restricted = kind_rules(resource) == KindRules::CertificateSigningRequest
        && string_member(spec, "signerName") == CLIENT_SIGNER;
    if !is_restricted {
        return None;
    }
    match read_certificate_request(string_member(spec, "request")) {
        Ok(request) if request.organizations.iter().any(|own| own == SUPERUSERS) => {
            Some(format!("use of {CLIENT_SIGNER} signer with {SUPERUSERS} group is not allowed"))
        }
        Ok(_) => None,
        Err(error) => Some(format!("failed to parse CSR: {error}")),
    }
}

/// The signers of the certificates of nodes.
const NODE_SIGNERS: [&str; 2] =
    ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

/// The reason why this node may not request this certificate: a node requests certificates of nodes for itself
/// only. `None` for other signers and for allowed requests.
#[must_use]
pub fn forbidden_node_certificate_reason(tree: &Tree, node_name: &str) -> Option<String> {
    let spec = value_at_path(tree, &["spec"]);
    if !NODE_SIGNERS.contains(&string_member(spec, "signerName")) {
        return None;
    }
    match read_certificate_request(string_member(spec, "request")) {
        Ok(request) if request.common_name == format!("system:node:{node_name}") => None,
        Ok(_) => Some(format!("can only create a node CSR with CN=system:node:{node_name}")),
        Err(error) => Some(format!("unable to parse csr: {error}")),
    }
}

/// Empties the status, because a new request cannot be approved yet.
pub(super) fn prepare_certificate_request_create(tree: &mut Tree) {
    tree.insert("status".to_owned(), json!({}));
}

/// Restores the fields that an update cannot change. The spec is immutable. Approvers change conditions;
/// signers change the status except for the conditions of approvers.
pub(super) fn prepare_certificate_request_update(
    new: &mut Tree,
    old: &Tree,
    subresource: Option<&str>,
) {
    restore_old_member(new, old, "spec");
    match subresource {
        Some("approval") => restore_old_member(
            object_member_mut(new, "status"),
            value_at_path(old, &["status"]),
            "certificate",
        ),
        Some(_) => APPROVAL.iter().for_each(|own| restore_old_conditions(new, old, own)),
        None => restore_old_member(new, old, "status"),
    }
}

fn restore_old_member(new: &mut Tree, old: &impl crate::json_members::MemberAccess, member: &str) {
    match old.member(member) {
        Some(value) => drop(new.insert(member.to_owned(), value.clone())),
        None => drop(new.shift_remove(member)),
    }
}

/// Replaces the new conditions of a type by the old ones, unless some were added or removed, which the
/// validation rejects later.
fn restore_old_conditions(new: &mut Tree, old: &Tree, r#type: &str) {
    let kept: Vec<Value> = conditions_of_type(old, r#type).cloned().collect();
    if kept.len() != conditions_of_type(new, r#type).count() {
        return;
    }
    let Some(Value::Array(conditions)) = object_member_mut(new, "status").get_mut("conditions")
    else {
        return;
    };
    let places = conditions.iter_mut().filter(|own| string_member(*own, "type") == r#type);
    places.zip(kept).for_each(|(place, kept)| *place = kept);
}

pub(super) fn set_certificate_condition_times(new: &mut Tree, old: &Tree, now: Timestamp) {
    let now = Value::String(format_rfc3339(now));
    let Some(Value::Array(conditions)) = object_member_mut(new, "status").get_mut("conditions")
    else {
        return;
    };
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let is_set = |condition: &Tree, key: &str| condition.get(key).is_some_and(Value::is_string);
        if !is_set(condition, "lastUpdateTime") {
            condition.insert("lastUpdateTime".to_owned(), now.clone());
        }
        if !is_set(condition, "lastTransitionTime") {
            let is_same = |own: &&Value| {
                ["type", "status"]
                    .iter()
                    .all(|key| string_member(*own, key) == string_member(condition, key))
            };
            let before =
                list_member(value_at_path(old, &["status"]), "conditions").iter().find(is_same);
            let before = before.and_then(|own| own.get("lastTransitionTime"));
            let at = before.filter(|own| own.is_string()).unwrap_or(&now).clone();
            condition.insert("lastTransitionTime".to_owned(), at);
        }
    }
}

pub(super) fn validate_certificate_request_create(tree: &Tree, errors: &mut FieldErrors) {
    let (spec, path) = (value_at_path(tree, &["spec"]), FieldPath::root("spec"));
    let request = string_member(spec, "request");
    if let Err(error) = read_certificate_request(request) {
        errors.push(path.child("request").invalid(request, &error.to_string()));
    }
    let usages = string_list_member(spec, "usages");
    let at_usages = path.child("usages");
    if usages.is_empty() {
        errors.push(at_usages.required(""));
    }
    for (idx, usage) in usages.iter().enumerate() {
        if !USAGES.contains(&usage.as_str()) {
            errors.push(at_usages.index(idx).not_supported(usage.as_str(), &USAGES));
        }
    }
    for (idx, usage) in usages.iter().enumerate() {
        if usages.iter().take(idx).any(|own| own == usage) {
            errors.push(at_usages.index(idx).duplicate(usage.as_str()));
        }
    }
    let (signer_name, at_signer) = (string_member(spec, "signerName"), path.child("signerName"));
    match signer_name {
        LEGACY_SIGNER => {
            let detail = "the legacy signerName is not allowed via this API version";
            errors.push(at_signer.invalid(signer_name, detail));
        }
        _ => signer_name::validate(&at_signer, signer_name, errors),
    }
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64);
    if let Some(seconds) = seconds.filter(|own| *own < EXPIRATION_SECONDS_MIN) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(path.child("expirationSeconds").invalid(seconds, detail));
    }
}

/// Validates an update. The spec cannot change, so it is not validated again; neither are unchanged
/// conditions and certificates.
pub(super) fn validate_certificate_request_update(
    new: &Tree,
    old: &Tree,
    subresource: Option<&str>,
    errors: &mut FieldErrors,
) {
    let status = FieldPath::root("status");
    let (at_conditions, at_certificate) = (status.child("conditions"), status.child("certificate"));
    if conditions(new) != conditions(old) {
        validate_certificate_conditions(&at_conditions, conditions(new), errors);
    }
    let is_signed = issued_certificate(new) != issued_certificate(old);
    if is_signed && let Err(error) = check_issued_certificates(issued_certificate(new)) {
        errors.push(at_certificate.invalid("<certificate data>", &error.to_string()));
    }
    for r#type in FINAL {
        let (n_new, n_old) =
            (conditions_of_type(new, r#type).count(), conditions_of_type(old, r#type).count());
        if n_new < n_old {
            let detail = format!("updates may not remove a condition of type \"{type}\"");
            errors.push(at_conditions.forbidden(&detail));
        }
        if n_new > n_old && APPROVAL.contains(&r#type) && subresource != Some("approval") {
            let detail = format!("updates may not add a condition of type \"{type}\"");
            errors.push(at_conditions.forbidden(&detail));
        }
    }
    if is_signed && subresource != Some("status") {
        errors.push(at_certificate.forbidden("updates may not set certificate content"));
    } else if is_signed && !issued_certificate(old).is_empty() {
        let detail = "updates may not modify existing certificate content";
        errors.push(at_certificate.forbidden(detail));
    }
}

fn validate_certificate_conditions(
    path: &FieldPath<'_>,
    conditions: &[Value],
    errors: &mut FieldErrors,
) {
    let mut seen: Vec<&str> = Vec::new();
    for (idx, condition) in conditions.iter().enumerate() {
        let path = path.index(idx);
        let (r#type, status) =
            (string_member(condition, "type"), string_member(condition, "status"));
        if r#type.is_empty() {
            errors.push(path.child("type").required(""));
        }
        let supported: &[&str] = match FINAL.contains(&r#type) {
            true => &["True"],
            false => &["False", "True", "Unknown"],
        };
        if status.is_empty() {
            errors.push(path.child("status").required(""));
        } else if !supported.contains(&status) {
            errors.push(path.child("status").not_supported(status, supported));
        }
        let other = match r#type {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.contains(&other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(path.child("type").invalid(r#type, detail));
        }
        if seen.contains(&r#type) {
            errors.push(path.child("type").duplicate(r#type));
        }
        seen.push(r#type);
    }
}

fn conditions(tree: &Tree) -> &[Value] {
    list_member(value_at_path(tree, &["status"]), "conditions")
}

fn issued_certificate(tree: &Tree) -> &str {
    string_member(value_at_path(tree, &["status"]), "certificate")
}

fn conditions_of_type<'t>(tree: &'t Tree, r#type: &'t str) -> impl Iterator<Item = &'t Value> {
    conditions(tree).iter().filter(move |own| string_member(*own, "type") == r#type)
}

/// The PEM of a certificate request or of issued certificates is invalid. The texts are those of Kubernetes.
#[derive(Debug, thiserror::Error)]
enum CertificatePemError {
    #[error("must be ASCII text with a single PEM block")]
    Ambiguous,
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotARequest,
    #[error("{0}")]
    MalformedRequest(CertificateRequestError),
    #[error("only CERTIFICATE PEM blocks are allowed, found {}", go_compat::quote(.0))]
    NotACertificate(String),
    #[error("no PEM block headers are permitted")]
    Headers,
    #[error("x509: malformed certificate")]
    MalformedCertificate,
    #[error("must contain at least one CERTIFICATE PEM block")]
    NoCertificate,
}

/// Reads a certificate request from base64-encoded PEM.
fn read_certificate_request(encoded: &str) -> Result<CertificateRequest, CertificatePemError> {
    let text = STANDARD.decode(encoded).unwrap_or_default();
    if !pem::is_unambiguous_pem(&text) {
        return Err(CertificatePemError::Ambiguous);
    }
    match pem::read_pem_blocks(&text).next() {
        Some(block) if block.pem_label == "CERTIFICATE REQUEST" => {
            CertificateRequest::parse(&block.decoded_contents)
                .map_err(CertificatePemError::MalformedRequest)
        }
        Some(_) | None => Err(CertificatePemError::NotARequest),
    }
}

/// Checks the issued certificates, which are base64-encoded PEM.
fn check_issued_certificates(encoded: &str) -> Result<(), CertificatePemError> {
    let text = STANDARD.decode(encoded).unwrap_or_default();
    let mut n_blocks = 0;
    for block in pem::read_pem_blocks(&text) {
        if block.pem_label != "CERTIFICATE" {
            return Err(CertificatePemError::NotACertificate(block.pem_label));
        }
        if block.has_headers {
            return Err(CertificatePemError::Headers);
        }
        if !Certificate::is_certificate(&block.decoded_contents) {
            return Err(CertificatePemError::MalformedCertificate);
        }
        n_blocks += 1;
    }
    match n_blocks {
        0 if !encoded.is_empty() => Err(CertificatePemError::NoCertificate),
        _ => Ok(()),
    }
}
