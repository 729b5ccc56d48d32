//! The RBAC objects that allow a request.

use std::fmt;

use crate::namespace::Namespace;

/// A subject of a binding that names the user, and the role that the binding grants to it.
///
/// Displays as Kubernetes describes a grant:
///
/// ```
/// use authz::{Namespace, RbacGrant, RbacSubject};
///
/// let grant = RbacGrant {
///     binding_namespace: Namespace::new("prod"),
///     binding_name: "readers",
///     role_kind: "ClusterRole",
///     role_name: "view",
///     subject: Some(RbacSubject { kind: "User", name: "ana", namespace: Namespace::CLUSTER_SCOPE }),
///     rule_idx: None,
/// };
/// assert_eq!(
///     grant.to_string(),
///     r#"RoleBinding "readers/prod" of ClusterRole "view" to User "ana""#
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RbacGrant<'a> {
    /// The namespace of a RoleBinding; the cluster scope for a ClusterRoleBinding.
    pub binding_namespace: Namespace<'a>,
    /// The name of the binding.
    pub binding_name: &'a str,
    /// The kind of the role: `Role` or `ClusterRole`.
    pub role_kind: &'a str,
    /// The name of the role.
    pub role_name: &'a str,
    /// The subject that matches the user.
    pub subject: Option<RbacSubject<'a>>,
    /// The position in the role of the rule that allows the request, from 0; `None` if the authorizer
    /// did not have to find it.
    pub rule_idx: Option<usize>,
}

/// A subject of a binding. Displays as Kubernetes describes it: `User "ana"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RbacSubject<'a> {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: &'a str,
    /// The name of the subject.
    pub name: &'a str,
    /// The namespace of a service account; not used for other kinds.
    pub namespace: Namespace<'a>,
}

/// The bindings of an RBAC policy, as far as a [`Reason`](crate::Reason) needs them.
///
/// This is a trait because the bindings belong to the RBAC authorizer, which depends on this crate and
/// not the other way round. A reason keeps a pointer to them and copies nothing.
///
/// INVARIANT: implementations are immutable. A clone of a reason would otherwise come to differ from
/// its original.
pub trait RbacGrantSource: fmt::Debug + Send + Sync {
    /// The grant with this index. The authorizer chooses the indices, for example the position of the
    /// subject in its binding.
    fn grant_at_index(&self, grant_idx: usize) -> Option<RbacGrant<'_>>;
}

impl fmt::Display for RbacGrant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.binding_name;
        match self.binding_namespace.name() {
            None => {
                f.write_str("ClusterRoleBinding ")?;
                f.write_str(&go_compat::quote(name))?;
            }
            Some(namespace) => {
                write!(f, "RoleBinding {}", go_compat::quote(&format!("{name}/{namespace}")))?;
            }
        }
        // This does not use `write!`: formatting takes longer than the rest of the response, and
        // most responses to reviews contain this text.
        for part in [" of ", self.role_kind, " ", &go_compat::quote(self.role_name), " to "] {
            f.write_str(part)?;
        }
        self.subject.map_or(Ok(()), |subject| subject.fmt(f))
    }
}

impl fmt::Display for RbacSubject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, namespace } = self;
        match *kind {
            "ServiceAccount" => {
                let namespace = namespace.as_str();
                write!(f, "{kind} {}", go_compat::quote(&format!("{name}/{namespace}")))
            }
            kind => {
                f.write_str(kind)?;
                f.write_str(" ")?;
                f.write_str(&go_compat::quote(name))
            }
        }
    }
}
