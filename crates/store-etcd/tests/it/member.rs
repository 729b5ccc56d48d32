//! Members of etcd as processes that go away with the test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use store::{Prefix, Store};
use store_etcd::{Etcd, Options};
use tempfile::TempDir;

/// What to do when the program is not there. A test without it would prove nothing.
const MISSING: &str = "`etcd` is not in PATH: run `cargo xtask setup`, or install the package that has \
                       it (Debian: `apt-get install etcd-server`)";
/// A member that is not up after so long has failed. Elections and busy machines take seconds.
const UP_MAX: Duration = Duration::from_secs(30);

/// One member. Dropping it kills the process and removes its data.
pub(crate) struct Member {
    pub(crate) url: String,
    args: Vec<String>,
    process: Child,
    directory: TempDir,
}

impl Member {
    /// A cluster of one, with a limit for requests that fits the largest value.
    pub(crate) fn alone() -> Self {
        Self::alone_with("http", &["--max-request-bytes=2097152"])
    }

    pub(crate) fn alone_with(scheme: &str, args: &[&str]) -> Self {
        let [client, peer] = free_ports();
        let cluster = format!("m0=http://127.0.0.1:{peer}");
        Self::start("m0", &format!("{scheme}://127.0.0.1:{client}"), peer, &cluster, args)
    }

    /// A cluster of three.
    pub(crate) fn three() -> Vec<Self> {
        let clients: [u16; 3] = free_ports();
        let peers: [u16; 3] = free_ports();
        let all: Vec<String> =
            (0..3).map(|n| format!("m{n}=http://127.0.0.1:{}", peers[n])).collect();
        let member = |n: usize| {
            let url = format!("http://127.0.0.1:{}", clients[n]);
            Self::start(&format!("m{n}"), &url, peers[n], &all.join(","), &[])
        };
        (0..3).map(member).collect()
    }

    fn start(name: &str, url: &str, peer: u16, cluster: &str, more: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let peer = format!("http://127.0.0.1:{peer}");
        let mut args: Vec<String> = [
            ("name", name),
            ("data-dir", &directory.path().join("data").display().to_string()),
            ("listen-client-urls", url),
            ("advertise-client-urls", url),
            ("listen-peer-urls", &peer),
            ("initial-advertise-peer-urls", &peer),
            ("initial-cluster", cluster),
            ("heartbeat-interval", "50"),
            ("election-timeout", "500"),
            ("logger", "zap"),
            ("log-level", "error"),
        ]
        .map(|(flag, value)| format!("--{flag}={value}"))
        .to_vec();
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        let process = spawn(&args, directory.path());
        Self { url: url.to_owned(), args, process, directory }
    }

    /// Ends the process at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again with the data it had.
    pub(crate) fn restart(&mut self) {
        self.process = spawn(&self.args, self.directory.path());
    }

    /// Stops it where it is: connections stay open and nobody answers.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Whether it says of itself that it leads.
    pub(crate) fn leads(&self) -> bool {
        self.metrics().is_some_and(|text| text.contains("\netcd_server_is_leader 1\n"))
    }

    fn metrics(&self) -> Option<String> {
        let address = self.url.strip_prefix("http://")?;
        let mut connection = TcpStream::connect(address).ok()?;
        connection.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
        connection.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        connection.read_to_string(&mut text).ok()?;
        Some(text)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It may be dead already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn spawn(args: &[String], directory: &Path) -> Child {
    let log = std::fs::File::create(directory.join("log")).unwrap();
    let child = Command::new("etcd")
        .args(args)
        .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH.replace("aarch64", "arm64"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn();
    child.unwrap_or_else(|error| panic!("{MISSING} ({error})"))
}

/// Ports that nobody has at the moment, all different. They are below those that the system hands out
/// to connections, which come and go while a member starts.
fn free_ports<const N: usize>() -> [u16; N] {
    static N_TAKEN: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 10_000;
    const N_PORTS: u32 = 22_000;
    [(); N].map(|()| {
        loop {
            // Processes that test at the same time begin at different places.
            let n = (std::process::id() % N_PORTS) * 97 + N_TAKEN.fetch_add(1, Ordering::Relaxed);
            let port = u16::try_from(FIRST + n % N_PORTS).unwrap();
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return port;
            }
        }
    })
}

/// The one of the members that leads.
pub(crate) fn leader(members: &[Member]) -> usize {
    let began = Instant::now();
    loop {
        if let Some(leader) = members.iter().position(Member::leads) {
            return leader;
        }
        assert!(began.elapsed() < UP_MAX, "nobody leads");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Options for these members, without compaction.
pub(crate) fn options(members: &[&Member]) -> Options {
    let endpoints = members.iter().map(|member| member.url.clone()).collect();
    let prefix = Prefix::new("/registry/").unwrap();
    Options { compaction_interval: None, ..Options::new(endpoints, prefix) }
}

/// A store on these members that answers.
pub(crate) async fn open(members: &[&Member]) -> Etcd {
    open_with(options(members)).await
}

pub(crate) async fn open_with(options: Options) -> Etcd {
    let store = Etcd::open(options).await.unwrap();
    let began = Instant::now();
    while let Err(error) = store.health().await {
        assert!(began.elapsed() < UP_MAX, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    store
}
