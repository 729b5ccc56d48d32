//! The authorities of client certificates, which an administrator replaces while the server runs.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fake_http::{Authority, Issued, Leaf};
use http::Method;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;
use crate::server::{Allowance, Place, Server, directory};

/// A removed authority is gone after this long; kube-apiserver takes as much.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const PATH: &str = "/api/v1/namespaces/default";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_removed_authority_are_refused_within_ten_seconds() {
    let folder = directory();
    let file = folder.path().join("clients.crt");
    let (old, new) = (Authority::new("old").unwrap(), Authority::new("new").unwrap());
    std::fs::write(&file, old.pem()).unwrap();
    let flag = format!("--client-ca-file={}", file.display());
    let server = Server::start_with(folder.path(), &Place::Embedded, &[&flag]);
    let ca = std::fs::read_to_string(folder.path().join("data/ca.crt")).unwrap();
    let client = |authority: &Authority| {
        let leaf = Leaf::client("ana").organization("system:masters");
        let Issued { certificate_pem, key_pem } = authority.issue(&leaf).unwrap();
        Client::new(server.address, &ca, &certificate_pem, &key_pem)
    };
    let (of_old, of_new) = (client(&old), client(&new));
    let code = async |client: &Client| client.ask(Method::GET, PATH, &Value::Null).await.0;
    let mut live = of_old.connect().await.unwrap();
    assert_eq!(live.send(Method::GET, PATH, &Value::Null).await.unwrap().0, 200);
    assert_eq!((code(&of_old).await, code(&of_new).await), (200, 401));

    std::fs::write(&file, new.pem()).unwrap();
    let changed = Instant::now();
    while code(&of_new).await != 200 {
        assert!(changed.elapsed() < GONE_WITHIN, "{}", server.log());
        // This waits for a real process: the server reads the CA file again.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(live.send(Method::GET, PATH, &Value::Null).await.unwrap().0, 401);
    assert_eq!(code(&of_old).await, 401);
}

/// A folder with a key and a certificate of version 1, which `openssl x509 -req` makes if it is given no
/// extensions.
struct OldCertificate(TempDir);

impl OldCertificate {
    fn issue(ca: &str, key: &str) -> Self {
        let folder = Self(directory());
        let curve = "ec_paramgen_curve:prime256v1";
        let subject = "/O=system:masters/CN=ana";
        let request = ["req", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-keyout", "ana.key"];
        folder.openssl(&[&request[..], &["-subj", subject, "-out", "ana.csr"]].concat(), "");
        let sign = ["x509", "-req", "-in", "ana.csr", "-CA", ca, "-CAkey", key, "-set_serial", "7"];
        folder.openssl(&[&sign[..], &["-days", "2", "-out", "ana.crt"]].concat(), "");
        let text = folder.openssl(&["x509", "-in", "ana.crt", "-noout", "-text"], "");
        assert!(text.contains("Version: 1 (0x0)"), "{text}");
        folder
    }

    fn openssl(&self, args: &[&str], stdin: &str) -> String {
        let mut command = Command::new("openssl");
        command.current_dir(self.0.path()).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("`openssl` is not in PATH: install it");
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// As in Kubernetes, a certificate of version 1 identifies its user to the server.
#[test]
fn certificates_of_version_1_identify_users() {
    let folder = directory();
    let server = Server::start(folder.path(), &Place::Embedded);
    let data = |name: &str| folder.path().join("data").join(name).display().to_string();
    let old = OldCertificate::issue(&data("ca.crt"), &data("ca.key"));
    for version in ["-tls1_2", "-tls1_3"] {
        let address = server.address.to_string();
        let connect = ["s_client", "-quiet", "-ign_eof", "-connect", &address, version];
        let files = ["-cert", "ana.crt", "-key", "ana.key"];
        let request = format!("GET {PATH} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answer = old.openssl(&[&connect[..], &files].concat(), &request);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{version}: {answer}");
    }
}

/// The TLS library presents no certificate of version 1. The message says that, and what to do.
#[test]
fn certificates_of_version_1_are_refused_with_the_reason_where_they_would_be_presented() {
    let folder = directory();
    let server = Server::start(folder.path(), &Place::Embedded);
    let data = |name: &str| folder.path().join("data").join(name).display().to_string();
    let old = OldCertificate::issue(&data("ca.crt"), &data("ca.key"));
    let (certificate, key) = (old.file("ana.crt"), old.file("ana.key"));
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:9', certificate-authority: {}}}}}]\n\
         users: [{{name: u, user: {{client-certificate: {certificate}, client-key: {key}}}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n",
        data("ca.crt"),
    );
    std::fs::write(old.file("webhook.kubeconfig"), kubeconfig).unwrap();
    drop(server);
    let ca = data("ca.crt");
    for flags in [
        vec![
            "--authorization-mode=Webhook,RBAC".to_owned(),
            format!("--authorization-webhook-config-file={}", old.file("webhook.kubeconfig")),
        ],
        vec![format!("--tls-cert-file={certificate}"), format!("--tls-private-key-file={key}")],
        vec![
            "--etcd-servers=https://127.0.0.1:9".to_owned(),
            format!("--etcd-cafile={ca}"),
            format!("--etcd-certfile={certificate}"),
            format!("--etcd-keyfile={key}"),
        ],
    ] {
        let other = directory();
        let args: Vec<&str> = flags.iter().map(String::as_str).collect();
        let started =
            Server::try_start(other.path(), &Place::Embedded, &args, Allowance::default());
        let refusal = started.err().expect("a refusal");
        let want = "the certificate has X.509 version 1 and must have version 3";
        assert!(refusal.said.contains(want), "{flags:?}: {refusal}");
    }
}
