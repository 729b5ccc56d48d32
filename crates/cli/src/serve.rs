//! `portcullis serve`: the API server.

mod admission_flags;
mod audit_setup;
mod authentication_setup;
mod authorizer_setup;
mod data_directory;
mod flag_values;
mod flags;
mod logging_observer;
mod open_store;

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
    AdmissionOptions, ApiSettings, CaFiles, Log, LogFormat, LogLevel, Server, ServerOptions,
};
use store::Store;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use flags::Args;

use crate::authorization::node_rules;
use crate::exit::Exit;
use admission_flags::StoreSharing;
use authorizer_setup::AuthorizerSetup;
use data_directory::DataDirectory;
use flags::{LoggingFormat, StoreKind};

/// Interval at which the server reads certificate and CA files again. It stops trusting a removed CA
/// within ten seconds.
const RELOAD_EVERY: Duration = Duration::from_secs(5);
/// Interval at which the server checks whether a certificate that it generated expires soon.
const RENEW_EVERY: Duration = Duration::from_secs(60 * 60);
/// Interval of bookmarks on an idle watch. Clients expect one per minute.
const BOOKMARK_EVERY: Duration = Duration::from_secs(50);

/// Stack size of each thread. Functions recurse as deep as objects are nested, and debug builds need
/// more. It reserves address space, not memory.
const STACK_BYTES: usize = 8 << 20;

/// Serves until SIGINT or SIGTERM.
///
/// # Errors
/// Fails if a message can not be written.
pub(crate) fn run(
    args: &Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    if let Err(failure) = args.admission.check_conflicts() {
        return failure.write_to(err, colour);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            writeln!(err, "error: can not start the async runtime: {error}")?;
            return Ok(Exit::Unreadable);
        }
    };
    let log = Log { format: log_format(args), level: log_level(args.requests.verbosity) };
    let authorizers = {
        let _guard = runtime.enter();
        AuthorizerSetup::load(args, log)
    };
    let authorizers = match authorizers {
        Ok(authorizers) => authorizers,
        Err(failure) => return failure.write_to(err, colour),
    };
    let access = match args.admission.load_hook_credentials(log) {
        Ok(access) => access,
        Err(failure) => return failure.write_to(err, colour),
    };
    match runtime.block_on(start_and_serve(args, authorizers, access, log, out)) {
        Ok(()) => Ok(Exit::Clean),
        Err(error) => {
            writeln!(err, "error: {error:#}")?;
            Ok(Exit::Unreadable)
        }
    }
}

/// The policy of the node authorizer before it knows any object.
fn node_policy() -> anyhow::Result<authz_node::Snapshot> {
    let defaults = manifests::rbac::bootstrap_policy()?;
    let rules = Arc::new(node_rules(&defaults));
    Ok(authz_node::Snapshot { node_rules: rules, ..authz_node::Snapshot::default() })
}

