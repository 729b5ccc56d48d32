//! The flags of kube-apiserver that select the authorizers.

use std::path::PathBuf;

use authz_reload::{AuthorizationOptions, AuthorizationPlan, DEFAULT_MODES, plan_from_flags};

use manifests::abac::{self, UnsetAttributeMatching};

use super::feature_gates::FeatureGates;

/// The flags of kube-apiserver that select the authorizers.
///
/// A flag that is not given is `None` even if it has a default, because some rules need the difference.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct AuthorizationFlags {
    /// AuthorizationConfiguration file with the authorizers in order
    ///
    /// Excludes --authorization-mode and the --authorization-webhook-* flags of that mode.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_config: Option<PathBuf>,

    /// Authorizers in order: ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook [default: Node,RBAC]
    ///
    /// kube-apiserver has another default: it allows everything without this flag.
    #[arg(long, value_name = "MODE,...", value_delimiter = ',')]
    pub(crate) authorization_mode: Option<Vec<String>>,

    /// ABAC policy file, one JSON object per line; needed for mode ABAC
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_policy_file: Option<PathBuf>,

    /// How policies match an attribute that a request does not have, such as the namespace of a list of all
    /// namespaces, for ABAC policies without a version or of version v0
    #[arg(long, value_enum, default_value = "empty")]
    pub(crate) authorization_abac_unset_attributes: AbacUnsetAttributesArgument,

    /// Kubeconfig or ExternalAuthorizationHookConfiguration file for mode Webhook
    ///
    /// With a kubeconfig the webhook is named `default`; an ExternalAuthorizationHookConfiguration
    /// names each of its hooks.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_webhook_config_file: Option<PathBuf>,

    /// Version of the SubjectAccessReview that mode Webhook sends: v1 or v1beta1 [default: v1beta1]
    #[arg(long, value_name = "VERSION")]
    pub(crate) authorization_webhook_version: Option<String>,

    /// Time to cache allow decisions of mode Webhook; 0 disables the cache [default: 5m0s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_nanoseconds, allow_hyphen_values = true)]
    pub(crate) authorization_webhook_cache_authorized_ttl: Option<i64>,

    /// Time to cache other decisions of mode Webhook; 0 disables the cache [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_nanoseconds, allow_hyphen_values = true)]
    pub(crate) authorization_webhook_cache_unauthorized_ttl: Option<i64>,

    /// Feature gates. The only one is StructuredAuthorizationConfiguration, which is true by default
    ///
    /// If it is false the program refuses --authorization-config, as Kubernetes did before 1.30.
    #[arg(long, value_name = "NAME=BOOL,...")]
    pub(crate) feature_gates: Vec<FeatureGates>,
}

impl AuthorizationFlags {
    /// Returns the flags as the user gave them.
    pub(crate) fn to_authorization_options(&self) -> AuthorizationOptions {
        AuthorizationOptions {
            config_file: self.authorization_config.clone(),
            modes: self.authorization_mode.clone(),
            abac_policy_file: self.authorization_policy_file.clone(),
            webhook_config_file: self.authorization_webhook_config_file.clone(),
            webhook_version: self.authorization_webhook_version.clone(),
            webhook_authorized_ttl_ns: self.authorization_webhook_cache_authorized_ttl,
            webhook_unauthorized_ttl_ns: self.authorization_webhook_cache_unauthorized_ttl,
            is_structured_config_enabled: self.is_structured_config_enabled(),
            ..AuthorizationOptions::default()
        }
    }

    /// Reports whether a flag names authorizers.
    pub(crate) fn is_any_authorizer_flag_given(&self) -> bool {
        self.authorization_config.is_some()
            || self.authorization_mode.is_some()
            || self.authorization_policy_file.is_some()
            || self.authorization_webhook_config_file.is_some()
    }

    /// Returns the options of reading the ABAC policy file.
    pub(crate) fn abac_load_options(&self) -> abac::AbacPolicyLoadOptions {
        let unset_attribute_matching = self.authorization_abac_unset_attributes.into();
        abac::AbacPolicyLoadOptions {
            unset_attribute_matching,
            ..abac::AbacPolicyLoadOptions::default()
        }
    }

