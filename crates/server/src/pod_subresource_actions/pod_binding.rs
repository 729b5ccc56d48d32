//! A Binding assigns a pod to a node. It comes from a scheduler.

use api_object::{GroupResource, Status, Tree};
use bytes::Bytes;
use codec::ExpectedKind;
use field_errors::{FieldErrors, FieldPath, dns1123_subdomain_faults};
use jiff::Timestamp;
use serde_json::{Value, json};
use store::{Entry, ExpectedKeyState};

use super::{action_success_reply, final_status_unless_conflict, read_pod, set_pod_condition};
use crate::admission::{
    AdmissionFreshnessRequirement, AdmittedPodAction, WriteAttempt, WriteRequest, admit_mutating,
    admit_pod_action, establish_admission_config_freshness,
};
use crate::cluster_ips::ClusterIpChange;
use crate::request::AuthorizedRequest;
use crate::request_record::RequestRecord;
use crate::respond::Reply;
use crate::rest::{
    RequestContext, WarningsAndHookReports, WriteOptions, normalize_metadata, persist,
    validate_metadata,
};

/// Binds a pod: the one that the path names, or for `bindings` the one that the Binding names.
pub(crate) async fn bind_pod(
    ctx: &RequestContext<'_>,
    request: &AuthorizedRequest<'_>,
    body: &Bytes,
    record: &mut RequestRecord,
    report: &mut WarningsAndHookReports,
) -> Result<Reply, Status> {
    let expected =
        ExpectedKind { group: "", version: "v1", kind: "Binding", is_custom_resource: false };
    let (binding, options) =
        request.decode_object_of_kind(&expected, None, body, "CreateOptions", record, report)?;
    let write = match ctx.subresource {
        Some(own) => WriteRequest::for_subresource_create(own, ctx.name, options, request.query()),
        None => WriteRequest::for_create("", options, request.query()),
    };
    let mut attempt = WriteAttempt::new(AdmissionFreshnessRequirement::MustConfirm);
    let bound = admit_and_bind(ctx, &mut attempt, &write, binding, options).await;
    attempt.report_single_attempt(report);
    bound.map(|()| action_success_reply())
}

/// Binds a pod:
///
/// 1. Run the mutating phase about the Binding.
/// 2. Check that the Binding is valid and is about the pod of the path.
/// 3. Run the validating phase.
/// 4. Assign the pod. If another writer changed it in the meantime, begin this step again.
async fn admit_and_bind(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    mut binding: Tree,
    options: WriteOptions,
) -> Result<(), Status> {
    normalize_metadata(ctx, &mut binding)?;
    api_object::check_and_set_namespace(&mut binding, ctx.namespace.unwrap_or_default())?;
    establish_admission_config_freshness(ctx, attempt, write, &binding).await?;
    let binding = admit_mutating(ctx, attempt, write, binding, None).await?;
    let name = api_object::name(&binding).to_owned();
    if ctx.subresource.is_some() && name != ctx.name {
        let why = "name in URL does not match name in Binding object";
        return Err(Status::bad_request(why));
    }
    let errors = validate_pod_binding(&binding);
    if !errors.is_empty() {
        // Kubernetes does not wrap these errors either.
        return Err(Status::error_without_reason(errors.to_string()));
    }
    let action = admit_pod_action(ctx, attempt, write, &binding).await?;
    let registry = &ctx.authorization_proof.authorization_snapshot().resource_registry;
    let pods = registry.resource("", "v1", "pods").ok_or_else(Status::unknown_resource)?;
    let pod_ctx = RequestContext { resource: pods, name: &name, ..*ctx };
    assign_pod_to_node(&pod_ctx, attempt, &action, &binding, options).await
}

