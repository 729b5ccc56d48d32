//! One authorizer of a chain, together with the objects that it decides from.

use std::fmt;
use std::sync::Arc;

use authz::{
    Attributes, Authorizer as Plugin, Decision, Namespace, Rules, SharedText, Subjects,
    TraceRecorder, User,
};
use authz_webhook::WebhookDecision;

use crate::authorizer_name::AuthorizerName;
use crate::authorizer_type::AuthorizerType;
use crate::constant_authorizers;

/// An authorizer with everything that it decides from. The built-in ones are a closed set, so that a decision costs neither
/// a box nor a virtual call.
///
/// A clone shares its objects.
#[derive(Clone)]
pub enum ChainMember {
    /// The authorizer that decides by a list of policies.
    Abac(Arc<authz_abac::Snapshot>),
    /// The authorizer that allows every request.
    AlwaysAllow,
    /// The authorizer that always abstains, with a reason.
    AlwaysDeny,
    /// The authorizer that allows a node to access the objects that its pods need.
    Node(Arc<authz_node::Snapshot>),
    /// The authorizer that decides by roles and bindings.
    Rbac(Arc<authz_rbac::Snapshot>),
    /// The authorizer that calls a remote service.
    Webhook(Arc<authz_webhook::Webhook>),
    /// An authorizer that is not built in.
    Plugin(AuthorizerName, Arc<dyn Plugin>),
}

impl ChainMember {
    /// The type of the authorizer; `None` for a plugin.
    pub fn authorizer_type(&self) -> Option<AuthorizerType> {
        match self {
            Self::Abac(_) => Some(AuthorizerType::Abac),
            Self::AlwaysAllow => Some(AuthorizerType::AlwaysAllow),
            Self::AlwaysDeny => Some(AuthorizerType::AlwaysDeny),
            Self::Node(_) => Some(AuthorizerType::Node),
            Self::Rbac(_) => Some(AuthorizerType::Rbac),
            Self::Webhook(_) => Some(AuthorizerType::Webhook),
            Self::Plugin(..) => None,
        }
    }

    /// The name in metrics and reasons.
    pub fn name(&self) -> &str {
        match self {
            Self::Webhook(webhook) => webhook.name(),
            Self::Plugin(name, _) => name.as_str(),
            Self::Abac(_)
            | Self::AlwaysAllow
            | Self::AlwaysDeny
            | Self::Node(_)
            | Self::Rbac(_) => self.built_in_authorizer_name(),
        }
    }

    /// The name in a form that may outlive the member.
    pub(crate) fn name_as_shared_text(&self) -> SharedText {
        match self {
            Self::Webhook(webhook) => Arc::clone(webhook.name_as_arc()).into(),
            Self::Plugin(name, _) => Arc::clone(name.as_arc_str()).into(),
            Self::Abac(_)
            | Self::AlwaysAllow
            | Self::AlwaysDeny
            | Self::Node(_)
            | Self::Rbac(_) => self.built_in_authorizer_name().into(),
        }
    }

    fn built_in_authorizer_name(&self) -> &'static str {
        let built_in = self.authorizer_type();
        built_in.and_then(AuthorizerType::fixed_authorizer_name).unwrap_or_default()
    }

    /// The decision of this authorizer alone. `caller` is the name of the user who sent the request.
    pub async fn authorize(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        recorder: TraceRecorder<'_>,
    ) -> WebhookDecision {
        let decision = match self {
            Self::Webhook(webhook) => {
                return webhook.authorize_for_caller(caller, attributes, recorder).await;
            }
            Self::Abac(policies) => policies.authorize(attributes, recorder),
            Self::AlwaysAllow => constant_authorizers::always_allow_decision(),
            Self::AlwaysDeny => constant_authorizers::always_deny_decision(),
            Self::Node(policy) => policy.authorize(attributes, recorder),
            Self::Rbac(snapshot) => snapshot.authorize(attributes, recorder),
            Self::Plugin(name, plugin) => {
                let decision = plugin.authorize(attributes, recorder).await;
                let reason = decision.reason.with_plugin_name(name.as_arc_str());
                Decision { reason, ..decision }
            }
        };
        decision.into()
    }

    /// Lists the rules of a user in a namespace, as far as this authorizer can.
    pub fn rules_for(&self, user: &User, namespace: Namespace<'_>) -> Rules {
        match self {
            Self::Abac(policies) => policies.rules_for(user, namespace),
            Self::AlwaysAllow => constant_authorizers::always_allow_rules(),
            Self::AlwaysDeny => Rules::default(),
            Self::Node(policy) => policy.rules_for(user),
            Self::Rbac(snapshot) => snapshot.rules_for(user, namespace),
            Self::Webhook(webhook) => webhook.rules_for(user, namespace),
            Self::Plugin(_, plugin) => plugin.rules_for(user, namespace),
        }
    }

    /// Lists the subjects that this authorizer alone allows, as far as it can.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        match self {
            Self::Abac(policies) => policies.allowed_subjects(attributes),
            Self::AlwaysAllow => constant_authorizers::always_allow_subjects(),
            Self::AlwaysDeny => Subjects::default(),
            Self::Node(policy) => policy.allowed_subjects(attributes),
            Self::Rbac(snapshot) => snapshot.allowed_subjects(attributes),
            Self::Webhook(webhook) => prefix_notes_with_authorizer_name(
                webhook.name(),
                webhook.allowed_subjects(attributes),
            ),
            Self::Plugin(name, plugin) => prefix_notes_with_authorizer_name(
                name.as_str(),
                plugin.allowed_subjects(attributes),
            ),
        }
    }
}

/// Puts the name of the authorizer before each note.
fn prefix_notes_with_authorizer_name(name: &str, mut subjects: Subjects) -> Subjects {
    for note in &mut subjects.subject_listing_notes {
        note.insert_str(0, ": ");
        note.insert_str(0, name);
    }
    subjects
}

/// Shows the name only: policies may be large, and plugins do not implement `Debug`.
impl fmt::Debug for ChainMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Member").field(&self.name()).finish()
    }
}
