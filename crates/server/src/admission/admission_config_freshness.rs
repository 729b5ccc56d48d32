//! Finds the admission configuration that a write is admitted by, and whether it is current.
//!
//! `docs/admission-freshness.md` states the protocol. In short: a write that no hook and no initializer
//! matches assumes that the local configuration is current, and its transaction verifies that. Every other
//! write first confirms with the store that the local configuration is current.

use std::sync::Arc;

use admission::{
    Attributes, GroupVersionKind, InitializersOnCreate, MatchedHooks, Operation,
    decide_initializers_on_create,
};
use admission_hooks::Phase;
use api_object::{Status, Tree};
use api_resources::{Resource, equivalent_resources};
use store::{ExpectedKeyState, Revision};
use tokio::time::Instant;

use super::configured_hooks::ConfiguredHooks;
use super::freshness_barrier::{AdmissionConfigSyncMode, AdmissionConfigSyncOptions};
use super::freshness_error::{FreshnessError, admission_config_not_fresh_status};
use super::{WriteAttempt, WriteRequest};
use crate::cluster_snapshot::ClusterSnapshot;
use crate::rest::RequestContext;
use crate::server_state::ServerState;

/// One state of the admission configuration. Both phases of an attempt use the same one.
#[derive(Clone)]
pub(crate) struct AdmissionSnapshot {
    pub(crate) cluster_snapshot: Arc<ClusterSnapshot>,
    /// The hooks and initializers in force.
    pub(crate) configured_hooks: ConfiguredHooks,
    /// Every configuration up to this revision is contained.
    pub(crate) revision: Revision,
}

impl AdmissionSnapshot {
    /// The value of the config revision key in this snapshot.
    pub(crate) fn admission_config_revision(&self) -> ExpectedKeyState {
        self.cluster_snapshot
            .admission_config_revision
            .map_or(ExpectedKeyState::Absent, ExpectedKeyState::At)
    }
}

/// The configuration that admits a write, and whether it is known to be current.
pub(crate) enum AdmissionConfigFreshness {
    /// No configuration applies to the write.
    Exempt,
    /// The store confirmed, after the request arrived, that the snapshot is current.
    Confirmed(AdmissionSnapshot),
    /// No hook and no initializer of the local snapshot matches. The transaction of the write must verify
    /// that the config revision key is unchanged.
    Assumed(AdmissionSnapshot),
}

impl AdmissionConfigFreshness {
    pub(crate) fn admission_snapshot(&self) -> Option<&AdmissionSnapshot> {
        match self {
            Self::Exempt => None,
            Self::Confirmed(snapshot) | Self::Assumed(snapshot) => Some(snapshot),
        }
    }

    /// Marks the freshness as confirmed after a transaction verified the config revision key.
    pub(super) fn into_confirmed_freshness(self) -> Self {
        match self {
            Self::Assumed(snapshot) => Self::Confirmed(snapshot),
            other @ (Self::Exempt | Self::Confirmed(_)) => other,
        }
    }
}

/// How an attempt may establish its freshness.
#[derive(Clone)]
pub(crate) enum AdmissionFreshnessRequirement {
    /// The attempt may assume that the local configuration is current.
    MayAssume,
    /// The attempt has to confirm the configuration with the store.
    MustConfirm,
    /// An earlier attempt of the same request confirmed this snapshot.
    Reuse(AdmissionSnapshot),
}

/// The parts of the configuration whose rules match a write.
pub(crate) struct MatchingHooksAndInitializers {
    pub(super) matched_hooks: MatchedHooks,
    /// The decision about the initializers of a new object.
    pub(super) initializers_on_create: InitializersOnCreate,
}

impl Default for MatchingHooksAndInitializers {
    fn default() -> Self {
        Self {
            matched_hooks: MatchedHooks::default(),
            initializers_on_create: InitializersOnCreate::Initialized,
        }
    }
}

