//! `portcullis serve` with webhooks and with a configuration that changes.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

use crate::guard::{Guard, allow, kubeconfig_of};
use crate::program::command;

/// The time to wait for a line of the log. A change takes effect within a second, but the machine may be
/// busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server and the lines of its log. Dropping it ends the server.
pub(crate) struct Server {
    banner: String,
    log: Receiver<String>,
    process: Child,
    /// Kept open, because the server may fail if it cannot write to it.
    _stdout: BufReader<ChildStdout>,
    data: TempDir,
}

impl Server {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let place = ["serve", "--secure-port=0", "--data-dir", data.path().to_str().unwrap()];
        let mut process = command(&[&place[..], flags].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = lines(process.stderr.take().unwrap());
        let mut banner = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut banner).unwrap();
        assert!(banner.starts_with("serving https://"), "{banner}{:?}", log.iter().next());
        Self { banner, log, process, _stdout: stdout, data }
    }

    /// The data directory of the server.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// The next line of the log with all these parts.
    #[track_caller]
    pub(crate) fn logs(&self, parts: &[&str]) -> String {
        loop {
            let line = self.log.recv_timeout(PATIENCE).unwrap();
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Server {
    /// Ends the server and returns its data directory.
    pub(crate) fn stop(mut self) -> TempDir {
        std::mem::replace(&mut self.data, tempfile::tempdir().unwrap())
    }
}

/// The lines of a stream as they come.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The server calls no webhook at start, so an unreachable webhook does not prevent the start.
#[test]
fn a_dead_webhook_does_not_keep_the_server_from_starting() {
    let guard = Guard::start(vec![allow()]);
    let config = guard.configuration("Deny", &[]);
    let url = format!("https://{}/", fake_http::NOBODY);
    guard.write("kubeconfig", &kubeconfig_of(&url, "ca.crt"));
    let server = Server::start(&["--authorization-config", &config]);
    let want = "authorization Webhook(guard.example.com),RBAC, ready";
    assert!(server.banner.contains(want), "{}", server.banner);
    let flags = [
        "--authorization-mode=Node,Webhook,RBAC",
        "--authorization-webhook-config-file",
        &guard.kubeconfig(),
    ];
    let server = Server::start(&flags);
    let want = "authorization Node,Webhook(default),RBAC, ready";
    assert!(server.banner.contains(want), "{}", server.banner);
}

#[test]
fn a_changed_configuration_is_logged_with_what_came_of_it() {
    let guard = Guard::start(vec![allow()]);
    let config = guard.configuration("Deny", &[]);
    let text = std::fs::read_to_string(&config).unwrap();
    let server = Server::start(&["--authorization-config", &config]);
    guard.write("authorization.yaml", &text.replace("timeout: 1s", "timeout: 61s"));
    let place = format!("at={config}:7:14");
    let line = server.logs(&["cannot be reloaded; the old one stays", &place]);
    assert!(line.contains("must be > 0s and <= 30s"), "{line}");
    guard.write("authorization.yaml", &text.replace("timeout: 1s", "timeout: 2s"));
    server.logs(&["configuration reloaded", "generation=2", "hash=sha256:"]);
    // A file that the configuration leads to is part of it.
    guard.write("kubeconfig", "clusters: 5");
    server.logs(&["cannot be reloaded", &format!("at={}:1:", guard.kubeconfig())]);
    // Built-in types are those of the start.
    guard.write("authorization.yaml", &format!("{text}- type: Node\n  name: node\n"));
    guard.write("kubeconfig", &kubeconfig_of(&guard.url(), "ca.crt"));
    server.logs(&["cannot be reloaded", "Node"]);
}

/// The log names a webhook that was not asked because a match condition cannot be evaluated, and the reason.
#[tokio::test]
async fn a_webhook_that_a_condition_error_skips_is_logged() {
    let guard = Guard::start(vec![allow()]);
    let condition = "matchConditions: [{expression: request.resourceAttributes.name == 'x'}]";
    for (policy, want) in
        [("NoOpinion", "authorization webhook skipped"), ("Deny", "authorization webhook denies")]
    {
        let config = guard.configuration(policy, &[condition]);
        let server = Server::start(&["--authorization-config", &config]);
        let file = server.data().join("admin.kubeconfig");
        let loaded = kubeconfig::load_connections(&file, &kubeconfig::read_file).unwrap();
        let mut target = loaded.into_single_connection().unwrap().client_target;
        // Requests of the administrator are allowed before any authorizer is asked, so this client is anonymous.
        target.client_certificate = None;
        target.path = "/no/resource".to_owned();
        let observer = Arc::new(https_client::NoCertificateObserver);
        let limits = https_client::Limits::default();
        let client = https_client::Client::new(target, None, limits, observer).unwrap();
        client.post("", "{}".into(), PATIENCE).await.unwrap();
        server.logs(&[want, "guard.example.com", "request.resourceAttributes.name == 'x'"]);
    }
    assert_eq!(guard.requests(), []);
}

#[test]
fn a_file_that_allows_everything_warns_of_the_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authorization.yaml");
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
                authorizers: [{type: AlwaysAllow, name: alwaysallow}]\n";
    std::fs::write(&file, text).unwrap();
    let server = Server::start(&["--authorization-config", file.to_str().unwrap()]);
    server.logs(&["WARN", ":3:22", "requests without credentials"]);
}

#[test]
fn modes_that_allow_everything_refuse_the_unknown() {
    let server = Server::start(&["--authorization-mode=AlwaysAllow"]);
    server.logs(&["WARN", "anonymous authentication is disabled"]);
}

/// A24: a pipe holds 64 KiB. When nobody reads the log, the server serves on and drops lines.
#[tokio::test]
async fn a24_a_server_whose_log_nobody_reads_serves() {
    let data = tempfile::tempdir().unwrap();
    let flags = ["serve", "--secure-port=0", "-v=4", "--data-dir", data.path().to_str().unwrap()];
    let mut process =
        command(&flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut banner = String::new();
    stdout.read_line(&mut banner).unwrap();
    assert!(banner.starts_with("serving https://"), "{banner}");
    let file = data.path().join("admin.kubeconfig");
    let loaded = kubeconfig::load_connections(&file, &kubeconfig::read_file).unwrap();
    let mut target = loaded.into_single_connection().unwrap().client_target;
    target.path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
    let observer = Arc::new(https_client::NoCertificateObserver);
    let limits = https_client::Limits::default();
    let client = https_client::Client::new(target, None, limits, observer).unwrap();
    let review = r#"{"spec": {"nonResourceAttributes": {"verb": "get", "path": "/"}}}"#;
    // The line of each request repeats the query.
    let query = format!("x={}", "x".repeat(4000));
    for n in 0..100 {
        let reply = client.post(&query, review.into(), PATIENCE).await;
        assert_eq!(reply.map(|reply| reply.status), Ok(201), "request {n}");
    }
    process.kill().unwrap();
    process.wait().unwrap();
}

/// A server that listens on all addresses announces one that its certificate is valid for, or demands one.
#[test]
fn a_server_on_all_addresses_announces_one_of_them() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("data");
    let flags = ["serve", "--secure-port=0", "--bind-address=0.0.0.0", "--data-dir"];
    let mut process = command(&[&flags[..], &[path.to_str().unwrap()]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut banner = String::new();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    stdout.read_line(&mut banner).unwrap();
    if banner.is_empty() {
        // This machine has no address but loopback.
        let mut complaint = String::new();
        process.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!(process.wait().unwrap().code(), Some(3), "{complaint}");
        assert!(complaint.contains("with --advertise-address"), "{complaint}");
        return;
    }
    assert!(banner.starts_with("serving https://0.0.0.0:"), "{banner}");
    // The next line is written after the kubeconfig.
    stdout.read_line(&mut banner).unwrap();
    let kubeconfig = std::fs::read_to_string(path.join("admin.kubeconfig")).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let server = kubeconfig.split("server: \"https://").nth(1).unwrap();
    let (address, _) = server.split_once(':').unwrap();
    let address: std::net::Ipv4Addr = address.parse().unwrap();
    assert!(!address.is_unspecified() && !address.is_loopback(), "{kubeconfig}");
    let bytes = |pem: &str| {
        let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, lines).unwrap()
    };
    // An address of a certificate has the tag 0x87 and its length before it.
    let certificate = bytes(&std::fs::read_to_string(path.join("apiserver.crt")).unwrap());
    let wanted = [&[0x87, 4], &address.octets()[..]].concat();
    let is_named = certificate.windows(wanted.len()).any(|own| own == wanted);
    assert!(is_named, "{address} is not in the certificate");
}
