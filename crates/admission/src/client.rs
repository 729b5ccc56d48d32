//! Where a hook is and whom to trust there (admission §2.4, §2.7).

use api_object::Tree;
use go_compat::Url;
use serde_json::Value;

use crate::members::{object, text};

/// The port of a service that a webhook of today names none of.
const DEFAULT_PORT: u16 = 443;

/// How to reach a hook, as its configuration says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// Where.
    pub endpoint: Endpoint,
    /// The path of all calls, escaped; an empty one is sent as `/`.
    pub path: String,
    /// PEM of the authorities to trust, and nobody else; `None` for those of the system. Not
    /// validated for webhooks of today, so it may hold anything.
    pub ca_bundle: Option<Vec<u8>>,
}

/// Where a hook is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// At an HTTPS URL.
    Url {
        /// A name or an address; an IPv6 address without brackets.
        host: String,
        /// `None` for the port of the scheme.
        port: Option<u16>,
    },
    /// Behind a Service.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// Its name.
        name: String,
        /// The port of the Service. `None` for hooks of v1alpha1, which take the only port of the
        /// Service, or 443 if it has several (admission §4.7).
        port: Option<u16>,
    },
    /// Nowhere: the stored configuration can not be understood.
    Nowhere,
}

impl ClientConfig {
    /// Reads the `clientConfig` of a webhook of today.
    pub(crate) fn read(hook: &Tree) -> Self {
        let Some(config) = object(hook, "clientConfig") else { return Self::nowhere() };
        let ca_bundle = ca_bundle(config);
        if let Some(service) = object(config, "service") {
            let port = service.get("port").map_or(Some(DEFAULT_PORT), port_of);
            let path = text(service, "path").unwrap_or_default();
            return Self { endpoint: endpoint(service, port), path: path.to_owned(), ca_bundle };
        }
        let Some(Ok(url)) = text(config, "url").map(Url::parse) else { return Self::nowhere() };
        let host = String::from_utf8_lossy(url.hostname()).into_owned();
        let endpoint = Endpoint::Url { host, port: url.port().parse().ok() };
        Self { endpoint, path: url.escaped_path().into_owned(), ca_bundle }
    }

    /// Reads the `clientConfig` of a hook of v1alpha1.
    pub(crate) fn read_v1alpha1(hook: &Tree) -> Self {
        let Some(config) = object(hook, "clientConfig") else { return Self::nowhere() };
        let Some(service) = object(config, "service") else { return Self::nowhere() };
        let path = text(config, "urlPath").unwrap_or_default().to_owned();
        // The bundle is required here, so the system's authorities never stand in for it.
        let ca_bundle = Some(ca_bundle(config).unwrap_or_default());
        Self { endpoint: endpoint(service, None), path, ca_bundle }
    }

    fn nowhere() -> Self {
        Self { endpoint: Endpoint::Nowhere, path: String::new(), ca_bundle: None }
    }
}

fn endpoint(service: &Tree, port: Option<u16>) -> Endpoint {
    let member = |name| text(service, name).unwrap_or_default().to_owned();
    Endpoint::Service { namespace: member("namespace"), name: member("name"), port }
}

fn port_of(port: &Value) -> Option<u16> {
    port.as_u64().and_then(|port| u16::try_from(port).ok())
}

/// The bytes of a bundle; an empty one is as good as none.
pub(crate) fn ca_bundle(config: &Tree) -> Option<Vec<u8>> {
    let bytes = decode_base64(text(config, "caBundle")?)?;
    (!bytes.is_empty()).then_some(bytes)
}

/// Decodes as Go does, which skips line breaks and does not look at bits that the padding cuts off.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    use base64::engine::general_purpose::{GeneralPurpose, PAD};
    const LENIENT: GeneralPurpose =
        GeneralPurpose::new(&base64::alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));
    if text.contains(['\r', '\n']) {
        return LENIENT.decode(text.replace(['\r', '\n'], "")).ok();
    }
    LENIENT.decode(text).ok()
}
