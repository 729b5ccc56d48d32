//! Files of authorization hooks: endpoints, certificates and the faults of such files.

use document::WarningCode;
use https_client::{Destination, Proxy, Scheme, ServiceName, Trust};
use kubeconfig::{HookConnection, LoadedConnections};

use crate::workplace::{Workplace, config};

const HEADER: &str = "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n\
    kind: ExternalAuthorizationHookConfiguration\nexternalAuthorizationHooks:\n";

fn hooks(place: &Workplace, list: &str) -> Vec<HookConnection> {
    match place.load(&format!("{HEADER}{list}")) {
        Ok(LoadedConnections::Hooks(hooks)) => hooks,
        other => panic!("expected hooks, got {other:?}"),
    }
}

#[test]
fn shw_01_a_service_is_called_at_its_root() {
    let place = Workplace::new();
    let list = "- name: webhook-name\n  clientConfig:\n    {serverCaFile: ca.pem, clientCertFile: \
        client.pem, clientKeyFile: client.key,\n     service: {name: some-service, namespace: \
        some-namespace}}\n";
    let [hook] = hooks(&place, list).try_into().unwrap();
    assert_eq!(hook.name, "webhook-name");
    let target = &hook.connection.target;
    let service = ServiceName {
        namespace: "some-namespace".to_owned(),
        name: "some-service".to_owned(),
        port: 443,
    };
    assert_eq!(service.dns_name(), "some-service.some-namespace.svc");
    assert_eq!(target.destination, Destination::Service(service));
    assert_eq!(target.path, "/");
    assert!(matches!(target.trust, Trust::CaBundle(_)));
    assert!(target.client_certificate.is_some());
    let files = place.names(&hook.connection.files);
    assert_eq!(files, ["config", "ca.pem", "client.pem", "client.key"]);
}

#[test]
fn shw_02_a_plain_kubeconfig_is_one() {
    let place = Workplace::new();
    let loaded = place.load(&config("server: 'https://h'", "")).unwrap();
    assert!(matches!(loaded, LoadedConnections::Kubeconfig(_)));
    assert!(loaded.into_single_connection().is_ok());
}

#[test]
fn shw_03_errors_of_a_file_of_hooks_are_final() {
    let place = Workplace::new();
    let header = HEADER.replace("v1alpha1", "v9");
    let text = format!("{header}- {{}}\nclusters: [{{cluster: {{server: 'https://h'}}}}]\n");
    let message = place.refusal(&text);
    assert!(
        message.starts_with(
            "1:13 failed to load ExternalAuthorizationHookConfiguration from file: no kind "
        ),
        "{message}"
    );
}

#[test]
fn shw_04_a_service_wins_over_a_url() {
    let place = Workplace::new();
    let list = "- name: a\n  clientConfig: {url: 'https://h', service: {name: s, namespace: ns}}\n";
    let [hook] = hooks(&place, list).try_into().unwrap();
    assert!(matches!(hook.connection.target.destination, Destination::Service(_)));
    assert_eq!(hook.connection.warnings[0].code, WarningCode::IgnoredHookUrl);
    assert!(
        place
            .refusal(&format!("{HEADER}- name: a\n"))
            .ends_with("webhook configuration must have either service or URL")
    );
}

#[test]
fn shw_15_a_url_with_an_authority_only() {
    let place = Workplace::new();
    let list =
        "- name: a\n  clientConfig: {url: 'https://h:8443/authorize/', serverCaFile: ca.pem}\n";
    let [hook] = hooks(&place, list).try_into().unwrap();
    let target = &hook.connection.target;
    let url = Destination::Url { scheme: Scheme::Https, host: "h".to_owned(), port: Some(8443) };
    assert_eq!((&target.destination, &*target.path), (&url, "/authorize"));
    assert!(matches!(target.trust, Trust::CaBundle(_)));
    assert_eq!((&target.client_certificate, &target.proxy), (&None, &Proxy::Environment));
}

#[test]
fn shw_08_exactly_one_hook_where_one_is_meant() {
    let place = Workplace::new();
    let hook =
        |name: &str| format!("- {{name: {name}, clientConfig: {{url: 'https://{name}'}}}}\n");
    let two = format!("{HEADER}{}{}", hook("b"), hook("a"));
    let Ok(LoadedConnections::Hooks(found)) = place.load(&two) else { panic!("{two}") };
    let names: Vec<_> = found.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    let error = place.load(&two).unwrap().into_single_connection().unwrap_err();
    assert_eq!(error.to_string(), "expected exactly one external authorization hook, got 2");
    let one = format!("{HEADER}{}", hook("a"));
    assert!(place.load(&one).unwrap().into_single_connection().is_ok());
}

#[test]
fn files_of_hooks_that_can_not_be_used() {
    let place = Workplace::new();
    let list = "- {name: a, clientConfig: {url: 'https://h', serverCaFile: missing}}\n\
        - {name: b, clientConfig: {url: 'https://h', serverCaFile: junk}}\n\
        - {name: c, clientConfig: {url: 'https://h', clientCertFile: junk, clientKeyFile: junk}}\n";
    let error = place.load(&format!("{HEADER}{list}")).unwrap_err();
    let lines: Vec<_> = error.diagnostics().iter().map(|found| found.position.line).collect();
    assert_eq!(lines, [4, 5, 6]);
    let message = place.refusal(&format!("{HEADER}{list}"));
    assert_eq!(
        message,
        "4:13 [externalAuthorizationHooks[0].clientConfig.serverCaFile: Invalid value: \"missing\": \
         open missing: no such file or directory, externalAuthorizationHooks[1].clientConfig.\
         serverCaFile: Invalid value: \"junk\": unable to load root certificates: unable to parse \
         bytes as PEM block, externalAuthorizationHooks[2].clientConfig.clientCertFile: Invalid \
         value: \"junk\": tls: failed to find any PEM data in certificate input]"
    );
}
