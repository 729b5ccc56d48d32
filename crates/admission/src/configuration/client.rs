//! Where hooks are (admission §2.4, V18 to V20).

use api_object::Tree;
use field_errors::{BadValue, FieldErrors, FieldPath, dns1123_subdomain_faults};
use go_compat::Url;
use serde_json::Value;
use x509_verify::CaBundle;

use crate::client::ca_bundle;
use crate::members::{object, text};

/// The most faults of one path that are told. Each shows the path, so that without a limit the faults
/// of a long one would take its length squared.
const PATH_FAULTS_MAX: usize = 32;

const FORM: &str = "; desired format: https://host[/path]";

/// Checks the `clientConfig` of a webhook of today.
pub(super) fn check(webhook: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = at.child("clientConfig");
    let config = object(webhook, "clientConfig");
    let url = config.and_then(|config| text(config, "url"));
    let service = config.and_then(|config| object(config, "service"));
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
            check_path(text(service, "path").unwrap_or_default(), &at.child("path"), errors);
        }
    }
}

/// Checks the `clientConfig` of a hook of v1alpha1.
pub(super) fn check_v1alpha1(hook: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = at.child("clientConfig");
    let empty = Tree::new();
    let config = object(hook, "clientConfig").unwrap_or(&empty);
    let service = object(config, "service").unwrap_or(&empty);
    check_service(service, &at.child("service"), errors);
    let path = at.child("caBundle");
    match ca_bundle(config) {
        None => errors.push(path.required("")),
        Some(bundle) if CaBundle::from_pem(&bundle).is_err() => {
            // Bytes show in their text form, as they would in JSON.
            let shown = BadValue::Text(text(config, "caBundle").unwrap_or_default().to_owned());
            errors.push(path.invalid(shown, "unable to parse any certificate"));
        }
        Some(_) => {}
    }
    check_path(text(config, "urlPath").unwrap_or_default(), &at.child("urlPath"), errors);
}

fn check_url(url: &str, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let url = match Url::parse(url) {
        Ok(url) => url,
        Err(error) => {
            errors.push(at.required(&format!("url must be a valid URL: {error}{FORM}")));
            return;
        }
    };
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if url.scheme() != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(at.invalid(url.scheme(), &detail));
    }
    if url.host().is_empty() {
        errors.push(at.invalid("", &format!("host must be specified{FORM}")));
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

/// Kubernetes tells the one where the other is missing; here it is the one that is (admission Q2).
fn check_service(service: &Tree, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    for member in ["name", "namespace"] {
        if text(service, member).unwrap_or_default().is_empty() {
            errors.push(at.child(member).required(""));
        }
    }
}

fn check_path(path: &str, at: &FieldPath<'_>, errors: &mut FieldErrors) {
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
    // The rest is checked from the second byte on, whatever the first one is.
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
