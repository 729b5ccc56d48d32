//! The PodDisruptionBudgets of a pod. A controller writes into the status of a budget how many pods may be
//! disrupted; each eviction counts one.

use admission::LabelSelector;
use api_object::{GroupResource, Status, StatusCause, Tree};
use serde_json::{Value, json};
use store::{ListRequest, Prefix};

use crate::initializers::is_stored_uninitialized;
use crate::object_ref::ObjectRef;
use crate::rest::{RequestContext, VersionedObject, decode_stored_entry};

/// The maximum number of evictions in the status of a budget that its controller has not observed yet.
const DISRUPTED_PODS_MAX: usize = 2000;
/// The number of attempts to count an eviction while other writers change the same budget.
const TRIES: usize = 20;

const BUDGETS: (&str, &str, &str) = ("policy", "v1", "poddisruptionbudgets");
const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Whether a budget counts an eviction that it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EvictionBudgetResult {
    /// The pod has no budget, or is not healthy and does not count.
    NotCounted,
    /// The budget counts the eviction.
    Counted,
}

/// Checks that the budget of a pod allows to evict it, and counts the eviction unless it is a dry run.
///
/// # Errors
/// 429 if the budget does not allow it, 403 if its status makes no sense, 500 if the pod has several budgets, or
/// the failure to read or write a budget.
pub(super) async fn check_disruption_budget(
    ctx: &RequestContext<'_>,
    pod: &Tree,
    is_dry_run: bool,
) -> Result<EvictionBudgetResult, Status> {
    for _ in 0..TRIES {
        ctx.check_deadline()?;
        let mut budgets = read_matching_budgets(ctx, pod).await?;
        let Some(budget) = budgets.pop() else { return Ok(EvictionBudgetResult::NotCounted) };
        if !budgets.is_empty() {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction \
                       subresource does not support.";
            return Err(Status::error_without_reason(why));
        }
        if !is_pod_ready(pod) && allows_evicting_unhealthy_pods(&budget.object_tree) {
            return Ok(EvictionBudgetResult::NotCounted);
        }
        check_disruptions_allowed(&budget.object_tree)?;
        if is_dry_run {
            return Ok(EvictionBudgetResult::Counted);
        }
        match count_eviction_in_budget(ctx, pod, budget).await {
            Ok(()) => return Ok(EvictionBudgetResult::Counted),
            Err(status) if status.code == 409 => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::timeout())
}

/// The budgets whose selector matches the pod. A budget with an invalid selector matches none. One that cannot be
/// decoded might protect the pod, so that it refuses the eviction.
async fn read_matching_budgets(
    ctx: &RequestContext<'_>,
    pod: &Tree,
) -> Result<Vec<VersionedObject>, Status> {
    let cluster = ctx.server.snapshot_cache.snapshot();
    let (group, version, plural) = BUDGETS;
    let Some(resource) = cluster.resource_registry.resource(group, version, plural) else {
        return Ok(Vec::new());
    };
    let prefix =
        api_resources::list_key_prefix(&ctx.server.store_key_prefix, resource, ctx.namespace);
    let prefix = prefix.and_then(|text| Prefix::new(&text).ok());
    let prefix = prefix.ok_or_else(Status::unknown_resource)?;
    let list = ctx.server.store.list(&prefix, ListRequest::default());
    let page = ctx.time_store_request("list", list).await;
    let page = page.map_err(|error| ctx.store_read_error_status("list", &error))?;
    let mut budgets = Vec::new();
    for item in page.items.iter().filter(|item| !is_stored_uninitialized(&item.entry.value)) {
        let tree = decode_stored_entry(resource, &item.entry)?;
        if budget_selects_pod(&tree, pod) {
            budgets.push(VersionedObject { object_tree: tree, revision: Some(item.entry.mod_rev) });
        }
    }
    Ok(budgets)
}

/// Whether the selector of a budget matches the pod. A budget without a selector matches no pod.
fn budget_selects_pod(budget: &Tree, pod: &Tree) -> bool {
    let Some(spec) = budget.get("spec").and_then(Value::as_object) else { return false };
    let has_selector = spec.get("selector").is_some_and(Value::is_object);
    has_selector && LabelSelector::read(spec, "selector").selects(pod)
}

fn is_pod_ready(pod: &Tree) -> bool {
    let conditions = pod.get("status").and_then(|own| own.get("conditions"));
    conditions.and_then(Value::as_array).into_iter().flatten().any(|condition| {
        let text = |member: &str| condition.get(member).and_then(Value::as_str);
        (text("type"), text("status")) == (Some("Ready"), Some("True"))
    })
}

/// Whether a pod that is not ready may be evicted without counting.
fn allows_evicting_unhealthy_pods(budget: &Tree) -> bool {
    let policy = budget.get("spec").and_then(|own| own.get("unhealthyPodEvictionPolicy"));
    let status = DisruptionBudgetStatus::new(budget);
    let (healthy, desired) =
        (status.integer_member("currentHealthy"), status.integer_member("desiredHealthy"));
    policy.and_then(Value::as_str) == Some("AlwaysAllow") || (healthy >= desired && desired > 0)
}

/// The status of a budget.
struct DisruptionBudgetStatus<'b>(&'b Value);

