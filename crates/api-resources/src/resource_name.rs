//! Resolves the names that people write for resources, as kubectl does: the plural, the singular, the kind, a
//! short name, each with or without the API group.
//!
//! Policies match only the plural and the group. An access check of `secret`, or of `deployments`
//! in the core group, would return a decision about a request that cannot occur. A caller
//! therefore resolves the name before the check.

mod named_resource;
mod unserved_kubernetes_resources;
mod verb_name;

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use api_object::{GroupResource, Tree};

use self::named_resource::{KnownSubresources, NamedResource, ResourceNameOrigin};
use crate::registry::Registry;
use crate::resource::Scope;

pub use verb_name::{UnknownVerb, VerbTarget, check_verb};

/// The wildcard of policies, which is no name and stays as it is.
const WILDCARD: &str = "*";

/// The maximum number of names that a misspelled one is compared with. A comparison takes microseconds, and a server
/// may serve many thousands of custom resources.
const COMPARED_NAMES_MAX: usize = 5_000;

/// The maximum number of candidates that a message lists.
const CANDIDATES_MAX: usize = 10;

/// The names by which resources can be found.
///
/// ```
/// # use api_resources::{ResourceName, ResourceNameTable};
/// let table = ResourceNameTable::kubernetes_resource_names();
/// let found = table.resolve_resource_name(&ResourceName::parse("deploy/scale").unwrap()).unwrap();
/// assert_eq!((&*found.group, &*found.plural, &*found.subresource), ("apps", "deployments", "scale"));
/// let error = table.resolve_resource_name(&ResourceName::parse("deploymnets").unwrap()).unwrap_err();
/// assert_eq!(error.to_string(), "no resource is named `deploymnets`, did you mean `deployments`?");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ResourceNameTable {
    /// In the order of preference: that of discovery, which kubectl prefers too.
    named_resources: Vec<NamedResource>,
    /// The place of each group and plural in `named_resources`.
    positions_by_group_and_plural: HashMap<(String, String), usize>,
    /// API groups whose resources another server defines, so that every name in them may exist.
    external_groups: Vec<String>,
}

/// A name as a user writes it: `RESOURCE[.GROUP][/SUBRESOURCE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceName {
    /// The plural, the singular, the kind or a short name.
    pub name: String,
    /// The API group; `None` if the user did not write one.
    pub group: Option<String>,
    /// Empty for the resource itself.
    pub subresource: String,
}

/// The text of a [`ResourceName`] is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseResourceNameError {
    /// There is no text before the group or the subresource.
    #[error("a resource is RESOURCE[.GROUP][/SUBRESOURCE]")]
    NoResource,
    /// The text ends with a separator.
    #[error("something is missing after the last `.` or `/`")]
    MissingPart,
}

/// The resource that a name stands for, in the words of policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedResource {
    /// Empty for the core group.
    pub group: String,
    /// The plural name, or `*`.
    pub plural: String,
    /// Empty for the resource itself.
    pub subresource: String,
    /// Whether objects are namespaced; `None` if the table does not know the resource, as for `*`.
    pub scope: Option<Scope>,
    /// Resources of other groups that the name also stands for. kubectl prefers the resolved one.
    pub other_matching_resources: Vec<GroupResource>,
}

/// A name stands for no resource, or for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceNameError {
    /// No resource has the name.
    UnknownResource {
        /// The name as it was written, with its group.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
    },
    /// Several resources have the name, and kubectl prefers none of them.
    AmbiguousName {
        /// The name as it was written.
        name: String,
        /// The resources, each with its group.
        candidates: Vec<GroupResource>,
    },
    /// The resource exists, and has no such subresource.
    UnknownSubresource {
        /// The resource that the name stands for.
        resource: GroupResource,
        /// The subresource as it was written.
        subresource: String,
        /// The nearest subresource that exists.
        nearest: Option<String>,
    },
}

