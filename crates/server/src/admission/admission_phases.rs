//! The two phases of admission: the mutating phase may change the object, the validating phase may only
//! refuse it.

use std::time::Instant as Clock;

use admission::{Attributes, EquivalentResource, MatchedHooks, Operation};
use admission_hooks::{HookRequest, HookSession, ObjectConverter, Phase};
use api_object::{Status, Tree};
use api_resources::equivalent_resources;
use metrics::AdmissionMetrics;

use super::WriteAttempt;
use super::WriteRequest;
use super::admission_config_freshness::{AdmissionConfigFreshness, AdmissionSnapshot};
use super::admission_plugins::AdmissionPlugin;
use super::hook_object_converter::HookObjectConverter;
use super::namespace_lifecycle::{
    check_crd_not_terminating, check_namespace_lifecycle, find_namespace,
};
use super::node_restriction::check_node_restriction;
use super::node_taints::add_not_ready_taint;
use crate::authorize::{ChainAuthorizer, newest_authorizer_chain};
use crate::cluster_snapshot::Namespace;
use crate::error_status::IntoStatus;
use crate::initializers::{
    assign_initializers, check_initializer_update, normalize_initializers_after_hooks,
};
use crate::request_seat::{WebhookWait, estimate_json_bytes};
use crate::rest::{RequestContext, VersionedObject};

/// Runs the mutating phase and returns the resulting object. The tree of a deletion is the stored object.
///
/// 1. Check that the namespace exists and is not terminating.
/// 2. Check that a node may write this.
/// 3. Decide about the initializers of the object.
/// 4. Call the mutating hooks, and call them again if one changed an object that others had reviewed. Check
///    again that a node may write the result.
/// 5. Normalize the initializers that hooks wrote.
///
/// # Errors
/// The refusal of a built-in check or of a hook.
pub(crate) async fn admit_mutating(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    tree: Tree,
    old: Option<&Tree>,
) -> Result<Tree, Status> {
    let begun = Clock::now();
    let result = run_mutating_phase(ctx, attempt, write, tree, old).await;
    let metrics = &ctx.server.admission_metrics;
    metrics.record_phase_duration(
        Phase::Mutating,
        write.operation,
        begun.elapsed(),
        result.is_err(),
    );
    result
}

async fn run_mutating_phase(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    mut tree: Tree,
    old: Option<&Tree>,
) -> Result<Tree, Status> {
    check_namespace_lifecycle(ctx, &mut attempt.namespace_uid, write.operation, &tree).await?;
    check_node_restriction_of_write(ctx, write, &tree, old).await?;
    add_not_ready_taint_if_new_node(ctx, write, &mut tree);
    match write.operation {
        Operation::Create => {
            let decision = attempt.matching_hooks_and_initializers.take_initializers_on_create();
            attempt.initializers_origin = assign_initializers(ctx, decision, &mut tree).await?;
        }
        Operation::Update => check_initializer_update(ctx, write, &mut tree, old).await?,
        Operation::Delete | Operation::Connect => {}
    }
    let plugins = ctx.server.admission_plugins;
    if !attempt.matching_hooks_and_initializers.matched_hooks.has_mutating_hooks()
        || !plugins.is_plugin_enabled(AdmissionPlugin::MutatingAdmissionWebhook)
    {
        return Ok(tree);
    }
    let mut tree = call_mutating_hooks(ctx, attempt, write, tree, old).await?;
    // A hook must not turn the object of a node into one that the node may not write. Stored objects are checked
    // once more after their completion; token requests and evictions are not.
    check_node_restriction_of_write(ctx, write, &tree, old).await?;
    if matches!(write.operation, Operation::Create | Operation::Update) {
        normalize_initializers_after_hooks(ctx, write, &mut tree, old)?;
    }
    Ok(tree)
}

/// Checks a write of a node. The tree of a deletion is the stored object.
async fn check_node_restriction_of_write(
    ctx: &RequestContext<'_>,
    write: &WriteRequest,
    tree: &Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    let (object, old) = match write.operation {
        Operation::Delete => (None, Some(tree)),
        Operation::Create | Operation::Update => (Some(tree), old),
        // As in Kubernetes, only authorizers decide who may connect.
        Operation::Connect => return Ok(()),
    };
    check_node_restriction(ctx, write.operation, object, old).await.map(drop)
}

fn add_not_ready_taint_if_new_node(
    ctx: &RequestContext<'_>,
    write: &WriteRequest,
    tree: &mut Tree,
) {
    let is_new_node = write.operation == Operation::Create
        && write.subresource.is_empty()
        && ctx.resource.group.is_empty()
        && ctx.resource.plural == "nodes";
    if is_new_node
        && ctx.server.admission_plugins.is_plugin_enabled(AdmissionPlugin::TaintNodesByCondition)
    {
        add_not_ready_taint(tree);
    }
}

