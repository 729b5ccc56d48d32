//! From legacy flags to the text of an equivalent configuration file.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authz_chain::{Authorizer, Configuration, Webhook};
use authz_webhook::{Caching, Connection};

use crate::flags::{DEFAULT_AUTHORIZED_TTL_NS, DEFAULT_UNAUTHORIZED_TTL_NS, Modes};
use crate::translate::{TranslateError, WEBHOOK_OF_FLAGS};

/// A configuration file that means what flags mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The file.
    pub yaml: String,
    /// What is not the same, or has to be done by hand: one sentence each.
    pub differences: Vec<String>,
}

/// What a conversion depends on besides the flags.
#[derive(Debug, Clone, Copy)]
pub struct ConvertContext<'a> {
    /// Where relative paths begin: the working directory of the server.
    pub directory: &'a Path,
    /// The names of the hooks if the file of the webhooks is a file of external hooks.
    pub hooks: Option<&'a [String]>,
    /// Whether the server is asked to authenticate the anonymous user.
    pub is_anonymous_enabled: bool,
}

/// The file that means what the flags mean, and what differs nevertheless.
///
/// # Errors
/// The flags mean no configuration, so that no server starts with them either.
pub fn convert(modes: &Modes, context: &ConvertContext<'_>) -> Result<Converted, TranslateError> {
    let configuration = modes.configuration(context.directory, context.hooks)?;
    let split = split_files(modes, context);
    let mut differences = general_differences(modes, context);
    differences.extend(webhook_differences(modes, context, &split));
    Ok(Converted { yaml: yaml(&configuration, &split), differences })
}

/// One file for each of several hooks, with the name of the hook; else nothing.
fn split_files(modes: &Modes, context: &ConvertContext<'_>) -> Vec<(String, PathBuf)> {
    let (Some(flags), Some(hooks)) = (&modes.webhook, context.hooks) else { return Vec::new() };
    if hooks.len() < 2 {
        return Vec::new();
    }
    let file = flags.absolute_config_file(context.directory);
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    hooks
        .iter()
        .map(|hook| (hook.clone(), file.with_file_name(format!("{stem}.{hook}.yaml"))))
        .collect()
}

fn general_differences(modes: &Modes, context: &ConvertContext<'_>) -> Vec<String> {
    let mut differences = vec![
        "A configuration file is followed: changes take effect while the server runs, and the \
         reload metrics appear; flags are read once."
            .to_owned(),
    ];
    if !modes.is_explicit {
        let names: Vec<&str> = modes.modes.iter().map(|mode| mode.name()).collect();
        differences.push(format!(
            "No flag names the authorizers: the file lists the default of this server, {}, and no \
             longer follows it.",
            names.join(",")
        ));
    }
    if let Some(policy) = &modes.policy_file {
        differences.push(format!(
            "Keep --authorization-policy-file={}: a configuration file can not name the policies \
             of type ABAC.",
            policy.display()
        ));
    }
    if modes.switches_anonymous_off() && context.is_anonymous_enabled {
        differences.push(
            "Mode AlwaysAllow switches anonymous authentication off, type AlwaysAllow in a file \
             does not: add --anonymous-auth=false, or everybody is allowed everything."
                .to_owned(),
        );
    }
    differences
}

fn webhook_differences(
    modes: &Modes,
    context: &ConvertContext<'_>,
    split: &[(String, PathBuf)],
) -> Vec<String> {
    let Some(flags) = &modes.webhook else { return Vec::new() };
    let mut differences = vec![format!(
        "A file has no default for subjectAccessReviewVersion, timeout and failurePolicy: the \
         values of the flags ({}, 30s, NoOpinion) are written out.",
        flags.version
    )];
    let absolute = flags.absolute_config_file(context.directory);
    if absolute != flags.config_file {
        differences.push(format!(
            "kubeConfigFile has to be absolute: {} becomes {}.",
            flags.config_file.display(),
            absolute.display()
        ));
    }
    for (what, ttl_ns) in
        [("authorized", flags.authorized_ttl_ns), ("unauthorized", flags.unauthorized_ttl_ns)]
    {
        if ttl_ns <= 0 {
            let Kept { ttl_field, switch, .. } = kept(what == "authorized");
            differences.push(format!(
                "{ttl_field} has to be positive: --authorization-webhook-cache-{what}-ttl={} \
                 becomes {switch}: false, which keeps no answer either.",
                go_compat::format_duration(ttl_ns)
            ));
        }
    }
    if !split.is_empty() {
        let files: Vec<String> =
            split.iter().map(|(hook, file)| format!("{} ({hook})", file.display())).collect();
        differences.push(format!(
            "{} has {} hooks, and kubeConfigFile takes a file of exactly one: split it into {} \
             before the server starts.",
            absolute.display(),
            split.len(),
            files.join(", ")
        ));
    }
    if context.hooks.is_none() {
        differences.push(format!(
            "The webhook keeps the name {WEBHOOK_OF_FLAGS}, under which its metrics are known; a \
             file may choose another one."
        ));
    }
    differences
}