/// The names of a resource as a cluster describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscoveredResourceNames {
    /// The API group; empty for the core group.
    pub group: String,
    /// The name in paths and policies.
    pub plural: String,
    /// The name of one object; empty for the kind in lower case.
    pub singular: String,
    /// The kind of the objects.
    pub kind: String,
    /// The short names, such as `deploy`.
    pub short_names: Vec<String>,
    /// Whether the objects are in namespaces.
    pub is_namespaced: bool,
    /// The subresources, such as `scale`.
    pub subresources: Vec<String>,
}

impl std::error::Error for ResourceNameError {}

impl fmt::Display for ResourceNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nearest = match self {
            Self::UnknownResource { name, nearest } => {
                write!(f, "no resource is named `{name}`")?;
                nearest
            }
            Self::UnknownSubresource { resource, subresource, nearest } => {
                write!(f, "{} have no subresource `{subresource}`", qualified_name(resource))?;
                nearest
            }
            Self::AmbiguousName { name, candidates } => {
                let shown: Vec<String> = candidates
                    .iter()
                    .take(CANDIDATES_MAX)
                    .map(|candidate| format!("`{}`", qualified_name(candidate)))
                    .collect();
                write!(f, "`{name}` is ambiguous, write {}", shown.join(" or "))?;
                let n_hidden = candidates.len().saturating_sub(CANDIDATES_MAX);
                if n_hidden > 0 {
                    write!(f, " or one of {n_hidden} more")?;
                }
                return Ok(());
            }
        };
        match nearest {
            Some(nearest) => write!(f, ", did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// Formats a resource as users write it: `pods`, `deployments.apps`.
#[must_use]
pub fn qualified_name(resource: &GroupResource) -> String {
    match resource.group.as_str() {
        "" => resource.resource.clone(),
        group => format!("{}.{group}", resource.resource),
    }
}

impl ResolvedResource {
    /// The resource as users write it, without its subresource.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        name_with_group(&self.plural, &self.group)
    }
}

impl ResourceName {
    /// Reads `RESOURCE[.GROUP][/SUBRESOURCE]`. The group may contain dots, the subresource slashes. Like kubectl it
    /// also takes `RESOURCE.VERSION.GROUP`, and ignores the version, because policies have none.
    ///
    /// # Errors
    /// A part is missing.
    pub fn parse(text: &str) -> Result<Self, ParseResourceNameError> {
        let (full, subresource) = text.split_once('/').unwrap_or((text, ""));
        let (name, group) = match full.split_once('.') {
            None => (full, None),
            Some((name, group)) => (name, Some(group)),
        };
        if name.is_empty() {
            return Err(ParseResourceNameError::NoResource);
        }
        if text.ends_with('/') || full.ends_with('.') {
            return Err(ParseResourceNameError::MissingPart);
        }
        let group = group.map(strip_version_prefix).map(str::to_owned);
        Ok(Self { name: name.to_owned(), group, subresource: subresource.to_owned() })
    }

    /// The name with its group, as the user wrote them.
    fn qualified_name_as_written(&self) -> String {
        match &self.group {
            None => self.name.clone(),
            Some(group) => format!("{}.{group}", self.name),
        }
    }

    /// The resource that the name literally is, for a caller that accepts unknown resources.
    #[must_use]
    pub fn to_literal_resource(&self) -> ResolvedResource {
        ResolvedResource {
            group: self.group.clone().unwrap_or_default(),
            plural: self.name.clone(),
            subresource: self.subresource.clone(),
            scope: None,
            other_matching_resources: Vec::new(),
        }
    }
}

/// Removes a leading version: `v1.apps` is the group `apps`, and `v1` alone the core group.
fn strip_version_prefix(group: &str) -> &str {
    let (first, rest) = group.split_once('.').unwrap_or((group, ""));
    let digits = first.strip_prefix('v').unwrap_or_default();
    let is_version = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if is_version { rest } else { group }
}

static KUBERNETES: LazyLock<ResourceNameTable> = LazyLock::new(|| {
    let mut table =
        ResourceNameTable::registry_resource_names(&Registry::with_built_in_resources());
    unserved_kubernetes_resources::add_unserved_resources(&mut table);
    table
});

impl ResourceNameTable {
    /// The names of the resources that a server serves. It knows no others; a policy may name more.
    #[must_use]
    pub fn registry_resource_names(registry: &Registry) -> Self {
        let mut table = Self::default();
        for resource in registry.resources() {
            table.add_named_resource(NamedResource::from_resource(resource));
        }
        table
    }

    /// The names of all resources of Kubernetes, also of those that this program does not serve, and the resources that
    /// only policies name, such as `users`.
    #[must_use]
    pub fn kubernetes_resource_names() -> Self {
        KUBERNETES.clone()
    }

    /// The names of all resources of Kubernetes and of the custom resources of a server. A custom resource can then not
    /// take a name that means a resource of Kubernetes, such as `users`, which this server does not serve.
    #[must_use]
    pub fn kubernetes_and_custom_resource_names(registry: &Registry) -> Self {
        let mut table = Self::kubernetes_resource_names();
        for resource in registry.resources().filter(|resource| resource.is_custom_resource()) {
            table.add_named_resource(NamedResource::from_resource(resource));
        }
        table
    }

    /// Adds the resource of a CustomResourceDefinition, of version v1 or v1beta1. It reads leniently, and ignores a
    /// definition that does not say its names.
    pub fn add_custom_resource_definition(&mut self, definition: &Tree) {
        if let Some(row) = NamedResource::from_custom_resource_definition(definition) {
            self.add_named_resource(row);
        }
    }

    /// Adds a resource that a cluster describes. If several resources have the same name, the name refers to the first
    /// that is added, as for kubectl; the others are found with their group.
    pub fn add_discovered_resource(&mut self, names: DiscoveredResourceNames) {
        let is_first = !self
            .named_resources
            .iter()
            .any(|own| own.plural == names.plural && own.group != names.group);
        self.add_named_resource(NamedResource {
            resource_origin: match is_first {
                true => ResourceNameOrigin::BuiltIn,
                false => ResourceNameOrigin::OnlyWithGroup,
            },
            singular: match names.singular.as_str() {
                "" => names.kind.to_ascii_lowercase(),
                _ => names.singular,
            },
            group: names.group,
            plural: names.plural,
            kind: names.kind,
            short_names: names.short_names,
            scope: if names.is_namespaced { Scope::Namespaced } else { Scope::Cluster },
            subresources: KnownSubresources::Known(names.subresources),
        });
    }

    /// Adds the resources that no server serves and that policies name, such as `users` for impersonation.
    pub fn add_unserved_resources_of_policies(&mut self) {
        unserved_kubernetes_resources::add_unserved_rows_of_policies(self);
    }

    /// Returns group, plural, scope and subresources of all resources, in the order of preference.
    pub fn resources(&self) -> impl Iterator<Item = (&str, &str, Scope)> {
        let served = self.named_resources.iter().filter(|row| !row.kind.is_empty());
        served.map(|row| (row.group.as_str(), row.plural.as_str(), row.scope))
    }

    /// Adds an API group whose resources another server defines. Every name with that group then resolves to
    /// itself.
    pub fn add_external_group(&mut self, group: &str) {
        if !group.is_empty() && !self.external_groups.iter().any(|own| own == group) {
            self.external_groups.push(group.to_owned());
        }
    }

    /// Finds the resource that a name stands for.
    ///
    /// 1. `*` stands for itself, as the resource, as the group and as the subresource.
    /// 2. With a group, only resources of that group count; if no resource is known to be in it, those of the groups that
    ///    begin with it: `ingresses.networking`. kubectl also looks there for names that a known group lacks. Here this would
    ///    turn a question about `certificates.k8s.io` into one about `certificates.k8s.io.example.com`.
    /// 3. The plural in a group comes before all other names in that group.
    /// 4. Built-in resources come before custom ones, by whatever name, because everyone who may define a resource
    ///    chooses its names.
    /// 5. Plurals, singulars and kinds come before short names. Case does not matter.
    /// 6. Of several resources the first built-in one counts, in the order of discovery; several custom ones are
    ///    ambiguous.
    /// 7. The subresource must be one of the resource.
    ///
    /// # Errors
    /// No resource has the name or the subresource, or several have the name.
    pub fn resolve_resource_name(
        &self,
        name: &ResourceName,
    ) -> Result<ResolvedResource, ResourceNameError> {
        if name.name == WILDCARD {
            return Ok(self.resolve_group_wildcard(name));
        }
        let candidates = self.find_candidate_resources(name);
        let Some((first, others)) = candidates.split_first() else {
            return match &name.group {
                Some(group) if self.is_external_group(group) => Ok(ResolvedResource {
                    plural: name.name.to_ascii_lowercase(),
                    ..name.to_literal_resource()
                }),
                _ => Err(ResourceNameError::UnknownResource {
                    name: name.qualified_name_as_written(),
                    nearest: self.nearest_resource_name(name),
                }),
            };
        };
        if first.resource_origin == ResourceNameOrigin::Custom && !others.is_empty() {
            let candidates = candidates.iter().map(|row| row.group_resource()).collect();
            return Err(ResourceNameError::AmbiguousName {
                name: name.qualified_name_as_written(),
                candidates,
            });
        }
        first.check_subresource(&name.subresource)?;
        let group = match name.group.as_deref() {
            Some(WILDCARD) => WILDCARD.to_owned(),
            Some(_) | None => first.group.clone(),
        };
        Ok(ResolvedResource {
            group,
            plural: first.plural.clone(),
            subresource: name.subresource.clone(),
            scope: Some(first.scope),
            other_matching_resources: others.iter().map(|row| row.group_resource()).collect(),
        })
    }

    /// The kind and the scope of a resource by its group and plural; the kind is empty for a resource that only
    /// policies name.
    #[must_use]
    pub fn kind_and_scope_of_resource(&self, group: &str, plural: &str) -> Option<(&str, Scope)> {
        self.find_named_resource(group, plural).map(|row| (row.kind.as_str(), row.scope))
    }

    /// Expands the group of `*.networking` to the group that begins with it.
    fn resolve_group_wildcard(&self, name: &ResourceName) -> ResolvedResource {
        let mut resolved = name.to_literal_resource();
        if let Some(group) = &name.group
            && group != WILDCARD
            && !self.is_known_group(group)
        {
            let mut longer =
                self.named_resources.iter().filter(|row| is_group_prefix(group, &row.group));
            if let Some(row) = longer.next() {
                resolved.group.clone_from(&row.group);
            }
        }
        resolved
    }

    /// The resources with that name, in the order of preference, each group and plural once.
    fn find_candidate_resources(&self, name: &ResourceName) -> Vec<&NamedResource> {
        let lower = name.name.to_ascii_lowercase();
        match name.group.as_deref() {
            None | Some(WILDCARD) => self.find_named_in_groups(&lower, |row| {
                row.resource_origin != ResourceNameOrigin::OnlyWithGroup
            }),
            Some(group) => {
                let group = group.to_ascii_lowercase();
                if let Some(row) = self.find_named_resource(&group, &lower) {
                    return vec![row];
                }
                match group.is_empty() || self.is_known_group(&group) {
                    true => self.find_named_in_groups(&lower, |row| row.group == group),
                    false => {
                        self.find_named_in_groups(&lower, |row| is_group_prefix(&group, &row.group))
                    }
                }
            }
        }
    }

    /// The resources of some groups with that name, which is in lower case; built-in ones come first.
    fn find_named_in_groups(
        &self,
        lower: &str,
        is_in_groups: impl Fn(&NamedResource) -> bool,
    ) -> Vec<&NamedResource> {
        let is_custom = |row: &&NamedResource| row.resource_origin == ResourceNameOrigin::Custom;
        let has_short = |row: &NamedResource| row.short_names.iter().any(|own| own == lower);
        let rows = || self.named_resources.iter().filter(|row| is_in_groups(row));
        let mut found: Vec<_> = rows().filter(|row| row.has_long_name(lower)).collect();
        if found.iter().all(is_custom) {
            let short: Vec<_> = rows().filter(|row| has_short(row)).collect();
            if found.is_empty() {
                found = short;
            } else {
                found.extend(short.into_iter().filter(|row| !is_custom(row)));
            }
        }
        // The sort is stable, so built-in resources keep the order of discovery.
        found.sort_by_key(is_custom);
        found
    }

    fn find_named_resource(&self, group: &str, plural: &str) -> Option<&NamedResource> {
        self.named_resources
            .get(*self.positions_by_group_and_plural.get(&(group.to_owned(), plural.to_owned()))?)
    }

    fn is_known_group(&self, group: &str) -> bool {
        self.is_external_group(group) || self.named_resources.iter().any(|row| row.group == group)
    }

    fn is_external_group(&self, group: &str) -> bool {
        self.external_groups.iter().any(|own| own == group)
    }

    fn add_named_resource(&mut self, row: NamedResource) {
        let place = *self
            .positions_by_group_and_plural
            .entry((row.group.clone(), row.plural.clone()))
            .or_insert(self.named_resources.len());
        match self.named_resources.get_mut(place) {
            // Another version of the same resource.
            Some(own) => own.subresources.extend(row.subresources),
            None => self.named_resources.push(row),
        }
    }

    /// The nearest name of a resource. With a group the nearest name in that group or, if it has none, the same
    /// name in the nearest group.
    fn nearest_resource_name(&self, name: &ResourceName) -> Option<String> {
        let Some(group) = name.group.as_deref().filter(|group| *group != WILDCARD) else {
            let rows = self
                .named_resources
                .iter()
                .filter(|row| row.resource_origin != ResourceNameOrigin::OnlyWithGroup);
            let nearest = field_errors::nearest_word(
                &name.name,
                rows.flat_map(NamedResource::long_names).take(COMPARED_NAMES_MAX),
            )?;
            return Some(nearest.to_owned());
        };
        let in_group: Vec<&NamedResource> =
            self.named_resources.iter().filter(|row| row.group == group).collect();
        let names = in_group.iter().flat_map(|row| row.long_names());
        if let Some(nearest) = field_errors::nearest_word(&name.name, names) {
            return Some(name_with_group(nearest, group));
        }
        let lower = name.name.to_ascii_lowercase();
        let has_name =
            |row: &&NamedResource| row.has_long_name(&lower) || row.short_names.contains(&lower);
        let others: Vec<&NamedResource> = self.named_resources.iter().filter(has_name).collect();
        let nearest_group =
            field_errors::nearest_word(group, others.iter().map(|row| row.group.as_str()));
        let row = match nearest_group {
            Some(nearest) => others.into_iter().find(|row| row.group == nearest),
            None => others
                .into_iter()
                .find(|row| row.resource_origin != ResourceNameOrigin::OnlyWithGroup),
        };
        row.map(|row| qualified_name(&row.group_resource()))
    }
}

/// Formats a name in a group; the core group has no name.
fn name_with_group(name: &str, group: &str) -> String {
    match group {
        "" => name.to_owned(),
        group => format!("{name}.{group}"),
    }
}

/// Reports whether a group begins with these labels: `networking` of `networking.k8s.io`.
fn is_group_prefix(prefix: &str, group: &str) -> bool {
    group.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests;