impl MatchingHooksAndInitializers {
    /// Matches the rules of all hooks and initializers against a write.
    ///
    /// The result holds for the whole attempt. Rules match on the operation, the resource, the subresource and the
    /// scope, which no mutating hook can change. The decision about client-supplied initializers is made before
    /// hooks run.
    fn find_matching_hooks_and_initializers(
        ctx: &RequestContext<'_>,
        write: &WriteRequest,
        tree: &Tree,
        snapshot: &AdmissionSnapshot,
    ) -> Self {
        let name = api_object::name(tree);
        let hooks = &snapshot.configured_hooks.hook_index;
        let has_hooks = !hooks.mutating_hooks().hooks().is_empty()
            || !hooks.validating_hooks().hooks().is_empty();
        let matched_hooks = match has_hooks {
            false => MatchedHooks::default(),
            true => {
                let registry = &snapshot.cluster_snapshot.resource_registry;
                let equivalents = equivalent_resources(registry, ctx.resource, &write.subresource);
                hooks.match_hooks(&write.admission_attributes(ctx, name, &equivalents))
            }
        };
        let initializers_on_create = match write.operation {
            Operation::Create => {
                let attributes = write.admission_attributes(ctx, name, &[]);
                let attributes = Attributes { object: Some(tree), ..attributes };
                decide_initializers_on_create(&ctx.server.initializer_options, &attributes, hooks)
            }
            Operation::Update | Operation::Delete | Operation::Connect => {
                InitializersOnCreate::Initialized
            }
        };
        Self { matched_hooks, initializers_on_create }
    }

    /// Takes the decision about the initializers of the new object. An attempt carries it out once.
    pub(super) fn take_initializers_on_create(&mut self) -> InitializersOnCreate {
        std::mem::replace(&mut self.initializers_on_create, InitializersOnCreate::Initialized)
    }

    fn is_empty(&self) -> bool {
        self.matched_hooks.is_empty()
            && matches!(self.initializers_on_create, InitializersOnCreate::Initialized)
    }
}

/// Finds the configuration that admits the write of an attempt, and matches it against the write.
///
/// 1. The server's own bootstrap writes, and writes of the configuration itself, are exempt.
/// 2. A retry reuses the snapshot that an earlier attempt confirmed.
/// 3. If the attempt may assume, match the local snapshot. If nothing matches, the write is assumed to be
///    admitted by the current configuration, and its transaction verifies that. A dry run has no
///    transaction, so it never assumes.
/// 4. Otherwise confirm the configuration with the store, and match again if the hooks or the served
///    versions are other ones than in step 3.
///
/// # Errors
/// 500 or 504 if the configuration cannot be confirmed.
pub(crate) async fn establish_admission_config_freshness(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    tree: &Tree,
) -> Result<(), Status> {
    if is_exempt_from_admission(ctx) {
        attempt.set_admission_config_freshness(
            AdmissionConfigFreshness::Exempt,
            MatchingHooksAndInitializers::default(),
        );
        return Ok(());
    }
    let mut matched_locally = None;
    let reused = match attempt.admission_freshness_requirement() {
        AdmissionFreshnessRequirement::Reuse(snapshot) => Some(snapshot.clone()),
        AdmissionFreshnessRequirement::MustConfirm => None,
        AdmissionFreshnessRequirement::MayAssume => {
            let local =
                if write.is_dry_run { None } else { ctx.server.assume_admission_config_current() };
            if let Some(local) = local {
                let matches = MatchingHooksAndInitializers::find_matching_hooks_and_initializers(
                    ctx, write, tree, &local,
                );
                if matches.is_empty() {
                    attempt.set_admission_config_freshness(
                        AdmissionConfigFreshness::Assumed(local),
                        matches,
                    );
                    return Ok(());
                }
                matched_locally = Some((local, matches));
            }
            None
        }
    };
    let snapshot = match reused {
        Some(snapshot) => snapshot,
        None => {
            let begun = std::time::Instant::now();
            let confirmed = confirm_admission_config_for_write(ctx, write.operation).await;
            confirmed.inspect_err(|_| {
                let (metrics, took) = (&ctx.server.admission_metrics, begun.elapsed());
                metrics.record_phase_duration(Phase::Mutating, write.operation, took, true);
            })?
        }
    };
    let matches = match matched_locally {
        Some((local, matches)) if is_same_admission_configuration(&local, &snapshot) => matches,
        Some(_) | None => MatchingHooksAndInitializers::find_matching_hooks_and_initializers(
            ctx, write, tree, &snapshot,
        ),
    };
    attempt.set_admission_config_freshness(AdmissionConfigFreshness::Confirmed(snapshot), matches);
    Ok(())
}

fn is_same_admission_configuration(one: &AdmissionSnapshot, other: &AdmissionSnapshot) -> bool {
    Arc::ptr_eq(&one.configured_hooks.hook_index, &other.configured_hooks.hook_index)
        && Arc::ptr_eq(
            &one.cluster_snapshot.resource_registry,
            &other.cluster_snapshot.resource_registry,
        )
}