async fn start_and_serve(
    args: &Args,
    authorizers: AuthorizerSetup,
    access: ServiceCredentialsTable,
    log: Log,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let started = Instant::now();
    authorizers.log_warnings(log);
    args.admission.log_warnings(log);
    let is_etcd = match args.store.store {
        Some(kind) => kind == StoreKind::Etcd,
        None => !args.store.etcd_servers.is_empty(),
    };
    open_store::check_store_flags(&args.store, is_etcd)?;
    // The server locks the directory before it writes, and a failed start leaves no files behind.
    let mut directory = DataDirectory::claim(&args.store.data_dir, !is_etcd)?;
    let pki_options = pki_options(args);
    let pki = https_server::prepare_pki_files(&pki_options)?;
    let certificate = Arc::new(ReloadingCertificate::load(pki.serving_certificate.clone())?);
    let tls = Arc::new(https_server::tls_server_config(Arc::clone(&certificate))?);
    let address = SocketAddr::new(args.listen.bind_address, args.listen.secure_port);
    let listener = Listener::bind(address, tls)?;
    let address = listener.address();
    let advertised =
        SocketAddr::new(args.listen.advertise_address.unwrap_or(address.ip()), address.port());
    let reloading = certificate.keep_reloading(RELOAD_EVERY, move |result| match result {
        Ok(()) => log.notice("serving certificate reloaded", &[]),
        Err(error) => log.error("can not reload the serving certificate", &[("why", error)]),
    });
    tokio::spawn(reloading);
    if let Some(file) = &args.audit.audit_log_path {
        directory.remove_on_failure(file);
    }
    let sharing = if is_etcd { StoreSharing::Shared } else { StoreSharing::Exclusive };
    let options = ServerOptions {
        api_settings: ApiSettings {
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
        authorizer_slots: Arc::clone(&authorizers.generation.slots),
        authorization_status: authorizers.status_reader(),
        service_directory: Arc::clone(&authorizers.service_directory),
        metrics_registry: authorizers.metrics_registry.clone(),
        authorization_metrics: Arc::clone(&authorizers.metrics),
        admission: AdmissionOptions {
            connect_timeout: args.chain.webhook_connect_timeout,
            hook_addresses: args.chain.webhook_addresses(args.listen.bind_address),
            ..args.admission.admission_options(sharing, access)
        },
        node_policy: node_policy()?,
        authentication: authentication_setup::authentication_options(
            &args.authentication,
            authorizers.disables_anonymous(),
            &pki,
            &log,
        )?,
        token_issuer: authentication_setup::token_issuer(&args.authentication, &pki)?,
        ca_files: CaFiles {
            client_ca: Some(pki.client_ca.clone()),
            requestheader_client_ca: args.authentication.requestheader_client_ca_file.clone(),
            reload_interval: RELOAD_EVERY,
        },
        auditor: audit_setup::build_auditor(&args.audit, &log)?,
        mutating_requests_max: args.requests.max_mutating_requests_inflight,
        read_only_requests_max: args.requests.max_requests_inflight,
        watches_max: args.requests.max_watches,
        connection_limits: Limits::default(),
        log,
    };
    let authorizer_names = authorizers.describe_authorizers();
    let mut banner =
        Banner { address, advertised, authorizer_names, pki, pki_options, directory, started };
    let (store, store_name): (Arc<dyn Store>, _) = match is_etcd {
        true => {
            let (store, store_name) = open_store::open_etcd(&args.store).await?;
            (Arc::new(store), store_name)
        }
        false => {
            let directory = banner.directory.take_store()?;
            let (store, store_name) = open_store::open_embedded(&args.store, directory)?;
            (Arc::new(store), store_name)
        }
    };
    serve_until_signal(store, &store_name, listener, options, authorizers, banner, args, out).await
}

/// The values that the start message and the kubeconfig need.
struct Banner {
    address: SocketAddr,
    advertised: SocketAddr,
    authorizer_names: String,
    pki: PkiFiles,
    pki_options: PkiOptions,
    directory: DataDirectory,
    started: Instant,
}

async fn serve_until_signal(
    store: Arc<dyn Store>,
    store_name: &str,
    listener: Listener,
    options: ServerOptions,
    authorizers: AuthorizerSetup,
    mut banner: Banner,
    args: &Args,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("can not handle signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("can not handle signals")?;
    let log = options.log;
    let server = Server::start(store, listener, options).await?;
    authorizers.start_reloading(server.authorizer_replacer(), log);
    let kubeconfig = https_server::write_kubeconfig(&banner.pki, banner.advertised)?;
    banner.directory.keep_files();
    tokio::spawn(keep_renewing(banner.pki_options.clone(), banner.advertised, log));
    banner.print(store_name, kubeconfig.as_deref(), out)?;
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
    fn print(
        &self,
        store_name: &str,
        kubeconfig: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let ready = self.started.elapsed().as_millis();
        writeln!(
            out,
            "serving https://{} from {store_name}, authorization {}, ready in {ready} ms",
            self.address, self.authorizer_names
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

/// Renews generated certificates and the kubeconfig that contains them. The listener serves a renewed
/// certificate after it reads the file again.
async fn keep_renewing(options: PkiOptions, advertised: SocketAddr, log: Log) {
    https_server::renew_periodically(options, RENEW_EVERY, SystemTime::now, |renewed| {
        let written = renewed.map(|pki| (pki, https_server::write_kubeconfig(pki, advertised)));
        match written {
            Ok((pki, Ok(_))) => {
                for path in &pki.written_files {
                    log.notice("certificate renewed", &[("file", &path.display())]);
                }
            }
            Ok((_, Err(error))) => {
                log.error("can not renew the kubeconfig", &[("why", &error)]);
            }
            Err(error) => {
                let message =
                    "can not renew a certificate; clients will refuse it after it expires";
                log.error(message, &[("why", error)]);
            }
        }
    })
    .await;
}

fn log_format(args: &Args) -> LogFormat {
    match args.requests.logging_format {
        LoggingFormat::Text => LogFormat::Text,
        LoggingFormat::Json => LogFormat::Json,
    }
}

fn log_level(verbosity: u8) -> LogLevel {
    match verbosity {
        0 => LogLevel::Warn,
        1 => LogLevel::Notice,
        2 | 3 => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

/// Reads a text file that a flag names.
fn read_text_file(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("can not read `{}`", path.display()))
}