async fn call_mutating_hooks(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    mut tree: Tree,
    old: Option<&Tree>,
) -> Result<Tree, Status> {
    let WriteAttempt {
        admission_config_freshness: freshness,
        matching_hooks_and_initializers,
        hook_session,
        namespace_uid,
        ..
    } = attempt;
    let Some(snapshot) = freshness.as_ref().and_then(AdmissionConfigFreshness::admission_snapshot)
    else {
        return Ok(tree);
    };
    let mut inputs = HookRequestInputs::new(
        ctx,
        write,
        snapshot,
        &matching_hooks_and_initializers.matched_hooks,
    );
    inputs.object_converter.old_object = old;
    // Hook requests contain the name of the request, which no hook can change.
    let name = api_object::name(&tree).to_owned();
    let is_deletion = write.operation == Operation::Delete;
    if !is_deletion {
        let kind = inputs.admission_attributes(&name).kind;
        tree = inputs
            .object_converter
            .decode_and_default(tree, &kind)
            .map_err(|error| Status::bad_request(error.to_string()))?;
    }
    let before = if is_deletion { Some(&tree) } else { old };
    let old_object = before.map(|before| with_resource_version(before, write));
    let object = (!is_deletion).then_some(&tree);
    inputs.load_namespace_if_selected(Phase::Mutating, &name, object, old_object.as_ref()).await?;
    let begun = Clock::now();
    let hook_session = hook_session.get_or_insert_with(|| new_hook_session(ctx));
    let request = inputs.new_hook_request(&name, None, old_object.as_ref());
    let object_bytes =
        estimate_json_bytes(&tree) + old_object.as_ref().map_or(0, estimate_json_bytes);
    let calls = call_mutating_hooks_in_rounds(ctx, namespace_uid, &request, hook_session, tree);
    let wait = WebhookWait { n_object_bytes: object_bytes, is_first_wait_of_attempt: true };
    let result = ctx.wait_for_admission_webhooks(wait, calls).await?;
    let metrics = &ctx.server.admission_metrics;
    let (took, is_refused) = (begun.elapsed(), result.is_err());
    let plugin = Phase::Mutating.plugin_name();
    metrics.record_controller_duration(plugin, Phase::Mutating, write.operation, took, is_refused);
    result
}

/// Calls the mutating hooks, and again if one changed an object that others had reviewed.
async fn call_mutating_hooks_in_rounds(
    ctx: &RequestContext<'_>,
    namespace_uid: &mut Option<String>,
    request: &HookRequest<'_>,
    hook_session: &mut HookSession,
    mut tree: Tree,
) -> Result<Tree, Status> {
    let operation = request.attributes.operation;
    loop {
        let object = (operation != Operation::Delete).then(|| std::mem::take(&mut tree));
        let mutated = hook_session
            .call_mutating_hooks(request, object)
            .await
            .map_err(IntoStatus::into_status)?;
        if let Some(next) = mutated {
            tree = next;
        }
        if !hook_session.needs_another_round() {
            return Ok(tree);
        }
        check_namespace_lifecycle(ctx, namespace_uid, operation, &tree).await?;
    }
}

/// Runs the validating phase. The tree of a deletion is the stored object.
pub(super) async fn run_validating_phase(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    tree: &Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    let begun = Clock::now();
    let result = match write.operation == Operation::Create && write.subresource.is_empty() {
        true => check_crd_not_terminating(ctx, api_object::name(tree)),
        false => Ok(()),
    };
    let result = match result {
        Ok(()) => call_validating_hooks(ctx, attempt, write, tree, old).await,
        Err(status) => Err(status),
    };
    let metrics = &ctx.server.admission_metrics;
    metrics.record_phase_duration(
        Phase::Validating,
        write.operation,
        begun.elapsed(),
        result.is_err(),
    );
    result
}

