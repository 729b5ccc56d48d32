//! Which kinds configure admission, and what they are called.

use crate::attributes::Operation;

/// A kind that configures admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConfigurationKind {
    /// `InitializerConfiguration` of v1alpha1.
    Initializer,
    /// `ExternalAdmissionHookConfiguration` of v1alpha1.
    ExternalHook,
    /// `MutatingWebhookConfiguration` of v1.
    Mutating,
    /// `ValidatingWebhookConfiguration` of v1.
    Validating,
}

impl ConfigurationKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Initializer, Self::ExternalHook, Self::Mutating, Self::Validating];

    /// The group of all of them.
    pub const GROUP: &'static str = "admissionregistration.k8s.io";

    /// The kind of an object with this `apiVersion` and `kind`.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/')?;
        let is_own = |own: &Self| own.version() == version && own.name() == kind;
        Self::ALL.into_iter().find(is_own).filter(|_| group == Self::GROUP)
    }

    /// The name of the kind.
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

    /// The plural.
    #[must_use]
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Initializer => "initializerconfigurations",
            Self::ExternalHook => "externaladmissionhookconfigurations",
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    /// The member that holds the entries. The generation of an object grows when it changes.
    #[must_use]
    pub const fn list(self) -> &'static str {
        match self {
            Self::Initializer => "initializers",
            Self::ExternalHook => "externalAdmissionHooks",
            Self::Mutating | Self::Validating => "webhooks",
        }
    }
}

/// What a rule may name as an operation, sorted as messages list them.
pub(super) const OPERATIONS: [&str; 5] = [
    "*",
    Operation::Connect.name(),
    Operation::Create.name(),
    Operation::Delete.name(),
    Operation::Update.name(),
];
