//! The kinds of documents that the program knows.

use clap::ValueEnum;
use serde_json::Value;

/// A kind of configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Which authorizers are asked, and in which order
    #[value(name = "AuthorizationConfiguration")]
    AuthorizationConfiguration,
}

impl Kind {
    /// Kubernetes' name of the kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AuthorizationConfiguration => "AuthorizationConfiguration",
        }
    }

    /// What a file of the kind looks like, as a JSON Schema.
    pub(crate) fn schema(self) -> Value {
        match self {
            Self::AuthorizationConfiguration => api::schema(),
        }
    }

    /// The values that `apiVersion` may have, the preferred one first.
    fn api_versions(self) -> Vec<String> {
        let schema = self.schema();
        let versions = schema.pointer("/properties/apiVersion/enum").and_then(Value::as_array);
        let versions = versions.into_iter().flatten().filter_map(Value::as_str);
        versions.map(str::to_owned).collect()
    }
}

/// All kinds with their versions, for a message.
pub(crate) fn known_kinds() -> String {
    let kinds = Kind::value_variants().iter().map(|kind| {
        let versions = kind.api_versions();
        format!("{} ({})", kind.name(), versions.join(", "))
    });
    kinds.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_with_their_versions() {
        assert_eq!(
            known_kinds(),
            "AuthorizationConfiguration (apiserver.config.k8s.io/v1, \
             apiserver.config.k8s.io/v1beta1, apiserver.config.k8s.io/v1alpha1)"
        );
    }

    #[test]
    fn schemas_are_titled_with_the_kind() {
        for kind in Kind::value_variants() {
            assert_eq!(kind.schema()["title"], kind.name());
        }
    }
}
