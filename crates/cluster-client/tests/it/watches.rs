//! Watches, and the proofs that a cache is fresh.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cluster_client::{ClusterError, WatchIntervals, WatchUpdate, WatchedResource, watch_objects};
use fake_http::{Answer, Body, Conduct, Request, Script};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use crate::fixture::Cluster;

/// A test that waits longer than this for an update has failed.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The path of the watched resource.
const PATH: &str = "/apis/rbac.authorization.k8s.io/v1/roles";

/// The kinds of requests that a watch sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    List,
    Checkpoint,
    Watch,
}

fn kind_of_request(request: &Request) -> Sent {
    match &request.target {
        target if target.contains("watch=true") => Sent::Watch,
        target if target.ends_with("?limit=1") => Sent::Checkpoint,
        _ => Sent::List,
    }
}

/// A list of roles at a revision.
fn list(revision: u64, names: &[&str]) -> Answer {
    let item = |name: &&str| json!({"metadata": {"name": name, "namespace": "a"}});
    let items: Vec<Value> = names.iter().map(item).collect();
    let metadata = json!({"resourceVersion": revision.to_string()});
    let list = json!({
        "kind": "RoleList", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata,
        "items": items,
    });
    Answer::json(list.to_string())
}

fn event(event_type: &str, name: &str, revision: u64) -> String {
    let metadata = json!({"name": name, "namespace": "a", "resourceVersion": revision.to_string()});
    format!("{}\n", json!({"type": event_type, "object": {"metadata": metadata}}))
}

/// A watch that sends these events and stays open.
fn open_watch(events: &[String]) -> Answer {
    Answer::json(format!("{} ", events.concat())).conduct(Conduct::HangInBody)
}

/// A watch that sends these events and ends.
fn ended_watch(events: &[String]) -> Answer {
    Answer::json(events.concat())
}

/// A watch that runs until the test drops it.
struct Running {
    cluster: Cluster,
    updates: UnboundedReceiver<WatchUpdate<String>>,
    _task: tokio::task::JoinSet<()>,
}

impl Running {
    /// Starts to watch a cluster that answers by this rule. The second argument of the rule is the number of earlier
    /// requests of the same kind.
    fn start(rule: impl Fn(Sent, usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with_relist_age(Duration::from_millis(400), rule)
    }

    fn start_with_relist_age(
        relist_age: Duration,
        rule: impl Fn(Sent, usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let counts: Arc<[AtomicUsize; 3]> = Arc::default();
        let cluster = Cluster::start(Script::rule(move |request| {
            let sent = kind_of_request(request);
            let n_before = counts[sent as usize].fetch_add(1, Ordering::Relaxed);
            rule(sent, n_before, request)
        }));
        let client = cluster.client("{}");
        let (sender, updates) = unbounded_channel();
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            let resource = WatchedResource {
                path: PATH.to_owned(),
                kind: "Role",
                api_version: "rbac.authorization.k8s.io/v1",
            };
            let intervals =
                WatchIntervals { checkpoint_interval: Duration::from_millis(100), relist_age };
            let convert =
                |object: &Value| object["metadata"]["name"].as_str().map(ToOwned::to_owned);
            let mut on_update = |update| drop(sender.send(update));
            match watch_objects(&client, &resource, intervals, &convert, &mut on_update).await {}
        });
        Self { cluster, updates, _task: task }
    }

    async fn next(&mut self) -> WatchUpdate<String> {
        tokio::time::timeout(WAIT_MAX, self.updates.recv()).await.unwrap().unwrap()
    }

    /// The next update that is neither a proof nor a failure, as a line.
    async fn next_change(&mut self) -> String {
        loop {
            match self.next().await {
                WatchUpdate::Replaced(objects) => {
                    let names: Vec<String> = objects.into_iter().map(|own| own.name).collect();
                    return format!("replaced {}", names.join(" "));
                }
                WatchUpdate::Put(object) => return format!("put {}", object.name),
                WatchUpdate::Deleted { namespace, name } => {
                    return format!("deleted {namespace}/{name}");
                }
                WatchUpdate::Proven(_) | WatchUpdate::Failed(_) => {}
            }
        }
    }

    /// The next proof, which must come before the next change.
    async fn next_proof(&mut self) -> Instant {
        loop {
            match self.next().await {
                WatchUpdate::Proven(at) => return at,
                WatchUpdate::Failed(_) => {}
                other => panic!("no proof before {other:?}"),
            }
        }
    }

    fn n_requests(&self, wanted: Sent) -> usize {
        let requests = self.cluster.peer.requests();
        requests.iter().filter(|request| kind_of_request(request) == wanted).count()
    }
}

#[tokio::test]
async fn events_change_the_cache_in_order() {
    let mut running = Running::start(|sent, _, _| match sent {
        Sent::List => list(10, &["one"]),
        Sent::Checkpoint => list(13, &[]),
        Sent::Watch => open_watch(&[
            event("ADDED", "two", 11),
            event("MODIFIED", "one", 12),
            event("DELETED", "one", 13),
        ]),
    });
    assert_eq!(running.next_change().await, "replaced one");
    let listed_at = running.next_proof().await;
    for want in ["put two", "put one", "deleted a/one"] {
        assert_eq!(running.next_change().await, want);
    }
    assert!(running.next_proof().await > listed_at, "the checkpoint was reached");
}

