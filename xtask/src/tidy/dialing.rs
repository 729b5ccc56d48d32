//! Checks that a single function of the server opens connections to webhooks and other services.

use super::Finding;
use super::tree::File;

/// The file of that function.
const DIAL_FILE: &str = "crates/https-client/src/tcp_dial.rs";

/// The other crate of the product that connects. It connects only to etcd, at endpoints that a flag names.
const OTHER_CONNECTING_CRATES: [&str; 1] = ["crates/store-etcd/"];

/// Words that resolve a name or open a connection.
const CONNECT_WORDS: [&str; 4] =
    ["TcpStream::connect", "lookup_host", "to_socket_addrs", "HttpConnector"];

/// Finds connections that do not use the dial function.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| is_product(&file.path)).flat_map(check_file).collect()
}

fn is_product(path: &str) -> bool {
    let is_source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    is_source
        && !is_test
        && path != DIAL_FILE
        && !OTHER_CONNECTING_CRATES.iter().any(|own| path.starts_with(own))
}

fn check_file(file: &File) -> Vec<Finding> {
    let code = file.code();
    let product = code.split("#[cfg(test)]").next().unwrap_or_default();
    let found = product.lines().enumerate();
    let found = found.filter(|(_, line)| CONNECT_WORDS.iter().any(|word| line.contains(word)));
    let message = format!("names are resolved and connections opened in `{DIAL_FILE}` alone");
    found.map(|(idx, _)| Finding::error(&file.path, message.clone()).at_line(idx + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L7: the address that was checked is the address that is dialled, because every connection goes through one
    /// dial function.
    #[test]
    fn a_second_dial_function_is_found() {
        let text = "// TcpStream::connect\nTcpStream::connect(a).await\n#[cfg(test)]\nlookup_host";
        let lines = |path: &str| -> Vec<Option<usize>> {
            check(&[File::new(path, text)]).into_iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("crates/admission-hooks/src/call.rs"), [Some(2)]);
        assert_eq!(lines("crates/https-client/src/tunnel.rs"), [Some(2)]);
        for path in [DIAL_FILE, "tools/fake-http/src/relay.rs", "crates/server/tests/it/client.rs"]
        {
            assert!(lines(path).is_empty(), "{path}");
        }
    }
}
