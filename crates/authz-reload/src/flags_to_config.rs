//! Converts legacy flags to the text of an equivalent configuration file.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authz_chain::{AuthorizerConfiguration, Configuration, WebhookConfiguration};
use authz_webhook::{CacheSettings, ConnectionInfo};

use crate::modes_to_configuration::{FLAG_WEBHOOK_NAME, FlagTranslationError};
use crate::plan_from_flags::{
    AuthorizationModes, DEFAULT_AUTHORIZED_TTL_NS, DEFAULT_UNAUTHORIZED_TTL_NS,
};

/// A configuration file that is equivalent to flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedConfig {
    /// The text of the file.
    pub config_yaml: String,
    /// The remaining differences and the steps to do by hand, one sentence each.
    pub differences_from_flags: Vec<String>,
}

/// The inputs of a conversion besides the flags.
#[derive(Debug, Clone, Copy)]
pub struct ConversionContext<'a> {
    /// The working directory of the server, from which relative paths start.
    pub base_directory: &'a Path,
    /// The names of the hooks, if the webhook file is a file of external hooks.
    pub hook_names: Option<&'a [String]>,
    /// Whether the flags enable anonymous authentication.
    pub is_anonymous_enabled: bool,
}

/// Converts the flags to a configuration file, and lists the differences that remain.
///
/// # Errors
/// The flags cannot be converted to a configuration. A server refuses to start with them, too.
pub fn convert_flags_to_config(
    modes: &AuthorizationModes,
    context: &ConversionContext<'_>,
) -> Result<ConvertedConfig, FlagTranslationError> {
    let configuration = modes.to_configuration(context.base_directory, context.hook_names)?;
    let files_by_hook = paths_of_split_hook_files(modes, context);
    let mut differences = list_flag_to_file_differences(modes, context);
    differences.extend(list_flag_to_file_webhook_differences(modes, context, &files_by_hook));
    Ok(ConvertedConfig {
        config_yaml: write_config_yaml(&configuration, &files_by_hook),
        differences_from_flags: differences,
    })
}

/// Returns a file for each hook by name if there are several, because `kubeConfigFile` takes a file with one hook.
fn paths_of_split_hook_files(
    modes: &AuthorizationModes,
    context: &ConversionContext<'_>,
) -> Vec<(String, PathBuf)> {
    let (Some(flags), Some(hooks)) = (&modes.webhook_flags, context.hook_names) else {
        return Vec::new();
    };
    if hooks.len() < 2 {
        return Vec::new();
    }
    let file = flags.absolute_webhook_config_file(context.base_directory);
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    hooks
        .iter()
        .map(|hook| (hook.clone(), file.with_file_name(format!("{stem}.{hook}.yaml"))))
        .collect()
}

fn list_flag_to_file_differences(
    modes: &AuthorizationModes,
    context: &ConversionContext<'_>,
) -> Vec<String> {
    let mut differences = vec![
        "The server reads flags once, but watches a configuration file: changes take effect while it runs, \
         and it exposes reload metrics."
            .to_owned(),
    ];
    if !modes.are_modes_explicit {
        let names: Vec<&str> = modes.modes.iter().map(|mode| mode.name()).collect();
        differences.push(format!(
            "No flag names the authorizers, so the file lists the current default of this server, {}. \
             It does not change if a later version has another default.",
            names.join(",")
        ));
    }
    if let Some(policy) = &modes.abac_policy_file {
        differences.push(format!(
            "Keep --authorization-policy-file={}: a configuration file cannot name the ABAC policy \
             file.",
            policy.display()
        ));
    }
    if modes.disables_anonymous_auth() && context.is_anonymous_enabled {
        differences.push(
            "Mode AlwaysAllow disables anonymous authentication, but type AlwaysAllow in a file \
             does not: add --anonymous-auth=false, or the server allows every request of every client."
                .to_owned(),
        );
    }
    differences
}

fn list_flag_to_file_webhook_differences(
    modes: &AuthorizationModes,
    context: &ConversionContext<'_>,
    files_by_hook: &[(String, PathBuf)],
) -> Vec<String> {
    let Some(flags) = &modes.webhook_flags else { return Vec::new() };
    let mut differences = vec![format!(
        "A file has no default for subjectAccessReviewVersion, timeout and failurePolicy, so it \
         contains the values of the flags ({}, 30s, NoOpinion).",
        flags.version
    )];
    let absolute = flags.absolute_webhook_config_file(context.base_directory);
    if absolute != flags.webhook_config_file {
        differences.push(format!(
            "kubeConfigFile must be an absolute path: {} becomes {}.",
            flags.webhook_config_file.display(),
            absolute.display()
        ));
    }
    for (what, ttl_ns) in
        [("authorized", flags.authorized_ttl_ns), ("unauthorized", flags.unauthorized_ttl_ns)]
    {
        if ttl_ns <= 0 {
            let CacheConfigFieldNames {
                ttl_field_name: ttl_field,
                enabled_field_name: enabled_field,
                ..
            } = cache_field_names(what == "authorized");
            differences.push(format!(
                "{ttl_field} must be positive: --authorization-webhook-cache-{what}-ttl={} \
                 becomes {enabled_field}: false, which also disables the cache.",
                go_compat::format_duration(ttl_ns)
            ));
        }
    }
    if !files_by_hook.is_empty() {
        let files: Vec<String> = files_by_hook
            .iter()
            .map(|(hook, file)| format!("{} ({hook})", file.display()))
            .collect();
        differences.push(format!(
            "{} has {} hooks, but kubeConfigFile takes a file with exactly one: split it into {} \
             before you start the server.",
            absolute.display(),
            files_by_hook.len(),
            files.join(", ")
        ));
    }
    if context.hook_names.is_none() {
        differences.push(format!(
            "The webhook keeps the name {FLAG_WEBHOOK_NAME}, which its metrics have as a label; you may \
             choose another name in the file."
        ));
    }
    differences
}

