//! The table columns of pods.
//!
//! The status column of a pod combines several fields. It is computed in these steps:
//! 1. It begins as the reason of the pod, or as its phase.
//! 2. If an init container has not completed, it is the state of that container after `Init:`.
//! 3. Otherwise it is the reason why a container waits or terminated; the first container takes precedence.
//! 4. A pod with the reason `Completed` and a running container is `Running` or `NotReady`.
//! 5. A pod that is being deleted and has not ended is `Terminating`.

use api_object::Tree;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    AGE, BuiltInTable, NAME, age_cell, name_cell, text_column, text_or_placeholder, wide_column,
};
use crate::human_age::format_age;
use crate::json_members::{bool_member, integer_member, list_member, string_member, value_at_path};

pub(super) static POD: BuiltInTable = BuiltInTable {
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
    make_cells: |tree, now| {
        let (spec, status) = (value_at_path(tree, &["spec"]), value_at_path(tree, &["status"]));
        let summary = ContainerSummary::new(tree, spec, status);
        let ip = list_member(status, "podIPs")
            .first()
            .map_or(string_member(status, "podIP"), |it| string_member(it, "ip"));
        vec![
            name_cell(tree),
            format!("{}/{}", summary.n_ready_containers, summary.n_containers).into(),
            summary.status_text.as_str().into(),
            summary.render_restarts(now).into(),
            age_cell(tree, now),
            text_or_placeholder(ip, "<none>").into(),
            text_or_placeholder(string_member(spec, "nodeName"), "<none>").into(),
            text_or_placeholder(string_member(status, "nominatedNodeName"), "<none>").into(),
            render_readiness_gates(spec, status).into(),
        ]
    },
};

/// The combined state of the containers of a pod.
#[derive(Debug, Default)]
struct ContainerSummary {
    status_text: String,
    n_containers: usize,
    n_ready_containers: usize,
    n_restarts: i64,
    /// The time of the last termination that was followed by a restart.
    last_termination_time: Option<Timestamp>,
}

impl ContainerSummary {
    fn new(tree: &Tree, spec: &Value, status: &Value) -> Self {
        let phase = string_member(status, "phase");
        let mut summary = Self {
            status_text: reason_or_phase(string_member(status, "reason"), phase).to_owned(),
            n_containers: list_member(spec, "containers").len(),
            ..Self::default()
        };
        let conditions = list_member(status, "conditions");
        if conditions.iter().any(|it| string_member(it, "reason") == "SchedulingGated") {
            "SchedulingGated".clone_into(&mut summary.status_text);
        }
        summary.n_containers +=
            list_member(spec, "initContainers").iter().filter(|it| is_sidecar(it)).count();
        let is_initializing = summary.summarize_init_containers(spec, status);
        if !is_initializing || is_condition_true(conditions, "Initialized") {
            summary.summarize_containers(spec, status);
        }
        let is_deleted = value_at_path(tree, &["metadata", "deletionTimestamp"]).is_string();
        if is_deleted && string_member(status, "reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.status_text);
        } else if is_deleted && !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.status_text);
        }
        summary
    }

    /// Adds the init containers. Reports whether one of them has not completed.
    fn summarize_init_containers(&mut self, spec: &Value, status: &Value) -> bool {
        let n_init_containers = list_member(spec, "initContainers").len();
        for (idx, container) in list_member(status, "initContainerStatuses").iter().enumerate() {
            self.count_container_restarts(container);
            let terminated = value_at_path(container, &["state", "terminated"]);
            let waiting = string_member(value_at_path(container, &["state", "waiting"]), "reason");
            if !terminated.is_null() && integer_member(terminated, "exitCode") == 0 {
                continue;
            }
            if is_sidecar_named(spec, string_member(container, "name"))
                && bool_member(container, "started")
            {
                self.n_ready_containers += usize::from(bool_member(container, "ready"));
                continue;
            }
            let word = match (terminated, waiting) {
                (Value::Null, "" | "PodInitializing") => format!("{idx}/{n_init_containers}"),
                (Value::Null, waiting) => waiting.to_owned(),
                (terminated, _) => termination_reason(terminated),
            };
            self.status_text = format!("Init:{word}");
            return true;
        }
        false
    }

    fn summarize_containers(&mut self, spec: &Value, status: &Value) {
        // The restarts of completed init containers do not count any more; those of sidecars do.
        (self.n_restarts, self.last_termination_time) = (0, None);
        for container in list_member(status, "initContainerStatuses") {
            if is_sidecar_named(spec, string_member(container, "name")) {
                self.count_container_restarts(container);
            }
        }
        let (mut is_any_running, mut error) = (false, None);
        for container in list_member(status, "containerStatuses").iter().rev() {
            self.count_container_restarts(container);
            let state = value_at_path(container, &["state"]);
            let terminated = value_at_path(state, &["terminated"]);
            match string_member(value_at_path(state, &["waiting"]), "reason") {
                "" if !terminated.is_null() => {
                    self.status_text = termination_reason(terminated);
                    if integer_member(terminated, "exitCode") != 0 {
                        error = Some(self.status_text.clone());
                    }
                }
                "" if bool_member(container, "ready")
                    && !value_at_path(state, &["running"]).is_null() =>
                {
                    is_any_running = true;
                    self.n_ready_containers += 1;
                }
                "" => {}
                waiting => waiting.clone_into(&mut self.status_text),
            }
        }
        if self.status_text == "Completed" {
            let is_ready = is_condition_true(list_member(status, "conditions"), "Ready");
            self.status_text = match (is_any_running, error) {
                (true, _) if is_ready => "Running".to_owned(),
                (_, Some(error)) => error,
                (true, None) => "NotReady".to_owned(),
                (false, None) => return,
            };
        }
    }

    fn count_container_restarts(&mut self, container: &Value) {
        self.n_restarts = self.n_restarts.saturating_add(integer_member(container, "restartCount"));
        let end =
            string_member(value_at_path(container, &["lastState", "terminated"]), "finishedAt");
        self.last_termination_time = self.last_termination_time.max(end.parse().ok());
    }

    fn render_restarts(&self, now: Timestamp) -> String {
        match (self.n_restarts, self.last_termination_time) {
            (0, _) | (_, None) => self.n_restarts.to_string(),
            (n, Some(end)) => format!("{n} ({} ago)", format_age(now, Some(&end.to_string()))),
        }
    }
}

fn reason_or_phase<'t>(reason: &'t str, phase: &'t str) -> &'t str {
    if reason.is_empty() { phase } else { reason }
}

/// The reason why a container terminated, or else its signal or exit code.
fn termination_reason(terminated: &Value) -> String {
    match (string_member(terminated, "reason"), integer_member(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", integer_member(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Reports whether an init container is a sidecar, which keeps running.
fn is_sidecar(container: &Value) -> bool {
    string_member(container, "restartPolicy") == "Always"
}

fn is_sidecar_named(spec: &Value, name: &str) -> bool {
    list_member(spec, "initContainers")
        .iter()
        .any(|it| string_member(it, "name") == name && is_sidecar(it))
}

fn is_condition_true(conditions: &[Value], r#type: &str) -> bool {
    conditions
        .iter()
        .any(|it| string_member(it, "type") == r#type && string_member(it, "status") == "True")
}

fn render_readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = list_member(spec, "readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = list_member(status, "conditions");
    let n_open = gates
        .iter()
        .filter(|it| is_condition_true(conditions, string_member(*it, "conditionType")))
        .count();
    format!("{n_open}/{}", gates.len())
}
