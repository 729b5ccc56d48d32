//! The checks of an admission configuration that is written: doubtful settings, and contradictions to the
//! other configurations.

use admission::ConfigurationKind;
use api_object::{Status, Tree};
use store::{At, Expect, ListRequest};

use super::config_revision::{ConfigRevisionError, config_revision_key};
use crate::rest::RequestContext;

/// Checks an admission configuration, which is valid by itself; other objects pass.
///
/// 1. Initializers must not wait for each other, those of other configurations included. Only a write that
///    changes the initializers is refused for that, so that a cycle can be labelled and deleted.
/// 2. Settings that are accepted but doubtful become warnings.
///
/// Returns the config revision at which the other configurations were read, if they were. The transaction
/// requires that revision, so that the check still holds when the write happens.
///
/// # Errors
/// 422 if initializers wait for each other; the error of a read of the store.
pub(super) async fn check_configuration(
    ctx: &RequestContext<'_>,
    new: &Tree,
    old: Option<&Tree>,
    warnings: &mut Vec<String>,
) -> Result<Option<Expect>, Status> {
    let Some(kind) = api_resources::configuration_kind(ctx.resource) else { return Ok(None) };
    let mut found = admission::configuration_warnings(kind, new, old);
    let policy = ctx.server.hook_addresses;
    let refusal = |address| policy.check(address).err().map(|refused| refused.to_string());
    found.extend(admission::refused_address_warnings(kind, new, &refusal));
    let is_changed =
        old.is_none_or(|old| api_resources::is_content_changed(ctx.resource, new, old));
    let mut checked_config_revision = None;
    if kind == ConfigurationKind::Initializer && is_changed {
        let (config_revision, stored) = read_stored_configurations(ctx).await?;
        checked_config_revision = Some(config_revision);
        let stored: Vec<&Tree> = stored.iter().collect();
        let errors = admission::initializer_ordering_errors(new, &stored);
        if !errors.is_empty() {
            return Err(Status::invalid(&ctx.group_kind(), api_object::name(new), &errors));
        }
        found.extend(admission::initializer_ordering_warnings(new, &stored));
    }
    warnings.extend(found.iter().map(ToString::to_string));
    Ok(checked_config_revision)
}

/// Reads all stored objects of the resource, and before them the config revision. Objects that can not be
/// decoded are left out, as they are when writes are admitted.
async fn read_stored_configurations(
    ctx: &RequestContext<'_>,
) -> Result<(Expect, Vec<Tree>), Status> {
    let key = config_revision_key(&ctx.server.prefix).map_err(ConfigRevisionError::from)?;
    let got = ctx.time_store_request("get", ctx.server.store.get(&key, At::Newest)).await;
    let entry = got.map_err(|error| ctx.read_failure_status("list", &error))?.entry;
    let config_revision = entry.map_or(Expect::Absent, |entry| Expect::At(entry.mod_rev));
    let prefix = ctx.key_prefix()?;
    let list = ctx.server.store.list(&prefix, ListRequest::default());
    let page = ctx.time_store_request("list", list).await;
    let page = page.map_err(|error| ctx.read_failure_status("list", &error))?;
    let trees = page.items.iter().filter_map(|item| ctx.decode_entry(&item.entry).ok()).collect();
    Ok((config_revision, trees))
}
