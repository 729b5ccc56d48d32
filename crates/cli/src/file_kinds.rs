//! The kinds of files that the program knows.

use admission::ConfigurationKind;
use clap::ValueEnum;
use config::FileKind;
use serde_json::Value;

/// The API group of admission configurations.
const ADMISSION_GROUP: &str = ConfigurationKind::GROUP;

/// A kind of configuration file that has a JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigKindWithSchema {
    /// The authorizers of a server, in order
    #[value(name = "AuthorizationConfiguration")]
    AuthorizationConfiguration,
    /// Addresses of authorization webhooks
    #[value(name = "ExternalAuthorizationHookConfiguration")]
    HookConfiguration,
}

/// A value of `check --kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileKindArgument {
    /// The authorizers of a server, in order
    #[value(name = "AuthorizationConfiguration")]
    AuthorizationConfiguration,
    /// Addresses of authorization webhooks
    #[value(name = "ExternalAuthorizationHookConfiguration")]
    HookConfiguration,
    /// Connection to one webhook
    Kubeconfig,
    /// API objects: roles, bindings, admission configurations and others
    Manifest,
    /// ABAC policies, one JSON object per line
    AbacPolicy,
}

impl From<FileKindArgument> for FileKind {
    fn from(kind: FileKindArgument) -> Self {
        match kind {
            FileKindArgument::AuthorizationConfiguration => Self::AuthorizationConfiguration,
            FileKindArgument::HookConfiguration => Self::HookConfiguration,
            FileKindArgument::Kubeconfig => Self::Kubeconfig,
            FileKindArgument::Manifest => Self::Manifest,
            FileKindArgument::AbacPolicy => Self::AbacPolicy,
        }
    }
}

impl ConfigKindWithSchema {
    /// Returns Kubernetes' name of the kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AuthorizationConfiguration => "AuthorizationConfiguration",
            Self::HookConfiguration => "ExternalAuthorizationHookConfiguration",
        }
    }

    /// Returns the JSON Schema of the kind.
    pub(crate) fn json_schema(self) -> Value {
        match self {
            Self::AuthorizationConfiguration => config::authorization_configuration_json_schema(),
            Self::HookConfiguration => config::authorization_hook_json_schema(),
        }
    }

    /// Returns the values that `apiVersion` may have, the preferred one first.
    fn api_versions(self) -> Vec<String> {
        let schema = self.json_schema();
        let versions = schema.pointer("/properties/apiVersion/enum").and_then(Value::as_array);
        let versions = versions.into_iter().flatten().filter_map(Value::as_str);
        versions.map(str::to_owned).collect()
    }
}

/// Lists all kinds of files with their versions, for a message.
pub(crate) fn describe_known_file_kinds() -> String {
    let mut kinds: Vec<_> = ConfigKindWithSchema::value_variants()
        .iter()
        .map(|kind| format!("{} ({})", kind.name(), kind.api_versions().join(", ")))
        .collect();
    kinds.push("kubeconfig".to_owned());
    kinds.push(format!("roles and bindings ({})", manifests::rbac::API_VERSION));
    kinds.push(format!(
        "admission configurations ({ADMISSION_GROUP}/v1, {ADMISSION_GROUP}/v1alpha1)"
    ));
    kinds.push("ABAC policies (one JSON object per line)".to_owned());
    kinds.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_with_their_versions() {
        assert_eq!(
            describe_known_file_kinds(),
            "AuthorizationConfiguration (apiserver.config.k8s.io/v1, \
             apiserver.config.k8s.io/v1beta1, apiserver.config.k8s.io/v1alpha1); \
             ExternalAuthorizationHookConfiguration \
             (kubeapiserverauthorization.config.k8s.io/v1alpha1); kubeconfig; roles and bindings \
             (rbac.authorization.k8s.io/v1); admission configurations \
             (admissionregistration.k8s.io/v1, admissionregistration.k8s.io/v1alpha1); ABAC \
             policies (one JSON object per line)"
        );
    }

    #[test]
    fn schemas_are_titled_with_the_kind() {
        for kind in ConfigKindWithSchema::value_variants() {
            assert_eq!(kind.json_schema()["title"], kind.name());
        }
    }
}
