//! The server is killed again and again while clients write and hang up, on full disks and with little
//! memory. Afterwards:
//!
//! - It starts.
//! - What was acknowledged is never lost, what was told is never taken back, and history has neither gaps
//!   nor repetitions.
//! - Nothing was done unseen: `audit_log` says what the audit log promises.
//! - No address is reserved that no service holds.
//!
//! `cargo xtask crash --kills N` runs this for longer.

mod aborter;
mod audit_log;
mod full_etcd;
mod history;
mod ledger;
mod round;
mod services;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Client, Events};
use crate::random::Random;
use crate::server::{Place, Server, directory};
use aborter::Aborter;
use audit_log::{AuditLog, Expected};
use ledger::{Ledger, Told};
use round::Round;
use services::{RANGE, Services};
use writer::Writer;

/// How many times the server is killed, if the tests are to take long.
const KILLS_VARIABLE: &str = "PORTCULLIS_CRASH_KILLS";
/// How many times it is killed otherwise: each kind of life occurs.
const N_KILLS: usize = 7;
const N_WRITERS: usize = 12;
const N_ABORTERS: usize = 3;
/// A kill comes after at most so many acknowledged writes.
const N_WRITES_MAX: u64 = 120;
/// The test fails if writes take longer than this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// In one of so many lives it is counted how many services have room.
const CAPACITY_EVERY: usize = 5;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// The label of objects that mark a moment.
const MARKER: &str = "marker";
/// Every request is recorded at all stages.
const AUDIT_POLICY: &str =
    r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_the_embedded_store() {
    kill_again_and_again(Place::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_etcd() {
    kill_again_and_again(Place::etcd()).await;
}

/// Everything that is known about the server.
struct Known {
    random: Random,
    ledger: Ledger,
    services: Services,
    /// The state that the previous server left behind.
    audit: AuditLog,
    expected: Expected,
    n_aborted: usize,
    n_events: usize,
}

async fn kill_again_and_again(mut place: Place) {
    let n_kills = match std::env::var(KILLS_VARIABLE) {
        Ok(n) => n.parse().expect("a number of kills"),
        Err(_) => N_KILLS,
    };
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
    println!("seed {seed}");
    let folder = directory();
    let policy = folder.path().join("audit.json");
    std::fs::write(&policy, AUDIT_POLICY).unwrap();
    let log = folder.path().join("audit.log");
    let flags = [
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
        // Otherwise requests whose events cannot be written are executed.
        "--audit-log-mode=blocking-strict".to_owned(),
        RANGE.to_owned(),
        "--v=1".to_owned(),
    ];
    let flags = flags.each_ref().map(String::as_str);
    let mut known = Known {
        random: Random::new(u64::try_from(seed).unwrap()),
        ledger: Ledger::default(),
        services: Services::default(),
        audit: AuditLog::default(),
        expected: Expected::Killed,
        n_aborted: 0,
        n_events: 0,
    };
    let (begun, mut n_killed) = (Instant::now(), 0);
    for n in 0.. {
        let round = Round::nth(n, &place);
        let allowance = round.allowance(&mut known.random);
        // Each life has its own log, or the disk would be full at once.
        std::fs::remove_file(folder.path().join("log")).ok();
        let server = Server::try_start(folder.path(), &place, &flags, allowance);
        let server = server.unwrap_or_else(|refusal| panic!("life {n}, {round:?}: {refusal}"));
        known.check(&server.client(), round, n).await;
        if n_killed == n_kills {
            break;
        }
        known.write_and_end(server, round, n, &mut place, &log).await;
        n_killed += usize::from(round != Round::Stop);
    }
    println!(
        "{n_kills} kills in {:?} each, {} acknowledged writes, {} requests aborted, {} writes \
         without an answer carried out, {} requests in the audit log",
        begun.elapsed() / u32::try_from(n_kills.max(1)).unwrap(),
        known.ledger.n_acknowledged,
        known.n_aborted,
        known.ledger.n_carried_out,
        known.n_events,
    );
}

impl Known {
    /// Lets clients write, hang up and watch, and ends the server at some moment.
    async fn write_and_end(
        &mut self,
        server: Server,
        round: Round,
        n: usize,
        place: &mut Place,
        log: &Path,
    ) {
        let client = server.client();
        let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", self.ledger.revision);
        let watching = tokio::spawn(listen(client.watch(&path).await.unwrap()));
        let n_acknowledged = Arc::new(AtomicUsize::new(0));
        let padding = round.padding(&mut self.random);
        let mut writers = JoinSet::new();
        for id in 0..N_WRITERS {
            let (facts, random) = (self.ledger.facts_of(id), self.random.split());
            let (trouble, padding) = (round.trouble(), padding.clone());
            let counter = Arc::clone(&n_acknowledged);
            let writer = Writer::new(id, n, facts, random, counter, trouble, padding);
            writers.spawn(writer.write(client.clone()));
        }
        let mut aborters = JoinSet::new();
        for id in 0..N_ABORTERS {
            let aborter = Aborter::new(id, n, self.random.split());
            aborters.spawn(aborter.abort(client.clone()));
        }
        let n_wanted = usize::try_from(self.random.below(N_WRITES_MAX)).unwrap();
        let mut ended = Vec::new();
        let is_enough = || match round {
            // Until nothing can be written any more.
            Round::FullDisk => {
                ended.extend(writers.try_join_next());
                !ended.is_empty()
            }
            _ => n_acknowledged.load(Ordering::SeqCst) >= n_wanted,
        };
        wait_until("writes come about", is_enough).await;
        // This waits for a real process: the server goes on for a random time before it ends.
        tokio::time::sleep(Duration::from_micros(self.random.below(5_000))).await;
        self.end(server, round, place).await;
        let ended = ended.into_iter().map(|written| written.unwrap());
        for written in ended.chain(writers.join_all().await) {
            self.ledger.add(written);
        }
        for (written, n_sent) in aborters.join_all().await {
            self.ledger.add(written);
            self.n_aborted += n_sent;
        }
        self.ledger.told = watching.await.unwrap();
        self.audit = AuditLog::take(log);
        self.expected = round.expected();
        self.n_events += self.audit.len();
    }

    /// Ends a life as it is to end.
    async fn end(&self, server: Server, round: Round, place: &mut Place) {
        if round == Round::Stop {
            let code = tokio::task::spawn_blocking(|| server.stop(PATIENCE)).await.unwrap();
            assert_eq!(code, 0);
            return;
        }
        if let (Round::KillEtcd, Place::Etcd(member)) = (round, place) {
            member.kill();
            member.restart();
            tokio::task::block_in_place(|| member.wait_until_healthy());
            // It goes on with the same server.
            mark(&server.client(), "again").await;
        }
        server.kill();
    }

    /// Compares a server that has started again with what is known.
    async fn check(&mut self, client: &Client, round: Round, n: usize) {
        // What the dead server had sent to its store and nobody had acknowledged may still be on its
        // way. It is there, or never will be, when a write that came later is.
        let path = format!("{CONFIG_MAPS}?labelSelector={MARKER}");
        let (code, answer) = client.ask(Method::DELETE, &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        let marker = mark(client, &n.to_string()).await;
        let ledger = &mut self.ledger;
        assert!(marker > ledger.revision, "the revision {marker} is not above {}", ledger.revision);
        let (code, list) = client.ask(Method::GET, CONFIG_MAPS, &Value::Null).await;
        assert_eq!(code, 200, "{list}");
        let replayed = match n {
            0 => None,
            _ => Some(replay(client, ledger.since, marker).await),
        };
        ledger.settle(&list, replayed.as_deref());
        let answered = std::mem::take(&mut ledger.answered);
        self.audit.check(&replayed.unwrap_or_default(), &answered, self.expected);
        ledger.since = marker;
        ledger.revision = marker;
        self.services.check(client, &self.audit).await;
        // There is no room for that on a full disk.
        if n.is_multiple_of(CAPACITY_EVERY) && round != Round::FullDisk {
            self.services.check_capacity(client, n).await;
        }
    }
}

/// Writes a marker object and returns its revision. The server may need some time to reach its store again.
async fn mark(client: &Client, name: &str) -> u64 {
    let metadata = json!({"name": format!("marker-{name}"), "labels": {MARKER: "true"}});
    let begun = Instant::now();
    loop {
        let body = json!({"metadata": metadata});
        let (code, answer) = client.ask(Method::POST, CONFIG_MAPS, &body).await;
        match code {
            201 => return revision(&answer),
            // One that was answered otherwise may have been carried out.
            409 => {
                let path = format!("{CONFIG_MAPS}/marker-{name}");
                let (code, answer) = client.ask(Method::GET, &path, &Value::Null).await;
                assert_eq!(code, 200, "{answer}");
                return revision(&answer);
            }
            _ => assert!(begun.elapsed() < PATIENCE && code >= 500, "{answer}"),
        }
        // This waits for a real process: the server retries after an error.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Collects watch events until the server ends.
async fn listen(mut watch: Events) -> Vec<Told> {
    let mut told = Vec::new();
    while let Ok(event) = watch.next().await {
        told.push(Told::new(&event));
    }
    told
}

/// Collects the watch events between two revisions.
async fn replay(client: &Client, since: u64, until: u64) -> Vec<Told> {
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={since}");
    let mut watch = client.watch(&path).await.unwrap();
    let mut told: Vec<Told> = Vec::new();
    while told.last().is_none_or(|last| last.revision < until) {
        told.push(Told::new(&watch.next().await.expect("the whole history")));
    }
    told
}

async fn wait_until(complaint: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{complaint}");
        // This waits for a real process: the server answers requests of other tasks.
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

/// The revision of an object or a list.
fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no revision: {object}"))
}
