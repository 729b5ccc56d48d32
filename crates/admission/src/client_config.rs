//! The client configuration of a hook: its URL or Service, and its CA bundle.

use api_object::Tree;
use go_compat::Url;
use serde_json::Value;

use crate::json_members::{read_object, read_string};

/// The port of a Service if a webhook of `v1` names none.
const DEFAULT_PORT: u16 = 443;

/// The `clientConfig` of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// The URL or the Service.
    pub hook_endpoint: HookEndpoint,
    /// The escaped path of all calls; an empty path is sent as `/`.
    pub path: String,
    /// The CA bundle as PEM; `None` for the CAs of the system. Kubernetes does not validate it for webhooks of `v1`, so
    /// it can hold any bytes.
    pub ca_bundle: Option<Vec<u8>>,
}

/// The address of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HookEndpoint {
    /// The hook has an HTTPS URL.
    Url {
        /// A host name or an IP address; an IPv6 address has no brackets.
        host: String,
        /// The port; `None` for the default port of the scheme.
        port: Option<u16>,
    },
    /// The hook is behind a Service.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
        /// The port of the Service. `None` for hooks of `v1alpha1`: they use the only port of the Service, or 443 if it
        /// has several.
        port: Option<u16>,
    },
    /// The stored configuration has no valid address, so calls of the hook fail.
    Invalid,
}

impl ClientConfig {
    /// Reads the `clientConfig` of a webhook of `v1`.
    pub(crate) fn read(hook: &Tree) -> Self {
        let Some(config) = read_object(hook, "clientConfig") else {
            return Self::with_invalid_endpoint();
        };
        let ca_bundle = decode_ca_bundle(config);
        if let Some(service) = read_object(config, "service") {
            let port = service.get("port").map_or(Some(DEFAULT_PORT), parse_port);
            let path = read_string(service, "path").unwrap_or_default();
            return Self {
                hook_endpoint: service_endpoint(service, port),
                path: path.to_owned(),
                ca_bundle,
            };
        }
        let Some(Ok(url)) = read_string(config, "url").map(Url::parse) else {
            return Self::with_invalid_endpoint();
        };
        let host = String::from_utf8_lossy(url.hostname()).into_owned();
        let endpoint = HookEndpoint::Url { host, port: url.port().parse().ok() };
        Self { hook_endpoint: endpoint, path: url.escaped_path().into_owned(), ca_bundle }
    }

    /// Reads the `clientConfig` of a hook of `v1alpha1`.
    pub(crate) fn read_v1alpha1_client_config(hook: &Tree) -> Self {
        let Some(config) = read_object(hook, "clientConfig") else {
            return Self::with_invalid_endpoint();
        };
        let Some(service) = read_object(config, "service") else {
            return Self::with_invalid_endpoint();
        };
        let path = read_string(config, "urlPath").unwrap_or_default().to_owned();
        // The bundle is required in v1alpha1, so the CAs of the system never replace it.
        let ca_bundle = Some(decode_ca_bundle(config).unwrap_or_default());
        Self { hook_endpoint: service_endpoint(service, None), path, ca_bundle }
    }

    fn with_invalid_endpoint() -> Self {
        Self { hook_endpoint: HookEndpoint::Invalid, path: String::new(), ca_bundle: None }
    }
}

fn service_endpoint(service: &Tree, port: Option<u16>) -> HookEndpoint {
    let member = |name| read_string(service, name).unwrap_or_default().to_owned();
    HookEndpoint::Service { namespace: member("namespace"), name: member("name"), port }
}

fn parse_port(port: &Value) -> Option<u16> {
    port.as_u64().and_then(|port| u16::try_from(port).ok())
}

/// Decodes the CA bundle of a `clientConfig`; an empty bundle counts as absent.
pub(crate) fn decode_ca_bundle(config: &Tree) -> Option<Vec<u8>> {
    let bytes = decode_base64(read_string(config, "caBundle")?)?;
    (!bytes.is_empty()).then_some(bytes)
}

/// Decodes base64 as Go does: it skips line breaks and ignores the bits that padding cuts off.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    use base64::engine::general_purpose::{GeneralPurpose, PAD};
    const LENIENT_BASE64: GeneralPurpose =
        GeneralPurpose::new(&base64::alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));
    if text.contains(['\r', '\n']) {
        return LENIENT_BASE64.decode(text.replace(['\r', '\n'], "")).ok();
    }
    LENIENT_BASE64.decode(text).ok()
}
