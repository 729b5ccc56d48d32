//! `portcullis serve`: the API server.

mod admission;
mod auditing;
mod authentication;
mod authorizing;
mod configured_store;
mod data_directory;
mod flags;
mod logged;
mod open;

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use admission_hooks::ServiceCredentialsTable;
use anyhow::Context;
use https_server::{
    CertificateFiles, DrainPlan, Limits, Listener, OperatorFiles, PkiFiles, PkiOptions,
    ReloadingCertificate, ServerNames,
};
use server::{
    AdmissionOptions, CaFiles, Level, Log, LogFormat, RequestOptions, Server, ServerOptions,
};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use flags::Args;

use crate::authorization::node_rules;
use crate::exit::Exit;
use admission::Sharing;
use authorizing::Authorizing;
use configured_store::ConfiguredStore;
use data_directory::DataDirectory;
use flags::{LoggingFormat, StoreKind};

/// How often files of certificates and of authorities are looked at. A removed authority is gone
/// within ten seconds.
const RELOAD_EVERY: Duration = Duration::from_secs(5);
/// How often the server looks whether a certificate that it made for itself is about to expire.
const RENEW_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often an idle watch says how far it is: some time before the minute that clients count on.
const BOOKMARK_EVERY: Duration = Duration::from_secs(50);

/// Walks over objects recurse as deep as objects are nested, which takes more in a debug build. It is
/// address space, not memory.
const STACK_BYTES: usize = 8 << 20;

/// Serves until a signal comes.
///
/// # Errors
/// Fails if what happened can not be written.
pub(crate) fn run(
    args: &Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    if let Err(unusable) = args.admission.check() {
        return unusable.show(err, colour);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            writeln!(err, "error: the runtime can not start: {error}")?;
            return Ok(Exit::Unreadable);
        }
    };
    let log = Log { format: format(args), level: level(args.requests.verbosity) };
    let authorizing = {
        let _guard = runtime.enter();
        Authorizing::load(args, log)
    };
    let authorizing = match authorizing {
        Ok(authorizing) => authorizing,
        Err(unusable) => return unusable.show(err, colour),
    };
    let access = match args.admission.access(log) {
        Ok(access) => access,
        Err(unusable) => return unusable.show(err, colour),
    };
    match runtime.block_on(serve(args, authorizing, access, log, out)) {
        Ok(()) => Ok(Exit::Clean),
        Err(error) => {
            writeln!(err, "error: {error:#}")?;
            Ok(Exit::Unreadable)
        }
    }
}

/// What nodes may do from the beginning.
fn node() -> anyhow::Result<authz_node::Snapshot> {
    let defaults = manifests::rbac::bootstrap_policy()?;
    let rules = Arc::new(node_rules(&defaults));
    Ok(authz_node::Snapshot { node_rules: rules, ..authz_node::Snapshot::default() })
}

