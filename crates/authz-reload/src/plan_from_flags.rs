//! The authorization flags of a server, and the plan that they make together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use authz_chain::AuthorizerType;
use config::authorization_config::CONFIG_FILE_WITHOUT_GATE_ERROR;

/// The authorizers of kube-apiserver if no flag names any.
pub const UPSTREAM_DEFAULT_MODES: &[AuthorizerType] = &[AuthorizerType::AlwaysAllow];

/// The authorizers of Portcullis if no flag names any.
pub const DEFAULT_MODES: &[AuthorizerType] = &[AuthorizerType::Node, AuthorizerType::Rbac];

/// The default of `--authorization-webhook-version`.
pub const DEFAULT_WEBHOOK_VERSION: &str = "v1beta1";

/// The default of `--authorization-webhook-cache-authorized-ttl`: five minutes in nanoseconds.
pub const DEFAULT_AUTHORIZED_TTL_NS: i64 = 300_000_000_000;

/// The default of `--authorization-webhook-cache-unauthorized-ttl`: 30 seconds in nanoseconds.
pub const DEFAULT_UNAUTHORIZED_TTL_NS: i64 = 30_000_000_000;

/// The default maximum number of calls of one webhook for one request.
pub const DEFAULT_RETRY_STEPS: i32 = 5;

/// The log message when flags disable anonymous authentication; see
/// [`AuthorizationModes::disables_anonymous_auth`].
pub const ANONYMOUS_AUTH_DISABLED: &str = "anonymous authentication is disabled, because \
    --authorization-mode contains AlwaysAllow, which allows every request";

const CONFIG_EXCLUDES_MODES: &str = "--authorization-config cannot be specified when \
    --authorization-mode or --authorization-webhook-* flags are defined";

/// The flags as the user gave them. `None` is a flag that is absent; some rules distinguish an absent flag from one with
/// its default value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationOptions {
    /// The value of `--authorization-config`.
    pub config_file: Option<PathBuf>,
    /// The values of all occurrences of `--authorization-mode`, split at commas.
    pub modes: Option<Vec<String>>,
    /// The value of `--authorization-policy-file`.
    pub abac_policy_file: Option<PathBuf>,
    /// The value of `--authorization-webhook-config-file`.
    pub webhook_config_file: Option<PathBuf>,
    /// The value of `--authorization-webhook-version`.
    pub webhook_version: Option<String>,
    /// The value of `--authorization-webhook-cache-authorized-ttl` in nanoseconds; it may be negative.
    pub webhook_authorized_ttl_ns: Option<i64>,
    /// The value of `--authorization-webhook-cache-unauthorized-ttl` in nanoseconds; it may be negative.
    pub webhook_unauthorized_ttl_ns: Option<i64>,
    /// The maximum number of calls of one webhook for one request. No flag sets it, but a program may.
    pub webhook_retry_steps: i32,
    /// Whether the feature gate `StructuredAuthorizationConfiguration` is on.
    pub is_structured_config_enabled: bool,
}

impl Default for AuthorizationOptions {
    fn default() -> Self {
        Self {
            config_file: None,
            modes: None,
            abac_policy_file: None,
            webhook_config_file: None,
            webhook_version: None,
            webhook_authorized_ttl_ns: None,
            webhook_unauthorized_ttl_ns: None,
            webhook_retry_steps: DEFAULT_RETRY_STEPS,
            is_structured_config_enabled: true,
        }
    }
}

/// The source of the authorizers that the flags choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationPlan {
    /// A configuration file, which is reloaded while the server runs.
    File(ConfigFilePlan),
    /// The other flags, which do not change while the server runs.
    Modes(AuthorizationModes),
}

/// A configuration file, and the flag that no configuration file can replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFilePlan {
    /// The path of the configuration file.
    pub path: PathBuf,
    /// The ABAC policy file, which a configuration with type ABAC needs.
    pub abac_policy_file: Option<PathBuf>,
}

/// The flags of a server without a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationModes {
    /// The authorizer types in order.
    pub modes: Vec<AuthorizerType>,
    /// Whether a flag names the modes. Otherwise they are the default.
    pub are_modes_explicit: bool,
    /// The ABAC policy file; it is present if and only if `modes` contains ABAC.
    pub abac_policy_file: Option<PathBuf>,
    /// The webhook flags; they are present if and only if `modes` contains Webhook.
    pub webhook_flags: Option<WebhookFlags>,
}

/// The flags that configure the webhooks of mode Webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFlags {
    /// A kubeconfig, or a file of external hooks. The path may be relative to the working directory.
    pub webhook_config_file: PathBuf,
    /// The version of SubjectAccessReview. The conversion to a configuration checks it.
    pub version: String,
    /// The lifetime of cached answers that allow a request. A value of 0 or less disables the cache.
    pub authorized_ttl_ns: i64,
    /// The lifetime of all other cached answers. A value of 0 or less disables the cache.
    pub unauthorized_ttl_ns: i64,
}

impl AuthorizationModes {
    /// Reports whether these flags disable anonymous authentication. Mode AlwaysAllow does, so that a server that
    /// allows every request does not also accept every client. The same type in a configuration file does not.
    pub fn disables_anonymous_auth(&self) -> bool {
        self.modes.contains(&AuthorizerType::AlwaysAllow)
    }
}

