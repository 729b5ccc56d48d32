//! `portcullis serve`: runs the API server.
//!
//! This file wires the server: it creates every part in the order in which the parts need each other.
//! Its modules convert flags and files to values, and do not start anything that this file does not
//! mention.

mod admission_flags;
mod admission_plugin_flags;
mod authentication_setup;
mod authorizer_options;
mod data_directory;
mod open_store;
mod serve_flags;
mod serving_certificates;
mod start_message;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use admission_hooks::ServiceCredentialsTable;
use component_base::{CaFiles, Log};
use https_server::{DrainPlan, PkiFiles};
use server::{
    AdmissionOptions, AdmissionPlugins, ApiSettings, RequestLimits, Server, ServerOptions,
    ServiceDirectory,
};
use store::Store;

pub(crate) use serve_flags::Args;

use crate::authorization_settings::node_rules;
use crate::exit::Exit;
use crate::offline::LoadFailure;
use crate::server_setup::{
    AuthorizerSetup, ServerProgram, StopSignals, build_auditor, raise_open_file_limit,
    run_server_program,
};
use admission_flags::StoreSharing;
use data_directory::DataDirectory;
use serve_flags::StoreKind;
use start_message::StartMessage;

/// Interval of bookmarks on an idle watch. Clients expect one per minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(50);

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
    let log = args.request_flags.log_flags.to_log();
    run_server_program(
        &ServerProgram {
            load: &|| load_configuration(args, log),
            serve: &|loaded, out| Box::pin(start_and_serve(args, loaded, log, out)),
        },
        log,
        out,
        err,
        colour,
    )
}

/// The configuration that the flags and their files choose, apart from the parts that are opened later.
struct LoadedConfiguration {
    authorizer_setup: AuthorizerSetup,
    service_directory: Arc<ServiceDirectory>,
    admission_plugins: AdmissionPlugins,
    hook_credentials: ServiceCredentialsTable,
}

/// Checks the flags and reads the files whose errors are printed with their source lines.
fn load_configuration(args: &Args, log: Log) -> Result<LoadedConfiguration, LoadFailure> {
    args.admission_flags.check_flag_conflicts()?;
    let admission_plugins = args.admission_plugin_flags.to_admission_plugins()?;
    let service_directory = authorizer_options::new_service_directory(args);
    let options = authorizer_options::build_authorizer_options(args, &service_directory)?;
    Ok(LoadedConfiguration {
        admission_plugins,
        authorizer_setup: AuthorizerSetup::load(options, log)?,
        service_directory,
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
    let LoadedConfiguration {
        authorizer_setup: authorizers,
        service_directory,
        admission_plugins,
        hook_credentials,
    } = loaded;
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
    let options = build_server_options(
        args,
        &authorizers,
        service_directory,
        admission,
        &pki,
        advertised_address,
        log,
    )?;

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
    let replace = server.authorizer_replacer();
    authorizers.start_reloading(Arc::new(move |slots| Ok(replace(slots)?)), log);
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
    service_directory: Arc<ServiceDirectory>,
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
        service_directory,
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
        auditor: build_auditor(
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

/// Returns the policy of the node authorizer before it knows any object: the rules of all nodes, and an
/// empty graph.
fn initial_node_authorizer_snapshot() -> anyhow::Result<authz_node::Snapshot> {
    let defaults = manifests::rbac::bootstrap_policy()?;
    let rules = Arc::new(node_rules(&defaults));
    Ok(authz_node::Snapshot { node_rules: rules, ..authz_node::Snapshot::default() })
}
