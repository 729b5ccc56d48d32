//! The initializers of an object, decided during admission.

use admission::{
    Attributes, CreateDecision, Initializers, InitializersOrigin, PendingInitializers,
    UpdateDecision, copy_initializers, create_denied_status, decide_update, denied_update_status,
    normalize_initializers,
};
use api_object::{GroupResource, Status, Tree};
use authz::{Recorder, Target, Verdict};

use crate::admission::WriteRequest;
use crate::authorize::current_chain;
use crate::rest::RequestContext;

/// Carries out the decision about the initializers of a new object, and returns who chose them.
///
/// # Errors
/// 403 if the client supplied initializers and may not `initialize` the object.
pub(crate) async fn assign_initializers(
    ctx: &RequestContext<'_>,
    decision: CreateDecision,
    tree: &mut Tree,
) -> Result<InitializersOrigin, Status> {
    let mut origin = InitializersOrigin::Configuration;
    let initializers = match decision {
        CreateDecision::Initialized => Initializers::default(),
        CreateDecision::Assign(list) => from_configuration(ctx, list),
        CreateDecision::AssignUnlessPermitted(list) => {
            match check_may_initialize(ctx, api_object::name(tree), create_denied_status).await {
                Ok(()) => Initializers::default(),
                Err(denied) if denied.code == 403 => from_configuration(ctx, list),
                Err(undecided) => return Err(undecided),
            }
        }
        CreateDecision::NeedsPermission(initializers) => {
            check_may_initialize(ctx, api_object::name(tree), create_denied_status).await?;
            origin = InitializersOrigin::Client;
            initializers
        }
    };
    initializers.write_to(tree);
    Ok(origin)
}

/// The initializers that the configuration assigns to a new object.
fn from_configuration(ctx: &RequestContext<'_>, list: PendingInitializers) -> Initializers {
    for cycle in &list.cycles {
        let names = cycle.join(", ");
        ctx.server.log.error("initializers wait for each other", &[("names", &names)]);
    }
    list.into()
}

/// Decides about the initializers of the next state of an object.
///
/// # Errors
/// 403 if the client changes them and may not `initialize` the object, 422 if no client may change them so.
pub(crate) async fn check_initializer_update(
    ctx: &RequestContext<'_>,
    write: &WriteRequest,
    tree: &mut Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    let name = api_object::name(tree).to_owned();
    let attributes = write.attributes(ctx, &name, &[]);
    let attributes = Attributes { object: Some(tree), old_object: old, ..attributes };
    let decision = decide_update(&ctx.server.initialization, &attributes);
    let decision =
        decision.map_err(|errors| Status::invalid(&ctx.resource.group_kind(), &name, &errors))?;
    match (decision, old) {
        (UpdateDecision::NoInitializers, _) => Initializers::default().write_to(tree),
        (UpdateDecision::KeepStored, Some(old)) => copy_initializers(tree, old),
        (UpdateDecision::KeepStored, None) => {}
        (UpdateDecision::NeedsPermission(initializers), _) => {
            check_may_initialize(ctx, &name, denied_update_status).await?;
            initializers.write_to(tree);
        }
    }
    Ok(())
}

/// Brings the initializers into shape after hooks ran. Hooks need no permission to change them, because the
/// configuration of hooks is as trusted as that of initializers.
///
/// # Errors
/// 500 if they can not be decoded.
pub(crate) fn conform_initializers(
    ctx: &RequestContext<'_>,
    write: &WriteRequest,
    tree: &mut Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    normalize_initializers(tree).map_err(|error| Status::internal(&error.to_string()))?;
    match old.filter(|_| !write.subresource.is_empty()) {
        Some(old) => copy_initializers(tree, old),
        None if ctx.server.initialization.is_enabled => {
            Initializers::from_object(tree).write_to(tree)
        }
        None => Initializers::default().write_to(tree),
    }
    Ok(())
}

/// Checks that the user may `initialize` an object, in addition to the verb of the request.
async fn check_may_initialize(
    ctx: &RequestContext<'_>,
    name: &str,
    denied: fn(&GroupResource, &str, &str) -> Status,
) -> Result<(), Status> {
    let target = authz::Resource {
        api_group: &ctx.resource.group,
        api_version: &ctx.resource.version,
        namespace: ctx.namespace.unwrap_or_default(),
        resource: &ctx.resource.plural,
        name,
        ..authz::Resource::default()
    };
    let attributes = authz::Attributes {
        user: Some(ctx.authorized.user()),
        verb: "initialize",
        target: Target::Resource(target),
    };
    let decision = current_chain(ctx).authorize(&attributes, Recorder::disabled()).await.decision;
    match (decision.verdict, decision.error) {
        (Verdict::Allow, _) => Ok(()),
        (Verdict::Unavailable(why), _) => Err(Status::undecided(why)),
        (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
            Err(Status::internal(&error.to_string()))
        }
        (Verdict::Deny | Verdict::NoOpinion, None) => {
            let resource = ctx.resource.group_resource();
            Err(denied(&resource, name, &decision.reason.to_string()))
        }
    }
}
