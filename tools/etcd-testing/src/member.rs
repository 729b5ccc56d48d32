//! Members of etcd as processes that end with the test.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::port::free_ports;

/// The message if the program is missing. A test fails then, because a skipped test would prove nothing.
const ETCD_MISSING_MESSAGE: &str = "`etcd` is not in PATH: run `cargo xtask setup`, or install the package that has \
                       it (Debian: `apt-get install etcd-server`)";
/// The longest time until a member is up. Elections and busy machines take seconds.
const STARTUP_TIME_MAX: Duration = Duration::from_secs(60);
/// The interval of the checks whether a member is up.
const HEALTH_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// The longest time of a status request to a member.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);
/// A request limit with room for the largest value of a store.
const LARGE_REQUESTS: &str = "--max-request-bytes=2097152";

/// One member. Dropping it kills the process and removes its data.
#[derive(Debug)]
pub struct Member {
    /// The URL for clients.
    pub url: String,
    args: Vec<String>,
    process: Child,
    directory: TempDir,
}

impl Member {
    /// A cluster of one member, with a request limit that fits the largest value.
    #[must_use]
    pub fn alone() -> Self {
        Self::alone_with("http", &[LARGE_REQUESTS])
    }

    /// A cluster of one member with these arguments, which serves clients in this scheme.
    #[must_use]
    pub fn alone_with(scheme: &str, args: &[&str]) -> Self {
        let [client, peer] = free_ports();
        let cluster = format!("m0=http://127.0.0.1:{peer}");
        Self::start("m0", &format!("{scheme}://127.0.0.1:{client}"), peer, &cluster, args)
    }

    /// A cluster of three members, which is up when two of them have found each other; see [`leader`].
    #[must_use]
    pub fn three() -> [Self; 3] {
        let (clients, peers): ([u16; 3], [u16; 3]) = (free_ports(), free_ports());
        let member = |n: usize| format!("m{n}=http://127.0.0.1:{}", peers[n]);
        let cluster = [0, 1, 2].map(member).join(",");
        [0, 1, 2].map(|n| {
            let url = format!("http://127.0.0.1:{}", clients[n]);
            Self::start(&format!("m{n}"), &url, peers[n], &cluster, &[LARGE_REQUESTS])
        })
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

    /// Kills the process, as a crash does.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Asks the process to end and waits for it. A leader transfers its leadership first.
    pub fn stop(&mut self) {
        self.signal("-TERM");
        self.process.wait().unwrap();
    }

    /// Starts the member again with its data, after it was killed or stopped.
    pub fn restart(&mut self) {
        self.process = spawn(&self.args, self.directory.path());
    }

    /// Suspends the process: connections stay open and nothing answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Resumes the suspended process.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// The address for clients.
    #[must_use]
    pub fn address(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or_default()
    }

    /// Waits until the member has a leader and answers. Only for members that serve `http`.
    pub fn wait_until_healthy(&self) {
        let is_healthy =
            || self.ask("/health").is_some_and(|text| text.contains(r#""health":"true""#));
        wait_until("the member is not healthy", is_healthy);
    }

    /// Reports whether the member reports that it is the leader.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.metric("etcd_server_is_leader") == Some(1.0)
    }

    /// The value of one metric of the member. Only for members that serve `http`.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        let text = self.ask("/metrics")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.parse().ok()
    }

    fn ask(&self, path: &str) -> Option<String> {
        let address = self.address();
        let mut connection = TcpStream::connect(address).ok()?;
        connection.set_read_timeout(Some(STATUS_TIMEOUT)).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        connection.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        connection.read_to_string(&mut text).ok()?;
        Some(text)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The process may have ended already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Returns the leader of the members, and waits until there is one.
#[must_use]
pub fn leader(members: &[Member]) -> usize {
    let mut leader = None;
    wait_until("nobody leads", || {
        leader = members.iter().position(Member::leads);
        leader.is_some()
    });
    leader.unwrap()
}

fn wait_until(complaint: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < STARTUP_TIME_MAX, "{complaint}");
        std::thread::sleep(HEALTH_CHECK_INTERVAL);
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
    child.unwrap_or_else(|error| panic!("{ETCD_MISSING_MESSAGE} ({error})"))
}
