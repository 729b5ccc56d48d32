//! The flags of dynamic admission, and the options that they set.

use std::path::{Path, PathBuf};
use std::time::Duration;

use admission::{
    InitializerOptions, PENDING_INITIALIZERS_MAX, WAITING_OBJECTS_MAX,
    WAITING_OBJECTS_PER_USER_MAX, WaitingObjectLimits,
};
use admission_hooks::{CALLS_IN_FLIGHT_MAX, ServiceCredentials, ServiceCredentialsTable};
use component_base::{Log, LogLevel};
use kubeconfig::{UserCredentials, UsersByServerName};
use server::{
    AdmissionConfigSyncMode, AdmissionConfigSyncOptions, AdmissionOptions, UninitializedGetMode,
};

use crate::offline::LoadFailure;
use crate::server_setup::{
    parse_admission_webhook_timeout, parse_duration, parse_positive_byte_size,
    parse_positive_duration, parse_webhook_response_size_limit,
};

/// Maximum of `--admission-initializers-max-pending`. Each write stores the whole list in the object.
const PENDING_CEILING: u64 = 1000;

/// The flags of dynamic admission. kube-apiserver has none of them.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Dynamic admission")]
pub(crate) struct AdmissionFlags {
    /// How the server ensures that its configuration of hooks and initializers is current
    #[arg(long, value_name = "MODE", value_enum, default_value = "barrier")]
    admission_sync_mode: AdmissionSyncModeFlag,

    /// Interval at which the server reads the configuration revision from the store: in mode `poll`
    /// always, in mode `barrier` only while no request reads it
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_positive_duration)]
    admission_sync_poll_interval: Duration,

    /// Maximum age of the last confirmation of the configuration. If it is older, the server
    /// refuses writes (500, LoadingConfiguration)
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_positive_duration)]
    admission_sync_max_staleness: Duration,

    /// Maximum time that a write waits for the first configuration after a start
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    admission_sync_bootstrap_wait: Duration,

    /// Make new objects wait for their initializers; if false the server drops
    /// `metadata.initializers`
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    admission_initializers_enabled: bool,

    /// Timeout of each initializer, from the moment it may act. After that the server removes an
    /// initializer with failurePolicy Ignore, and fails the create if the policy is Fail
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_positive_duration)]
    admission_initializers_step_timeout: Duration,

    /// Age of an object after which a read of it may remove a pending initializer, in case the server that
    /// waited for it has crashed. Should be at least the sum of the step timeouts of all its initializers
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_positive_duration)]
    admission_initializers_global_timeout: Duration,

    /// Maximum clock difference between servers that share a store; reads remove a pending initializer
    /// that much later [default: 30s with etcd, 0s with the embedded store]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    admission_initializers_clock_drift: Option<Duration>,

    /// Maximum number of initializers of one object: 1 to 1000
    #[arg(
        long,
        value_name = "N",
        default_value_t = PENDING_INITIALIZERS_MAX as u64,
        value_parser = clap::value_parser!(u64).range(1..=PENDING_CEILING)
    )]
    admission_initializers_max_pending: u64,

    /// Maximum number of objects that wait for initializers at a time; further creates get 429
    #[arg(
        long,
        value_name = "N",
        default_value_t = WAITING_OBJECTS_MAX.waiting_objects_max as u64,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    admission_initializers_max_waiting_objects: u64,

    /// Maximum total size of the objects that wait for initializers, in bytes or with Ki, Mi or Gi;
    /// further creates get 429
    #[arg(long, value_name = "BYTES", default_value = "128Mi", value_parser = parse_positive_byte_size)]
    admission_initializers_max_waiting_bytes: u64,

    /// Maximum number of waiting objects that one user created; further creates get 429
    #[arg(
        long,
        value_name = "N",
        default_value_t = WAITING_OBJECTS_PER_USER_MAX.waiting_objects_max as u64,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    admission_initializers_max_waiting_objects_per_user: u64,

    /// Maximum total size of the waiting objects that one user created, in bytes or with Ki, Mi or
    /// Gi; further creates get 429
    #[arg(long, value_name = "BYTES", default_value = "16Mi", value_parser = parse_positive_byte_size)]
    admission_initializers_max_waiting_bytes_per_user: u64,

    /// Answer to GET for an object whose initializers are pending
    #[arg(long, value_name = "MODE", value_enum, default_value = "object")]
    admission_initializers_get_mode: InitializersGetModeFlag,

    /// Maximum duration of one admission webhook call, whatever its timeoutSeconds; at most 30s
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_admission_webhook_timeout)]
    admission_webhook_client_timeout: Duration,

    /// Maximum concurrent calls to each admission webhook, at most half of them for one user;
    /// further requests get 429
    #[arg(
        long,
        value_name = "N",
        default_value_t = CALLS_IN_FLIGHT_MAX as u64,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    admission_webhook_max_in_flight: u64,

    /// Maximum size of an admission webhook response, in bytes or with Ki, Mi or Gi; a call with a
    /// longer response fails. A response may always be twice as long as its review
    #[arg(long, value_name = "BYTES", default_value = "4Mi", value_parser = parse_webhook_response_size_limit)]
    admission_webhook_max_response_bytes: u64,

    /// Kubeconfig with the credentials that the server presents to admission webhooks; each user
    /// entry is named after the webhook host that it is for
    ///
    /// The name of a user entry is `HOST:PORT`, or `HOST` for port 443; the first labels of HOST
    /// may be `*`: h.example.com:8443, *.example.com. A Service is NAME.NAMESPACE.svc. The server
    /// uses the most specific entry, then the user `*`, then the user of the current context,
    /// otherwise no credentials. Entries may hold tokens, token files, client certificates and
    /// passwords.
    #[arg(long, value_name = "FILE")]
    admission_webhook_kubeconfig: Option<PathBuf>,

    /// Maximum duration of the write of one object including all its webhooks, whatever timeout the
    /// client asks for; --request-timeout also applies
    #[arg(long, value_name = "DURATION", default_value = "34s", value_parser = parse_positive_duration)]
    pub(super) write_timeout_ceiling: Duration,
}

