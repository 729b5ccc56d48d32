//! One authorizer of a chain.

use std::fmt;
use std::sync::Arc;

use authz::{Attributes, Authorizer as Plugin, Recorder, Rules, Subjects, User};
use authz_webhook::Answered;

use crate::always;
use crate::kind::AuthorizerType;
use crate::name::AuthorizerName;

/// An authorizer that can be asked. Built-in ones are a closed set, so that asking them costs
/// neither a box nor a virtual call.
///
/// A clone shares what it decides from.
#[derive(Clone)]
pub enum Member {
    /// Allows or abstains by a list of policies.
    Abac(Arc<authz_abac::Snapshot>),
    /// Allows everything.
    AlwaysAllow,
    /// Abstains always, with a reason.
    AlwaysDeny,
    /// Allows nodes what the pods bound to them need.
    Node(Arc<authz_node::Snapshot>),
    /// Allows by roles and bindings.
    Rbac(Arc<authz_rbac::Snapshot>),
    /// Asks a remote service.
    Webhook(Arc<authz_webhook::Webhook>),
    /// An authorizer written by others.
    Plugin(AuthorizerName, Arc<dyn Plugin>),
}

impl Member {
    /// Its type; an authorizer written by others has none.
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

    /// The name that reasons begin with.
    pub fn name(&self) -> &str {
        match self {
            Self::Webhook(webhook) => webhook.name(),
            Self::Plugin(name, _) => name.as_str(),
            _ => {
                let built_in = self.authorizer_type();
                built_in.and_then(AuthorizerType::required_authorizer_name).unwrap_or_default()
            }
        }
    }

    /// What this authorizer alone answers to `caller`, who may ask about another user.
    pub async fn authorize(
        &self,
        caller: &str,
        attributes: &Attributes<'_>,
        recorder: Recorder<'_>,
    ) -> Answered {
        let decision = match self {
            Self::Webhook(webhook) => {
                return webhook.authorize_for(caller, attributes, recorder).await;
            }
            Self::Abac(policies) => policies.authorize(attributes, recorder),
            Self::AlwaysAllow => always::allow(),
            Self::AlwaysDeny => always::deny(),
            Self::Node(policy) => policy.authorize(attributes, recorder),
            Self::Rbac(snapshot) => snapshot.authorize(attributes, recorder),
            Self::Plugin(_, plugin) => plugin.authorize(attributes, recorder).await,
        };
        decision.into()
    }

    /// What the user may do in the namespace, as far as this authorizer can list it.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        match self {
            Self::Abac(policies) => policies.rules_for(user, namespace),
            Self::AlwaysAllow => always::allow_rules(),
            Self::AlwaysDeny => Rules::default(),
            Self::Node(policy) => policy.rules_for(user),
            Self::Rbac(snapshot) => snapshot.rules_for(user, namespace),
            Self::Webhook(webhook) => webhook.rules_for(user, namespace),
            Self::Plugin(_, plugin) => plugin.rules_for(user, namespace),
        }
    }

    /// Whom this authorizer alone allows what is asked, as far as it can list them.
    pub fn allowed_subjects(&self, attributes: &Attributes<'_>) -> Subjects {
        match self {
            Self::Abac(policies) => policies.allowed_subjects(attributes),
            Self::AlwaysAllow => always::allow_subjects(),
            Self::AlwaysDeny => Subjects::default(),
            Self::Node(policy) => policy.allowed_subjects(attributes),
            Self::Rbac(snapshot) => snapshot.allowed_subjects(attributes),
            Self::Webhook(webhook) => noted(webhook.name(), webhook.allowed_subjects(attributes)),
            Self::Plugin(name, plugin) => noted(name.as_str(), plugin.allowed_subjects(attributes)),
        }
    }
}

/// The list with notes that say whose they are.
fn noted(name: &str, mut subjects: Subjects) -> Subjects {
    for note in &mut subjects.notes {
        note.insert_str(0, ": ");
        note.insert_str(0, name);
    }
    subjects
}

/// Policies may be large and plugins say nothing about themselves, so the name has to do.
impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Member").field(&self.name()).finish()
    }
}
