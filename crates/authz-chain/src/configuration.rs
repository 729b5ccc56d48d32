//! The configuration of a chain.

use std::collections::BTreeSet;

use authz_webhook::WebhookSettings;

use crate::authorizer_name::AuthorizerName;
use crate::authorizer_type::AuthorizerType;
use crate::plugin_type::PluginType;

/// A valid configuration: the authorizers in the order in which they are consulted.
///
/// INVARIANT: there is at least one authorizer, names are unique, and only webhooks repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    authorizers: Vec<AuthorizerConfiguration>,
}

/// One configured authorizer. The name of a built-in one follows from its type.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthorizerConfiguration {
    /// The authorizer that decides by a list of policies.
    Abac,
    /// The authorizer that allows every request.
    AlwaysAllow,
    /// The authorizer that always abstains, with a reason.
    AlwaysDeny,
    /// The authorizer that allows a node to access the objects that its pods need.
    Node,
    /// The authorizer that decides by roles and bindings.
    Rbac,
    /// The authorizer that calls a remote service.
    Webhook(Box<WebhookConfiguration>),
    /// An authorizer that the program adds to the built-in ones.
    Plugin(PluginConfiguration),
}

/// A plugin with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginConfiguration {
    /// The type, by which the program finds the authorizer.
    pub plugin_type: PluginType,
    /// The name in metrics and reasons.
    pub name: AuthorizerName,
}

/// A webhook with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookConfiguration {
    /// The name in metrics and reasons.
    pub name: AuthorizerName,
    /// The settings of the webhook authorizer.
    pub webhook_settings: WebhookSettings,
}

/// The reason why a list of authorizers is not a valid chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The configuration has no authorizer.
    #[error("at least one authorization mode must be defined")]
    Empty,
    /// A type that may occur only once is repeated.
    #[error("authorizer type {} is repeated", .0.name())]
    RepeatedType(AuthorizerType),
    /// Two authorizers have the same name.
    #[error("authorizer name {0} is repeated")]
    RepeatedName(String),
}

impl Configuration {
    /// A configuration of these authorizers.
    ///
    /// # Errors
    /// Fails if the list is empty or repeats a name or a type other than webhooks.
    pub fn new(authorizers: Vec<AuthorizerConfiguration>) -> Result<Self, ConfigurationError> {
        if authorizers.is_empty() {
            return Err(ConfigurationError::Empty);
        }
        let mut types = BTreeSet::new();
        let mut names = BTreeSet::new();
        for authorizer in &authorizers {
            let kind = authorizer.authorizer_type();
            if !types.insert(kind) && !kind.may_repeat_in_chain() {
                return Err(ConfigurationError::RepeatedType(kind));
            }
            if !names.insert(authorizer.name()) {
                return Err(ConfigurationError::RepeatedName(authorizer.name().to_owned()));
            }
        }
        Ok(Self { authorizers })
    }

    /// The authorizers in the order in which a chain consults them.
    pub fn authorizers(&self) -> &[AuthorizerConfiguration] {
        &self.authorizers
    }

    /// The built-in types in the configuration apart from webhooks. A reload cannot remove a type that the server had at its start.
    pub fn built_in_types(&self) -> BTreeSet<AuthorizerType> {
        let types = self.authorizers.iter().map(AuthorizerConfiguration::authorizer_type);
        types.filter(|kind| kind.fixed_authorizer_name().is_some()).collect()
    }
}

impl AuthorizerConfiguration {
    /// Makes the configuration of a built-in type. Returns `None` for a webhook or a plugin, which need more than their
    /// type.
    pub fn from_built_in_type(kind: AuthorizerType) -> Option<Self> {
        match kind {
            AuthorizerType::Abac => Some(Self::Abac),
            AuthorizerType::AlwaysAllow => Some(Self::AlwaysAllow),
            AuthorizerType::AlwaysDeny => Some(Self::AlwaysDeny),
            AuthorizerType::Node => Some(Self::Node),
            AuthorizerType::Rbac => Some(Self::Rbac),
            AuthorizerType::Webhook | AuthorizerType::Plugin(_) => None,
        }
    }

    /// Returns the type of the authorizer.
    pub fn authorizer_type(&self) -> AuthorizerType {
        match self {
            Self::Abac => AuthorizerType::Abac,
            Self::AlwaysAllow => AuthorizerType::AlwaysAllow,
            Self::AlwaysDeny => AuthorizerType::AlwaysDeny,
            Self::Node => AuthorizerType::Node,
            Self::Rbac => AuthorizerType::Rbac,
            Self::Webhook(_) => AuthorizerType::Webhook,
            Self::Plugin(plugin) => AuthorizerType::Plugin(plugin.plugin_type),
        }
    }

    /// The name of the authorizer in metrics and reasons.
    pub fn name(&self) -> &str {
        match self {
            Self::Webhook(webhook) => webhook.name.as_str(),
            Self::Plugin(plugin) => plugin.name.as_str(),
            Self::Abac | Self::AlwaysAllow | Self::AlwaysDeny | Self::Node | Self::Rbac => {
                self.authorizer_type().fixed_authorizer_name().unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use authz_webhook::{
        CacheSettings, ConnectionInfo, FailurePolicy, MatchConditions, ReviewVersion, Timeout,
    };

    use super::*;

    fn webhook(name: &str) -> AuthorizerConfiguration {
        let minute = Duration::from_secs(60);
        AuthorizerConfiguration::Webhook(Box::new(WebhookConfiguration {
            name: AuthorizerName::new(name).unwrap(),
            webhook_settings: WebhookSettings {
                timeout: Timeout::new(Duration::from_secs(3)).unwrap(),
                authorized_cache_settings: CacheSettings::new(minute, true),
                unauthorized_cache_settings: CacheSettings::new(minute, false),
                subject_access_review_version: ReviewVersion::V1,
                failure_policy: FailurePolicy::Deny,
                connection_info: ConnectionInfo::InClusterConfig,
                match_conditions: MatchConditions::Unversioned,
            },
        }))
    }

    #[test]
    fn order_and_names_are_kept() {
        let configuration =
            Configuration::new(vec![webhook("b"), AuthorizerConfiguration::Rbac, webhook("a")])
                .unwrap();
        let names: Vec<_> =
            configuration.authorizers().iter().map(AuthorizerConfiguration::name).collect();
        assert_eq!(names, ["b", "rbac", "a"]);
        assert_eq!(configuration.built_in_types(), BTreeSet::from([AuthorizerType::Rbac]));
    }

    #[test]
    fn invalid_chains_are_refused() {
        assert_eq!(Configuration::new(vec![]), Err(ConfigurationError::Empty));
        assert_eq!(
            Configuration::new(vec![AuthorizerConfiguration::Node, AuthorizerConfiguration::Node]),
            Err(ConfigurationError::RepeatedType(AuthorizerType::Node))
        );
        assert_eq!(
            Configuration::new(vec![webhook("rbac"), AuthorizerConfiguration::Rbac]),
            Err(ConfigurationError::RepeatedName("rbac".into()))
        );
    }

    #[test]
    fn every_built_in_type_has_its_authorizer() {
        for kind in AuthorizerType::BUILT_IN {
            let from_built_in_type = AuthorizerConfiguration::from_built_in_type(kind);
            let found = from_built_in_type.as_ref().map(AuthorizerConfiguration::authorizer_type);
            assert_eq!(found, (kind != AuthorizerType::Webhook).then_some(kind));
            assert_eq!(
                from_built_in_type.as_ref().map(AuthorizerConfiguration::name),
                kind.fixed_authorizer_name()
            );
        }
    }
}
