//! An Eviction deletes a pod if the PodDisruptionBudget of the pod allows that.

use api_object::{DeleteOptions, Status, Tree};
use bytes::Bytes;
use codec::ExpectedKind;
use field_errors::{FieldErrors, FieldPath};
use serde_json::{Value, json};

use super::disruption_budgets::{EvictionBudgetResult, check_disruption_budget};
use super::{action_success_reply, final_status_unless_conflict, read_pod, set_pod_condition};
use crate::admission::{
    AdmissionFreshnessRequirement, AdmittedPodAction, WriteAttempt, WriteRequest, admit_mutating,
    admit_pod_action, check_pod_is_on_own_node, establish_admission_config_freshness,
};
use crate::request::AuthorizedRequest;
use crate::request_record::RequestRecord;
use crate::respond::Reply;
use crate::rest::{
    RequestContext, WarningsAndHookReports, WriteOptions, delete_admitted_object,
    normalize_metadata,
};

/// Evicts the pod that the path names.
pub(crate) async fn evict_pod(
    ctx: &RequestContext<'_>,
    request: &AuthorizedRequest<'_>,
    body: &Bytes,
    record: &mut RequestRecord,
    report: &mut WarningsAndHookReports,
) -> Result<Reply, Status> {
    let expected = ExpectedKind {
        group: "policy",
        version: "v1",
        kind: "Eviction",
        is_custom_resource: false,
    };
    let older = Some("v1beta1");
    let (eviction, options) =
        request.decode_object_of_kind(&expected, older, body, "CreateOptions", record, report)?;
    let write =
        WriteRequest::for_subresource_create("eviction", ctx.name, options, request.query());
    let mut attempt = WriteAttempt::new(AdmissionFreshnessRequirement::MustConfirm);
    let evicted = admit_and_evict(ctx, &mut attempt, &write, eviction, options).await;
    attempt.report_single_attempt(report);
    evicted.map(|()| action_success_reply())
}

/// Evicts a pod:
///
/// 1. Run the mutating phase on the Eviction.
/// 2. Check that the Eviction names the pod in the request path, and read its delete options.
/// 3. Run the validating phase on the Eviction.
/// 4. Delete the pod if its disruption budget allows that. If another writer changed the pod in the meantime, repeat
///    this step.
async fn admit_and_evict(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    mut eviction: Tree,
    options: WriteOptions,
) -> Result<(), Status> {
    normalize_metadata(ctx, &mut eviction)?;
    api_object::check_and_set_namespace(&mut eviction, ctx.namespace.unwrap_or_default())?;
    establish_admission_config_freshness(ctx, attempt, write, &eviction).await?;
    let eviction = admit_mutating(ctx, attempt, write, eviction, None).await?;
    if api_object::name(&eviction) != ctx.name {
        let why = "name in URL does not match name in Eviction object";
        return Err(Status::bad_request(why));
    }
    let mut delete_options = eviction_delete_options(ctx, &eviction)?;
    delete_options.is_dry_run |= options.is_dry_run;
    let action = admit_pod_action(ctx, attempt, write, &eviction).await?;
    delete_evicted_pod(ctx, attempt, &action, &delete_options).await
}

fn eviction_delete_options(
    ctx: &RequestContext<'_>,
    eviction: &Tree,
) -> Result<DeleteOptions, Status> {
    let options = match eviction.get("deleteOptions") {
        None | Some(Value::Null) => return Ok(DeleteOptions::default()),
        Some(Value::Object(options)) => options,
        Some(_) => {
            let why = "Eviction in version \"v1\" cannot be handled as a Eviction: json: cannot \
                       unmarshal field deleteOptions";
            return Err(Status::bad_request(why));
        }
    };
    let member = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if options.get(member) == Some(&Value::Bool(true)) {
        let mut errors = FieldErrors::new();
        let detail = "cannot be set for pod eviction, try after removing the option";
        errors.push(FieldPath::root("deleteOptions").child(member).invalid(true, detail));
        let kind = api_object::GroupKind::new("policy", "Eviction");
        return Err(Status::invalid_object(&kind, ctx.name, &errors));
    }
    DeleteOptions::parse_delete_options(options)
}

async fn delete_evicted_pod(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    action: &AdmittedPodAction,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let key = ctx.key(ctx.name)?;
    // The budget counts a pod once, however often its deletion is attempted.
    let mut is_counted = false;
    loop {
        ctx.check_deadline()?;
        let (entry, mut pod) = read_pod(ctx, &key).await?;
        check_pod_is_on_own_node(ctx, &pod)?;
        options.check_preconditions(&ctx.group_kind(), ctx.name, &pod, entry.mod_rev.as_u64())?;
        if !is_counted && !is_exempt_from_disruption_budgets(&pod) {
            let check = check_disruption_budget(ctx, &pod, options.is_dry_run).await?;
            is_counted = check == EvictionBudgetResult::Counted;
        }
        if !options.is_dry_run {
            let condition = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "lastProbeTime": null,
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            });
            if let Value::Object(condition) = condition {
                set_pod_condition(&mut pod, condition, ctx.now);
            }
        }
        let admitted = action.admit_pod_deletion(attempt, pod);
        match delete_admitted_object(ctx, attempt, options, admitted, &entry, false).await {
            Ok(_) => return Ok(()),
            Err(failure) => {
                if let Some(status) = final_status_unless_conflict(ctx, failure) {
                    return Err(status);
                }
            }
        }
    }
}

/// Whether the eviction needs no budget: the pod has ended, is pending, or is being deleted.
fn is_exempt_from_disruption_budgets(pod: &Tree) -> bool {
    let phase = pod.get("status").and_then(|own| own.get("phase")).and_then(Value::as_str);
    api_object::is_terminating(pod) || matches!(phase, Some("Succeeded" | "Failed" | "Pending"))
}
