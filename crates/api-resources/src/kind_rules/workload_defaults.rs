//! Defaults of the kinds whose controllers create pods from a template.
//!
//! A part that Kubernetes requires and that is absent gets no defaults, because this server does not validate workloads.

use api_object::{Tree, object_member_mut};
use serde_json::{Value, json};

use super::pod_template_defaults::{object_member, set_claim_spec_defaults, set_template_defaults};
use crate::json_members::{is_member_set, object_items_mut, set_default_member, string_member};
use crate::resource::Resource;

/// A kind with a pod template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workload {
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
}

impl Workload {
    fn from_resource(resource: &Resource) -> Option<Self> {
        match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "podtemplates") => Some(Self::PodTemplate),
            ("", "replicationcontrollers") => Some(Self::ReplicationController),
            ("apps", "daemonsets") => Some(Self::DaemonSet),
            ("apps", "deployments") => Some(Self::Deployment),
            ("apps", "replicasets") => Some(Self::ReplicaSet),
            ("apps", "statefulsets") => Some(Self::StatefulSet),
            ("batch", "cronjobs") => Some(Self::CronJob),
            ("batch", "jobs") => Some(Self::Job),
            _ => None,
        }
    }

    /// The status of a new object.
    fn initial_status(self) -> Option<Value> {
        match self {
            Self::PodTemplate => None,
            Self::CronJob | Self::Deployment | Self::Job => Some(json!({})),
            Self::DaemonSet => Some(json!({
                "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0,
                "numberReady": 0,
            })),
            Self::ReplicaSet | Self::ReplicationController => Some(json!({"replicas": 0})),
            Self::StatefulSet => Some(json!({"replicas": 0, "availableReplicas": 0})),
        }
    }
}

/// Sets the defaults of a new workload; other objects stay unchanged.
pub(super) fn prepare_create(resource: &Resource, tree: &mut Tree) {
    let Some(workload) = Workload::from_resource(resource) else { return };
    if let Some(status) = workload.initial_status() {
        tree.insert("status".to_owned(), status);
    }
    set_workload_defaults(workload, tree);
}

/// Sets the defaults of an updated workload; other objects stay unchanged.
pub(super) fn prepare_update(resource: &Resource, tree: &mut Tree) {
    if let Some(workload) = Workload::from_resource(resource) {
        set_workload_defaults(workload, tree);
    }
}

fn set_workload_defaults(workload: Workload, tree: &mut Tree) {
    if workload == Workload::PodTemplate {
        if let Some(template) = object_member(tree, "template") {
            set_template_defaults(template);
        }
        return;
    }
    if matches!(workload, Workload::Job | Workload::ReplicationController) {
        copy_labels_of_template(tree);
    }
    let Some(spec) = object_member(tree, "spec") else { return };
    match workload {
        Workload::CronJob => return set_cron_job_defaults(spec),
        Workload::DaemonSet => set_daemon_set_defaults(spec),
        Workload::Deployment => set_deployment_defaults(spec),
        Workload::Job => set_job_defaults(spec),
        Workload::ReplicaSet => set_default_member(spec, "replicas", 1),
        Workload::ReplicationController => {
            set_default_member(spec, "replicas", 1);
            set_selector_of_template(spec);
        }
        Workload::StatefulSet => set_stateful_set_defaults(spec),
        Workload::PodTemplate => {}
    }
    if let Some(template) = object_member(spec, "template") {
        set_template_defaults(template);
    }
}

fn template_labels(spec: &Tree) -> Option<Tree> {
    let labels = spec.get("template")?.get("metadata")?.get("labels")?.as_object()?;
    (!labels.is_empty()).then(|| labels.clone())
}

fn copy_labels_of_template(tree: &mut Tree) {
    let spec = tree.get("spec").and_then(Value::as_object);
    let Some(labels) = spec.and_then(template_labels) else { return };
    let own = object_member_mut(api_object::metadata_mut(tree), "labels");
    if own.is_empty() {
        *own = labels;
    }
}