async fn assign_pod_to_node(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    action: &AdmittedPodAction,
    binding: &Tree,
    options: WriteOptions,
) -> Result<(), Status> {
    let key = ctx.key(ctx.name)?;
    loop {
        ctx.check_deadline()?;
        let (entry, old) = read_pod(ctx, &key).await?;
        check_pod_binding_preconditions(ctx, binding, &old, &entry)?;
        let pod = build_bound_pod(ctx, binding, &old, ctx.now)?;
        let mut errors = validate_metadata(ctx, &pod);
        // The annotation of a mirror pod is immutable on every path.
        errors.append(api_resources::validate_update(ctx.resource, &pod, &old, Some("status")));
        if !errors.is_empty() {
            return Err(Status::invalid_object(&ctx.group_kind(), ctx.name, &errors));
        }
        if options.is_dry_run {
            return Ok(());
        }
        let admitted = action.admit_pod_change(attempt, pod);
        let (expect, none) = (ExpectedKeyState::At(entry.mod_rev), ClusterIpChange::default());
        let stored = persist(ctx, attempt, key.clone(), admitted, expect, &none, Some(&old)).await;
        match stored {
            Ok(_) => return Ok(()),
            Err(failure) => match final_status_unless_conflict(ctx, failure) {
                Some(status) => return Err(status),
                None => continue,
            },
        }
    }
}

/// The errors in a Binding.
fn validate_pod_binding(binding: &Tree) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let target = binding.get("target").unwrap_or(&Value::Null);
    let text = |member: &str| target.get(member).and_then(Value::as_str).unwrap_or_default();
    let path = FieldPath::root("target");
    let (kind, name) = (text("kind"), text("name"));
    let is_node = matches!(kind, "" | "Node");
    if !is_node {
        errors.push(path.child("kind").not_supported(kind, &["Node", "<empty>"]));
    }
    match name {
        "" => errors.push(path.child("name").required("")),
        name if is_node => {
            for fault in dns1123_subdomain_faults(name) {
                errors.push(path.child("name").invalid(name, &fault));
            }
        }
        _ => {}
    }
    errors
}

/// Checks the uid and the resourceVersion that a Binding may name.
fn check_pod_binding_preconditions(
    ctx: &RequestContext<'_>,
    binding: &Tree,
    pod: &Tree,
    entry: &Entry,
) -> Result<(), Status> {
    let metadata = api_object::metadata(binding);
    let revision = entry.mod_rev.to_string();
    for (member, what, stored) in [
        ("uid", "UID", api_object::uid(pod)),
        ("resourceVersion", "ResourceVersion", revision.as_str()),
    ] {
        let own = api_object::string_member(metadata, member);
        if !own.is_empty() && own != stored {
            let why = format!(
                "Precondition failed: {what} in precondition: {own}, {what} in object meta: {stored}"
            );
            return Err(Status::conflict(&ctx.resource.group_resource(), ctx.name, &why));
        }
    }
    Ok(())
}

/// The pod on its node, with the labels and annotations of the Binding.
///
/// # Errors
/// 409 if the pod is deleted, has a node already or waits for its scheduling gates.
fn build_bound_pod(
    ctx: &RequestContext<'_>,
    binding: &Tree,
    old: &Tree,
    now: Timestamp,
) -> Result<Tree, Status> {
    let name = ctx.name;
    let conflict =
        |why: String| Status::conflict(&GroupResource::new("", "pods/binding"), name, &why);
    let spec = old.get("spec").unwrap_or(&Value::Null);
    let node = spec.get("nodeName").and_then(Value::as_str).unwrap_or_default();
    let gates = spec.get("schedulingGates").and_then(Value::as_array);
    if api_object::is_terminating(old) {
        return Err(conflict(format!("pod {name} is being deleted, cannot be assigned to a host")));
    }
    if !node.is_empty() {
        let node = go_compat::quote(node);
        return Err(conflict(format!("pod {name} is already assigned to node {node}")));
    }
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Err(conflict(format!("pod {name} has non-empty .spec.schedulingGates")));
    }
    let mut pod = old.clone();
    let target = binding.get("target").and_then(|own| own.get("name")).cloned();
    api_object::object_member_mut(&mut pod, "spec")
        .insert("nodeName".to_owned(), target.unwrap_or_default());
    for member in ["annotations", "labels"] {
        let added = api_object::metadata(binding).get(member).and_then(Value::as_object);
        if let Some(added) = added.filter(|own| !own.is_empty()) {
            let metadata = api_object::metadata_mut(&mut pod);
            api_object::object_member_mut(metadata, member).extend(added.clone());
        }
    }
    api_object::object_member_mut(&mut pod, "status").shift_remove("nominatedNodeName");
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
    if let Value::Object(scheduled) = scheduled {
        set_pod_condition(&mut pod, scheduled, now);
    }
    Ok(pod)
}
