//! Processes that must not start: they say why, and what the running server has stays as it is.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::files::Files;
use super::lives::{Acknowledged, STOP_MAX, block_on};
use crate::server::{Allowance, Place, Refusal, Server, directory};

/// The exit code of a program that cannot use what it needs.
const UNREADABLE: i32 = 3;

/// Everything in a directory, with the bytes of files.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(content(&path)),
            false => {
                let bytes = std::fs::read(&path).unwrap();
                found.insert(path, bytes);
            }
        }
    }
    found
}

/// Names of files that one has and the other has not, or has otherwise.
fn differences(
    before: &BTreeMap<PathBuf, Vec<u8>>,
    after: &BTreeMap<PathBuf, Vec<u8>>,
) -> Vec<PathBuf> {
    let all = before.keys().chain(after.keys());
    let mut paths: Vec<PathBuf> =
        all.filter(|path| before.get(*path) != after.get(*path)).cloned().collect();
    paths.dedup();
    paths
}

/// Starts a second process in the data directory of a server, and fails unless it ends with words and
/// changes no byte. The server sleeps meanwhile, so whatever changes the other one has changed.
pub(super) fn beside(
    server: &Server,
    directory: &Path,
    attempt: impl FnOnce() -> Result<Server, Refusal>,
) {
    server.freeze();
    let data = directory.join("data");
    let before = content(&data);
    let refusal = attempt().err().expect("a second process starts on the same data");
    let after = content(&data);
    server.thaw();
    assert_eq!(refusal.code, Some(UNREADABLE), "{refusal}");
    let last = refusal.said.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains(data.to_str().unwrap()), "{refusal}");
    assert_eq!(differences(&before, &after), [""; 0].map(PathBuf::from));
}

/// A start with another port and other names would make other certificates.
#[test]
fn a_second_process_changes_nothing() {
    let folder = directory();
    let server = Server::start(folder.path(), &Place::Embedded);
    let mut acknowledged = Acknowledged::default();
    block_on(acknowledged.extend(&server.client(), "first"));
    let flags = ["--advertise-address=127.0.0.9", "--service-cluster-ip-range=10.96.0.0/24"];
    for flags in [&[][..], &flags] {
        let attempt =
            || Server::try_start(folder.path(), &Place::Embedded, flags, Allowance::default());
        beside(&server, folder.path(), attempt);
    }
    block_on(acknowledged.check(&server.client()));
    assert_eq!(server.stop(STOP_MAX), 0);
}

/// A start that fails leaves the data of the last server as it was, names what is wrong, and the next one
/// succeeds.
#[test]
fn a_start_that_fails_changes_nothing() {
    let folder = directory();
    let files = Files::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let server = Server::start(folder.path(), &Place::Embedded);
    let mut acknowledged = Acknowledged::default();
    block_on(acknowledged.extend(&server.client(), "first"));
    assert_eq!(server.stop(STOP_MAX), 0);
    std::fs::write(files.path("broken"), "{").unwrap();
    let data = folder.path().join("data");
    let before = content(&data);
    for (flags, code, word) in [
        (&["--token-auth-file=DIR/missing"][..], 3, "missing"),
        (&["--audit-policy-file=DIR/broken", "--audit-log-path=-"], 3, "broken"),
        (&["--audit-policy-file=DIR/missing", "--audit-log-path=-"], 3, "missing"),
        (&["--authorization-config=DIR/missing"], 3, "missing"),
        (&["--authorization-config=DIR/broken"], 3, "broken"),
        (&["--client-ca-file=DIR/missing"], 3, "missing"),
        (&["--client-ca-file=DIR/tokens.csv"], 3, "tokens.csv"),
        (&["--tls-cert-file=DIR/missing", "--tls-private-key-file=DIR/server.key"], 3, "missing"),
        (&["--tls-cert-file=DIR/server.crt", "--tls-private-key-file=DIR/client.key"], 3, "key"),
        (&["--requestheader-client-ca-file=DIR/missing"], 3, "missing"),
        (&["--service-account-signing-key-file=DIR/ca.crt"], 3, "ca.crt"),
        (&["--service-account-key-file=DIR/missing"], 3, "missing"),
        (&["--admission-webhook-kubeconfig=DIR/missing"], 3, "missing"),
        (&["--etcd-servers=http://127.0.0.1:1", "--store=embedded"], 3, "--etcd-servers"),
        (&["--secure-port=PORT", "--advertise-address=127.0.0.9"], 3, "PORT"),
        (&["--admission-sync-poll-interval=1h"], 2, "--admission-sync-poll-interval"),
    ] {
        let fill = |text: &str| files.fill(text).replace("PORT", &port.to_string());
        let flags: Vec<String> = flags.iter().map(|flag| fill(flag)).collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        std::fs::remove_file(folder.path().join("log")).unwrap();
        let attempt =
            Server::try_start(folder.path(), &Place::Embedded, &flags, Allowance::default());
        let refusal = attempt.err().unwrap_or_else(|| panic!("it starts with {flags:?}"));
        assert_eq!(refusal.code, Some(code), "{flags:?}: {refusal}");
        assert!(refusal.said.contains(&fill(word)), "{flags:?}: {refusal}");
        let changed = differences(&before, &content(&data));
        assert!(changed.is_empty(), "{flags:?} change {changed:?}");
    }
    let server = Server::start(folder.path(), &Place::Embedded);
    block_on(acknowledged.extend(&server.client(), "second"));
}
