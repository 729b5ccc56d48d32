//! The permissions that a user would grant without holding them, in Kubernetes' words.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use authz::User;

use crate::permission_grid::{Permission, PermissionTarget};
use crate::policy::{GROUP, PolicyRule};
use crate::rule_coverage::RuleCoverage;
use crate::snapshot::RoleLookupError;

/// The maximum number of lines of a message, each for one resource, name or path. Permissions beyond them are only
/// counted.
const LINES_MAX: usize = 100;

/// The maximum total length of all lines in bytes. A single verb may be as long as a role.
const LINES_BYTES_MAX: usize = 64 << 10;

/// The maximum number of missing permissions that are considered for the lines. The others are only counted, because a
/// role may have a million of them.
const EXAMINED_MAX: usize = 10_000;

/// The bytes of a line in addition to its elements.
const LINE_OVERHEAD_BYTES: usize = 64;

/// The permissions that a user would grant without holding them. Displays as the message of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPermissions {
    /// The name of the user.
    pub user: String,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// The missing permissions, each with one verb, API group, resource and name.
    pub rules: Vec<PolicyRule>,
    /// The number of missing permissions that are not in `rules`.
    pub n_unlisted_permissions: u64,
    /// The roles of the user that do not exist, whose rules are not counted as held.
    pub role_lookup_errors: Vec<RoleLookupError>,
}

impl MissingPermissions {
    pub(crate) fn new(
        user: &User,
        coverage: &RuleCoverage<'_>,
        role_lookup_errors: Vec<RoleLookupError>,
    ) -> Self {
        let mut lines = MissingPermissionLines::default();
        let examined = coverage.missing_permissions().take(EXAMINED_MAX);
        let missing = examined.filter(|permission| lines.try_add_permission(permission));
        let rules: Vec<PolicyRule> = missing.map(|permission| permission.rule()).collect();
        let n_unlisted_permissions = coverage.n_missing_permissions() - rules.len() as u64;
        let (user, groups) = (user.name.clone(), user.groups.clone());
        Self { user, groups, rules, n_unlisted_permissions, role_lookup_errors }
    }
}

/// The lines of a message so far.
#[derive(Default)]
struct MissingPermissionLines<'w> {
    /// The target of each line. One line has all verbs of a resource. A path has one line for each verb.
    listed_targets: HashSet<(PermissionTarget<'w>, Option<&'w str>)>,
    message_bytes: usize,
}

impl<'w> MissingPermissionLines<'w> {
    /// Adds a permission if there is room for it. Returns `false` if there is not.
    fn try_add_permission(&mut self, permission: &Permission<'w>) -> bool {
        let Permission { verb, target } = *permission;
        let (line, n_bytes) = match target {
            PermissionTarget::Resource { api_group, resource, name } => {
                ((target, None), api_group.len() + resource.len() + name.map_or(0, str::len))
            }
            PermissionTarget::Path(url) => ((target, Some(verb)), url.len()),
        };
        let is_known = self.listed_targets.contains(&line);
        let n_line_bytes = if is_known { 0 } else { n_bytes + LINE_OVERHEAD_BYTES };
        let n_bytes = self.message_bytes + n_line_bytes + verb.len() + " \"\"".len();
        if n_bytes > LINES_BYTES_MAX || (!is_known && self.listed_targets.len() >= LINES_MAX) {
            return false;
        }
        self.message_bytes = n_bytes;
        self.listed_targets.insert(line);
        true
    }
}

impl std::error::Error for MissingPermissions {}

impl MissingPermissions {
    /// The message of a server about a write to this resource. Kubernetes names the resource of the request in place of
    /// the resource of a role that does not exist.
    #[must_use]
    pub fn refusal_message_for_write(&self, resource: &str) -> String {
        let error_text = |error: &RoleLookupError| match error {
            RoleLookupError::ClusterRoleNotFound(name) | RoleLookupError::RoleNotFound(name) => {
                format!("{resource}.{GROUP} {} not found", go_compat::quote(name))
            }
            RoleLookupError::UnsupportedKind(_) => error.to_string(),
        };
        let text = fmt::from_fn(|f| self.format_missing_permissions(f, &error_text));
        text.to_string()
    }

    fn format_missing_permissions(
        &self,
        f: &mut fmt::Formatter<'_>,
        error_text: &dyn Fn(&RoleLookupError) -> String,
    ) -> fmt::Result {
        let (user, groups) = (go_compat::quote(&self.user), quoted_list(&self.groups));
        let lines: BTreeSet<String> =
            merge_verbs(&self.rules).iter().map(PolicyRule::to_string).collect();
        let mut lines: Vec<String> = lines.into_iter().collect();
        if self.n_unlisted_permissions > 0 {
            lines.push(format!("and {} more", self.n_unlisted_permissions));
        }
        write!(
            f,
            "user {user} (groups={groups}) is attempting to grant RBAC permissions not currently \
             held:\n{}",
            lines.join("\n"),
        )?;
        if !self.role_lookup_errors.is_empty() {
            let messages: Vec<String> = self.role_lookup_errors.iter().map(error_text).collect();
            write!(f, "; resolution errors: [{}]", field_errors::aggregate_messages(&messages))?;
        }
        Ok(())
    }
}

impl fmt::Display for MissingPermissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.format_missing_permissions(f, &RoleLookupError::to_string)
    }
}

/// Merges rules for one resource that differ only in their verbs.
fn merge_verbs(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    let is_simple = |rule: &PolicyRule| {
        let PolicyRule { api_groups, resources, resource_names, non_resource_urls, .. } = rule;
        let is_one_resource = api_groups.len() == 1 && resources.len() == 1;
        is_one_resource && resource_names.len() <= 1 && non_resource_urls.is_empty()
    };
    let key = |rule: &PolicyRule| PolicyRule { verbs: Vec::new(), ..rule.clone() };
    let mut places = std::collections::HashMap::new();
    let mut compacted: Vec<PolicyRule> = Vec::new();
    for rule in rules {
        if is_simple(rule) {
            let at = *places.entry(key(rule)).or_insert(compacted.len());
            if let Some(same) = compacted.get_mut(at) {
                same.verbs.extend_from_slice(&rule.verbs);
                continue;
            }
        }
        compacted.push(rule.clone());
    }
    compacted
}

/// Displays in Kubernetes' compact form; empty lists are left out.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted_list(list)))
        .collect();
        write!(f, "{{{}}}", parts.join(", "))
    }
}

fn quoted_list(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| go_compat::quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}