/// Makes a plan from the flags. It uses `default_modes` if the flags name neither a file nor a mode. It reads no file.
///
/// # Errors
/// Every rule that the flags violate, in Kubernetes' words.
pub fn plan_from_flags(
    options: &AuthorizationOptions,
    default_modes: &[AuthorizerType],
) -> Result<AuthorizationPlan, Vec<String>> {
    match non_empty_path(options.config_file.as_deref()) {
        Some(path) => plan_from_config_file(options, path).map_err(|fault| vec![fault.to_owned()]),
        None => plan_from_modes(options, default_modes),
    }
}

/// Returns `None` for an empty path, which `--flag=` gives.
fn non_empty_path(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn plan_from_config_file(
    options: &AuthorizationOptions,
    path: &Path,
) -> Result<AuthorizationPlan, &'static str> {
    if !options.is_structured_config_enabled {
        return Err(CONFIG_FILE_WITHOUT_GATE_ERROR);
    }
    let is_legacy = options.modes.is_some()
        || options.webhook_config_file.is_some()
        || options.webhook_version.is_some()
        || options.webhook_authorized_ttl_ns.is_some()
        || options.webhook_unauthorized_ttl_ns.is_some();
    if is_legacy {
        return Err(CONFIG_EXCLUDES_MODES);
    }
    let policy_file = non_empty_path(options.abac_policy_file.as_deref()).map(Path::to_owned);
    Ok(AuthorizationPlan::File(ConfigFilePlan {
        path: path.to_owned(),
        abac_policy_file: policy_file,
    }))
}

fn plan_from_modes(
    options: &AuthorizationOptions,
    default_modes: &[AuthorizerType],
) -> Result<AuthorizationPlan, Vec<String>> {
    // `--authorization-mode=` gives one empty value, which means the default.
    let explicit = options.modes.as_deref().unwrap_or_default();
    let explicit = if explicit.concat().is_empty() && explicit.len() < 2 { &[] } else { explicit };
    let defaults: Vec<String> = default_modes.iter().map(|mode| mode.name().to_owned()).collect();
    let are_modes_explicit = !explicit.is_empty();
    let names = if are_modes_explicit { explicit } else { &defaults };

    let policy_file = non_empty_path(options.abac_policy_file.as_deref());
    let webhook_file = non_empty_path(options.webhook_config_file.as_deref());
    let (modes, mut faults) = parse_modes(names, policy_file, webhook_file);
    if policy_file.is_some() && !modes.contains(&AuthorizerType::Abac) {
        faults.push("cannot specify --authorization-policy-file without mode ABAC".to_owned());
    }
    if webhook_file.is_some() && !modes.contains(&AuthorizerType::Webhook) {
        let fault = "cannot specify --authorization-webhook-config-file without mode Webhook";
        faults.push(fault.to_owned());
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        let list: Vec<String> = names.iter().map(|name| go_compat::quote(name)).collect();
        let list = list.join(" ");
        faults.push(format!("authorization-mode [{list}] has mode specified more than once"));
    }
    if options.webhook_retry_steps <= 0 {
        let steps = options.webhook_retry_steps;
        faults.push(format!(
            "number of webhook retry attempts must be greater than 0, but is: {steps}"
        ));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let webhook = webhook_file.map(|file| webhook_flags(options, file));
    let policy_file = policy_file.map(Path::to_owned);
    Ok(AuthorizationPlan::Modes(AuthorizationModes {
        modes,
        are_modes_explicit,
        abac_policy_file: policy_file,
        webhook_flags: webhook,
    }))
}

/// Parses the names of modes. Returns the valid modes and the faults.
fn parse_modes(
    names: &[String],
    policy_file: Option<&Path>,
    webhook_file: Option<&Path>,
) -> (Vec<AuthorizerType>, Vec<String>) {
    let mut faults = Vec::new();
    if names.is_empty() {
        faults.push("at least one authorization-mode must be passed".to_owned());
    }
    let mut modes = Vec::new();
    for name in names {
        let Some(mode) = AuthorizerType::from_type_name(name) else {
            let name = go_compat::quote(name);
            faults.push(format!("authorization-mode {name} is not a valid mode"));
            continue;
        };
        modes.push(mode);
        if mode == AuthorizerType::Abac && policy_file.is_none() {
            let fault = "authorization-mode ABAC's authorization policy file not passed";
            faults.push(fault.to_owned());
        }
        if mode == AuthorizerType::Webhook && webhook_file.is_none() {
            let fault = "authorization-mode Webhook's authorization config file not passed";
            faults.push(fault.to_owned());
        }
    }
    (modes, faults)
}

fn webhook_flags(options: &AuthorizationOptions, config_file: &Path) -> WebhookFlags {
    let version = options.webhook_version.as_deref().unwrap_or(DEFAULT_WEBHOOK_VERSION);
    WebhookFlags {
        webhook_config_file: config_file.to_owned(),
        version: version.to_owned(),
        authorized_ttl_ns: options.webhook_authorized_ttl_ns.unwrap_or(DEFAULT_AUTHORIZED_TTL_NS),
        unauthorized_ttl_ns: options
            .webhook_unauthorized_ttl_ns
            .unwrap_or(DEFAULT_UNAUTHORIZED_TTL_NS),
    }
}
