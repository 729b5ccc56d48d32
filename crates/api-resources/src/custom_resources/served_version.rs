//! The served versions of a definition.

use std::sync::Arc;

use super::custom_resource_definition::{
    CustomResourceDefinition, DefinitionVersion, VersionDeprecation,
};
use crate::columns::CustomResourceTable;
use crate::resource::{NameRule, Resource, ResourceOrigin, Subresource};
use crate::scale::ReplicaPaths;
use crate::verb::Verbs;

/// The properties of a custom resource version that built-in resources do not have.
#[derive(Debug, Clone)]
pub struct ServedVersion {
    /// The name of the definition.
    pub definition_name: String,
    /// The uid of the definition, because a later definition of the same name has other objects.
    pub definition_uid: String,
    /// The version in which objects are stored, whichever version a request names.
    pub storage_version: String,
    /// Whether the definition is being deleted, so that no object may be created.
    pub is_terminating: bool,
    /// The warning for clients that use the version, if it is deprecated.
    pub deprecation_warning: Option<String>,
    /// The OpenAPI schema of the objects, as JSON text.
    pub schema_json: Option<Arc<str>>,
    /// The fields that lists can be filtered by, besides name and namespace: paths that begin with
    /// a dot.
    pub selectable_fields: Vec<String>,
    /// The paths of replicas, if the definition declares the subresource `scale`.
    pub replica_paths: Option<ReplicaPaths>,
    pub(crate) custom_resource_table: CustomResourceTable,
}

impl CustomResourceDefinition {
    /// The resources that the definition adds: one for each served version.
    pub(crate) fn resources(&self) -> impl Iterator<Item = Resource> {
        self.versions.iter().filter(|it| it.is_served).map(|version| self.resource(version))
    }

    fn resource(&self, version: &DefinitionVersion) -> Resource {
        let names = &self.accepted_names;
        let storage_version = self.storage_version().unwrap_or(version);
        let usual = || format!("{}/{} {} is deprecated", self.group, version.name, names.kind);
        let deprecation_warning = match &version.version_deprecation {
            VersionDeprecation::None => None,
            VersionDeprecation::DefaultWarning => Some(usual()),
            VersionDeprecation::CustomWarning(text) => Some(text.clone()),
        };
        let served = ServedVersion {
            definition_name: self.name.clone(),
            definition_uid: self.uid.clone(),
            storage_version: storage_version.name.clone(),
            is_terminating: self.is_terminating(),
            deprecation_warning,
            schema_json: version.schema_json.clone(),
            selectable_fields: version.selectable_fields.clone(),
            replica_paths: version.replica_paths.clone(),
            custom_resource_table: CustomResourceTable::new(&version.printer_columns),
        };
        Resource {
            group: self.group.clone(),
            version: version.name.clone(),
            kind: names.kind.clone(),
            list_kind: names.list_kind.clone(),
            plural: names.plural.clone(),
            singular: names.singular.clone(),
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            scope: self.scope,
            verbs: Verbs::ALL,
            subresources: version.subresources(),
            name_rule: NameRule::DnsSubdomain,
            has_generation: true,
            allows_create_on_update: false,
            is_resource_version_required: true,
            returns_object_on_delete: false,
            orphans_dependents_by_default: false,
            storage_path: self.storage_path(),
            resource_origin: ResourceOrigin::Custom(Box::new(served)),
        }
    }
}

impl DefinitionVersion {
    /// The subresources in the order in which discovery shows them.
    fn subresources(&self) -> Vec<Subresource> {
        let status = self.has_status_subresource.then_some(Subresource::STATUS);
        let scale = self.replica_paths.is_some().then_some(Subresource::SCALE);
        status.into_iter().chain(scale).collect()
    }
}
