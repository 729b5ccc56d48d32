//! Loads a hook file and builds the connection of each hook.

use std::path::Path;

use config::authorization_hooks::{
    AuthorizationHook, AuthorizationHookEndpoint, LoadError as HookFileError,
    load_authorization_hooks,
};
use document::{Diagnostic, Fault, Source};
use field_errors::FieldPath;
use https_client::{ClientCertificate, Destination, Proxy, ServerTrust, ServiceName, Target};

use crate::cluster_target::parse_ca_bundle;
use crate::connection::{AuthorizationHookConnection, ServerConnection};
use crate::credentials::{PemSource, check_client_certificate};
use crate::load_error::{CertificateError, LoadError};
use crate::referenced_files::{ReadFileFn, ReferencedFiles};
use crate::server_url::ServerUrl;

/// Loads a hook file. The first connection gets the warnings about the file.
///
/// # Errors
///
/// The file cannot be decoded or breaks a rule, or a file that it names cannot be used.
pub(crate) fn load_authorization_hook_connections(
    source: &Source<'_>,
    path: &Path,
    read: ReadFileFn<'_>,
) -> Result<Vec<AuthorizationHookConnection>, LoadError> {
    let loaded = load_authorization_hooks(source);
    let hooks = loaded.authorization_hooks.map_err(convert_hook_file_error)?;
    let mut warnings = Some(loaded.warnings);
    let mut diagnostics = Vec::new();
    let mut connections = Vec::with_capacity(hooks.len());
    for hook in hooks {
        let mut files = ReferencedFiles::new(path, read);
        match build_hook_target(&hook, &mut files) {
            Ok(target) => connections.push(AuthorizationHookConnection {
                name: hook.name,
                server_connection: ServerConnection {
                    client_target: target,
                    source_files: files.into_used_paths(),
                    warnings: warnings.take().unwrap_or_default(),
                },
            }),
            Err(fault) => diagnostics.push(Diagnostic {
                fault,
                file_name: source.name.to_owned(),
                position: hook.client_config_position,
                hint: None,
                expression_issues: Vec::new(),
            }),
        }
    }
    if diagnostics.is_empty() {
        return Ok(connections);
    }
    let messages: Vec<_> = diagnostics.iter().map(|found| found.fault.to_string()).collect();
    Err(LoadError::Unusable { message: field_errors::aggregate_messages(&messages), diagnostics })
}

fn convert_hook_file_error(error: HookFileError) -> LoadError {
    let message = error.to_string();
    let diagnostics = match error {
        HookFileError::Decode(error) => error.diagnostics,
        HookFileError::Invalid(diagnostics) => diagnostics,
    };
    LoadError::Unusable { message, diagnostics }
}

fn build_hook_target(
    hook: &AuthorizationHook,
    files: &mut ReferencedFiles<'_>,
) -> Result<Target, Fault> {
    let at = FieldPath::root(&hook.field);
    let mut target = match &hook.endpoint {
        AuthorizationHookEndpoint::Service { namespace, name, port } => {
            let (namespace, name) = (namespace.clone(), name.clone());
            let service = ServiceName { namespace, name, port: *port };
            Target::new(Destination::Service(service), "/")
        }
        AuthorizationHookEndpoint::Url(url) => {
            let at = at.child("url");
            let ServerUrl { scheme, host, port, path, .. } = ServerUrl::parse(url)
                .map_err(|error| Fault::Field(at.invalid(url.as_str(), &error.to_string())))?;
            let mut target = Target::new(Destination::Url { scheme, host, port }, &path);
            target.proxy = Proxy::Environment;
            target
        }
    };
    target.server_trust = load_hook_trust(hook, files, &at)?;
    target.client_certificate = load_hook_client_certificate(hook, files, &at)?;
    Ok(target)
}

fn load_hook_trust(
    hook: &AuthorizationHook,
    files: &mut ReferencedFiles<'_>,
    at: &FieldPath<'_>,
) -> Result<ServerTrust, Fault> {
    let Some(file) = &hook.server_ca_file else { return Ok(ServerTrust::System) };
    let path = files.resolve_path(file);
    let pem = files.read(&path).map_err(CertificateError::from);
    pem.and_then(|pem| parse_ca_bundle(&pem)).map_err(|error| {
        let at = at.child("serverCaFile");
        Fault::Field(at.invalid(path.display().to_string(), &error.to_string()))
    })
}

fn load_hook_client_certificate(
    hook: &AuthorizationHook,
    files: &mut ReferencedFiles<'_>,
    at: &FieldPath<'_>,
) -> Result<Option<ClientCertificate>, Fault> {
    let Some(certificate) = &hook.client_certificate else { return Ok(None) };
    let path = files.resolve_path(&certificate.certificate_file);
    let key = PemSource::File(files.resolve_path(&certificate.key_file));
    check_client_certificate(PemSource::File(path.clone()), key, files).map(Some).map_err(|error| {
        let at = at.child("clientCertFile");
        Fault::Field(at.invalid(path.display().to_string(), &error.to_string()))
    })
}
