//! `impersonation`: who may act as whom, and which questions decide it.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use access_reviews::ForbiddenRequest;
use authn::{Impersonator, strip_impersonation_headers};
use authz::{Attributes, Authorizer, Recorder, RequestInfo};
use authz_rbac::Snapshot;
use http::HeaderMap;
use manifests::rbac::{Object, decode};
use serde_json::{Value, json};
use server::IntoStatus;

use super::Answer;
use super::headers::{canonical, headers};
use super::question;
use super::user_info::user;
use crate::vectors::Vector;

pub(super) fn answer(vector: &Vector) -> Result<Answer, String> {
    let requestor = question::user(vector.member("requestor")?)?.unwrap_or_default();
    let authorizer = Granted {
        snapshot: snapshot(&requestor.name, vector.member("rules")?)?,
        checks: Mutex::default(),
    };
    let info = RequestInfo::new(vector.text("method")?, vector.text("target")?)
        .map_err(|error| error.to_string())?;
    let attributes = info.attributes(Some(&requestor));
    let mut headers = headers(vector)?;
    let impersonator = Impersonator::default();
    let outcome = ready(impersonator.impersonate(&headers, &attributes, &authorizer))?;
    let mut got = match outcome {
        Ok(None) => json!({
            "result": "passthrough",
            "user": user(&requestor),
            "remainingImpersonationHeaders": remaining(&headers),
        }),
        Ok(Some(impersonated)) => {
            strip_impersonation_headers(&mut headers);
            json!({
                "result": "impersonated",
                "user": user(&impersonated.user),
                "remainingImpersonationHeaders": remaining(&headers),
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
    got["checks"] = in_order(checks).into();
    let mut want = vector.member("expect")?.clone();
    if let Some(checks) = want.get("checks").and_then(Value::as_array).cloned() {
        want["checks"] = in_order(checks).into();
    }
    Ok(Answer { want, got, warnings: Vec::new() })
}

/// Every text is written by Kubernetes itself.
pub(super) fn exact_length(text: &str) -> usize {
    text.len()
}

/// An authorizer that grants what the roles grant, and notes what it is asked.
struct Granted {
    snapshot: Snapshot,
    checks: Mutex<Vec<Value>>,
}

impl Authorizer for Granted {
    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        recorder: Recorder<'a>,
    ) -> authz::DecisionFuture<'a> {
        let decision = self.snapshot.authorize(attributes, recorder);
        let mut check = json!({
            "verb": attributes.verb,
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
                    ("namespace", resource.namespace),
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

/// A policy in which this user holds these rules in the whole cluster, and nothing else.
fn snapshot(user: &str, rules: &Value) -> Result<Snapshot, String> {
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
        let manifest = decode(&object).map_err(|error| error.to_string())?;
        match manifest.into_unchecked().map_err(|faults| faults.to_string())? {
            Object::Role(role) => snapshot.put_role(role),
            Object::Binding(binding) => snapshot.put_binding(binding),
        }
    }
    Ok(snapshot)
}

/// The headers that still look like those of impersonation.
fn remaining(headers: &HeaderMap) -> BTreeSet<String> {
    let names = headers.keys().map(|name| canonical(name.as_str()));
    names.filter(|name| name.starts_with("Impersonate-")).collect()
}

/// The questions with those about extra sorted among themselves: Kubernetes asks them in the order
/// of a map, which is none.
fn in_order(mut checks: Vec<Value>) -> Vec<Value> {
    let text = |check: &Value, member: &str| check[member].as_str().unwrap_or_default().to_owned();
    let is_extra = |check: &Value| text(check, "resource") == "userextras";
    for run in checks.chunk_by_mut(|one, other| is_extra(one) && is_extra(other)) {
        run.sort_by_cached_key(|check| {
            ["verb", "subresource", "name"].map(|member| text(check, member))
        });
    }
    checks
}

/// The output of a future that has nothing to wait for.
fn ready<F: Future>(future: F) -> Result<F::Output, String> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err("impersonation waits for something".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbours_about_extra_are_sorted() {
        let check = |resource: &str, name: &str| json!({"resource": resource, "name": name});
        let checks = vec![
            check("users", "z"),
            check("userextras", "b"),
            check("userextras", "a"),
            check("groups", "y"),
            check("groups", "x"),
        ];
        let names: Vec<Value> =
            in_order(checks).iter().map(|check| check["name"].clone()).collect();
        assert_eq!(names, ["z", "a", "b", "y", "x"]);
    }
}
