//! Group, version, kind and resource names.

use std::fmt;

/// A group and a version: `v1`, `apps/v1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    /// Empty for the core group.
    pub group: String,
    /// The version, which is never empty.
    pub version: String,
}

/// A group and a kind, as messages show them: `ConfigMap`, `Role.rbac.authorization.k8s.io`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: String,
    /// The kind in CamelCase.
    pub kind: String,
}

/// A group and a resource, as messages show them: `configmaps`, `roles.rbac.authorization.k8s.io`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// Empty for the core group.
    pub group: String,
    /// The plural resource name.
    pub resource: String,
}

impl GroupVersion {
    /// Builds a group and version from its parts.
    #[must_use]
    pub fn new(group: &str, version: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned() }
    }

    /// Parses the `apiVersion` of an object; `None` for a text with more than one `/`.
    #[must_use]
    pub fn parse_api_version(api_version: &str) -> Option<Self> {
        match api_version.split_once('/') {
            None => Some(Self::new("", api_version)),
            Some((group, version)) => (!version.contains('/')).then(|| Self::new(group, version)),
        }
    }
}

impl GroupKind {
    /// Builds a group and kind from its parts.
    #[must_use]
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned() }
    }
}

impl GroupResource {
    /// Builds a group and resource from its parts.
    #[must_use]
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), resource: resource.to_owned() }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        f.write_str(&self.version)
    }
}

/// Writes the name, and the group after it if there is one.
fn write_qualified_name(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    f.write_str(name)?;
    if group.is_empty() { Ok(()) } else { write!(f, ".{group}") }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified_name(f, &self.kind, &self.group)
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified_name(f, &self.resource, &self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_show_their_group_if_they_have_one() {
        assert_eq!(GroupResource::new("", "pods").to_string(), "pods");
        assert_eq!(GroupResource::new("apps", "deployments").to_string(), "deployments.apps");
        assert_eq!(GroupKind::new("apps", "Deployment").to_string(), "Deployment.apps");
        assert_eq!(GroupVersion::new("", "v1").to_string(), "v1");
        assert_eq!(GroupVersion::new("apps", "v1").to_string(), "apps/v1");
    }

    #[test]
    fn api_versions_have_at_most_one_slash() {
        assert_eq!(GroupVersion::parse_api_version("v1"), Some(GroupVersion::new("", "v1")));
        assert_eq!(GroupVersion::parse_api_version("a.b/v1"), Some(GroupVersion::new("a.b", "v1")));
        assert_eq!(GroupVersion::parse_api_version("a/b/c"), None);
    }
}
