//! Loading and validation of hook files, with positions, hints and limits.

use std::path::Path;

use document::{DOCUMENT_BYTES_MAX, Source, WarningCode};

use super::{
    AuthorizationHook, AuthorizationHookEndpoint, HOOKS_MAX, LoadError, LoadedAuthorizationHooks,
    is_authorization_hook_configuration, load_authorization_hooks,
};

const HEADER: &str = "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n\
    kind: ExternalAuthorizationHookConfiguration\n";

fn file(hooks: &str) -> String {
    format!("{HEADER}externalAuthorizationHooks:\n{hooks}")
}

/// A file with one hook that has this `clientConfig`.
fn hook_file(client_config: &str) -> String {
    file(&format!("- name: guard\n  clientConfig: {client_config}\n"))
}

fn load_text(text: &str) -> LoadedAuthorizationHooks {
    load_authorization_hooks(&Source { name: "hooks.yaml", file_bytes: text.as_bytes() })
}

fn hooks(text: &str) -> Vec<AuthorizationHook> {
    let loaded = load_text(text);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    loaded.authorization_hooks.unwrap()
}

/// Asserts the position and the message of each fault, as `line:column message`.
fn faults(text: &str, want: &[&str]) {
    let error = load_text(text).authorization_hooks.unwrap_err();
    let found: Vec<_> = error
        .diagnostics()
        .iter()
        .map(|d| format!("{}:{} {}", d.position.line, d.position.column, d.fault))
        .collect();
    assert_eq!(found, want, "{text}");
}

fn decode_error(text: &str) -> String {
    match load_text(text).authorization_hooks {
        Err(error @ LoadError::Decode(_)) => error.to_string(),
        other => panic!("expected a decode error of {text:?}, got {other:?}"),
    }
}

fn service(namespace: &str, name: &str) -> AuthorizationHookEndpoint {
    AuthorizationHookEndpoint::Service {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port: None,
    }
}

#[test]
fn shw_01_the_sample_with_a_service() {
    let text = format!(
        "{HEADER}metadata: {{name: example-config}}\nexternalAuthorizationHooks:\n\
         - name: webhook-name\n  clientConfig:\n    {{serverCaFile: /p/ca.pem, clientCertFile: \
         /p/cert.pem, clientKeyFile: /p/key.pem,\n     service: {{name: some-service, namespace: \
         some-namespace}}}}\n"
    );
    let [hook] = hooks(&text).try_into().unwrap();
    assert_eq!(hook.name, "webhook-name");
    assert_eq!(hook.endpoint, service("some-namespace", "some-service"));
    assert_eq!(hook.server_ca_file.as_deref(), Some(Path::new("/p/ca.pem")));
    let certificate = hook.client_certificate.unwrap();
    assert_eq!(certificate.certificate_file, Path::new("/p/cert.pem"));
    assert_eq!(certificate.key_file, Path::new("/p/key.pem"));
    assert_eq!(hook.field, "externalAuthorizationHooks[0].clientConfig");
}

#[test]
fn shw_03_the_group_identifies_the_file() {
    let v9 = file("- {}").replace("v1alpha1", "v9");
    assert!(is_authorization_hook_configuration(&Source { name: "-", file_bytes: v9.as_bytes() }));
    assert_eq!(
        decode_error(&v9),
        "failed to load ExternalAuthorizationHookConfiguration from file: no kind \
         \"ExternalAuthorizationHookConfiguration\" is registered for version \
         \"kubeapiserverauthorization.config.k8s.io/v9\" in scheme \"external authorization hooks\""
    );
    let kind = HEADER.replace("kind: External", "kind: external");
    let error = load_text(&kind).authorization_hooks.unwrap_err();
    let hint = error.diagnostics()[0].hint.as_deref();
    assert_eq!(hint, Some("did you mean `ExternalAuthorizationHookConfiguration`?"));
    assert!(decode_error("kind: X\n").contains("Object 'apiVersion' is missing"));
    let no_kind = "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n";
    assert!(decode_error(no_kind).contains("Object 'Kind' is missing"));
}

#[test]
fn detection_of_hook_files() {
    for (text, want) in [
        (HEADER, true),
        ("apiVersion: kubeapiserverauthorization.config.k8s.io/v9\n", true),
        ("{\"apiVersion\": \"kubeapiserverauthorization.config.k8s.io/x\"}", true),
        ("ApiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n", true),
        // The file is malformed, but its kind can be detected.
        ("apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\na: [\n", true),
        ("apiVersion: v1\nkind: Config\n", false),
        ("apiVersion: v1\nx: {apiVersion: kubeapiserverauthorization.config.k8s.io/v1}\n", false),
        ("kind: ExternalAuthorizationHookConfiguration\n", false),
        ("", false),
        ("- a\n", false),
    ] {
        let source = Source { name: "-", file_bytes: text.as_bytes() };
        assert_eq!(is_authorization_hook_configuration(&source), want, "{text}");
    }
}

