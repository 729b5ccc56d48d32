//! What is accepted and still deserves a word.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

use api_object::{Tree, name};
use go_compat::Url;
use x509_verify::CaBundle;

use super::kind::ConfigurationKind;
use super::registration::{Stored, is_raised_with_changes};
use super::{STATIC_SUFFIX, rules, static_suffix_detail};
use crate::client::ca_bundle;
use crate::exemption::{is_review, is_review_group, is_review_resource};
use crate::members::{object, objects, text, texts};

/// Something to tell the author of an accepted configuration. Displays as `<path>: <message>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Which kind of warning it is.
    pub cause: WarningCause,
    /// Where in the object.
    pub path: String,
    /// What about it.
    pub message: String,
}

/// The kinds of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarningCause {
    /// A rule names a resource that hooks never see.
    ExcludedResource,
    /// An entry of a rule is covered by another one, in an order that is accepted.
    OverlappingResources,
    /// A bundle of authorities can not be read, so that calls will fail.
    UnusableCaBundle,
    /// The server does not connect to the address of a webhook.
    RefusedAddress,
    /// Failures begin to count together with other changes.
    RaisedWithChanges,
    /// A constraint names an initializer that nobody registers.
    UnknownInitializer,
    /// The name of the object is reserved.
    ReservedName,
}

impl WarningCause {
    /// A stable name.
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

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

pub(super) fn find(kind: ConfigurationKind, new: &Tree, old: Option<&Tree>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if old.is_some() && name(new).ends_with(STATIC_SUFFIX) {
        warnings.push(Warning {
            cause: WarningCause::ReservedName,
            path: "metadata.name".to_owned(),
            message: static_suffix_detail(),
        });
    }
    let stored = old.map(|old| objects(old, kind.list())).unwrap_or_default();
    let stored = Stored::new(&stored);
    for (idx, entry) in objects(new, kind.list()).into_iter().enumerate() {
        let at = format!("{}[{idx}]", kind.list());
        if kind != ConfigurationKind::Initializer {
            find_excluded(entry, &at, &mut warnings);
        }
        match kind {
            ConfigurationKind::Initializer | ConfigurationKind::ExternalHook => {
                if is_raised_with_changes(entry, &stored) {
                    warnings.push(Warning {
                        cause: WarningCause::RaisedWithChanges,
                        path: at,
                        message: "failurePolicy raised to Fail together with clientConfig or rules"
                            .to_owned(),
                    });
                }
            }
            ConfigurationKind::Mutating | ConfigurationKind::Validating => {
                find_overlaps(entry, &at, &mut warnings);
                find_unusable_bundle(entry, &at, &mut warnings);
            }
        }
    }
    warnings
}

pub(super) fn find_refused_addresses(
    kind: ConfigurationKind,
    new: &Tree,
    refusal: &dyn Fn(IpAddr) -> Option<String>,
) -> Vec<Warning> {
    let hooks = objects(new, kind.list()).into_iter().enumerate();
    let refused = hooks.filter_map(|(idx, hook)| {
        let url = object(hook, "clientConfig").and_then(|config| text(config, "url"))?;
        let url = Url::parse(url).ok()?;
        let address: IpAddr = str::from_utf8(url.hostname()).ok()?.parse().ok()?;
        let refused = refusal(address)?;
        Some(Warning {
            cause: WarningCause::RefusedAddress,
            path: format!("{}[{idx}].clientConfig.url", kind.list()),
            message: format!(
                "webhooks may not be at a {refused} address; the server refuses every request that \
                 this webhook matches"
            ),
        })
    });
    refused.collect()
}

/// Rules that name reviews one by one; a wildcard is not meant for them.
fn find_excluded(hook: &Tree, at: &str, warnings: &mut Vec<Warning>) {
    for (idx, rule) in objects(hook, "rules").into_iter().enumerate() {
        let (groups, resources) = (texts(rule, "apiGroups"), texts(rule, "resources"));
        if groups.contains(&"*") || resources.contains(&"*") {
            continue;
        }
        // Few are left of each, however many a rule names.
        let groups = distinct(groups, &|group| is_review_group(group));
        let resources = distinct(resources, &|resource| is_review_resource(resource));
        for group in groups {
            for resource in resources.iter().filter(|resource| is_review(group, resource)) {
                warnings.push(Warning {
                    cause: WarningCause::ExcludedResource,
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

/// The items that are kept, each once, in their order.
fn distinct<'t>(items: Vec<&'t str>, is_kept: &dyn Fn(&str) -> bool) -> Vec<&'t str> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| is_kept(item) && seen.insert(*item)).collect()
}

fn find_overlaps(hook: &Tree, at: &str, warnings: &mut Vec<Warning>) {
    for (rule_idx, rule) in objects(hook, "rules").into_iter().enumerate() {
        for (idx, entry, wider) in rules::overlaps(&texts(rule, "resources")) {
            warnings.push(Warning {
                cause: WarningCause::OverlappingResources,
                path: format!("{at}.rules[{rule_idx}].resources[{idx}]"),
                message: format!("'{entry}' has no effect beside '{wider}'"),
            });
        }
    }
}

fn find_unusable_bundle(hook: &Tree, at: &str, warnings: &mut Vec<Warning>) {
    let bundle = object(hook, "clientConfig").and_then(ca_bundle);
    if let Some(Err(error)) = bundle.map(|bundle| CaBundle::from_pem(&bundle)) {
        warnings.push(Warning {
            cause: WarningCause::UnusableCaBundle,
            path: format!("{at}.clientConfig.caBundle"),
            message: format!("{error}; calls of this webhook will fail"),
        });
    }
}