/// How the server ensures that the admission configuration is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AdmissionSyncModeFlag {
    /// The server admits each write by the newest configuration that any server acknowledged before
    /// it
    Barrier,
    /// The server reads the configuration at intervals; a change takes effect after the next read
    Poll,
}

/// The answer to GET for an object with pending initializers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum InitializersGetModeFlag {
    /// The object as stored
    Object,
    /// Status code 202 with a Status object
    Accepted,
}

/// Whether other servers use the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreSharing {
    /// Other servers may use the store.
    Shared,
    /// This server is the only one.
    Exclusive,
}

impl AdmissionFlags {
    /// Checks flags that must fit each other.
    ///
    /// # Errors
    /// Two flags contradict each other.
    pub(super) fn check_flag_conflicts(&self) -> Result<(), LoadFailure> {
        if self.admission_sync_poll_interval <= self.admission_sync_max_staleness {
            return Ok(());
        }
        let fault = "--admission-sync-poll-interval must not be longer than \
                     --admission-sync-max-staleness: the configuration would be stale most of the \
                     time";
        Err(LoadFailure::Usage(vec![fault.to_owned()]))
    }

    /// Converts the flags to the options of the server.
    pub(super) fn to_admission_options(
        &self,
        sharing: StoreSharing,
        hook_credentials: ServiceCredentialsTable,
    ) -> AdmissionOptions {
        let sync_mode = match self.admission_sync_mode {
            AdmissionSyncModeFlag::Barrier => AdmissionConfigSyncMode::Barrier,
            AdmissionSyncModeFlag::Poll => AdmissionConfigSyncMode::Poll,
        };
        let drift = match sharing {
            StoreSharing::Shared => InitializerOptions::default().clock_drift_max,
            StoreSharing::Exclusive => Duration::ZERO,
        };
        AdmissionOptions {
            admission_config_sync: AdmissionConfigSyncOptions {
                admission_config_sync_mode: sync_mode,
                admission_config_poll_interval: self.admission_sync_poll_interval,
                admission_config_staleness_max: self.admission_sync_max_staleness,
                first_config_confirmation_wait_max: self.admission_sync_bootstrap_wait,
                // Mode `poll` polls even if no other server writes.
                is_only_server: sharing == StoreSharing::Exclusive
                    && sync_mode == AdmissionConfigSyncMode::Barrier,
            },
            initializer_options: InitializerOptions {
                are_initializers_enabled: self.admission_initializers_enabled,
                initializer_step_timeout: self.admission_initializers_step_timeout,
                initialization_timeout: self.admission_initializers_global_timeout,
                clock_drift_max: self.admission_initializers_clock_drift.unwrap_or(drift),
                pending_initializers_max: to_usize(self.admission_initializers_max_pending),
                waiting_object_limits: WaitingObjectLimits {
                    waiting_objects_max: to_usize(self.admission_initializers_max_waiting_objects),
                    waiting_object_bytes_max: to_usize(
                        self.admission_initializers_max_waiting_bytes,
                    ),
                },
                waiting_object_limits_per_user: WaitingObjectLimits {
                    waiting_objects_max: to_usize(
                        self.admission_initializers_max_waiting_objects_per_user,
                    ),
                    waiting_object_bytes_max: to_usize(
                        self.admission_initializers_max_waiting_bytes_per_user,
                    ),
                },
                ..InitializerOptions::default()
            },
            uninitialized_get_mode: match self.admission_initializers_get_mode {
                InitializersGetModeFlag::Object => UninitializedGetMode::Object,
                InitializersGetModeFlag::Accepted => UninitializedGetMode::Accepted,
            },
            hook_credentials,
            hook_response_bytes_max: to_usize(self.admission_webhook_max_response_bytes),
            hook_calls_in_flight_max: to_usize(self.admission_webhook_max_in_flight),
            hook_call_time_max: self.admission_webhook_client_timeout,
            ..AdmissionOptions::default()
        }
    }

