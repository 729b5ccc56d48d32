//! What somebody would grant without holding it, in Kubernetes' words.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use authz::User;

use crate::covers::Coverage;
use crate::grid::{Permission, PermissionTarget};
use crate::policy::PolicyRule;
use crate::snapshot::RoleLookupError;

/// The most lines of a message, each for one resource, name or path; the permissions of further ones
/// are counted.
const LINES_MAX: usize = 100;

/// The most text of all lines, in bytes. One verb can be as long as a role.
const LINES_BYTES_MAX: usize = 64 << 10;

/// What a line has beside its entries, in bytes.
const LINE_BYTES: usize = 64;

/// What somebody would grant without holding it. Displays as the API's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotHeld {
    /// Who.
    pub user: String,
    /// Their groups.
    pub groups: Vec<String>,
    /// What, in parts of one verb, group, resource and name each.
    pub uncovered: Vec<PolicyRule>,
    /// How many more of such parts there are.
    pub n_more: u64,
    /// Roles of theirs that could not be found, and might have helped.
    pub errors: Vec<RoleLookupError>,
}

impl NotHeld {
    pub(crate) fn new(user: &User, coverage: &Coverage<'_>, errors: Vec<RoleLookupError>) -> Self {
        let mut lines = Lines::default();
        let missing = coverage.missing().filter(|permission| lines.takes(permission));
        let uncovered: Vec<PolicyRule> = missing.map(|permission| permission.rule()).collect();
        let n_more = coverage.n_missing() - uncovered.len() as u64;
        let (user, groups) = (user.name.clone(), user.groups.clone());
        Self { user, groups, uncovered, n_more, errors }
    }
}

/// The lines of a message so far.
#[derive(Default)]
struct Lines<'w> {
    /// What they are for. The verbs of a resource are in one line, those of a path are not.
    known: HashSet<(PermissionTarget<'w>, Option<&'w str>)>,
    n_bytes: usize,
}

impl<'w> Lines<'w> {
    /// Reports whether there is room for a permission, and takes it up if so.
    fn takes(&mut self, permission: &Permission<'w>) -> bool {
        let Permission { verb, target } = *permission;
        let (line, n_bytes) = match target {
            PermissionTarget::Resource { api_group, resource, name } => {
                ((target, None), api_group.len() + resource.len() + name.map_or(0, str::len))
            }
            PermissionTarget::Path(url) => ((target, Some(verb)), url.len()),
        };
        let is_known = self.known.contains(&line);
        let n_line_bytes = if is_known { 0 } else { n_bytes + LINE_BYTES };
        let n_bytes = self.n_bytes + n_line_bytes + verb.len() + " \"\"".len();
        if n_bytes > LINES_BYTES_MAX || (!is_known && self.known.len() >= LINES_MAX) {
            return false;
        }
        self.n_bytes = n_bytes;
        self.known.insert(line);
        true
    }
}

impl std::error::Error for NotHeld {}

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, groups) = (go_compat::quote(&self.user), quoted_list(&self.groups));
        let lines: BTreeSet<String> =
            compact(&self.uncovered).iter().map(PolicyRule::to_string).collect();
        let mut lines: Vec<String> = lines.into_iter().collect();
        if self.n_more > 0 {
            lines.push(format!("and {} more", self.n_more));
        }
        write!(
            f,
            "user {user} (groups={groups}) is attempting to grant RBAC permissions not currently \
             held:\n{}",
            lines.join("\n"),
        )?;
        if !self.errors.is_empty() {
            let messages: Vec<String> =
                self.errors.iter().map(RoleLookupError::to_string).collect();
            write!(f, "; resolution errors: [{}]", field_errors::aggregate(&messages))?;
        }
        Ok(())
    }
}

/// Merges parts that differ only in their verbs.
fn compact(rules: &[PolicyRule]) -> Vec<PolicyRule> {
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

/// In Kubernetes' compact form; empty parts are left out.
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
