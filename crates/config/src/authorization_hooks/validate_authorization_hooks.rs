//! Validates the decoded hook file and converts its hooks.

use std::collections::BTreeSet;
use std::path::PathBuf;

use document::{
    FieldValue, LineIndex, SourcePosition, SpannedWarning, ValidationReport, WarningCode,
};
use field_errors::{FieldPath, dns1123_label_faults, dns1123_subdomain_faults};

use super::{authorization_hook_url, unvalidated_config};

/// The maximum number of hooks of a file. Each hook has its own client and connections and is a step of every decision,
/// so a larger number is certainly a mistake.
pub const HOOKS_MAX: usize = 256;

/// One authorization webhook of a hook file, after validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationHook {
    /// The name of the hook, unique in the file.
    pub name: String,
    /// Path of the client configuration, such as `externalAuthorizationHooks[0].clientConfig`.
    pub field: String,
    /// Position of the client configuration.
    pub client_config_position: SourcePosition,
    /// The address of the webhook.
    pub endpoint: AuthorizationHookEndpoint,
    /// File with the trusted certificate authorities; `None` trusts those of the system.
    pub server_ca_file: Option<PathBuf>,
    /// The client certificate that the caller presents.
    pub client_certificate: Option<ClientCertificateFiles>,
}

/// The address of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationHookEndpoint {
    /// A service of the cluster.
    Service {
        /// The namespace of the service.
        namespace: String,
        /// The name of the service.
        name: String,
        /// The port of the service; `None` means its only port, or 443 if it has several.
        port: Option<u16>,
    },
    /// A URL with the scheme `https`, without user, query and fragment.
    Url(String),
}

/// The files of a client certificate. Relative paths start at the folder of the hook file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificateFiles {
    /// File with the certificate.
    pub certificate_file: PathBuf,
    /// File with its key.
    pub key_file: PathBuf,
}

/// Converts the hooks. One that breaks a rule is left out and has a fault in the report.
pub(super) fn convert_authorization_hooks(
    configuration: &unvalidated_config::UnvalidatedAuthorizationHookConfig,
    lines: &LineIndex<'_>,
    report: &mut ValidationReport,
) -> Vec<AuthorizationHook> {
    let at = FieldPath::root("externalAuthorizationHooks");
    let n_hooks = configuration.authorization_hooks.len();
    if n_hooks == 0 {
        let error = at.required("at least one external authorization hook must be defined");
        report.add_fault_at_span(error, configuration.authorization_hooks_span);
    }
    if n_hooks > HOOKS_MAX {
        report.add_fault_at_span(
            at.too_many(n_hooks, HOOKS_MAX),
            configuration.authorization_hooks_span,
        );
        return Vec::new();
    }
    let mut seen_names = BTreeSet::new();
    let hooks = configuration.authorization_hooks.iter().enumerate();
    hooks
        .filter_map(|(idx, hook)| {
            let at = match &hook.key {
                Some(key) => at.key(key),
                None => at.index(idx),
            };
            convert_authorization_hook(&at, hook, lines, &mut seen_names, report)
        })
        .collect()
}

fn convert_authorization_hook<'w>(
    at: &FieldPath<'_>,
    hook: &'w unvalidated_config::UnvalidatedAuthorizationHook,
    lines: &LineIndex<'_>,
    seen_names: &mut BTreeSet<&'w str>,
    report: &mut ValidationReport,
) -> Option<AuthorizationHook> {
    let name = convert_authorization_hook_name(at, hook, seen_names, report);
    let at_config = at.child("clientConfig");
    let config = &hook.client_config;
    let endpoint = convert_endpoint(&at_config, config, report);
    let client_certificate = convert_client_certificate(&at_config, config, report);
    Some(AuthorizationHook {
        name: name?,
        field: at_config.to_string(),
        client_config_position: lines.position_of_span(config.span),
        endpoint: endpoint?,
        server_ca_file: path_if_set(&config.server_ca_file),
        client_certificate: client_certificate?,
    })
}

fn convert_authorization_hook_name<'w>(
    at: &FieldPath<'_>,
    hook: &'w unvalidated_config::UnvalidatedAuthorizationHook,
    seen_names: &mut BTreeSet<&'w str>,
    report: &mut ValidationReport,
) -> Option<String> {
    let at = at.child("name");
    let name = hook.name.value.as_str();
    let is_new = seen_names.insert(name);
    let faults = dns1123_subdomain_faults(name);
    let error = if name.is_empty() {
        at.required("")
    } else if hook.key.as_ref().is_some_and(|key| key != name) {
        at.invalid(name, "must equal the key of the hook")
    } else if !is_new {
        at.duplicate(name)
    } else if !faults.is_empty() {
        at.invalid(name, &faults.join(", "))
    } else {
        return Some(name.to_owned());
    };
    report.add_fault(error, &hook.name, hook.span);
    None
}