    /// Loads the credentials that the server presents to hooks.
    ///
    /// # Errors
    /// The file is missing or wrong.
    pub(super) fn load_hook_credentials(
        &self,
        log: Log,
    ) -> Result<ServiceCredentialsTable, LoadFailure> {
        let Some(path) = &self.admission_webhook_kubeconfig else {
            return Ok(ServiceCredentialsTable::default());
        };
        let users = kubeconfig::load_users_by_server_name(path, &kubeconfig::read_file)?;
        log_kubeconfig_warnings(path, &users, log);
        let UsersByServerName { users_by_server_name: by_name, current_user, .. } = users;
        Ok(ServiceCredentialsTable {
            credentials_by_target_name: by_name
                .into_iter()
                .map(|(name, own)| (name, to_service_credentials(own)))
                .collect(),
            current_context_credentials: current_user.map(to_service_credentials),
            own_server_credentials: None,
        })
    }

    /// Logs warnings about the flags.
    pub(super) fn log_flag_warnings(&self, log: Log) {
        let step = self.admission_initializers_step_timeout;
        let n_steps = u32::try_from(self.admission_initializers_max_pending).unwrap_or(u32::MAX);
        if step.saturating_mul(n_steps) > self.admission_initializers_global_timeout {
            let why = "a read may repair an object with many pending initializers while another \
                       server still waits for them";
            log.warn(
                "--admission-initializers-global-timeout is shorter than all steps together",
                &[("why", &why)],
            );
        }
    }
}

fn log_kubeconfig_warnings(path: &Path, users: &UsersByServerName, log: Log) {
    for warning in &users.warnings {
        let (line, column) = (warning.position.line, warning.position.column);
        log.write(
            LogLevel::Warn,
            "admission webhook kubeconfig warning",
            &[
                ("at", &format_args!("{}:{line}:{column}", path.display())),
                ("why", &warning.message),
            ],
        );
    }
}

fn to_service_credentials(
    UserCredentials { credentials, client_certificate }: UserCredentials,
) -> ServiceCredentials {
    ServiceCredentials { header_credentials: credentials, client_certificate }
}