/// The fields of a configuration file for one of the two caches.
struct CacheConfigFieldNames {
    ttl_field_name: &'static str,
    enabled_field_name: &'static str,
    default_ttl_ns: i64,
}

fn cache_field_names(is_authorized: bool) -> CacheConfigFieldNames {
    match is_authorized {
        true => CacheConfigFieldNames {
            ttl_field_name: "authorizedTTL",
            enabled_field_name: "cacheAuthorizedRequests",
            default_ttl_ns: DEFAULT_AUTHORIZED_TTL_NS,
        },
        false => CacheConfigFieldNames {
            ttl_field_name: "unauthorizedTTL",
            enabled_field_name: "cacheUnauthorizedRequests",
            default_ttl_ns: DEFAULT_UNAUTHORIZED_TTL_NS,
        },
    }
}

fn write_config_yaml(configuration: &Configuration, files_by_hook: &[(String, PathBuf)]) -> String {
    let mut text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
                    authorizers:\n"
        .to_owned();
    for authorizer in configuration.authorizers() {
        let (kind, name) = (authorizer.authorizer_type().name(), authorizer.name());
        write_yaml_line(&mut text, format_args!("- type: {kind}"));
        write_yaml_line(&mut text, format_args!("  name: {}", yaml_scalar(name)));
        if let AuthorizerConfiguration::Webhook(webhook) = authorizer {
            write_webhook_yaml(&mut text, webhook, files_by_hook);
        }
    }
    text
}

fn write_webhook_yaml(
    text: &mut String,
    webhook: &WebhookConfiguration,
    files_by_hook: &[(String, PathBuf)],
) {
    let settings = &webhook.webhook_settings;
    let own_file = files_by_hook.iter().find(|(hook, _)| hook == webhook.name.as_str());
    let path = match (&settings.connection_info, own_file) {
        (_, Some((_, path))) => path.to_string_lossy().into_owned(),
        (ConnectionInfo::KubeConfigFile(path), None) => path.as_str().to_owned(),
        (ConnectionInfo::InClusterConfig, None) => String::new(),
    };
    write_yaml_line(text, format_args!("  webhook:"));
    write_yaml_line(text, format_args!("    timeout: {}", format_duration(settings.timeout.get())));
    write_cache_yaml(text, settings.authorized_cache_settings, &cache_field_names(true));
    write_cache_yaml(text, settings.unauthorized_cache_settings, &cache_field_names(false));
    let version = settings.subject_access_review_version.name();
    write_yaml_line(text, format_args!("    subjectAccessReviewVersion: {version}"));
    write_yaml_line(text, format_args!("    failurePolicy: {}", settings.failure_policy.name()));
    write_yaml_line(text, format_args!("    connectionInfo:"));
    write_yaml_line(
        text,
        format_args!("      type: {}", settings.connection_info.connection_type_name()),
    );
    write_yaml_line(text, format_args!("      kubeConfigFile: {}", yaml_scalar(&path)));
}

/// Writes the fields of a cache. A disabled cache gets the default lifetime, because a file requires a positive one.
fn write_cache_yaml(text: &mut String, caching: CacheSettings, fields: &CacheConfigFieldNames) {
    let CacheConfigFieldNames {
        ttl_field_name: ttl_field,
        enabled_field_name: enabled_field,
        default_ttl_ns,
    } = fields;
    match caching.effective_ttl() {
        Some(ttl) => {
            write_yaml_line(text, format_args!("    {ttl_field}: {}", format_duration(ttl)));
        }
        None => {
            let ttl = go_compat::format_duration(*default_ttl_ns);
            write_yaml_line(text, format_args!("    {ttl_field}: {ttl}"));
            write_yaml_line(text, format_args!("    {enabled_field}: false"));
        }
    }
}

fn write_yaml_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

/// Formats a duration in Go's notation.
fn format_duration(duration: Duration) -> String {
    go_compat::format_duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

/// Formats a text as a YAML scalar: plain if YAML reads it as text, otherwise in double quotes.
fn yaml_scalar(text: &str) -> String {
    let is_plain_char = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let begins_plainly = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '/');
    let is_word = NON_TEXT_WORDS.contains(&text.to_ascii_lowercase().as_str());
    if begins_plainly && !is_word && text.chars().all(is_plain_char) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            ' '..='~' => quoted.push(c),
            _ => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Plain texts that YAML does not read as text.
const NON_TEXT_WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
