//! Opening a store.

use anyhow::Context;
use store::Prefix;
use store_embedded::{EmbeddedStore, Limits, LockedDirectory, Options, TenantOf};
use store_etcd::{EtcdStore, IdentityFiles};

use super::flags::StoreFlags;

/// Whether the flags fit the store, before anything is opened.
///
/// # Errors
/// They do not.
pub(super) fn check(flags: &StoreFlags, is_etcd: bool) -> anyhow::Result<()> {
    match is_etcd {
        true => {
            anyhow::ensure!(!flags.etcd_servers.is_empty(), "--store etcd needs --etcd-servers")
        }
        false => anyhow::ensure!(
            flags.etcd_servers.is_empty(),
            "--etcd-servers goes with --store etcd, not with --store embedded"
        ),
    }
    Ok(())
}

/// The store in a directory that is locked, and its name for people.
///
/// # Errors
/// Its files can not be used.
pub(super) fn embedded(
    flags: &StoreFlags,
    directory: LockedDirectory,
) -> anyhow::Result<(EmbeddedStore, String)> {
    let place = directory.path().display().to_string();
    let prefix = flags.etcd_prefix.clone();
    let options = Options {
        sync: flags.store_sync,
        limits: Limits {
            quota_bytes: flags.store_quota_bytes,
            history_bytes_max: flags.store_history_bytes,
            disk_free_bytes_min: flags.store_disk_free_bytes,
            ..Limits::default()
        },
        tenant_of: TenantOf::new(move |key| api_resources::tenant_of_key(&prefix, key)),
        ..Options::default()
    };
    let store = EmbeddedStore::open_locked(directory, options)
        .with_context(|| format!("can not open the store in `{place}`"))?;
    Ok((store, place))
}

/// The store on an etcd cluster, and its name for people.
///
/// # Errors
/// No member can be reached, or the prefix belongs to another server or to a later version.
pub(super) async fn etcd(flags: &StoreFlags) -> anyhow::Result<(EtcdStore, String)> {
    let prefix = Prefix::new(&format!("{}/", flags.etcd_prefix))
        .with_context(|| format!("--etcd-prefix `{}`", flags.etcd_prefix))?;
    let identity = match (&flags.etcd_certfile, &flags.etcd_keyfile) {
        (Some(cert_file), Some(key_file)) => {
            Some(IdentityFiles { cert_file: cert_file.clone(), key_file: key_file.clone() })
        }
        _ => None,
    };
    let interval = flags.etcd_compaction_interval;
    let options = store_etcd::Options {
        ca_file: flags.etcd_cafile.clone(),
        identity,
        compaction_interval: (!interval.is_zero()).then_some(interval),
        ..store_etcd::Options::new(flags.etcd_servers.clone(), prefix)
    };
    let place = format!("etcd {}", flags.etcd_servers.join(","));
    let store = EtcdStore::open(options).await.with_context(|| format!("can not use {place}"))?;
    store.check_prefix().await.with_context(|| format!("can not use {place}"))?;
    store.check_format().await.with_context(|| format!("can not use {place}"))?;
    Ok((store, place))
}
