//! Flow schemas, and whether one matches a request.

#[cfg(test)]
mod tests;

use crate::request_digest::{RequestDigest, RequestTarget};

/// Stands in a list for every value.
const WILDCARD: &str = "*";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Assigns the requests that match one of its rules to a priority level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSchema {
    /// The name of the object.
    pub name: String,
    /// The uid of the object; clients see it in a response header.
    pub uid: String,
    /// Schemas with a lower number are tried first.
    pub matching_precedence: i32,
    /// The name of the priority level.
    pub priority_level_name: String,
    /// How the requests of this schema are divided into flows; `None` makes them one flow.
    pub flow_distinguisher: Option<FlowDistinguisher>,
    /// The schema matches if one of these matches.
    pub rules: Vec<PolicyRulesWithSubjects>,
}

/// The attribute that divides the requests of a schema into flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowDistinguisher {
    /// One flow for each user.
    ByUser,
    /// One flow for each namespace.
    ByNamespace,
}

/// Matches a request of one of the subjects for one of the targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyRulesWithSubjects {
    /// The users, groups and service accounts.
    pub subjects: Vec<Subject>,
    /// The rules for resources.
    pub resource_rules: Vec<ResourceRule>,
    /// The rules for paths.
    pub non_resource_rules: Vec<NonResourceRule>,
}

/// A user, a group or a service account. The name `*` stands for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A user, by name.
    User(String),
    /// A group, by name.
    Group(String),
    /// A service account, or all accounts of a namespace.
    ServiceAccount {
        /// The namespace of the account; never a wildcard.
        namespace: String,
        /// The name of the account.
        name: String,
    },
}

/// Matches requests for resources. In each list, a single `*` matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRule {
    /// The verbs of the requests that match.
    pub verbs: Vec<String>,
    /// The API groups; the core group is empty.
    pub api_groups: Vec<String>,
    /// The resources, as `resource` or `resource/subresource`.
    pub resources: Vec<String>,
    /// The namespaces of requests that have one.
    pub namespaces: Vec<String>,
    /// Whether the rule matches requests without a namespace.
    pub matches_cluster_scope: bool,
}

/// Matches requests for paths that are no resources, such as `/healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NonResourceRule {
    /// The verbs; a single `*` matches every verb.
    pub verbs: Vec<String>,
    /// The paths. A path also matches the paths below it.
    pub non_resource_urls: Vec<String>,
}

impl FlowSchema {
    /// Whether one of the rules matches the request.
    pub(crate) fn matches_request(&self, request: &RequestDigest<'_>) -> bool {
        self.rules.iter().any(|rules| rules.matches_request(request))
    }
}

impl PolicyRulesWithSubjects {
    fn matches_request(&self, request: &RequestDigest<'_>) -> bool {
        if !self.subjects.iter().any(|subject| subject.matches_request(request)) {
            return false;
        }
        match request.request_target {
            RequestTarget::Resource { group, resource, subresource, namespace } => {
                self.resource_rules.iter().any(|rule| {
                    rule.matches_resource_request(
                        request.verb,
                        group,
                        resource,
                        subresource,
                        namespace,
                    )
                })
            }
            RequestTarget::Path(path) => self
                .non_resource_rules
                .iter()
                .any(|rule| rule.matches_non_resource_request(request.verb, path)),
        }
    }
}

impl Subject {
    fn matches_request(&self, request: &RequestDigest<'_>) -> bool {
        match self {
            Self::User(name) => name == WILDCARD || name == request.user,
            Self::Group(name) => name == WILDCARD || request.groups.iter().any(|own| own == name),
            Self::ServiceAccount { namespace, name } => {
                let account = request
                    .user
                    .strip_prefix(SERVICE_ACCOUNT_PREFIX)
                    .and_then(|rest| rest.split_once(':'));
                account.is_some_and(|(own_namespace, own_name)| {
                    own_namespace == namespace && (name == WILDCARD || name == own_name)
                })
            }
        }
    }
}

impl ResourceRule {
    fn matches_resource_request(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        subresource: &str,
        namespace: &str,
    ) -> bool {
        list_contains_value_or_wildcard(&self.verbs, verb)
            && self.matches_resource_and_subresource(resource, subresource)
            && list_contains_value_or_wildcard(&self.api_groups, group)
            && if namespace.is_empty() {
                self.matches_cluster_scope
            } else {
                list_contains_value_or_wildcard(&self.namespaces, namespace)
            }
    }

    fn matches_resource_and_subresource(&self, resource: &str, subresource: &str) -> bool {
        if subresource.is_empty() {
            return list_contains_value_or_wildcard(&self.resources, resource);
        }
        is_wildcard_list(&self.resources)
            || self.resources.iter().any(|own| own.split_once('/') == Some((resource, subresource)))
    }
}

impl NonResourceRule {
    fn matches_non_resource_request(&self, verb: &str, path: &str) -> bool {
        list_contains_value_or_wildcard(&self.verbs, verb)
            && self.non_resource_urls.iter().any(|own| rule_path_covers_path(own, path))
    }
}

/// Whether a path of a rule is `*`, the path itself, or a parent of it. `/a`, `/a/` and `/a/*` all cover `/a/b`.
fn rule_path_covers_path(rule_path: &str, path: &str) -> bool {
    if rule_path == WILDCARD || rule_path == path {
        return true;
    }
    let parent = rule_path.strip_suffix('*').unwrap_or(rule_path);
    let parent = parent.strip_suffix('/').unwrap_or(parent);
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/'))
}

fn list_contains_value_or_wildcard(list: &[String], value: &str) -> bool {
    is_wildcard_list(list) || list.iter().any(|own| own == value)
}

/// Validation allows the wildcard only as the single element of a list.
fn is_wildcard_list(list: &[String]) -> bool {
    matches!(list, [only] if only == WILDCARD)
}
