//! The initializers of an object, decided during admission.

use admission::{
    Attributes, InitializeDenied, Initializers, InitializersOnCreate, InitializersOnUpdate,
    InitializersOrigin, Operation, PendingInitializers, copy_initializers,
    decide_initializers_on_update, normalize_initializers,
};
use api_object::{Status, Tree};
use authz::{Target, TraceRecorder, Verb, Verdict};

use crate::admission::WriteRequest;
use crate::authorize::newest_authorizer_chain;
use crate::error_status::IntoStatus;
use crate::rest::RequestContext;

/// Sets the initializers of a new object, and returns whether the client or the configuration chose them.
///
/// # Errors
/// 403 if the client supplied initializers and may not `initialize` the object.
pub(crate) async fn assign_initializers(
    ctx: &RequestContext<'_>,
    decision: InitializersOnCreate,
    tree: &mut Tree,
) -> Result<InitializersOrigin, Status> {
    let mut origin = InitializersOrigin::Configuration;
    let initializers = match decision {
        InitializersOnCreate::Initialized => Initializers::default(),
        InitializersOnCreate::Assign(list) => initializers_from_configuration(ctx, list),
        InitializersOnCreate::AssignUnlessPermitted(list) => {
            match check_may_initialize(ctx, api_object::name(tree), Operation::Create).await {
                Ok(()) => Initializers::default(),
                Err(denied) if denied.code == 403 => initializers_from_configuration(ctx, list),
                Err(undecided) => return Err(undecided),
            }
        }
        InitializersOnCreate::NeedsPermission(initializers) => {
            check_may_initialize(ctx, api_object::name(tree), Operation::Create).await?;
            origin = InitializersOrigin::Client;
            initializers
        }
    };
    initializers.write_to_object(tree);
    Ok(origin)
}

/// The initializers that the configuration assigns to a new object.
fn initializers_from_configuration(
    ctx: &RequestContext<'_>,
    list: PendingInitializers,
) -> Initializers {
    for cycle in &list.dependency_cycles {
        let names = cycle.join(", ");
        ctx.server.log.error("initializers wait for each other", &[("names", &names)]);
    }
    list.into()
}

/// Decides about the initializers of the next state of an object.
///
/// # Errors
/// 403 if the client changes them and may not `initialize` the object, 422 if no
/// client may make such a change.
pub(crate) async fn check_initializer_update(
    ctx: &RequestContext<'_>,
    write: &WriteRequest,
    tree: &mut Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    let name = api_object::name(tree).to_owned();
    let attributes = write.admission_attributes(ctx, &name, &[]);
    let attributes = Attributes { object: Some(tree), old_object: old, ..attributes };
    let decision = decide_initializers_on_update(&ctx.server.initializer_options, &attributes);
    let decision = decision
        .map_err(|errors| Status::invalid_object(&ctx.resource.group_kind(), &name, &errors))?;
    match (decision, old) {
        (InitializersOnUpdate::NoInitializers, _) => Initializers::default().write_to_object(tree),
        (InitializersOnUpdate::KeepStored, Some(old)) => copy_initializers(tree, old),
        (InitializersOnUpdate::KeepStored, None) => {}
        (InitializersOnUpdate::NeedsPermission(initializers), _) => {
            check_may_initialize(ctx, &name, Operation::Update).await?;
            initializers.write_to_object(tree);
        }
    }
    Ok(())
}

/// Normalizes the initializers after hooks have run. Hooks need no permission to change them, because the
/// configuration of hooks is as trusted as that of initializers.
///
/// # Errors
/// 500 if they cannot be decoded.
pub(crate) fn normalize_initializers_after_hooks(
    ctx: &RequestContext<'_>,
    write: &WriteRequest,
    tree: &mut Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    normalize_initializers(tree).map_err(|error| Status::internal_error(&error.to_string()))?;
    match old.filter(|_| !write.subresource.is_empty()) {
        Some(old) => copy_initializers(tree, old),
        None if ctx.server.initializer_options.are_initializers_enabled => {
            Initializers::from_object(tree).write_to_object(tree)
        }
        None => Initializers::default().write_to_object(tree),
    }
    Ok(())
}

/// Checks that the user may `initialize` an object, in addition to the verb of the request.
async fn check_may_initialize(
    ctx: &RequestContext<'_>,
    name: &str,
    operation: Operation,
) -> Result<(), Status> {
    let target = authz::Resource {
        api_group: &ctx.resource.group,
        api_version: &ctx.resource.version,
        namespace: ctx.namespace.into(),
        resource: &ctx.resource.plural,
        name,
        ..authz::Resource::default()
    };
    let attributes = authz::Attributes {
        user: Some(ctx.authorization_proof.user()),
        verb: Verb::new("initialize"),
        target: Target::Resource(target),
    };
    let chain = newest_authorizer_chain(ctx);
    let deciding = chain.authorize(&attributes, TraceRecorder::disabled_recorder());
    let decision = ctx.wait_for_authorizers_of_check(deciding).await?.decision;
    match (decision.verdict, decision.error) {
        (Verdict::Allow, _) => Ok(()),
        (Verdict::Unavailable(why), _) => Err(Status::authorization_undecided(why)),
        (Verdict::Deny | Verdict::NoOpinion, Some(error)) => {
            Err(Status::internal_error(&error.to_string()))
        }
        (Verdict::Deny | Verdict::NoOpinion, None) => {
            let denied = InitializeDenied {
                operation,
                resource: ctx.resource.group_resource(),
                name: name.to_owned(),
                reason: decision.reason.to_string(),
            };
            Err(denied.into_status())
        }
    }
}
