//! `portcullis serve`: runs the API server.
//!
//! This file wires the server: it creates every part in the order in which the parts need each other.
//! Its modules convert flags and files to values, and do not start anything that this file does not
//! mention.

mod admission_flags;
mod admission_plugin_flags;
mod audit_flags;
mod audit_setup;
mod authentication_setup;
mod authorization_log_observer;
mod authorizer_setup;
mod data_directory;
mod open_store;
mod parse_flag_values;
mod return_freed_memory;
mod serve_flags;
mod serving_certificates;
mod start_message;
mod stop_signals;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use admission_hooks::ServiceCredentialsTable;
use anyhow::Context;
use https_server::{DrainPlan, Limits, PkiFiles};
use server::{
    AdmissionOptions, AdmissionPlugins, ApiSettings, CaFiles, Log, LogField, LogFormat, LogLevel,
    RequestLimits, Server, ServerOptions,
};
use store::Store;

pub(crate) use serve_flags::Args;

use crate::authorization_settings::node_rules;
use crate::exit::Exit;
use crate::offline::LoadFailure;
use admission_flags::StoreSharing;
use authorizer_setup::AuthorizerSetup;
use data_directory::DataDirectory;
use serve_flags::{LoggingFormat, StoreKind};
use start_message::StartMessage;
use stop_signals::StopSignals;

/// Interval of bookmarks on an idle watch. Clients expect one per minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(50);

/// How long the end of the process waits for standard error to take the lines of the log.
const LOG_FLUSH_TIME_MAX: Duration = Duration::from_secs(2);

/// Stack size of each thread. Functions recurse as deep as objects are nested, and debug builds need
/// more. It reserves address space, not memory.
const STACK_BYTES: usize = 8 << 20;

/// Serves until SIGINT or SIGTERM.
///
/// # Errors
/// Fails if a message cannot be written.
pub(crate) fn run(
    args: &Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    let log = Log {
        line_format: log_format(args),
        least_severe_level: log_level(args.request_flags.verbosity),
    };
    log_panics(log);
    if let Err(error) = return_freed_memory::start() {
        log.warn("memory is returned to the system late", &[("why", &error)]);
    }
    let exit = load_and_serve(args, log, out, err, colour);
    log.flush(LOG_FLUSH_TIME_MAX);
    exit
}

/// Loads the configuration, and serves until a signal.
fn load_and_serve(
    args: &Args,
    log: Log,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            writeln!(err, "error: cannot start the async runtime: {error}")?;
            return Ok(Exit::Unreadable);
        }
    };
    let loaded = {
        let _guard = runtime.enter();
        load_configuration(args, log)
    };
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => {
            log.flush(LOG_FLUSH_TIME_MAX);
            return failure.print_errors(err, colour);
        }
    };
    match runtime.block_on(start_and_serve(args, loaded, log, out)) {
        Ok(()) => Ok(Exit::Clean),
        Err(error) => {
            log.flush(LOG_FLUSH_TIME_MAX);
            writeln!(err, "error: {error:#}")?;
            Ok(Exit::Unreadable)
        }
    }
}

/// Sends the messages of panics to the log. Otherwise a thread that panics would write to standard error
/// itself, and wait for ever if nobody reads it.
fn log_panics(log: Log) {
    std::panic::set_hook(Box::new(move |panic| {
        log.error("a thread panicked", &[("why", &panic)]);
    }));
}

/// The configuration that the flags and their files choose, apart from the parts that are opened later.
struct LoadedConfiguration {
    authorizer_setup: AuthorizerSetup,
    admission_plugins: AdmissionPlugins,
    hook_credentials: ServiceCredentialsTable,
}

/// Checks the flags and reads the files whose errors are printed with their source lines.
fn load_configuration(args: &Args, log: Log) -> Result<LoadedConfiguration, LoadFailure> {
    args.admission_flags.check_flag_conflicts()?;
    Ok(LoadedConfiguration {
        admission_plugins: args.admission_plugin_flags.to_admission_plugins()?,
        authorizer_setup: AuthorizerSetup::load_from_flags(args, log)?,
        hook_credentials: args.admission_flags.load_hook_credentials(log)?,
    })
}