/// Converts the endpoint. A service takes precedence over a URL, which is then not validated.
fn convert_endpoint(
    at: &FieldPath<'_>,
    config: &unvalidated_config::ClientConfig,
    report: &mut ValidationReport,
) -> Option<AuthorizationHookEndpoint> {
    let url = &config.url;
    if let Some(service) = &config.service {
        if !url.value.is_empty() {
            report.warnings.push(SpannedWarning {
                code: WarningCode::IgnoredHookUrl,
                field: at.child("url").to_string(),
                message: "the URL is ignored, since there is a service".to_owned(),
                span: url.span.unwrap_or(config.span),
                hint: Some("give either `service` or `url`".to_owned()),
            });
        }
        return convert_service(&at.child("service"), service, report);
    }
    if url.value.is_empty() {
        let error = at.required("webhook configuration must have either service or URL");
        report.add_fault_at_span(error, config.span);
        return None;
    }
    let faults =
        authorization_hook_url::authorization_hook_url_faults(&at.child("url"), &url.value);
    if faults.is_empty() {
        return Some(AuthorizationHookEndpoint::Url(url.value.clone()));
    }
    for fault in faults {
        report.add_fault(fault, url, config.span);
    }
    None
}

fn convert_service(
    at: &FieldPath<'_>,
    service: &unvalidated_config::Service,
    report: &mut ValidationReport,
) -> Option<AuthorizationHookEndpoint> {
    let mut label = |field: &str, scalar: &FieldValue<String>| {
        let at = at.child(field);
        let value = scalar.value.as_str();
        let faults = dns1123_label_faults(value);
        if value.is_empty() {
            report.add_fault(at.required(""), scalar, service.span);
        } else if !faults.is_empty() {
            report.add_fault(at.invalid(value, &faults.join(", ")), scalar, service.span);
        }
        (faults.is_empty() && !value.is_empty()).then(|| value.to_owned())
    };
    let name = label("name", &service.name);
    let namespace = label("namespace", &service.namespace);
    let port = convert_port(&at.child("port"), service, report);
    Some(AuthorizationHookEndpoint::Service { namespace: namespace?, name: name?, port: port? })
}

/// Converts the port, which is our extension of the format. The outer `None` means that a fault was reported.
fn convert_port(
    at: &FieldPath<'_>,
    service: &unvalidated_config::Service,
    report: &mut ValidationReport,
) -> Option<Option<u16>> {
    let Some(number) = service.port.value else { return Some(None) };
    match u16::try_from(number).ok().filter(|port| *port > 0) {
        Some(port) => Some(Some(port)),
        None => {
            let error = at.invalid(number, "must be between 1 and 65535, inclusive");
            report.add_fault(error, &service.port, service.span);
            None
        }
    }
}

/// Checks that either both files are set or neither is. The outer `None` means that a fault was reported.
fn convert_client_certificate(
    at: &FieldPath<'_>,
    config: &unvalidated_config::ClientConfig,
    report: &mut ValidationReport,
) -> Option<Option<ClientCertificateFiles>> {
    let alias = &config.client_certificate_file;
    let (field, certificate) = match (&config.client_cert_file, alias) {
        (named, alias) if !named.value.is_empty() && !alias.value.is_empty() => {
            let error = at
                .child("clientCertificateFile")
                .forbidden("is another name of clientCertFile, which is set");
            report.add_fault(error, alias, config.span);
            return None;
        }
        (_, alias) if !alias.value.is_empty() => ("clientCertificateFile", alias),
        (named, _) => ("clientCertFile", named),
    };
    let key = &config.client_key_file;
    match (path_if_set(certificate), path_if_set(key)) {
        (Some(certificate_file), Some(key_file)) => {
            Some(Some(ClientCertificateFiles { certificate_file, key_file }))
        }
        (None, None) => Some(None),
        (Some(_), None) => {
            let detail = format!("must be set if {field} is set");
            report.add_fault(at.child("clientKeyFile").required(&detail), key, config.span);
            None
        }
        (None, Some(_)) => {
            let error = at.child(field).required("must be set if clientKeyFile is set");
            report.add_fault(error, certificate, config.span);
            None
        }
    }
}

fn path_if_set(scalar: &FieldValue<String>) -> Option<PathBuf> {
    (!scalar.value.is_empty()).then(|| PathBuf::from(&scalar.value))
}
