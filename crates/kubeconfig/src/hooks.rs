//! From a file of hooks to services that can be called.

use std::path::Path;

use config::authorization_hooks::{Endpoint, Hook, LoadError as HookFileError, load};
use document::{Diagnostic, Fault, Source};
use field_errors::FieldPath;
use https_client::{Identity, Place, Proxy, ServiceName, Target, Trust};

use crate::access::{Part, check_identity};
use crate::connection::{Connection, HookConnection};
use crate::error::LoadError;
use crate::files::{Files, Read};
use crate::server_url::ServerUrl;
use crate::target::roots;

/// The port of every service: the format has no field for it.
const SERVICE_PORT: u16 = 443;

/// Loads a file of hooks. Its warnings go to the first one.
///
/// # Errors
///
/// The file can not be decoded or breaks a rule, or a file that it names can not be used.
pub(crate) fn connections(
    source: &Source<'_>,
    path: &Path,
    read: Read<'_>,
) -> Result<Vec<HookConnection>, LoadError> {
    let loaded = load(source);
    let hooks = loaded.outcome.map_err(unusable)?;
    let mut warnings = Some(loaded.warnings);
    let mut diagnostics = Vec::new();
    let mut connections = Vec::with_capacity(hooks.len());
    for hook in hooks {
        let mut files = Files::new(path, read);
        match target(&hook, &mut files) {
            Ok(target) => connections.push(HookConnection {
                name: hook.name,
                connection: Connection {
                    target,
                    files: files.into_used(),
                    warnings: warnings.take().unwrap_or_default(),
                },
            }),
            Err(fault) => diagnostics.push(Diagnostic {
                fault,
                file: source.name.to_owned(),
                place: hook.place,
                hint: None,
                notes: Vec::new(),
            }),
        }
    }
    if diagnostics.is_empty() {
        return Ok(connections);
    }
    let messages: Vec<_> = diagnostics.iter().map(|found| found.fault.to_string()).collect();
    Err(LoadError::Unusable { message: field_errors::aggregate(&messages), diagnostics })
}

fn unusable(error: HookFileError) -> LoadError {
    let message = error.to_string();
    let diagnostics = match error {
        HookFileError::Decode(error) => error.diagnostics,
        HookFileError::Invalid(diagnostics) => diagnostics,
    };
    LoadError::Unusable { message, diagnostics }
}

fn target(hook: &Hook, files: &mut Files<'_>) -> Result<Target, Fault> {
    let at = FieldPath::root(&hook.field);
    let mut target = match &hook.endpoint {
        Endpoint::Service { namespace, name } => {
            let (namespace, name) = (namespace.clone(), name.clone());
            let service = ServiceName { namespace, name, port: SERVICE_PORT };
            Target::new(Place::Service(service), "/")
        }
        Endpoint::Url(url) => {
            let at = at.child("url");
            let ServerUrl { scheme, host, port, path, .. } = ServerUrl::parse(url)
                .map_err(|message| Fault::Field(at.invalid(url.as_str(), &message)))?;
            let mut target = Target::new(Place::Url { scheme, host, port }, &path);
            target.proxy = Proxy::Environment;
            target
        }
    };
    target.trust = trust(hook, files, &at)?;
    target.identity = identity(hook, files, &at)?;
    Ok(target)
}

fn trust(hook: &Hook, files: &mut Files<'_>, at: &FieldPath<'_>) -> Result<Trust, Fault> {
    let Some(file) = &hook.server_ca_file else { return Ok(Trust::System) };
    let path = files.resolve(file);
    files.read(&path).and_then(|pem| roots(&pem)).map_err(|message| {
        let at = at.child("serverCaFile");
        Fault::Field(at.invalid(path.display().to_string(), &message))
    })
}

fn identity(
    hook: &Hook,
    files: &mut Files<'_>,
    at: &FieldPath<'_>,
) -> Result<Option<Identity>, Fault> {
    let Some(certificate) = &hook.client_certificate else { return Ok(None) };
    let path = files.resolve(&certificate.certificate_file);
    let key = Part::File(files.resolve(&certificate.key_file));
    check_identity(Part::File(path.clone()), key, files).map(Some).map_err(|message| {
        let at = at.child("clientCertFile");
        Fault::Field(at.invalid(path.display().to_string(), &message))
    })
}
