//! A server with a manual clock, and functions that act as initializers.

use std::time::Duration;

use serde_json::{Value, json};
use server::{Clock, ServerOptions};
use tokio::task::JoinHandle;

use crate::client::{Answer, Client, Events};
use crate::cluster::Cluster;

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const INITIALIZERS: &str =
    "/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations";
/// How long anything may take that takes no time on the clock.
const PATIENCE: Duration = Duration::from_secs(20);
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

pub(super) struct Scene {
    pub(super) cluster: Cluster,
    pub(super) clock: Clock,
    pub(super) admin: Client,
}

impl Scene {
    pub(super) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// A server with options that differ.
    pub(super) async fn start_with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::start_in(folder, jiff::Timestamp::now(), change).await
    }

    /// Starts a server on the data in a folder, with this wall-clock time.
    pub(super) async fn start_in(
        folder: tempfile::TempDir,
        now: jiff::Timestamp,
        change: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let clock = Clock::new_manual_clock(now);
        let own = clock.clone();
        let cluster = Cluster::start_by(
            folder,
            |_, _| {},
            |options| {
                options.admission_options.clock = own;
                change(options);
            },
        );
        let cluster = cluster.await;
        let admin = cluster.admin();
        Self { cluster, clock, admin }
    }

    /// Stops the server without cleanup and starts another one this much later, which does not
    /// track the objects.
    pub(super) async fn crash(self, later: Duration) -> Self {
        let now = jiff::Timestamp::now() + later;
        let folder = self.cluster.stop(Duration::ZERO).await;
        Self::start_in(folder, now, |_| {}).await
    }

    /// Registers initializers for configmaps, as name and policy.
    pub(super) async fn register(&self, initializers: &[(&str, &str)]) {
        let entries: Vec<Value> =
            initializers.iter().map(|(name, _)| entry(name, json!({}))).collect();
        self.admin.post(INITIALIZERS, &configuration("a", json!(entries))).await.expect(201);
        for (name, policy) in initializers.iter().filter(|(_, policy)| *policy != "Ignore") {
            self.set_policy(name, policy).await;
        }
    }

    pub(super) async fn set_policy(&self, name: &str, policy: &str) {
        let patch = json!({"initializers": [{"name": name, "failurePolicy": policy}]});
        let path = format!("{INITIALIZERS}/a");
        self.admin.patch(&path, "strategic-merge-patch", &patch).await.expect(200);
    }

    /// Lets alice do everything with configmaps but `initialize`, unless that is among the verbs.
    pub(super) async fn grant_alice(&self, more: &[&str]) -> Client {
        let verbs = ["create", "get", "list", "watch", "update", "patch", "delete"];
        let verbs: Vec<&str> = verbs.iter().chain(more).copied().collect();
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps", "pods", "pods/status"],
            "verbs": verbs}]);
        let role = json!({"metadata": {"name": "maps"}, "rules": rules});
        self.admin.post(&format!("{ROLES}/roles"), &role).await.expect(201);
        let binding = json!({"metadata": {"name": "alice"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
        self.admin.post(&format!("{ROLES}/rolebindings"), &binding).await.expect(201);
        self.cluster.alice()
    }

    /// Begins to create a configmap.
    pub(super) fn create(&self, name: &str) -> JoinHandle<Answer> {
        self.create_at(MAPS, map(name))
    }

    pub(super) fn create_at(&self, path: &str, body: Value) -> JoinHandle<Answer> {
        let (admin, path) = (self.admin.clone(), path.to_owned());
        tokio::spawn(async move { admin.post(&path, &body).await })
    }

    /// A watch over what happens to configmaps from now on.
    pub(super) async fn watch(&self, query: &str) -> Events {
        let list = self.admin.get(MAPS).await.expect(200);
        let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
        self.admin.watch(&format!("{MAPS}?watch=1&resourceVersion={version}&{query}")).await
    }

    /// The names of the configmaps of a list.
    pub(super) async fn list(&self, query: &str) -> Vec<String> {
        let list = self.admin.get(&format!("{MAPS}?{query}")).await.expect(200);
        let name = |item: &Value| item["metadata"]["name"].as_str().expect("a name").to_owned();
        list["items"].as_array().expect("items").iter().map(name).collect()
    }

    pub(super) async fn get(&self, name: &str) -> Value {
        self.admin.get(&format!("{MAPS}/{name}")).await.expect(200)
    }

    /// Acts as an initializer: removes its entry from the object.
    pub(super) async fn act(&self, name: &str, initializer: &str) -> Value {
        let pending = json!([{"$patch": "delete", "name": initializer}]);
        let patch = json!({"metadata": {"initializers": {"pending": pending}},
            "data": {initializer: "was here"}});
        let path = format!("{MAPS}/{name}");
        self.admin.patch(&path, "strategic-merge-patch", &patch).await.expect(200)
    }

    pub(super) fn pass(&self, seconds: f64) {
        self.clock.advance_time(Duration::from_secs_f64(seconds));
    }

    /// Waits until timers are set to so many seconds after the beginning, for so many objects.
    pub(super) async fn asleep(&self, until: f64, n_objects: usize) {
        asleep(&self.clock, until, n_objects).await;
    }

    /// The value of a metric with its labels.
    pub(super) async fn metric(&self, series: &str) -> Option<f64> {
        let text = self.admin.get("/metrics").await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        line.parse().ok()
    }
}

/// Waits until timers of a clock are set.
pub(super) async fn asleep(clock: &Clock, until: f64, n_objects: usize) {
    let waiting = clock.wait_for_sleepers(Duration::from_secs_f64(until), n_objects);
    tokio::time::timeout(PATIENCE, waiting).await.expect("timers that are set");
}

/// An entry of a configuration that concerns new configmaps, with some fields otherwise.
pub(super) fn entry(name: &str, changes: Value) -> Value {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]);
    let mut entry = json!({"name": name, "rules": rules});
    let own = entry.as_object_mut().expect("an object");
    own.extend(changes.as_object().expect("an object").clone());
    entry
}

pub(super) fn configuration(name: &str, initializers: Value) -> Value {
    json!({"metadata": {"name": name}, "initializers": initializers})
}

pub(super) fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "b"}})
}

/// A configmap with these initializers in its metadata.
pub(super) fn map_with(name: &str, initializers: Value) -> Value {
    json!({"metadata": {"name": name, "initializers": initializers}, "data": {"a": "b"}})
}

/// The pending initializers of an object; `None` if it has no such field.
pub(super) fn pending(object: &Value) -> Option<Vec<&str>> {
    let initializers = object["metadata"].get("initializers")?;
    let entries = initializers["pending"].as_array().expect("a list").iter();
    Some(entries.map(|entry| entry["name"].as_str().expect("a name")).collect())
}

/// Type, name and pending list of the next event.
pub(super) async fn next(events: &mut Events) -> (String, String, Vec<String>) {
    let event = events.next().await.expect("an event");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let waiting = pending(&event["object"]).unwrap_or_default();
    let waiting = waiting.into_iter().map(str::to_owned).collect();
    (text(&event["type"]), text(&event["object"]["metadata"]["name"]), waiting)
}

/// The value that [`next`] returns.
pub(super) fn seen(kind: &str, name: &str, pending: &[&str]) -> (String, String, Vec<String>) {
    let pending = pending.iter().map(|&name| name.to_owned()).collect();
    (kind.to_owned(), name.to_owned(), pending)
}
