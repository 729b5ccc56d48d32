//! `portcullis webhook`: runs the authorizer chain as an authorization webhook.
//!
//! This file wires the webhook: it creates every part in the order in which the parts need each other.
//! Its modules convert flags and files to values, and do not start anything that this file does not
//! mention.

mod followed_manifests;
mod webhook_flags;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use authn::{AnonymousAccess, Options};
use authz_webhook_server::{PolicyOrigin, WebhookLimits, WebhookOptions, WebhookServer};
use cluster_client::ClusterClient;
use component_base::{CaFiles, Log};
use document::{Warning, WarningCode};
use https_client::Limits;
use https_server::{
    CertificateFiles, ClientCertificates, DrainPlan, Listener, ReloadingCertificate,
};
use kubeconfig::ClusterConnection;

pub(crate) use webhook_flags::Args;

use self::followed_manifests::{FollowedManifests, follow_manifests};
use crate::exit::Exit;
use crate::offline::{LoadFailure, ProcessEnvironment};
use crate::server_setup::{
    AuthorizerSetup, AuthorizerSetupOptions, ServerProgram, StopSignals, build_auditor,
    load_certificates, raise_open_file_limit, run_server_program, server_identity_in_metrics,
};

/// Interval at which certificate and CA files are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// The shortest time of --max-policy-age: proofs are asked for after each third of it, and not more often than each second.
const POLICY_AGE_MIN: Duration = Duration::from_secs(3);

/// The time that reviews in progress have after a stop signal. kube-apiserver waits at most 30 seconds for one.
const REVIEW_TIME_MAX: Duration = Duration::from_secs(30);

