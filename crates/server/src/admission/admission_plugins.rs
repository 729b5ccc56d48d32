//! The built-in admission plugins, under the names that they have in Kubernetes.

use std::fmt;

/// A built-in check or step of admission that an administrator can name in a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionPlugin {
    /// Refuses new objects in namespaces that do not exist or are terminating.
    NamespaceLifecycle,
    /// Restricts what a node may write.
    NodeRestriction,
    /// Adds a taint to each new node, which a controller removes when the node is ready.
    TaintNodesByCondition,
    /// Requires permissions of users who change owner references.
    OwnerReferencesPermissionEnforcement,
    /// Requires the permission to `approve` for a signer.
    CertificateApproval,
    /// Requires the permission to `sign` for a signer.
    CertificateSigning,
    /// Requires the permission to `attest` for a signer.
    ClusterTrustBundleAttest,
    /// Refuses requests for client certificates of superusers.
    CertificateSubjectRestriction,
    /// Calls the mutating hooks.
    MutatingAdmissionWebhook,
    /// Calls the validating hooks.
    ValidatingAdmissionWebhook,
}

/// The admission plugins that are enabled. All of them are by default.
///
/// In Kubernetes NodeRestriction and OwnerReferencesPermissionEnforcement are off by default. Here they are on,
/// because without them a stolen node credential reads every secret, and a user deletes objects of others
/// through the garbage collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdmissionPlugins {
    disabled_plugin_bits: u16,
}

/// Why the flags of admission plugins are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionPluginsError {
    /// The server has no plugin of this name.
    #[error(
        "{flag}: plugin {} is unknown; this server has {}",
        go_compat::quote(name),
        AdmissionPlugin::plugin_names().join(", ")
    )]
    Unknown {
        /// The flag that names the plugin.
        flag: &'static str,
        /// The name in the flag.
        name: String,
    },
    /// A plugin is to be enabled and disabled.
    #[error("{} is in {ENABLE_FLAG} and in {DISABLE_FLAG}", .0)]
    Contradiction(AdmissionPlugin),
    /// The server relies on the plugin.
    #[error("{DISABLE_FLAG}: {plugin} cannot be disabled: {why}")]
    Required {
        /// The plugin that was to be disabled.
        plugin: AdmissionPlugin,
        /// The reason why the server relies on the plugin.
        why: &'static str,
    },
}

const ENABLE_FLAG: &str = "--enable-admission-plugins";
const DISABLE_FLAG: &str = "--disable-admission-plugins";

impl AdmissionPlugin {
    /// All plugins, in the order in which they run.
    pub const ALL: [Self; 10] = [
        Self::NamespaceLifecycle,
        Self::NodeRestriction,
        Self::TaintNodesByCondition,
        Self::OwnerReferencesPermissionEnforcement,
        Self::CertificateApproval,
        Self::CertificateSigning,
        Self::ClusterTrustBundleAttest,
        Self::CertificateSubjectRestriction,
        Self::MutatingAdmissionWebhook,
        Self::ValidatingAdmissionWebhook,
    ];

    /// The name of the plugin in Kubernetes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NamespaceLifecycle => "NamespaceLifecycle",
            Self::NodeRestriction => "NodeRestriction",
            Self::TaintNodesByCondition => "TaintNodesByCondition",
            Self::OwnerReferencesPermissionEnforcement => "OwnerReferencesPermissionEnforcement",
            Self::CertificateApproval => "CertificateApproval",
            Self::CertificateSigning => "CertificateSigning",
            Self::ClusterTrustBundleAttest => "ClusterTrustBundleAttest",
            Self::CertificateSubjectRestriction => "CertificateSubjectRestriction",
            Self::MutatingAdmissionWebhook => "MutatingAdmissionWebhook",
            Self::ValidatingAdmissionWebhook => "ValidatingAdmissionWebhook",
        }
    }

    /// The names of all plugins.
    #[must_use]
    pub fn plugin_names() -> Vec<&'static str> {
        Self::ALL.into_iter().map(Self::name).collect()
    }

    /// Why the plugin cannot be disabled; `None` if it can.
    const fn why_plugin_is_required(self) -> Option<&'static str> {
        match self {
            Self::NamespaceLifecycle => Some(
                "objects would be created in namespaces that are gone, and would never be deleted",
            ),
            Self::NodeRestriction
            | Self::TaintNodesByCondition
            | Self::OwnerReferencesPermissionEnforcement
            | Self::CertificateApproval
            | Self::CertificateSigning
            | Self::ClusterTrustBundleAttest
            | Self::CertificateSubjectRestriction
            | Self::MutatingAdmissionWebhook
            | Self::ValidatingAdmissionWebhook => None,
        }
    }

    const fn plugin_bit(self) -> u16 {
        1 << self as u16
    }

    fn parse_plugin_name(flag: &'static str, name: &str) -> Result<Self, AdmissionPluginsError> {
        let found = Self::ALL.into_iter().find(|plugin| plugin.name() == name);
        found.ok_or_else(|| AdmissionPluginsError::Unknown { flag, name: name.to_owned() })
    }
}

