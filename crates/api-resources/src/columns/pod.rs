//! Columns of pods.
//!
//! The status column of a pod combines several fields. It is computed in these steps:
//! 1. the reason of the pod, or its phase;
//! 2. if an init container is not done, what that one does, behind `Init:`;
//! 3. otherwise what a container waits for, or why it ended; the first container counts most;
//! 4. a pod that ended well but has a container that runs is running;
//! 5. a pod that is to be deleted and has not ended is `Terminating`.

use api_object::Tree;
use jiff::Timestamp;
use serde_json::Value;

use super::{AGE, NAME, Table, age_of, name_of, or_placeholder, text_column, wide_column};
use crate::human_age::age;
use crate::tree::{at, flag, items, number, text};

pub(super) static POD: Table = Table {
    columns: &[
        NAME,
        text_column("Ready", "How many containers are ready, of how many."),
        text_column("Status", "What the pod is doing."),
        text_column("Restarts", "How often containers were started again, and when last."),
        AGE,
        wide_column("IP", "Its address."),
        wide_column("Node", "Where it runs."),
        wide_column("Nominated Node", "Where room is made for it."),
        wide_column("Readiness Gates", "How many further conditions hold, of how many."),
    ],
    cells: |tree, now| {
        let (spec, status) = (at(tree, &["spec"]), at(tree, &["status"]));
        let summary = ContainerSummary::new(tree, spec, status);
        let ip = items(status, "podIPs").first().map_or(text(status, "podIP"), |it| text(it, "ip"));
        vec![
            name_of(tree),
            format!("{}/{}", summary.n_ready, summary.n_containers).into(),
            summary.status_word.as_str().into(),
            summary.restarts(now).into(),
            age_of(tree, now),
            or_placeholder(ip, "<none>").into(),
            or_placeholder(text(spec, "nodeName"), "<none>").into(),
            or_placeholder(text(status, "nominatedNodeName"), "<none>").into(),
            readiness_gates(spec, status).into(),
        ]
    },
};

/// The combined state of the containers of a pod.
#[derive(Debug, Default)]
struct ContainerSummary {
    status_word: String,
    n_containers: usize,
    n_ready: usize,
    n_restarts: i64,
    /// When a container last ended before it was started again.
    last_termination: Option<Timestamp>,
}

impl ContainerSummary {
    fn new(tree: &Tree, spec: &Value, status: &Value) -> Self {
        let phase = text(status, "phase");
        let mut summary = Self {
            status_word: or_phase(text(status, "reason"), phase).to_owned(),
            n_containers: items(spec, "containers").len(),
            ..Self::default()
        };
        let conditions = items(status, "conditions");
        if conditions.iter().any(|it| text(it, "reason") == "SchedulingGated") {
            "SchedulingGated".clone_into(&mut summary.status_word);
        }
        summary.n_containers +=
            items(spec, "initContainers").iter().filter(|it| is_sidecar(it)).count();
        let is_initializing = summary.add_init_containers(spec, status);
        if !is_initializing || is_condition_true(conditions, "Initialized") {
            summary.add_containers(spec, status);
        }
        let is_deleted = at(tree, &["metadata", "deletionTimestamp"]).is_string();
        if is_deleted && text(status, "reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.status_word);
        } else if is_deleted && !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.status_word);
        }
        summary
    }

    /// Reports whether one of them is not done.
    fn add_init_containers(&mut self, spec: &Value, status: &Value) -> bool {
        let n_init_containers = items(spec, "initContainers").len();
        for (idx, container) in items(status, "initContainerStatuses").iter().enumerate() {
            self.add_restarts(container);
            let terminated = at(container, &["state", "terminated"]);
            let waiting = text(at(container, &["state", "waiting"]), "reason");
            if !terminated.is_null() && number(terminated, "exitCode") == 0 {
                continue;
            }
            if is_sidecar_named(spec, text(container, "name")) && flag(container, "started") {
                self.n_ready += usize::from(flag(container, "ready"));
                continue;
            }
            let word = match (terminated, waiting) {
                (Value::Null, "" | "PodInitializing") => format!("{idx}/{n_init_containers}"),
                (Value::Null, waiting) => waiting.to_owned(),
                (terminated, _) => termination_reason(terminated),
            };
            self.status_word = format!("Init:{word}");
            return true;
        }
        false
    }

    fn add_containers(&mut self, spec: &Value, status: &Value) {
        // The restarts of init containers that are done no longer matter; those of sidecars do.
        (self.n_restarts, self.last_termination) = (0, None);
        for container in items(status, "initContainerStatuses") {
            if is_sidecar_named(spec, text(container, "name")) {
                self.add_restarts(container);
            }
        }
        let (mut is_any_running, mut error) = (false, None);
        for container in items(status, "containerStatuses").iter().rev() {
            self.add_restarts(container);
            let state = at(container, &["state"]);
            let terminated = at(state, &["terminated"]);
            match text(at(state, &["waiting"]), "reason") {
                "" if !terminated.is_null() => {
                    self.status_word = termination_reason(terminated);
                    if number(terminated, "exitCode") != 0 {
                        error = Some(self.status_word.clone());
                    }
                }
                "" if flag(container, "ready") && !at(state, &["running"]).is_null() => {
                    is_any_running = true;
                    self.n_ready += 1;
                }
                "" => {}
                waiting => waiting.clone_into(&mut self.status_word),
            }
        }
        if self.status_word == "Completed" {
            let is_ready = is_condition_true(items(status, "conditions"), "Ready");
            self.status_word = match (is_any_running, error) {
                (true, _) if is_ready => "Running".to_owned(),
                (_, Some(error)) => error,
                (true, None) => "NotReady".to_owned(),
                (false, None) => return,
            };
        }
    }

    fn add_restarts(&mut self, container: &Value) {
        self.n_restarts = self.n_restarts.saturating_add(number(container, "restartCount"));
        let end = text(at(container, &["lastState", "terminated"]), "finishedAt");
        self.last_termination = self.last_termination.max(end.parse().ok());
    }

    fn restarts(&self, now: Timestamp) -> String {
        match (self.n_restarts, self.last_termination) {
            (0, _) | (_, None) => self.n_restarts.to_string(),
            (n, Some(end)) => format!("{n} ({} ago)", age(now, Some(&end.to_string()))),
        }
    }
}

fn or_phase<'t>(reason: &'t str, phase: &'t str) -> &'t str {
    if reason.is_empty() { phase } else { reason }
}

/// Why a container ended.
fn termination_reason(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// An init container that goes on running.
fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn is_sidecar_named(spec: &Value, name: &str) -> bool {
    items(spec, "initContainers").iter().any(|it| text(it, "name") == name && is_sidecar(it))
}

fn is_condition_true(conditions: &[Value], r#type: &str) -> bool {
    conditions.iter().any(|it| text(it, "type") == r#type && text(it, "status") == "True")
}

fn readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = items(spec, "readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = items(status, "conditions");
    let n_open =
        gates.iter().filter(|it| is_condition_true(conditions, text(*it, "conditionType"))).count();
    format!("{n_open}/{}", gates.len())
}
