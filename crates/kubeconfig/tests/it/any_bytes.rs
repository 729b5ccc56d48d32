//! For any bytes, loading does not panic, and every fault has a position inside the file.

use std::io;
use std::path::Path;

use document::Source;
use kubeconfig::{LoadedConnections, parse_connections};
use proptest::prelude::*;

fn check(bytes: &[u8]) {
    let read = |path: &Path| match path.file_name().and_then(|name| name.to_str()) {
        Some("a") => Ok(bytes.to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let source = Source { name: "config", file_bytes: bytes };
    let text = source.text();
    match parse_connections(&source, Path::new("/x/config"), &read) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            for found in error.diagnostics() {
                assert!(
                    text.get(found.position.start..found.position.end_offset).is_some(),
                    "{found:?}"
                );
            }
        }
        Ok(LoadedConnections::Kubeconfig(connection)) => {
            assert!(!connection.source_files.is_empty())
        }
        Ok(LoadedConnections::Hooks(hooks)) => assert!(!hooks.is_empty()),
    }
}

/// Lines that resemble the beginning of a valid file, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "apiVersion: v1\n",
        "apiVersion: kubeapiserverauthorization.config.k8s.io/v1alpha1\n",
        "kind: ExternalAuthorizationHookConfiguration\n",
        "kind: Config\n",
        "externalAuthorizationHooks:\n- name: a\n  clientConfig:\n    ",
        "url: https://h\n",
        "service: {name: a, namespace: b}\n",
        "serverCaFile: a\n",
        "clusters:\n- cluster:\n    ",
        "server: https://h\n    ",
        "server: '%zz'\n    ",
        "server: http://[::1]:x@\n    ",
        "certificate-authority: a\n    ",
        "certificate-authority-data: YQ==\n    ",
        "proxy-url: socks5://%\n    ",
        "users:\n- user:\n    ",
        "token: a\n    ",
        "tokenFile: a\n    ",
        "client-certificate: a\n    client-key: a\n    ",
        "as-user-extra: {a: [b]}\n    ",
        "current-context: a\n",
        "contexts: [{name: a, context: {cluster: a, user: b}}]\n",
        "\n",
        ": ",
        "\u{feff}",
        "é",
    ]);
    prop::collection::vec(key, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_load_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn any_pieces_load_or_are_refused(text in pieces()) {
        check(text.as_bytes());
    }

    #[test]
    fn any_server_loads_or_is_refused(server in "\\PC{0,40}", proxy in "\\PC{0,20}") {
        let config = json_config(&server, &proxy);
        check(config.as_bytes());
    }
}

/// A kubeconfig in JSON with this server and this proxy.
fn json_config(server: &str, proxy: &str) -> String {
    let quote = |text: &str| {
        let mut quoted = String::from("\"");
        for c in text.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                c => quoted.push(c),
            }
        }
        quoted + "\""
    };
    let (server, proxy) = (quote(server), quote(proxy));
    format!("{{\"clusters\":[{{\"cluster\":{{\"server\":{server},\"proxy-url\":{proxy}}}}}]}}")
}