/// Answers reviews until SIGINT or SIGTERM.
///
/// # Errors
/// Fails if a message cannot be written.
pub(crate) fn run(
    args: &Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
    colour: bool,
) -> io::Result<Exit> {
    let log = args.review_flags.log_flags.to_log();
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

/// The configuration that the flags and their files choose.
struct LoadedConfiguration {
    authorizer_setup: AuthorizerSetup,
    cluster_connection: Option<ClusterConnection>,
    manifests: FollowedManifests,
    policy_origin: PolicyOrigin,
}

/// Checks the flags and reads the files whose errors are printed with their source lines.
fn load_configuration(args: &Args, log: Log) -> Result<LoadedConfiguration, LoadFailure> {
    if args.review_flags.max_policy_age < POLICY_AGE_MIN {
        let message = format!("--max-policy-age: want at least {}s", POLICY_AGE_MIN.as_secs());
        return Err(LoadFailure::Usage(vec![message]));
    }
    let has_files = !args.policy_flags.object_input_paths().is_empty();
    let cluster_connection = args
        .cluster_flags
        .find_cluster_connection(has_files, &ProcessEnvironment::of_current_process())?;
    if let Some(connection) = &cluster_connection {
        check_cluster_connection(connection)?;
    }
    let policy_origin = match (&cluster_connection, has_files) {
        (Some(_), false) => PolicyOrigin::Cluster,
        (Some(_), true) => PolicyOrigin::ClusterAndFiles,
        (None, true) => {
            let defaults = manifests::rbac::bootstrap_policy();
            PolicyOrigin::Files(Box::new(defaults.map_err(LoadFailure::from_message)?))
        }
        (None, false) => {
            let message = "there is no policy: name a cluster with --kubeconfig, or files with -f";
            return Err(LoadFailure::Usage(vec![message.to_owned()]));
        }
    };
    let authorizer_setup = AuthorizerSetup::load(
        AuthorizerSetupOptions {
            authorization_plan: args.policy_flags.to_authorization_plan(),
            webhook_limits: authz_webhook::WebhookLimits::default(),
            connection_limits: Limits::default(),
            service_resolver: None,
            abac_options: manifests::abac::AbacPolicyLoadOptions::default(),
            checks_webhook_health: true,
            metrics_identity: server_identity_in_metrics(Path::new("webhook")),
        },
        log,
    )?;
    let manifests = FollowedManifests::read(&args.policy_flags)?;
    Ok(LoadedConfiguration { authorizer_setup, cluster_connection, manifests, policy_origin })
}

/// Checks that nobody on the network can forge the answers of the cluster: all decisions follow from them.
fn check_cluster_connection(connection: &ClusterConnection) -> Result<(), LoadFailure> {
    let is_forgeable =
        |own: &&Warning| matches!(own.code, WarningCode::PlainHttp | WarningCode::UnverifiedServer);
    let messages: Vec<String> =
        connection.server_connection.warnings.iter().filter(is_forgeable).map(refuse).collect();
    if messages.is_empty() { Ok(()) } else { Err(LoadFailure::Usage(messages)) }
}

fn refuse(warning: &Warning) -> String {
    let Warning { file_name, position, field, message, hint, .. } = warning;
    let (line, hint) = (position.line, hint.as_deref().unwrap_or("change the kubeconfig"));
    format!(
        "{file_name}:{line}: {field}: {message}, and the webhook would decide from forged roles and bindings: {hint}"
    )
}

/// Logs the warnings about a kubeconfig that is accepted.
fn log_kubeconfig_warnings(connection: &ClusterConnection, log: Log) {
    for warning in &connection.server_connection.warnings {
        let at = format!("{}:{}", warning.file_name, warning.position.line);
        log.warn(
            "kubeconfig warning",
            &[("at", &at), ("field", &warning.field), ("why", &warning.message)],
        );
    }
}

/// Starts the webhook and answers until a signal:
///
/// 1. Read the certificates, and bind the listeners.
/// 2. Start the server, the watches of the cluster, and the reload of authorizers and manifests.
/// 3. Wait for a signal, then answer the reviews in progress.
async fn start_and_serve(
    args: &Args,
    loaded: LoadedConfiguration,
    log: Log,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let LoadedConfiguration {
        authorizer_setup: authorizers,
        cluster_connection,
        mut manifests,
        policy_origin,
    } = loaded;
    authorizers.log_load_warnings(log);
    if let Some(connection) = &cluster_connection {
        log_kubeconfig_warnings(connection, log);
    }
    let listen = &args.listen_flags;
    let certificate = load_serving_certificate(args, log)?;
    let bind = |port: u16, clients: ClientCertificates| -> anyhow::Result<Listener> {
        let tls = https_server::tls_server_config(Arc::clone(&certificate), clients)?;
        Ok(Listener::bind(SocketAddr::new(listen.bind_address, port), Arc::new(tls))?)
    };
    let listener = bind(listen.secure_port, ClientCertificates::Required)?;
    let health_listener =
        listen.health_port.map(|port| bind(port, ClientCertificates::Optional)).transpose()?;
    let health_address = health_listener.as_ref().map(Listener::bound_address);

    let reviews_max = args.review_flags.max_reviews_inflight.max(1);
    let options = WebhookOptions {
        review_path: listen.path.clone(),
        authorizer_slots: Arc::clone(&authorizers.generation.authorizer_slots),
        authorization_status: authorizers.reload_status_reader(),
        authorization_metrics: Arc::clone(&authorizers.authorization_metrics),
        metrics_registry: authorizers.metrics_registry.clone(),
        policy_origin,
        file_objects: std::mem::take(&mut manifests.objects),
        cluster_client: cluster_connection.map(ClusterClient::new),
        proof_age_max: args.review_flags.max_policy_age,
        authentication: Options {
            client_authorities: load_certificates(&listen.client_ca_file)?,
            anonymous_access: AnonymousAccess::Off,
            ..Options::default()
        },
        allowed_client_names: listen.allowed_client_names.clone(),
        ca_files: CaFiles {
            client_ca_file: Some(listen.client_ca_file.clone()),
            requestheader_client_ca_file: None,
            ca_reload_interval: RELOAD_INTERVAL,
        },
        auditor: build_auditor(&args.audit_flags, Limits::default().connect_timeout, &log)?,
        limits: WebhookLimits {
            reviews_max,
            reviews_per_caller_max: reviews_max.saturating_mul(3).div_ceil(4),
            recent_decisions_max: args.review_flags.recent_decisions,
            ..WebhookLimits::default()
        },
        connection_limits: raise_open_file_limit(listen.max_connections, log),
        health_listener,
        log,
    };

    let mut signals = StopSignals::register_signal_handlers()?;
    let server = WebhookServer::start(listener, options)?;
    let authorizer_names = authorizers.describe_authorizers();
    let replace = server.authorizer_replacer();
    authorizers.start_reloading(Arc::new(move |slots| Ok(replace(slots)?)), log);
    if !args.policy_flags.object_input_paths().is_empty() {
        let replace_objects = server.file_object_replacer();
        let flags = args.policy_flags.clone();
        tokio::spawn(follow_manifests(flags, manifests, replace_objects, log));
    }
    writeln!(
        out,
        "serving https://{} for reviews at {}, authorization {authorizer_names}, decisions {}-*",
        server.address(),
        listen.path,
        server.instance()
    )?;
    if let Some(address) = health_address {
        writeln!(out, "health https://{address}")?;
    }
    out.flush()?;

    signals.wait_for_signal().await;
    log.notice("stopping; a second signal ends the webhook at once", &[]);
    let plan = DrainPlan {
        unready_delay: args.review_flags.shutdown_delay_duration,
        watch_termination_period: Duration::ZERO,
        request_drain_timeout: REVIEW_TIME_MAX,
    };
    tokio::select! {
        drained = server.stop(plan) => {
            log.notice("stopped", &[("how", &format_args!("{drained:?}"))]);
        }
        () = signals.wait_for_signal() => log.warn("ended at once", &[]),
    }
    Ok(())
}

/// Loads the serving certificate, and starts a task that loads it again when its files change.
fn load_serving_certificate(args: &Args, log: Log) -> anyhow::Result<Arc<ReloadingCertificate>> {
    let certificate = Arc::new(ReloadingCertificate::load(CertificateFiles {
        certificate_path: args.listen_flags.tls_cert_file.clone(),
        key: args.listen_flags.tls_private_key_file.clone(),
    })?);
    let reloaded = Arc::clone(&certificate);
    tokio::spawn(reloaded.reload_periodically(RELOAD_INTERVAL, move |result| match result {
        Ok(()) => log.notice("serving certificate reloaded", &[]),
        Err(error) => log.error("cannot reload the serving certificate", &[("why", error)]),
    }));
    Ok(certificate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_cluster(cluster: &str) -> Result<(), LoadFailure> {
        let kubeconfig = format!(
            "current-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {cluster}}}]\n\
             users: [{{name: u, user: {{token: t}}}}]\n"
        );
        let connection = kubeconfig::load_cluster_connection(
            &["admin.conf".into()],
            &kubeconfig::ContextOverrides::default(),
            &|_| Ok(kubeconfig.clone().into_bytes()),
        );
        check_cluster_connection(&connection.unwrap())
    }

    #[test]
    fn a_cluster_whose_answers_can_be_forged_is_refused() {
        assert!(check_cluster("{server: 'https://10.0.0.1'}").is_ok());
        for (cluster, want) in [
            ("{server: 'http://10.0.0.1'}", "the server is called without TLS"),
            (
                "{server: 'https://10.0.0.1', insecure-skip-tls-verify: true}",
                "insecure-skip-tls-verify: the certificate of the server is not verified",
            ),
        ] {
            let Err(LoadFailure::Usage(messages)) = check_cluster(cluster) else {
                panic!("{cluster} is not refused");
            };
            let [message] = messages.as_slice() else { panic!("{messages:?}") };
            assert!(message.contains("admin.conf:3: ") && message.contains(want), "{message}");
        }
    }
}
