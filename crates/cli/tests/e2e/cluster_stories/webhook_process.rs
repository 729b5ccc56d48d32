//! `portcullis webhook` as a process that goes away with the test.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fake_http::{Authority, Issued, Leaf};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cluster::program;
use crate::client::Client;
use crate::server::directory;

/// A state that is not reached within this time never will be.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The interval of questions to a process.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The path of reviews.
pub(super) const AUTHORIZE: &str = "/authorize";

/// A webhook with authorities of its own for its certificate and for its callers.
pub(super) struct Webhook {
    pub(super) address: SocketAddr,
    pub(super) health_address: SocketAddr,
    pub(super) callers: Authority,
    serving: Authority,
    folder: TempDir,
    process: Child,
}

impl Webhook {
    /// Starts a webhook with these flags and waits until it listens. It may not be ready then.
    pub(super) fn start(flags: &[&str]) -> Self {
        let folder = directory();
        let (serving, callers) =
            (Authority::new("serving").unwrap(), Authority::new("callers").unwrap());
        write_certificate(folder.path(), "tls", &serving, &Leaf::loopback());
        std::fs::write(folder.path().join("callers.crt"), callers.pem()).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(program());
        command.env_remove("KUBECONFIG").env("HOME", "/nonexistent").current_dir(folder.path());
        command.args(["webhook", "--secure-port=0", "--health-port=0", "--tls-cert-file=tls.crt"]);
        command.args(["--tls-private-key-file=tls.key", "--client-ca-file=callers.crt"]);
        command.args(flags).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().unwrap();
        let mut lines =
            BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut next_address = |prefix: &str| {
            let line = lines.next().unwrap_or_default();
            let address = line.strip_prefix(prefix).and_then(|rest| rest.split(' ').next());
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
            address.and_then(|own| own.parse().ok()).unwrap_or_else(|| panic!("{line} {log}"))
        };
        let address = next_address("serving https://");
        let health_address = next_address("health https://");
        Self { address, health_address, callers, serving, folder, process }
    }

    /// The path of a file of the webhook.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap()
    }

    /// A client with a certificate of the authority of callers.
    pub(super) fn caller(&self, name: &str) -> Client {
        self.client_of(&self.callers, name)
    }

    /// A client with a certificate of any authority.
    pub(super) fn client_of(&self, authority: &Authority, name: &str) -> Client {
        let Issued { certificate_pem, key_pem } = authority.issue(&Leaf::client(name)).unwrap();
        Client::new(self.address, &self.serving.pem(), &certificate_pem, &key_pem)
    }

    /// A client without a certificate on the port for reviews.
    pub(super) fn client_without_certificate(&self) -> Client {
        Client::anonymous(self.address, &self.serving.pem())
    }

    /// A client without a certificate on the port for probes.
    pub(super) fn probe(&self) -> Client {
        Client::anonymous(self.health_address, &self.serving.pem())
    }

    /// Writes the certificate and the key of a caller as NAME.crt and NAME.key, and the authority of the webhook as
    /// serving.crt.
    pub(super) fn write_caller(&self, name: &str) {
        write_certificate(self.folder.path(), name, &self.callers, &Leaf::client(name));
        std::fs::write(self.file("serving.crt"), self.serving.pem()).unwrap();
    }

    /// Replaces the serving certificate by one of a new authority, and returns a client that trusts only the new one.
    pub(super) fn rotate_serving_certificate(&mut self) -> Client {
        self.serving = Authority::new("rotated").unwrap();
        write_certificate(self.folder.path(), "tls", &self.serving, &Leaf::loopback());
        self.caller("kube-apiserver")
    }

    /// Waits until /readyz passes on the port for probes, which needs no certificate.
    pub(super) async fn wait_until_ready(&self) {
        let probe = self.probe();
        wait_until(|| self.log(), async || probe.is_ready().await).await;
    }

    /// Sends SIGTERM, and returns the exit code.
    pub(super) fn terminate(&mut self) -> Option<i32> {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        // It may be dead already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn write_certificate(folder: &Path, name: &str, authority: &Authority, leaf: &Leaf) {
    let Issued { certificate_pem, key_pem } = authority.issue(leaf).unwrap();
    std::fs::write(folder.join(format!("{name}.crt")), certificate_pem).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), key_pem).unwrap();
}

/// Asks again until the answer is yes, and returns how long it took.
pub(super) async fn wait_until(log: impl Fn() -> String, ask: impl AsyncFn() -> bool) -> Duration {
    let begun = Instant::now();
    while !ask().await {
        assert!(begun.elapsed() < WAIT_MAX, "{}", log());
        // This waits for a real process: the webhook reads something.
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    begun.elapsed()
}

/// A review of version v1: may this user get pods in the namespace prod?
pub(super) fn review_of(user: &str) -> Value {
    let attributes = json!({"namespace": "prod", "verb": "get", "resource": "pods"});
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    })
}

/// Posts a review to a webhook that may not answer.
pub(super) async fn try_post(client: &Client, review: &Value) -> Option<(u16, Value)> {
    let mut connection = client.connect().await.ok()?;
    connection.send(Method::POST, AUTHORIZE, review).await.ok()
}

/// Posts a review, and returns the code and the body.
pub(super) async fn post(client: &Client, review: &Value) -> (u16, Value) {
    client.ask(Method::POST, AUTHORIZE, review).await
}