#[test]
fn shw_04_service_and_url() {
    let both = "{url: \"http://ignored?\", service: {name: a, namespace: b}}";
    let loaded = load_text(&hook_file(both));
    let [warning] = loaded.warnings.try_into().unwrap();
    assert_eq!(warning.code, WarningCode::IgnoredHookUrl);
    assert_eq!(warning.field, "externalAuthorizationHooks[0].clientConfig.url");
    assert_eq!((warning.position.line, warning.position.column), (5, 23));
    assert_eq!(loaded.authorization_hooks.unwrap()[0].endpoint, service("b", "a"));

    let neither = "externalAuthorizationHooks[0].clientConfig: Required value: webhook \
        configuration must have either service or URL";
    faults(&hook_file("{}"), &[&format!("5:3 {neither}")]);
    faults(&hook_file("{url: \"\", service: null}"), &[&format!("5:3 {neither}")]);
    faults(&file("- name: guard\n"), &[&format!("4:3 {neither}")]);
}

#[test]
fn shw_05_urls() {
    let url = "https://authz.example.com/authorize";
    let [hook] = hooks(&hook_file(&format!("{{url: \"{url}\"}}"))).try_into().unwrap();
    assert_eq!(hook.endpoint, AuthorizationHookEndpoint::Url(url.to_owned()));
    assert_eq!((hook.server_ca_file, hook.client_certificate), (None, None));

    let path = "externalAuthorizationHooks[0].clientConfig.url: Invalid value";
    let form = "desired format: https://host[/path]";
    faults(
        &hook_file("{url: \"http://h\"}"),
        &[&format!("5:23 {path}: \"http\": 'https' is the only allowed URL scheme; {form}")],
    );
    faults(
        &hook_file("{url: \"https://u:p@h?x#y\"}"),
        &[
            &format!("5:23 {path}: \"(hidden)\": user information is not permitted in the URL"),
            &format!("5:23 {path}: \"https://h\": fragments are not permitted in the URL"),
            &format!("5:23 {path}: \"https://h\": query parameters are not permitted in the URL"),
        ],
    );
}

#[test]
fn shw_06_certificate_and_key() {
    let at = "externalAuthorizationHooks[0].clientConfig";
    faults(
        &hook_file("{url: \"https://h\", clientCertFile: /c}"),
        &[&format!("5:3 {at}.clientKeyFile: Required value: must be set if clientCertFile is set")],
    );
    faults(
        &hook_file("{url: \"https://h\", clientKeyFile: /k}"),
        &[&format!("5:3 {at}.clientCertFile: Required value: must be set if clientKeyFile is set")],
    );
    let alias = "{url: \"https://h\", clientCertificateFile: c, clientKeyFile: k}";
    let [hook] = hooks(&hook_file(alias)).try_into().unwrap();
    assert_eq!(hook.client_certificate.unwrap().certificate_file, Path::new("c"));
    faults(
        &hook_file("{url: \"https://h\", clientCertFile: c, clientCertificateFile: c}"),
        &[&format!(
            "5:78 {at}.clientCertificateFile: Forbidden: is another name of clientCertFile, which \
             is set"
        )],
    );
}

#[test]
fn shw_06_decoding_is_strict() {
    let text = hook_file("{url: \"https://h\", serverCAFile: /p, url: x, service: 1}");
    faults(
        &text,
        &[
            "5:36 unknown field \"externalAuthorizationHooks[0].clientConfig.serverCAFile\"",
            "5:54 line 5: key \"url\" already set in map",
            "5:71 json: cannot unmarshal number into Go struct field \
             WebhookClientConfig.externalAuthorizationHooks.clientConfig.service of type \
             v1alpha1.ServiceReference",
        ],
    );
    let error = load_text(&text).authorization_hooks.unwrap_err();
    let hints: Vec<_> = error.diagnostics().iter().filter_map(|d| d.hint.as_deref()).collect();
    assert_eq!(hints[0], "did you mean `serverCaFile`?");
    let json = "{\"apiVersion\":\"kubeapiserverauthorization.config.k8s.io/v1alpha1\",\
        \"kind\":\"ExternalAuthorizationHookConfiguration\",\"a\":1,\"kind\":\"X\"}";
    assert!(decode_error(json).contains("no kind \"X\""));
    let json = json.replace("\"X\"", "\"ExternalAuthorizationHookConfiguration\"");
    assert!(
        decode_error(&json)
            .ends_with("strict decoding error: unknown field \"a\", duplicate field \"kind\"")
    );
    for hooks in ["text", "1", "[1]", "{a: 1}"] {
        assert!(
            decode_error(&file(&format!("  {hooks}\n"))).contains("json: cannot unmarshal"),
            "{hooks}"
        );
    }
}

