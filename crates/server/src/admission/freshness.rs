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
use store::{Expect, Revision};
use tokio::time::Instant;

use super::configured_hooks::ConfiguredHooks;
use super::freshness_barrier::{ConfigSyncMode, ConfigSyncOptions};
use super::freshness_error::{FreshnessError, not_fresh_status};
use super::{WriteAttempt, WriteRequest};
use crate::cluster_snapshot::ClusterSnapshot;
use crate::rest::RequestContext;
use crate::server_state::ServerState;

/// One state of the admission configuration. A write is admitted by one of them in both phases.
#[derive(Clone)]
pub(crate) struct AdmissionSnapshot {
    pub(crate) cluster_snapshot: Arc<ClusterSnapshot>,
    /// The hooks and initializers in force.
    pub(crate) hooks: ConfiguredHooks,
    /// Every configuration up to this revision is contained.
    pub(crate) revision: Revision,
}

impl AdmissionSnapshot {
    /// The value of the config revision key in this snapshot.
    pub(crate) fn config_revision(&self) -> Expect {
        self.cluster_snapshot.config_revision.map_or(Expect::Absent, Expect::At)
    }
}

/// The configuration that admits a write, and whether it is known to be current.
pub(crate) enum Freshness {
    /// No configuration applies to the write.
    Exempt,
    /// The store confirmed, after the request arrived, that the snapshot is current.
    Confirmed(AdmissionSnapshot),
    /// No hook and no initializer of the local snapshot matches. The transaction of the write must verify
    /// that the config revision key is unchanged.
    Assumed(AdmissionSnapshot),
}

impl Freshness {
    pub(crate) fn snapshot(&self) -> Option<&AdmissionSnapshot> {
        match self {
            Self::Exempt => None,
            Self::Confirmed(snapshot) | Self::Assumed(snapshot) => Some(snapshot),
        }
    }

    /// A transaction found the config revision key as the snapshot has it.
    pub(super) fn into_confirmed(self) -> Self {
        match self {
            Self::Assumed(snapshot) => Self::Confirmed(snapshot),
            other @ (Self::Exempt | Self::Confirmed(_)) => other,
        }
    }
}

/// How an attempt may establish its freshness.
#[derive(Clone)]
pub(crate) enum ConfigurationFreshnessRequirement {
    /// The attempt may assume that the local configuration is current.
    MayAssume,
    /// The attempt has to confirm the configuration with the store.
    MustConfirm,
    /// An earlier attempt of the same request confirmed this snapshot.
    Reuse(AdmissionSnapshot),
}

/// The parts of the configuration whose rules match a write.
pub(crate) struct ConfigurationMatches {
    pub(super) hooks: MatchedHooks,
    /// The decision about the initializers of a new object.
    pub(super) create_decision: InitializersOnCreate,
}

impl Default for ConfigurationMatches {
    fn default() -> Self {
        Self { hooks: MatchedHooks::default(), create_decision: InitializersOnCreate::Initialized }
    }
}

impl ConfigurationMatches {
    /// Matches the rules of all hooks and initializers against a write.
    ///
    /// The result holds for the whole attempt. Rules match on the operation, the resource, the subresource
    /// and the scope, which no mutating hook can change. The initializers of the client are decided
    /// about before hooks run.
    fn find(
        ctx: &RequestContext<'_>,
        write: &WriteRequest,
        tree: &Tree,
        snapshot: &AdmissionSnapshot,
    ) -> Self {
        let name = api_object::name(tree);
        let hooks = &snapshot.hooks.snapshot;
        let has_hooks = !hooks.mutating_hooks().hooks().is_empty()
            || !hooks.validating_hooks().hooks().is_empty();
        let matched_hooks = match has_hooks {
            false => MatchedHooks::default(),
            true => {
                let registry = &snapshot.cluster_snapshot.registry;
                let equivalents = equivalent_resources(registry, ctx.resource, &write.subresource);
                hooks.match_hooks(&write.admission_attributes(ctx, name, &equivalents))
            }
        };
        let create_decision = match write.operation {
            Operation::Create => {
                let attributes = write.admission_attributes(ctx, name, &[]);
                let attributes = Attributes { object: Some(tree), ..attributes };
                decide_initializers_on_create(&ctx.server.initializer_options, &attributes, hooks)
            }
            Operation::Update | Operation::Delete | Operation::Connect => {
                InitializersOnCreate::Initialized
            }
        };
        Self { hooks: matched_hooks, create_decision }
    }

    /// The decision about initializers, which an attempt carries out once.
    pub(super) fn take_create_decision(&mut self) -> InitializersOnCreate {
        std::mem::replace(&mut self.create_decision, InitializersOnCreate::Initialized)
    }

