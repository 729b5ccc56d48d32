//! The authorization flags of a server, and what they ask for together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use authz_chain::AuthorizerType;
use config::authorization_config::CONFIG_FILE_NEEDS_GATE;

/// The authorizers of kube-apiserver without any flag.
pub const UPSTREAM_DEFAULT_MODES: &[AuthorizerType] = &[AuthorizerType::AlwaysAllow];

/// The authorizers of this project's server without any flag.
pub const DEFAULT_MODES: &[AuthorizerType] = &[AuthorizerType::Node, AuthorizerType::Rbac];

/// The version of the review that a webhook of flags is sent unless a flag says otherwise.
pub const DEFAULT_WEBHOOK_VERSION: &str = "v1beta1";

/// How long allowing answers are kept unless a flag says otherwise: five minutes in nanoseconds.
pub const DEFAULT_AUTHORIZED_TTL_NS: i64 = 300_000_000_000;

/// How long all other answers are kept unless a flag says otherwise: 30 seconds in nanoseconds.
pub const DEFAULT_UNAUTHORIZED_TTL_NS: i64 = 30_000_000_000;

/// How often a webhook of flags is called at most for one question.
pub const DEFAULT_RETRY_STEPS: i32 = 5;

/// What is logged when flags switch anonymous authentication off; see
/// [`Modes::switches_anonymous_off`].
pub const ANONYMOUS_SWITCHED_OFF: &str = "anonymous authentication is switched off, because \
    --authorization-mode allows everything (AlwaysAllow)";

const CONFIG_EXCLUDES_MODES: &str = "--authorization-config can not be specified when \
    --authorization-mode or --authorization-webhook-* flags are defined";

/// The flags as they were given. `None` is a flag that was not given at all; some rules tell that
/// from a flag with its default value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationOptions {
    /// `--authorization-config`.
    pub config: Option<PathBuf>,
    /// `--authorization-mode`: the values of all its occurrences, cut at commas.
    pub modes: Option<Vec<String>>,
    /// `--authorization-policy-file`.
    pub policy_file: Option<PathBuf>,
    /// `--authorization-webhook-config-file`.
    pub webhook_config_file: Option<PathBuf>,
    /// `--authorization-webhook-version`.
    pub webhook_version: Option<String>,
    /// `--authorization-webhook-cache-authorized-ttl` in nanoseconds, as Go counts them.
    pub webhook_authorized_ttl_ns: Option<i64>,
    /// `--authorization-webhook-cache-unauthorized-ttl` in nanoseconds, as Go counts them.
    pub webhook_unauthorized_ttl_ns: Option<i64>,
    /// How often a webhook is called at most for one question. No flag sets it; programs may.
    pub webhook_retry_steps: i32,
    /// The gate `StructuredAuthorizationConfiguration`.
    pub is_structured_enabled: bool,
}

impl Default for AuthorizationOptions {
    fn default() -> Self {
        Self {
            config: None,
            modes: None,
            policy_file: None,
            webhook_config_file: None,
            webhook_version: None,
            webhook_authorized_ttl_ns: None,
            webhook_unauthorized_ttl_ns: None,
            webhook_retry_steps: DEFAULT_RETRY_STEPS,
            is_structured_enabled: true,
        }
    }
}

/// Where the authorizers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// From a file, which is followed while the server runs.
    File(FilePlan),
    /// From flags, for good.
    Modes(Modes),
}

/// A configuration file, and what no file can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    /// The file.
    pub path: PathBuf,
    /// The policies of type ABAC. Whether they are needed shows when the file is read.
    pub policy_file: Option<PathBuf>,
}

/// What the flags without a configuration file say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    /// The types in order.
    pub modes: Vec<AuthorizerType>,
    /// Whether a flag names the types, or they are the default.
    pub is_explicit: bool,
    /// The policies of mode ABAC. Given exactly if the mode is.
    pub policy_file: Option<PathBuf>,
    /// The webhooks of mode Webhook. Given exactly if the mode is.
    pub webhook: Option<WebhookFlags>,
}

/// What the flags say about webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFlags {
    /// A kubeconfig, or a file of external hooks; perhaps relative to the working directory.
    pub config_file: PathBuf,
    /// The version of the review; that it exists shows when the client is built.
    pub version: String,
    /// How long allowing answers are kept; 0 and less: not at all.
    pub authorized_ttl_ns: i64,
    /// How long all other answers are kept; 0 and less: not at all.
    pub unauthorized_ttl_ns: i64,
}

impl Modes {
    /// Whether these flags switch anonymous authentication off: who allows everything should not
    /// also allow everybody. The same type in a configuration file does not.
    pub fn switches_anonymous_off(&self) -> bool {
        self.modes.contains(&AuthorizerType::AlwaysAllow)
    }
}

/// What the flags ask for; `default_modes` if they name neither a file nor a mode.
///
/// # Errors
/// Every rule that the flags break, in the words of Kubernetes. No file is read.
pub fn plan(
    options: &AuthorizationOptions,
    default_modes: &[AuthorizerType],
) -> Result<Plan, Vec<String>> {
    match given(options.config.as_deref()) {
        Some(path) => plan_file(options, path).map_err(|fault| vec![fault.to_owned()]),
        None => plan_modes(options, default_modes),
    }
}

/// An empty path is what `--flag=` gives, and means none.
fn given(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn plan_file(options: &AuthorizationOptions, path: &Path) -> Result<Plan, &'static str> {
    if !options.is_structured_enabled {
        return Err(CONFIG_FILE_NEEDS_GATE);
    }
    let is_legacy = options.modes.is_some()
        || options.webhook_config_file.is_some()
        || options.webhook_version.is_some()
        || options.webhook_authorized_ttl_ns.is_some()
        || options.webhook_unauthorized_ttl_ns.is_some();
    if is_legacy {
        return Err(CONFIG_EXCLUDES_MODES);
    }
    let policy_file = given(options.policy_file.as_deref()).map(Path::to_owned);
    Ok(Plan::File(FilePlan { path: path.to_owned(), policy_file }))
}

fn plan_modes(
    options: &AuthorizationOptions,
    default_modes: &[AuthorizerType],
) -> Result<Plan, Vec<String>> {
    // `--authorization-mode=` gives one empty text, and means the default.
    let explicit = options.modes.as_deref().unwrap_or_default();
    let explicit = if explicit.concat().is_empty() && explicit.len() < 2 { &[] } else { explicit };
    let defaults: Vec<String> = default_modes.iter().map(|mode| mode.name().to_owned()).collect();
    let is_explicit = !explicit.is_empty();
    let names = if is_explicit { explicit } else { &defaults };

    let policy_file = given(options.policy_file.as_deref());
    let webhook_file = given(options.webhook_config_file.as_deref());
    let (modes, mut faults) = known_modes(names, policy_file, webhook_file);
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
    Ok(Plan::Modes(Modes { modes, is_explicit, policy_file, webhook }))
}

/// The modes that exist, and what is wrong with each name.
fn known_modes(
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
        let Some(mode) = AuthorizerType::from_name(name) else {
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
        config_file: config_file.to_owned(),
        version: version.to_owned(),
        authorized_ttl_ns: options.webhook_authorized_ttl_ns.unwrap_or(DEFAULT_AUTHORIZED_TTL_NS),
        unauthorized_ttl_ns: options
            .webhook_unauthorized_ttl_ns
            .unwrap_or(DEFAULT_UNAUTHORIZED_TTL_NS),
    }
}