    /// Reports whether configuration files and match conditions are enabled.
    pub(crate) fn is_structured_config_enabled(&self) -> bool {
        FeatureGates::is_structured_config_enabled(&self.feature_gates)
    }

    /// Converts the flags to a plan.
    ///
    /// # Errors
    /// Every rule that the flags violate, in the words of kube-apiserver.
    pub(crate) fn to_authorization_plan(&self) -> Result<AuthorizationPlan, Vec<String>> {
        plan_from_flags(&self.to_authorization_options(), DEFAULT_MODES)
    }
}

/// A value of `--authorization-abac-unset-attributes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum AbacUnsetAttributesArgument {
    /// The attribute is empty, as in Kubernetes
    #[default]
    Empty,
    /// The attribute matches every property, as in the first proposal of ABAC. Lines for one namespace then
    /// also grant requests without a namespace, and all lines grant all paths
    Match,
}

impl From<AbacUnsetAttributesArgument> for UnsetAttributeMatching {
    fn from(argument: AbacUnsetAttributesArgument) -> Self {
        match argument {
            AbacUnsetAttributesArgument::Empty => Self::Empty,
            AbacUnsetAttributesArgument::Match => Self::Match,
        }
    }
}

/// Parses a duration in Go's notation, such as `1m30s`. It may be negative.
fn parse_duration_nanoseconds(text: &str) -> Result<i64, go_compat::DurationError> {
    go_compat::parse_duration(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: AuthorizationFlags,
    }

    fn flags(args: &[&str]) -> AuthorizationFlags {
        Program::try_parse_from([&["x"], args].concat()).unwrap().flags
    }

    /// The plan of these flags as text: the file, or the modes, or the faults.
    fn planned(args: &[&str]) -> String {
        match flags(args).to_authorization_plan() {
            Ok(AuthorizationPlan::File(file)) => file.path.display().to_string(),
            Ok(AuthorizationPlan::Modes(modes)) => {
                modes.modes.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(",")
            }
            Err(faults) => faults.join("; "),
        }
    }

    /// A flag with its default value differs from an absent flag.
    #[test]
    fn a_given_default_differs_from_an_absent_flag() {
        assert_eq!(flags(&[]).to_authorization_options(), AuthorizationOptions::default());
        for flag in [
            "--authorization-webhook-version=v1beta1",
            "--authorization-webhook-cache-authorized-ttl=5m0s",
            "--authorization-webhook-cache-unauthorized-ttl=30s",
            "--authorization-webhook-config-file=w",
            "--authorization-mode=",
        ] {
            assert_ne!(
                flags(&[flag]).to_authorization_options(),
                AuthorizationOptions::default(),
                "{flag}"
            );
            let both = planned(&["--authorization-config=f", flag]);
            assert!(both.starts_with("--authorization-config cannot be specified"), "{both}");
        }
        assert_eq!(planned(&["--authorization-config=f", "--authorization-policy-file=p"]), "f");
    }

    #[test]
    fn durations_may_be_negative() {
        let ttl = "--authorization-webhook-cache-authorized-ttl";
        for args in [&[&format!("{ttl}=-1s")[..]][..], &[ttl, "-1s"]] {
            let nanos = flags(args).authorization_webhook_cache_authorized_ttl;
            assert_eq!(nanos, Some(-1_000_000_000), "{args:?}");
        }
    }

    #[test]
    fn the_flags_make_the_plan() {
        assert_eq!(planned(&[]), "Node,RBAC");
        assert_eq!(
            planned(&["--authorization-mode=Node", "--authorization-mode=RBAC"]),
            "Node,RBAC"
        );
        let gate = "--feature-gates=StructuredAuthorizationConfiguration=false";
        assert_eq!(planned(&[gate, "--authorization-mode=RBAC"]), "RBAC");
        assert_eq!(
            planned(&[gate, "--authorization-config=f"]),
            "--authorization-config cannot be used without enabling \
             StructuredAuthorizationConfiguration feature flag"
        );
    }
}
