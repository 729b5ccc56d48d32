//! Validates the decoded configuration and converts it to the configuration of a chain.
//!
//! Every rule runs, and every fault is reported, in the order of the file and then in Kubernetes'
//! order of rules.

use std::collections::BTreeSet;
use std::path::Path;

use authz_chain::{
    AuthorizerConfiguration, AuthorizerName, AuthorizerType, PluginConfiguration, PluginType,
    WebhookConfiguration,
};
use authz_webhook::ConditionCompiler;
use document::ValidationReport;
use document::hint::did_you_mean;
use field_errors::FieldPath;

use super::file_state::FileState;
use super::unvalidated_config;
use super::validate_authorization_webhook::convert_webhook;

/// Inputs of validation besides the file.
pub(super) struct ValidationOptions<'a> {
    pub(super) known_authorizer_types: BTreeSet<&'a str>,
    pub(super) plugin_authorizer_types: &'a [PluginType],
    pub(super) repeatable_authorizer_types: BTreeSet<&'a str>,
    pub(super) stat_file: &'a dyn Fn(&Path) -> FileState,
    /// Whether the feature gate of match conditions is enabled.
    pub(super) allows_match_conditions: bool,
}

/// Converts the authorizers. An authorizer that breaks a rule is left out and has a fault in the
/// report. A type that the rules accept and the chain does not implement is left out too.
pub(super) fn convert_authorizers(
    configuration: &unvalidated_config::UnvalidatedAuthorizationConfiguration,
    rules: &ValidationOptions<'_>,
    report: &mut ValidationReport,
) -> Vec<AuthorizerConfiguration> {
    let at = FieldPath::root("authorizers");
    if configuration.authorizers.is_empty() {
        let error = at.required("at least one authorization mode must be defined");
        report.add_fault_at_span(error, configuration.authorizers_span);
    }
    let mut seen = SeenAuthorizers::default();
    let entries = configuration.authorizers.iter().enumerate();
    entries
        .filter_map(|(idx, entry)| {
            convert_authorizer(&at.index(idx), entry, rules, &mut seen, report)
        })
        .collect()
}

/// The types and names of the authorizers converted so far, and the compiler that all authorizers
/// share.
#[derive(Default)]
struct SeenAuthorizers<'w> {
    seen_authorizer_types: BTreeSet<&'w str>,
    seen_authorizer_names: BTreeSet<&'w str>,
    condition_compiler: ConditionCompiler,
}

fn convert_authorizer<'w>(
    at: &FieldPath<'_>,
    entry: &'w unvalidated_config::UnvalidatedAuthorizer,
    rules: &ValidationOptions<'_>,
    seen: &mut SeenAuthorizers<'w>,
    report: &mut ValidationReport,
) -> Option<AuthorizerConfiguration> {
    let kind = entry.kind.value.as_str();
    let at_type = at.child("type");
    if kind.is_empty() {
        report.add_fault(at_type.required(""), &entry.kind, entry.span);
        return None;
    }
    let plugin_type = rules.plugin_authorizer_types.iter().find(|plugin| plugin.name() == kind);
    if plugin_type.is_none() && !rules.known_authorizer_types.contains(kind) {
        let plugins = rules.plugin_authorizer_types.iter().map(|plugin| plugin.name());
        let known: BTreeSet<&str> =
            rules.known_authorizer_types.iter().copied().chain(plugins).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let error = at_type.not_supported(kind, &known);
        report.add_fault_with_hint(error, &entry.kind, entry.span, did_you_mean(kind, &known));
        return None;
    }
    if !seen.seen_authorizer_types.insert(kind) && !rules.repeatable_authorizer_types.contains(kind)
    {
        report.add_fault(at_type.duplicate(kind), &entry.kind, entry.span);
        return None;
    }

    let name = convert_authorizer_name(at, entry, seen, report);
    let kind = AuthorizerType::from_type_name(kind);
    if kind == Some(AuthorizerType::Webhook) {
        let Some(webhook) = &entry.webhook else {
            let error = at.child("webhook").required("required when type=Webhook");
            report.add_fault_at_span(error, entry.span);
            return None;
        };
        let settings = convert_webhook(at, webhook, rules, &mut seen.condition_compiler, report);
        return Some(AuthorizerConfiguration::Webhook(Box::new(WebhookConfiguration {
            name: name?,
            webhook_settings: settings?,
        })));
    }
    if let Some(webhook) = &entry.webhook {
        let error =
            at.child("webhook").invalid("non-null", "may only be specified when type=Webhook");
        report.add_fault_at_span(error, webhook.span);
    }
    match plugin_type {
        Some(plugin_type) => Some(AuthorizerConfiguration::Plugin(PluginConfiguration {
            plugin_type: *plugin_type,
            name: name?,
        })),
        None => AuthorizerConfiguration::from_built_in_type(kind?),
    }
}

/// The name must be present, unique, and a DNS-1123 subdomain.
fn convert_authorizer_name<'w>(
    at: &FieldPath<'_>,
    entry: &'w unvalidated_config::UnvalidatedAuthorizer,
    seen: &mut SeenAuthorizers<'w>,
    report: &mut ValidationReport,
) -> Option<AuthorizerName> {
    let at = at.child("name");
    let name = entry.name.value.as_str();
    let is_new = seen.seen_authorizer_names.insert(name);
    if name.is_empty() {
        report.add_fault(at.required(""), &entry.name, entry.span);
        return None;
    }
    if !is_new {
        report.add_fault(at.duplicate(name), &entry.name, entry.span);
        return None;
    }
    match AuthorizerName::new(name) {
        Ok(name) => Some(name),
        Err(error) => {
            let tidy = name.to_lowercase().replace(['_', ' '], "-");
            let hint =
                AuthorizerName::new(&tidy).ok().map(|name| format!("did you mean `{name}`?"));
            let error = at.invalid(name, &error.to_string());
            report.add_fault_with_hint(error, &entry.name, entry.span, hint);
            None
        }
    }
}
