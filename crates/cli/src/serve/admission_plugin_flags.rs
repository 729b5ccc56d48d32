//! The flags that choose built-in admission plugins.

use server::AdmissionPlugins;

use crate::offline::LoadFailure;

/// The flags of built-in admission plugins, named as in kube-apiserver.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Admission plugins")]
pub(crate) struct AdmissionPluginFlags {
    /// Admission plugins to enable. All are on by default: NamespaceLifecycle, NodeRestriction,
    /// TaintNodesByCondition, OwnerReferencesPermissionEnforcement, CertificateApproval,
    /// CertificateSigning, ClusterTrustBundleAttest, CertificateSubjectRestriction,
    /// MutatingAdmissionWebhook and ValidatingAdmissionWebhook. Other names are refused
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins to disable. NamespaceLifecycle cannot be disabled. Without
    /// NodeRestriction a node can read every secret. Without OwnerReferencesPermissionEnforcement
    /// users can delete objects of others through owner references
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
}

impl AdmissionPluginFlags {
    /// The plugins that the flags choose.
    ///
    /// # Errors
    /// A name is unknown, a plugin is in both flags, or a plugin cannot be disabled.
    pub(super) fn to_admission_plugins(&self) -> Result<AdmissionPlugins, LoadFailure> {
        let (enabled, disabled) = (&self.enable_admission_plugins, &self.disable_admission_plugins);
        AdmissionPlugins::from_plugin_flags(enabled, disabled)
            .map_err(|error| LoadFailure::Usage(vec![error.to_string()]))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use server::AdmissionPlugin;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: AdmissionPluginFlags,
    }

    fn plugins(args: &[&str]) -> Result<AdmissionPlugins, LoadFailure> {
        Program::try_parse_from([&["x"], args].concat()).unwrap().flags.to_admission_plugins()
    }

    /// The help lists the plugins that exist.
    #[test]
    fn the_help_names_every_plugin() {
        let help = <Program as clap::CommandFactory>::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for name in AdmissionPlugin::plugin_names() {
            assert!(help.contains(name), "{name}");
        }
    }

    #[test]
    fn flags_choose_plugins() {
        assert_eq!(plugins(&[]).unwrap(), AdmissionPlugins::default());
        let enabled = "--enable-admission-plugins=NodeRestriction,NamespaceLifecycle";
        assert_eq!(plugins(&[enabled]).unwrap(), AdmissionPlugins::default());
        let disabled = "--disable-admission-plugins=NodeRestriction,CertificateSigning";
        let chosen = plugins(&[disabled]).unwrap();
        assert!(!chosen.is_plugin_enabled(AdmissionPlugin::NodeRestriction));
        assert!(!chosen.is_plugin_enabled(AdmissionPlugin::CertificateSigning));
        assert!(chosen.is_plugin_enabled(AdmissionPlugin::CertificateApproval));
        for (flag, why) in [
            (
                "--enable-admission-plugins=PodSecurity",
                "\"PodSecurity\" is unknown; this server has",
            ),
            ("--disable-admission-plugins=Priority", "\"Priority\" is unknown; this server has"),
            ("--disable-admission-plugins=NamespaceLifecycle", "cannot be disabled: "),
        ] {
            let LoadFailure::Usage(faults) = plugins(&[flag]).unwrap_err() else {
                panic!("{flag}: not a fault of the flags");
            };
            let error = faults.join("; ");
            let name = flag.split('=').next().unwrap();
            assert!(error.starts_with(name) && error.contains(why), "{error}");
        }
    }
}
