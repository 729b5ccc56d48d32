//! kube-apiserver with an etcd member of its own, as processes that end with the test.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use etcd_testing::{Member, free_ports};
use tempfile::TempDir;

use crate::client::Client;
use crate::server::directory;

/// A kube-apiserver that is not ready within this time never will be. It takes seconds on an idle machine.
const START_MAX: Duration = Duration::from_secs(180);
/// The interval between two questions whether it is ready.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A kube-apiserver that is ready. Dropping it ends the process.
pub(super) struct KubeApiserver {
    pub(super) address: SocketAddr,
    folder: TempDir,
    process: Child,
    _etcd: Member,
}

impl KubeApiserver {
    /// Starts the program on a free port of the loopback interface and waits until it is ready.
    ///
    /// `authorization` is the text of an AuthorizationConfiguration; without it the authorizers are Node and RBAC. Its paths
    /// must be absolute.
    pub(super) fn start(program: &Path, authorization: Option<&str>) -> Self {
        let etcd = Member::alone();
        etcd.wait_until_healthy();
        let folder = directory();
        let [port] = free_ports();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let pki = folder.path().join("pki");
        make_certificates(&pki, address);
        let authorizers = match authorization {
            None => "--authorization-mode=Node,RBAC".to_owned(),
            Some(text) => {
                let file = folder.path().join("authorization.yaml");
                std::fs::write(&file, text).unwrap();
                format!("--authorization-config={}", file.display())
            }
        };
        let file = |flag: &str, name: &str| format!("--{flag}={}", pki.join(name).display());
        let mut command = Command::new(program);
        command
            .arg(format!("--etcd-servers={}", etcd.url))
            .args(["--bind-address=127.0.0.1", &format!("--secure-port={port}"), &authorizers])
            // An address of the loopback interface is no endpoint of a service.
            .args(["--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24"])
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            // No controller creates the service accounts of pods.
            .arg("--disable-admission-plugins=ServiceAccount")
            .arg(file("client-ca-file", "ca.crt"))
            .arg(file("tls-cert-file", "apiserver.crt"))
            .arg(file("tls-private-key-file", "apiserver.key"))
            .arg(file("service-account-key-file", "sa.pub"))
            .arg(file("service-account-signing-key-file", "sa.key"));
        let log = File::create(folder.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn().unwrap();
        let mut server = Self { address, folder, process, _etcd: etcd };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = self.client();
        let begun = Instant::now();
        while !runtime.block_on(client.is_ready()) {
            let ended = self.process.try_wait().unwrap();
            let is_late = begun.elapsed() > START_MAX;
            assert!(ended.is_none() && !is_late, "not ready ({ended:?}): {}", self.log());
            // This waits for a real process: kube-apiserver starts.
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The kubeconfig of the administrator.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("pki/admin.kubeconfig")
    }

    /// The administrator as a client.
    pub(super) fn client(&self) -> Client {
        let read = |name: &str| {
            std::fs::read_to_string(self.folder.path().join("pki").join(name)).unwrap()
        };
        Client::new(self.address, &read("ca.crt"), &read("admin.crt"), &read("admin.key"))
    }

    /// Everything that it logged.
    pub(super) fn log(&self) -> String {
        let log = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }
}

impl Drop for KubeApiserver {
    fn drop(&mut self) {
        // It may have ended already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Makes authorities, keys, a serving certificate and the kubeconfig of an administrator.
fn make_certificates(folder: &Path, address: SocketAddr) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["pki", "init"]).arg(folder).args(["--server", &address.to_string()]);
    let made = command.output().unwrap();
    assert!(made.status.success(), "{made:?}");
}
