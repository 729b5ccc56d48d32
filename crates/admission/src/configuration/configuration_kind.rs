//! The kinds that configure admission.

use crate::attributes::Operation;

/// A kind that configures admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConfigurationKind {
    /// The kind `InitializerConfiguration` of v1alpha1.
    Initializer,
    /// The kind `ExternalAdmissionHookConfiguration` of v1alpha1.
    ExternalHook,
    /// The kind `MutatingWebhookConfiguration` of v1.
    Mutating,
    /// The kind `ValidatingWebhookConfiguration` of v1.
    Validating,
}

impl ConfigurationKind {
    /// All kinds of admission configurations.
    pub const ALL: [Self; 4] =
        [Self::Initializer, Self::ExternalHook, Self::Mutating, Self::Validating];

    /// The API group of all kinds.
    pub const GROUP: &'static str = "admissionregistration.k8s.io";

    /// Finds the kind of an object by its `apiVersion` and `kind`.
    #[must_use]
    pub fn from_type_meta(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/')?;
        let is_own = |own: &Self| own.version() == version && own.name() == kind;
        Self::ALL.into_iter().find(is_own).filter(|_| group == Self::GROUP)
    }

    /// The name of the kind, such as `MutatingWebhookConfiguration`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initializer => "InitializerConfiguration",
            Self::ExternalHook => "ExternalAdmissionHookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// The version within the group.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::Initializer | Self::ExternalHook => "v1alpha1",
            Self::Mutating | Self::Validating => "v1",
        }
    }

    /// The plural resource name.
    #[must_use]
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Initializer => "initializerconfigurations",
            Self::ExternalHook => "externaladmissionhookconfigurations",
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    /// The name of the member that holds the hooks or initializers. The generation of an object grows when it changes.
    #[must_use]
    pub const fn entries_member_name(self) -> &'static str {
        match self {
            Self::Initializer => "initializers",
            Self::ExternalHook => "externalAdmissionHooks",
            Self::Mutating | Self::Validating => "webhooks",
        }
    }
}

/// The operations that a rule may name, sorted as messages list them.
pub(super) const OPERATIONS: [&str; 5] = [
    "*",
    Operation::Connect.name(),
    Operation::Create.name(),
    Operation::Delete.name(),
    Operation::Update.name(),
];
