//! Names of signers: a domain, a slash and a path.

use field_errors::{FieldErrors, FieldPath, dns1123_label_faults, dns1123_subdomain_faults};

const DOMAIN_BYTES_MAX: usize = 253;
/// A domain, a slash and the longest name.
const BYTES_MAX: usize = 571;

pub(in crate::kind_rules) fn validate(path: &FieldPath<'_>, name: &str, errors: &mut FieldErrors) {
    if name.is_empty() {
        return errors.push(path.required(""));
    }
    let segments: Vec<&str> = name.split('/').collect();
    let [domain, rest] = segments[..] else {
        let detail = "must be a fully qualified domain and path of the form \
                      'example.com/signer-name'";
        return errors.push(path.invalid(name, detail));
    };
    if domain.len() > DOMAIN_BYTES_MAX {
        errors.push(path.too_long(DOMAIN_BYTES_MAX));
    }
    push_first_label_faults(path, domain, dns1123_label_faults, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(path.invalid(domain, detail));
    }
    push_first_label_faults(path, rest, dns1123_subdomain_faults, errors);
    if name.len() > BYTES_MAX {
        errors.push(path.too_long(BYTES_MAX));
    }
}

/// Reports the faults of the first invalid label.
fn push_first_label_faults(
    path: &FieldPath<'_>,
    segment: &str,
    faults: fn(&str) -> Vec<String>,
    errors: &mut FieldErrors,
) {
    let of_label = |label| Some((label, faults(label))).filter(|(_, own)| !own.is_empty());
    let Some((label, faults)) = segment.split('.').find_map(of_label) else { return };
    for fault in faults {
        let detail = format!("validating label {}: {fault}", go_compat::quote(label));
        errors.push(path.invalid(segment, &detail));
    }
}
