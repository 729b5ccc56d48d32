//! Files of authorization hooks: endpoints, certificates and the faults of such files.

use document::WarningCode;
use https_client::{Destination, Proxy, Scheme, ServerTrust, ServiceName};
use kubeconfig::{AuthorizationHookConnection, LoadedConnections};

use crate::test_folder::{TestFolder, config};

const HEADER: &str = "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n\
    kind: ExternalAuthorizationHookConfiguration\nexternalAuthorizationHooks:\n";

fn hooks(test_folder: &TestFolder, list: &str) -> Vec<AuthorizationHookConnection> {
    match test_folder.load(&format!("{HEADER}{list}")) {
        Ok(LoadedConnections::Hooks(hooks)) => hooks,
        other => panic!("expected hooks, got {other:?}"),
    }
}

#[test]
fn shw_01_a_service_is_called_at_its_root() {
    let test_folder = TestFolder::new();
    let list = "- name: webhook-name\n  clientConfig:\n    {serverCaFile: ca.pem, clientCertFile: \
        client.pem, clientKeyFile: client.key,\n     service: {name: some-service, namespace: \
        some-namespace}}\n";
    let [hook] = hooks(&test_folder, list).try_into().unwrap();
    assert_eq!(hook.name, "webhook-name");
    let target = &hook.server_connection.client_target;
    let service = ServiceName {
        namespace: "some-namespace".to_owned(),
        name: "some-service".to_owned(),
        port: None,
    };
    assert_eq!(service.service_dns_name(), "some-service.some-namespace.svc");
    assert_eq!(target.destination, Destination::Service(service));
    assert_eq!(target.path, "/");
    assert!(matches!(target.server_trust, ServerTrust::CaBundle(_)));
    assert!(target.client_certificate.is_some());
    let files = test_folder.names(&hook.server_connection.source_files);
    assert_eq!(files, ["config", "ca.pem", "client.pem", "client.key"]);
}

#[test]
fn shw_02_a_kubeconfig_is_a_single_connection() {
    let test_folder = TestFolder::new();
    let loaded = test_folder.load(&config("server: 'https://h'", "")).unwrap();
    assert!(matches!(loaded, LoadedConnections::Kubeconfig(_)));
    assert!(loaded.into_single_connection().is_ok());
}

#[test]
fn shw_03_an_invalid_hook_file_is_not_read_as_kubeconfig() {
    let test_folder = TestFolder::new();
    let header = HEADER.replace("v1alpha1", "v9");
    let text = format!("{header}- {{}}\nclusters: [{{cluster: {{server: 'https://h'}}}}]\n");
    let message = test_folder.refusal(&text);
    assert!(
        message.starts_with(
            "1:13 failed to load ExternalAuthorizationHookConfiguration from file: no kind "
        ),
        "{message}"
    );
}

#[test]
fn shw_04_a_service_takes_precedence_over_a_url() {
    let test_folder = TestFolder::new();
    let list = "- name: a\n  clientConfig: {url: 'https://h', service: {name: s, namespace: ns}}\n";
    let [hook] = hooks(&test_folder, list).try_into().unwrap();
    assert!(matches!(hook.server_connection.client_target.destination, Destination::Service(_)));
    assert_eq!(hook.server_connection.warnings[0].code, WarningCode::IgnoredHookUrl);
    assert!(
        test_folder
            .refusal(&format!("{HEADER}- name: a\n"))
            .ends_with("webhook configuration must have either service or URL")
    );
}

#[test]
fn shw_15_a_url_with_an_authority_only() {
    let test_folder = TestFolder::new();
    let list =
        "- name: a\n  clientConfig: {url: 'https://h:8443/authorize/', serverCaFile: ca.pem}\n";
    let [hook] = hooks(&test_folder, list).try_into().unwrap();
    let target = &hook.server_connection.client_target;
    let url = Destination::Url { scheme: Scheme::Https, host: "h".to_owned(), port: Some(8443) };
    assert_eq!((&target.destination, &*target.path), (&url, "/authorize"));
    assert!(matches!(target.server_trust, ServerTrust::CaBundle(_)));
    assert_eq!((&target.client_certificate, &target.proxy), (&None, &Proxy::Environment));
}

#[test]
fn shw_08_several_hooks_are_refused_where_one_is_expected() {
    let test_folder = TestFolder::new();
    let hook =
        |name: &str| format!("- {{name: {name}, clientConfig: {{url: 'https://{name}'}}}}\n");
    let two = format!("{HEADER}{}{}", hook("b"), hook("a"));
    let Ok(LoadedConnections::Hooks(found)) = test_folder.load(&two) else { panic!("{two}") };
    let names: Vec<_> = found.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    let error = test_folder.load(&two).unwrap().into_single_connection().unwrap_err();
    assert_eq!(error.to_string(), "expected exactly one external authorization hook, got 2");
    let one = format!("{HEADER}{}", hook("a"));
    assert!(test_folder.load(&one).unwrap().into_single_connection().is_ok());
}

#[test]
fn unusable_hook_files_are_refused() {
    let test_folder = TestFolder::new();
    let list = "- {name: a, clientConfig: {url: 'https://h', serverCaFile: missing}}\n\
        - {name: b, clientConfig: {url: 'https://h', serverCaFile: junk}}\n\
        - {name: c, clientConfig: {url: 'https://h', clientCertFile: junk, clientKeyFile: junk}}\n";
    let error = test_folder.load(&format!("{HEADER}{list}")).unwrap_err();
    let lines: Vec<_> = error.diagnostics().iter().map(|found| found.position.line).collect();
    assert_eq!(lines, [4, 5, 6]);
    let message = test_folder.refusal(&format!("{HEADER}{list}"));
    assert_eq!(
        message,
        "4:13 [externalAuthorizationHooks[0].clientConfig.serverCaFile: Invalid value: \"missing\": \
         open missing: no such file or directory, externalAuthorizationHooks[1].clientConfig.\
         serverCaFile: Invalid value: \"junk\": unable to load root certificates: unable to parse \
         bytes as PEM block, externalAuthorizationHooks[2].clientConfig.clientCertFile: Invalid \
         value: \"junk\": tls: failed to find any PEM data in certificate input]"
    );
}
