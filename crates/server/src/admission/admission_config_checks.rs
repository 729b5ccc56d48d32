//! The checks of an admission configuration that is written: doubtful settings, and contradictions to the
//! other configurations.

use admission::{Configuration, ConfigurationKind};
use api_object::{Status, Tree};
use field_errors::{FieldErrors, FieldPath};
use store::{At, ExpectedKeyState, ListRequest};

use super::admission_config_revision::{
    AdmissionConfigRevisionError, admission_config_revision_key,
};
use crate::rest::RequestContext;

/// The maximum memory of the regular expressions of all configurations together. It equals the limit for one
/// configuration. A typical regular expression takes tens of kilobytes.
const PATTERN_BYTES_MAX: usize = 80 << 20;

/// Checks an admission configuration, which is valid by itself; other objects pass.
///
/// 1. Initializers must not wait for each other, those of other configurations included. Only a write that
///    changes the initializers is refused for that, so that a cycle can be labelled and deleted.
/// 2. The regular expressions of all configurations together take a limited amount of memory. Only a write that changes the
///    hooks is refused for that.
/// 3. Settings that are accepted but doubtful become warnings.
///
/// Returns the config revision at which the other configurations were read, if they were. The transaction
/// requires that revision, so that the check still holds when the write happens.
///
/// # Errors
/// 422 if initializers wait for each other or regular expressions take too much memory; the error of a read of the store.
pub(super) async fn check_admission_configuration(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: Option<&Tree>,
    warnings: &mut Vec<String>,
) -> Result<Option<ExpectedKeyState>, Status> {
    let Some(kind) = api_resources::configuration_kind(ctx.resource) else { return Ok(None) };
    let mut found = admission::configuration_warnings(kind, new, old);
    let policy = ctx.server.hook_address_policy;
    let refusal = |address| policy.check_address(address).err().map(|refused| refused.to_string());
    found.extend(admission::refused_address_warnings(kind, new, &refusal));
    let is_changed = old.is_none_or(|old| api_resources::is_spec_changed(ctx.resource, new, old));
    let mut checked_config_revision = None;
    if kind == ConfigurationKind::Initializer && is_changed {
        let (config_revision, stored) = read_stored_admission_configurations(ctx).await?;
        checked_config_revision = Some(config_revision);
        let stored: Vec<&Tree> = stored.iter().collect();
        let errors = admission::initializer_ordering_errors(new, &stored);
        if !errors.is_empty() {
            return Err(Status::invalid_object(&ctx.group_kind(), api_object::name(new), &errors));
        }
        found.extend(admission::initializer_ordering_warnings(new, &stored));
    }
    if is_changed {
        let config_revision = check_hook_regex_memory(ctx, kind, new).await?;
        // Both checks may return a revision. The first one was read earlier, so it covers more concurrent writes.
        checked_config_revision = checked_config_revision.or(config_revision);
    }
    warnings.extend(found.iter().map(ToString::to_string));
    Ok(checked_config_revision)
}

/// Checks the memory of all regular expressions together. Returns the config revision of the snapshot that the
/// check used: the write succeeds only at that revision, so the second of two concurrent writes is checked again.
/// A configuration without regular expressions is not checked, and depends on no revision.
///
/// The snapshot is as new as the config revision in the store; with an older one every attempt would fail.
async fn check_hook_regex_memory(
    ctx: &RequestContext<'_>,
    kind: ConfigurationKind,
    new: &Tree,
) -> Result<Option<ExpectedKeyState>, Status> {
    let n_bytes = Configuration::compile_configuration(kind, new).compiled_regex_bytes();
    if n_bytes == 0 {
        return Ok(None);
    }
    let newest = ctx.server.read_admission_config_revision().await?;
    let caught_up = ctx.server.snapshot_cache.wait_for_revision(newest);
    if tokio::time::timeout_at(ctx.deadline, caught_up).await.is_err() {
        return Err(Status::timeout());
    }
    let snapshot = ctx.server.snapshot_cache.snapshot();
    let n_others = snapshot.configured_hooks.regex_bytes_except(kind, api_object::name(new));
    if n_bytes.saturating_add(n_others) <= PATTERN_BYTES_MAX {
        return Ok(Some(
            snapshot
                .admission_config_revision
                .map_or(ExpectedKeyState::Absent, ExpectedKeyState::At),
        ));
    }
    let why = format!(
        "the regular expressions of its match conditions take {n_bytes} bytes of memory, those of other \
         configurations {n_others}, and all together may take {PATTERN_BYTES_MAX}"
    );
    let mut errors = FieldErrors::new();
    errors.push(FieldPath::root("webhooks").forbidden(&why));
    Err(Status::invalid_object(&ctx.group_kind(), api_object::name(new), &errors))
}

/// Reads all stored objects of the resource, and before them the config revision. Objects that cannot be
/// decoded are left out, as they are when writes are admitted.
async fn read_stored_admission_configurations(
    ctx: &RequestContext<'_>,
) -> Result<(ExpectedKeyState, Vec<Tree>), Status> {
    let key = admission_config_revision_key(&ctx.server.store_key_prefix)
        .map_err(AdmissionConfigRevisionError::from)?;
    let got = ctx.time_store_request("get", ctx.server.store.get(&key, At::Newest)).await;
    let entry = got.map_err(|error| ctx.store_read_error_status("list", &error))?.entry;
    let config_revision =
        entry.map_or(ExpectedKeyState::Absent, |entry| ExpectedKeyState::At(entry.mod_rev));
    let prefix = ctx.list_key_prefix()?;
    let list = ctx.server.store.list(&prefix, ListRequest::default());
    let page = ctx.time_store_request("list", list).await;
    let page = page.map_err(|error| ctx.store_read_error_status("list", &error))?;
    let trees = page.items.iter().filter_map(|item| ctx.decode_entry(&item.entry).ok()).collect();
    Ok((config_revision, trees))
}
