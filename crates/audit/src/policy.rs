//! The audit policy: which requests are recorded, and at which level.

mod parse_policy;

use authz::{Attributes, Resource, Target, User};

use crate::stage::{Level, StageSet};

pub use self::parse_policy::PolicyError;

/// The rules of a valid audit policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// INVARIANT: at least one rule.
    rules: Vec<Rule>,
    /// `omitStages` of the policy. The rules already include them; this copy is for requests that no rule
    /// matches, which are not recorded.
    omit_stages: StageSet,
    omit_managed_fields: bool,
}

/// How one request is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestAuditConfig {
    /// The level of its events.
    pub level: Level,
    /// The stages for which no event is recorded.
    pub omit_stages: StageSet,
    /// Bodies are recorded without `metadata.managedFields`.
    pub omit_managed_fields: bool,
}

/// A rule of the policy. An empty list matches every request, except that a rule with resources does not match paths, and a
/// rule with paths does not match resources.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    audit_config: RequestAuditConfig,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    non_resource_urls: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Policy {
    /// The configuration of the first rule that matches; without one, the request is not recorded.
    pub fn config_for_request(&self, attributes: &Attributes<'_>) -> RequestAuditConfig {
        let of_rule = self.rules.iter().find(|rule| rule.matches(attributes));
        of_rule.map_or(
            RequestAuditConfig {
                level: Level::None,
                omit_stages: self.omit_stages,
                omit_managed_fields: self.omit_managed_fields,
            },
            |rule| rule.audit_config,
        )
    }
}

impl Rule {
    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        self.matches_user(attributes.user)
            && (self.verbs.is_empty() || contains(&self.verbs, attributes.verb.as_str()))
            && self.matches_target(&attributes.target)
    }

    fn matches_user(&self, user: Option<&User>) -> bool {
        let is_named =
            self.users.is_empty() || user.is_some_and(|user| contains(&self.users, &user.name));
        let is_member = self.user_groups.is_empty()
            || user.is_some_and(|user| {
                user.groups.iter().any(|group| contains(&self.user_groups, group))
            });
        is_named && is_member
    }

    fn matches_target(&self, target: &Target<'_>) -> bool {
        let is_for_resources = !self.namespaces.is_empty() || !self.resources.is_empty();
        let is_for_paths = !self.non_resource_urls.is_empty();
        match target {
            Target::Resource(resource) if is_for_resources => self.matches_resource(resource),
            Target::Resource(_) => !is_for_paths,
            Target::Path(path) if is_for_paths => {
                self.non_resource_urls.iter().any(|pattern| matches_path(pattern, path))
            }
            Target::Path(_) => !is_for_resources,
        }
    }

    fn matches_resource(&self, resource: &Resource<'_>) -> bool {
        let is_in_namespace =
            self.namespaces.is_empty() || contains(&self.namespaces, resource.namespace.as_str());
        let is_listed =
            self.resources.is_empty() || self.resources.iter().any(|entry| entry.matches(resource));
        is_in_namespace && is_listed
    }
}

impl GroupResources {
    fn matches(&self, resource: &Resource<'_>) -> bool {
        if self.group != "*" && self.group != resource.api_group {
            return false;
        }
        // The parser rejects names without resources.
        if self.resources.is_empty() {
            return true;
        }
        (self.resource_names.is_empty() || contains(&self.resource_names, resource.name))
            && self.resources.iter().any(|pattern| matches_resource_pattern(pattern, resource))
    }
}

/// Matches a resource with a pattern: `*`, `pods`, `pods/log`, `pods/*` (which also matches `pods`) or `*/scale`.
fn matches_resource_pattern(pattern: &str, resource: &Resource<'_>) -> bool {
    if pattern == "*" {
        return true;
    }
    match pattern.split_once('/') {
        None => resource.subresource.is_empty() && pattern == resource.resource,
        Some((name, "*")) if name == resource.resource => true,
        Some(("*", subresource)) if !resource.subresource.is_empty() => {
            subresource == resource.subresource
        }
        Some((name, subresource)) => {
            name == resource.resource
                && subresource == resource.subresource
                && !resource.subresource.is_empty()
        }
    }
}

/// Matches a path with a pattern: `*`, a path, or a prefix followed by `*`.
fn matches_path(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == pattern,
    }
}

fn contains(list: &[String], value: &str) -> bool {
    list.iter().any(|entry| entry == value)
}

#[cfg(test)]
mod tests;