/// Converts a number whose range the flag parser checked.
fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: AdmissionFlags,
    }

    fn flags(args: &[&str]) -> Result<AdmissionFlags, clap::Error> {
        Program::try_parse_from([&["x"], args].concat()).map(|program| program.flags)
    }

    fn options(args: &[&str], sharing: StoreSharing) -> AdmissionOptions {
        flags(args).unwrap().to_admission_options(sharing, ServiceCredentialsTable::default())
    }

    #[test]
    fn without_flags_the_server_has_its_defaults() {
        let own = AdmissionOptions::default();
        for sharing in [StoreSharing::Shared, StoreSharing::Exclusive] {
            let found = options(&[], sharing);
            let is_own = sharing == StoreSharing::Exclusive;
            assert_eq!(
                found.admission_config_sync,
                AdmissionConfigSyncOptions {
                    is_only_server: is_own,
                    ..own.admission_config_sync.clone()
                }
            );
            let drift = if is_own { Duration::ZERO } else { Duration::from_secs(30) };
            let want =
                InitializerOptions { clock_drift_max: drift, ..own.initializer_options.clone() };
            assert_eq!(found.initializer_options, want);
            assert_eq!(found.uninitialized_get_mode, own.uninitialized_get_mode);
            assert_eq!(found.hook_response_bytes_max, own.hook_response_bytes_max);
            assert_eq!(found.hook_calls_in_flight_max, own.hook_calls_in_flight_max);
            assert_eq!(found.hook_call_time_max, own.hook_call_time_max);
        }
        assert_eq!(flags(&[]).unwrap().write_timeout_ceiling, Duration::from_secs(34));
    }

    /// L32: no flag is accepted and ignored.
    #[test]
    fn each_flag_changes_something() {
        let second = Duration::from_secs;
        let found = options(
            &[
                "--admission-sync-mode=poll",
                "--admission-sync-poll-interval=2s",
                "--admission-sync-max-staleness=7s",
                "--admission-sync-bootstrap-wait=0s",
                "--admission-initializers-enabled=false",
                "--admission-initializers-step-timeout=3s",
                "--admission-initializers-global-timeout=1m",
                "--admission-initializers-clock-drift=4s",
                "--admission-initializers-max-pending=9",
                "--admission-initializers-max-waiting-objects=8",
                "--admission-initializers-max-waiting-bytes=7Ki",
                "--admission-initializers-max-waiting-objects-per-user=6",
                "--admission-initializers-max-waiting-bytes-per-user=5000",
                "--admission-initializers-get-mode=accepted",
                "--admission-webhook-client-timeout=8s",
                "--admission-webhook-max-response-bytes=1024",
                "--admission-webhook-max-in-flight=7",
            ],
            StoreSharing::Exclusive,
        );
        let sync = AdmissionConfigSyncOptions {
            admission_config_sync_mode: AdmissionConfigSyncMode::Poll,
            admission_config_poll_interval: second(2),
            admission_config_staleness_max: second(7),
            first_config_confirmation_wait_max: second(0),
            is_only_server: false,
        };
        assert_eq!(found.admission_config_sync, sync);
        let initializers = InitializerOptions {
            are_initializers_enabled: false,
            initializer_step_timeout: second(3),
            initialization_timeout: second(60),
            clock_drift_max: second(4),
            pending_initializers_max: 9,
            waiting_object_limits: WaitingObjectLimits {
                waiting_objects_max: 8,
                waiting_object_bytes_max: 7168,
            },
            waiting_object_limits_per_user: WaitingObjectLimits {
                waiting_objects_max: 6,
                waiting_object_bytes_max: 5000,
            },
            ..InitializerOptions::default()
        };
        assert_eq!(found.initializer_options, initializers);
        assert_eq!(found.uninitialized_get_mode, UninitializedGetMode::Accepted);
        assert_eq!((found.hook_call_time_max, found.hook_response_bytes_max), (second(8), 1024));
        assert_eq!(found.hook_calls_in_flight_max, 7);
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_name_of_the_flag() {
        for (flag, why) in [
            ("--admission-sync-mode=push", "barrier, poll"),
            ("--admission-sync-poll-interval=0", "must be longer than 0"),
            ("--admission-sync-max-staleness=0s", "must be longer than 0"),
            ("--admission-sync-bootstrap-wait=-1s", "cannot be negative"),
            ("--admission-initializers-step-timeout=0s", "must be longer than 0"),
            ("--admission-initializers-global-timeout=soon", "invalid duration"),
            ("--admission-initializers-clock-drift=-3s", "cannot be negative"),
            ("--admission-initializers-max-pending=0", "0 is not in 1..=1000"),
            ("--admission-initializers-max-pending=1001", "1001 is not in 1..=1000"),
            ("--admission-initializers-max-waiting-objects=0", "0 is not in 1.."),
            ("--admission-initializers-max-waiting-bytes=0", "want at least 1"),
            ("--admission-initializers-max-waiting-objects-per-user=0", "0 is not in 1.."),
            ("--admission-initializers-max-waiting-bytes-per-user=x", "want a number of bytes"),
            ("--admission-initializers-get-mode=nothing", "object, accepted"),
            ("--admission-webhook-client-timeout=31s", "must not be longer than 30s"),
            ("--admission-webhook-client-timeout=0s", "must be longer than 0"),
            ("--admission-webhook-max-response-bytes=0", "want at least 1"),
            ("--admission-webhook-max-response-bytes=2Gi", "want at most 1Gi"),
            ("--admission-webhook-max-in-flight=0", "0 is not in 1.."),
            ("--write-timeout-ceiling=0s", "must be longer than 0"),
        ] {
            let error = flags(&[flag]).unwrap_err().to_string();
            let name = flag.split('=').next().unwrap();
            assert!(error.contains(name) && error.contains(why), "{flag}: {error}");
        }
    }

    #[test]
    fn flags_that_contradict_each_other_are_named() {
        let fault = |args: &[&str]| match flags(args).unwrap().check_flag_conflicts() {
            Ok(()) => String::new(),
            Err(LoadFailure::Usage(faults)) => faults.join("; "),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(fault(&[]), "");
        assert_eq!(fault(&["--admission-sync-max-staleness=1s"]), "");
        let message = fault(&["--admission-sync-poll-interval=6s"]);
        assert!(message.starts_with("--admission-sync-poll-interval "), "{message}");
    }
}
