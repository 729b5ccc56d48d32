//! The URL of the server, the proxy, compression and the server name.

use document::WarningCode;
use https_client::{Credentials, Destination, Proxy, ProxyUrl, Scheme, ServerTrust};

use crate::test_folder::{TestFolder, config};

fn url(scheme: Scheme, host: &str, port: Option<u16>) -> Destination {
    Destination::Url { scheme, host: host.to_owned(), port }
}

#[test]
fn whk_06_the_path_is_kept() {
    let test_folder = TestFolder::new();
    for (server, path) in [
        ("https://h:8443/authz/", "/authz"),
        ("https://h:8443", "/"),
        ("https://h:8443//a//b/#c", "/a/b"),
    ] {
        let target =
            test_folder.connection(&config(&format!("server: '{server}'"), "")).client_target;
        assert_eq!(target.destination, url(Scheme::Https, "h", Some(8443)), "{server}");
        assert_eq!(target.path, path, "{server}");
    }
}

#[test]
fn plain_http_is_accepted_with_a_warning_and_without_secrets() {
    let test_folder = TestFolder::new();
    for (server, host, port) in
        [("http://h/p", "h", None), ("h:81", "h", Some(81)), ("localhost", "localhost", None)]
    {
        let connection = test_folder.connection(&config(&format!("server: '{server}'"), ""));
        assert_eq!(connection.client_target.destination, url(Scheme::Http, host, port));
        let [warning] = connection.warnings.as_slice() else { panic!("{connection:?}") };
        assert_eq!(warning.code, WarningCode::PlainHttp);
        assert_eq!(warning.field, "clusters[0].cluster.server");
        assert_eq!((warning.position.line, warning.position.column), (2, 21));
    }
    let connection = test_folder.connection(&config(
        "server: 'http://u:p@h', certificate-authority: junk, insecure-skip-tls-verify: true",
        "tokenFile: missing, as: jane, client-certificate: junk, client-key: junk",
    ));
    let target = &connection.client_target;
    assert_eq!(
        (&target.server_trust, &target.credentials),
        (&ServerTrust::System, &Credentials::None)
    );
    assert_eq!(target.client_certificate, None);
    assert_eq!(target.impersonation.user, "jane");
    let codes: Vec<_> = connection.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, [WarningCode::PlainHttp, WarningCode::UnusedCredentials]);
}

#[test]
fn malformed_server_urls_are_refused() {
    let test_folder = TestFolder::new();
    for (server, want) in [
        ("", "2:21 invalid configuration: default cluster has no server defined"),
        ("ftp://h", "2:21 unsupported protocol scheme \"ftp\""),
        ("h/path", "2:21 host must be a URL or a host:port pair: \"h/path\""),
        ("https://u:hunter2@h:x", "2:21 host must be a URL or a host:port pair: \"https://h:x\""),
    ] {
        assert_eq!(test_folder.refusal(&config(&format!("server: '{server}'"), "")), want);
    }
    let named = "clusters: [{name: a, cluster: {}}]\ncurrent-context: c\n\
        contexts: [{name: c, context: {cluster: a}}]\n";
    let want = "1:22 invalid configuration: no server found for cluster \"a\"";
    assert_eq!(test_folder.refusal(named), want);
}

#[test]
fn proxy_settings() {
    let test_folder = TestFolder::new();
    let proxy = |url: &str| {
        test_folder
            .connection(&config(&format!("server: 'https://h', proxy-url: '{url}'"), ""))
            .client_target
            .proxy
    };
    assert_eq!(proxy(""), Proxy::Environment);
    for url in ["http://proxy:3128", "https://u:p@proxy", "socks5://proxy"] {
        assert_eq!(proxy(url), Proxy::Url(ProxyUrl::parse(url).unwrap()), "{url}");
    }
    assert_eq!(
        test_folder.refusal(&config("server: 'https://h', proxy-url: 'ftp://u:hunter2@proxy'", "")),
        "2:45 invalid configuration: invalid 'proxy-url' \"ftp://proxy\" for cluster \"\": \
         unsupported scheme \"ftp\", must be http, https, or socks5"
    );
}

#[test]
fn compression_and_server_name() {
    let test_folder = TestFolder::new();
    let target = test_folder.connection(&config("server: 'https://h'", "")).client_target;
    assert!(target.accepts_gzip);
    assert_eq!(target.server_name, None);
    let cluster = "server: 'https://h', disable-compression: true, tls-server-name: other";
    let target = test_folder.connection(&config(cluster, "")).client_target;
    assert!(!target.accepts_gzip);
    assert_eq!(target.server_name.as_deref(), Some("other"));
}
