//! Administrative access to devices. It gives a pod devices that other pods use, so only namespaces with a label that
//! administrators set may ask for it.

use api_object::{Status, Tree};
use field_errors::{FieldErrors, FieldPath};
use serde_json::Value;

use super::namespace_lifecycle::find_namespace;
use crate::rest::RequestContext;

/// The label of the namespaces that may ask for it.
const ADMIN_ACCESS_LABEL: &str = "resource.kubernetes.io/admin-access";

/// Checks that a ResourceClaim, its status or a ResourceClaimTemplate has administrative access to devices only in a
/// namespace that allows it. The server does not check again a part that an update leaves unchanged.
///
/// # Errors
/// 422 if the namespace lacks the label; 500, 503 or 504 if the server failed to read the namespace.
pub(super) async fn check_device_admin_access(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    let resource = (ctx.resource.group.as_str(), ctx.resource.plural.as_str());
    let is_granted_before =
        old.is_some_and(|old| find_admin_access(resource, ctx.subresource, old).is_some());
    let Some(idx) = find_admin_access(resource, ctx.subresource, new) else { return Ok(()) };
    if is_granted_before {
        return Ok(());
    }
    let namespace = find_namespace(ctx, ctx.namespace.unwrap_or_default()).await?;
    let label = namespace.as_ref().map(|own| api_object::metadata(&own.name_and_labels));
    let label = label.and_then(|own| own.get("labels")?.get(ADMIN_ACCESS_LABEL)?.as_str());
    if label == Some("true") {
        return Ok(());
    }
    let list = match ctx.subresource {
        Some(_) => "status.allocation.devices.results",
        None => "spec.devices.requests",
    };
    let root = FieldPath::root(list);
    let path = root.index(idx);
    let mut errors = FieldErrors::new();
    let detail = format!(
        "admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"
    );
    errors.push(path.child("adminAccess").forbidden(&detail));
    Err(Status::invalid_object(&ctx.group_kind(), api_object::name(new), &errors))
}

/// The position of the first device request, or of the first allocated device, with administrative access.
fn find_admin_access(
    resource: (&str, &str),
    subresource: Option<&str>,
    object: &Tree,
) -> Option<usize> {
    let (list, is_direct) = match (resource, subresource) {
        (("resource.k8s.io", "resourceclaims"), None) => ("/spec/devices/requests", false),
        (("resource.k8s.io", "resourceclaims"), Some("status")) => {
            ("/status/allocation/devices/results", true)
        }
        (("resource.k8s.io", "resourceclaimtemplates"), None) => {
            ("/spec/spec/devices/requests", false)
        }
        (_, _) => return None,
    };
    let (first, rest) = list.strip_prefix('/')?.split_once('/')?;
    let items = object.get(first)?.pointer(&format!("/{rest}"))?.as_array()?;
    items.iter().position(|item| {
        let holder = if is_direct { Some(item) } else { item.get("exactly") };
        holder.and_then(|own| own.get("adminAccess")) == Some(&Value::Bool(true))
    })
}
