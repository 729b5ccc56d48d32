//! A member of etcd as a process that goes away with the test.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// What to do when the program is not there. A test without it would prove nothing.
const MISSING: &str = "`etcd` is not in PATH: run `cargo xtask setup`, or install the package that \
                       has it (Debian: `apt-get install etcd-server`)";
/// A member that is not up after so long has failed. Busy machines take seconds.
const UP_MAX: Duration = Duration::from_secs(60);

/// A cluster of one. Dropping it kills the process and removes its data.
pub(crate) struct Etcd {
    pub(crate) url: String,
    process: Child,
    _directory: TempDir,
}

impl Etcd {
    pub(crate) fn start() -> Self {
        let directory = crate::server::directory();
        let (client, peer) = (free_port(), free_port());
        let url = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let process = Command::new("etcd")
            .arg("--name=m0")
            .arg(format!("--data-dir={}", directory.path().join("data").display()))
            .arg(format!("--listen-client-urls={url}"))
            .arg(format!("--advertise-client-urls={url}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=m0={peer}"))
            .args(["--max-request-bytes=2097152", "--logger=zap", "--log-level=error"])
            .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH.replace("aarch64", "arm64"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        let member = Self { url, process, _directory: directory };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", client)).is_err() {
            assert!(began.elapsed() < UP_MAX, "etcd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        member
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may be dead already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A port that nobody has at the moment. It is below those that the system hands out to connections,
/// which come and go while a member starts.
fn free_port() -> u16 {
    static N_TAKEN: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 10_000;
    const N_PORTS: u32 = 22_000;
    loop {
        // Processes that test at the same time begin at different places.
        let n = (std::process::id() % N_PORTS) * 97 + N_TAKEN.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + n % N_PORTS).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