/// Starts the server and serves until a signal:
///
/// 1. Lock the data directory. Until the server is ready, an error removes what the start created.
/// 2. Create or read the certificates, and bind the listener.
/// 3. Read all other files that the flags name.
/// 4. Open the store.
/// 5. Start the server, the reload of its authorizers and the renewal of its certificates.
/// 6. Wait for a signal, then end watches and requests.
async fn start_and_serve(
    args: &Args,
    loaded: LoadedConfiguration,
    log: Log,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let started_at = Instant::now();
    let LoadedConfiguration { authorizer_setup: authorizers, admission_plugins, hook_credentials } =
        loaded;
    authorizers.log_load_warnings(log);
    args.admission_flags.log_flag_warnings(log);

    let reachable = serving_certificates::find_reachable_addresses(
        &args.listen_flags,
        https_server::host_addresses,
    )?;
    let store_kind = open_store::choose_store_kind(&args.store_flags)?;
    let has_embedded_store = store_kind == StoreKind::Embedded;
    let mut data_directory =
        DataDirectory::lock_data_directory(&args.store_flags.data_dir, has_embedded_store)?;

    let pki_options = serving_certificates::build_pki_options(args, &reachable);
    let pki = https_server::prepare_pki_files(&pki_options)?;
    let address = SocketAddr::new(args.listen_flags.bind_address, args.listen_flags.secure_port);
    let listener = serving_certificates::bind_listener(address, &pki, log)?;
    // With port 0 the operating system has picked a port.
    let address = listener.bound_address();
    let advertised_address = SocketAddr::new(reachable.advertised_address, address.port());

    if let Some(file) = &args.audit_flags.audit_log_path {
        data_directory.register_file_to_remove_on_failure(file);
    }
    let sharing = match store_kind {
        StoreKind::Etcd => StoreSharing::Shared,
        StoreKind::Embedded => StoreSharing::Exclusive,
    };
    let admission = AdmissionOptions {
        admission_plugins,
        hook_connect_timeout: args.webhook_connection_flags.webhook_connect_timeout,
        hook_address_policy: args
            .webhook_connection_flags
            .webhook_address_policy(args.listen_flags.bind_address),
        ..args.admission_flags.to_admission_options(sharing, hook_credentials)
    };
    let options =
        build_server_options(args, &authorizers, admission, &pki, advertised_address, log)?;

    let (store, store_name): (Arc<dyn Store>, String) = match store_kind {
        StoreKind::Etcd => {
            let (store, store_name) = open_store::open_etcd_store(&args.store_flags).await?;
            (Arc::new(store), store_name)
        }
        StoreKind::Embedded => {
            let directory = data_directory.take_store_directory()?;
            let (store, store_name) =
                open_store::open_embedded_store(&args.store_flags, directory)?;
            (Arc::new(store), store_name)
        }
    };

    let mut signals = StopSignals::register_signal_handlers()?;
    let server = Server::start(store, listener, options).await?;
    let authorizer_names = authorizers.describe_authorizers();
    authorizers.start_reloading(server.authorizer_replacer(), log);
    let kubeconfig = https_server::write_admin_kubeconfig(&pki, advertised_address)?;
    data_directory.keep_created_files();
    tokio::spawn(serving_certificates::renew_certificates_forever(
        pki_options,
        advertised_address,
        log,
    ));
    let message = StartMessage {
        server_address: address,
        store_name: &store_name,
        authorizer_names: &authorizer_names,
        admin_kubeconfig: kubeconfig.as_deref(),
        startup_duration: started_at.elapsed(),
    };
    message.write_start_message(out)?;

    signals.wait_for_signal().await;
    log.notice("stopping; a second signal ends the server at once", &[]);
    let plan = DrainPlan {
        unready_delay: args.request_flags.shutdown_delay_duration,
        watch_termination_period: args.request_flags.shutdown_watch_termination_grace_period,
        request_drain_timeout: args.request_flags.request_timeout,
    };
    tokio::select! {
        drained = server.stop(plan) => {
            log.notice("stopped", &[("how", &format_args!("{drained:?}"))]);
        }
        () = signals.wait_for_signal() => log.warn("ended at once", &[]),
    }
    Ok(())
}

