//! The target that the client configuration of a hook becomes.

use admission::{ClientConfig, HookEndpoint};
use admission_hooks::{HookTargetError, hook_target};
use https_client::{CaBundleError, Destination, Scheme, ServerTrust, ServiceName};

fn config(endpoint: HookEndpoint) -> ClientConfig {
    ClientConfig { hook_endpoint: endpoint, path: "/x".to_owned(), ca_bundle: None }
}

#[test]
fn webhooks_are_at_urls_or_behind_services() {
    let url = HookEndpoint::Url { host: "::1".to_owned(), port: Some(8443) };
    let target = hook_target(&config(url), 1).unwrap();
    let place =
        Destination::Url { scheme: Scheme::Https, host: "::1".to_owned(), port: Some(8443) };
    assert_eq!((target.destination, target.path.as_str()), (place, "/x"));
    assert_eq!(target.server_trust, ServerTrust::System);
    for (named, port) in [(None, 8443), (Some(443), 443)] {
        let (namespace, name) = ("n".to_owned(), "s".to_owned());
        let service = HookEndpoint::Service { namespace, name, port: named };
        let target = hook_target(&config(service), 8443).unwrap();
        let place =
            ServiceName { namespace: "n".to_owned(), name: "s".to_owned(), port: Some(port) };
        assert_eq!(
            target.destination,
            Destination::Service(place),
            "the Service decides if none is named"
        );
    }
}

#[test]
fn ca_bundles_replace_the_certificates_of_the_system() {
    let authority = fake_http::Authority::new("ca").unwrap();
    let url = HookEndpoint::Url { host: "example.com".to_owned(), port: None };
    let target = |pem: &[u8]| {
        hook_target(&ClientConfig { ca_bundle: Some(pem.to_owned()), ..config(url.clone()) }, 1)
    };
    assert!(matches!(
        target(authority.pem().as_bytes()).unwrap().server_trust,
        ServerTrust::CaBundle(_)
    ));
    assert_eq!(target(b"").unwrap_err(), HookTargetError::CaBundle(CaBundleError::NotPem));
    assert_eq!(
        target(b"foo").unwrap_err().to_string(),
        "could not get REST client: unable to parse bytes as PEM block"
    );
}

#[test]
fn a_configuration_without_url_and_service_has_no_target() {
    let error = hook_target(&config(HookEndpoint::Invalid), 443).unwrap_err();
    assert_eq!(error, HookTargetError::InvalidClientConfig);
    assert_eq!(error.to_string(), "could not get REST client: invalid client configuration");
}
