//! Opens the embedded store or connects to etcd.

use anyhow::Context;
use store::Prefix;
use store_embedded::{EmbeddedStore, Limits, LockedDirectory, Options, TenantResolver};
use store_etcd::{ClientCertificateFiles, EtcdStore};

use super::serve_flags::{StoreFlags, StoreKind};

/// Returns the storage backend that the flags select.
///
/// # Errors
/// etcd has no URL, or the embedded store has one.
pub(super) fn choose_store_kind(flags: &StoreFlags) -> anyhow::Result<StoreKind> {
    match (flags.store_kind, flags.etcd_servers.is_empty()) {
        (Some(StoreKind::Etcd), true) => anyhow::bail!("--store etcd needs --etcd-servers"),
        (Some(StoreKind::Embedded), false) => {
            anyhow::bail!("--etcd-servers goes with --store etcd, not with --store embedded")
        }
        (Some(StoreKind::Etcd) | None, false) => Ok(StoreKind::Etcd),
        (Some(StoreKind::Embedded) | None, true) => Ok(StoreKind::Embedded),
    }
}

/// Opens the embedded store in a locked directory. Returns it with its name for messages.
///
/// # Errors
/// The files of the store cannot be read.
pub(super) fn open_embedded_store(
    flags: &StoreFlags,
    directory: LockedDirectory,
) -> anyhow::Result<(EmbeddedStore, String)> {
    let store_name = directory.path().display().to_string();
    let prefix = flags.etcd_prefix.clone();
    let options = Options {
        sync_mode: flags.store_sync,
        limits: Limits {
            quota_bytes: flags.store_quota_bytes,
            history_bytes_max: flags.store_history_bytes,
            disk_free_bytes_min: flags.store_disk_free_bytes,
            ..Limits::default()
        },
        tenant_resolver: TenantResolver::new(move |key| api_resources::tenant_of_key(&prefix, key)),
        ..Options::default()
    };
    let store = EmbeddedStore::open_locked_directory(directory, options)
        .with_context(|| format!("cannot open the store in `{store_name}`"))?;
    Ok((store, store_name))
}

/// Connects to an etcd cluster. Returns the store with its name for messages.
///
/// # Errors
/// No member can be reached, or the prefix belongs to another server or to a later version.
pub(super) async fn open_etcd_store(flags: &StoreFlags) -> anyhow::Result<(EtcdStore, String)> {
    let prefix = Prefix::new(&format!("{}/", flags.etcd_prefix))
        .with_context(|| format!("--etcd-prefix `{}`", flags.etcd_prefix))?;
    let client_certificate = match (&flags.etcd_certfile, &flags.etcd_keyfile) {
        (Some(cert_file), Some(key_file)) => Some(ClientCertificateFiles {
            cert_file: cert_file.clone(),
            key_file: key_file.clone(),
        }),
        _ => None,
    };
    let interval = flags.etcd_compaction_interval;
    let options = store_etcd::Options {
        ca_file: flags.etcd_cafile.clone(),
        client_certificate,
        compaction_interval: (!interval.is_zero()).then_some(interval),
        ..store_etcd::Options::new(flags.etcd_servers.clone(), prefix)
    };
    let store_name = format!("etcd {}", flags.etcd_servers.join(","));
    let store =
        EtcdStore::open(options).await.with_context(|| format!("cannot use {store_name}"))?;
    store.check_prefix_unused().await.with_context(|| format!("cannot use {store_name}"))?;
    store.check_format_version().await.with_context(|| format!("cannot use {store_name}"))?;
    Ok((store, store_name))
}
