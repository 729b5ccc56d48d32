//! The types of authorizers.

use crate::plugin_type::PluginType;

/// A type of authorizer that a configuration may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuthorizerType {
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
    Webhook,
    /// An authorizer that the program adds to the built-in ones.
    Plugin(PluginType),
}

impl AuthorizerType {
    /// The types that every program has, sorted by name.
    pub const BUILT_IN: [Self; 6] =
        [Self::Abac, Self::AlwaysAllow, Self::AlwaysDeny, Self::Node, Self::Rbac, Self::Webhook];

    /// Returns the built-in type with this name. Names are case-sensitive.
    pub fn from_type_name(name: &str) -> Option<Self> {
        Self::BUILT_IN.into_iter().find(|kind| kind.name() == name)
    }

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Abac => "ABAC",
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Node => "Node",
            Self::Rbac => "RBAC",
            Self::Webhook => "Webhook",
            Self::Plugin(plugin) => plugin.name(),
        }
    }

    /// The name that every authorizer of this type must have; `None` if the configuration chooses the name.
    pub fn fixed_authorizer_name(self) -> Option<&'static str> {
        match self {
            Self::Abac => Some("abac"),
            Self::AlwaysAllow => Some("alwaysallow"),
            Self::AlwaysDeny => Some("alwaysdeny"),
            Self::Node => Some("node"),
            Self::Rbac => Some("rbac"),
            Self::Webhook | Self::Plugin(_) => None,
        }
    }

    /// Reports whether a chain may have several authorizers of this type.
    pub fn may_repeat_in_chain(self) -> bool {
        self == Self::Webhook
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_by_name_and_complete() {
        let names = AuthorizerType::BUILT_IN.map(AuthorizerType::name);
        assert!(names.is_sorted());
        for kind in AuthorizerType::BUILT_IN {
            assert_eq!(AuthorizerType::from_type_name(kind.name()), Some(kind));
        }
        assert_eq!(AuthorizerType::from_type_name("rbac"), None);
    }

    #[test]
    fn built_in_authorizers_have_the_lower_case_type_as_name() {
        for kind in AuthorizerType::BUILT_IN {
            let lower = kind.name().to_ascii_lowercase();
            let required = (kind != AuthorizerType::Webhook).then_some(lower.as_str());
            assert_eq!(kind.fixed_authorizer_name(), required);
        }
    }
}
