//! The resources that are part of the program, as one table.
//!
//! A row says only what is special about a resource. What it leaves out is the usual: the singular
//! is the kind in lower case, a list is called the kind and `List`, objects are stored under the
//! plural, names are DNS subdomains, and all eight verbs are offered.

mod table;

use admission::ConfigurationKind;

use crate::kind::Rules;
use crate::resource::{NameRule, Origin, Resource, Scope, Subresource};
use crate::schema::Schema;
use crate::verb::Verbs;

pub(crate) use table::TABLE;

/// A row of the table.
#[derive(Debug)]
pub struct BuiltIn {
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
    is_created_on_update: bool,
    is_resource_version_required: bool,
    is_returned_on_delete: bool,
    storage: Storage,
    pub(crate) rules: Rules,
    /// The schema of the objects, if the program has one.
    pub(crate) schema: Option<&'static Schema>,
}

/// Where objects are kept.
#[derive(Debug)]
enum Storage {
    /// Under the plural.
    Plural,
    /// Somewhere else, for the sake of those who look into the store.
    Path(&'static str),
    /// Nowhere: they are answered and forgotten.
    Nowhere,
}

/// A resource of the first version of a group whose objects are kept.
const fn stored_resource(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
) -> BuiltIn {
    BuiltIn {
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
        is_created_on_update: false,
        is_resource_version_required: false,
        is_returned_on_delete: false,
        storage: Storage::Plural,
        rules: Rules::None,
        schema: None,
    }
}

/// A resource of the core group.
const fn core_resource(kind: &'static str, plural: &'static str, scope: Scope) -> BuiltIn {
    stored_resource("", kind, plural, scope)
}

/// A resource of what intercepts requests.
const fn admission_resource(kind: &'static str, plural: &'static str) -> BuiltIn {
    stored_resource(ConfigurationKind::GROUP, kind, plural, Scope::Cluster)
        .categories(&["api-extensions"])
        .generation()
        .resource_version_required()
}

/// A configuration of what intercepts requests, other than a policy.
const fn admission_configuration(kind: ConfigurationKind) -> BuiltIn {
    admission_resource(kind.name(), kind.resource())
        .version(kind.version())
        .rules(Rules::Configuration(kind))
}

/// A question: it is answered and forgotten.
const fn review_resource(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
) -> BuiltIn {
    BuiltIn {
        verbs: Verbs::CREATE,
        storage: Storage::Nowhere,
        ..stored_resource(group, kind, plural, scope).version(version)
    }
}

impl BuiltIn {
    const fn version(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    const fn with_short_names(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    const fn categories(self, categories: &'static [&'static str]) -> Self {
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

    const fn stored_at(self, path: &'static str) -> Self {
        Self { storage: Storage::Path(path), ..self }
    }

    const fn generation(self) -> Self {
        Self { has_generation: true, ..self }
    }

    const fn created_on_update(self) -> Self {
        Self { is_created_on_update: true, ..self }
    }

    const fn resource_version_required(self) -> Self {
        Self { is_resource_version_required: true, ..self }
    }

    const fn returned_on_delete(self) -> Self {
        Self { is_returned_on_delete: true, ..self }
    }

    const fn schema(self, schema: &'static Schema) -> Self {
        Self { schema: Some(schema), ..self }
    }

    const fn rules(self, rules: Rules) -> Self {
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

    /// Where objects are stored, below the prefix of the store.
    pub(crate) fn storage_path(&self) -> Option<&'static str> {
        match self.storage {
            Storage::Plural => Some(self.plural),
            Storage::Path(path) => Some(path),
            Storage::Nowhere => None,
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
            is_created_on_update: self.is_created_on_update,
            is_resource_version_required: self.is_resource_version_required,
            is_returned_on_delete: self.is_returned_on_delete,
            storage_path: self.storage_path().map(str::to_owned),
            origin: Origin::BuiltIn(self),
        }
    }
}