/// Converts the flags to the options of the server, and reads the files of authentication and audit.
fn build_server_options(
    args: &Args,
    authorizers: &AuthorizerSetup,
    admission: AdmissionOptions,
    pki: &PkiFiles,
    advertised_address: SocketAddr,
    log: Log,
) -> anyhow::Result<ServerOptions> {
    Ok(ServerOptions {
        api_settings: ApiSettings {
            event_ttl: args.request_flags.event_ttl,
            has_garbage_collector: args.request_flags.enable_garbage_collector,
            delete_collection_workers: args.request_flags.delete_collection_workers,
            service_ip_range: args.listen_flags.service_cluster_ip_range,
            has_pod_grace_periods: args.request_flags.pod_graceful_deletion,
            refuses_unenforced_features: args.request_flags.refuse_unenforced_objects,
            request_timeout: args.request_flags.request_timeout,
            write_timeout: args.admission_flags.write_timeout_ceiling,
            watch_duration_min: Duration::from_secs(args.request_flags.min_request_timeout.max(1)),
            bookmark_interval: BOOKMARK_INTERVAL,
            reported_kubernetes_version: args.listen_flags.report_version.clone(),
            advertised_address: advertised_address.to_string(),
        },
        store_key_prefix: args.store_flags.etcd_prefix.clone(),
        authorizer_slots: Arc::clone(&authorizers.generation.authorizer_slots),
        authorization_status_json: authorizers.reload_status_reader(),
        service_directory: Arc::clone(&authorizers.service_endpoint_directory),
        metrics_registry: authorizers.metrics_registry.clone(),
        authorization_metrics: Arc::clone(&authorizers.authorization_metrics),
        admission_options: admission,
        node_authorizer_policy: initial_node_authorizer_snapshot()?,
        authentication_options: authentication_setup::build_authentication_options(
            &args.authentication_flags,
            authorizers.disables_anonymous_auth(),
            pki,
            &log,
        )?,
        token_issuer: authentication_setup::build_token_issuer(&args.authentication_flags, pki)?,
        ca_files: CaFiles {
            client_ca_file: Some(pki.client_ca_file.clone()),
            requestheader_client_ca_file: args
                .authentication_flags
                .requestheader_client_ca_file
                .clone(),
            ca_reload_interval: serving_certificates::RELOAD_INTERVAL,
        },
        auditor: audit_setup::build_auditor(
            &args.audit_flags,
            args.webhook_connection_flags.webhook_connect_timeout,
            &log,
        )?,
        request_limits: RequestLimits {
            seats_max: args.request_flags.total_seats()?,
            ..RequestLimits::default()
        },
        watches_max: args.request_flags.max_watches,
        watches_per_user_max: args.request_flags.max_watches_per_user,
        response_bytes_max: args.request_flags.max_response_bytes_inflight,
        connection_limits: raise_open_file_limit(args.request_flags.max_connections, log),
        log,
    })
}

/// Raises the limit of open files, and returns the limits of connections that it allows.
fn raise_open_file_limit(connections_max: usize, log: Log) -> Limits {
    let descriptors = https_server::raise_descriptor_limit();
    let limits = Limits::for_connection_count(connections_max, descriptors);
    let number = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |n| n.to_string());
    let (found, current) =
        (number(descriptors.initial_open_files_max), number(descriptors.current_open_files_max));
    let allowed = limits.connections_max;
    let fields: [LogField<'_>; 3] =
        [("found", &found), ("current", &current), ("connections", &allowed)];
    match allowed < connections_max {
        true => log.warn(
            "the limit of open files allows fewer connections than --max-connections",
            &fields,
        ),
        false => log.notice("the limit of open files", &fields),
    }
    limits
}

/// Returns the policy of the node authorizer before it knows any object: the rules of all nodes, and an
/// empty graph.
fn initial_node_authorizer_snapshot() -> anyhow::Result<authz_node::Snapshot> {
    let defaults = manifests::rbac::bootstrap_policy()?;
    let rules = Arc::new(node_rules(&defaults));
    Ok(authz_node::Snapshot { node_rules: rules, ..authz_node::Snapshot::default() })
}

fn log_format(args: &Args) -> LogFormat {
    match args.request_flags.logging_format {
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
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}