fn set_selector_of_template(spec: &mut Tree) {
    let Some(labels) = template_labels(spec) else { return };
    let selector = object_member_mut(spec, "selector");
    if selector.is_empty() {
        *selector = labels;
    }
}

fn set_deployment_defaults(spec: &mut Tree) {
    set_default_member(spec, "replicas", 1);
    let strategy = object_member_mut(spec, "strategy");
    set_default_member(strategy, "type", "RollingUpdate");
    if string_member(strategy, "type") == "RollingUpdate" {
        let update = object_member_mut(strategy, "rollingUpdate");
        set_default_member(update, "maxUnavailable", "25%");
        set_default_member(update, "maxSurge", "25%");
    }
    set_default_member(spec, "revisionHistoryLimit", 10);
    set_default_member(spec, "progressDeadlineSeconds", 600);
}

fn set_daemon_set_defaults(spec: &mut Tree) {
    let strategy = object_member_mut(spec, "updateStrategy");
    set_default_member(strategy, "type", "RollingUpdate");
    if string_member(strategy, "type") == "RollingUpdate" {
        let update = object_member_mut(strategy, "rollingUpdate");
        set_default_member(update, "maxUnavailable", 1);
        set_default_member(update, "maxSurge", 0);
    }
    set_default_member(spec, "revisionHistoryLimit", 10);
}

fn set_stateful_set_defaults(spec: &mut Tree) {
    set_default_member(spec, "podManagementPolicy", "OrderedReady");
    let strategy = object_member_mut(spec, "updateStrategy");
    if string_member(strategy, "type").is_empty() {
        set_default_member(strategy, "type", "RollingUpdate");
        set_default_member(strategy, "rollingUpdate", json!({}));
    }
    if string_member(strategy, "type") == "RollingUpdate"
        && let Some(update) = object_member(strategy, "rollingUpdate")
    {
        set_default_member(update, "partition", 0);
        set_default_member(update, "maxUnavailable", 1);
    }
    let retention = object_member_mut(spec, "persistentVolumeClaimRetentionPolicy");
    set_default_member(retention, "whenDeleted", "Retain");
    set_default_member(retention, "whenScaled", "Retain");
    set_default_member(spec, "replicas", 1);
    set_default_member(spec, "revisionHistoryLimit", 10);
    for claim in object_items_mut(spec, "volumeClaimTemplates") {
        set_default_member(claim, "apiVersion", "v1");
        set_default_member(claim, "kind", "PersistentVolumeClaim");
        set_claim_spec_defaults(claim);
        set_default_member(object_member_mut(claim, "status"), "phase", "Pending");
    }
}

fn set_job_defaults(spec: &mut Tree) {
    if !is_member_set(spec, "parallelism") {
        set_default_member(spec, "completions", 1);
    }
    set_default_member(spec, "parallelism", 1);
    let limit = if is_member_set(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    set_default_member(spec, "backoffLimit", limit);
    set_default_member(spec, "completionMode", "NonIndexed");
    set_default_member(spec, "suspend", false);
    let policy =
        if is_member_set(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set_default_member(spec, "podReplacementPolicy", policy);
    set_default_member(spec, "manualSelector", false);
    if let Some(policy) = object_member(spec, "podFailurePolicy") {
        for rule in object_items_mut(policy, "rules") {
            for condition in object_items_mut(rule, "onPodConditions") {
                set_default_member(condition, "status", "True");
            }
        }
    }
}

/// A CronJob keeps the spec of its jobs without their defaults, except for the pod template.
fn set_cron_job_defaults(spec: &mut Tree) {
    set_default_member(spec, "concurrencyPolicy", "Allow");
    set_default_member(spec, "suspend", false);
    set_default_member(spec, "successfulJobsHistoryLimit", 3);
    set_default_member(spec, "failedJobsHistoryLimit", 1);
    let Some(job) = object_member(spec, "jobTemplate") else { return };
    object_member_mut(job, "metadata");
    let template = object_member(job, "spec").and_then(|spec| object_member(spec, "template"));
    if let Some(template) = template {
        set_template_defaults(template);
    }
}
