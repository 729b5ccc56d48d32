//! Why a request may not impersonate a user.

use std::collections::BTreeMap;

use authz::{Attributes, Namespace, Reason, Resource, Target, UnavailableCause, User, Verb};

use crate::front_proxy::HeaderValueError;

/// Why a request may not impersonate a user.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ImpersonationError {
    /// An impersonation header is malformed.
    #[error(transparent)]
    Header(#[from] HeaderValueError),
    /// The headers name a uid, groups or extra values, but no user.
    #[error("requested {} without impersonating a user name", format_as_go_struct(.0))]
    NoUserName(Box<User>),
    /// The request has no authenticated user who could impersonate another one.
    #[error("no User found in the context")]
    NoRequestor,
    /// The requestor lacks a permission.
    #[error(transparent)]
    Forbidden(Box<MissingPermission>),
    /// This server could not get an authorization decision.
    #[error("no authorization decision is available")]
    Undecided(UnavailableCause),
    /// No mode applies. This is a bug, because the unconstrained mode applies to every user.
    #[error("all impersonation modes failed")]
    NoModeApplies,
}

/// The permission that a requestor lacks.
#[derive(Debug, Clone, thiserror::Error)]
#[error("a permission to impersonate is missing: {reason}")]
pub struct MissingPermission {
    /// The user who wants to impersonate, as the authorizer saw it.
    requestor: User,
    verb: String,
    denied_target: DeniedTarget,
    /// The reason of the authorizer.
    pub reason: Reason,
}

/// An owned copy of a [`Target`], without selectors: a check for impersonation has none that a refusal shows.
#[derive(Debug, Clone)]
enum DeniedTarget {
    Path(String),
    Resource {
        path: String,
        api_group: String,
        api_version: String,
        namespace: String,
        resource: String,
        subresource: String,
        name: String,
    },
}

impl MissingPermission {
    pub(super) fn new(requestor: &User, attributes: &Attributes<'_>, reason: Reason) -> Self {
        let target = match attributes.target {
            Target::Path(path) => DeniedTarget::Path(path.to_owned()),
            Target::Resource(resource) => DeniedTarget::Resource {
                path: resource.path.to_owned(),
                api_group: resource.api_group.to_owned(),
                api_version: resource.api_version.to_owned(),
                namespace: resource.namespace.as_str().to_owned(),
                resource: resource.resource.to_owned(),
                subresource: resource.subresource.to_owned(),
                name: resource.name.to_owned(),
            },
        };
        Self {
            requestor: requestor.clone(),
            verb: attributes.verb.as_str().to_owned(),
            denied_target: target,
            reason,
        }
    }

    /// The attributes that the authorizer did not allow.
    pub fn denied_attributes(&self) -> Attributes<'_> {
        let target = match &self.denied_target {
            DeniedTarget::Path(path) => Target::Path(path),
            DeniedTarget::Resource {
                path,
                api_group,
                api_version,
                namespace,
                resource,
                subresource,
                name,
            } => Target::Resource(Resource {
                path,
                api_group,
                api_version,
                namespace: Namespace::new(namespace),
                resource,
                subresource,
                name,
                field_selector: None,
                label_selector: None,
            }),
        };
        Attributes { user: Some(&self.requestor), verb: Verb::new(&self.verb), target }
    }
}

/// Formats a user as Go prints a struct, because the message of Kubernetes contains that.
fn format_as_go_struct(user: &User) -> String {
    let strings = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| go_compat::quote(value)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups =
        if user.groups.is_empty() { "[]string(nil)".to_owned() } else { strings(&user.groups) };
    let extra = |extra: &BTreeMap<String, Vec<String>>| {
        let members: Vec<String> = extra
            .iter()
            .map(|(key, values)| format!("{}:{}", go_compat::quote(key), strings(values)))
            .collect();
        format!("map[string][]string{{{}}}", members.join(", "))
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        extra(&user.extra)
    };
    let (name, uid) = (go_compat::quote(&user.name), go_compat::quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}