impl fmt::Display for AdmissionPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl AdmissionPlugins {
    /// The plugins that the flags `--enable-admission-plugins` and `--disable-admission-plugins` choose.
    ///
    /// # Errors
    /// A name is unknown, a plugin is in both lists, or a plugin cannot be disabled.
    pub fn from_plugin_flags(
        enabled: &[String],
        disabled: &[String],
    ) -> Result<Self, AdmissionPluginsError> {
        let parse = |flag: &'static str, names: &[String]| {
            let named = names.iter().filter(|name| !name.is_empty());
            named
                .map(|name| AdmissionPlugin::parse_plugin_name(flag, name))
                .collect::<Result<Vec<_>, _>>()
        };
        let enabled = parse(ENABLE_FLAG, enabled)?;
        let mut plugins = Self::default();
        for plugin in parse(DISABLE_FLAG, disabled)? {
            if enabled.contains(&plugin) {
                return Err(AdmissionPluginsError::Contradiction(plugin));
            }
            if let Some(why) = plugin.why_plugin_is_required() {
                return Err(AdmissionPluginsError::Required { plugin, why });
            }
            plugins.disabled_plugin_bits |= plugin.plugin_bit();
        }
        Ok(plugins)
    }

    /// Whether a plugin is enabled.
    #[must_use]
    pub const fn is_plugin_enabled(self, plugin: AdmissionPlugin) -> bool {
        self.disabled_plugin_bits & plugin.plugin_bit() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(
        enabled: &[&str],
        disabled: &[&str],
    ) -> Result<AdmissionPlugins, AdmissionPluginsError> {
        let owned = |names: &[&str]| names.iter().map(|&own| own.to_owned()).collect::<Vec<_>>();
        AdmissionPlugins::from_plugin_flags(&owned(enabled), &owned(disabled))
    }

    #[test]
    fn each_plugin_is_on_unless_it_is_disabled() {
        let all_on = choose(&[], &[]).unwrap();
        let named = choose(&AdmissionPlugin::plugin_names(), &[""]).unwrap();
        assert_eq!(all_on, named);
        for plugin in AdmissionPlugin::ALL {
            assert!(all_on.is_plugin_enabled(plugin), "{plugin}");
            let Ok(without) = choose(&[], &[plugin.name()]) else {
                assert_eq!(plugin, AdmissionPlugin::NamespaceLifecycle);
                continue;
            };
            for other in AdmissionPlugin::ALL {
                assert_eq!(without.is_plugin_enabled(other), other != plugin, "{plugin} {other}");
            }
        }
    }

    #[test]
    fn names_that_are_unknown_contradict_or_are_needed_are_refused() {
        for (enabled, disabled, want) in [
            (&["PodSecurity"][..], &[][..], "--enable-admission-plugins: plugin \"PodSecurity\""),
            (&[], &["LimitRanger"], "--disable-admission-plugins: plugin \"LimitRanger\""),
            (&["nodeRestriction"], &[], "this server has NamespaceLifecycle, NodeRestriction, "),
            (
                &["NodeRestriction"],
                &["NodeRestriction"],
                "NodeRestriction is in --enable-admission-plugins and in --disable-admission-plugins",
            ),
            (&[], &["NamespaceLifecycle"], "NamespaceLifecycle cannot be disabled: objects "),
        ] {
            let error = choose(enabled, disabled).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
