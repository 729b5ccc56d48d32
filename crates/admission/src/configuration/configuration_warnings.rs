//! Warnings about valid configurations.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

use api_object::{Tree, name};
use go_compat::Url;
use x509_verify::CaBundle;

use super::configuration_kind::ConfigurationKind;
use super::require_fail_open_registration::{StoredEntriesByName, is_raised_to_fail_with_changes};
use super::{STATIC_MANIFEST_SUFFIX, check_rules, reserved_suffix_detail};
use crate::client_config::decode_ca_bundle;
use crate::exemption::{is_review_group, is_review_group_and_resource, is_review_resource};
use crate::json_members::{read_object, read_objects, read_string, read_strings};

/// A warning about a valid configuration. Displays as `<path>: <message>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationWarning {
    /// The kind of warning.
    pub warning_kind: WarningKind,
    /// The path of the field.
    pub path: String,
    /// The text for the client.
    pub message: String,
}

/// The kinds of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// A rule names a resource that hooks never see.
    ExcludedResource,
    /// An entry of a rule is covered by another one, in an order that is accepted.
    OverlappingResources,
    /// The CA bundle holds no usable certificate, so calls will fail.
    UnusableCaBundle,
    /// The server refuses to connect to the address of a webhook.
    RefusedAddress,
    /// An update raises the failure policy to `Fail` and changes the client configuration or rules at the same time.
    RaisedWithChanges,
    /// An ordering constraint names an initializer that no configuration registers.
    UnknownInitializer,
    /// The name of the object is reserved for static manifests.
    ReservedName,
}

impl WarningKind {
    /// The stable name of the cause, for machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExcludedResource => "excluded-resource",
            Self::OverlappingResources => "overlapping-resources",
            Self::UnusableCaBundle => "unusable-ca-bundle",
            Self::RefusedAddress => "refused-address",
            Self::RaisedWithChanges => "raised-with-changes",
            Self::UnknownInitializer => "unknown-initializer",
            Self::ReservedName => "reserved-name",
        }
    }
}

impl fmt::Display for ConfigurationWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

pub(super) fn find_configuration_warnings(
    kind: ConfigurationKind,
    new: &Tree,
    old: Option<&Tree>,
) -> Vec<ConfigurationWarning> {
    let mut warnings = Vec::new();
    if old.is_some() && name(new).ends_with(STATIC_MANIFEST_SUFFIX) {
        warnings.push(ConfigurationWarning {
            warning_kind: WarningKind::ReservedName,
            path: "metadata.name".to_owned(),
            message: reserved_suffix_detail(),
        });
    }
    let stored = old.map(|old| read_objects(old, kind.entries_member_name())).unwrap_or_default();
    let stored = StoredEntriesByName::new(&stored);
    for (idx, entry) in read_objects(new, kind.entries_member_name()).into_iter().enumerate() {
        let at = format!("{}[{idx}]", kind.entries_member_name());
        if kind != ConfigurationKind::Initializer {
            warn_of_rules_for_reviews(entry, &at, &mut warnings);
        }
        match kind {
            ConfigurationKind::Initializer | ConfigurationKind::ExternalHook => {
                if is_raised_to_fail_with_changes(entry, &stored) {
                    warnings.push(ConfigurationWarning {
                        warning_kind: WarningKind::RaisedWithChanges,
                        path: at,
                        message: "failurePolicy raised to Fail together with clientConfig or rules"
                            .to_owned(),
                    });
                }
            }
            ConfigurationKind::Mutating | ConfigurationKind::Validating => {
                warn_of_overlapping_resources(entry, &at, &mut warnings);
                warn_of_unusable_ca_bundle(entry, &at, &mut warnings);
            }
        }
    }
    warnings
}

pub(super) fn warn_of_refused_addresses(
    kind: ConfigurationKind,
    new: &Tree,
    refusal: &dyn Fn(IpAddr) -> Option<String>,
) -> Vec<ConfigurationWarning> {
    let hooks = read_objects(new, kind.entries_member_name()).into_iter().enumerate();
    let refused = hooks.filter_map(|(idx, hook)| {
        let url =
            read_object(hook, "clientConfig").and_then(|config| read_string(config, "url"))?;
        let url = Url::parse(url).ok()?;
        let address: IpAddr = str::from_utf8(url.hostname()).ok()?.parse().ok()?;
        let refused = refusal(address)?;
        Some(ConfigurationWarning {
            warning_kind: WarningKind::RefusedAddress,
            path: format!("{}[{idx}].clientConfig.url", kind.entries_member_name()),
            message: format!(
                "webhooks may not be at a {refused} address; the server refuses every request that \
                 this webhook matches"
            ),
        })
    });
    refused.collect()
}

/// Warns of rules that name review resources, which hooks never see. A wildcard gets no warning.
fn warn_of_rules_for_reviews(hook: &Tree, at: &str, warnings: &mut Vec<ConfigurationWarning>) {
    for (idx, rule) in read_objects(hook, "rules").into_iter().enumerate() {
        let (groups, resources) =
            (read_strings(rule, "apiGroups"), read_strings(rule, "resources"));
        if groups.contains(&"*") || resources.contains(&"*") {
            continue;
        }
        // Few distinct review groups and resources exist, however many entries a rule has.
        let groups = distinct_items(groups, &|group| is_review_group(group));
        let resources = distinct_items(resources, &|resource| is_review_resource(resource));
        for group in groups {
            for resource in
                resources.iter().filter(|resource| is_review_group_and_resource(group, resource))
            {
                warnings.push(ConfigurationWarning {
                    warning_kind: WarningKind::ExcludedResource,
                    path: format!("{at}.rules[{idx}]"),
                    message: format!(
                        "{resource}.{group} is excluded from admission webhooks; this rule will have \
                         no effect"
                    ),
                });
            }
        }
    }
}

/// Returns the distinct items for which `is_kept` is true, in their order.
fn distinct_items<'t>(items: Vec<&'t str>, is_kept: &dyn Fn(&str) -> bool) -> Vec<&'t str> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| is_kept(item) && seen.insert(*item)).collect()
}

fn warn_of_overlapping_resources(hook: &Tree, at: &str, warnings: &mut Vec<ConfigurationWarning>) {
    for (rule_idx, rule) in read_objects(hook, "rules").into_iter().enumerate() {
        for (idx, entry, wider) in
            check_rules::find_covered_resources(&read_strings(rule, "resources"))
        {
            warnings.push(ConfigurationWarning {
                warning_kind: WarningKind::OverlappingResources,
                path: format!("{at}.rules[{rule_idx}].resources[{idx}]"),
                message: format!("'{entry}' has no effect beside '{wider}'"),
            });
        }
    }
}

fn warn_of_unusable_ca_bundle(hook: &Tree, at: &str, warnings: &mut Vec<ConfigurationWarning>) {
    let bundle = read_object(hook, "clientConfig").and_then(decode_ca_bundle);
    if let Some(Err(error)) = bundle.map(|bundle| CaBundle::from_pem(&bundle)) {
        warnings.push(ConfigurationWarning {
            warning_kind: WarningKind::UnusableCaBundle,
            path: format!("{at}.clientConfig.caBundle"),
            message: format!("{error}; calls of this webhook will fail"),
        });
    }
}
