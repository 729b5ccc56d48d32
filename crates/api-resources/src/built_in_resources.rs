//! The built-in resources, as one table.
//!
//! A row states only what differs from the defaults. By default the singular name is the kind in lower
//! case, the list kind is the kind and `List`, objects are stored under the plural name, object names
//! are DNS subdomains, and all eight verbs are supported.

mod resource_table;

use admission::ConfigurationKind;

use crate::kind_rules::KindRules;
use crate::resource::{NameRule, Resource, ResourceOrigin, Scope, Subresource};
use crate::schema::Schema;
use crate::verb::Verbs;

pub(crate) use resource_table::TABLE;

/// A built-in resource: one row of the table.
#[derive(Debug)]
pub struct BuiltInResource {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    verbs: Verbs,
    subresources: &'static [Subresource],
    name_rule: NameRule,
    has_generation: bool,
    allows_create_on_update: bool,
    is_resource_version_required: bool,
    returns_object_on_delete: bool,
    orphans_dependents_by_default: bool,
    storage_location: StorageLocation,
    pub(crate) rules: KindRules,
    /// The schema of the objects, if the program has one.
    pub(crate) schema: Option<&'static Schema>,
}

/// The place of objects in the store.
#[derive(Debug)]
enum StorageLocation {
    /// Objects are stored under the plural name.
    Plural,
    /// Objects are stored under another path, which is that of Kubernetes.
    Path(&'static str),
    /// Objects are not stored; a create returns a response and nothing remains.
    Nowhere,
}

/// A resource of version `v1` whose objects are stored.
const fn stored_v1_resource(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
) -> BuiltInResource {
    BuiltInResource {
        group,
        version: "v1",
        kind,
        plural,
        scope,
        short_names: &[],
        categories: &[],
        verbs: Verbs::ALL,
        subresources: &[],
        name_rule: NameRule::DnsSubdomain,
        has_generation: false,
        allows_create_on_update: false,
        is_resource_version_required: false,
        returns_object_on_delete: false,
        orphans_dependents_by_default: false,
        storage_location: StorageLocation::Plural,
        rules: KindRules::None,
        schema: None,
    }
}

/// A resource of the core group.
const fn core_v1_resource(
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
) -> BuiltInResource {
    stored_v1_resource("", kind, plural, scope)
}

/// A resource of the group `admissionregistration.k8s.io`.
const fn admission_registration_resource(
    kind: &'static str,
    plural: &'static str,
) -> BuiltInResource {
    stored_v1_resource(ConfigurationKind::GROUP, kind, plural, Scope::Cluster)
        .with_categories(&["api-extensions"])
        .generation()
        .require_resource_version()
}

/// A resource that configures webhooks or initializers.
const fn admission_configuration_resource(kind: ConfigurationKind) -> BuiltInResource {
    admission_registration_resource(kind.name(), kind.resource())
        .version(kind.version())
        .rules(KindRules::Configuration(kind))
}

/// A review: a create returns the answer, and nothing is stored.
const fn review_resource(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
) -> BuiltInResource {
    BuiltInResource {
        verbs: Verbs::CREATE,
        storage_location: StorageLocation::Nowhere,
        ..stored_v1_resource(group, kind, plural, scope).version(version)
    }
}

/// The kind of the subresource `scale`. It is no resource by itself, so the table does not have it.
pub(crate) static SCALE: BuiltInResource =
    review_resource("autoscaling", "v1", "Scale", "scales", Scope::Namespaced)
        .rules(KindRules::Scale);

impl BuiltInResource {
    const fn version(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    const fn with_short_names(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    const fn with_categories(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    const fn with_subresources(self, subresources: &'static [Subresource]) -> Self {
        Self { subresources, ..self }
    }

    const fn verbs(self, verbs: Verbs) -> Self {
        Self { verbs, ..self }
    }

    const fn with_name_rule(self, name_rule: NameRule) -> Self {
        Self { name_rule, ..self }
    }

    const fn with_storage_path(self, path: &'static str) -> Self {
        Self { storage_location: StorageLocation::Path(path), ..self }
    }

    const fn generation(self) -> Self {
        Self { has_generation: true, ..self }
    }

    const fn allow_create_on_update(self) -> Self {
        Self { allows_create_on_update: true, ..self }
    }

    const fn require_resource_version(self) -> Self {
        Self { is_resource_version_required: true, ..self }
    }

    const fn return_object_on_delete(self) -> Self {
        Self { returns_object_on_delete: true, ..self }
    }

    const fn orphan_dependents_by_default(self) -> Self {
        Self { orphans_dependents_by_default: true, ..self }
    }

    const fn with_schema(self, schema: &'static Schema) -> Self {
        Self { schema: Some(schema), ..self }
    }

    const fn rules(self, rules: KindRules) -> Self {
        Self { rules, ..self }
    }

    /// Whether the row is for the resource of this group and plural, in any version.
    pub(crate) fn matches_resource(&self, group: &str, plural: &str) -> bool {
        (self.group, self.plural) == (group, plural)
    }

    /// Whether the row is for a resource of this version of a group.
    pub(crate) fn matches_version(&self, group: &str, version: &str) -> bool {
        (self.group, self.version) == (group, version)
    }

    /// The path of the objects in the store, below the prefix of the store.
    pub(crate) fn storage_path(&self) -> Option<&'static str> {
        match self.storage_location {
            StorageLocation::Plural => Some(self.plural),
            StorageLocation::Path(path) => Some(path),
            StorageLocation::Nowhere => None,
        }
    }

    /// The resource that the row describes.
    pub(crate) fn resource(&'static self) -> Resource {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Resource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.kind.to_ascii_lowercase(),
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            scope: self.scope,
            verbs: self.verbs,
            subresources: self.subresources.to_vec(),
            name_rule: self.name_rule,
            has_generation: self.has_generation,
            allows_create_on_update: self.allows_create_on_update,
            is_resource_version_required: self.is_resource_version_required,
            returns_object_on_delete: self.returns_object_on_delete,
            orphans_dependents_by_default: self.orphans_dependents_by_default,
            storage_path: self.storage_path().map(str::to_owned),
            resource_origin: ResourceOrigin::BuiltIn(self),
        }
    }
}