async fn serve(
    args: &Args,
    authorizing: Authorizing,
    access: ServiceCredentialsTable,
    log: Log,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let started = Instant::now();
    authorizing.warn(log);
    args.admission.warn(log);
    let is_etcd = match args.store.store {
        Some(kind) => kind == StoreKind::Etcd,
        None => !args.store.etcd_servers.is_empty(),
    };
    open::check(&args.store, is_etcd)?;
    // Nothing is written before the directory is ours, and a start that fails leaves nothing behind.
    let mut directory = DataDirectory::claim(&args.store.data_dir, !is_etcd)?;
    let pki_options = pki_options(args);
    let pki = https_server::prepare_pki_files(&pki_options)?;
    let certificate = Arc::new(ReloadingCertificate::load(pki.serving_certificate.clone())?);
    let tls = Arc::new(https_server::server_config(Arc::clone(&certificate))?);
    let address = SocketAddr::new(args.listen.bind_address, args.listen.secure_port);
    let listener = Listener::bind(address, tls)?;
    let address = listener.address();
    let advertised =
        SocketAddr::new(args.listen.advertise_address.unwrap_or(address.ip()), address.port());
    let reloading = certificate.keep_reloading(RELOAD_EVERY, move |result| match result {
        Ok(()) => log.notice("the certificate of the server was reloaded", &[]),
        Err(error) => {
            log.error("the certificate of the server can not be reloaded", &[("why", error)])
        }
    });
    tokio::spawn(reloading);
    if let Some(file) = &args.audit.audit_log_path {
        directory.expect_new(file);
    }
    let sharing = if is_etcd { Sharing::Shared } else { Sharing::Own };
    let options = ServerOptions {
        requests: RequestOptions {
            event_ttl: args.requests.event_ttl,
            has_garbage_collector: args.requests.enable_garbage_collector,
            delete_workers: args.requests.delete_collection_workers,
            service_ip_range: args.listen.service_cluster_ip_range,
            has_graceful_pods: args.requests.pod_graceful_deletion,
            refuses_unenforced: args.requests.refuse_unenforced,
            request_timeout: args.requests.request_timeout,
            write_timeout: args.admission.write_timeout_ceiling,
            watch_duration_min: Duration::from_secs(args.requests.min_request_timeout.max(1)),
            bookmark_interval: BOOKMARK_EVERY,
            reported_version: args.listen.report_version.clone(),
            advertised_address: advertised.to_string(),
        },
        prefix: args.store.etcd_prefix.clone(),
        slots: Arc::clone(&authorizing.generation.slots),
        authorization_status: authorizing.status(),
        service_directory: Arc::clone(&authorizing.directory),
        metrics_registry: authorizing.registry.clone(),
        authorization_metrics: Arc::clone(&authorizing.metrics),
        admission: AdmissionOptions {
            connect_timeout: args.chain.webhook_connect_timeout,
            hook_addresses: args.chain.webhook_addresses(args.listen.bind_address),
            ..args.admission.options(sharing, access)
        },
        node_policy: node()?,
        authentication: authentication::options(
            &args.authentication,
            authorizing.disables_anonymous_auth(),
            &pki,
            &log,
        )?,
        token_issuer: authentication::issuer(&args.authentication, &pki)?,
        ca_files: CaFiles {
            client_ca: Some(pki.client_ca.clone()),
            requestheader_client_ca: args.authentication.requestheader_client_ca_file.clone(),
            reload_interval: RELOAD_EVERY,
        },
        auditor: auditing::auditor(&args.audit, &log)?,
        mutating_requests_max: args.requests.max_mutating_requests_inflight,
        read_only_requests_max: args.requests.max_requests_inflight,
        watches_max: args.requests.max_watches,
        connection_limits: Limits::default(),
        log,
    };
    let authorizers = authorizing.names();
    let mut banner =
        Banner { address, advertised, authorizers, pki, pki_options, directory, started };
    let (store, place) = match is_etcd {
        true => {
            let (store, place) = open::etcd(&args.store).await?;
            (ConfiguredStore::Etcd(store), place)
        }
        false => {
            let (store, place) = open::embedded(&args.store, banner.directory.take_store()?)?;
            (ConfiguredStore::Embedded(store), place)
        }
    };
    serve_on(store, &place, listener, options, authorizing, banner, args, out).await
}

/// The text that is printed, and the files that are written, when the server is ready.
struct Banner {
    address: SocketAddr,
    advertised: SocketAddr,
    authorizers: String,
    pki: PkiFiles,
    pki_options: PkiOptions,
    directory: DataDirectory,
    started: Instant,
}

