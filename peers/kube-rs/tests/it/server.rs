//! The server as a process that goes away with the test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tempfile::TempDir;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");

/// A server with an empty store. Dropping it kills the process and removes its data.
pub(crate) struct Server {
    process: Child,
    data: TempDir,
    /// Kept open: a server that cannot write there would fail for a reason of ours.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let data = TempDir::new().unwrap();
        let log = std::fs::File::create(data.path().join("log")).unwrap();
        let mut process = Command::new(program())
            .args(["serve", "--secure-port=0", "--data-dir"])
            .arg(data.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut banner = String::new();
        stdout.read_line(&mut banner).unwrap();
        let server = Self { process, data, _stdout: stdout };
        assert!(banner.starts_with("serving https://"), "the server does not start: {banner}");
        server
    }

    /// A client with the credentials of the administrator.
    pub(crate) async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.data.path().join("data/admin.kubeconfig"));
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig.unwrap(), &options).await;
        Client::try_from(config.unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The program, built as it is now. Cargo says where it is.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "--package=cli", "--message-format=json", "--manifest-path", WORKSPACE])
            .stderr(Stdio::inherit());
        // What cargo says about this package would make build scripts of others run again.
        for (name, _) in std::env::vars_os() {
            let is_of_package = ["CARGO_PKG_", "CARGO_MANIFEST_"]
                .iter()
                .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
            if is_of_package {
                build.env_remove(name);
            }
        }
        let output = build.output().unwrap();
        assert!(output.status.success(), "the server does not compile");
        let messages = output.stdout.split(|byte| *byte == b'\n');
        let executable = messages.filter_map(|line| {
            let message: Value = serde_json::from_slice(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        });
        executable.last().expect("a program")
    })
}
