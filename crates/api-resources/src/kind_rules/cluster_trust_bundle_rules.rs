//! ClusterTrustBundles. Workloads trust the certificates of a bundle, so its name tells the signer that vouches for
//! it, and the signer never changes.

use std::collections::BTreeMap;

use api_object::Tree;
use field_errors::{FieldErrors, FieldPath, dns1123_subdomain_faults};
use x509_verify::Certificate;

use super::certificate_signing_request::{pem, signer_name};
use crate::json_members::{string_member, value_at_path};

const TRUST_BUNDLE_BYTES_MAX: usize = 1024 * 1024;
/// The place of the bundle in messages, which would be too long with it.
const OMITTED: &str = "<value omitted>";

/// Validates a bundle. An update validates only what it changes: a bundle that an earlier version accepted can still
/// lose its finalizers.
pub(super) fn validate(new: &Tree, old: Option<&Tree>, errors: &mut FieldErrors) {
    let (spec, root) = (value_at_path(new, &["spec"]), FieldPath::root("spec"));
    let (signer, trust_bundle) =
        (string_member(spec, "signerName"), string_member(spec, "trustBundle"));
    let old = old.map(|old| value_at_path(old, &["spec"]));
    match old {
        None => {
            validate_bundle_name(api_object::name(new), signer, errors);
            if !signer.is_empty() {
                signer_name::validate(&root.child("signerName"), signer, errors);
            }
        }
        Some(old) if string_member(old, "signerName") != signer => {
            errors.push(root.child("signerName").invalid(signer, "field is immutable"));
        }
        Some(_) => {}
    }
    if old.is_none_or(|old| string_member(old, "trustBundle") != trust_bundle) {
        validate_trust_bundle(&root.child("trustBundle"), trust_bundle, errors);
    }
}

/// Checks that the name begins with the signer, whose slash is a colon there. Without a signer it has no colon.
fn validate_bundle_name(name: &str, signer: &str, errors: &mut FieldErrors) {
    if name.is_empty() {
        return; // The validation of the metadata reports it.
    }
    let metadata = FieldPath::root("metadata");
    let path = metadata.child("name");
    if signer.is_empty() {
        if name.contains(':') {
            let detail = "ClusterTrustBundle without signer name must not have \":\" in its name";
            return errors.push(path.invalid(name, detail));
        }
        return push_name_faults(&path, name, name, errors);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => push_name_faults(&path, name, rest, errors),
        None => {
            let detail = format!(
                "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
            );
            errors.push(path.invalid(name, &detail));
        }
    }
}

fn push_name_faults(path: &FieldPath<'_>, name: &str, subdomain: &str, errors: &mut FieldErrors) {
    for fault in dns1123_subdomain_faults(subdomain) {
        errors.push(path.invalid(name, &fault));
    }
}

/// Checks that a bundle consists of different CA certificates. Text between the blocks is ignored.
fn validate_trust_bundle(path: &FieldPath<'_>, trust_bundle: &str, errors: &mut FieldErrors) {
    if trust_bundle.len() > TRUST_BUNDLE_BYTES_MAX {
        return errors.push(path.too_long(TRUST_BUNDLE_BYTES_MAX));
    }
    let mut entries_by_certificate: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    let mut is_valid = true;
    for (idx, block) in pem::read_pem_blocks(trust_bundle.as_bytes()).enumerate() {
        match trust_anchor_fault(&block) {
            None => entries_by_certificate.entry(block.decoded_contents).or_default().push(idx),
            Some(fault) => {
                is_valid = false;
                errors.push(path.invalid(OMITTED, &format!("entry {idx} {fault}")));
            }
        }
    }
    if !is_valid {
        return;
    }
    if entries_by_certificate.is_empty() {
        errors.push(path.invalid(OMITTED, "at least one trust anchor must be provided"));
    }
    for entries in entries_by_certificate.values().filter(|entries| entries.len() > 1) {
        let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
        let detail = format!("duplicate trust anchor (indices [{}])", entries.join(" "));
        errors.push(path.invalid(OMITTED, &detail));
    }
}

/// The reason why a PEM block is no trust anchor.
fn trust_anchor_fault(block: &pem::PemBlock) -> Option<String> {
    if block.pem_label != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.pem_label));
    }
    if block.has_headers {
        return Some("has PEM block headers".to_owned());
    }
    if !Certificate::is_certificate(&block.decoded_contents) {
        return Some("does not parse as X.509".to_owned());
    }
    let is_ca = Certificate::is_ca_certificate(&block.decoded_contents);
    (!is_ca).then(|| "does not have the CA bit set".to_owned())
}