impl<'b> DisruptionBudgetStatus<'b> {
    fn new(budget: &'b Tree) -> Self {
        Self(budget.get("status").unwrap_or(&Value::Null))
    }

    fn integer_member(&self, member: &str) -> i64 {
        self.0.get(member).and_then(Value::as_i64).unwrap_or_default()
    }

    /// The text of the condition that says whether disruptions are allowed, if it says no: reason and message.
    fn disruption_not_allowed_condition(&self) -> Option<(&'b str, &'b str)> {
        let conditions = self.0.get("conditions").and_then(Value::as_array)?;
        let text = |condition: &'b Value, member: &str| {
            condition.get(member).and_then(Value::as_str).unwrap_or_default()
        };
        let condition = conditions.iter().find(|own| text(own, "type") == "DisruptionAllowed")?;
        let (reason, message) = (text(condition, "reason"), text(condition, "message"));
        (text(condition, "status") == "False" && !message.is_empty()).then_some((reason, message))
    }
}

/// Checks that the status of a budget allows one more disruption.
fn check_disruptions_allowed(budget: &Tree) -> Result<(), Status> {
    let (name, status) = (api_object::name(budget), DisruptionBudgetStatus::new(budget));
    let generation = api_object::integer_member(api_object::metadata(budget), "generation");
    if status.integer_member("observedGeneration") < generation {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(disruption_violation_status(10, cause));
    }
    let allowed = status.integer_member("disruptionsAllowed");
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(invalid_disruption_budget_status(name, why, why));
    }
    let disrupted = status.0.get("disruptedPods").and_then(Value::as_object).map_or(0, Tree::len);
    if disrupted > DISRUPTED_PODS_MAX {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        let cause = "too many pending evictions not confirmed by PDB controller";
        return Err(invalid_disruption_budget_status(name, why, cause));
    }
    if allowed > 0 {
        return Ok(());
    }
    let (healthy, desired) =
        (status.integer_member("currentHealthy"), status.integer_member("desiredHealthy"));
    let refused = format!("The disruption budget {name} does not allow evicting pods currently");
    let cause = match status.disruption_not_allowed_condition() {
        Some(("SyncFailed", message)) => format!("{refused} because it failed sync: {message}"),
        _ if healthy <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        ),
        Some((reason, message)) => format!("{refused} ({reason}): {message}"),
        None => refused,
    };
    Err(disruption_violation_status(0, cause))
}

/// 429: the eviction has to wait.
fn disruption_violation_status(retry_after_seconds: u32, cause: String) -> Status {
    let mut status = Status::too_many_requests("", retry_after_seconds);
    VIOLATION.clone_into(&mut status.message);
    with_status_cause(status, cause)
}

/// 403: the status of the budget makes no sense.
fn invalid_disruption_budget_status(name: &str, why: &str, cause: &str) -> Status {
    let resource = GroupResource::new("policy", "poddisruptionbudget");
    let cause =
        format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
    with_status_cause(Status::forbidden(&resource, name, why), cause)
}

fn with_status_cause(mut status: Status, message: String) -> Status {
    let reason = "DisruptionBudget".to_owned();
    if let Some(details) = &mut status.details {
        details.causes.push(StatusCause { reason, message, field: String::new() });
    }
    status
}

/// Writes into the status of a budget that the pod is being evicted. The server does that as its own user, so that
/// the user who evicts needs no permission for budgets.
///
/// # Errors
/// 409 if another writer changed the budget.
async fn count_eviction_in_budget(
    ctx: &RequestContext<'_>,
    pod: &Tree,
    mut budget: VersionedObject,
) -> Result<(), Status> {
    let now = api_object::format_rfc3339(ctx.now);
    let status = api_object::object_member_mut(&mut budget.object_tree, "status");
    let allowed = api_object::integer_member(status, "disruptionsAllowed").saturating_sub(1);
    status.insert("disruptionsAllowed".to_owned(), allowed.into());
    let disrupted = api_object::object_member_mut(status, "disruptedPods");
    disrupted.insert(api_object::name(pod).to_owned(), now.as_str().into());
    if allowed == 0 {
        set_disruptions_not_allowed(status, &now);
    }
    let name = api_object::name(&budget.object_tree).to_owned();
    let namespace = ctx.namespace.unwrap_or_default();
    let object = ObjectRef::new(BUDGETS, namespace, &name).with_subresource("status");
    ctx.server.loopback_update(object, budget.into_tree_with_resource_version()).await.map(drop)
}

/// Sets the condition that says that no more disruptions are allowed.
fn set_disruptions_not_allowed(status: &mut Tree, now: &str) {
    let generation = api_object::integer_member(status, "observedGeneration");
    let condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": now,
    });
    let conditions = status.entry("conditions".to_owned()).or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let Value::Array(conditions) = conditions else { return };
    let is_same = |own: &Value| own.get("type") == condition.get("type");
    match conditions.iter_mut().find(|own| is_same(own)) {
        Some(own) if own.get("status") == condition.get("status") => {}
        Some(own) => *own = condition,
        None => conditions.push(condition),
    }
}
