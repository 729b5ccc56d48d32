//! Converts the flags of the server to the options of its authorizers.

use std::sync::Arc;

use authz_webhook::WebhookLimits;
use https_client::{Limits, ServiceResolver};
use server::{ServiceDirectory, ServiceRouting};

use super::serve_flags::{Args, WebhookConnectionFlags};
use crate::offline::LoadFailure;
use crate::server_setup::{AuthorizerSetupOptions, server_identity_in_metrics};

/// Creates the directory in which calls to webhooks find the addresses of Services.
pub(super) fn new_service_directory(args: &Args) -> Arc<ServiceDirectory> {
    let routing = match args.webhook_connection_flags.enable_aggregator_routing {
        true => ServiceRouting::Endpoints,
        false => ServiceRouting::ClusterIp,
    };
    Arc::new(ServiceDirectory::new(routing))
}

/// Converts the flags.
///
/// # Errors
/// The flags contradict each other.
pub(super) fn build_authorizer_options(
    args: &Args,
    service_directory: &Arc<ServiceDirectory>,
) -> Result<AuthorizerSetupOptions, LoadFailure> {
    let flags = &args.webhook_connection_flags;
    Ok(AuthorizerSetupOptions {
        authorization_plan: args
            .authorization_flags
            .to_authorization_plan()
            .map_err(LoadFailure::Usage)?,
        webhook_limits: authorization_webhook_limits(flags),
        connection_limits: Limits {
            connect_timeout: flags.webhook_connect_timeout,
            address_policy: flags.webhook_address_policy(args.listen_flags.bind_address),
            ..Limits::default()
        },
        service_resolver: Some(Arc::clone(service_directory) as Arc<dyn ServiceResolver>),
        abac_options: args.authorization_flags.abac_load_options(),
        checks_webhook_health: flags.authorization_config_reload_health_check,
        metrics_identity: server_identity_in_metrics(&args.store_flags.data_dir),
    })
}

fn authorization_webhook_limits(flags: &WebhookConnectionFlags) -> WebhookLimits {
    let in_flight_max = match flags.authorization_webhook_max_in_flight {
        0 => usize::MAX,
        limit => limit,
    };
    let cache_bytes_max =
        usize::try_from(flags.authorization_webhook_cache_max_bytes).unwrap_or(usize::MAX);
    WebhookLimits {
        in_flight_calls_max: in_flight_max,
        cache_bytes_max,
        ..WebhookLimits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: WebhookConnectionFlags,
    }

    #[test]
    fn limits_are_the_defaults_unless_flags_change_them() {
        let limits_of_flags = |args: &[&str]| {
            authorization_webhook_limits(
                &Program::try_parse_from([&["x"], args].concat()).unwrap().flags,
            )
        };
        assert_eq!(limits_of_flags(&[]), WebhookLimits::default());
        assert_eq!(
            limits_of_flags(&["--authorization-webhook-max-in-flight=0"]),
            WebhookLimits::without_in_flight_limit()
        );
        for (value, want) in [("1024", 1024), ("2Ki", 2048), ("0", 0)] {
            let changed =
                limits_of_flags(&[&format!("--authorization-webhook-cache-max-bytes={value}")]);
            assert_eq!(changed.cache_bytes_max, want);
        }
    }

    /// A19: addresses that users write may be loopback addresses only if the server listens on one, or if a flag
    /// allows it.
    #[test]
    fn a19_loopback_is_for_servers_on_loopback() {
        for (bind_address, args, allows_loopback) in [
            ("127.0.0.1", &[][..], true),
            ("127.8.8.8", &[], true),
            ("::1", &[], true),
            ("::ffff:127.0.0.1", &[], true),
            ("0.0.0.0", &[], false),
            ("::", &[], false),
            ("10.0.0.1", &[], false),
            ("0.0.0.0", &["--webhook-allow-loopback"], true),
            ("0.0.0.0", &["--webhook-allow-loopback=false"], false),
        ] {
            let flags = Program::try_parse_from([&["x"], args].concat()).unwrap().flags;
            let addresses = flags.webhook_address_policy(bind_address.parse().unwrap());
            assert_eq!(addresses.allows_loopback, allows_loopback, "{bind_address} {args:?}");
        }
    }
}