/// Confirms the configuration for a request, or returns its refusal.
pub(super) async fn confirm_admission_config_for_write(
    ctx: &RequestContext<'_>,
    operation: Operation,
) -> Result<AdmissionSnapshot, Status> {
    ctx.server.confirm_admission_config_current(ctx.deadline).await.map_err(|not_fresh| {
        if let Some(reason) = not_fresh.refusal_metric_reason() {
            ctx.server.admission_metrics.count_stale_config_refusal(reason);
        }
        let has_initializers = ctx.server.initializer_options.are_initializers_enabled;
        admission_config_not_fresh_status(&not_fresh, operation, ctx.resource, has_initializers)
    })
}

/// Confirms the configuration before a request that consists of several writes, and returns its revision;
/// `None` for requests that are exempt.
///
/// # Errors
/// 500 or 504 if the configuration cannot be confirmed.
pub(crate) async fn confirm_admission_configuration(
    ctx: &RequestContext<'_>,
    operation: Operation,
) -> Result<Option<Revision>, Status> {
    if is_exempt_from_admission(ctx) {
        return Ok(None);
    }
    Ok(Some(confirm_admission_config_for_write(ctx, operation).await?.revision))
}

fn is_exempt_from_admission(ctx: &RequestContext<'_>) -> bool {
    ctx.is_exempt_from_hooks || is_admission_configuration(ctx.resource)
}

/// Whether writes of a resource are exempt because the resource is the configuration itself: an
/// administrator can always repair it.
pub(crate) fn is_admission_configuration(resource: &Resource) -> bool {
    admission::is_admission_configuration(&GroupVersionKind {
        group: &resource.group,
        version: &resource.version,
        kind: &resource.kind,
    })
}

impl ServerState {
    /// Returns a configuration that contains everything that was acknowledged before this call.
    ///
    /// # Errors
    /// The store does not confirm that in time.
    pub(crate) async fn confirm_admission_config_current(
        &self,
        deadline: Instant,
    ) -> Result<AdmissionSnapshot, FreshnessError> {
        let required = self.admission_freshness_barrier.required_config_revision(deadline).await?;
        let AdmissionConfigSyncOptions {
            admission_config_sync_mode: sync_mode,
            is_only_server,
            ..
        } = self.admission_freshness_barrier.options;
        if required.is_none() && sync_mode == AdmissionConfigSyncMode::Barrier && !is_only_server {
            self.admission_metrics.count_unconfirmed_config_admission();
        }
        if let Some(required) = required {
            let limit = Instant::now()
                + self.admission_freshness_barrier.options.admission_config_staleness_max;
            let caught_up = self.snapshot_cache.wait_for_revision(required.revision);
            if tokio::time::timeout_at(deadline.min(limit), caught_up).await.is_err() {
                return Err(match deadline < limit {
                    true => FreshnessError::DeadlineExceeded,
                    false => FreshnessError::Behind,
                });
            }
            self.admission_freshness_barrier.record_config_confirmation(required);
        }
        let cluster = self.snapshot_cache.snapshot();
        let (hooks, revision) = match sync_mode {
            AdmissionConfigSyncMode::Barrier => {
                (cluster.configured_hooks.clone(), cluster.revision)
            }
            AdmissionConfigSyncMode::Poll => {
                self.polled_admission_config.load().hooks_and_revision()
            }
        };
        Ok(AdmissionSnapshot { cluster_snapshot: cluster, configured_hooks: hooks, revision })
    }

    /// Returns the local configuration for a write whose transaction verifies it. Returns `None` if confirming
    /// needs no read, or if the last confirmation is too old to expect that the transaction succeeds.
    fn assume_admission_config_current(&self) -> Option<AdmissionSnapshot> {
        let AdmissionConfigSyncOptions {
            admission_config_sync_mode: sync_mode,
            is_only_server,
            ..
        } = self.admission_freshness_barrier.options;
        if sync_mode != AdmissionConfigSyncMode::Barrier
            || is_only_server
            || !self.admission_freshness_barrier.is_config_recently_confirmed()
        {
            return None;
        }
        let cluster = self.snapshot_cache.snapshot();
        let (hooks, revision) = (cluster.configured_hooks.clone(), cluster.revision);
        Some(AdmissionSnapshot { cluster_snapshot: cluster, configured_hooks: hooks, revision })
    }
}
