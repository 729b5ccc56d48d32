//! Opening a store.

use anyhow::Context;
use store::Prefix;
use store_embedded::Embedded;
use store_etcd::{Etcd, IdentityFiles};

use super::flags::StoreFlags;

/// The store in the data directory, and its name for people.
///
/// # Errors
/// Another process has it, or its files can not be used.
pub(super) fn embedded(flags: &StoreFlags) -> anyhow::Result<(Embedded, String)> {
    anyhow::ensure!(
        flags.etcd_servers.is_empty(),
        "--etcd-servers goes with --store etcd, not with --store embedded"
    );
    let directory = flags.data_dir.join("store");
    let options =
        store_embedded::Options { sync: flags.store_sync, ..store_embedded::Options::default() };
    let store = Embedded::open(&directory, options)
        .with_context(|| format!("can not open the store in `{}`", directory.display()))?;
    Ok((store, directory.display().to_string()))
}

/// The store on an etcd cluster, and its name for people.
///
/// # Errors
/// No member can be reached, or the prefix belongs to another server or to a later version.
pub(super) async fn etcd(flags: &StoreFlags) -> anyhow::Result<(Etcd, String)> {
    anyhow::ensure!(!flags.etcd_servers.is_empty(), "--store etcd needs --etcd-servers");
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
    let store = Etcd::open(options).await.with_context(|| format!("can not use {place}"))?;
    store.check_prefix().await.with_context(|| format!("can not use {place}"))?;
    store.check_format().await.with_context(|| format!("can not use {place}"))?;
    Ok((store, place))
}