async fn call_validating_hooks(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    tree: &Tree,
    old: Option<&Tree>,
) -> Result<(), Status> {
    let WriteAttempt {
        admission_config_freshness: freshness,
        matching_hooks_and_initializers,
        hook_session,
        ..
    } = attempt;
    let Some(snapshot) = freshness.as_ref().and_then(AdmissionConfigFreshness::admission_snapshot)
    else {
        return Ok(());
    };
    let plugins = ctx.server.admission_plugins;
    if !matching_hooks_and_initializers.matched_hooks.has_validating_hooks()
        || !plugins.is_plugin_enabled(AdmissionPlugin::ValidatingAdmissionWebhook)
    {
        return Ok(());
    }
    let name = api_object::name(tree);
    let mut inputs = HookRequestInputs::new(
        ctx,
        write,
        snapshot,
        &matching_hooks_and_initializers.matched_hooks,
    );
    let tree = with_resource_version(tree, write);
    let old = old.map(|old| with_resource_version(old, write));
    let (object, old_object) = match write.operation {
        Operation::Delete => (None, Some(&tree)),
        Operation::Create | Operation::Update | Operation::Connect => (Some(&tree), old.as_ref()),
    };
    inputs.load_namespace_if_selected(Phase::Validating, name, object, old_object).await?;
    let begun = Clock::now();
    let is_first_wait_of_attempt = hook_session.is_none();
    let hook_session = hook_session.get_or_insert_with(|| new_hook_session(ctx));
    let request = inputs.new_hook_request(name, object, old_object);
    let object_bytes =
        object.map_or(0, estimate_json_bytes) + old_object.map_or(0, estimate_json_bytes);
    let wait = WebhookWait { n_object_bytes: object_bytes, is_first_wait_of_attempt };
    let result = ctx.wait_for_admission_webhooks(wait, hook_session.validate(&request)).await?;
    let metrics = &ctx.server.admission_metrics;
    let (took, is_refused) = (begun.elapsed(), result.is_err());
    let plugin = Phase::Validating.plugin_name();
    metrics.record_controller_duration(
        plugin,
        Phase::Validating,
        write.operation,
        took,
        is_refused,
    );
    result.map_err(IntoStatus::into_status)
}

fn new_hook_session(ctx: &RequestContext<'_>) -> HookSession {
    HookSession::new(ctx.deadline).with_call_duration_max(ctx.server.hook_call_time_max)
}

/// An object as clients read it: with the resourceVersion that it has in the store.
fn with_resource_version(tree: &Tree, write: &WriteRequest) -> Tree {
    VersionedObject { object_tree: tree.clone(), revision: write.stored_revision }
        .into_tree_with_resource_version()
}

/// The values that a [`HookRequest`] borrows.
struct HookRequestInputs<'q> {
    ctx: &'q RequestContext<'q>,
    write: &'q WriteRequest,
    admission_snapshot: &'q AdmissionSnapshot,
    matched_hooks: &'q MatchedHooks,
    equivalent_resources: Vec<EquivalentResource<'q>>,
    object_converter: HookObjectConverter<'q>,
    metrics: &'q AdmissionMetrics,
    /// Decides `authorizer` checks of match conditions.
    match_condition_authorizer: ChainAuthorizer,
    /// The namespace, if a hook selects by its labels.
    namespace: Option<Namespace>,
}

impl<'q> HookRequestInputs<'q> {
    fn new(
        ctx: &'q RequestContext<'q>,
        write: &'q WriteRequest,
        snapshot: &'q AdmissionSnapshot,
        matched_hooks: &'q MatchedHooks,
    ) -> Self {
        let registry = &snapshot.cluster_snapshot.resource_registry;
        Self {
            ctx,
            write,
            admission_snapshot: snapshot,
            matched_hooks,
            equivalent_resources: equivalent_resources(registry, ctx.resource, &write.subresource),
            object_converter: HookObjectConverter {
                resource_registry: registry,
                operation: write.operation,
                resource: ctx.resource,
                subresource: &write.subresource,
                user: ctx.authorization_proof.user(),
                old_object: None,
            },
            metrics: ctx.server.admission_metrics.as_ref(),
            match_condition_authorizer: ChainAuthorizer(newest_authorizer_chain(ctx)),
            namespace: None,
        }
    }

    fn admission_attributes<'a>(&'a self, name: &'a str) -> Attributes<'a> {
        self.write.admission_attributes(self.ctx, name, &self.equivalent_resources)
    }

    fn new_hook_request<'a>(
        &'a self,
        name: &'a str,
        object: Option<&'a Tree>,
        old_object: Option<&'a Tree>,
    ) -> HookRequest<'a> {
        HookRequest {
            attributes: Attributes { object, old_object, ..self.admission_attributes(name) },
            matched_hooks: self.matched_hooks,
            hook_connections: &self.admission_snapshot.configured_hooks.hook_connections,
            namespace: self.namespace.as_ref().map(|namespace| namespace.name_and_labels.as_ref()),
            authorizer: Some(&self.match_condition_authorizer),
            object_converter: &self.object_converter,
            hook_observer: self.metrics,
            long_computation_flag: self.ctx.seat.map(|seat| &seat.long_computation_flag),
        }
    }

    /// Looks up the namespace if a hook of the phase selects by its labels.
    async fn load_namespace_if_selected(
        &mut self,
        phase: Phase,
        name: &str,
        object: Option<&Tree>,
        old_object: Option<&Tree>,
    ) -> Result<(), Status> {
        let namespace = {
            let request = self.new_hook_request(name, object, old_object);
            request.needs_stored_namespace(phase).then(|| request.attributes.namespace.to_owned())
        };
        if let Some(namespace) = namespace {
            self.namespace = find_namespace(self.ctx, &namespace).await?;
        }
        Ok(())
    }
}