/// A resource without changes is proven by bookmarks, and is not listed again.
#[tokio::test]
async fn bookmarks_alone_prove_freshness() {
    // Each checkpoint is one revision further, and each watch ends with a bookmark that has reached it.
    let newest = Arc::new(AtomicUsize::new(10));
    let mut running = Running::start(move |sent, _, _| match sent {
        Sent::List => list(10, &["one"]),
        Sent::Checkpoint => list(newest.fetch_add(1, Ordering::Relaxed) as u64 + 1, &[]),
        Sent::Watch => {
            let revision = newest.load(Ordering::Relaxed) as u64;
            ended_watch(&[event("BOOKMARK", "", revision)])
        }
    });
    assert_eq!(running.next_change().await, "replaced one");
    let mut proven_at = running.next_proof().await;
    for _ in 0..5 {
        let next = running.next_proof().await;
        assert!(next > proven_at);
        proven_at = next;
    }
    assert_eq!(running.n_requests(Sent::List), 1);
}

/// The API server answers lists, and the watch hangs: no proof but that of the next list.
#[tokio::test]
async fn a_hung_watch_is_replaced_by_a_list() {
    for conduct in [Conduct::Hang, Conduct::Freeze, Conduct::HangInBody] {
        let mut running = Running::start(move |sent, n_before, _| match sent {
            Sent::List if n_before == 0 => list(10, &["old"]),
            Sent::List => list(30, &["new"]),
            Sent::Checkpoint => list(20, &[]),
            // An event below the checkpoint arrives late; it does not prove that the watch is current.
            Sent::Watch => Answer::json(event("BOOKMARK", "", 15) + " ").conduct(conduct.clone()),
        });
        assert_eq!(running.next_change().await, "replaced old");
        running.next_proof().await;
        let next = loop {
            match running.next().await {
                WatchUpdate::Failed(_) => {}
                other => break other,
            }
        };
        assert!(matches!(next, WatchUpdate::Replaced(_)), "{next:?}");
    }
}

#[tokio::test]
async fn a_revision_that_is_gone_leads_to_a_list() {
    let status = r#"{"kind":"Status","code":410,"message":"too old resource version"}"#;
    let as_event = format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n");
    for gone in [Answer::json(status).status(410), Answer::json(as_event)] {
        let mut running = Running::start(move |sent, n_before, _| match sent {
            Sent::List if n_before == 0 => list(10, &["old"]),
            Sent::List => list(30, &["new"]),
            Sent::Checkpoint => list(30, &[]),
            Sent::Watch if n_before == 0 => gone.clone(),
            Sent::Watch => open_watch(&[]),
        });
        assert_eq!(running.next_change().await, "replaced old");
        assert_eq!(running.next_change().await, "replaced new");
    }
}

/// An API server that restarts, and one that ends the watch in time, continue at the last revision.
#[tokio::test]
async fn a_watch_continues_where_it_ended() {
    for first in [
        ended_watch(&[event("ADDED", "two", 11)]),
        Answer::json(event("ADDED", "two", 11)).conduct(Conduct::Truncate),
    ] {
        let mut running = Running::start(move |sent, n_before, request| match sent {
            Sent::List => list(10, &["one"]),
            Sent::Checkpoint => list(12, &[]),
            Sent::Watch if n_before == 0 => first.clone(),
            Sent::Watch if n_before == 1 => Answer::misbehave(Conduct::Reset),
            Sent::Watch => {
                assert!(request.target.contains("resourceVersion=11&"), "{}", request.target);
                open_watch(&[event("ADDED", "three", 12)])
            }
        });
        for want in ["replaced one", "put two", "put three"] {
            assert_eq!(running.next_change().await, want);
        }
        running.next_proof().await;
    }
}

/// A cluster that was restored from a backup has lower revisions than the cache.
#[tokio::test]
async fn revisions_that_run_backwards_lead_to_a_list() {
    let mut running = Running::start(|sent, n_before, _| match sent {
        Sent::List if n_before == 0 => list(10, &["lost"]),
        Sent::List => list(5, &["restored"]),
        Sent::Checkpoint => list(5, &[]),
        Sent::Watch => open_watch(&[]),
    });
    assert_eq!(running.next_change().await, "replaced lost");
    assert_eq!(running.next_change().await, "replaced restored");
}

/// A role of the largest size that etcd stores has a longer line if all of its bytes are escaped in JSON.
#[tokio::test]
async fn a_line_of_a_huge_object_is_read() {
    let huge = "\u{1}".repeat(3 << 19);
    let line = event("ADDED", &huge, 11);
    assert!(line.len() > 9 << 20);
    let mut running = Running::start_with_relist_age(WAIT_MAX, move |sent, _, _| match sent {
        Sent::List => list(10, &[]),
        Sent::Checkpoint => list(11, &[]),
        Sent::Watch => open_watch(std::slice::from_ref(&line)),
    });
    assert_eq!(running.next_change().await, "replaced ");
    assert_eq!(running.next_change().await, format!("put {huge}"));
}

#[tokio::test]
async fn a_line_without_end_is_not_read_to_its_end() {
    let mut running = Running::start(|sent, _, _| match sent {
        Sent::List => list(10, &[]),
        Sent::Checkpoint => list(10, &[]),
        Sent::Watch => Answer::json("").body(Body::Endless),
    });
    loop {
        if let WatchUpdate::Failed(error) = running.next().await {
            assert!(matches!(error, ClusterError::NotKubernetes { .. }), "{error}");
            return;
        }
    }
}
