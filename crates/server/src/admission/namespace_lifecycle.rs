//! Checks of the namespace and of the definition that a new object belongs to.

use admission::Operation;
use api_object::{GroupResource, Status, StatusCause, Tree};
use api_resources::{Resource, ResourceOrigin};

use crate::cluster_snapshot::{Namespace, NamespacePhase};
use crate::rest::RequestContext;

/// Namespaces that cannot be deleted.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Checks that the definition of a custom resource is not terminating. It reads the newest snapshot, because
/// the definition may have been deleted since the request was routed.
pub(super) fn check_crd_not_terminating(
    ctx: &RequestContext<'_>,
    name: &str,
) -> Result<(), Status> {
    let Resource {
        group, version, plural, resource_origin: ResourceOrigin::Custom(routed), ..
    } = ctx.resource
    else {
        return Ok(());
    };
    let cluster = ctx.server.snapshot_cache.snapshot();
    let origin =
        cluster.resource_registry.resource(group, version, plural).map(|own| &own.resource_origin);
    match origin {
        Some(ResourceOrigin::Custom(served))
            if !served.is_terminating && served.definition_uid == routed.definition_uid =>
        {
            Ok(())
        }
        Some(ResourceOrigin::Custom(_) | ResourceOrigin::BuiltIn(_)) | None => {
            Err(crd_terminating_status(ctx, name))
        }
    }
}

/// The response to a create whose definition is terminating or deleted.
pub(crate) fn crd_terminating_status(ctx: &RequestContext<'_>, name: &str) -> Status {
    let why = "create not allowed while custom resource definition is terminating";
    Status::forbidden(&ctx.resource.group_resource(), name, why)
}

/// Checks that the namespace of a create exists and is not terminating, and that a delete does not concern an
/// immortal namespace. The first check of a request records the uid of the namespace.
///
/// # Errors
/// 403, 404 or 409, see [`check_namespace_is_usable`].
pub(super) async fn check_namespace_lifecycle(
    ctx: &RequestContext<'_>,
    namespace_uid: &mut Option<String>,
    operation: Operation,
    tree: &Tree,
) -> Result<(), Status> {
    let resource = ctx.resource.group_resource();
    let name = api_object::name(tree);
    if operation == Operation::Delete
        && resource == GroupResource::new("", "namespaces")
        && IMMORTAL_NAMESPACES.contains(&name)
    {
        return Err(Status::forbidden(&resource, name, "this namespace may not be deleted"));
    }
    let Some(namespace) = ctx.namespace else { return Ok(()) };
    if operation != Operation::Create || !ctx.resource.is_namespaced() {
        return Ok(());
    }
    let current = find_namespace(ctx, namespace).await?;
    // The request was authorized for the namespace in the snapshot that authorized it.
    let authorized = ctx
        .authorization_proof
        .authorization_snapshot()
        .namespaces
        .get(namespace)
        .or(current.as_ref());
    if namespace_uid.is_none() {
        *namespace_uid = authorized.map(|own| own.uid.clone());
    }
    check_namespace_is_usable(ctx, namespace_uid.as_deref(), current.as_ref(), name)
}

/// Checks that an object can be created in the namespace of the request, which is in this state.
///
/// # Errors
/// 404 if it does not exist, 403 if it is terminating, 409 if it was deleted and created again since the
/// request began.
pub(crate) fn check_namespace_is_usable(
    ctx: &RequestContext<'_>,
    namespace_uid: Option<&str>,
    current: Option<&Namespace>,
    name: &str,
) -> Result<(), Status> {
    let namespace = ctx.namespace.unwrap_or_default();
    let resource = ctx.resource.group_resource();
    let is_initialized = |own: &&Namespace| own.namespace_phase != NamespacePhase::Uninitialized;
    let Some(current) = current.filter(is_initialized) else {
        return Err(Status::not_found(&GroupResource::new("", "namespaces"), namespace));
    };
    if namespace_uid.is_some_and(|uid| *uid != current.uid) {
        let why = format!(
            "namespace {namespace} was deleted and created again while the request was under \
             way; please try again"
        );
        return Err(Status::conflict(&resource, name, &why));
    }
    match current.namespace_phase {
        NamespacePhase::Active | NamespacePhase::Uninitialized => Ok(()),
        NamespacePhase::Terminating => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being \
                 terminated"
            );
            let mut status = Status::forbidden(&resource, name, &why);
            if let Some(details) = &mut status.details {
                details.causes.push(StatusCause {
                    reason: "NamespaceTerminating".to_owned(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".to_owned(),
                });
            }
            Err(status)
        }
    }
}

/// Finds a namespace. The snapshot may be behind another server, so a namespace that is missing or
/// uninitialized in it is looked up again after the snapshot has caught up with the store.
pub(super) async fn find_namespace(
    ctx: &RequestContext<'_>,
    name: &str,
) -> Result<Option<Namespace>, Status> {
    let snapshot_cache = &ctx.server.snapshot_cache;
    if let Some(own) = snapshot_cache.snapshot().namespaces.get(name)
        && own.namespace_phase != NamespacePhase::Uninitialized
    {
        return Ok(Some(own.clone()));
    }
    let current = ctx.server.store.current_rev().await;
    let current = current.map_err(|error| ctx.store_read_error_status("create", &error))?;
    snapshot_cache.wait_for_revision(current).await;
    Ok(snapshot_cache.snapshot().namespaces.get(name).cloned())
}
