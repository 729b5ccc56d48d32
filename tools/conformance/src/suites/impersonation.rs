//! `impersonation`: whether a user may impersonate another one, and which checks decide it.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use authn::{Impersonator, strip_impersonation_headers};
use authz::{Attributes, Authorizer, RequestInfo, TraceRecorder};
use authz_rbac::Snapshot;
use http::HeaderMap;
use manifests::rbac::{RbacObject, decode_unvalidated_rbac_object};
use serde_json::{Value, json};
use server::IntoStatus;

use super::AnswerPair;
use super::headers::{canonical_header_name, parse_headers};
use super::recorded_attributes::parse_user;
use super::user_info::user_to_json;
use crate::vectors::{UnusableVector, Vector};

pub(super) fn answer_vector(vector: &Vector) -> Result<AnswerPair, UnusableVector> {
    let requestor = parse_user(vector.member("requestor")?)?.unwrap_or_default();
    let authorizer = RecordingAuthorizer {
        snapshot: snapshot_with_rules(&requestor.name, vector.member("rules")?)?,
        checks: Mutex::default(),
    };
    let info = RequestInfo::new(vector.text("method")?, vector.text("target")?)
        .map_err(UnusableVector::new)?;
    let attributes = info.to_attributes_for_user(Some(&requestor));
    let mut headers = parse_headers(vector)?;
    let impersonator = Impersonator::default();
    let outcome = poll_once(impersonator.impersonate(&headers, &attributes, &authorizer))?;
    let mut got = match outcome {
        Ok(None) => json!({
            "result": "passthrough",
            "user": user_to_json(&requestor),
            "remainingImpersonationHeaders": remaining_headers(&headers),
        }),
        Ok(Some(impersonated)) => {
            strip_impersonation_headers(&mut headers);
            json!({
                "result": "impersonated",
                "user": user_to_json(&impersonated.user),
                "remainingImpersonationHeaders": remaining_headers(&headers),
            })
        }
        Err(error) => {
            let status = error.into_status();
            json!({
                "result": "rejected",
                "code": status.code,
                "reason": status.reason,
                "message": status.message,
            })
        }
    };
    let checks = authorizer.checks.into_inner().unwrap_or_else(PoisonError::into_inner);
    got["checks"] = sort_extra_checks(checks).into();
    let mut want = vector.member("expect")?.clone();
    if let Some(checks) = want.get("checks").and_then(Value::as_array).cloned() {
        want["checks"] = sort_extra_checks(checks).into();
    }
    Ok(AnswerPair { want, got, warnings: Vec::new() })
}

/// Kubernetes writes every text, so all of it must agree.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

/// An authorizer that decides by roles and records each check.
struct RecordingAuthorizer {
    snapshot: Snapshot,
    checks: Mutex<Vec<Value>>,
}

impl Authorizer for RecordingAuthorizer {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        recorder: TraceRecorder<'a>,
    ) -> authz::DecisionFuture<'a> {
        let decision = self.snapshot.authorize(attributes, recorder);
        let mut check = json!({
            "verb": attributes.verb.as_str(),
            "requestorExtra": attributes.user.map(|user| &user.extra),
            "decision": decision.verdict.name(),
        });
        match attributes.resource() {
            None => check["path"] = attributes.path().into(),
            Some(resource) => {
                for (member, value) in [
                    ("group", resource.api_group),
                    ("version", resource.api_version),
                    ("resource", resource.resource),
                    ("subresource", resource.subresource),
                    ("namespace", resource.namespace.as_str()),
                    ("name", resource.name),
                ] {
                    check[member] = value.into();
                }
            }
        }
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).push(check);
        Box::pin(async move { decision })
    }
}

/// A policy in which this user has these rules in the whole cluster and no other permissions.
fn snapshot_with_rules(user: &str, rules: &Value) -> Result<Snapshot, UnusableVector> {
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
        "metadata": {"name": "granted"}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": "granted"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "granted"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    let mut snapshot = Snapshot::default();
    for object in [role, binding] {
        let manifest = decode_unvalidated_rbac_object(&object).map_err(UnusableVector::new)?;
        match manifest.into_object_unvalidated().map_err(UnusableVector::new)? {
            RbacObject::Role(role) => snapshot.put_role(role),
            RbacObject::Binding(binding) => snapshot.put_binding(binding),
        }
    }
    Ok(snapshot)
}

/// The names of the remaining headers with the prefix of impersonation headers.
fn remaining_headers(headers: &HeaderMap) -> BTreeSet<String> {
    let names = headers.keys().map(|name| canonical_header_name(name.as_str()));
    names.filter(|name| name.starts_with("Impersonate-")).collect()
}

/// Sorts consecutive checks of extra, because Kubernetes makes them in the random order of a Go map.
fn sort_extra_checks(mut checks: Vec<Value>) -> Vec<Value> {
    let text = |check: &Value, member: &str| check[member].as_str().unwrap_or_default().to_owned();
    let is_extra = |check: &Value| text(check, "resource") == "userextras";
    for run in checks.chunk_by_mut(|one, other| is_extra(one) && is_extra(other)) {
        run.sort_by_cached_key(|check| {
            ["verb", "subresource", "name"].map(|member| text(check, member))
        });
    }
    checks
}

/// The output of a future that is ready at its first poll.
fn poll_once<F: Future>(future: F) -> Result<F::Output, UnusableVector> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => {
            Err(UnusableVector::new("impersonation waits, and this authorizer never does"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_checks_of_extra_are_sorted() {
        let check = |resource: &str, name: &str| json!({"resource": resource, "name": name});
        let checks = vec![
            check("users", "z"),
            check("userextras", "b"),
            check("userextras", "a"),
            check("groups", "y"),
            check("groups", "x"),
        ];
        let names: Vec<Value> =
            sort_extra_checks(checks).iter().map(|check| check["name"].clone()).collect();
        assert_eq!(names, ["z", "a", "b", "y", "x"]);
    }
}
