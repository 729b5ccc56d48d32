//! Converts the client configuration of a hook to the target of an HTTPS client.

use admission::{ClientConfig, HookEndpoint};
use https_client::{
    CaBundle, CaBundleError, Destination, Scheme, ServerTrust, ServiceName, Target,
};

/// Why no client can be made for a hook. The texts are those of Kubernetes' call failures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookTargetError {
    /// The stored client configuration names neither a URL nor a Service.
    #[error("could not get REST client: invalid client configuration")]
    InvalidClientConfig,
    /// The CA bundle holds no usable certificate.
    #[error("could not get REST client: {0}")]
    CaBundle(CaBundleError),
}

/// Converts the client configuration of a hook into a target.
///
/// `default_port` is the port of the Service for a configuration that names none (v1alpha1).
///
/// # Errors
/// [`HookTargetError`], which is a failure of the call.
pub fn hook_target(config: &ClientConfig, default_port: u16) -> Result<Target, HookTargetError> {
    let place = match &config.hook_endpoint {
        HookEndpoint::Invalid => return Err(HookTargetError::InvalidClientConfig),
        HookEndpoint::Url { host, port } => {
            Destination::Url { scheme: Scheme::Https, host: host.clone(), port: *port }
        }
        HookEndpoint::Service { namespace, name, port } => Destination::Service(ServiceName {
            namespace: namespace.clone(),
            name: name.clone(),
            port: Some(port.unwrap_or(default_port)),
        }),
    };
    let mut target = Target::new(place, &config.path);
    if let Some(pem) = &config.ca_bundle {
        let bundle = CaBundle::from_pem(pem).map_err(HookTargetError::CaBundle)?;
        target.server_trust = ServerTrust::CaBundle(bundle);
    }
    Ok(target)
}