    fn is_empty(&self) -> bool {
        self.hooks.is_empty() && matches!(self.create_decision, InitializersOnCreate::Initialized)
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
/// 500 or 504 if the configuration can not be confirmed.
pub(crate) async fn establish_freshness(
    ctx: &RequestContext<'_>,
    attempt: &mut WriteAttempt,
    write: &WriteRequest,
    tree: &Tree,
) -> Result<(), Status> {
    if is_exempt_from_admission(ctx) {
        attempt.set_freshness(Freshness::Exempt, ConfigurationMatches::default());
        return Ok(());
    }
    let mut matched_locally = None;
    let reused = match attempt.configuration_freshness_requirement() {
        ConfigurationFreshnessRequirement::Reuse(snapshot) => Some(snapshot.clone()),
        ConfigurationFreshnessRequirement::MustConfirm => None,
        ConfigurationFreshnessRequirement::MayAssume => {
            let local = if write.is_dry_run { None } else { ctx.server.assume_current() };
            if let Some(local) = local {
                let matches = ConfigurationMatches::find(ctx, write, tree, &local);
                if matches.is_empty() {
                    attempt.set_freshness(Freshness::Assumed(local), matches);
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
            let confirmed = confirm_for_write(ctx, write.operation).await;
            confirmed.inspect_err(|_| {
                let (metrics, took) = (&ctx.server.admission_metrics, begun.elapsed());
                metrics.record_phase(Phase::Mutating, write.operation, took, true);
            })?
        }
    };
    let matches = match matched_locally {
        Some((local, matches)) if is_same_configuration(&local, &snapshot) => matches,
        Some(_) | None => ConfigurationMatches::find(ctx, write, tree, &snapshot),
    };
    attempt.set_freshness(Freshness::Confirmed(snapshot), matches);
    Ok(())
}

fn is_same_configuration(one: &AdmissionSnapshot, other: &AdmissionSnapshot) -> bool {
    Arc::ptr_eq(&one.hooks.snapshot, &other.hooks.snapshot)
        && Arc::ptr_eq(&one.cluster_snapshot.registry, &other.cluster_snapshot.registry)
}

/// Confirms the configuration for a request, or returns its refusal.
pub(super) async fn confirm_for_write(
    ctx: &RequestContext<'_>,
    operation: Operation,
) -> Result<AdmissionSnapshot, Status> {
    ctx.server.confirm_current(ctx.deadline).await.map_err(|not_fresh| {
        if let Some(reason) = not_fresh.metric_reason() {
            ctx.server.admission_metrics.count_config_refusal(reason);
        }
        let has_initializers = ctx.server.initializer_options.is_enabled;
        not_fresh_status(&not_fresh, operation, ctx.resource, has_initializers)
    })
}

/// Confirms the configuration before a request that consists of several writes, and returns its revision;
/// `None` for requests that are exempt.
///
/// # Errors
/// 500 or 504 if the configuration can not be confirmed.
pub(crate) async fn confirm_configuration(
    ctx: &RequestContext<'_>,
    operation: Operation,
) -> Result<Option<Revision>, Status> {
    if is_exempt_from_admission(ctx) {
        return Ok(None);
    }
    Ok(Some(confirm_for_write(ctx, operation).await?.revision))
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
    pub(crate) async fn confirm_current(
        &self,
        deadline: Instant,
    ) -> Result<AdmissionSnapshot, FreshnessError> {
        let required = self.barrier.required_revision(deadline).await?;
        let ConfigSyncOptions { sync_mode, is_only_server, .. } = self.barrier.options;
        if required.is_none() && sync_mode == ConfigSyncMode::Barrier && !is_only_server {
            self.admission_metrics.count_degraded_request();
        }
        if let Some(required) = required {
            let limit = Instant::now() + self.barrier.options.max_staleness;
            let caught_up = self.snapshot_cache.wait_for_revision(required.revision);
            if tokio::time::timeout_at(deadline.min(limit), caught_up).await.is_err() {
                return Err(match deadline < limit {
                    true => FreshnessError::DeadlineExceeded,
                    false => FreshnessError::Behind,
                });
            }
            self.barrier.record_confirmation(required);
        }
        let cluster = self.snapshot_cache.snapshot();
        let (hooks, revision) = match sync_mode {
            ConfigSyncMode::Barrier => (cluster.hooks.clone(), cluster.revision),
            ConfigSyncMode::Poll => self.polled_configuration.load().hooks_and_revision(),
        };
        Ok(AdmissionSnapshot { cluster_snapshot: cluster, hooks, revision })
    }

    /// Returns the local configuration for a write whose transaction verifies it; `None` if confirming costs
    /// nothing, or if the last confirmation is too old to assume that the next one succeeds.
    fn assume_current(&self) -> Option<AdmissionSnapshot> {
        let ConfigSyncOptions { sync_mode, is_only_server, .. } = self.barrier.options;
        if sync_mode != ConfigSyncMode::Barrier || is_only_server || !self.barrier.is_healthy() {
            return None;
        }
        let cluster = self.snapshot_cache.snapshot();
        let (hooks, revision) = (cluster.hooks.clone(), cluster.revision);
        Some(AdmissionSnapshot { cluster_snapshot: cluster, hooks, revision })
    }
}
