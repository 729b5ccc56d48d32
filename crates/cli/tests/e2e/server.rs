//! The server as a process that goes away with the test.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::client::Client;
use crate::etcd::Etcd;

/// Where the server keeps its objects. It outlives the processes that use it.
pub(crate) enum Place {
    /// In the data directory.
    Embedded,
    /// In a cluster of one member.
    Etcd(Etcd),
}

impl Place {
    /// A member of its own, without data.
    pub(crate) fn etcd() -> Self {
        Self::Etcd(Etcd::start())
    }

    fn args(&self) -> Vec<String> {
        match self {
            Self::Embedded => Vec::new(),
            Self::Etcd(member) => {
                vec!["--store=etcd".to_owned(), format!("--etcd-servers={}", member.url)]
            }
        }
    }
}

/// A server that is ready. Dropping it kills the process; the data directory stays.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    data: PathBuf,
    process: Child,
    /// Kept open: a server that can not write there would fail for a reason of ours.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts it on a free port and waits until it says that it serves.
    pub(crate) fn start(data: &Path, place: &Place) -> Self {
        Self::start_with(data, place, &[])
    }

    /// The same, with more flags.
    pub(crate) fn start_with(data: &Path, place: &Place, flags: &[&str]) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(data.join("log"));
        let mut process = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["serve", "--secure-port=0", "--data-dir"])
            .arg(data.join("data"))
            .args(place.args())
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.unwrap())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut banner = String::new();
        stdout.read_line(&mut banner).unwrap();
        let address = banner.strip_prefix("serving https://").and_then(|rest| {
            let (address, _) = rest.split_once(' ')?;
            address.parse().ok()
        });
        let Some(address) = address else {
            process.kill().ok();
            process.wait().ok();
            panic!("the server does not start: {banner}{}", said(data));
        };
        Self { address, data: data.to_owned(), process, _stdout: stdout }
    }

    /// The file by which the administrator gets in.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data.join("data/admin.kubeconfig")
    }

    /// The administrator as a client.
    pub(crate) fn client(&self) -> Client {
        let read = |name: &str| std::fs::read_to_string(self.data.join("data").join(name)).unwrap();
        Client::new(self.address, &read("ca.crt"), &read("admin.crt"), &read("admin.key"))
    }

    /// Ends the process at once, as a crash does.
    pub(crate) fn kill(mut self) {
        // `Child::kill` sends SIGKILL, which no process can hear.
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// What it wrote to its log, but for the requests.
    pub(crate) fn log(&self) -> String {
        said(&self.data)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn said(data: &Path) -> String {
    let log = std::fs::read_to_string(data.join("log")).unwrap_or_default();
    let others = log.lines().filter(|line| !line.contains(" request method="));
    others.collect::<Vec<_>>().join("\n")
}

/// A directory for one test, short enough for everything that is put there.
pub(crate) fn directory() -> TempDir {
    tempfile::Builder::new().prefix("e2e-").tempdir().unwrap()
}
