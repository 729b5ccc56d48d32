//! Audit backends that hang, are slow or are full, while several users send requests.

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use ::audit::{
    AuditLog, Auditor, Backend, BackendMode, BackendOptions, EventSink, LOG_BACKEND,
    LogRotationOptions, Policy, SinkFuture,
};
use bytes::Bytes;
use component_base::{AUDIT_WEBHOOK_BACKEND, AuditWebhook};
use fake_http::{Answer, Conduct, Peer};
use https_client::{Client, Destination, Limits, NoCertificateObserver, Scheme, Target};
use serde_json::Value;

use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Records the requests of alice, of bob and of anonymous users, and nothing of the server itself.
const POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "rules": [{"level": "Metadata", "users": ["alice", "bob", "system:anonymous"]}]
}"#;

fn policy() -> Policy {
    Policy::parse(POLICY.as_bytes()).expect("a policy").0
}

/// Small limits, so that few requests reach them.
fn options(mode: BackendMode) -> BackendOptions {
    BackendOptions {
        backend_mode: mode,
        queued_events_max: 8,
        blocking_wait_max: Duration::from_millis(100),
        ..BackendOptions::default()
    }
}

async fn start(backend: Backend) -> Cluster {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |options: &mut server::ServerOptions| {
        options.auditor = Some(Auditor::new(policy(), vec![backend]));
    };
    Cluster::start_by(folder, |_, _| {}, change).await
}

/// A sink that blocks its thread until the sender is dropped, as a disk that hangs or a pipe that nobody reads.
struct BlockedSink {
    gate: Mutex<mpsc::Receiver<()>>,
    users: Mutex<Vec<String>>,
}

impl EventSink for BlockedSink {
    fn write_events<'a>(&'a self, lines: &'a [Bytes]) -> SinkFuture<'a> {
        Box::pin(async move {
            let _ = self.gate.lock().expect("a gate").recv();
            let users = lines.iter().map(|line| {
                let event: Value = serde_json::from_slice(line).expect("JSON");
                event["user"]["username"].as_str().unwrap_or_default().to_owned()
            });
            self.users.lock().expect("users").extend(users);
            Ok(())
        })
    }
}

fn blocked_sink() -> (Arc<BlockedSink>, mpsc::Sender<()>) {
    let (opener, gate) = mpsc::channel();
    (Arc::new(BlockedSink { gate: Mutex::new(gate), users: Mutex::default() }), opener)
}

/// The value of one metric, which is 0 if it is not there.
async fn metric(cluster: &Cluster, series: &str) -> u64 {
    let text = cluster.admin().get("/metrics").await.text();
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().expect("a number"))
}

async fn wait_for_metric(cluster: &Cluster, series: &str, count: u64) {
    for _ in 0..1000 {
        if metric(cluster, series).await >= count {
            return;
        }
        crate::polling::pause().await;
    }
    panic!("{series} stays below {count}");
}

/// A24: while the audit log hangs, requests are answered as by an idle server, and a flood of one user leaves
/// room in the queue for the events of another one.
#[tokio::test(flavor = "multi_thread")]
async fn a24_an_audit_log_that_hangs_changes_no_answer() {
    for mode in [BackendMode::Blocking, BackendMode::Batch] {
        let (sink, opener) = blocked_sink();
        let backend = Backend::start(LOG_BACKEND, Arc::clone(&sink) as _, options(mode));
        let cluster = start(backend.expect("a thread")).await;
        let (admin, alice, bob) = (cluster.admin(), cluster.alice(), cluster.bob());
        for _ in 0..30 {
            alice.get(MAPS).await.expect(403);
        }
        for _ in 0..2 {
            bob.get(MAPS).await.expect(403);
            admin.get(MAPS).await.expect(200);
        }
        let lost = |cause: &str| {
            format!("portcullis_audit_lost_events_total{{backend=\"log\",cause=\"{cause}\"}}")
        };
        assert_eq!(metric(&cluster, &lost("user_share")).await, 56, "{mode:?}");
        assert_eq!(metric(&cluster, &lost("queue_full")).await, 0, "{mode:?}");
        assert_eq!(metric(&cluster, "apiserver_audit_event_total").await, 64, "{mode:?}");
        let buffered = "apiserver_audit_error_total{plugin=\"buffered\"}";
        assert_eq!(metric(&cluster, buffered).await, 56, "{mode:?}");
        assert_eq!(metric(&cluster, "apiserver_audit_requests_rejected_total").await, 0);
        drop(opener);
        // Stopping the server writes what waits in the queue.
        cluster.stop(Duration::ZERO).await;
        let users = sink.users.lock().expect("users").clone();
        assert_eq!(users, ["alice", "alice", "alice", "alice", "bob", "bob", "bob", "bob"]);
    }
}

