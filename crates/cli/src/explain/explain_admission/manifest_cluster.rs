//! The state of a cluster that manifests describe.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use admission::{Configuration, ConfigurationKind, Snapshot};
use api_object::Tree;
use api_resources::{CustomResourceDefinition, Registry};
use document::Diagnostic;
use jiff::Timestamp;
use manifests::{KindHandling, UnstructuredObject};

use crate::admission_validation::{
    NewOrStored, decide_admission_kind_handling, validate_admission_configuration,
};
use crate::offline::{
    LoadFailure, NodeObjectsNeed, ObjectSelection, OfflineAuthorizer, PolicyFlags,
    WebhookCallFlags, WebhookCallMode,
};

/// The admission configurations, resources, namespaces and authorizers of a cluster.
pub(super) struct ManifestCluster {
    /// The hooks and initializers.
    pub(super) admission_snapshot: Snapshot,
    /// The resources that the cluster serves.
    pub(super) resource_registry: Registry,
    /// Answers the authorizer checks of match conditions.
    pub(super) offline_authorizer: OfflineAuthorizer,
    namespaces_by_name: HashMap<String, Tree>,
}

const NAMESPACE: (&str, &str) = ("v1", "Namespace");
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

impl ManifestCluster {
    /// Reads all files that the flags name.
    ///
    /// # Errors
    /// A file is missing or invalid, or the flags contradict each other.
    pub(super) fn load_from_flags(
        flags: &PolicyFlags,
        calls: &WebhookCallFlags,
        namespace: Option<&str>,
        stdin: &mut dyn Read,
    ) -> Result<Self, LoadFailure> {
        let webhooks =
            if calls.no_webhooks { WebhookCallMode::Skip } else { WebhookCallMode::Call };
        let selection = ObjectSelection {
            kind_handler: &decide_kind_handling,
            validate_object: &admission_configuration_diagnostics,
        };
        let (authorizer, objects) = OfflineAuthorizer::load_with_selected_objects(
            flags,
            webhooks,
            namespace,
            stdin,
            selection,
            NodeObjectsNeed::Skip,
        )?;
        let mut configurations = Vec::new();
        let mut namespaces = Vec::new();
        let mut definitions = Vec::new();
        for object in objects {
            match (object.api_version(), object.kind_name()) {
                NAMESPACE => namespaces.push(object),
                DEFINITION => definitions.push(object),
                // `admission_configuration_diagnostics` reported invalid ones already.
                _ => configurations
                    .extend(validate_admission_configuration(object, NewOrStored::Stored).ok()),
            }
        }
        let configurations: Vec<Arc<Configuration>> = configurations
            .iter()
            .map(|valid| {
                Arc::new(Configuration::compile_configuration(valid.kind, &valid.defaulted_tree))
            })
            .collect();
        let registry = build_resource_registry(&definitions)?;
        let namespaces = namespaces.iter().map(|object| to_namespace_entry(object, &registry));
        Ok(Self {
            admission_snapshot: Snapshot::new(&configurations),
            namespaces_by_name: namespaces.collect::<Result<_, LoadFailure>>()?,
            resource_registry: registry,
            offline_authorizer: authorizer,
        })
    }

    /// Returns the stored form of a namespace, if a manifest contains it.
    pub(super) fn namespace(&self, name: &str) -> Option<&Tree> {
        self.namespaces_by_name.get(name)
    }
}

/// Keeps admission configurations, namespaces and CustomResourceDefinitions.
fn decide_kind_handling(api_version: &str, kind: &str) -> KindHandling {
    match (api_version, kind) {
        NAMESPACE | DEFINITION => KindHandling::KeepUnstructured,
        (api_version, kind) => decide_admission_kind_handling(api_version, kind),
    }
}

/// Validates a configuration by the rules for stored objects, whose failurePolicy may be `Fail`.
fn admission_configuration_diagnostics(object: &UnstructuredObject) -> Vec<Diagnostic> {
    match ConfigurationKind::from_type_meta(object.api_version(), object.kind_name()) {
        Some(_) => validate_admission_configuration(object.clone(), NewOrStored::Stored)
            .err()
            .unwrap_or_default(),
        None => Vec::new(),
    }
}

/// Builds the registry of a server that serves these CustomResourceDefinitions.
fn build_resource_registry(definitions: &[UnstructuredObject]) -> Result<Registry, LoadFailure> {
    let built_in = Registry::with_built_in_resources();
    let mut trees: Vec<Tree> = Vec::new();
    for object in definitions {
        let mut tree = to_stored_object(object, &built_in)?;
        let others: Vec<CustomResourceDefinition> =
            trees.iter().filter_map(CustomResourceDefinition::read).collect();
        // No explanation shows the time.
        api_resources::accept_definition_names(&mut tree, &others, Timestamp::UNIX_EPOCH);
        api_resources::mark_established(&mut tree, Timestamp::UNIX_EPOCH);
        trees.push(tree);
    }
    let (registry, faults) =
        Registry::with_custom_resource_definitions(&trees.iter().collect::<Vec<_>>());
    match faults.first() {
        None => Ok(registry),
        Some((name, why)) => {
            Err(LoadFailure::from_message(format!("CustomResourceDefinition `{name}` {why}")))
        }
    }
}

fn to_namespace_entry(
    object: &UnstructuredObject,
    registry: &Registry,
) -> Result<(String, Tree), LoadFailure> {
    Ok((object.name().to_owned(), to_stored_object(object, registry)?))
}

/// Converts an object to the form that a server would have stored.
fn to_stored_object(object: &UnstructuredObject, registry: &Registry) -> Result<Tree, LoadFailure> {
    let position = object.position();
    let wrong = |why: &str| {
        let (file, line, column) = (&object.file_name, position.line, position.column);
        LoadFailure::from_message(format!("{file}:{line}:{column}: {why}"))
    };
    let (group, version) =
        object.api_version().split_once('/').unwrap_or(("", object.api_version()));
    let resource = registry.resource_of_kind(group, version, object.kind_name());
    let Some(resource) = resource else { return Err(wrong("unknown kind")) };
    let mut tree = object.value.clone();
    api_object::normalize_metadata(&mut tree).map_err(|error| wrong(&error.to_string()))?;
    let status = tree.get("status").cloned();
    api_resources::prepare_create(resource, &mut tree)
        .map_err(|error| wrong(&error.to_string()))?;
    if let Some(status) = status {
        tree.insert("status".to_owned(), status);
    }
    Ok(tree)
}