async fn serve_on(
    store: ConfiguredStore,
    place: &str,
    listener: Listener,
    options: ServerOptions,
    authorizing: Authorizing,
    mut banner: Banner,
    args: &Args,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("signals can not be heard")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals can not be heard")?;
    let log = options.log;
    let server = Server::start(Arc::new(store), listener, options).await?;
    authorizing.follow(server.authorizer_replacer(), log);
    let kubeconfig = https_server::write_kubeconfig(&banner.pki, banner.advertised)?;
    banner.directory.keep();
    tokio::spawn(renew_periodically(banner.pki_options.clone(), banner.advertised, log));
    banner.show(place, kubeconfig.as_deref(), out)?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    log.notice("stopping; a second signal ends the server at once", &[]);
    let plan = DrainPlan {
        delay: args.requests.shutdown_delay_duration,
        watch_grace: args.requests.shutdown_watch_termination_grace_period,
        request_timeout: args.requests.request_timeout,
    };
    tokio::select! {
        drained = server.stop(plan) => {
            log.notice("stopped", &[("how", &format_args!("{drained:?}"))]);
        }
        _ = interrupt.recv() => log.warn("ended at once", &[]),
        _ = terminate.recv() => log.warn("ended at once", &[]),
    }
    Ok(())
}

impl Banner {
    fn show(&self, place: &str, kubeconfig: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
        let ready = self.started.elapsed().as_millis();
        writeln!(
            out,
            "serving https://{} from {place}, authorization {}, ready in {ready} ms",
            self.address, self.authorizers
        )?;
        if let Some(path) = kubeconfig {
            let path = path.display();
            writeln!(out, "admin kubeconfig: {path}\n\nTry:")?;
            writeln!(out, "  kubectl --kubeconfig {path} get namespaces")?;
            writeln!(out, "  kubectl --kubeconfig {path} auth can-i --list")?;
        }
        out.flush()
    }
}

fn pki_options(args: &Args) -> PkiOptions {
    let listen = &args.listen;
    let service = listen.service_cluster_ip_range.map(|range| IpAddr::V4(range.first_ip()));
    let addresses = [Some(listen.bind_address), listen.advertise_address, service];
    let names =
        ServerNames::new(https_server::host_name().as_deref(), addresses.into_iter().flatten());
    let serving = match (&listen.tls_cert_file, &listen.tls_private_key_file) {
        (Some(certificate), Some(key)) => {
            Some(CertificateFiles { certificate: certificate.clone(), key: key.clone() })
        }
        _ => None,
    };
    let operator_files = OperatorFiles {
        serving_certificate: serving,
        client_ca: args.authentication.client_ca_file.clone(),
        service_account_key: args.authentication.service_account_signing_key_file.clone(),
    };
    let directory = args.store.data_dir.clone();
    PkiOptions { directory, names, operator_files, now: SystemTime::now() }
}

/// Renews what the server made for itself, and the kubeconfig with it. The listener shows a renewed
/// certificate when it reads its file again.
async fn renew_periodically(options: PkiOptions, advertised: SocketAddr, log: Log) {
    https_server::renew_periodically(options, RENEW_EVERY, SystemTime::now, |renewed| {
        let written = renewed.map(|pki| (pki, https_server::write_kubeconfig(pki, advertised)));
        match written {
            Ok((pki, Ok(_))) => {
                for path in &pki.written_files {
                    log.notice("a certificate was renewed", &[("file", &path.display())]);
                }
            }
            Ok((_, Err(error))) => {
                log.error("the kubeconfig can not be renewed", &[("why", &error)]);
            }
            Err(error) => {
                let message = "a certificate can not be renewed, and clients will refuse it later";
                log.error(message, &[("why", error)]);
            }
        }
    })
    .await;
}

fn format(args: &Args) -> LogFormat {
    match args.requests.logging_format {
        LoggingFormat::Text => LogFormat::Text,
        LoggingFormat::Json => LogFormat::Json,
    }
}

fn level(verbosity: u8) -> Level {
    match verbosity {
        0 => Level::Warn,
        1 => Level::Notice,
        2 | 3 => Level::Info,
        _ => Level::Debug,
    }
}

/// The text of a file that the operator named.
fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("can not read `{}`", path.display()))
}
