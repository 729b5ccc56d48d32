//! The source of a decision: which authorizer decided, and by which rule.
//!
//! Most decisions are never shown to anybody, so a reason is a value that points to the rule. Its text is
//! made when the reason is displayed, which keeps allocation and formatting out of the decision.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;

use crate::rbac_grant::{RbacGrant, RbacGrantSource};
use crate::shared_text::SharedText;

/// The reason of a decision: the rule that decided, or a text.
///
/// Displays as Kubernetes' text for the audit log and for the client, which is empty for some authorizers.
/// Reasons are equal if their texts are. A clone allocates nothing.
///
/// ```
/// use authz::Reason;
///
/// let fixed = Reason::from("the cluster is frozen");
/// let made = Reason::from(format!("the {} is frozen", "cluster"));
/// assert_eq!(fixed, made);
/// assert_eq!(made, "the cluster is frozen");
/// assert!(Reason::default().is_empty());
/// ```
#[derive(Clone)]
pub enum Reason {
    /// A text of the authorizer; empty if it gives no reason.
    Text(SharedText),
    /// The user is a member of `system:masters`, whom no authorizer can restrict. No text.
    SystemMasters,
    /// The authorizer `AlwaysAllow` allows every request. No text.
    AlwaysAllow,
    /// The authorizer `AlwaysDeny` allows no request.
    AlwaysDeny,
    /// A policy of the ABAC file allows the request. No text.
    AbacPolicy {
        /// The line of the file, from 1.
        line: usize,
    },
    /// A rule of the Node authorizer allows the request. No text.
    NodeRule(NodeAllowRule),
    /// No pod that is bound to this node refers to the object.
    NodeNotRelated {
        /// The name of the node.
        node: Arc<str>,
    },
    /// An RBAC binding allows the request.
    RbacGrant {
        /// The bindings that contain the one that allows the request.
        bindings: Arc<dyn RbacGrantSource>,
        /// The index of the grant, as [`RbacGrantSource::grant_at_index`] takes it.
        grant_idx: usize,
    },
    /// A webhook answered, or its failure policy did.
    Webhook {
        /// The name of the authorizer.
        name: Arc<str>,
        /// The reason that the webhook returned.
        text: SharedText,
    },
    /// An authorizer that is not built in answered.
    Plugin {
        /// The name of the authorizer.
        name: Arc<str>,
        /// The reason that it gave.
        text: SharedText,
    },
    /// No authorizer of the chain allowed or denied the request.
    Abstentions(Arc<[Abstention]>),
}

/// An authorizer without an opinion, and its reason. Displays as `name: reason`.
#[derive(Debug, Clone)]
pub struct Abstention {
    /// The name of the authorizer.
    pub authorizer_name: SharedText,
    /// The reason of the authorizer, which is not empty.
    pub reason: Reason,
}

/// The rule by which the Node authorizer allows a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeAllowRule {
    /// Every node may make this request.
    EveryNode,
    /// The object is the node itself, or bears its name.
    OwnObject,
    /// A pod that is bound to the node refers to the object.
    RelatedObject,
    /// A field selector narrows the request to the node.
    NodeNameSelector,
    /// A rule of the role `system:node` covers the request.
    SystemNodeRole,
}

impl Reason {
    /// A reason with a constant text.
    pub const fn from_static_text(text: &'static str) -> Self {
        Self::Text(SharedText::Static(text))
    }

    /// The binding, role and subject, if RBAC allowed the request.
    pub fn rbac_grant(&self) -> Option<RbacGrant<'_>> {
        match self {
            Self::RbacGrant { bindings, grant_idx } => bindings.grant_at_index(*grant_idx),
            Self::Text(_)
            | Self::SystemMasters
            | Self::AlwaysAllow
            | Self::AlwaysDeny
            | Self::AbacPolicy { .. }
            | Self::NodeRule(_)
            | Self::NodeNotRelated { .. }
            | Self::Webhook { .. }
            | Self::Plugin { .. }
            | Self::Abstentions(_) => None,
        }
    }

    /// The reason with the name of the plugin that gave it. A reason that names its source stays as it is.
    pub fn with_plugin_name(self, name: &Arc<str>) -> Self {
        match self {
            Self::Text(text) => Self::Plugin { name: Arc::clone(name), text },
            sourced => sourced,
        }
    }

    /// Reports whether the text is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) | Self::Webhook { text, .. } | Self::Plugin { text, .. } => {
                text.is_empty()
            }
            Self::SystemMasters
            | Self::AlwaysAllow
            | Self::AbacPolicy { .. }
            | Self::NodeRule(_) => true,
            Self::AlwaysDeny | Self::NodeNotRelated { .. } | Self::RbacGrant { .. } => false,
            Self::Abstentions(abstentions) => abstentions.is_empty(),
        }
    }
}

impl Default for Reason {
    fn default() -> Self {
        Self::from_static_text("")
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Self {
        Self::from_static_text(text)
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Cow<'static, str>> for Reason {
    fn from(text: Cow<'static, str>) -> Self {
        Self::Text(text.into())
    }
}

impl From<NodeAllowRule> for Reason {
    fn from(rule: NodeAllowRule) -> Self {
        Self::NodeRule(rule)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Webhook { text, .. } | Self::Plugin { text, .. } => {
                f.write_str(text)
            }
            Self::SystemMasters
            | Self::AlwaysAllow
            | Self::AbacPolicy { .. }
            | Self::NodeRule(_) => Ok(()),
            Self::AlwaysDeny => f.write_str("Everything is forbidden."),
            Self::NodeNotRelated { node } => {
                write!(f, "no relationship found between node '{node}' and this object")
            }
            Self::RbacGrant { .. } => {
                f.write_str("RBAC: allowed by ")?;
                self.rbac_grant().map_or(Ok(()), |grant| grant.fmt(f))
            }
            Self::Abstentions(abstentions) => {
                abstentions.iter().enumerate().try_for_each(|(idx, abstention)| {
                    let separator = if idx == 0 { "" } else { "\n" };
                    write!(f, "{separator}{}: {}", abstention.authorizer_name, abstention.reason)
                })
            }
        }
    }
}

/// Shows the text in quotes.
impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl PartialEq<str> for Reason {
    fn eq(&self, text: &str) -> bool {
        let mut expected = DisplayEqualityWriter(text);
        write!(expected, "{self}").is_ok() && expected.0.is_empty()
    }
}

impl PartialEq<&str> for Reason {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        *self == *other.to_string()
    }
}

impl Eq for Reason {}

/// The rest of an expected text. Writing removes each written piece from it, so a comparison allocates nothing.
struct DisplayEqualityWriter<'a>(&'a str);

impl Write for DisplayEqualityWriter<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(piece).ok_or(fmt::Error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
