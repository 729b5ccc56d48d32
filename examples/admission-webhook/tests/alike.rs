//! The webhook in Rust and the one in Python are asked the same, and answer alike.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../admission-webhook-python/webhook.py");
/// How long any one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A webhook as a process that goes away with the test.
struct Webhook {
    process: Child,
    stdout: BufReader<ChildStdout>,
    port: u16,
    tls: Arc<ClientConfig>,
}

impl Webhook {
    fn start(mut program: Command, folder: &Path) -> Self {
        let (certificate, key) = (folder.join("crt"), folder.join("key"));
        if !certificate.exists() {
            let made = rcgen::generate_simple_self_signed(["hook.example.com".to_owned()]).unwrap();
            std::fs::write(&certificate, made.cert.pem()).unwrap();
            std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        }
        let mut process = program
            .args([&certificate, &key])
            .args(["127.0.0.1:0", "registry.example.com"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let mut webhook = Self { process, stdout, port: 0, tls: trusting(&certificate) };
        let banner = webhook.line();
        let port = banner.strip_prefix("serving https://127.0.0.1:").expect("a banner");
        webhook.port = port.parse().unwrap();
        webhook
    }

    /// The next line that it says.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The code and the body of one answer.
    fn ask(&self, path: &str, body: &str) -> (u16, String) {
        let tcp = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let name = "hook.example.com".try_into().unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.tls), name).unwrap();
        let mut stream = StreamOwned::new(connection, tcp);
        let length = body.len();
        let request = format!(
            "POST {path}?timeout=10s HTTP/1.1\r\nhost: hook.example.com\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // Python closes the connection without saying so in TLS; what was read before is complete.
        stream.read_to_end(&mut answer).ok();
        let answer = String::from_utf8(answer).unwrap();
        let code = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        (code, body.to_owned())
    }

    /// What it makes of a review, with a patch in clear.
    fn review(&self, path: &str, review: &Value) -> Value {
        let (code, body) = self.ask(path, &review.to_string());
        assert_eq!(code, 200, "{body}");
        let mut answer: Value = serde_json::from_str(&body).unwrap();
        if let Some(patch) = answer.pointer_mut("/response/patch") {
            let decoded = STANDARD.decode(patch.as_str().unwrap()).unwrap();
            *patch = serde_json::from_slice(&decoded).unwrap();
        }
        answer
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn trusting(certificate: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// A review of each version about a pod.
fn reviews(pod: &Value) -> [Value; 2] {
    let asked = json!({
        "uid": "u", "operation": "CREATE", "namespace": "default", "name": "web", "object": pod,
    });
    let review = |version: &str, part: &str| {
        let version = format!("admission.k8s.io/{version}");
        json!({"apiVersion": version, "kind": "AdmissionReview", part: asked})
    };
    [review("v1", "request"), review("v1alpha1", "spec")]
}

#[test]
fn both_programs_answer_alike() {
    let folder = tempfile::tempdir().unwrap();
    let mut rust =
        Webhook::start(Command::new(env!("CARGO_BIN_EXE_admission-webhook")), folder.path());
    let mut python = Command::new("python3");
    python.args(["-B", PYTHON]);
    let mut python = Webhook::start(python, folder.path());
    let images = [
        &["registry.example.com/web:1"][..],
        &["registry.example.com/web:latest", "registry.example.com/sidecar"],
        &["docker.io/library/nginx:1", "registry.example.com.evil.org/web:1", "nginx"],
        &["registry.example.com/web@sha256:0123"],
    ];
    let labels = [Value::Null, json!({}), json!({"app": "web"}), json!({"team": "red"})];
    let mut said = Vec::new();
    for (images, labels) in images.iter().zip(labels) {
        let containers: Vec<Value> = images.iter().map(|image| json!({"image": image})).collect();
        let mut pod = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
        if !labels.is_null() {
            pod["metadata"]["labels"] = labels;
        }
        for review in reviews(&pod) {
            for path in ["/mutate", "/validate"] {
                let answer = rust.review(path, &review);
                assert_eq!(python.review(path, &review), answer, "{path} {review}");
                let line = rust.line();
                assert_eq!(python.line(), line);
                said.push(line);
            }
        }
    }
    // Agreement alone could be that of two programs which never decide anything.
    assert!(said.contains(&"/mutate v1 CREATE default/web: patched".to_owned()));
    assert!(said.contains(&"/mutate v1 CREATE default/web: allowed".to_owned()));
    assert!(
        said.iter().any(|line| line.starts_with("/validate v1alpha1 CREATE default/web: denied"))
    );
    for webhook in [&rust, &python] {
        assert_eq!(webhook.ask("/elsewhere", &reviews(&json!({}))[0].to_string()).0, 404);
    }
}