/// How a file says for how long answers are kept.
struct Kept {
    ttl_field: &'static str,
    switch: &'static str,
    default_ttl_ns: i64,
}

fn kept(is_authorized: bool) -> Kept {
    match is_authorized {
        true => Kept {
            ttl_field: "authorizedTTL",
            switch: "cacheAuthorizedRequests",
            default_ttl_ns: DEFAULT_AUTHORIZED_TTL_NS,
        },
        false => Kept {
            ttl_field: "unauthorizedTTL",
            switch: "cacheUnauthorizedRequests",
            default_ttl_ns: DEFAULT_UNAUTHORIZED_TTL_NS,
        },
    }
}

fn yaml(configuration: &Configuration, split: &[(String, PathBuf)]) -> String {
    let mut text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
                    authorizers:\n"
        .to_owned();
    for authorizer in configuration.authorizers() {
        let (kind, name) = (authorizer.authorizer_type().name(), authorizer.name());
        line(&mut text, format_args!("- type: {kind}"));
        line(&mut text, format_args!("  name: {}", scalar(name)));
        if let Authorizer::Webhook(webhook) = authorizer {
            write_webhook(&mut text, webhook, split);
        }
    }
    text
}

fn write_webhook(text: &mut String, webhook: &Webhook, split: &[(String, PathBuf)]) {
    let settings = &webhook.settings;
    let own_file = split.iter().find(|(hook, _)| hook == webhook.name.as_str());
    let path = match (&settings.connection, own_file) {
        (_, Some((_, path))) => path.to_string_lossy().into_owned(),
        (Connection::KubeConfigFile(path), None) => path.as_str().to_owned(),
        (Connection::InClusterConfig, None) => String::new(),
    };
    line(text, format_args!("  webhook:"));
    line(text, format_args!("    timeout: {}", duration(settings.timeout.get())));
    write_caching(text, settings.authorized_caching, &kept(true));
    write_caching(text, settings.unauthorized_caching, &kept(false));
    let version = settings.subject_access_review_version.name();
    line(text, format_args!("    subjectAccessReviewVersion: {version}"));
    line(text, format_args!("    failurePolicy: {}", settings.failure_policy.name()));
    line(text, format_args!("    connectionInfo:"));
    line(text, format_args!("      type: {}", settings.connection.type_name()));
    line(text, format_args!("      kubeConfigFile: {}", scalar(&path)));
}

/// A cache that keeps nothing is written with the default time, for a file needs a positive one.
fn write_caching(text: &mut String, caching: Caching, kept: &Kept) {
    let Kept { ttl_field, switch, default_ttl_ns } = kept;
    match caching.lifetime() {
        Some(ttl) => {
            line(text, format_args!("    {ttl_field}: {}", duration(ttl)));
        }
        None => {
            let ttl = go_compat::format_duration(*default_ttl_ns);
            line(text, format_args!("    {ttl_field}: {ttl}"));
            line(text, format_args!("    {switch}: false"));
        }
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a text does not fail.
    let _ = writeln!(text, "{line}");
}

/// Go's text of a duration; none is longer than Go can express.
fn duration(duration: Duration) -> String {
    go_compat::format_duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

/// A text as YAML: plain if it can not be mistaken for anything else, else in double quotes.
fn scalar(text: &str) -> String {
    let is_plain_char = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let begins_plainly = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '/');
    let is_word = AMBIGUOUS.contains(&text.to_ascii_lowercase().as_str());
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

/// Plain texts that YAML reads as something else.
const AMBIGUOUS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
