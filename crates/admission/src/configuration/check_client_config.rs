//! Validation of client configurations.

use api_object::Tree;
use field_errors::{BadValue, FieldErrors, FieldPath, dns1123_subdomain_faults};
use go_compat::Url;
use serde_json::Value;
use x509_verify::CaBundle;

use crate::client_config::decode_ca_bundle;
use crate::json_members::{read_object, read_string};

/// The maximum number of errors that are reported for one path. Each shows the path, so without a limit the errors of a
/// long path would take the square of its length.
const PATH_FAULTS_MAX: usize = 32;

const URL_FORMAT_HINT: &str = "; desired format: https://host[/path]";

/// Checks the `clientConfig` of a webhook of `v1`.
pub(super) fn check_client_config(webhook: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = at.child("clientConfig");
    let config = read_object(webhook, "clientConfig");
    let url = config.and_then(|config| read_string(config, "url"));
    let service = config.and_then(|config| read_object(config, "service"));
    match (url, service) {
        (Some(_), Some(_)) | (None, None) => {
            errors.push(at.required("exactly one of url or service is required"));
        }
        (Some(url), None) => check_url(url, &at.child("url"), errors),
        (None, Some(service)) => {
            let at = at.child("service");
            check_service(service, &at, errors);
            let port = service.get("port").and_then(Value::as_i64).unwrap_or_default();
            if !(1..=65535).contains(&port) {
                let detail = "port is not valid: must be between 1 and 65535, inclusive";
                errors.push(at.child("port").invalid(port, detail));
            }
            check_url_path(
                read_string(service, "path").unwrap_or_default(),
                &at.child("path"),
                errors,
            );
        }
    }
}

/// Checks the `clientConfig` of a hook of `v1alpha1`.
pub(super) fn check_v1alpha1_client_config(
    hook: &Tree,
    at: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = at.child("clientConfig");
    let empty = Tree::new();
    let config = read_object(hook, "clientConfig").unwrap_or(&empty);
    let service = read_object(config, "service").unwrap_or(&empty);
    check_service(service, &at.child("service"), errors);
    let path = at.child("caBundle");
    match decode_ca_bundle(config) {
        None => errors.push(path.required("")),
        Some(bundle) if CaBundle::from_pem(&bundle).is_err() => {
            // The error shows the bytes in base64, as JSON has them.
            let shown =
                BadValue::Text(read_string(config, "caBundle").unwrap_or_default().to_owned());
            errors.push(path.invalid(shown, "unable to parse any certificate"));
        }
        Some(_) => {}
    }
    check_url_path(
        read_string(config, "urlPath").unwrap_or_default(),
        &at.child("urlPath"),
        errors,
    );
}

fn check_url(url: &str, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let url = match Url::parse(url) {
        Ok(url) => url,
        Err(error) => {
            errors.push(at.required(&format!("url must be a valid URL: {error}{URL_FORMAT_HINT}")));
            return;
        }
    };
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if url.scheme() != "https" {
        let detail = format!("'https' is the only allowed URL scheme{URL_FORMAT_HINT}");
        errors.push(at.invalid(url.scheme(), &detail));
    }
    if url.host().is_empty() {
        errors.push(at.invalid("", &format!("host must be specified{URL_FORMAT_HINT}")));
    }
    if let Some(user) = url.user() {
        let detail = "user information is not permitted in the URL";
        errors.push(at.invalid(user.to_string(), detail));
    }
    if !url.fragment().is_empty() {
        let detail = "fragments are not permitted in the URL";
        errors.push(at.invalid(shown(url.fragment()), detail));
    }
    if !url.raw_query().is_empty() {
        let detail = "query parameters are not permitted in the URL";
        errors.push(at.invalid(url.raw_query(), detail));
    }
}

/// Checks the Service reference. Kubernetes names `namespace` if `name` is missing and the reverse; this function
/// names the member that is missing.
fn check_service(service: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    for member in ["name", "namespace"] {
        if read_string(service, member).unwrap_or_default().is_empty() {
            errors.push(at.child(member).required(""));
        }
    }
}

fn check_url_path(path: &str, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    if matches!(path, "" | "/") {
        return;
    }
    if path == "//" {
        errors.push(at.invalid(path, "segment[0] may not be empty"));
        return;
    }
    if !path.starts_with('/') {
        errors.push(at.invalid(path, "must start with a '/'"));
    }
    // As in Kubernetes, the segments are checked from the second byte on, even if the first byte is not a slash.
    let rest = String::from_utf8_lossy(path.as_bytes().get(1..).unwrap_or_default());
    let rest = rest.strip_suffix('/').unwrap_or(&rest);
    let mut faults = Vec::new();
    for (idx, segment) in rest.split('/').enumerate() {
        if segment.is_empty() {
            faults.push(format!("segment[{idx}] may not be empty"));
        } else {
            let of_segment = dns1123_subdomain_faults(segment);
            faults.extend(of_segment.iter().map(|fault| format!("segment[{idx}]: {fault}")));
        }
        if faults.len() >= PATH_FAULTS_MAX {
            break;
        }
    }
    errors.extend(faults.iter().map(|fault| at.invalid(path, fault)));
}