#[test]
fn shw_07_the_map_form() {
    let text = file(
        "  second: {clientConfig: {url: \"https://two\"}}\n  \
         first: {name: first, clientConfig: {service: {name: one, namespace: ns}}}\n",
    );
    let found = hooks(&text);
    let names: Vec<_> = found.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(found[0].field, "externalAuthorizationHooks[first].clientConfig");

    let config = "clientConfig: {url: \"https://h\"}";
    faults(
        &file(&format!("  a: {{name: b, {config}}}\n  B: {{{config}}}\n")),
        &[
            "5:3 externalAuthorizationHooks[B].name: Invalid value: \"B\": a lowercase RFC 1123 \
             subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for \
             validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            "4:13 externalAuthorizationHooks[a].name: Invalid value: \"b\": must equal the key of \
             the hook",
        ],
    );
    faults(
        &file("  a: {clientConfig: {uri: x}}\n"),
        &["4:22 unknown field \"externalAuthorizationHooks.a.clientConfig.uri\""],
    );
}

#[test]
fn names_and_services_are_required_and_well_formed() {
    let config = "clientConfig: {url: \"https://h\"}";
    faults(
        &file(&format!("- {config}\n- {{name: a, {config}}}\n- {{name: a, {config}}}\n")),
        &[
            "4:3 externalAuthorizationHooks[0].name: Required value",
            "6:10 externalAuthorizationHooks[2].name: Duplicate value: \"a\"",
        ],
    );
    let error = load_text(&hook_file("{service: {name: a.b}}")).authorization_hooks.unwrap_err();
    let fields: Vec<_> = error.diagnostics().iter().map(|d| d.fault.field().to_owned()).collect();
    let at = "externalAuthorizationHooks[0].clientConfig.service";
    assert_eq!(fields, [format!("{at}.name"), format!("{at}.namespace")]);
}

#[test]
fn the_number_of_hooks_is_limited() {
    let missing = "externalAuthorizationHooks: Required value: at least one external authorization \
        hook must be defined";
    faults(HEADER, &[&format!("1:1 {missing}")]);
    faults(&file("  []\n"), &[&format!("3:1 {missing}")]);
    faults(&file("  {}\n"), &[&format!("3:1 {missing}")]);
    let many = |n: usize| {
        let hook = |n: usize| format!("- {{name: h{n}, clientConfig: {{url: \"https://h\"}}}}\n");
        file(&(0..n).map(hook).collect::<String>())
    };
    assert_eq!(hooks(&many(HOOKS_MAX)).len(), HOOKS_MAX);
    faults(
        &many(HOOKS_MAX + 1),
        &["3:1 externalAuthorizationHooks: Too many: 257: must have at most 256 items"],
    );
}

#[test]
fn a_file_has_a_size_limit() {
    let text = hook_file("{url: \"https://h\"}");
    let padded = |n: usize| format!("{text}#{}", "x".repeat(n - text.len() - 1));
    assert!(load_text(&padded(DOCUMENT_BYTES_MAX)).authorization_hooks.is_ok());
    assert!(decode_error(&padded(DOCUMENT_BYTES_MAX + 1)).contains("larger than"));
}

/// The port is our extension: without it the ports of the service decide.
#[test]
fn a_service_may_have_a_port() {
    let text = |port: &str| {
        format!(
            "{HEADER}externalAuthorizationHooks:\n- name: w\n  clientConfig:\n    service: {{name: s, \
             namespace: authz, port: {port}}}\n"
        )
    };
    for (port, want) in [("8443", Some(8443)), ("1", Some(1)), ("null", None)] {
        let hooks = load_text(&text(port)).authorization_hooks.unwrap();
        let AuthorizationHookEndpoint::Service { port: found, .. } = &hooks[0].endpoint else {
            panic!("{hooks:?}")
        };
        assert_eq!(*found, want, "{port}");
    }
    for port in ["0", "-1", "65536", "99999999999999999999"] {
        let error = load_text(&text(port)).authorization_hooks.unwrap_err().to_string();
        assert!(error.contains("clientConfig.service.port"), "{port}: {error}");
    }
}