/// A24: in the mode `blocking-strict` a request is refused if its event is not written, in the words of
/// Kubernetes. Requests that the policy leaves out are served, so an administrator can repair the log.
#[tokio::test(flavor = "multi_thread")]
async fn a24_a_strict_audit_log_refuses_what_it_can_not_record() {
    // The device takes no bytes, like a disk that is full.
    let log = AuditLog::open_log_file(Path::new("/dev/full"), LogRotationOptions::default())
        .expect("a log");
    let backend = Backend::start(
        LOG_BACKEND,
        Arc::new(log),
        BackendOptions { backend_mode: BackendMode::BlockingStrict, ..BackendOptions::default() },
    );
    let cluster = start(backend.expect("a thread")).await;
    let refused = cluster.alice().get(MAPS).await;
    assert_eq!(refused.code, 500);
    let want = format!("Internal Server Error: \"{MAPS}\": failed to store audit event\n");
    assert_eq!(refused.text(), want);
    cluster.admin().get(MAPS).await.expect(200);
    assert_eq!(metric(&cluster, "apiserver_audit_requests_rejected_total").await, 1);
    assert_eq!(metric(&cluster, "apiserver_audit_error_total{plugin=\"log\"}").await, 1);
    assert_eq!(metric(&cluster, "apiserver_audit_level_total{level=\"Metadata\"}").await, 1);
}

/// A24: a full disk costs events and nothing else in the mode `blocking`.
#[tokio::test(flavor = "multi_thread")]
async fn a24_a_full_disk_costs_events_only() {
    let log = AuditLog::open_log_file(Path::new("/dev/full"), LogRotationOptions::default())
        .expect("a log");
    let backend = Backend::start(LOG_BACKEND, Arc::new(log), BackendOptions::default());
    let cluster = start(backend.expect("a thread")).await;
    cluster.alice().get(MAPS).await.expect(403);
    assert_eq!(metric(&cluster, "apiserver_audit_error_total{plugin=\"log\"}").await, 2);
}

fn webhook(peer: &Peer) -> AuditWebhook {
    let destination = Destination::Url {
        scheme: Scheme::Http,
        host: "127.0.0.1".to_owned(),
        port: Some(peer.address().port()),
    };
    let target = Target::new(destination, "/audit");
    let client = Client::new(target, None, Limits::default(), Arc::new(NoCertificateObserver));
    AuditWebhook::new(client.expect("a client"), Duration::from_millis(1))
}

/// A24: an audit webhook that hangs costs events, which are counted, and nobody's time.
#[tokio::test(flavor = "multi_thread")]
async fn a24_an_audit_webhook_that_hangs_changes_no_answer() {
    for mode in [BackendMode::Batch, BackendMode::Blocking] {
        let peer = Peer::start(Answer::misbehave(Conduct::Hang)).expect("a peer");
        let sink = Arc::new(webhook(&peer));
        let backend = Backend::start(AUDIT_WEBHOOK_BACKEND, sink, options(mode));
        let cluster = start(backend.expect("a thread")).await;
        for _ in 0..20 {
            cluster.alice().get(MAPS).await.expect(403);
            cluster.bob().get(MAPS).await.expect(403);
            cluster.admin().get(MAPS).await.expect(200);
        }
        let queued = metric(&cluster, "portcullis_audit_queued_events{backend=\"webhook\"}").await;
        assert_eq!(queued, 8, "{mode:?}");
        let buffered = "apiserver_audit_error_total{plugin=\"buffered\"}";
        assert_eq!(metric(&cluster, buffered).await, 72, "{mode:?}");
    }
}

/// The webhook gets each event once, in lists; a failed call is tried again, and a redirect is not followed.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_webhook_gets_lists_of_events() {
    let peer = Peer::start(Answer::json("{}").status(503)).expect("a peer");
    let sink = Arc::new(webhook(&peer));
    let backend = Backend::start(AUDIT_WEBHOOK_BACKEND, sink, options(BackendMode::Batch));
    let cluster = start(backend.expect("a thread")).await;
    cluster.alice().get(&format!("{MAPS}/a")).await.expect(403);
    assert!(peer.wait_requests(2, Duration::from_secs(60)), "a failed call is repeated");
    peer.replace(Answer::json("{}")).expect("a script");
    cluster.alice().get(&format!("{MAPS}/b")).await.expect(403);
    let requests = async || {
        for _ in 0..1000 {
            let requests = peer.requests();
            if requests
                .iter()
                .any(|request| request.body.windows(12).any(|own| own == b"configmaps/b"))
            {
                return requests;
            }
            crate::polling::pause().await;
        }
        panic!("the events do not come");
    };
    let requests = requests().await;
    let first = requests.first().expect("a request");
    assert_eq!((first.method.as_str(), first.target.as_str()), ("POST", "/audit?timeout=30s"));
    let list: Value = serde_json::from_slice(&first.body).expect("JSON");
    assert_eq!(list["kind"], "EventList");
    assert_eq!(list["apiVersion"], "audit.k8s.io/v1");
    assert_eq!(list["items"][0]["user"]["username"], "alice");
    assert_eq!(list["items"][0]["kind"], Value::Null);
    // Five attempts for the list of a redirect, and none to where it points.
    let elsewhere = Peer::start(Answer::json("{}")).expect("a peer");
    let location = format!("http://{}/audit", elsewhere.address());
    peer.replace(Answer::redirect(&location)).expect("a script");
    cluster.alice().get(&format!("{MAPS}/c")).await.expect(403);
    wait_for_metric(&cluster, "apiserver_audit_error_total{plugin=\"webhook\"}", 1).await;
    assert_eq!(elsewhere.n_requests(), 0);
}
