//! Fills the policy cache from the watches of a cluster.

use std::sync::Arc;

use cluster_client::{ClusterClient, WatchIntervals, WatchUpdate, watch_objects};
use component_base::Log;
use manifests::rbac::{self, RbacObject};
use serde_json::Value;

use crate::cluster_resource::ClusterResource;
use crate::freshness::Freshness;
use crate::policy_cache::{ClusterObjectState, PolicyCache};
use crate::webhook_metrics::WebhookMetrics;

/// The parts that a watch changes.
pub(crate) struct WatchContext {
    pub(crate) policy_cache: Arc<PolicyCache>,
    pub(crate) freshness: Arc<Freshness>,
    pub(crate) metrics: Arc<WebhookMetrics>,
    pub(crate) log: Log,
}

/// Follows one resource of the cluster until the task is dropped.
pub(crate) async fn follow_resource(
    client: Arc<ClusterClient>,
    resource: ClusterResource,
    intervals: WatchIntervals,
    ctx: WatchContext,
) {
    let convert = move |object: &Value| match resource.rbac_kind() {
        Some(_) => decode_rbac_object(object),
        None => None,
    };
    let mut last_failure = String::new();
    let mut on_update = |update: WatchUpdate<RbacObject>| {
        ctx.apply_update(resource, update, &mut last_failure);
    };
    let watched = resource.watched_resource();
    match watch_objects(&client, &watched, intervals, &convert, &mut on_update).await {}
}

/// Decodes a role or a binding. The cluster has validated it.
fn decode_rbac_object(object: &Value) -> Option<RbacObject> {
    rbac::decode_unvalidated_rbac_object(object).ok()?.into_object_unvalidated().ok()
}

impl WatchContext {
    fn apply_update(
        &self,
        resource: ClusterResource,
        update: WatchUpdate<RbacObject>,
        last_failure: &mut String,
    ) {
        match update {
            WatchUpdate::Replaced(objects) => {
                for object in &objects {
                    self.report_undecodable(resource, object);
                }
                self.policy_cache.replace_cluster_objects(resource, objects);
                let message = "a resource of the cluster was listed";
                self.log.info(message, &[("resource", &resource.plural())]);
                last_failure.clear();
            }
            WatchUpdate::Put(object) => {
                self.report_undecodable(resource, &object);
                let state = ClusterObjectState::Exists(object.object);
                let (namespace, name) = (object.namespace, object.name);
                self.policy_cache.put_cluster_object(resource, namespace, name, state);
            }
            WatchUpdate::Deleted { namespace, name } => {
                let state = ClusterObjectState::Deleted;
                self.policy_cache.put_cluster_object(resource, namespace, name, state);
            }
            // The updates before the proof are published by now, which Freshness relies on.
            WatchUpdate::Proven(proven_at) => self.freshness.record_proof(resource, proven_at),
            WatchUpdate::Failed(error) => {
                self.metrics.count_watch_failure(resource);
                let why = error.to_string();
                if why != *last_failure {
                    let fields = [("resource", &resource.plural() as _), ("why", &why as _)];
                    self.log.warn(
                        "a resource of the cluster cannot be read; it is tried again",
                        &fields,
                    );
                    *last_failure = why;
                }
            }
        }
    }

    fn report_undecodable(
        &self,
        resource: ClusterResource,
        object: &cluster_client::WatchedObject<RbacObject>,
    ) {
        if resource.rbac_kind().is_some() && object.object.is_none() {
            self.log.warn(
                "an object of the cluster cannot be decoded and counts as absent",
                &[
                    ("resource", &resource.plural()),
                    ("namespace", &object.namespace),
                    ("name", &object.name),
                ],
            );
        }
    }
}
